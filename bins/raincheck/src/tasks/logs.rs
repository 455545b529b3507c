//! `raincheck tasks logs`.

use raincheck::core::ids::TaskId;
use raincheck::core::log::{Line, LogStore as _, may_grow};
use raincheck::core::text::escape;
use raincheck::core::time::Timestamp;
use raincheck::runtime::FileLogs;
use raincheck_app::terminal::{Palette, Style};
use raincheck_app::{Failure, cli};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::owner::Owner;
use super::place::{Place, unreadable};
use super::words;

/// How many lines are read at a time.
const PAGE: u32 = 1_000;

/// How long one call waits for a line; then it is made again.
const WAIT_S: u32 = 20;

pub(super) async fn run(
    place: &Place,
    id: TaskId,
    follows: bool,
    is_json: bool,
) -> Result<(), Failure> {
    let out = Out { palette: Palette::detect(), is_json };
    let view = place.view(id)?;
    if view.payload.is_none() {
        return Err(Failure::failed(
            format!("the log of {id} is gone since {}", view.record.updated_at),
            "run the tool again if you still need it",
        ));
    }
    if follows && may_grow(view.record.state) {
        if let Some(mut owner) = Owner::reach(place).await {
            return follow(&mut owner, id, out).await;
        }
        print_all(place, id, out).await?;
        return Err(Failure::failed(
            format!("{id} has not ended, but no server can be reached that would go on with it"),
            "start the server again, and repeat the command",
        ));
    }
    print_all(place, id, out).await
}

/// Prints what there is.
async fn print_all(place: &Place, id: TaskId, out: Out) -> Result<(), Failure> {
    let logs = FileLogs::new(place.files());
    let mut after = 0;
    loop {
        let page = logs.read(id, after, PAGE).await.map_err(|error| unreadable(&error))?;
        let Some(last) = page.items.last() else { return Ok(()) };
        after = last.seq;
        let lines: Vec<Shown> = page.items.iter().map(Shown::of).collect();
        out.print(&lines)?;
        if !page.has_more {
            return Ok(());
        }
    }
}

/// A part of a log as the server answers it.
#[derive(Deserialize)]
struct Part {
    lines: Vec<Shown>,
    next_cursor: String,
    truncated: bool,
}

/// Where a task stands, as the server answers it.
#[derive(Deserialize)]
struct Status {
    state: String,
    completed_at: Option<Timestamp>,
}

/// Prints what comes, as it comes: the server answers as soon as there is a line.
async fn follow(owner: &mut Owner, id: TaskId, out: Out) -> Result<(), Failure> {
    let mut cursor: Option<String> = None;
    let mut has_ended = false;
    loop {
        let next = json!({"task_id": id, "cursor": cursor, "limit": PAGE, "wait_s": WAIT_S});
        let Part { lines, next_cursor, truncated } = owner.call("tail_task_logs", next).await?;
        out.print(&lines)?;
        cursor = Some(next_cursor);
        if !lines.is_empty() || truncated {
            continue;
        }
        if has_ended {
            return Ok(());
        }
        // A line may have come between the answer and the end, so the log is read once more.
        let status: Status = owner.call("get_task_status", json!({"task_id": id})).await?;
        has_ended = status.completed_at.is_some() || status.state == "expired";
    }
}

/// A line of a log.
#[derive(Deserialize, Serialize)]
struct Shown {
    seq: u64,
    ts: Timestamp,
    stream: String,
    level: String,
    message: String,
}

impl Shown {
    fn of(line: &Line) -> Self {
        Self {
            seq: line.seq,
            ts: line.ts,
            stream: line.stream.as_str().to_owned(),
            level: line.level.as_str().to_owned(),
            message: line.message.to_string(),
        }
    }
}

/// How lines are printed.
#[derive(Clone, Copy)]
struct Out {
    palette: Palette,
    is_json: bool,
}

impl Out {
    fn print(self, lines: &[Shown]) -> Result<(), Failure> {
        let mut text = String::new();
        for line in lines {
            text.push_str(&if self.is_json { words::line_of(line)? } else { self.line(line) });
            text.push('\n');
        }
        if text.is_empty() { Ok(()) } else { cli::print(&text) }
    }

    fn line(self, line: &Shown) -> String {
        let message = escape(&line.message);
        let message = match line.level.as_str() {
            "error" => self.palette.paint(Style::Red, &message),
            "warn" => self.palette.paint(Style::Yellow, &message),
            "debug" => self.palette.paint(Style::Dim, &message),
            _ => message.into_owned(),
        };
        let time = self.palette.paint(Style::Dim, &line.ts.to_string());
        format!("{time}  {:<7}  {message}", escape(&line.stream))
    }
}
