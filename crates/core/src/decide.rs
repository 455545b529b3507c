//! The only decider: what a change does to one task.
//!
//! The ledger is indexes around it, a shared database is `SELECT … FOR UPDATE` around it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::cancel;
use crate::content::Json;
use crate::deadline::{Armed, Kind as Deadline};
use crate::error::{Error, Guarantee, Kind};
use crate::ids::{Fence, WorkerId};
use crate::input::{InputChange, InputRequest, OpenInputs};
use crate::lifecycle::{self, Event, State};
use crate::task::{Cause, Outcome, TaskEvent, TaskRecord, WaitReason};
use crate::time::Timestamp;

/// The slack between the end of a cancel grace and the engine's own end of the task: the time an
/// executor has to report the kill it made.
pub const KILL_MARGIN: Duration = Duration::from_secs(3);

/// Something that happened to a task, with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// What it needs went away.
    Hold(WaitReason),
    /// What it needs is back.
    Resume,
    /// It was leased.
    Lease {
        /// By whom.
        worker: WorkerId,
        /// As which attempt.
        fence: Fence,
    },
    /// The executor took it on.
    Accept,
    /// It is known to run.
    Start,
    /// It surely never reached its executor; the attempt is not spent.
    Undeliver,
    /// It asks its caller for input.
    AskInput {
        /// What.
        request: InputRequest,
        /// Which other questions the attempt still waits for: those that are open beside them are not
        /// answered any more.
        beside: OpenInputs,
    },
    /// The input came.
    GiveInput {
        /// Which question it answers.
        key: Arc<str>,
        /// The answer.
        response: Json,
    },
    /// Somebody asked to end it.
    RequestCancel {
        /// Why, in the caller's words.
        reason: Option<Arc<str>>,
    },
    /// The executor committed to end it.
    CommitCancel,
    /// The executor ended.
    Finish(Outcome),
    /// The executor gave up on a peer that did not say how the attempt ended; what it still says is
    /// kept as a late result [LEASE-7].
    GiveUp(Outcome),
    /// The executor has stopped what it ran, as it was asked to; a result that still comes is kept as a late
    /// one [LEASE-7].
    Stop,
    /// A deadline passed.
    Due(Deadline),
}

/// Why a change moved nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The table has no such row.
    #[error(transparent)]
    State(#[from] lifecycle::Refused),
    /// It speaks for an attempt that is no longer the task's [LEASE-1].
    #[error("the attempt is not the task's any more")]
    Stale,
    /// It answers a question that is not open.
    #[error("the task asks for no such input")]
    NotAsked,
}

/// What a change does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The row afterwards.
    pub record: TaskRecord,
    /// The entry of the history; absent when the change moved nothing but a field.
    pub event: Option<TaskEvent>,
    /// The outcome to keep, when the task ended by it.
    pub outcome: Option<Outcome>,
    /// The failure of the attempt, when another one follows.
    pub retried: Option<Error>,
    /// What the executor still produced, when it had committed to end the task [CANCEL-5].
    pub late: Option<Outcome>,
    /// What it asked, or was answered.
    pub input: Option<InputChange>,
}

impl Decision {
    /// Says that the attempt whose end this is ended at an earlier instant, though not before it began.
    /// Changes nothing when the task does not end with this.
    pub fn ended_before(&mut self, at: Timestamp) {
        let record = &mut self.record;
        if self.event.as_ref().is_some_and(|event| event.to.is_terminal())
            && let Some(recorded) = record.ended_at
        {
            let began = record.started_at.unwrap_or(record.task.submitted_at);
            record.ended_at = Some(at.max(began).min(recorded));
        }
    }
}

/// Decides what a change does to a task.
///
/// `fence` is the attempt that the change speaks for; `None` for callers and the engine itself.
///
/// # Errors
/// [`Refusal`] when the change has no place here; nothing moves.
pub fn decide(
    record: &TaskRecord,
    now: Timestamp,
    change: &Change,
    fence: Option<Fence>,
) -> Result<Decision, Refusal> {
    if fence.is_some_and(|fence| fence != record.fence) {
        return Err(Refusal::Stale);
    }
    if let Change::GiveInput { key, .. } = change
        && record.state == State::InputRequired
        && !record.asks.contains(key)
    {
        return Err(Refusal::NotAsked);
    }
    let ended = ending(record, change);
    let retried = match &ended {
        Some(Outcome::Failed(error)) if is_retried(record, error) => Some(error.clone()),
        _ => None,
    };
    let on = if retried.is_some() { Event::Retry } else { event_of(record, change) };
    let to = lifecycle::next(record.state, on)?;
    let mut next = record.clone();
    next.updated_at = now;
    if record.state == State::InputRequired && to != State::InputRequired {
        end_questions(&mut next, now);
    }
    apply(&mut next, now, change, on, to);
    if retried.is_some() {
        begin_pause(&mut next, now);
    }
    let (outcome, late) = if to.is_terminal() && !record.state.is_terminal() {
        close(&mut next, now, to, ended)
    } else {
        (None, None)
    };
    next.state = to;
    let event = (to != record.state).then(|| note(&mut next, now, record.state, on, change));
    let input = input_of(record.state, to, change);
    Ok(Decision { record: next, event, outcome, retried, late, input })
}

/// What a change does to the questions of the task: one that is asked while the task is to end is not open,
/// and nothing answers it.
fn input_of(from: State, to: State, change: &Change) -> Option<InputChange> {
    if let Change::AskInput { request, .. } = change
        && to == State::InputRequired
    {
        return Some(InputChange::Asked(request.clone()));
    }
    if let Change::GiveInput { key, response } = change
        && from == State::InputRequired
    {
        return Some(InputChange::Given { key: Arc::clone(key), response: response.clone() });
    }
    None
}

/// Makes the first entry of a new task's history [STATE-6].
#[must_use]
pub fn received(record: &TaskRecord) -> TaskEvent {
    TaskEvent {
        seq: 1,
        at: record.task.submitted_at,
        attempt: 0,
        fence: Fence::NONE,
        from: None,
        to: record.state,
        cause: Cause::Received,
        note: None,
    }
}

fn event_of(record: &TaskRecord, change: &Change) -> Event {
    match change {
        Change::Hold(_) => Event::Hold,
        Change::Resume => Event::Resume,
        Change::Lease { .. } => Event::Lease,
        Change::Accept => Event::Accept,
        Change::Start => Event::Start,
        Change::Undeliver => Event::Undeliver,
        Change::AskInput { .. } => Event::AskInput,
        Change::GiveInput { key, .. } if !record.asks.without(key).is_empty() => Event::GivePart,
        Change::GiveInput { .. } => Event::GiveInput,
        Change::RequestCancel { .. } => Event::RequestCancel,
        Change::CommitCancel => Event::CommitCancel,
        Change::Finish(outcome) | Change::GiveUp(outcome) => match outcome {
            Outcome::Succeeded(_) => Event::Succeed,
            // An executor that kept the run deadline itself, such as while no server ran.
            Outcome::Failed(Error { kind: Kind::RunTimeout, .. }) => Event::RunTimeoutDue,
            Outcome::Failed(_) => Event::Fail,
            Outcome::Cancelled => Event::Cancel,
        },
        Change::Stop => Event::Cancel,
        Change::Due(deadline) => deadline.event(),
    }
}

/// The outcome that a change would end the task with, if it ends it.
fn ending(record: &TaskRecord, change: &Change) -> Option<Outcome> {
    match change {
        Change::Finish(outcome) | Change::GiveUp(outcome) => Some(outcome.clone()),
        Change::Stop => Some(Outcome::Cancelled),
        Change::Due(deadline) => due(record, *deadline),
        Change::Hold(_)
        | Change::Resume
        | Change::Lease { .. }
        | Change::Accept
        | Change::Start
        | Change::Undeliver
        | Change::AskInput { .. }
        | Change::GiveInput { .. }
        | Change::RequestCancel { .. }
        | Change::CommitCancel => None,
    }
}

/// The outcome of a deadline that passed.
fn due(record: &TaskRecord, deadline: Deadline) -> Option<Outcome> {
    let error = match deadline {
        Deadline::Ready => {
            let why = record.waiting.as_ref().map_or("not ready", WaitReason::as_str);
            let limits = &record.task.limits;
            if limits.ready_is_accept {
                let limit = span(limits.ready);
                let words = format!("nobody was there to accept it within {limit} ({why})");
                Error::new(Kind::AcceptTimeout, words)
            } else {
                let error = format!("the peer was not ready in time ({why})");
                let details = Json::of(&BTreeMap::from([("waiting_reason", why)])).ok();
                Error { details, ..Error::new(Kind::PeerNotReady, error) }
            }
        }
        Deadline::QueueTimeout => {
            Error::new(Kind::QueueTimeout, "its time in the queue was over before it could run")
        }
        Deadline::Accept => Error::new(Kind::AcceptTimeout, "nobody accepted it in time"),
        Deadline::Run => Error::new(
            Kind::RunTimeout,
            format!(
                "it ran longer than {}",
                span(record.task.limits.run_timeout.unwrap_or_default())
            ),
        ),
        Deadline::Lease => {
            Error::new(Kind::WorkerLost, "the worker was lost while the attempt ran")
        }
        Deadline::Input => {
            Error::new(Kind::RunTimeout, "the input it asked for was not given in time")
        }
        Deadline::Grace => return Some(Outcome::Cancelled),
        Deadline::Backoff | Deadline::Retention => return None,
    };
    Some(Outcome::Failed(error))
}

fn span(limit: Duration) -> String {
    if limit.subsec_millis() == 0 {
        format!("{} s", limit.as_secs())
    } else {
        format!("{} ms", limit.as_millis())
    }
}

/// Whether a failed attempt is followed by another: not once a cancel was asked for.
fn is_retried(record: &TaskRecord, error: &Error) -> bool {
    record.cancel.is_none()
        && !error.is_last
        && lifecycle::next(record.state, Event::Retry).is_ok()
        && record.task.retry.permits(error.kind, record.attempt, record.task.is_idempotent)
}

/// Moves the fields that a change is about.
fn apply(record: &mut TaskRecord, now: Timestamp, change: &Change, on: Event, to: State) {
    let task = Arc::clone(&record.task);
    let limits = &task.limits;
    let stays = to == record.state;
    match change {
        Change::Hold(reason) => {
            record.waiting = Some(reason.clone());
            if !stays {
                record.deadlines.set(Deadline::Ready, Some(now + record.ready_left));
            }
        }
        Change::Resume => resume(record, now),
        Change::Lease { worker, fence } => {
            record.attempt += 1;
            record.fence = *fence;
            record.has_reported = false;
            record.has_stopped = false;
            record.worker = Some(worker.clone());
            record.started_at = None;
            record.heartbeat_at = Some(now);
            record.deadlines.set(Deadline::QueueTimeout, None);
            record.deadlines.set(Deadline::Accept, Some(now + limits.accept));
            record.deadlines.set(Deadline::Lease, Some(now + limits.lease));
        }
        Change::Accept => begin_run(record, now),
        Change::Start => {
            begin_run(record, now);
            record.started_at = record.started_at.or(Some(now));
        }
        Change::Undeliver if !to.is_terminal() => {
            record.attempt = record.attempt.saturating_sub(1);
            record.worker = None;
            drop_attempt(record);
            record.deadlines.set(Deadline::QueueTimeout, Some(now + limits.queue_timeout));
        }
        Change::AskInput { request, beside } if to == State::InputRequired => {
            let left = record.asks.among(&beside.with(&request.key));
            if !record.asks.contains(&request.key) {
                // The newest has all of its time, and those that are open beside it have it, too. One whose
                // asker is gone leaves nothing of its time, and takes none.
                end_questions(record, now);
                begin_question(record, now);
            }
            record.asks = left.with(&request.key);
        }
        Change::GiveInput { key, .. } if to == State::InputRequired => {
            record.asks = record.asks.without(key);
        }
        Change::RequestCancel { reason } => {
            if record.cancel.is_none() {
                record.cancel = Some(cancel::Request { at: now, reason: reason.clone() });
            }
            if record.task.supports_cancel && !stays && !to.is_terminal() {
                let kill = now + limits.grace + KILL_MARGIN;
                record.deadlines.set(Deadline::Grace, Some(kill));
            }
        }
        Change::Due(Deadline::Backoff) => resume(record, now),
        Change::Due(deadline) => record.deadlines.set(*deadline, None),
        Change::Finish(_) | Change::GiveUp(_) | Change::Stop => {
            record.has_reported = matches!(change, Change::Finish(_));
            record.has_stopped = matches!(change, Change::Finish(_) | Change::Stop);
            // An attempt that ended before anybody said that it runs began at its lease at the latest.
            record.started_at = record.started_at.or(record.heartbeat_at);
        }
        Change::Undeliver
        | Change::AskInput { .. }
        | Change::GiveInput { .. }
        | Change::CommitCancel => {}
    }
    if on == Event::Lease || on == Event::Undeliver {
        record.waiting = None;
    }
}

/// Ends a wait: what was used of the ready limit is gone for good [STATE-5].
fn resume(record: &mut TaskRecord, now: Timestamp) {
    if let Some(ready) = record.deadlines.get(Deadline::Ready) {
        record.ready_left = ready.since(now);
    }
    record.waiting = None;
    record.deadlines.set(Deadline::Ready, None);
    record.deadlines.set(Deadline::Backoff, None);
    if record.deadlines.get(Deadline::QueueTimeout).is_none() {
        record.deadlines.set(Deadline::QueueTimeout, Some(now + record.task.limits.queue_timeout));
    }
}

/// Starts the run deadline once [TIME-3].
fn begin_run(record: &mut TaskRecord, now: Timestamp) {
    record.deadlines.set(Deadline::Accept, None);
    if record.deadlines.get(Deadline::Run).is_none() {
        let margin = record.task.limits.run_margin;
        record
            .deadlines
            .set(Deadline::Run, record.task.limits.run_timeout.map(|limit| now + limit + margin));
    }
}

/// Lets the caller have its time to answer, which the attempt does not run [TIME-3]: its limit is put off by
/// all of it, and what was not needed is taken back with the answer.
fn begin_question(record: &mut TaskRecord, now: Timestamp) {
    let limit = record.task.limits.input;
    record.deadlines.set(Deadline::Input, Some(now + limit));
    if let Some(run) = record.deadlines.get(Deadline::Run) {
        record.deadlines.set(Deadline::Run, Some(run + limit));
    }
}

/// Ends the wait for answers.
fn end_questions(record: &mut TaskRecord, now: Timestamp) {
    record.asks = OpenInputs::default();
    let Some(input) = record.deadlines.get(Deadline::Input) else { return };
    record.deadlines.set(Deadline::Input, None);
    if let Some(run) = record.deadlines.get(Deadline::Run) {
        let unused = i64::try_from(input.since(now).as_millis()).unwrap_or(i64::MAX);
        let run = Timestamp::from_millis(run.as_millis().saturating_sub(unused));
        record.deadlines.set(Deadline::Run, Some(run.max(now)));
    }
}

/// Disarms everything that belongs to an attempt.
fn drop_attempt(record: &mut TaskRecord) {
    record.deadlines.set(Deadline::Accept, None);
    record.deadlines.set(Deadline::Run, None);
    record.deadlines.set(Deadline::Lease, None);
    record.deadlines.set(Deadline::Grace, None);
    record.deadlines.set(Deadline::Input, None);
}

/// Lets the task wait for its next attempt.
fn begin_pause(record: &mut TaskRecord, now: Timestamp) {
    drop_attempt(record);
    record.waiting = Some(WaitReason::RETRY_BACKOFF);
    let pause = record.task.retry.pause(record.task.id, record.attempt);
    record.deadlines.set(Deadline::Backoff, Some(now + pause));
}

/// Ends the task; returns the outcome that stands, and one that came too late to stand.
fn close(
    record: &mut TaskRecord,
    now: Timestamp,
    to: State,
    ended: Option<Outcome>,
) -> (Option<Outcome>, Option<Outcome>) {
    record.deadlines = Armed::default();
    let expiry = (to != State::Expired).then(|| now + record.task.limits.retention);
    record.deadlines.set(Deadline::Retention, expiry);
    record.waiting = None;
    record.ended_at = Some(now);
    let is_cancelled = to == State::Cancelled;
    let (outcome, late) = match ended {
        Some(ended) if is_cancelled && ended != Outcome::Cancelled => {
            (Outcome::Cancelled, Some(ended))
        }
        ended => (ended.unwrap_or(Outcome::Cancelled), None),
    };
    let outcome = of_the_whole(record, outcome);
    record.failure = match &outcome {
        Outcome::Failed(error) => Some(error.kind),
        Outcome::Succeeded(_) | Outcome::Cancelled => None,
    };
    // A deadline that ends a cancelled task brings an error of its own; nobody produced it.
    (Some(outcome), late.filter(|_| record.has_reported))
}

/// What is known of an attempt is not known of a task that had others before it: only the last one
/// is known not to have begun [LEASE-9].
fn of_the_whole(record: &TaskRecord, outcome: Outcome) -> Outcome {
    let n_before = record.attempt.saturating_sub(u32::from(record.state.is_leased()));
    match outcome {
        Outcome::Failed(error)
            if n_before > 0 && error.guarantee() == Some(Guarantee::NotExecuted) =>
        {
            Outcome::Failed(error.with_guarantee(Guarantee::Unknown))
        }
        Outcome::Succeeded(_) | Outcome::Failed(_) | Outcome::Cancelled => outcome,
    }
}

fn note(
    record: &mut TaskRecord,
    now: Timestamp,
    from: State,
    on: Event,
    change: &Change,
) -> TaskEvent {
    record.n_events += 1;
    TaskEvent {
        seq: record.n_events,
        at: now,
        attempt: record.attempt,
        fence: record.fence,
        from: Some(from),
        to: record.state,
        cause: Cause::Moved(on),
        note: match change {
            Change::RequestCancel { reason } => reason.clone(),
            Change::Hold(reason) => Some(reason.as_str().into()),
            Change::Finish(Outcome::Failed(error)) | Change::GiveUp(Outcome::Failed(error)) => {
                Some(error.kind.as_str().into())
            }
            Change::Resume
            | Change::Lease { .. }
            | Change::Accept
            | Change::Start
            | Change::Undeliver
            | Change::AskInput { .. }
            | Change::GiveInput { .. }
            | Change::CommitCancel
            | Change::Stop
            | Change::Finish(_)
            | Change::GiveUp(_)
            | Change::Due(_) => None,
        },
    }
}

#[cfg(test)]
mod tests;
