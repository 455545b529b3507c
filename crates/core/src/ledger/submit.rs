//! Admission: keys, caps, the first state.

use std::sync::Arc;

use crate::deadline::{Armed, Kind};
use crate::decide;
use crate::idempotency;
use crate::ids::{Fence, ToolName};
use crate::input::OpenInputs;
use crate::lifecycle::State;
use crate::scope::Scope;
use crate::store::Submitted;
use crate::task::{Task, TaskRecord, WaitReason};
use crate::time::Timestamp;

use super::{Effect, Ledger};

impl Ledger {
    /// Accepts a task, unless its key stands for one already or its lane is full [QUEUE-2, IDEM-1].
    /// `waiting` is set when what the task needs is not ready.
    pub fn submit(&mut self, now: Timestamp, task: Task, waiting: Option<WaitReason>) -> Submitted {
        if let Some(known) = self.known(&task) {
            return known;
        }
        let Some(lane) = self.lanes.get(&task.lane) else { return Submitted::NoLane };
        let (depth, has_room) = lane.depth();
        if !has_room {
            return Submitted::Full { depth, retry_after: lane.retry_after() };
        }
        let record = first_row(now, self.next_seq, task, waiting.or_else(|| lane.held.clone()));
        self.next_seq += 1;
        self.insert(record)
    }

    /// Finds the task that an idempotency key already stands for [IDEM-1]. The key of a request is that
    /// request's, whatever its inputs have become on their way.
    #[must_use]
    pub fn known(&self, task: &Task) -> Option<Submitted> {
        let key = task.key.clone()?;
        let is_one = idempotency::is_of_request(&key);
        let id = self.keys.get(&(task.scope.clone(), task.tool.clone(), key))?;
        let record = self.rows.find(*id)?;
        Some(if is_one || record.task.inputs_hash == task.inputs_hash {
            Submitted::Existing(record.clone())
        } else {
            Submitted::Conflict(*id)
        })
    }

    fn insert(&mut self, record: TaskRecord) -> Submitted {
        self.remember_key(&record);
        let place = self.rows.insert(record.clone());
        let (mut position, mut delay) = (0, None);
        if let Some(lane) = self.lanes.get_mut(&record.task.lane) {
            lane.enter(&record, place);
            position = lane.arrival_position(&record);
            delay = lane.delay(position);
        }
        self.arm(place);
        self.effects
            .push(Effect::Inserted { event: decide::received(&record), record: record.clone() });
        Submitted::Inserted { record, position, delay }
    }

    pub(super) fn remember_key(&mut self, record: &TaskRecord) {
        if let Some(key) = key_of(record) {
            self.keys.insert(key, record.id());
        }
    }

    pub(super) fn forget_key(&mut self, record: &TaskRecord) {
        if let Some(key) = key_of(record) {
            self.keys.remove(&key);
        }
    }
}

/// What a task with an idempotency key is found by, as long as it is.
pub(super) fn key_of(record: &TaskRecord) -> Option<(Scope, ToolName, Arc<str>)> {
    let key = Arc::clone(record.held_key()?);
    Some((record.task.scope.clone(), record.task.tool.clone(), key))
}

fn first_row(now: Timestamp, seq: u64, mut task: Task, waiting: Option<WaitReason>) -> TaskRecord {
    task.submitted_at = now;
    let mut deadlines = Armed::default();
    let ready_left = task.limits.ready;
    if waiting.is_some() {
        deadlines.set(Kind::Ready, Some(now + ready_left));
    }
    deadlines.set(Kind::QueueTimeout, Some(now + task.limits.queue_timeout));
    TaskRecord {
        task: Arc::new(task),
        seq,
        state: if waiting.is_some() { State::Waiting } else { State::Queued },
        waiting,
        asks: OpenInputs::default(),
        ready_left,
        attempt: 0,
        fence: Fence::NONE,
        worker: None,
        n_events: 1,
        has_reported: false,
        has_stopped: false,
        cancel: None,
        failure: None,
        started_at: None,
        updated_at: now,
        heartbeat_at: None,
        ended_at: None,
        deadlines,
    }
}
