//! `get_task_status`, and the row that other answers show.

use serde::Serialize;

use raincheck_core::content::Json;
use raincheck_core::deadline::Kind as Deadline;
use raincheck_core::error::Error;
use raincheck_core::ids::{LaneId, Spelling, TaskId, ToolName, WorkerId};
use raincheck_core::lifecycle::State;
use raincheck_core::progress::Progress;
use raincheck_core::task::{TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;
use raincheck_runtime::View;

use super::input::Asked;
use super::{READS, TOOL, task_id, words};
use crate::answer::{Answer, Begins, Mark, shown_progress};
use crate::call::poll_after_ms;
use crate::caller::Caller;
use crate::surface::{Definition, Desk};
use crate::wire::Fields;

pub(super) const DEFINITION: Definition = Definition {
    title: "Task status",
    description: "Shows where a task stands: state, queue position, progress, partial_result, limits. \
                  Returns at once; to sleep until the end use get_task_result with wait_s.",
    schema: r#"{"type":"object","properties":{"task_id":{"type":"string"}},"required":["task_id"],"additionalProperties":false}"#,
    hints: READS,
};

pub(super) async fn call(desk: &Desk, arguments: &Json, who: &Caller) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["task_id"])?;
    let id = task_id(&mut fields)?;
    who.leave().await?;
    let view = desk.engine().status(who.scope(), id).await?;
    Ok(desk.fence(|mark| answer(&view, desk.engine().now(), mark)))
}

/// Answers with the status of a task, or with what is left of it once its retention is over.
pub(super) fn answer(view: &View, now: Timestamp, mark: &Mark) -> Answer {
    if view.record.state == State::Expired {
        return Answer::json(&Tombstone::of(&view.record));
    }
    let is_said = view.progress.is_some() || view.partial.is_some() || !view.inputs.is_empty();
    let mark = is_said.then_some(mark);
    let answer = Answer::json(&Status {
        untrusted_begins: mark.map(|mark| mark.begins(TOOL)),
        untrusted_ends: mark.map(Mark::ends),
        poll_after_ms: Some(poll_after_ms(&view.record, now)),
        ..Status::of_view(view)
    });
    answer.of_task(&view.record, Spelling::Task)
}

/// Where a task stands.
#[derive(Debug, Serialize)]
pub(crate) struct Status<'a> {
    task_id: TaskId,
    state: &'static str,
    tool_name: &'a ToolName,
    attempt: u32,
    priority: i8,
    queue: &'a LaneId,
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
    cancel_requested: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_after_ms: Option<u64>,
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

impl<'a> Status<'a> {
    /// Shows what the row alone tells.
    pub(super) fn of(record: &'a TaskRecord) -> Self {
        Self {
            task_id: record.id(),
            state: words::word(record.state),
            tool_name: &record.task.tool,
            attempt: record.attempt,
            priority: record.task.priority,
            queue: &record.task.lane,
            worker_id: record.worker.as_ref(),
            submitted_at: record.task.submitted_at,
            started_at: record.started_at,
            updated_at: record.updated_at,
            heartbeat_at: record.heartbeat_at,
            completed_at: record.ended_at,
            cancel_requested: record.cancel.is_some(),
            timeout_at: record.timeout_at(),
            expires_at: record
                .expires_at()
                .or_else(|| record.deadlines.get(Deadline::QueueTimeout)),
            waiting_reason: record.waiting.as_ref().map(WaitReason::as_str),
            position: None,
            poll_after_ms: None,
            untrusted_begins: None,
            progress: None,
            partial_result: None,
            input_request: None,
            untrusted_ends: None,
        }
    }

    /// Shows what the row and the engine tell.
    pub(super) fn of_view(view: &'a View) -> Self {
        Self {
            progress: view.progress.as_ref().map(shown_progress),
            partial_result: view.partial.as_ref(),
            input_request: view.inputs.first().map(Asked::of),
            position: view.position,
            ..Self::of(&view.record)
        }
    }
}

/// What is left of a task once its retention is over [TIME-5].
#[derive(Debug, Serialize)]
pub(super) struct Tombstone<'a> {
    task_id: TaskId,
    state: &'static str,
    tool_name: &'a ToolName,
    queue: &'a LaneId,
    submitted_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Timestamp>,
    expired_at: Timestamp,
    cancel_requested: bool,
    message: String,
}

impl<'a> Tombstone<'a> {
    /// Shows when and why it went.
    pub(super) fn of(record: &'a TaskRecord) -> Self {
        let kept_s = record.task.limits.retention.as_secs_f64();
        Self {
            task_id: record.id(),
            state: words::word(State::Expired),
            tool_name: &record.task.tool,
            queue: &record.task.lane,
            submitted_at: record.task.submitted_at,
            completed_at: record.ended_at,
            expired_at: record.updated_at,
            cancel_requested: record.cancel.is_some(),
            message: format!(
                "its result was kept for {kept_s} s after it ended and is gone since {}; run the \
                 tool again if you still need it",
                record.updated_at
            ),
        }
    }
}
