//! Progress notifications: strictly increasing, at most four a second, none after the answer
//! [RESULT-2].

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use raincheck_core::progress::Progress;
use raincheck_core::text;

/// The shortest time between two notifications.
const PAUSE: Duration = Duration::from_millis(250);

/// One notification.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Note {
    /// How far it is.
    pub(crate) value: f64,
    /// Where the end is, if that is known.
    pub(crate) total: Option<f64>,
    /// What the tool says about it, safe to show, between marks [CALL-8].
    pub(crate) words: Option<String>,
}

/// Carries notifications to the client, under the token as it was given.
#[async_trait]
pub(crate) trait Notify: fmt::Debug + Send + Sync {
    /// Sends a notification. Returns once it stands in the outbox, so that nothing follows the answer.
    async fn notify(&self, note: Note);
}

/// Who asked for the progress of one call.
#[derive(Debug)]
pub(crate) struct Listener {
    to: Box<dyn Notify>,
    gauge: Gauge,
    next_at: Instant,
}

impl Listener {
    /// Tells the progress of a call.
    pub(crate) fn new(to: Box<dyn Notify>, now: Instant) -> Self {
        Self { to, gauge: Gauge::default(), next_at: now }
    }

    /// Returns when the next notification may go out.
    pub(crate) const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Tells a report, unless it says nothing new or comes too soon; `fence` puts the words of its tool,
    /// one line that is safe to show, between marks [CALL-8].
    pub(crate) async fn tell(
        &mut self,
        progress: &Progress,
        now: Instant,
        fence: impl FnOnce(&str) -> String + Send,
    ) {
        if now < self.next_at {
            return;
        }
        let Some((value, total)) = self.gauge.read(progress) else {
            return;
        };
        self.next_at = now + PAUSE;
        let words = progress.message.as_deref().or(progress.phase.as_deref());
        let words = words.map(|words| fence(&text::escape(words)));
        self.to.notify(Note { value, total, words }).await;
    }
}

/// Turns reports into numbers that only grow. The first report decides what they count.
#[derive(Debug, Default)]
struct Gauge {
    scale: Option<Scale>,
    last: Option<f64>,
    words: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Percent,
    Steps,
    Reports,
}

impl Gauge {
    /// Returns the value and the total of a report that is news.
    fn read(&mut self, progress: &Progress) -> Option<(f64, Option<f64>)> {
        let scale = *self.scale.get_or_insert(match progress {
            Progress { percent: Some(_), .. } => Scale::Percent,
            Progress { step: Some(_), .. } => Scale::Steps,
            _ => Scale::Reports,
        });
        #[expect(clippy::cast_precision_loss, reason = "nobody counts 2^53 steps")]
        let (value, total) = match scale {
            Scale::Percent => (progress.percent?, Some(100.0)),
            Scale::Steps => (progress.step? as f64, progress.step_total.map(|n| n as f64)),
            Scale::Reports => {
                let words = progress.message.as_ref().or(progress.phase.as_ref())?;
                if self.words.as_ref() == Some(words) {
                    return None;
                }
                self.words = Some(words.clone());
                (self.last.unwrap_or(0.0) + 1.0, None)
            }
        };
        if self.last.is_some_and(|last| value <= last) {
            return None;
        }
        self.last = Some(value);
        Some((value, total.filter(|total| *total >= value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(percent: f64) -> Progress {
        Progress { percent: Some(percent), ..Progress::default() }
    }

    #[test]
    fn values_only_grow_and_zero_is_a_value() {
        // [RESULT-2]
        let mut gauge = Gauge::default();
        let reports = [0.0, 10.0, 10.0, 25.0, 20.0, 60.0, 60.0, 100.0];
        let told: Vec<f64> =
            reports.into_iter().filter_map(|p| gauge.read(&percent(p))).map(|(v, _)| v).collect();
        assert_eq!(told, [0.0, 10.0, 25.0, 60.0, 100.0]);
    }

    #[test]
    fn words_alone_are_counted() {
        let words = |text: &str| Progress { message: Some(text.into()), ..Progress::default() };
        let mut gauge = Gauge::default();
        assert_eq!(gauge.read(&words("one")), Some((1.0, None)));
        assert_eq!(gauge.read(&words("one")), None);
        assert_eq!(gauge.read(&words("two")), Some((2.0, None)));
        assert_eq!(gauge.read(&Progress::default()), None);
    }

    #[test]
    fn steps_carry_their_total() {
        let step = |step| Progress { step: Some(step), step_total: Some(4), ..Progress::default() };
        let mut gauge = Gauge::default();
        assert_eq!(gauge.read(&step(1)), Some((1.0, Some(4.0))));
        assert_eq!(gauge.read(&step(1)), None);
        assert_eq!(gauge.read(&percent(50.0)), None, "another scale is not mixed in");
    }
}
