//! Waits that count only time in which this process could run [LEASE-8].

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The longest sleep between two looks at the clock.
const SLICE: Duration = Duration::from_secs(1);

/// How late a sleep may end on a busy machine. One that ends later was a stop: the process was
/// stopped or frozen, or the machine slept.
const SLACK: Duration = Duration::from_millis(500);

/// Waits until `span` has passed in which this process could run.
///
/// A stop counts half of the second it falls into, whatever its length, so that after one there is
/// still time to look at what happened meanwhile.
///
/// # Cancel safety
/// Safe: nothing but the wait is lost.
pub(crate) async fn pass(span: Duration) {
    let mut left = span;
    while !left.is_zero() {
        let slice = left.min(SLICE);
        let begun = Instant::now();
        sleep(slice).await;
        let is_stop = begun.elapsed() > slice + SLACK;
        left -= if is_stop { slice / 2 } else { slice };
        if is_stop && left < SLACK {
            // What was stopped with this process may need a moment too.
            left = left.max(SLACK.min(span / 2));
        }
        if left < Duration::from_millis(1) {
            break;
        }
    }
}

/// Waits for a future for at most `span` of time in which this process could run; `None` when it
/// took longer.
///
/// # Cancel safety
/// As safe as `work`.
pub(crate) async fn within<T>(span: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = pass(span) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [LEASE-8]
    #[tokio::test(start_paused = true)]
    async fn time_in_which_the_process_was_stopped_does_not_count() {
        let begun = Instant::now();
        let stop = async {
            sleep(Duration::from_millis(3_500)).await;
            // The clock jumps by an hour while nothing is polled: that is what a stop looks like.
            tokio::time::advance(Duration::from_secs(3_600)).await;
        };
        tokio::join!(pass(Duration::from_secs(10)), stop);
        let counted = begun.elapsed() - Duration::from_secs(3_600);
        assert!(counted >= Duration::from_secs(9), "{counted:?}");
        assert!(counted <= Duration::from_secs(12), "{counted:?}");
    }

    // [LEASE-8]
    #[tokio::test(start_paused = true)]
    async fn after_a_stop_there_is_time_to_look() {
        let news = sleep(Duration::from_millis(3_600_100));
        let stop = tokio::time::advance(Duration::from_secs(3_600));
        let (heard, ()) = tokio::join!(within(Duration::from_secs(1), news), stop);
        assert_eq!(heard, Some(()), "it was judged before it was heard");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_stop_a_wait_is_as_long_as_it_says() {
        for millis in [0, 1, 250, 1_000, 1_001, 90_250] {
            let (span, begun) = (Duration::from_millis(millis), Instant::now());
            pass(span).await;
            let over = begun.elapsed() - span;
            assert!(over <= Duration::from_millis(2 + 2 * millis / 1_000), "{millis}: {over:?}");
        }
    }
}
