//! Logs and metrics of every transition, from one place, so that they cannot disagree.

use std::fmt;

use metrics::{Counter, Gauge, Histogram};

use raincheck_core::lifecycle::State;
use raincheck_core::task::TaskRecord;

/// Watches transitions. Its metrics are bound once, so that a transition allocates nothing.
pub(crate) struct Observer {
    submitted: Counter,
    ended: Vec<(State, Counter)>,
    run_seconds: Histogram,
    queue_seconds: Histogram,
    attempts: Gauge,
}

impl Observer {
    pub(crate) fn new() -> Self {
        let ended = |state: State| {
            (state, metrics::counter!("raincheck_tasks_ended", "state" => state.as_str()))
        };
        let terminal = State::ALL.iter().copied().filter(|state| state.is_terminal());
        Self {
            submitted: metrics::counter!("raincheck_tasks_submitted"),
            ended: terminal.map(ended).collect(),
            run_seconds: metrics::histogram!("raincheck_run_seconds"),
            queue_seconds: metrics::histogram!("raincheck_queue_seconds"),
            attempts: metrics::gauge!("raincheck_attempts_running"),
        }
    }

    pub(crate) fn submitted(&self) {
        self.submitted.increment(1);
    }

    pub(crate) fn attempt_began(&self, record: &TaskRecord) {
        self.attempts.increment(1);
        let leased_at = record.heartbeat_at.unwrap_or(record.updated_at);
        self.queue_seconds.record(leased_at.since(record.task.submitted_at));
    }

    pub(crate) fn attempt_ended(&self) {
        self.attempts.decrement(1);
    }

    /// Takes a committed row.
    pub(crate) fn changed(&self, record: &TaskRecord) {
        tracing::info!(
            task = %record.id(),
            tool = %record.task.tool,
            attempt = record.attempt,
            to = %record.state,
            "transition"
        );
        // A row that is told again after its end, such as for a late result, has moved on in time.
        if record.state.is_terminal() && record.ended_at == Some(record.updated_at) {
            if let Some((_, counter)) = self.ended.iter().find(|(state, _)| *state == record.state)
            {
                counter.increment(1);
            }
            if let (Some(started), Some(ended)) = (record.started_at, record.ended_at) {
                self.run_seconds.record(ended.since(started));
            }
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}
