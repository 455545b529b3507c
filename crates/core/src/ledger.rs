//! The whole engine as a value: indexes around [`decide`](crate::decide::decide).
//!
//! Each thing that can be done is a method with an answer of its own type. What it changed is left as
//! [`Effect`]s to be [drained](Ledger::drain_effects). All of it is deterministic: the same calls at the
//! same instants give the same answers, the same effects and the same [`snapshot`](Ledger::snapshot).
//! A model checker calls it by [`Command`]s, which are those calls as values.
//!
//! A store may keep what has ended elsewhere: [`evict`](Ledger::evict) takes such a task out, and
//! [`recall`](Ledger::recall) brings it back before something is done with it.

mod claim;
mod command;
mod evict;
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
use crate::input::InputChange;
use crate::lane;
use crate::scope::Scope;
use crate::slot::Slot;
use crate::task::{Outcome, TaskEvent, TaskRecord};
use crate::time::Timestamp;

use lanes::Lane;
use rows::Rows;
use timers::Timers;

pub use command::{Applied, Command, Reply};
pub use snapshot::Snapshot;

/// How long a tombstone is kept after its task expired [TIME-5].
pub const TOMBSTONE: Duration = Duration::from_secs(24 * 3600);

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
        /// What it asked its caller, or was answered.
        input: Option<InputChange>,
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

    /// Adds a lane, or changes what it may do.
    pub fn set_lane(&mut self, lane: LaneId, config: lane::Config) {
        self.lane_mut(lane).configure(config);
    }

    /// Removes a lane in which nothing stands and no place is taken; tells whether it is gone now.
    pub fn remove_lane(&mut self, lane: &LaneId) -> bool {
        if self.lanes.get(lane).is_some_and(|known| !known.is_idle()) {
            return false;
        }
        self.lanes.remove(lane);
        true
    }

    /// Hands over the effects of everything since the last call, in order, from one buffer for as
    /// long as the ledger lives.
    pub fn drain_effects(&mut self) -> std::vec::Drain<'_, Effect> {
        self.effects.drain(..)
    }

    /// Returns the next instant at which [`fire`](Self::fire) has something to do.
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
