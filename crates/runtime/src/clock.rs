//! Where the time comes from [TIME-6].

mod suspend;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use raincheck_core::time::Timestamp;

use suspend::Suspended;

/// Tells the time. Only the runtime reads it; the core takes `now` as an argument.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current instant.
    fn now(&self) -> Timestamp;
}

/// The wall clock as it was at the start, driven on by the monotonic clock.
///
/// A jump of the wall clock ends no deadline early and strands none. Time that the machine slept
/// through is added, within 250 ms of waking. The monotonic part is tokio's, so that a test with paused
/// time drives both at once.
pub struct SystemClock {
    wall: Timestamp,
    start: Instant,
    suspended: Suspended,
}

impl SystemClock {
    /// Reads the wall clock once.
    #[must_use]
    pub fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the one reading of the wall clock")]
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { wall: Timestamp::MIN + wall, start: Instant::now(), suspended: Suspended::new() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.start.elapsed();
        self.wall + elapsed + self.suspended.at(elapsed)
    }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemClock").field("wall", &self.wall).finish_non_exhaustive()
    }
}

/// A clock that stands until it is moved, for tests.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Makes a clock that stands at an instant.
    #[must_use]
    pub const fn new(at: Timestamp) -> Self {
        Self(AtomicI64::new(at.as_millis()))
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        let now = self.now() + by;
        self.0.store(now.as_millis(), Ordering::Release);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_follows_paused_time() {
        let clock = SystemClock::new();
        let before = clock.now();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now().since(before), Duration::from_secs(3600));
    }

    #[test]
    fn a_manual_clock_moves_only_when_it_is_moved() {
        let clock = ManualClock::new(Timestamp::from_millis(5));
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::from_millis(7));
        assert_eq!(clock.now(), Timestamp::from_millis(12));
    }
}
