//! An operation as it is told: where it stands, or how it ended.

use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::Spelling;
use raincheck_core::lifecycle::State;
use raincheck_core::progress::Progress;
use raincheck_core::task::{Outcome, TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;
use raincheck_runtime::View;
use serde::{Serialize, Serializer};

use super::{Bridge, Context, words};
use crate::answer::{Answer, Begins, Block, Failure, Mark, Parts, own, shown, shown_progress};
use crate::call::{cancelled, poll_after_ms};
use crate::caller::Caller;

/// What is said of an operation that succeeded.
const COMPLETED: &str = "Operation completed successfully.";

/// Who is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// The caller that made the operation, and how long it waited at the most.
    Submitter(Duration),
    /// A caller that reads it, and how long it waited at the most, if it did.
    Reader(Option<Duration>),
    /// A caller that asks where it stands, and is told nothing that may be as large as a result.
    Glancer,
}

/// An operation. What came from the other end stands between two marks that it cannot know.
#[derive(Serialize)]
struct Operation<'a> {
    status: &'static str,
    log_id: String,
    tool_name: &'a str,
    state: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    effective_timeout_s: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<Queue<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancel_requested: bool,
    submitted_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_info: Option<Failure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted_begins: Option<Begins<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Parts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_result: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    late_result: Option<Late<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted_ends: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Next>,
}

/// Seconds, whole ones without a fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seconds(pub(super) Duration);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.subsec_nanos() {
            0 => serializer.serialize_u64(self.0.as_secs()),
            _ => serializer.serialize_f64(self.0.as_secs_f64()),
        }
    }
}

/// What an operation that has not begun waits for.
#[derive(Serialize)]
pub(super) struct Queue<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_reason: Option<&'a str>,
}

impl<'a> Queue<'a> {
    pub(super) fn of(record: &'a TaskRecord, position: Option<u32>) -> Option<Self> {
        let waiting_reason = record.waiting.as_ref().map(WaitReason::as_str);
        let is_in_line = matches!(record.state, State::Waiting | State::Queued);
        let said = position.is_some() || waiting_reason.is_some();
        (is_in_line && said).then_some(Self { position, waiting_reason })
    }
}

/// What came after the end [LEASE-7].
#[derive(Serialize)]
struct Late<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Parts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The call to make next.
#[derive(Serialize)]
struct Next {
    tool: &'static str,
    arguments: Arguments,
}

#[derive(Serialize)]
struct Arguments {
    log_id: String,
    wait: bool,
    timeout: u64,
}

/// Answers with where an operation stands. Reading one that failed is no failure.
pub(super) fn answer(context: &Context<'_>, view: &View, to: To, who: &Caller) -> Answer {
    let record = &view.record;
    if record.state == State::Expired {
        let log_id = record.id().spell(Spelling::Uuid);
        return absent(&log_id, &expired(record), Some(record));
    }
    let told = Told::of(view, to, context.bridge);
    let (now, next_wait_s) = (context.desk.engine().now(), who.next_wait_s());
    let answer = context.desk.fence(|mark| told.write(context.bridge, mark, now, next_wait_s));
    let is_failure = matches!(to, To::Submitter(_)) && told.error.is_some();
    let answer = if is_failure { answer.into_failure() } else { answer };
    answer.of_task(record, Spelling::Uuid)
}

/// An operation, and what is read out of it to tell it.
struct Told<'a> {
    view: &'a View,
    to: To,
    error: Option<Failed>,
}

impl<'a> Told<'a> {
    fn of(view: &'a View, to: To, bridge: &dyn Bridge) -> Self {
        let error = failure(view).map(|error| Failed::of(&words::of_bridge(error, bridge)));
        Self { view, to, error }
    }

    fn write(&self, bridge: &dyn Bridge, mark: &Mark, now: Timestamp, next_wait_s: u64) -> Answer {
        let (view, whose) = (self.view, bridge.whose());
        let record = &view.record;
        let is_live = !record.state.is_terminal();
        let (result, blocks) = result(view);
        let late = view.payload.as_ref().and_then(|payload| payload.late.as_ref());
        let late = late.filter(|_| self.to != To::Glancer);
        let late = late.map(|late| shown_late(late, record));
        let progress = view.progress.as_ref().filter(|_| is_live).map(shown_progress);
        let partial = view.partial.as_ref().filter(|_| record.state != State::Succeeded);
        let is_quoting = self.error.as_ref().is_some_and(|error| error.is_quoting);
        let says = result.is_some() || late.is_some() || progress.is_some() || partial.is_some();
        let fence = (says || is_quoting || !blocks.is_empty()).then_some(mark);
        let log_id = record.id().spell(Spelling::Uuid);
        let operation = Operation {
            status: self.status(),
            tool_name: record.task.tool.as_str(),
            state: words::job(record.state),
            message: self.message(bridge, &log_id, mark),
            effective_timeout_s: match self.to {
                To::Submitter(waited) => Some(Seconds(waited)),
                To::Reader(waited) => waited.map(Seconds),
                To::Glancer => None,
            },
            queue: Queue::of(record, view.position),
            cancel_requested: record.cancel.is_some(),
            submitted_at: record.task.submitted_at,
            completed_at: record.ended_at,
            error_info: self.error.as_ref().map(|error| error.info(mark, whose)),
            untrusted_begins: fence.map(|mark| mark.begins(whose)),
            error: self.error.as_ref().map(|error| &*error.full.message),
            progress,
            result,
            partial_result: partial,
            late_result: late,
            untrusted_ends: fence.map(Mark::ends),
            timeout_at: record.timeout_at(),
            expires_at: record.expires_at(),
            poll_after_ms: is_live.then(|| poll_after_ms(record, now)),
            next: is_live.then(|| Next {
                tool: "get_operation_result",
                arguments: Arguments { log_id: log_id.clone(), wait: true, timeout: next_wait_s },
            }),
            log_id,
        };
        Answer::json(&operation).with_beside(blocks)
    }

    /// The word for a live operation is the caller's: only the call that made it has timed out.
    fn status(&self) -> &'static str {
        let state = self.view.record.state;
        match self.to {
            To::Submitter(_) if !state.is_terminal() => "timeout",
            To::Submitter(_) | To::Reader(_) | To::Glancer => words::status(state),
        }
    }

    /// Says in words where the operation stands and what to do next.
    fn message(&self, bridge: &dyn Bridge, log_id: &str, mark: &Mark) -> String {
        let record = &self.view.record;
        match (record.state, &self.error) {
            (State::Succeeded, _) if self.view.payload.is_some() => self.success(bridge, mark),
            (State::Succeeded, _) => {
                format!("{COMPLETED} get_operation_result reads the result of {log_id}.")
            }
            (_, Some(error)) => error.message(),
            (_, None) => {
                let over = match self.to {
                    To::Submitter(Duration::ZERO) => "The operation was accepted. ".to_owned(),
                    To::Submitter(waited) => {
                        let goes_on = match record.state {
                            State::Waiting | State::Queued => " and stays in line",
                            State::Scheduled
                            | State::Running
                            | State::InputRequired
                            | State::CancelRequested
                            | State::Cancelling
                            | State::Succeeded
                            | State::Failed
                            | State::Cancelled
                            | State::TimedOut
                            | State::Expired => "; the work goes on",
                        };
                        format!("Operation timed out after {} s{goes_on}. ", waited.as_secs_f64())
                    }
                    To::Reader(_) | To::Glancer => String::new(),
                };
                let held_up = bridge.held_up(&record.task.lane);
                let held_up = held_up.map(|held| format!(" {}", held.quoted(bridge, mark)));
                format!(
                    "{over}{} Use get_operation_result with log_id {log_id} to read the end \
                     (wait: true sleeps until it comes).{}",
                    self.standing(bridge),
                    held_up.unwrap_or_default()
                )
            }
        }
    }

    /// Says in words that the operation succeeded, and what must not be overlooked in its result.
    fn success(&self, bridge: &dyn Bridge, mark: &Mark) -> String {
        let payload = self.view.payload.as_ref();
        let Some(Outcome::Succeeded(contents)) = payload.and_then(|it| it.outcome.as_ref()) else {
            return COMPLETED.to_owned();
        };
        let tool = self.view.record.task.tool.as_str();
        let remark = bridge.remark(tool, contents);
        remark.map_or_else(|| COMPLETED.to_owned(), |remark| remark.quoted(bridge, mark))
    }

    /// Says in words where a live operation stands.
    fn standing(&self, bridge: &dyn Bridge) -> String {
        let record = &self.view.record;
        match record.state {
            State::Waiting => {
                let why = record.waiting.as_ref().map_or("not ready", WaitReason::as_str);
                let words = bridge.waiting(why).unwrap_or_else(|| format!("It waits: {why}."));
                format!("Operation has not begun. {words}")
            }
            State::Queued => match self.view.position.unwrap_or_default() {
                0 => "Operation has not begun: it is next in line.".to_owned(),
                1 => "Operation has not begun: 1 operation runs before it.".to_owned(),
                n => format!("Operation has not begun: {n} operations run before it."),
            },
            State::CancelRequested | State::Cancelling => {
                "Operation was asked to end and still runs.".to_owned()
            }
            State::Scheduled | State::Running | State::InputRequired => {
                "Operation is still running.".to_owned()
            }
            State::Succeeded
            | State::Failed
            | State::Cancelled
            | State::TimedOut
            | State::Expired => "Operation has ended.".to_owned(),
        }
    }
}

/// Answers with what a tool said at once, without an operation.
pub(super) fn of_memory(
    contents: &[Content],
    waited: Option<Duration>,
    mark: &Mark,
    whose: &'static str,
) -> Answer {
    #[derive(Serialize)]
    struct Said<'a> {
        status: &'static str,
        message: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        effective_timeout_s: Option<Seconds>,
        untrusted_begins: Begins<'a>,
        result: Parts<'a>,
        untrusted_ends: &'a str,
    }
    let mut result = Parts::of(contents);
    let blocks = result.take_blocks();
    let answer = Answer::json(&Said {
        status: "completed",
        message: COMPLETED,
        effective_timeout_s: waited.map(Seconds),
        untrusted_begins: mark.begins(whose),
        result,
        untrusted_ends: mark.ends(),
    });
    answer.with_beside(blocks)
}

/// Answers that an operation is not there, or not any more.
pub(super) fn absent(log_id: &str, error: &Error, record: Option<&TaskRecord>) -> Answer {
    #[derive(Serialize)]
    struct Absent<'a> {
        status: &'static str,
        log_id: &'a str,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        completed_at: Option<Timestamp>,
        #[serde(skip_serializing_if = "Option::is_none")]
        expired_at: Option<Timestamp>,
        error_info: Failure<'a>,
        error: &'a str,
    }
    let failed = Failed::of(error);
    let failure = Failure::ours(&failed.own).spelled(words::code(error)).told(None);
    Answer::json(&Absent {
        status: words::status(State::Expired),
        log_id,
        message: failed.message(),
        completed_at: record.and_then(|record| record.ended_at),
        expired_at: record.map(|record| record.updated_at),
        error_info: failure,
        error: &failed.own.message,
    })
}

fn expired(record: &TaskRecord) -> Error {
    let kept = record.task.limits.retention.as_secs();
    Error::new(
        Kind::Expired,
        format!("its result was kept for {kept} s and is gone since {}", record.updated_at),
    )
}

/// Returns what an operation failed with, if it did.
fn failure(view: &View) -> Option<Error> {
    let record = &view.record;
    let outcome = view.payload.as_ref().and_then(|payload| payload.outcome.as_ref());
    match (record.state, outcome) {
        (_, Some(Outcome::Failed(error))) => Some(error.clone()),
        (State::Cancelled, _) => Some(cancelled(Some(record))),
        (State::Failed | State::TimedOut, _) => {
            let kind = record.failure.unwrap_or(Kind::ToolFailed);
            Some(Error::new(kind, "the operation failed; get_operation_result says why"))
        }
        _ => None,
    }
}

/// An error as it is told: safe to show, and with a next step for the callers of operations.
pub(super) struct Failed {
    /// In our own words alone.
    own: Error,
    /// With what others said about it, for inside of a fence.
    pub(super) full: Error,
    /// Whether the two differ.
    pub(super) is_quoting: bool,
}

impl Failed {
    pub(super) fn of(error: &Error) -> Self {
        let is_quoting = error.quoted.is_some();
        let error = error.clone().with_hint(words::hint(error));
        Self { own: own(&error), full: shown(&error), is_quoting }
    }

    /// Says in our own words what happened, and what to do next.
    pub(super) fn message(&self) -> String {
        format!("{}. {}", self.own.message, self.own.hint())
    }

    /// Returns the error object; words of others stand inside a fence of their own.
    pub(super) fn info<'a>(&'a self, mark: &'a Mark, whose: &'static str) -> Failure<'a> {
        let failure = if self.is_quoting {
            Failure::of_tool(&self.full, mark, whose)
        } else {
            Failure::ours(&self.own)
        };
        failure.spelled(words::code(&self.own))
    }
}

/// Reads the result of an operation, and the blocks that go beside it.
fn result(view: &View) -> (Option<Parts<'_>>, Vec<Block>) {
    match view.payload.as_ref().and_then(|payload| payload.outcome.as_ref()) {
        Some(Outcome::Succeeded(contents)) => {
            let mut parts = Parts::of(contents);
            let blocks = parts.take_blocks();
            (Some(parts), blocks)
        }
        Some(Outcome::Failed(_) | Outcome::Cancelled) | None => (None, Vec::new()),
    }
}

fn shown_late<'a>(late: &'a Outcome, record: &TaskRecord) -> Late<'a> {
    let (state, result, error) = match late {
        Outcome::Succeeded(contents) => (State::Succeeded, Some(Parts::of(contents)), None),
        Outcome::Failed(error) => (State::Failed, None, Some(error.clone())),
        Outcome::Cancelled => (State::Cancelled, None, Some(cancelled(Some(record)))),
    };
    let error = error.map(|error| shown(&error).message.to_string());
    Late { status: words::status(state), result, error }
}
