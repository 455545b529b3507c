//! Tasks in the words of the six tools, for whoever reads a store without calling them.

use serde::Serialize;

use raincheck_core::content::Json;
use raincheck_core::deadline::Kind as Deadline;
use raincheck_core::error::Error;
use raincheck_core::ids::{ArtifactId, Fence, LaneId, TaskId, ToolName, WorkerId};
use raincheck_core::lifecycle::State;
use raincheck_core::progress::Progress;
use raincheck_core::task::{self, Attempt, Cause, Metrics, Payload, Row, TaskEvent, WaitReason};
use raincheck_core::text;
use raincheck_core::time::Timestamp;
use raincheck_runtime::View;

use super::result::{Late, outcome, shown_attempt, shown_late};
use super::shown_progress;
use super::status::Status;
use crate::answer::Parts;
use crate::dialect::canonical;

/// A list of tasks, as `list_tasks` answers it.
#[derive(Debug, Serialize)]
pub struct Listing<'a> {
    tasks: Vec<Status<'a>>,
}

impl<'a> Listing<'a> {
    /// Shows rows.
    #[must_use]
    pub fn of(rows: &'a [Row]) -> Self {
        Self { tasks: rows.iter().map(Status::of).collect() }
    }
}

/// Everything that the owner of a task may see of it, with its history. Inputs are told by their
/// size alone: what of them is sensitive only the tool's definition knows [SEC-11].
#[derive(Debug, Serialize)]
pub struct Record<'a> {
    task_id: TaskId,
    state: &'static str,
    tool_name: &'a ToolName,
    queue: &'a LaneId,
    scope: &'a str,
    priority: i8,
    tags: Vec<String>,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_id: Option<&'a WorkerId>,
    submitted_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    heartbeat_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    cancel_requested: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_result: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Parts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
    #[serde(skip_serializing_if = "Option::is_none")]
    late_result: Option<Late<'a>>,
    artifacts: Vec<Artifact<'a>>,
    attempts: Vec<Attempt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Metrics>,
    events: Vec<Entry>,
}

/// A file that the task left [ART-1].
#[derive(Debug, Serialize)]
struct Artifact<'a> {
    artifact_id: &'a ArtifactId,
    name: &'a str,
    kind: &'a str,
    size_bytes: u64,
    sha256: &'a str,
}

impl<'a> Artifact<'a> {
    fn of(artifact: &'a task::Artifact) -> Self {
        Self {
            artifact_id: &artifact.id,
            name: &artifact.name,
            kind: &artifact.kind,
            size_bytes: artifact.size,
            sha256: &artifact.sha256,
        }
    }
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
    /// Shows a task.
    #[must_use]
    pub fn of(view: &'a View) -> Self {
        let row = &view.row;
        let payload = view.payload.as_deref();
        let is_over = row.state.is_terminal();
        let (result, error) = match payload.filter(|_| is_over) {
            Some(payload) => outcome(payload.outcome.as_ref(), row),
            None => (None, None),
        };
        let late = payload.and_then(|payload| payload.late.as_ref());
        let attempts = payload.map_or(&[][..], |payload| &payload.attempts);
        Self {
            task_id: row.id(),
            state: canonical::word(row.state),
            tool_name: &row.task.tool,
            queue: &row.task.lane,
            scope: row.task.scope.as_str(),
            priority: row.task.priority,
            tags: row.task.tags.iter().map(|tag| safe(tag)).collect(),
            attempt: row.attempt,
            worker_id: row.worker.as_ref(),
            submitted_at: row.task.submitted_at,
            started_at: row.started_at,
            updated_at: row.updated_at,
            heartbeat_at: row.heartbeat_at,
            completed_at: row.ended_at,
            timeout_at: row.timeout_at(),
            expires_at: row.expires_at().or_else(|| row.deadlines.get(Deadline::Ttl)),
            cancel_requested: row.cancel.is_some(),
            cancel_reason: row.cancel.as_ref().and_then(|c| c.reason.as_deref()).map(safe),
            waiting_reason: row.waiting.map(WaitReason::as_str),
            position: view.position,
            progress: view.progress.as_ref().map(shown_progress),
            partial_result: view.partial.as_ref(),
            inputs_bytes: payload.map(|payload| payload.inputs.get().len()),
            result,
            error,
            late_result: late.map(|late| shown_late(late, row)),
            artifacts: artifacts(payload).map(Artifact::of).collect(),
            attempts: attempts.iter().map(shown_attempt).collect(),
            metrics: attempts.last().and_then(|attempt| attempt.metrics),
            events: events(payload).map(Entry::of).collect(),
        }
    }
}

fn artifacts(payload: Option<&Payload>) -> impl Iterator<Item = &task::Artifact> {
    payload.into_iter().flat_map(|payload| &payload.artifacts)
}

fn events(payload: Option<&Payload>) -> impl Iterator<Item = &TaskEvent> {
    payload.into_iter().flat_map(|payload| &payload.events)
}
