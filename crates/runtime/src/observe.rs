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
        if is_ending(record) {
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

/// Tells whether a committed row is the one of the transition that ended its task. One that is told again
/// after its end, such as for a late result, has moved on in time; its retention counts from the transition
/// on, unlike the end of a program that ended while no server ran.
fn is_ending(record: &TaskRecord) -> bool {
    let transition = record.updated_at + record.task.limits.retention;
    record.state.is_terminal() && record.expires_at() == Some(transition)
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use raincheck_core::deadline::Armed;
    use raincheck_core::decide::{Change, decide};
    use raincheck_core::ids::{Fence, TaskId};
    use raincheck_core::input::OpenInputs;
    use raincheck_core::retry::Policy;
    use raincheck_core::scope::Scope;
    use raincheck_core::task::{Limits, Outcome, Resources, Task};
    use raincheck_core::time::Timestamp;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn running() -> TaskRecord {
        let task = Task {
            id: TaskId::from_parts(1, [0; 10]),
            scope: Scope::local(),
            tool: "tool".into(),
            lane: "lane".into(),
            priority: 0,
            tags: Vec::new(),
            key: None,
            inputs_hash: 0,
            limits: Limits::default(),
            resources: Resources::default(),
            supports_cancel: true,
            is_idempotent: false,
            retry: Policy::default(),
            trace: None,
            submitted_at: NOW,
        };
        TaskRecord {
            ready_left: Duration::ZERO,
            task: Arc::new(task),
            seq: 1,
            state: State::Running,
            waiting: None,
            asks: OpenInputs::default(),
            attempt: 1,
            fence: Fence::new(1, 1),
            worker: None,
            n_events: 3,
            has_reported: false,
            has_stopped: false,
            cancel: None,
            failure: None,
            started_at: Some(NOW),
            updated_at: NOW,
            heartbeat_at: None,
            ended_at: None,
            deadlines: Armed::default(),
        }
    }

    #[test]
    fn an_end_is_counted_once_also_of_a_program_that_ended_before() {
        let later = NOW + Duration::from_secs(9);
        let end = Change::Finish(Outcome::Succeeded(Vec::new()));
        let mut ended = decide(&running(), later, &end, None).expect("accepted");
        assert!(!is_ending(&running()) && is_ending(&ended.record));
        ended.ended_before(NOW + Duration::from_secs(1));
        assert!(ended.record.ended_at < Some(ended.record.updated_at));
        assert!(is_ending(&ended.record), "it ended while no server ran");
        ended.record.updated_at = later + Duration::from_secs(1);
        assert!(!is_ending(&ended.record), "a late result is no second end");
    }
}
