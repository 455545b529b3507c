//! When a failed attempt is followed by another [RETRY-1, LEASE-3].

use std::time::Duration;

use crate::error::Kind;
use crate::ids::TaskId;

/// The longest pause between two attempts.
pub const MAX_BACKOFF: Duration = Duration::from_secs(3600);

/// The retry policy of a task; the default runs it once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// How many attempts there may be in all, at least 1.
    pub max_attempts: u32,
    /// The pause before the second attempt; it doubles for each further one.
    pub backoff: Duration,
    /// The kinds of failure that are worth another attempt.
    pub on: Vec<Kind>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { max_attempts: 1, backoff: Duration::from_secs(5), on: Vec::new() }
    }
}

impl Policy {
    /// Tells whether a failure of `kind` in attempt number `attempt` leads to another one.
    ///
    /// A lost worker also counts for a tool that declares itself idempotent [LEASE-3].
    #[must_use]
    pub fn permits(&self, kind: Kind, attempt: u32, is_idempotent: bool) -> bool {
        let lost = matches!(kind, Kind::WorkerLost | Kind::PeerLost);
        attempt < self.max_attempts && (self.on.contains(&kind) || (lost && is_idempotent))
    }

    /// Returns the pause after attempt number `attempt` (from 1): exponential, capped, and spread
    /// over 75 to 100 per cent by bits of the identity, so that equal failures do not march in step.
    #[must_use]
    pub fn pause(&self, task: TaskId, attempt: u32) -> Duration {
        let doubled = self.backoff.saturating_mul(1 << attempt.saturating_sub(1).min(20));
        let [.., spread] = (task.bits() >> (attempt % 48)).to_be_bytes();
        doubled.min(MAX_BACKOFF).mul_f64(0.75 + f64::from(spread) / 1024.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_nothing_is_run_again() {
        assert!(!Policy::default().permits(Kind::WorkerLost, 1, true));
    }

    #[test]
    fn attempts_are_limited_and_kinds_are_named() {
        let policy = Policy { max_attempts: 3, on: vec![Kind::ToolFailed], ..Policy::default() };
        assert!(policy.permits(Kind::ToolFailed, 2, false));
        assert!(!policy.permits(Kind::ToolFailed, 3, false));
        assert!(!policy.permits(Kind::WorkerLost, 1, false));
        assert!(policy.permits(Kind::WorkerLost, 1, true));
    }

    #[test]
    fn the_pause_doubles_up_to_its_cap() {
        let policy = Policy { backoff: Duration::from_secs(4), ..Policy::default() };
        let id = TaskId::from_parts(1, [0; 10]);
        assert_eq!(policy.pause(id, 1), Duration::from_secs(3));
        assert!(policy.pause(id, 2) >= Duration::from_secs(6));
        assert!(policy.pause(id, 4000) <= MAX_BACKOFF);
    }
}
