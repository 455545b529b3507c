//! `tail_task_logs`.

use std::borrow::Cow;

use serde::Serialize;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::ids::TaskId;
use raincheck_core::log::{Level, Line, Stream};
use raincheck_core::text;
use raincheck_core::time::Timestamp;
use raincheck_runtime::Handle;

use super::{READS, TOOL, limit, task_id, wait};
use crate::answer::{Answer, Begins};
use crate::call::{Lines, read_log};
use crate::caller::Caller;
use crate::surface::{Definition, Desk};
use crate::wire::Binding;
use crate::wire::Fields;

pub(super) const DEFINITION: Definition = Definition {
    title: "Task log",
    description: "Reads a task's log lines in order, from the start or after cursor; pass next_cursor \
                  back to go on without gap or repeat. wait_s (up to 60) waits for the first new line \
                  of a live task. truncated: more lines are there already.",
    schema: r#"{"type":"object","properties":{"task_id":{"type":"string"},"cursor":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":1000,"default":200},"wait_s":{"type":"number","minimum":0,"default":0}},"required":["task_id"],"additionalProperties":false}"#,
    hints: READS,
};

/// A part of a log.
#[derive(Serialize)]
struct Part<'a> {
    task_id: TaskId,
    next_cursor: String,
    truncated: bool,
    untrusted_begins: Begins<'a>,
    lines: Vec<Shown<'a>>,
    untrusted_ends: &'a str,
}

/// A line as it is shown.
#[derive(Serialize)]
struct Shown<'a> {
    seq: u64,
    ts: Timestamp,
    stream: Stream,
    level: Level,
    message: Cow<'a, str>,
}

impl<'a> Shown<'a> {
    fn of(line: &'a Line) -> Self {
        let message = text::escape(&line.message);
        Self { seq: line.seq, ts: line.ts, stream: line.stream, level: line.level, message }
    }
}

pub(super) async fn call(desk: &Desk, arguments: &Json, who: &Caller) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["task_id", "cursor", "limit", "wait_s"])?;
    let limit = limit(&mut fields, 200, 1000)?;
    let wait = wait(&mut fields, who)?;
    let cursor = fields.optional::<String>("cursor")?;
    let id = task_id(&mut fields)?;
    let binding = Binding::Log(&id);
    let engine: &Handle = desk.engine();
    let after = match cursor {
        None => 0,
        Some(cursor) => match binding.read(&cursor) {
            Ok(after) => after,
            Err(bad) => {
                // A foreign id is told as such, whatever cursor comes with it [SCOPE-2].
                engine.status(who.scope(), id).await?;
                return Err(bad);
            }
        },
    };
    let page = read_log(engine, id, Lines { after, limit }, wait, who).await?;
    let last = page.items.last().map_or(after, |line| line.seq);
    Ok(desk.fence(|mark| {
        Answer::json(&Part {
            task_id: id,
            next_cursor: binding.write(last),
            truncated: page.has_more,
            untrusted_begins: mark.begins(TOOL),
            lines: page.items.iter().map(Shown::of).collect(),
            untrusted_ends: mark.ends(),
        })
    }))
}
