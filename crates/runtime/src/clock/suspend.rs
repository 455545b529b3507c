//! Time that the machine slept through.
//!
//! **Boundary**: the only place that knows which clock of which system goes on during a suspend.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the two clocks are compared: what is told is right again this long after waking.
const LOOK: Duration = Duration::from_millis(250);

/// How long the machine has been suspended since this value was made, by a clock that goes on
/// meanwhile and one that does not.
#[derive(Debug)]
pub(super) struct Suspended {
    start: Option<Reading>,
    ms: AtomicU64,
    /// When to compare again, in milliseconds of the clock that stands still.
    next_look: AtomicU64,
}

/// The two clocks at about the same moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// Goes on during a suspend.
    through: Duration,
    /// Stands still, or goes on as well where the system has no clock that does not.
    awake: Instant,
}

#[expect(clippy::disallowed_methods, reason = "compared with a clock of the same kind only")]
fn awake() -> Instant {
    Instant::now()
}

impl Suspended {
    pub(super) fn new() -> Self {
        // In this order, and in the other one later: being interrupted in between makes the
        // suspended time shorter, never longer.
        let awake = awake();
        let start = through().map(|through| Reading { through, awake });
        Self { start, ms: AtomicU64::new(0), next_look: AtomicU64::new(0) }
    }

    /// Returns the suspended time; `elapsed` is the time of the clock that stands still.
    pub(super) fn at(&self, elapsed: Duration) -> Duration {
        let now = millis(elapsed);
        if now >= self.next_look.load(Ordering::Relaxed) {
            self.next_look.store(now.saturating_add(millis(LOOK)), Ordering::Relaxed);
            if let (Some(start), Some(through)) = (self.start, through()) {
                self.look(start, Reading { through, awake: awake() });
            }
        }
        Duration::from_millis(self.ms.load(Ordering::Relaxed))
    }

    fn look(&self, start: Reading, now: Reading) {
        let through = now.through.saturating_sub(start.through);
        let awake = now.awake.saturating_duration_since(start.awake);
        self.ms.fetch_max(millis(through.saturating_sub(awake)), Ordering::Relaxed);
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Reads the clock that goes on while the machine is suspended, where there is one beside that of
/// [`Instant`].
#[cfg(any(target_os = "linux", target_os = "android"))]
fn through() -> Option<Duration> {
    read(rustix::time::ClockId::Boottime)
}

/// See above: what Apple calls monotonic goes on during a sleep, [`Instant`] does not.
#[cfg(target_vendor = "apple")]
fn through() -> Option<Duration> {
    read(rustix::time::ClockId::Monotonic)
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn read(clock: rustix::time::ClockId) -> Option<Duration> {
    let at = rustix::time::clock_gettime(clock);
    Some(Duration::new(u64::try_from(at.tv_sec).ok()?, u32::try_from(at.tv_nsec).ok()?))
}

/// Elsewhere [`Instant`] is all there is: on Windows it goes on during a sleep.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn through() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn what_only_one_of_the_clocks_counted_was_slept_through() {
        // [LEASE-8]
        let suspended = Suspended::new();
        let awake = awake();
        let start = Reading { through: HOUR, awake };
        let later = |through, elapsed| Reading { through, awake: awake + elapsed };
        suspended.look(start, later(HOUR + LOOK, LOOK));
        assert_eq!(suspended.ms.load(Ordering::Relaxed), 0);
        suspended.look(start, later(3 * HOUR, HOUR));
        assert_eq!(suspended.ms.load(Ordering::Relaxed), millis(HOUR));
        // Interrupted between the two readings: it never goes back.
        suspended.look(start, later(3 * HOUR, HOUR + LOOK));
        assert_eq!(suspended.ms.load(Ordering::Relaxed), millis(HOUR));
    }

    #[test]
    fn a_machine_that_is_awake_has_not_slept() {
        let suspended = Suspended::new();
        assert_eq!(suspended.at(Duration::ZERO), Duration::ZERO);
        assert_eq!(suspended.at(HOUR), Duration::ZERO, "another clock may be moved by a test");
    }
}
