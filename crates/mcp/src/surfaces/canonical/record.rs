//! Tasks in the words of the task tools, for whoever reads a store without calling them.

use serde::Serialize;

use raincheck_core::error::Error;
use raincheck_core::ids::Fence;
use raincheck_core::lifecycle::State;
use raincheck_core::task::{
    self, AttemptSummary, Cause, Metrics, TaskDetails, TaskEvent, TaskRecord,
};
use raincheck_core::text;
use raincheck_core::time::Timestamp;
use raincheck_runtime::View;

use super::result::{Artifact, Late, outcome, shown_artifact, shown_attempt, shown_late};
use super::status::Status;
use crate::answer::Parts;

/// A list of tasks, as `list_tasks` answers it.
#[derive(Debug, Serialize)]
pub struct Listing<'a> {
    tasks: Vec<Listed<'a>>,
}

/// A task, and what no server has recorded of it yet.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    status: Status<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program_ended_at: Option<Timestamp>,
}

impl<'a> Listing<'a> {
    /// Shows rows. `unrecorded_end` returns when the program of a task ended, if no server has recorded
    /// that yet; it is shown as `program_ended_at` [TIME-5].
    pub fn of(
        rows: &'a [TaskRecord],
        unrecorded_end: impl Fn(&TaskRecord) -> Option<Timestamp>,
    ) -> Self {
        let listed =
            |row| Listed { status: Status::of(row), program_ended_at: unrecorded_end(row) };
        Self { tasks: rows.iter().map(listed).collect() }
    }
}

/// Everything that the owner of a task may see of it, with its history. Inputs are told by their
/// size alone: what of them is sensitive only the tool's definition knows [SEC-11].
#[derive(Debug, Serialize)]
pub struct Record<'a> {
    #[serde(flatten)]
    status: Status<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program_ended_at: Option<Timestamp>,
    scope: &'a str,
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Parts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
    #[serde(skip_serializing_if = "Option::is_none")]
    late_result: Option<Late<'a>>,
    artifacts: Vec<Artifact<'a>>,
    attempts: Vec<AttemptSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Metrics>,
    events: Vec<Entry>,
}

/// One entry of the history, in the words of the transition table [STATE-4].
#[derive(Debug, Serialize)]
struct Entry {
    seq: u32,
    at: Timestamp,
    attempt: u32,
    fence: Fence,
    from: Option<State>,
    to: State,
    event: Cause,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Entry {
    fn of(event: &TaskEvent) -> Self {
        Self {
            seq: event.seq,
            at: event.at,
            attempt: event.attempt,
            fence: event.fence,
            from: event.from,
            to: event.to,
            event: event.cause,
            note: event.note.as_deref().map(safe),
        }
    }
}

fn safe(words: &str) -> String {
    text::escape_lines(words).into_owned()
}

impl<'a> Record<'a> {
    /// Shows a task. `unrecorded_end` is when its program ended, if no server has recorded that yet.
    #[must_use]
    pub fn of(view: &'a View, unrecorded_end: Option<Timestamp>) -> Self {
        let record = &view.record;
        let payload = view.payload.as_deref();
        let is_over = record.state.is_terminal();
        let (result, error) = match payload.filter(|_| is_over) {
            Some(payload) => outcome(payload.outcome.as_ref(), record),
            None => (None, None),
        };
        let late = payload.and_then(|payload| payload.late.as_ref());
        let attempts = payload.map_or(&[][..], |payload| &payload.attempts);
        Self {
            status: Status::of_view(view),
            program_ended_at: unrecorded_end,
            scope: record.task.scope.as_str(),
            tags: record.task.tags.iter().map(|tag| safe(tag)).collect(),
            cancel_reason: record.cancel.as_ref().and_then(|c| c.reason.as_deref()).map(safe),
            inputs_bytes: payload.map(|payload| payload.inputs.get().len()),
            result,
            error,
            late_result: late.map(|late| shown_late(late, record)),
            artifacts: artifacts(payload).map(|one| shown_artifact(one, None, record)).collect(),
            attempts: attempts.iter().map(shown_attempt).collect(),
            metrics: attempts.last().and_then(|attempt| attempt.metrics),
            events: events(payload).map(Entry::of).collect(),
        }
    }
}

fn artifacts(payload: Option<&TaskDetails>) -> impl Iterator<Item = &task::Artifact> {
    payload.into_iter().flat_map(|payload| &payload.artifacts)
}

fn events(payload: Option<&TaskDetails>) -> impl Iterator<Item = &TaskEvent> {
    payload.into_iter().flat_map(|payload| &payload.events)
}
