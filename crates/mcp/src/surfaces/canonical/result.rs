//! `get_task_result`.

use serde::Serialize;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{ArtifactId, Spelling, TaskId};
use raincheck_core::task::{self, AttemptSummary, Metrics, Outcome, TaskDetails, TaskRecord};
use raincheck_core::time::Timestamp;
use raincheck_runtime::View;

use super::{READS, TOOL, status, task_id, wait, words};
use crate::answer::{Answer, Begins, Failure, Mark, Parts, shown};
use crate::call::{cancelled, read};
use crate::caller::Caller;
use crate::surface::{Definition, Desk};
use crate::wire::Fields;

pub(super) const DEFINITION: Definition = Definition {
    title: "Task result",
    description: "Reads how a task ended: result or error, artifacts (fetch them from download_url), \
                  attempts, metrics. Reading again gives the same answer until expires_at. wait_s (up to \
                  60) sleeps until the end; a task that still runs is answered with its status and \
                  poll_after_ms.",
    schema: r#"{"type":"object","properties":{"task_id":{"type":"string"},"wait_s":{"type":"number","minimum":0,"default":0}},"required":["task_id"],"additionalProperties":false}"#,
    hints: READS,
};

/// How a task ended.
#[derive(Serialize)]
struct Ended<'a> {
    task_id: TaskId,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Metrics>,
    untrusted_begins: Begins<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Parts<'a>>,
    artifacts: Vec<Artifact<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_result: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    late_result: Option<Late<'a>>,
    attempts: Vec<AttemptSummary>,
    untrusted_ends: &'a str,
}

/// What came after the end [LEASE-7].
#[derive(Debug, Serialize)]
pub(super) struct Late<'a> {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Parts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
}

/// A file that the task left [ART-1].
#[derive(Debug, Serialize)]
pub(super) struct Artifact<'a> {
    artifact_id: &'a ArtifactId,
    name: &'a str,
    kind: &'a str,
    size_bytes: u64,
    sha256: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    download_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

pub(super) async fn call(desk: &Desk, arguments: &Json, who: &mut Caller) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["task_id", "wait_s"])?;
    let wait = wait(&mut fields, who)?;
    let id = task_id(&mut fields)?;
    let engine = desk.engine();
    let view = read(engine, id, wait, who).await?;
    match &view.payload {
        Some(payload) if view.record.state.is_terminal() => {
            let links = desk.links(&view.record, payload).await;
            Ok(desk.fence_linked(links, |mark, links| ended(&view, payload, links, mark)))
        }
        _ => Ok(desk.fence(|mark| status::answer(&view, engine.now(), mark))),
    }
}

/// Answers with an ended task. A task that failed is not a failed call.
fn ended(view: &View, payload: &TaskDetails, links: Vec<String>, mark: &Mark) -> Answer {
    let record = &view.record;
    let links = links.into_iter().map(Some).chain(std::iter::repeat(None));
    let (mut result, error) = outcome(payload.outcome.as_ref(), record);
    let beside = result.as_mut().map(Parts::take_blocks).unwrap_or_default();
    let failure = |error| Failure::of_task(error, mark, TOOL);
    let answer = Answer::json(&Ended {
        task_id: record.id(),
        state: words::word(record.state),
        error: error.as_ref().map(failure),
        completed_at: record.ended_at,
        expires_at: record.expires_at(),
        metrics: payload.attempts.last().and_then(|attempt| attempt.metrics),
        untrusted_begins: mark.begins(TOOL),
        result,
        artifacts: payload
            .artifacts
            .iter()
            .zip(links)
            .map(|(artifact, link)| shown_artifact(artifact, link, record))
            .collect(),
        partial_result: view.partial.as_ref(),
        late_result: payload.late.as_ref().map(|late| shown_late(late, record)),
        attempts: payload.attempts.iter().map(shown_attempt).collect(),
        untrusted_ends: mark.ends(),
    });
    answer.with_beside(beside).of_task(record, Spelling::Task)
}

/// Splits an outcome into what is shown as `result` and what as `error`.
pub(super) fn outcome<'a>(
    outcome: Option<&'a Outcome>,
    record: &TaskRecord,
) -> (Option<Parts<'a>>, Option<Error>) {
    match outcome {
        Some(Outcome::Succeeded(contents)) => (Some(Parts::of(contents)), None),
        Some(Outcome::Failed(error)) => (None, Some(shown(error))),
        Some(Outcome::Cancelled) => (None, Some(cancelled(Some(record)))),
        None => {
            let kind = record.failure.unwrap_or(Kind::Cancelled);
            (None, Some(Error::new(kind, "the task ended without an outcome")))
        }
    }
}

pub(super) fn shown_late<'a>(late: &'a Outcome, record: &TaskRecord) -> Late<'a> {
    let state = match late {
        Outcome::Succeeded(_) => "succeeded",
        Outcome::Failed(_) => "failed",
        Outcome::Cancelled => "cancelled",
    };
    let (result, error) = outcome(Some(late), record);
    Late { state, result, error }
}

pub(super) fn shown_attempt(attempt: &AttemptSummary) -> AttemptSummary {
    AttemptSummary { error: attempt.error.as_ref().map(shown), ..attempt.clone() }
}

pub(super) fn shown_artifact<'a>(
    artifact: &'a task::Artifact,
    download_url: Option<String>,
    record: &TaskRecord,
) -> Artifact<'a> {
    Artifact {
        artifact_id: &artifact.id,
        name: &artifact.name,
        kind: &artifact.kind,
        size_bytes: artifact.size,
        sha256: &artifact.sha256,
        download_url,
        expires_at: record.expires_at(),
    }
}
