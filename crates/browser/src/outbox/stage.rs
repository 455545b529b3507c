//! In whose hands a command is.

/// Where a command is between its lease and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In the outbox; no browser has it.
    Posted,
    /// Handed to a browser, which may not begin yet.
    Delivered,
    /// A browser runs it.
    Accepted,
    /// Its outcome is here, and being committed.
    Ended,
}

/// What moves a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// A poll takes it, or takes it again.
    Deliver,
    /// The browser was told that it may begin.
    Accept,
    /// The browser said how it ended.
    End,
}

/// Every move there is.
const TABLE: &[(Stage, Move, Stage)] = &[
    (Stage::Posted, Move::Deliver, Stage::Delivered),
    (Stage::Posted, Move::Accept, Stage::Accepted),
    (Stage::Posted, Move::End, Stage::Ended),
    (Stage::Delivered, Move::Deliver, Stage::Delivered),
    (Stage::Delivered, Move::Accept, Stage::Accepted),
    (Stage::Delivered, Move::End, Stage::Ended),
    (Stage::Accepted, Move::Accept, Stage::Accepted),
    (Stage::Accepted, Move::End, Stage::Ended),
];

impl Stage {
    /// Looks up where a move leads; `None` when the stage does not have it.
    pub(crate) fn next(self, on: Move) -> Option<Self> {
        TABLE.iter().find(|(from, by, _)| (*from, *by) == (self, on)).map(|(_, _, to)| *to)
    }

    /// Tells whether nobody may have begun with it.
    pub(crate) const fn is_unaccepted(self) -> bool {
        matches!(self, Self::Posted | Self::Delivered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_browser_says_takes_a_command_on_and_nothing_gives_it_out_again() {
        // [BROWSER-9]
        for from in [Stage::Posted, Stage::Delivered] {
            assert_eq!(from.next(Move::Accept), Some(Stage::Accepted));
            assert_eq!(from.next(Move::End), Some(Stage::Ended));
        }
        assert_eq!(Stage::Accepted.next(Move::Deliver), None);
        let of_ended = [Move::Deliver, Move::Accept, Move::End].map(|on| Stage::Ended.next(on));
        assert_eq!(of_ended, [None; 3]);
    }
}
