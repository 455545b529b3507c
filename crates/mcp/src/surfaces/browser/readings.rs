//! Which results their owners have seen: one that nobody read is told of when it expires [TIME-5].

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use raincheck_core::ids::TaskId;
use raincheck_runtime::View;

/// How many results are remembered as read.
const MOST: usize = 20_000;

/// The results that were read since the server began. After a restart none counts as read.
#[derive(Debug, Default)]
pub(crate) struct Readings(Mutex<Read>);

#[derive(Debug, Default)]
struct Read {
    ids: HashSet<TaskId>,
    order: VecDeque<TaskId>,
}

impl Readings {
    /// Notes that a command was shown to its owner; one that has not ended has no result to read.
    pub(crate) fn note(&self, view: &View) {
        if !view.record.state.is_terminal() {
            return;
        }
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = view.record.id();
        if read.ids.insert(id) {
            read.order.push_back(id);
        }
        while read.order.len() > MOST {
            let Some(oldest) = read.order.pop_front() else { break };
            read.ids.remove(&oldest);
        }
    }

    /// Tells whether the result of a command was read.
    pub(crate) fn has(&self, id: TaskId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ids.contains(&id)
    }
}
