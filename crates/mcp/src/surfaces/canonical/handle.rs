//! The handle of a call that outlives its wait: where it stands, and what to do next, in words and
//! as data.

use serde::Serialize;

use raincheck_core::content::Json;
use raincheck_core::ids::{Spelling, TaskId};
use raincheck_core::progress::Progress;
use raincheck_core::task::TaskRecord;
use raincheck_core::time::Timestamp;
use raincheck_runtime::View;

use super::input::{self, Asked};
use super::{TOOL, words};
use crate::answer::{Answer, Begins, Mark, shown_progress};
use crate::call::poll_after_ms;
use crate::caller::Caller;

/// The answer of a call whose task goes on.
#[derive(Serialize)]
struct Handle<'a> {
    status: &'static str,
    task_id: TaskId,
    log_id: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_at: Option<Timestamp>,
    poll_after_ms: u64,
    message: String,
    next: Next<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted_begins: Option<Begins<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_result: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_request: Option<Asked<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted_ends: Option<&'a str>,
}

/// The call to make next.
#[derive(Serialize)]
struct Next<'a> {
    tool: &'static str,
    arguments: Arguments<'a>,
}

#[derive(Serialize)]
struct Arguments<'a> {
    task_id: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_s: Option<u64>,
}

/// Answers with the handle of a live task.
pub(super) fn answer(view: &View, who: &Caller, now: Timestamp, mark: &Mark) -> Answer {
    let record = &view.record;
    let id = record.id();
    let is_said = view.progress.is_some() || view.partial.is_some() || !view.inputs.is_empty();
    let mark = is_said.then_some(mark);
    let wait_s = who.next_wait_s();
    let asked = view.inputs.first();
    let (message, next) = match asked {
        Some(input) => {
            let arguments = Arguments { task_id: id, key: Some(&input.key), wait_s: None };
            (asking(view), Next { tool: input::NAME, arguments })
        }
        None => {
            let arguments = Arguments { task_id: id, key: None, wait_s: Some(wait_s) };
            let message = going_on(record, view.position, wait_s);
            (message, Next { tool: "get_task_result", arguments })
        }
    };
    Answer::json(&Handle {
        status: "running",
        task_id: id,
        log_id: id.spell(Spelling::Uuid),
        state: words::word(record.state),
        position: view.position,
        timeout_at: record.timeout_at(),
        poll_after_ms: poll_after_ms(record, now),
        message,
        next,
        untrusted_begins: mark.map(|mark| mark.begins(TOOL)),
        progress: view.progress.as_ref().map(shown_progress),
        partial_result: view.partial.as_ref(),
        input_request: asked.map(Asked::of),
        untrusted_ends: mark.map(Mark::ends),
    })
}

/// Says in words how to go on with a task that asks for input.
fn asking(view: &View) -> String {
    let more = match view.inputs.len() {
        0 | 1 => String::new(),
        n => format!(
            " It is the first of {n}: get_task_status shows the next one once it is answered."
        ),
    };
    format!(
        "`{}` asks for input before it goes on: see input_request. Ask the user, unless you were told the \
         answer; then call {} with the task_id, the key and the response, such as \
         {{\"action\":\"accept\",\"content\":{{…}}}} or {{\"action\":\"decline\"}}.{more}",
        view.record.task.tool,
        input::NAME
    )
}

/// Says in words how to go on with a task that goes on.
fn going_on(record: &TaskRecord, position: Option<u32>, wait_s: u64) -> String {
    format!(
        "{} Keep the task_id, go on with other work, and call get_task_result with it later: \
         wait_s {wait_s} sleeps until it ends. tail_task_logs shows its log, cancel_task ends it.",
        standing(record, position)
    )
}

/// Says in words where a task stands whose call did not wait for its end.
fn standing(record: &TaskRecord, position: Option<u32>) -> String {
    let tool = &record.task.tool;
    match position {
        Some(position) => {
            format!("`{tool}` has not begun: {} in lane `{}`.", place(position), record.task.lane)
        }
        None => format!("`{tool}` takes longer than this call can wait; the task goes on."),
    }
}

/// Says in words how many tasks run before one that is in line.
fn place(position: u32) -> String {
    match position {
        0 => "it is next".to_owned(),
        1 => "1 task runs before it".to_owned(),
        n => format!("{n} tasks run before it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_line_is_said_as_people_say_it() {
        let said = [0, 1, 2].map(place);
        assert_eq!(said, ["it is next", "1 task runs before it", "2 tasks run before it"]);
    }
}
