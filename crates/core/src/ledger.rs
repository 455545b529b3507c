//! The whole engine as a value: indexes around [`decide`](crate::decide::decide).
//!
//! [`Ledger::apply`] is the only way in. It is deterministic: the same commands at the same instants
//! give the same replies, the same effects and the same [`snapshot`](Ledger::snapshot).

mod claim;
mod extend;
mod lanes;
mod query;
mod rows;
mod snapshot;
mod submit;
mod timers;
mod update;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::ids::{Fence, LaneId, TaskId, ToolName};
use crate::lane;
use crate::scope::Scope;
use crate::slot::Slot;
use crate::store::{Claim, Heartbeat, HeartbeatReply, Submitted, Update, UpdateResult};
use crate::task::{Outcome, Task, TaskEvent, TaskRecord, WaitReason};
use crate::time::Timestamp;

use lanes::Lane;
use rows::Rows;
use timers::Timers;

pub use snapshot::Snapshot;

/// How long a tombstone is kept after its task expired [TIME-5].
pub const TOMBSTONE: Duration = Duration::from_secs(24 * 3600);

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// Adds a lane, or changes what it may do.
    SetLane(LaneId, lane::Config),
    /// Accepts tasks; the second part is set when what the task needs is not ready.
    Submit(Vec<(Task, Option<WaitReason>)>),
    /// Leases work.
    Claim(Claim),
    /// Applies events.
    Update(Vec<Update>),
    /// Renews leases.
    Heartbeat(Vec<Heartbeat>),
    /// Frees the slots of attempts whose executor is gone.
    Release(Vec<(TaskId, Fence)>),
    /// Holds a lane, or lets it go on.
    Hold(LaneId, Option<WaitReason>),
    /// Fires deadlines that passed.
    Fire {
        /// How many tasks at the most.
        limit: u32,
    },
    /// Moves the limits that count only time in which the engine can run, by time in which it could
    /// not [LEASE-8].
    Extend(Duration),
    /// Ends the retention of tasks before its time.
    Expire(Vec<TaskId>),
    /// Forgets tombstones whose time is over and whose attempt holds no place any more.
    Sweep {
        /// How many at the most.
        limit: u32,
    },
    /// Forgets tombstones whatever their time, but for those whose attempt still holds its place.
    Forget(Vec<TaskId>),
    /// Takes over after a start: attempts that may still run get until `now + reattach` to be heard.
    Reattach(Duration),
}

/// What a command answers.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Nothing.
    Done,
    /// One for each submitted task.
    Submitted(Vec<Submitted>),
    /// The rows that were leased, or that may be reattached.
    Rows(Vec<TaskRecord>),
    /// One for each post.
    UpdateResults(Vec<UpdateResult>),
    /// One for each beat.
    HeartbeatReplies(Vec<HeartbeatReply>),
    /// How many tasks moved.
    Moved(u32),
    /// The tasks that were forgotten.
    Forgotten(Vec<TaskId>),
}

/// One change to keep, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A task was accepted.
    Inserted {
        /// Where it stands.
        record: TaskRecord,
        /// The first entry of its history.
        event: TaskEvent,
    },
    /// A task moved, or a field of it did.
    Moved {
        /// Where it stands.
        record: TaskRecord,
        /// The entry of its history, when its state moved.
        event: Option<TaskEvent>,
        /// The outcome, when it ended.
        outcome: Option<Outcome>,
        /// What its attempt failed with, when another one follows.
        retried: Option<Error>,
        /// What its executor still produced, when it had committed to end it.
        late: Option<Outcome>,
    },
    /// An outcome came after the end [LEASE-7].
    Late {
        /// The task.
        record: TaskRecord,
        /// The entry of its history.
        event: TaskEvent,
        /// What came.
        outcome: Outcome,
    },
    /// A slot was taken.
    Taken(Slot),
    /// The holder of a slot was heard of.
    Heard(Slot),
    /// A slot is free.
    Freed {
        /// The task that held it.
        task: TaskId,
        /// The attempt that held it.
        fence: Fence,
    },
    /// Nothing is left of a task.
    Forgotten(TaskId),
}

/// What a command did.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The answer.
    pub reply: Reply,
    /// What to keep, in order.
    pub effects: Vec<Effect>,
}

/// Tasks, lanes, slots, keys and deadlines.
#[derive(Clone, Debug)]
pub struct Ledger {
    next_fence: u64,
    next_seq: u64,
    rows: Rows,
    lanes: BTreeMap<LaneId, Lane>,
    keys: BTreeMap<(Scope, ToolName, Arc<str>), TaskId>,
    timers: Timers,
    effects: Vec<Effect>,
}

impl Ledger {
    /// Makes an empty ledger whose fences belong to `epoch`.
    #[must_use]
    pub fn new(epoch: u32) -> Self {
        Self {
            next_fence: Fence::new(epoch, 1).raw(),
            next_seq: 1,
            rows: Rows::default(),
            lanes: BTreeMap::new(),
            keys: BTreeMap::new(),
            timers: Timers::default(),
            effects: Vec::new(),
        }
    }

    /// Does one thing.
    pub fn apply(&mut self, now: Timestamp, command: Command) -> Applied {
        let reply = self.run(now, command);
        Applied { reply, effects: std::mem::take(&mut self.effects) }
    }

    /// Does one thing and leaves its effects to be [drained](Self::drain_effects), in one buffer for
    /// as long as the ledger lives.
    pub fn run(&mut self, now: Timestamp, command: Command) -> Reply {
        match command {
            Command::SetLane(lane, config) => {
                self.lane_mut(lane).configure(config);
                Reply::Done
            }
            Command::Submit(batch) => {
                Reply::Submitted(batch.into_iter().map(|one| self.submit(now, one)).collect())
            }
            Command::Claim(claim) => Reply::Rows(self.claim(now, &claim)),
            Command::Update(batch) => Reply::UpdateResults(
                batch.into_iter().map(|update| self.update(now, update)).collect(),
            ),
            Command::Heartbeat(beats) => Reply::HeartbeatReplies(
                beats.iter().map(|beat| self.heartbeat(now, beat)).collect(),
            ),
            Command::Release(slots) => {
                for (task, fence) in slots {
                    self.release(task, fence);
                }
                Reply::Done
            }
            Command::Hold(lane, hold) => Reply::Moved(self.hold(now, &lane, hold)),
            Command::Fire { limit } => Reply::Moved(self.fire(now, limit)),
            Command::Extend(by) => Reply::Moved(self.extend(by)),
            Command::Expire(ids) => Reply::Moved(self.expire(now, &ids)),
            Command::Sweep { limit } => Reply::Forgotten(self.sweep(now, limit)),
            Command::Forget(ids) => Reply::Forgotten(self.forget(ids)),
            Command::Reattach(grace) => Reply::Rows(self.reattach(now, grace)),
        }
    }

    /// Hands over the effects of what was [run](Self::run), in order.
    pub fn drain_effects(&mut self) -> std::vec::Drain<'_, Effect> {
        self.effects.drain(..)
    }

    /// Returns the next instant at which [`Command::Fire`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    fn lane_mut(&mut self, lane: LaneId) -> &mut Lane {
        self.lanes.entry(lane.clone()).or_insert_with(|| Lane::new(lane))
    }
}

#[cfg(test)]
mod tests;
