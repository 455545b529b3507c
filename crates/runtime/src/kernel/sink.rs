//! What happens when the store says that records changed.

use std::sync::{Arc, Weak};

use raincheck_core::lifecycle::State;
use raincheck_core::store::ChangeSink;
use raincheck_core::task::TaskRecord;

use super::Kernel;
use crate::waits::Happened;

/// Carries committed records to waiters, running attempts, the loop and metrics.
pub(crate) struct Sink(Weak<Kernel>);

impl Sink {
    pub(crate) fn new(kernel: &Arc<Kernel>) -> Self {
        Self(Arc::downgrade(kernel))
    }
}

impl ChangeSink for Sink {
    fn changed(&self, records: &[TaskRecord]) {
        let Some(kernel) = self.0.upgrade() else { return };
        for record in records {
            kernel.changed(record);
        }
    }
}

impl Kernel {
    fn changed(&self, record: &TaskRecord) {
        self.observer.changed(record);
        if let Some((at, _)) = record.deadlines.next() {
            self.inbox.fire_by(at);
        }
        // A new task is leased by its own submit; one that came back to the queue is not.
        if record.state == State::Queued && record.n_events > 1 {
            self.inbox.fill(record.task.lane.clone());
        }
        let has_ended = record.state.is_terminal();
        // Whatever ends an attempt stops its executor at once, also where another one follows.
        let is_over = record.attempt > 0 && !record.state.is_leased();
        if has_ended || is_over || record.cancel.is_some() {
            self.lives.observe(record);
        }
        // Whoever waits for the end of a task that asks them something waits in vain.
        let is_over = has_ended || record.state == State::InputRequired;
        let happened = if is_over { Happened::Ended } else { Happened::Moved };
        self.waits.tell(record.id(), happened);
    }
}
