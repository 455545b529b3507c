//! One accepted request and where it stands.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::cancel;
use crate::content::{Content, Json};
use crate::deadline::Armed;
use crate::error::{Error, Kind};
use crate::idempotency;
use crate::ids::{ArtifactId, Fence, LaneId, TaskId, ToolName, WorkerId};
use crate::input::{Input, OpenInputs};
use crate::lifecycle::State;
use crate::progress::Progress;
use crate::retry;
use crate::scope::Scope;
use crate::time::Timestamp;
use crate::trace::TraceContext;

mod wait;

pub use wait::WaitReason;

/// The time limits of one task, fixed at submit [STATE-5, TIME-7].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// How long it may be `waiting` in all; the budget only drains.
    pub ready: Duration,
    /// Whether a peer that is not there accepts as little as one that does not answer: a task whose ready
    /// limit is used up then fails as one that nobody accepted, not as one whose peer was not ready
    /// [TIME-4].
    pub ready_is_accept: bool,
    /// How long it may stand in the queue.
    pub queue_timeout: Duration,
    /// How long a leased attempt may go unaccepted.
    pub accept: Duration,
    /// How long an attempt may run; `None` is without limit.
    pub run_timeout: Option<Duration>,
    /// How much later than its limit the engine itself ends an attempt: the time that an executor
    /// which keeps the limit by itself needs to stop the work. Zero for any other.
    pub run_margin: Duration,
    /// How long an attempt may be silent.
    pub lease: Duration,
    /// How long a cancelled attempt has to end by itself.
    pub grace: Duration,
    /// How long the caller has to give input that an attempt asks for.
    pub input: Duration,
    /// How long the ended task stays readable [TIME-5].
    pub retention: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            ready: Duration::from_secs(45),
            ready_is_accept: false,
            queue_timeout: Duration::from_secs(24 * 3600),
            accept: Duration::from_secs(5),
            run_timeout: Some(Duration::from_secs(600)),
            run_margin: Duration::ZERO,
            lease: Duration::from_secs(30),
            grace: Duration::from_secs(5),
            input: Duration::from_secs(3600),
            retention: Duration::from_secs(24 * 3600),
        }
    }
}

/// What a caller asked of the machine; checked against the lane at submit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resources {
    /// Thousandths of a processor.
    pub cpu_milli: Option<u32>,
    /// Memory in MiB.
    pub memory_mb: Option<u64>,
    /// Scratch space in MiB.
    pub scratch_mb: Option<u64>,
}

/// The part of a task that never changes after submit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Its identity.
    pub id: TaskId,
    /// Its owner.
    pub scope: Scope,
    /// The tool it runs.
    pub tool: ToolName,
    /// The lane it runs in.
    pub lane: LaneId,
    /// Higher runs first, -100 to 100.
    pub priority: i8,
    /// The caller's labels.
    pub tags: Vec<Arc<str>>,
    /// The caller's idempotency key [IDEM-1].
    pub key: Option<Arc<str>>,
    /// The hash of its inputs [IDEM-1].
    pub inputs_hash: u128,
    /// Its time limits.
    pub limits: Limits,
    /// What it may use of the machine.
    pub resources: Resources,
    /// Whether its executor can be told to stop.
    pub supports_cancel: bool,
    /// Whether a lost attempt may be run again.
    pub is_idempotent: bool,
    /// When a failed attempt is followed by another.
    pub retry: retry::Policy,
    /// The trace that its call belongs to.
    pub trace: Option<Arc<TraceContext>>,
    /// When it was accepted.
    pub submitted_at: Timestamp,
}

/// A task and where it stands: the record every answer is made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaskRecord {
    /// The part that never changes.
    pub task: Arc<Task>,
    /// Its place in the order of acceptance, from 1.
    pub seq: u64,
    /// Where it stands.
    pub state: State,
    /// Why it is `waiting`.
    pub waiting: Option<WaitReason>,
    /// The keys of what it asks its caller while it is `input_required`.
    pub asks: OpenInputs,
    /// What is left of the ready limit.
    pub ready_left: Duration,
    /// Attempts begun and not given back.
    pub attempt: u32,
    /// The fence of the current or last attempt.
    pub fence: Fence,
    /// Who runs or ran the current or last attempt.
    pub worker: Option<WorkerId>,
    /// How many events it has.
    pub n_events: u32,
    /// Whether its executor has said how the current or last attempt ended: another copy of that is
    /// refused, not kept [LEASE-6].
    pub has_reported: bool,
    /// Whether its executor has said that the current or last attempt has stopped: with its outcome, or with
    /// the word that it did as it was asked to [CANCEL-2].
    pub has_stopped: bool,
    /// The cancel that was asked for.
    pub cancel: Option<cancel::Request>,
    /// The kind of failure it ended with.
    pub failure: Option<Kind>,
    /// When the current or last attempt started.
    pub started_at: Option<Timestamp>,
    /// When anything changed.
    pub updated_at: Timestamp,
    /// When the attempt was last heard of.
    pub heartbeat_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What is armed on it.
    pub deadlines: Armed,
}

impl TaskRecord {
    /// Returns the identity.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.task.id
    }

    /// Returns the key that the task is found by: a caller's until its retention is over, a request's as
    /// long as there is a row [IDEM-2].
    #[must_use]
    pub fn held_key(&self) -> Option<&Arc<str>> {
        let key = self.task.key.as_ref()?;
        let is_held = self.state != State::Expired || idempotency::is_of_request(key);
        is_held.then_some(key)
    }

    /// Tells whether what an attempt says beside its events is kept: while it holds the task, and with
    /// its last word when others ended the task meanwhile.
    #[must_use]
    pub fn takes_report(&self, fence: Fence) -> bool {
        let has_ended = self.state.is_terminal() && self.state != State::Expired;
        self.fence == fence && (self.state.is_leased() || (has_ended && !self.has_reported))
    }

    /// Returns the instant at which a terminal task stops being readable.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.deadlines.get(crate::deadline::Kind::Retention)
    }

    /// Returns the instant at which the run limit is used up.
    #[must_use]
    pub fn timeout_at(&self) -> Option<Timestamp> {
        let armed = self.deadlines.get(crate::deadline::Kind::Run)?;
        let margin = i64::try_from(self.task.limits.run_margin.as_millis()).unwrap_or(i64::MAX);
        Some(Timestamp::from_millis(armed.as_millis().saturating_sub(margin)))
    }
}

/// How an attempt ended, as its executor says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a result.
    Succeeded(Vec<Content>),
    /// With an error.
    Failed(Error),
    /// Because it was asked to end.
    Cancelled,
}

/// One entry of a task's history: exactly one per transition [STATE-4].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct TaskEvent {
    /// Its number within the task, from 1 without gaps.
    pub seq: u32,
    /// When it happened.
    pub at: Timestamp,
    /// The attempt it belongs to, 0 before the first.
    pub attempt: u32,
    /// The fence it belongs to.
    pub fence: Fence,
    /// The state before; absent on the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<State>,
    /// The state after.
    pub to: State,
    /// What happened.
    pub cause: Cause,
    /// Words about it, such as a cancel's reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Arc<str>>,
}

impl TaskEvent {
    /// Tells whether an attempt held the task until then: only then did an attempt end with it.
    #[must_use]
    pub fn leaves_attempt(&self) -> bool {
        self.from.is_some_and(State::is_leased)
    }
}

/// What an entry of the history records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The task was accepted [STATE-6].
    Received,
    /// An event of the table moved it.
    Moved(crate::lifecycle::Event),
    /// An outcome came after the end and was kept beside it [LEASE-7].
    LateResult,
}

impl Cause {
    /// Returns the word of the history.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Moved(event) => event.as_str(),
            Self::LateResult => "late_result",
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A file that an attempt left, immutable once it is recorded [ART-1].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Its opaque name.
    pub id: ArtifactId,
    /// Its file name, for people and for the download.
    pub name: Arc<str>,
    /// What it is, in the tool's words.
    pub kind: Arc<str>,
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 of its bytes, in lower-case hex.
    pub sha256: Arc<str>,
    /// Where it lies below the task's folder; never shown to a caller.
    pub path: Arc<str>,
}

/// What one attempt used [RESULT-1].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metrics {
    /// Wall time in milliseconds.
    pub wall_ms: u64,
    /// Processor time in milliseconds, where the executor can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Peak resident memory in bytes, where the executor can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
}

/// One attempt as it is listed beside the outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AttemptSummary {
    /// Its number, from 1.
    pub attempt: u32,
    /// Its fence.
    pub fence: Fence,
    /// Who ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it ended: a terminal state, or `retried`.
    pub ended: &'static str,
    /// What it failed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// What it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
}

/// Everything of a task that is not its row: inputs, outcome, history.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskDetails {
    /// What it was given.
    pub inputs: Json,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// What the executor still sent after the end.
    pub late: Option<Outcome>,
    /// The last progress.
    pub progress: Option<Progress>,
    /// The last partial result.
    pub partial: Option<Json>,
    /// What it left.
    pub artifacts: Vec<Artifact>,
    /// Its attempts that ended.
    pub attempts: Vec<AttemptSummary>,
    /// What it asked its caller, in order, and what it was answered.
    pub asked: Vec<Input>,
    /// Its history.
    pub events: Vec<TaskEvent>,
}

impl TaskDetails {
    /// Returns the questions that are open, in the order in which they were asked.
    pub fn open<'a>(&'a self, asks: &'a OpenInputs) -> impl Iterator<Item = &'a Input> {
        let asked = asks.keys().filter_map(|key| self.input(key));
        asked.filter(|input| input.response.is_none())
    }

    /// Returns what was asked under a key.
    #[must_use]
    pub fn input(&self, key: &str) -> Option<&Input> {
        self.asked.iter().find(|input| *input.key == *key)
    }
}
