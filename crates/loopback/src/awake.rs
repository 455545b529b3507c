//! Time in which this process could run.
//!
//! A process that is stopped, by Ctrl-Z or with its container, hears nobody meanwhile. When it goes on,
//! every timer is due at once, before anything that its peers sent has been read. Limits that are for
//! peers count by these timers: what was slept does not count, and after it peers are heard first.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Instant;

/// The longest that a timer sleeps before it looks whether the process was stopped.
const STEP: Duration = Duration::from_secs(1);

/// How late a step may be before the process counts as having been stopped.
const SLACK: Duration = Duration::from_millis(500);

/// How long peers have to be heard after the process was stopped, before anything is judged.
const HEARING: Duration = Duration::from_secs(2);

/// A limit passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

/// Sleeps for a span in which this process could run.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Sleep {
    left: Duration,
    step: Duration,
    timer: Pin<Box<tokio::time::Sleep>>,
}

/// Makes a timer of a span; it starts now.
pub fn sleep(span: Duration) -> Sleep {
    let step = span.min(STEP);
    Sleep { left: span, step, timer: Box::pin(tokio::time::sleep(step)) }
}

impl Sleep {
    fn restart(&mut self, span: Duration) {
        (self.left, self.step) = (span, span.min(STEP));
        self.timer.as_mut().reset(Instant::now() + self.step);
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(context));
            let late = Instant::now().saturating_duration_since(self.timer.deadline());
            let left = if late > SLACK {
                self.left.max(HEARING)
            } else {
                self.left.saturating_sub(self.step + late)
            };
            if left.is_zero() {
                return Poll::Ready(());
            }
            self.restart(left);
        }
    }
}

/// Runs a future for at most a span in which this process could run.
///
/// # Errors
/// [`Elapsed`] when the span is over and the future is not ready.
///
/// # Cancel safety
/// That of the future.
pub async fn timeout<F: Future>(span: Duration, future: F) -> Result<F::Output, Elapsed> {
    tokio::select! {
        biased;
        output = future => Ok(output),
        () = sleep(span) => Err(Elapsed),
    }
}

/// A present instant on both scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// What limits of peers are judged by: it stands still while the process is stopped.
    pub awake: Instant,
    /// What is shown.
    pub real: Instant,
}

impl Now {
    /// Makes an instant of a process that was never stopped.
    #[must_use]
    pub const fn never_stopped(instant: Instant) -> Self {
        Self { awake: instant, real: instant }
    }
}

/// A clock that stands still while the process is stopped, and for a moment after, in which peers are
/// heard.
///
/// It learns of a stop from a gap between the looks of those that wait by [`Clock::sleep_until`]. While
/// none waits nothing is judged, and the clock goes on.
#[derive(Debug)]
pub struct Clock(Mutex<Seen>);

#[derive(Debug)]
struct Seen {
    last: Instant,
    /// What was shown last; the clock never goes back.
    shown: Instant,
    behind: Duration,
    n_waiting: usize,
}

impl Default for Clock {
    fn default() -> Self {
        let now = Instant::now();
        Self(Mutex::new(Seen { last: now, shown: now, behind: Duration::ZERO, n_waiting: 0 }))
    }
}

impl Clock {
    /// Returns the present instant.
    #[must_use]
    pub fn now(&self) -> Now {
        let real = Instant::now();
        let mut seen = self.seen();
        let gap = real.saturating_duration_since(seen.last);
        seen.last = real;
        if seen.n_waiting > 0 && gap > STEP + SLACK {
            seen.behind += gap + HEARING;
        }
        let awake = real.checked_sub(seen.behind).unwrap_or(seen.shown);
        seen.shown = seen.shown.max(awake);
        Now { awake: seen.shown, real }
    }

    /// Waits until the clock shows an instant.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn sleep_until(&self, instant: Instant) {
        let mut now = self.now();
        let _waiting = Waiting::begin(self);
        loop {
            let left = instant.saturating_duration_since(now.awake);
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(STEP)).await;
            now = self.now();
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that waits by a clock.
struct Waiting<'a>(&'a Clock);

impl<'a> Waiting<'a> {
    fn begin(clock: &'a Clock) -> Self {
        clock.seen().n_waiting += 1;
        Self(clock)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.seen().n_waiting -= 1;
    }
}

/// The timers of connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timer;

impl hyper::rt::Sleep for Sleep {}

impl hyper::rt::Timer for Timer {
    fn sleep(&self, span: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(sleep(span))
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(sleep(deadline.saturating_duration_since(self.now())))
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into()
    }

    fn reset(&self, timer: &mut Pin<Box<dyn hyper::rt::Sleep>>, deadline: std::time::Instant) {
        let span = deadline.saturating_duration_since(self.now());
        match timer.as_mut().downcast_mut_pin::<Sleep>() {
            Some(timer) => timer.get_mut().restart(span),
            None => *timer = Box::pin(sleep(span)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_timer_is_as_exact_as_any_while_the_process_runs() {
        for span in [0, 1, 400, 1000, 5000, 30_001].map(Duration::from_millis) {
            let begin = Instant::now();
            sleep(span).await;
            assert_eq!(begin.elapsed(), span);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_does_not_count_and_is_followed_by_time_to_hear() {
        // [LEASE-8]
        for (before, left) in [(3, 7), (9, 2), (10, 2)] {
            let begin = Instant::now();
            let mut timer = sleep(10 * SECOND);
            if before < 10 {
                assert_eq!(timeout(before * SECOND, &mut timer).await, Err(Elapsed));
            } else {
                assert_eq!(timeout(Duration::from_millis(9999), &mut timer).await, Err(Elapsed));
            }
            advance(3600 * SECOND).await;
            timer.await;
            let awake = begin.elapsed() - 3600 * SECOND;
            let expected = (before + left) * SECOND;
            assert!(
                awake >= expected - SECOND && awake <= expected + SECOND,
                "{before}: {awake:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_stands_still_while_the_process_is_stopped_and_never_goes_back() {
        // [LEASE-8]
        let clock = Clock::default();
        let begin = clock.now();
        clock.sleep_until(begin.awake + 5 * SECOND).await;
        assert_eq!(clock.now().awake - begin.awake, 5 * SECOND);
        let mut waiting = Box::pin(clock.sleep_until(begin.awake + 60 * SECOND));
        assert_eq!(timeout(Duration::ZERO, &mut waiting).await, Err(Elapsed));
        advance(3600 * SECOND).await;
        let woken = clock.now();
        drop(waiting);
        assert_eq!(woken.awake - begin.awake, 5 * SECOND);
        assert_eq!(woken.real - begin.real, 3605 * SECOND);
        let heard = Instant::now();
        clock.sleep_until(woken.awake + SECOND).await;
        assert_eq!(heard.elapsed(), HEARING + SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_goes_on_while_nobody_waits_by_it() {
        let clock = Clock::default();
        let begin = clock.now();
        advance(3600 * SECOND).await;
        assert_eq!(clock.now().awake - begin.awake, 3600 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ready_when_the_process_goes_on_counts_before_its_limit() {
        let answered = async { tokio::time::sleep(2 * SECOND).await };
        let mut limited = std::pin::pin!(timeout(3 * SECOND, answered));
        assert!(tokio::time::timeout(SECOND, &mut limited).await.is_err());
        advance(60 * SECOND).await;
        assert_eq!(limited.await, Ok(()));
    }
}
