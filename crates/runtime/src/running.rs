//! Time in which this process could run [LEASE-8].
//!
//! A process that is stopped, paused or asleep notices nothing of it. What it can notice is that it
//! looks at the clock later than it meant to.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use raincheck_core::time::Timestamp;

use crate::shards::lock;

/// How often the clock is looked at while something depends on it, and the least lateness that
/// counts: a stop of twice this length is always noticed, and counted to within once of it.
pub(crate) const TURN: Duration = Duration::from_millis(500);

/// The same while nothing runs.
pub(crate) const IDLE_TURN: Duration = Duration::from_secs(1);

/// Counts the time in which whoever looks at it was able to look.
#[derive(Debug)]
pub(crate) struct RunningTime {
    start: Timestamp,
    count: Mutex<Count>,
}

#[derive(Debug, Default)]
struct Count {
    /// When the next look comes at the latest; `None` while nobody looks regularly.
    due: Option<Timestamp>,
    turn: Duration,
    stalled: Duration,
}

impl RunningTime {
    pub(crate) fn new(start: Timestamp) -> Self {
        Self { start, count: Mutex::default() }
    }

    /// Looks at the clock, and says when the next look comes at the latest. Returns the time in which
    /// the process could not run, since the first look.
    pub(crate) fn turn(&self, now: Timestamp, next: Duration) -> Duration {
        let mut count = lock(&self.count);
        count.look(now);
        count.turn = next;
        count.due = Some(now + next);
        count.stalled
    }

    /// Returns the time since the start in which the process could run. It looks at the clock itself, so
    /// that who asks right after waking is not answered as if nothing had been.
    pub(crate) fn so_far(&self, now: Timestamp) -> Duration {
        now.since(self.start).saturating_sub(self.stalled(now))
    }

    fn stalled(&self, now: Timestamp) -> Duration {
        let mut count = lock(&self.count);
        count.look(now);
        count.stalled
    }

    /// Counts no lateness from now on: nobody looks any more.
    pub(crate) fn rest(&self) {
        lock(&self.count).due = None;
    }
}

impl Count {
    fn look(&mut self, now: Timestamp) {
        let Some(due) = self.due else { return };
        let late = now.since(due);
        if late >= TURN {
            self.stalled += late;
        }
        // Whoever looks can run.
        self.due = Some(due.max(now + self.turn));
    }
}

/// Sleeps for a span of a running time, of which `now` tells how much there was so far.
pub(crate) async fn sleep_by(span: Duration, now: impl Fn() -> Duration) {
    let end = now().saturating_add(span);
    loop {
        let left = end.saturating_sub(now());
        if left.is_zero() {
            return;
        }
        sleep(left).await;
    }
}

/// Sleeps for a span of time in which this process can run: while it is stopped, paused or asleep, the
/// span does not pass. It is at most 500 ms too short for each stop.
///
/// For limits that are kept outside of an engine; inside of one, its own
/// [count](crate::TaskContext::running_time) is to be used.
///
/// # Cancel safety
/// Safe: dropping it ends the sleep.
pub async fn sleep_running(span: Duration) {
    let mut left = span;
    while !left.is_zero() {
        let turn = left.min(TURN);
        let begun = Instant::now();
        sleep(turn).await;
        let elapsed = begun.elapsed();
        left = left.saturating_sub(if elapsed >= turn + TURN { turn } else { elapsed });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000_000);
    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn only_what_is_later_than_it_was_meant_to_be_is_a_stall() {
        // [LEASE-8]
        let running = RunningTime::new(START);
        let mut now = START;
        assert_eq!(running.turn(now, TURN), Duration::ZERO);
        for _ in 0..10 {
            now = now + TURN + Duration::from_millis(40);
            assert_eq!(running.turn(now, TURN), Duration::ZERO, "a little late is no stall");
        }
        now = now + HOUR;
        assert_eq!(running.turn(now, TURN), HOUR - TURN);
        now = now + TURN;
        assert_eq!(running.turn(now, TURN), HOUR - TURN, "it is counted once");
    }

    #[test]
    fn whoever_asks_first_after_waking_is_told() {
        // [LEASE-8]
        let running = RunningTime::new(START);
        running.turn(START, IDLE_TURN);
        let woken = START + HOUR;
        assert_eq!(running.stalled(woken), HOUR - IDLE_TURN);
        assert_eq!(running.turn(woken, TURN), HOUR - IDLE_TURN, "and nobody counts it again");
    }

    #[test]
    fn asking_often_hides_no_stall_and_makes_none() {
        let running = RunningTime::new(START);
        running.turn(START, IDLE_TURN);
        let mut now = START;
        for _ in 0..50 {
            now = now + Duration::from_millis(100);
            assert_eq!(running.stalled(now), Duration::ZERO);
        }
        assert_eq!(running.stalled(now + HOUR), HOUR - IDLE_TURN);
    }

    #[test]
    fn while_nobody_looks_nothing_is_late() {
        let running = RunningTime::new(START);
        assert_eq!(running.stalled(START + HOUR), Duration::ZERO);
        running.turn(START, TURN);
        running.rest();
        assert_eq!(running.turn(START + HOUR, TURN), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_does_not_pass_while_the_process_is_stopped() {
        // [LEASE-8]
        let begun = Instant::now();
        let ten = Duration::from_secs(10);
        let mut sleeping = std::pin::pin!(sleep_running(ten));
        tokio::select! {
            () = &mut sleeping => panic!("too early"),
            () = sleep(Duration::from_secs(3)) => {}
        }
        tokio::time::advance(HOUR).await;
        sleeping.await;
        let slept = begun.elapsed();
        assert!(slept >= HOUR + ten - 2 * TURN && slept <= HOUR + ten + TURN, "{slept:?}");
    }
}
