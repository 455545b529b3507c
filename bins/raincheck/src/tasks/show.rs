//! `raincheck tasks show`.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use raincheck::core::content::Content;
use raincheck::core::error::Error;
use raincheck::core::ids::TaskId;
use raincheck::core::task::{Outcome, TaskDetails, TaskEvent, TaskRecord};
use raincheck::core::text::clip;
use raincheck::mcp::Record;
use raincheck::runtime::View;
use raincheck_app::terminal::{Palette, Style};
use raincheck_app::{Failure, cli};

use super::place::Place;
use super::words::{self, Cell, Table};

/// The longest part of a result that is shown to a person.
const MAX_SHOWN: usize = 2_000;

pub(super) fn run(place: &Place, id: TaskId, is_json: bool) -> Result<(), Failure> {
    let view = place.view(id)?;
    if is_json {
        return words::json(&Record::of(&view, place.unrecorded_end(&view.record)));
    }
    let has_bars = std::io::stdout().is_terminal();
    cli::print(&text(place, &view, Palette::detect(), has_bars))
}

fn text(place: &Place, view: &View, palette: Palette, has_bars: bool) -> String {
    let record = &view.record;
    let mut out = format!("{}\n", palette.paint(Style::Bold, &record.id().to_string()));
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(out, "  {name:<10} {value}");
        }
    };
    line("state", state(record, palette));
    line("tool", words::safe(record.task.tool.as_str()));
    line("queue", queue(view));
    line(
        "tags",
        record.task.tags.iter().map(|tag| words::safe(tag)).collect::<Vec<_>>().join(", "),
    );
    line("submitted", format!("{} ({} ago)", record.task.submitted_at, age(place, record)));
    let unrecorded = place.unrecorded_end(record);
    if let Some(at) = record.started_at {
        let until = record.ended_at.or(unrecorded).unwrap_or(place.now);
        line("started", format!("{at}, ran {}", words::span(until.since(at))));
    }
    let waits = |at| format!("{at}, while no server ran; the next one records how");
    let ended = record.ended_at.map(|at| at.to_string()).or(unrecorded.map(waits));
    line("ended", ended.unwrap_or_default());
    line("attempt", attempt(record));
    line("kept until", record.expires_at().map(|at| at.to_string()).unwrap_or_default());
    let live = view.progress.as_ref().filter(|_| !record.state.is_terminal());
    line("progress", live.map(|it| words::progress(it, has_bars)).unwrap_or_default());
    if let Some(payload) = &view.payload {
        out.push_str(&end(payload));
        out.push_str(&artifacts(payload, palette));
        out.push_str(&history(&payload.events, palette));
    }
    out
}

fn state(record: &TaskRecord, palette: Palette) -> String {
    let reason = record.cancel.as_ref().and_then(|cancel| cancel.reason.as_deref());
    let mut state = Cell::of_state(record.state).painted(palette);
    if let Some(kind) = record.failure {
        let _ = write!(state, " ({kind})");
    }
    if let Some(waiting) = &record.waiting {
        let _ = write!(state, " ({})", waiting.as_str());
    }
    match (record.cancel.is_some(), reason) {
        (true, Some(reason)) => state + ", cancel asked for: " + &words::safe(reason),
        (true, None) => state + ", cancel asked for",
        (false, _) => state,
    }
}

fn queue(view: &View) -> String {
    let task = &view.record.task;
    let place = view.position.map(|n| format!(", {n} before it")).unwrap_or_default();
    format!("{}, priority {}{place}", words::safe(task.lane.as_str()), task.priority)
}

fn attempt(record: &TaskRecord) -> String {
    match (record.attempt, &record.worker) {
        (0, _) => String::new(),
        (n, Some(worker)) => format!("{n}, by {}", words::safe(worker.as_str())),
        (n, None) => n.to_string(),
    }
}

fn age(place: &Place, record: &TaskRecord) -> String {
    words::span(place.now.since(record.task.submitted_at))
}

/// Shows how it ended.
fn end(payload: &TaskDetails) -> String {
    match &payload.outcome {
        Some(Outcome::Succeeded(parts)) => {
            let parts: Vec<String> = parts.iter().map(part).collect();
            format!("  {:<10} {}\n", "result", parts.join("\n             "))
        }
        Some(Outcome::Failed(error)) => failure(error),
        Some(Outcome::Cancelled) | None => String::new(),
    }
}

fn part(part: &Content) -> String {
    let text = match part {
        Content::Json(json) | Content::Verbatim(json) => json.get(),
        Content::Text(text) => text,
        Content::Binary { mime, data } => {
            return format!("{} bytes of {}", data.len(), words::safe(mime));
        }
    };
    let shown = words::safe(clip(text, MAX_SHOWN));
    if text.len() > MAX_SHOWN { shown + "… (whole with --json)" } else { shown }
}

fn failure(error: &Error) -> String {
    let message = raincheck::core::text::escape_lines(&error.message);
    let message = message.replace('\n', "\n             ");
    let mut out = format!("  {:<10} {}: {message}\n", "error", error.kind);
    if let Some(guarantee) = error.guarantee() {
        let _ = writeln!(out, "  {:<10} {}", "guarantee", guarantee.as_str());
    }
    let hint = error.hint.as_deref().unwrap_or(error.kind.entry().hint);
    let _ = writeln!(out, "  {:<10} {}", "next", words::safe(hint));
    out
}

fn artifacts(payload: &TaskDetails, palette: Palette) -> String {
    if payload.artifacts.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["ARTIFACT", "BYTES", "SHA-256"]);
    for artifact in &payload.artifacts {
        table.row(vec![
            Cell::plain(words::safe(&artifact.name)),
            Cell::plain(artifact.size.to_string()),
            Cell::plain(words::safe(&artifact.sha256)),
        ]);
    }
    format!("\n{}", table.text(palette))
}

fn history(events: &[TaskEvent], palette: Palette) -> String {
    let mut table = Table::new(&["EVENT", "AT", "ATTEMPT", "CAUSE", "STATE"]);
    for event in events {
        let note = event.note.as_deref().map(|note| format!(" ({})", words::safe(note)));
        table.row(vec![
            Cell::plain(event.seq.to_string()),
            Cell::plain(event.at.to_string()),
            Cell::plain(event.attempt.to_string()),
            Cell::plain(event.cause.as_str().to_owned() + &note.unwrap_or_default()),
            Cell::of_state(event.to),
        ]);
    }
    format!("\n{}", table.text(palette))
}
