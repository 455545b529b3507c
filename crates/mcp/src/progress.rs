//! Progress notifications: strictly increasing, at most four a second, none after the answer
//! [RESULT-2].

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::time::Instant;

use raincheck_core::progress::Progress;
use raincheck_core::text;

/// The shortest time between two notifications.
const PAUSE: Duration = Duration::from_millis(250);

/// Who asked for the progress of one call.
#[derive(Debug)]
pub(crate) struct Listener {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    gauge: Gauge,
    next_at: Instant,
}

impl Listener {
    /// Tells the progress of a call to `peer`, under the token as it was given.
    pub(crate) fn new(peer: Peer<RoleServer>, token: ProgressToken, now: Instant) -> Self {
        Self { peer, token, gauge: Gauge::default(), next_at: now }
    }

    /// Returns when the next notification may go out.
    pub(crate) const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Tells a report, unless it says nothing new or comes too soon. Returns once it stands in the
    /// outbox, so that nothing follows the answer.
    pub(crate) async fn tell(&mut self, progress: &Progress, now: Instant) {
        if now < self.next_at {
            return;
        }
        let Some((value, total)) = self.gauge.read(progress) else {
            return;
        };
        self.next_at = now + PAUSE;
        let mut param = ProgressNotificationParam::new(self.token.clone(), value);
        if let Some(total) = total {
            param = param.with_total(total);
        }
        if let Some(words) = progress.message.as_deref().or(progress.phase.as_deref()) {
            param = param.with_message(text::escape(words));
        }
        if let Err(error) = self.peer.notify_progress(param).await {
            tracing::debug!(%error, "nobody hears the progress any more");
        }
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
