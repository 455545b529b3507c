//! What the engine does when the store says that rows changed.

use std::sync::{Arc, Weak};

use raincheck_core::lifecycle::State;
use raincheck_core::store::ChangeSink;
use raincheck_core::task::TaskRecord;

use super::Shared;
use crate::waits::Happened;

/// Carries committed rows to waiters, running attempts, timers, dispatch and metrics.
pub(super) struct Sink(Weak<Shared>);

impl Sink {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self(Arc::downgrade(shared))
    }
}

impl ChangeSink for Sink {
    fn changed(&self, rows: &[TaskRecord]) {
        let Some(shared) = self.0.upgrade() else { return };
        for record in rows {
            shared.changed(record);
        }
    }
}

impl Shared {
    fn changed(&self, record: &TaskRecord) {
        self.observer.changed(record);
        if let Some((at, _)) = record.deadlines.next() {
            self.timers.arm(at);
        }
        // A new task is leased by its own submit; one that came back to the queue is not.
        if record.state == State::Queued && record.n_events > 1 {
            self.unfilled.mark(record.task.lane.clone());
        }
        let has_ended = record.state.is_terminal();
        if has_ended || record.cancel.is_some() {
            self.lives.observe(record);
        }
        let happened = if has_ended { Happened::Ended } else { Happened::Moved };
        self.waits.tell(record.id(), happened);
    }
}
