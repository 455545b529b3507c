//! Typed deadlines: instants at which the task itself changes state [STATE-5].

use crate::lifecycle::Event;
use crate::time::Timestamp;

/// The kinds of deadline; their ends differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The pause before another attempt is over.
    Backoff,
    /// The ready limit of a waiting task.
    Ready,
    /// The time a task may stand in the queue.
    QueueTimeout,
    /// The time to be accepted.
    Accept,
    /// The time to run.
    Run,
    /// The time an attempt may be silent, after a restart the time to be reattached.
    Lease,
    /// The time between a cancel and the kill.
    Grace,
    /// The time the caller has to give input.
    Input,
    /// The time a terminal task stays readable.
    Retention,
}

impl Kind {
    /// Every kind, in the order in which equal instants fire.
    pub const ALL: [Self; 9] = [
        Self::Backoff,
        Self::Ready,
        Self::QueueTimeout,
        Self::Accept,
        Self::Run,
        Self::Grace,
        Self::Lease,
        Self::Input,
        Self::Retention,
    ];

    /// Returns the event that its passing is.
    #[must_use]
    pub const fn event(self) -> Event {
        match self {
            Self::Backoff => Event::Resume,
            Self::Ready => Event::ReadyDue,
            Self::QueueTimeout => Event::QueueTimeoutDue,
            Self::Accept => Event::AcceptDue,
            Self::Run => Event::RunTimeoutDue,
            Self::Lease => Event::LeaseDue,
            Self::Grace => Event::GraceDue,
            Self::Input => Event::InputDue,
            Self::Retention => Event::RetentionDue,
        }
    }
}

/// The deadlines that are armed on a task.
///
/// A place that is not armed holds [`Timestamp::MAX`]: half the size of an option, in a value that is
/// copied with every transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Armed([Timestamp; Kind::ALL.len()]);

impl Default for Armed {
    fn default() -> Self {
        Self([Timestamp::MAX; Kind::ALL.len()])
    }
}

impl Armed {
    /// Returns the instant of one kind.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "the array has a place for every kind")]
    pub fn get(&self, kind: Kind) -> Option<Timestamp> {
        Some(self.0[kind as usize]).filter(|at| *at != Timestamp::MAX)
    }

    /// Arms one kind, or disarms it with `None`.
    #[expect(clippy::indexing_slicing, reason = "the array has a place for every kind")]
    pub fn set(&mut self, kind: Kind, at: Option<Timestamp>) {
        self.0[kind as usize] = at.unwrap_or(Timestamp::MAX);
    }

    /// Returns the earliest deadline; of equal ones the first in the order of [`Kind::ALL`].
    #[must_use]
    pub fn next(&self) -> Option<(Timestamp, Kind)> {
        // `min_by_key` keeps the first of equal elements.
        Kind::ALL
            .into_iter()
            .filter_map(|kind| self.get(kind).map(|at| (at, kind)))
            .min_by_key(|(at, _)| *at)
    }

    /// Returns the instant of the earliest deadline, whichever it is.
    #[must_use]
    pub fn earliest(&self) -> Option<Timestamp> {
        self.0.into_iter().min().filter(|at| *at != Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_deadline_comes_first_and_a_run_limit_before_a_lapsed_lease() {
        let mut armed = Armed::default();
        assert_eq!((armed.next(), armed.earliest()), (None, None));
        armed.set(Kind::Lease, Some(Timestamp::from_millis(5)));
        armed.set(Kind::Run, Some(Timestamp::from_millis(5)));
        armed.set(Kind::Grace, Some(Timestamp::from_millis(9)));
        assert_eq!(armed.next(), Some((Timestamp::from_millis(5), Kind::Run)));
        assert_eq!(armed.earliest(), Some(Timestamp::from_millis(5)));
        armed.set(Kind::Run, None);
        assert_eq!(armed.next(), Some((Timestamp::from_millis(5), Kind::Lease)));
    }
}
