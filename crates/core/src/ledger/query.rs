//! Reading, without moving anything.

use crate::ids::TaskId;
use crate::lifecycle::State;
use crate::scope::Scope;
use crate::store::{Cursor, Filter, LaneView, Page};
use crate::task::TaskRecord;

use super::Ledger;

impl Ledger {
    /// Finds a task of a scope, tombstones included.
    #[must_use]
    pub fn find(&self, scope: &Scope, id: TaskId) -> Option<&TaskRecord> {
        self.rows.find(id).filter(|record| record.task.scope == *scope)
    }

    /// Finds a task whoever owns it.
    #[must_use]
    pub fn get(&self, id: TaskId) -> Option<&TaskRecord> {
        self.rows.find(id)
    }

    /// Returns how many tasks it holds, tombstones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Tells whether it holds no task.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many tasks run before a queued or waiting one of the same lane.
    #[must_use]
    pub fn position(&self, id: TaskId) -> Option<u32> {
        let record = self.rows.find(id)?;
        match record.state {
            State::Queued | State::Waiting => {
                self.lanes.get(&record.task.lane).map(|lane| lane.position(record))
            }
            State::Scheduled
            | State::Running
            | State::InputRequired
            | State::CancelRequested
            | State::Cancelling
            | State::Succeeded
            | State::Failed
            | State::Cancelled
            | State::TimedOut
            | State::Expired => None,
        }
    }

    /// Lists the tasks of a scope, newest first.
    #[must_use]
    pub fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        before: Option<Cursor>,
        limit: u32,
    ) -> Page<TaskRecord> {
        let mut rows = self
            .rows
            .owned(scope, before.map_or(u64::MAX, |cursor| cursor.0))
            .filter(|record| filter.admits(record));
        let items: Vec<_> = rows.by_ref().take(limit as usize).cloned().collect();
        Page { has_more: rows.next().is_some(), items }
    }

    /// Shows every lane.
    #[must_use]
    pub fn lanes(&self) -> Vec<LaneView> {
        self.lanes
            .iter()
            .map(|(name, lane)| LaneView {
                lane: name.clone(),
                config: lane.config.clone(),
                queued: lane.n_queued(),
                waiting: lane.n_waiting(),
                slots: lane.slots().cloned().collect(),
                held: lane.held.clone(),
            })
            .collect()
    }
}
