//! The end of a run's time.

use std::time::{Duration, Instant};

/// A moment by which a run must be over.
#[derive(Debug, Clone, Copy)]
pub(in crate::filter) struct Deadline(Option<Instant>);

#[expect(
    clippy::disallowed_methods,
    reason = "a process is watched by the clock of the machine; nothing else here reads one"
)]
fn now() -> Instant {
    Instant::now()
}

impl Deadline {
    /// Returns the moment after so long; never, if that is further than clocks go.
    pub(in crate::filter) fn after(duration: Duration) -> Self {
        Self(now().checked_add(duration))
    }

    /// How long it is until then.
    pub(super) fn left(&self) -> Duration {
        self.0.map_or(Duration::from_secs(3600), |at| at.saturating_duration_since(now()))
    }

    pub(in crate::filter) fn is_over(&self) -> bool {
        self.left() == Duration::ZERO
    }
}
