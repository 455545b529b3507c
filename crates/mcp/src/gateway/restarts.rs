//! When the other server is started again.

use std::time::Duration;

/// The pause before the other server is started again: at first, and at most. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The pause between two starts once it was started too often.
const REST: Duration = Duration::from_secs(30);

/// After this time a connection counts as a good one.
const STABLE: Duration = Duration::from_secs(60);

/// What follows the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The other server is started again after a pause.
    Again(Duration),
    /// It ended too often: after a pause a call starts it, and nothing else.
    OnCall(Duration),
}

/// Counts how often the other server ended, one time after the other.
#[derive(Debug)]
pub(super) struct Restarts {
    most: u32,
    n_failed: u32,
}

impl Restarts {
    pub(super) const fn new(most: u32) -> Self {
        Self { most, n_failed: 0 }
    }

    /// Returns how often it ended since the last good connection.
    pub(super) const fn n_failed(&self) -> u32 {
        self.n_failed
    }

    /// Notes that a connection ended. `lived` is how long ago the handshake was over, `None` where it never
    /// was: the time that a handshake takes is no time of a good connection.
    pub(super) fn ended(&mut self, lived: Option<Duration>) -> Next {
        let was_good = lived.is_some_and(|lived| lived >= STABLE);
        self.n_failed = if was_good { 1 } else { self.n_failed.saturating_add(1) };
        if self.n_failed > self.most {
            return Next::OnCall(REST);
        }
        let doubled = FIRST_PAUSE.saturating_mul(1 << (self.n_failed - 1).min(16));
        Next::Again(doubled.min(LONGEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_answers_its_handshake_is_given_up_and_a_good_connection_counts_anew() {
        // [GATE-7]
        let mut restarts = Restarts::new(2);
        let seconds = Duration::from_secs;
        let table = [
            (None, Next::Again(FIRST_PAUSE)),
            (None, Next::Again(2 * FIRST_PAUSE)),
            (None, Next::OnCall(REST)),
            (Some(seconds(1)), Next::OnCall(REST)),
            (Some(seconds(60)), Next::Again(FIRST_PAUSE)),
            (Some(seconds(59)), Next::Again(2 * FIRST_PAUSE)),
        ];
        for (place, (lived, next)) in table.into_iter().enumerate() {
            assert_eq!(restarts.ended(lived), next, "row {place}");
        }
        assert_eq!(Restarts::new(0).ended(None), Next::OnCall(REST));
        let mut many = Restarts::new(100);
        let last = (0..50).map(|_| many.ended(None)).last();
        assert_eq!(last, Some(Next::Again(LONGEST_PAUSE)));
    }
}
