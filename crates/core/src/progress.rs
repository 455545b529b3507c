//! Progress of a running attempt: latest wins, never backwards [RESULT-2].

use serde::{Deserialize, Serialize};

/// What an attempt says about how far it is. Every field may be absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The name of the current phase.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub phase: Option<String>,
    /// Per cent done, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub percent: Option<f64>,
    /// Steps done.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<u64>,
    /// Steps in all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step_total: Option<u64>,
    /// Seconds left, as the attempt estimates them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub eta_s: Option<f64>,
    /// Words for a person.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
}

impl Progress {
    /// Merges a newer report: its words win, its numbers only when they do not go back.
    ///
    /// A number that is not finite, or a percentage outside 0 to 100, is dropped. A new phase may
    /// restart `step` and `step_total`, never `percent`.
    #[must_use]
    pub fn advance(&self, newer: Self) -> Self {
        let percent = newer.percent.filter(|p| p.is_finite()).map(|p| p.clamp(0.0, 100.0));
        let phase = newer.phase.or_else(|| self.phase.clone());
        let (floor, total) =
            if phase == self.phase { (self.step, self.step_total) } else { (None, None) };
        Self {
            percent: match (self.percent, percent) {
                (Some(old), Some(new)) => Some(old.max(new)),
                (old, new) => new.or(old),
            },
            step: newer.step.max(floor),
            step_total: newer.step_total.or(total),
            eta_s: newer.eta_s.filter(|eta| eta.is_finite() && *eta >= 0.0),
            message: newer.message.or_else(|| self.message.clone()),
            phase,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(percent: f64) -> Progress {
        Progress { percent: Some(percent), ..Progress::default() }
    }

    #[test]
    fn a_percentage_never_goes_back() {
        let seen = [5.0, 30.0, 20.0, f64::NAN, 140.0, 10.0];
        let mut progress = Progress::default();
        let mut shown = Vec::new();
        for percent in seen {
            progress = progress.advance(at(percent));
            shown.push(progress.percent.unwrap_or(-1.0));
        }
        assert_eq!(shown, [5.0, 30.0, 30.0, 30.0, 100.0, 100.0]);
    }

    #[test]
    fn a_new_phase_may_count_its_steps_again() {
        let first = Progress { phase: Some("a".into()), step: Some(9), ..Progress::default() };
        let second = Progress { phase: Some("b".into()), step: Some(1), ..Progress::default() };
        assert_eq!(first.advance(second).step, Some(1));
        let same = Progress { step: Some(4), ..Progress::default() };
        assert_eq!(first.advance(same).step, Some(9));
    }
}
