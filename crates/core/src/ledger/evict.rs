//! Taking out what has ended, and bringing it back.
//!
//! A durable store has every task on disk. What has ended is asked for now and then: by its key, by a
//! cancel that comes too late, by an outcome that does. Such a task need not stay in memory, as long as
//! it is brought back before anything is done that depends on it.

use crate::ids::{TaskId, ToolName};
use crate::lifecycle::State;
use crate::scope::Scope;
use crate::task::TaskRecord;

use super::Ledger;

impl Ledger {
    /// Tells whether a task may be taken out: it has ended, and no attempt of it holds a place.
    fn may_evict(&self, id: TaskId) -> bool {
        let Some(record) = self.rows.find(id) else { return false };
        record.state.is_terminal() && !self.holds_place(record)
    }

    /// Takes a task out that has ended and of which no attempt holds a place, and returns it. It leaves
    /// no effect: for everybody else the task is still there.
    pub fn evict(&mut self, id: TaskId) -> Option<TaskRecord> {
        if !self.may_evict(id) {
            return None;
        }
        if let Some(place) = self.rows.place(id) {
            self.disarm(place);
        }
        let record = self.rows.remove(id)?;
        if record.state == State::Expired {
            self.timers.unbury(&record);
        }
        self.forget_key(&record);
        Some(record)
    }

    /// Brings back a task that was [taken out](Self::evict), as it was; one that is here stays as it is.
    pub fn recall(&mut self, record: TaskRecord) {
        if self.rows.place(record.id()).is_some() || !record.state.is_terminal() {
            return;
        }
        if record.state == State::Expired {
            self.timers.bury(&record);
        }
        self.remember_key(&record);
        let place = self.rows.insert(record);
        self.arm(place);
    }

    /// Returns the task that an idempotency key stands for, if it is here [IDEM-1].
    #[must_use]
    pub fn keyed(
        &self,
        scope: &Scope,
        tool: &ToolName,
        key: &std::sync::Arc<str>,
    ) -> Option<TaskId> {
        self.keys.get(&(scope.clone(), tool.clone(), key.clone())).copied()
    }

    pub(super) fn holds_place(&self, record: &TaskRecord) -> bool {
        self.lanes.get(&record.task.lane).is_some_and(|lane| lane.slot(record.id()).is_some())
    }
}
