//! What the engine does when the store says that rows changed.

use std::sync::{Arc, Weak};

use raincheck_core::lifecycle::State;
use raincheck_core::store::ChangeSink;
use raincheck_core::task::Row;

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
    fn changed(&self, rows: &[Row]) {
        let Some(shared) = self.0.upgrade() else { return };
        for row in rows {
            shared.changed(row);
        }
    }
}

impl Shared {
    fn changed(&self, row: &Row) {
        self.observer.changed(row);
        if let Some((at, _)) = row.deadlines.next() {
            self.timers.arm(at);
        }
        // A new task is leased by its own submit; one that came back to the queue is not.
        if row.state == State::Queued && row.n_events > 1 {
            self.unfilled.mark(row.task.lane.clone());
        }
        let has_ended = row.state.is_terminal();
        if has_ended || row.cancel.is_some() {
            self.lives.observe(row);
        }
        let happened = if has_ended { Happened::Ended } else { Happened::Moved };
        self.waits.tell(row.id(), happened);
    }
}
