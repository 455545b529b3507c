//! A task as the extension writes it: flat, with what its status brings along.

use std::collections::BTreeMap;

use serde::Serialize;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::task::Outcome;
use raincheck_core::time::Timestamp;
use raincheck_runtime::View;

use super::progress;
use super::words::{Status, status};
use crate::answer::own;
use crate::call::poll_after_ms;
use crate::caller::Caller;
use crate::surface::Desk;

/// The code of JSON-RPC for what is no fault of the request.
const INTERNAL_ERROR: i32 = -32603;

/// A task, with what only some of its states have.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    result_type: &'static str,
    task_id: TaskId,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<String>,
    created_at: Timestamp,
    last_updated_at: Timestamp,
    /// From the creation on; `null` until the task has ended, from when its retention counts.
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_interval_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<BTreeMap<&'a str, &'a Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure<'a>>,
}

/// An error of JSON-RPC, with the error table's object as its data [CALL-5].
#[derive(Serialize)]
struct Failure<'a> {
    code: i32,
    message: &'a str,
    data: &'a Error,
}

impl<'a> Task<'a> {
    fn of(desk: &Desk, view: &View, status: Status, whose: &'static str) -> Self {
        let record = &view.record;
        let now = desk.engine().now();
        let ttl = record.expires_at().map(|at| at.since(record.task.submitted_at));
        Self {
            result_type: "complete",
            task_id: record.id(),
            status: status.as_str(),
            status_message: progress::message(desk, view, whose),
            created_at: record.task.submitted_at,
            last_updated_at: record.updated_at,
            ttl_ms: ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            poll_interval_ms: (!record.state.is_terminal()).then(|| poll_after_ms(record, now)),
            input_requests: None,
            result: None,
            error: None,
        }
    }

    /// Adds what it asks just now.
    fn with_requests(mut self, view: &'a View) -> Self {
        let asked = view.inputs.iter().map(|one| (&*one.key, &one.request));
        self.input_requests = (!view.inputs.is_empty()).then(|| asked.collect());
        self
    }

    fn written(&self) -> Json {
        // Strings, numbers and JSON that was read can always be written.
        Json::of(self).unwrap_or_else(|_| Json::null())
    }
}

/// Writes the `CreateTaskResult` of a call that goes on.
pub(super) fn created(desk: &Desk, view: &View, whose: &'static str) -> Json {
    let status = status(view.record.state, view.record.failure);
    Task { result_type: "task", ..Task::of(desk, view, status, whose) }.written()
}

/// Writes what `tasks/get` says of a task.
///
/// # Errors
/// When the task's retention is over, or the server is.
pub(super) async fn detailed(
    desk: &Desk,
    view: View,
    who: &Caller,
    whose: &'static str,
) -> Result<Json, Error> {
    let status = status(view.record.state, view.record.failure);
    match status {
        Status::Working | Status::InputRequired | Status::Cancelled => {
            Ok(Task::of(desk, &view, status, whose).with_requests(&view).written())
        }
        Status::Completed => {
            // The result may say that it was read, which changes nothing of what is told here.
            let ended = view.clone();
            let result = desk.result_of(view, who).await?;
            Ok(Task { result: Some(&result), ..Task::of(desk, &ended, status, whose) }.written())
        }
        Status::Failed => {
            let error = match view.payload.as_ref().and_then(|payload| payload.outcome.as_ref()) {
                Some(Outcome::Failed(error)) => own(error),
                Some(Outcome::Succeeded(_) | Outcome::Cancelled) | None => {
                    let kind = view.record.failure.unwrap_or(Kind::WorkerLost);
                    Error::new(kind, "the task ended without an outcome")
                }
            };
            let failure = Failure { code: INTERNAL_ERROR, message: &error.message, data: &error };
            Ok(Task { error: Some(failure), ..Task::of(desk, &view, status, whose) }.written())
        }
        Status::Unknown => Err(Error::not_found()),
    }
}
