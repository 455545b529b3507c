//! The boundary that keeps tasks: commands in, never transitions.
//!
//! A store applies [`decide`](crate::decide::decide) to committed rows and nothing else. It owns no
//! waiter and spawns nothing: a [`ChangeSink`] tells the runtime what was committed.

mod layer;

mod memory;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::content::Json;
use crate::decide::{Change, Refusal};
use crate::ids::{ArtifactId, Fence, LaneId, TaskId};
use crate::lane;
use crate::lifecycle::State;
use crate::mac::MacKey;
use crate::progress::Progress;
use crate::scope::Scope;
use crate::slot::Slot;
use crate::task::{Artifact, Metrics, Task, TaskDetails, TaskEvent, TaskRecord, WaitReason};
use crate::time::Timestamp;
use crate::worker::{self, Worker};

pub use layer::StoreLayer;
pub use memory::{MemoryLimits, MemoryStore};

/// A failure of the store: the contract's `storage_unavailable` [DUR-5].
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What failed, without paths or SQL.
    pub message: Arc<str>,
    /// What to do about it, where the error table does not say.
    pub hint: Option<Arc<str>>,
    /// The process that owns the store instead [DUR-4].
    pub owner: Option<u32>,
}

impl Error {
    /// Makes a failure from words.
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self { message: message.into(), hint: None, owner: None }
    }

    /// Says which process owns the store.
    #[must_use]
    pub const fn with_owner(mut self, pid: Option<u32>) -> Self {
        self.owner = pid;
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Arc<str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<Error> for crate::error::Error {
    fn from(error: Error) -> Self {
        #[derive(serde::Serialize)]
        struct Owner {
            owner_pid: u32,
        }
        let told = Self::new(crate::error::Kind::StorageUnavailable, error.message);
        let details = error.owner.and_then(|owner_pid| Json::of(&Owner { owner_pid }).ok());
        Self { hint: error.hint, details, ..told }
    }
}

/// What survives what [DUR-7].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing survives the process.
    None,
    /// Survives any crash of the process.
    Process,
    /// Survives a power loss.
    Full,
}

/// What a store promises beyond its methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What survives what.
    pub durability: Durability,
}

/// Resolves once everything before it is committed.
#[async_trait]
pub trait Committed: Send + 'static {
    /// Waits for the commit.
    ///
    /// # Errors
    /// [`Error`] when the commit failed: nothing before it may be acknowledged.
    async fn wait(self: Box<Self>) -> Result<(), Error>;
}

/// The proof that a write will be, or was, committed [DUR-1].
pub enum Receipt {
    /// It is.
    Ready,
    /// It will be.
    Pending(Box<dyn Committed>),
}

impl Receipt {
    /// Waits for the commit.
    ///
    /// # Errors
    /// [`Error`] when the commit failed.
    pub async fn committed(self) -> Result<(), Error> {
        match self {
            Self::Ready => Ok(()),
            Self::Pending(commit) => commit.wait().await,
        }
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready => "Ready",
            Self::Pending(_) => "Pending",
        })
    }
}

/// A value that may leave the process once its receipt is committed.
#[derive(Debug)]
pub struct Write<T> {
    /// What was decided.
    pub value: T,
    /// When it may be told.
    pub receipt: Receipt,
}

/// One task to accept.
#[derive(Clone, Debug)]
pub struct Submit {
    /// The part that never changes; `submitted_at` is replaced by the store's `now`.
    pub task: Task,
    /// What the tool is given.
    pub inputs: Json,
    /// Set when what the task needs is not ready: it starts `waiting`.
    pub waiting: Option<WaitReason>,
    /// Set when only the caller of an inline call would ever see it: the commit may lag [DUR-6].
    pub is_inline: bool,
    /// Set when only a task that is there is wanted: none is made.
    pub is_known: bool,
}

/// What became of a submit.
#[derive(Clone, Debug)]
pub enum Submitted {
    /// It is a new task.
    Inserted {
        /// Where it stands.
        record: TaskRecord,
        /// How many tasks of its lane run before it.
        position: u32,
        /// The lane's estimate of the time until it starts [QUEUE-3].
        delay: Option<Duration>,
    },
    /// The key and the inputs are those of this task [IDEM-1].
    Existing(TaskRecord),
    /// The key is this task's, the inputs are not.
    Conflict(TaskId),
    /// The lane is full [QUEUE-2].
    Full {
        /// How many tasks stand in it.
        depth: u32,
        /// When a place may be free.
        retry_after: Duration,
    },
    /// No lane has this name.
    NoLane,
    /// No task has the key, and only such a one was wanted.
    Unknown,
}

/// A request for work.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The lanes to take from, in order; places are limited by each lane's concurrency.
    pub lanes: Vec<LaneId>,
    /// How many tasks at the most.
    pub n: u32,
}

/// One leased attempt.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The task, already `scheduled`.
    pub record: TaskRecord,
    /// What the tool is given.
    pub inputs: Json,
}

/// What goes with a change without being a transition.
#[derive(Clone, Debug, Default)]
pub struct AttemptReport {
    /// The last progress.
    pub progress: Option<Progress>,
    /// The last partial result.
    pub partial: Option<Json>,
    /// What the attempt left.
    pub artifacts: Vec<Artifact>,
    /// What the attempt used.
    pub metrics: Option<Metrics>,
}

/// One event of one task.
#[derive(Clone, Debug)]
pub struct Update {
    /// The task.
    pub id: TaskId,
    /// The owner that a caller's request must match [SCOPE-2]; `None` for the engine and executors.
    pub scope: Option<Scope>,
    /// The attempt that an executor speaks for; `None` for callers and the engine [LEASE-1].
    pub fence: Option<Fence>,
    /// What happened.
    pub change: Change,
    /// What goes with it.
    pub report: Option<Box<AttemptReport>>,
    /// Whether the executor is gone with it, so that its slot is free.
    pub releases: bool,
    /// When the attempt ended, where that was before anybody could record it. The task has ended at
    /// that instant then; its history says when it was recorded, and retention counts from there.
    pub ended_at: Option<Timestamp>,
}

impl Update {
    /// Makes a post of an executor for its own attempt.
    #[must_use]
    pub const fn attempt(id: TaskId, fence: Fence, change: Change) -> Self {
        Self {
            id,
            scope: None,
            fence: Some(fence),
            change,
            report: None,
            releases: false,
            ended_at: None,
        }
    }
}

/// What became of a post.
#[derive(Clone, Debug)]
pub enum UpdateResult {
    /// The task moved.
    Moved(TaskRecord),
    /// It changed nothing [STATE-3].
    Same(TaskRecord),
    /// The task ended before; an outcome was kept as `late_result` [LEASE-7].
    Late(TaskRecord),
    /// The state refuses it.
    Refused(TaskRecord, Refusal),
    /// Another scope's, or never issued.
    Absent,
}

/// A task as it is found [CALL-4].
#[derive(Clone, Debug)]
pub enum Found {
    /// It is readable.
    Task(TaskRecord, Arc<TaskDetails>),
    /// Its retention is over; only the row is left.
    Tombstone(TaskRecord),
    /// The caller's scope has no such task.
    Absent,
}

impl Found {
    /// Leaves the record alone, tombstones included.
    #[must_use]
    pub fn into_record(self) -> Option<TaskRecord> {
        match self {
            Self::Task(record, _) | Self::Tombstone(record) => Some(record),
            Self::Absent => None,
        }
    }

    /// Leaves the record, and what its attempt last said.
    #[must_use]
    pub fn into_status(self) -> Option<TaskStatus> {
        let (progress, partial) = match &self {
            Self::Task(_, details) => (details.progress.clone(), details.partial.clone()),
            Self::Tombstone(_) | Self::Absent => (None, None),
        };
        let record = self.into_record()?;
        Some(TaskStatus { record, progress, partial })
    }

    /// Leaves the history, which is empty once the retention is over.
    #[must_use]
    pub fn into_events(self) -> Option<Vec<TaskEvent>> {
        match self {
            Self::Task(_, details) => Some(details.events.clone()),
            Self::Tombstone(_) => Some(Vec::new()),
            Self::Absent => None,
        }
    }
}

/// A task without what it was given, what came of it, and its history.
#[derive(Clone, Debug)]
pub struct TaskStatus {
    /// Where it stands.
    pub record: TaskRecord,
    /// The last progress that is kept.
    pub progress: Option<Progress>,
    /// The last partial result that is kept.
    pub partial: Option<Json>,
}

/// One beat of one attempt.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// The task.
    pub id: TaskId,
    /// The attempt.
    pub fence: Fence,
    /// Its last progress.
    pub progress: Option<Progress>,
    /// Its last partial result.
    pub partial: Option<Json>,
}

/// What a heartbeat is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatReply {
    /// Go on.
    Continue,
    /// A cancel was asked for.
    Cancel,
    /// The attempt is no longer the task's: stop.
    Lost,
}

/// Which rows a list shows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only these states; all when empty.
    pub states: Vec<State>,
    /// Only this tool.
    pub tool: Option<Arc<str>>,
    /// Only rows with at least one of these tags; all when empty.
    pub tags_any: Vec<Arc<str>>,
    /// Only rows submitted after this instant.
    pub submitted_after: Option<Timestamp>,
}

impl Filter {
    /// Tells whether a row is shown. Tombstones are shown only where their state is asked for.
    #[must_use]
    pub fn admits(&self, record: &TaskRecord) -> bool {
        let state = if self.states.is_empty() {
            record.state != State::Expired
        } else {
            self.states.contains(&record.state)
        };
        state
            && self.tool.as_deref().is_none_or(|tool| tool == record.task.tool.as_str())
            && self.submitted_after.is_none_or(|after| record.task.submitted_at > after)
            && (self.tags_any.is_empty()
                || self.tags_any.iter().any(|tag| record.task.tags.contains(tag)))
    }
}

/// A place in a list: everything at or above this `seq` was already given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub u64);

/// Part of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Whether more follow.
    pub has_more: bool,
}

/// One place of a lane as `status` shows it [QUEUE-7].
#[derive(Clone, Debug)]
pub struct LaneView {
    /// The lane.
    pub lane: LaneId,
    /// What it may do.
    pub config: lane::Config,
    /// How many tasks stand in the queue.
    pub queued: u32,
    /// How many wait for what they need.
    pub waiting: u32,
    /// The places that are taken.
    pub slots: Vec<Slot>,
    /// Set while the lane is held.
    pub held: Option<WaitReason>,
}

impl LaneView {
    /// Lists its workers, those without a task included.
    #[must_use]
    pub fn workers(&self) -> Vec<Worker> {
        let busy: Vec<_> = self.slots.iter().map(Worker::from).collect();
        worker::of_lane(&self.lane, self.config.concurrency, &busy)
    }
}

/// Told of every committed row.
pub trait ChangeSink: Send + Sync {
    /// Takes the rows in the order of their commits. Called under no lock of the store that a read
    /// would need; must not block.
    fn changed(&self, rows: &[TaskRecord]);
}

/// A sink that is told in vain.
#[derive(Clone, Copy, Debug)]
pub struct NoSink;

impl ChangeSink for NoSink {
    fn changed(&self, _rows: &[TaskRecord]) {}
}

/// Keeps tasks. Every call is one transaction; reads show committed rows only.
///
/// # Cancel safety
/// Dropping a call's future before it is ready leaves the command either wholly applied or not at
/// all; callers that mutate run to the end.
#[async_trait]
pub trait TaskStore: Send + Sync + 'static {
    /// Returns what the store promises.
    fn capabilities(&self) -> Capabilities;

    /// Takes the store over: commits a new epoch and returns the rows whose attempts may still run.
    ///
    /// Each of them has its lease extended to `now + reattach`. A second call is refused.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be used.
    async fn open(
        &self,
        now: Timestamp,
        lanes: Vec<(LaneId, lane::Config)>,
        reattach: Duration,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Vec<Claimed>, Error>;

    /// Returns the key that the store keeps for its server, the same after each opening; `None` before
    /// the first, and where nothing outlives the process [CALL-8].
    fn mac_key(&self) -> Option<MacKey>;

    /// Adds a lane, or changes what it may do.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be used.
    async fn set_lane(&self, lane: LaneId, config: lane::Config) -> Result<(), Error>;

    /// Removes a lane in which no task stands and no place is taken, and tells whether it is gone. What
    /// is submitted to it afterwards finds [no lane](Submitted::NoLane).
    ///
    /// # Errors
    /// [`Error`] when the store cannot be used.
    async fn remove_lane(&self, lane: &LaneId) -> Result<bool, Error>;

    /// Accepts tasks, and leases work in the same transaction [DUR-6].
    ///
    /// # Errors
    /// [`Error`] when nothing was accepted.
    async fn submit(
        &self,
        now: Timestamp,
        batch: Vec<Submit>,
        then: Option<Claim>,
    ) -> Result<Write<(Vec<Submitted>, Vec<Claimed>)>, Error>;

    /// Leases work.
    ///
    /// # Errors
    /// [`Error`] when nothing was leased.
    async fn claim(&self, now: Timestamp, claim: Claim) -> Result<Write<Vec<Claimed>>, Error>;

    /// Applies events, and leases work in the same transaction.
    ///
    /// # Errors
    /// [`Error`] when nothing was applied.
    async fn update(
        &self,
        now: Timestamp,
        batch: Vec<Update>,
        then: Option<Claim>,
    ) -> Result<Write<(Vec<UpdateResult>, Vec<Claimed>)>, Error>;

    /// Renews leases and keeps progress; answers in the order of `beats`.
    ///
    /// # Errors
    /// [`Error`] when nothing was renewed.
    async fn heartbeat(
        &self,
        now: Timestamp,
        beats: Vec<Heartbeat>,
    ) -> Result<Vec<HeartbeatReply>, Error>;

    /// Frees the slots of attempts whose executor is gone, whatever their tasks' states [QUEUE-6].
    ///
    /// # Errors
    /// [`Error`] when nothing was freed.
    async fn release(
        &self,
        now: Timestamp,
        slots: Vec<(TaskId, Fence)>,
    ) -> Result<Write<()>, Error>;

    /// Holds a lane while its peer is not ready, or lets it go on; returns how many tasks moved [QUEUE-5].
    ///
    /// # Errors
    /// [`Error`] when nothing was held.
    async fn hold(
        &self,
        now: Timestamp,
        lane: LaneId,
        hold: Option<WaitReason>,
    ) -> Result<Write<u32>, Error>;

    /// Fires deadlines that passed, up to `limit`, and returns the next one.
    ///
    /// # Errors
    /// [`Error`] when nothing was fired.
    async fn fire(&self, now: Timestamp, limit: u32) -> Result<Write<Option<Timestamp>>, Error>;

    /// Moves the limits that count only time in which the engine can run, by time in which it could
    /// not: of attempts, of slots, and of waits for a peer. Returns how many tasks have one [LEASE-8].
    ///
    /// # Errors
    /// [`Error`] when nothing was moved.
    async fn extend_deadlines(&self, now: Timestamp, by: Duration) -> Result<Write<u32>, Error>;

    /// Finds one task of a scope.
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    async fn find(&self, scope: &Scope, id: TaskId) -> Result<Found, Error>;

    /// Finds one task of a scope without its details, tombstones included: a store that keeps inputs and
    /// results elsewhere reads neither [DUR-8].
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    async fn status(&self, scope: &Scope, id: TaskId) -> Result<Option<TaskStatus>, Error> {
        Ok(self.find(scope, id).await?.into_status())
    }

    /// Finds the record of one task of a scope alone, tombstones included.
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    async fn record(&self, scope: &Scope, id: TaskId) -> Result<Option<TaskRecord>, Error> {
        Ok(self.find(scope, id).await?.into_record())
    }

    /// Returns those of some tasks of which the store has nothing, not even a tombstone or a record that it
    /// cannot read, whoever owns them. What was accepted before the call counts as had, committed or not.
    ///
    /// What others hold of such a task may be removed. A store that cannot say, which is the default,
    /// returns none.
    ///
    /// # Errors
    /// [`Error`] when nothing can be read: then nothing is known to be unknown.
    async fn unknown(&self, ids: Vec<TaskId>) -> Result<Vec<TaskId>, Error> {
        drop(ids);
        Ok(Vec::new())
    }

    /// Finds a committed artifact of a readable task by its name alone, and the task that it belongs to
    /// [ART-2].
    ///
    /// Whoever asks has proved by a signed link that the owner gave the name away. A store that keeps
    /// artifacts answers; one that does not has none.
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    async fn artifact(&self, id: &ArtifactId) -> Result<Option<(TaskId, Artifact)>, Error> {
        let _ = id;
        Ok(None)
    }

    /// Reads the history of one task of a scope, the oldest entry first [STATE-4]. It is empty once
    /// the task's retention is over; `None` is a task that the scope does not have.
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    async fn events(&self, scope: &Scope, id: TaskId) -> Result<Option<Vec<TaskEvent>>, Error> {
        Ok(self.find(scope, id).await?.into_events())
    }

    /// Returns how many tasks run before a queued one.
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    async fn position(&self, id: TaskId) -> Result<Option<u32>, Error>;

    /// Lists the tasks of a scope, newest first. Tombstones are not listed.
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    async fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        before: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<TaskRecord>, Error>;

    /// Shows the lanes, their queues and the places that are taken.
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    async fn lanes(&self) -> Result<Vec<LaneView>, Error>;

    /// Forgets what nobody can read any more, up to `limit`; returns the tasks whose files may go [SWEEP-1].
    ///
    /// # Errors
    /// [`Error`] when nothing was swept.
    async fn sweep(&self, now: Timestamp, limit: u32) -> Result<Vec<TaskId>, Error>;

    /// Returns a receipt for everything before it.
    fn barrier(&self) -> Receipt;
}
