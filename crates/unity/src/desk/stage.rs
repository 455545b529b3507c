//! In whose hands a call is.

/// Where a call is between its lease and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// On its way to the connection; nothing of it was written.
    Posted,
    /// It was written, and the editor may have it.
    Sent,
    /// The editor has it.
    Accepted,
    /// The editor runs it.
    Started,
    /// It surely was not written.
    Unsent,
    /// It was written, and the editor said that it never had it.
    Disowned,
    /// The editor had it, and does not know of it any more, or will not say.
    Forgotten,
    /// Its outcome is here.
    Ended,
}

/// What moves a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// It is written now.
    Send,
    /// The connection ended before it was written.
    Return,
    /// The editor has it.
    Accept,
    /// The editor runs it.
    Start,
    /// The editor, which says what it has, does not have it.
    Disown,
    /// The editor, which does not say what it has, was lost.
    Abandon,
    /// The editor said how it ended.
    End,
}

/// Every move there is.
const TABLE: &[(Stage, Move, Stage)] = &[
    (Stage::Posted, Move::Send, Stage::Sent),
    (Stage::Posted, Move::Return, Stage::Unsent),
    (Stage::Posted, Move::Disown, Stage::Posted),
    (Stage::Posted, Move::Abandon, Stage::Posted),
    (Stage::Sent, Move::Accept, Stage::Accepted),
    (Stage::Sent, Move::Start, Stage::Started),
    (Stage::Sent, Move::Disown, Stage::Disowned),
    (Stage::Sent, Move::Abandon, Stage::Forgotten),
    (Stage::Sent, Move::End, Stage::Ended),
    (Stage::Accepted, Move::Accept, Stage::Accepted),
    (Stage::Accepted, Move::Start, Stage::Started),
    (Stage::Accepted, Move::Disown, Stage::Forgotten),
    (Stage::Accepted, Move::Abandon, Stage::Forgotten),
    (Stage::Accepted, Move::End, Stage::Ended),
    (Stage::Started, Move::Accept, Stage::Started),
    (Stage::Started, Move::Start, Stage::Started),
    (Stage::Started, Move::Disown, Stage::Forgotten),
    (Stage::Started, Move::Abandon, Stage::Forgotten),
    (Stage::Started, Move::End, Stage::Ended),
];

impl Stage {
    /// Looks up where a move leads; `None` when the stage does not have it.
    pub(crate) fn next(self, on: Move) -> Option<Self> {
        TABLE.iter().find(|(from, by, _)| (*from, *by) == (self, on)).map(|(_, _, to)| *to)
    }

    /// Tells whether the editor may have it and has not ended it.
    pub(crate) const fn is_under_way(self) -> bool {
        matches!(self, Self::Sent | Self::Accepted | Self::Started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_not_accepted_can_surely_not_have_begun() {
        // [LEASE-5] [LEASE-9]
        assert_eq!(Stage::Posted.next(Move::Return), Some(Stage::Unsent));
        assert_eq!(Stage::Sent.next(Move::Return), None, "what was written may be there");
        assert_eq!(Stage::Sent.next(Move::Disown), Some(Stage::Disowned));
        for stage in [Stage::Accepted, Stage::Started] {
            assert_eq!(stage.next(Move::Disown), Some(Stage::Forgotten));
            assert_eq!(stage.next(Move::Return), None);
        }
        assert_eq!(Stage::Sent.next(Move::Abandon), Some(Stage::Forgotten));
    }

    #[test]
    fn what_is_over_moves_no_more() {
        for stage in [Stage::Unsent, Stage::Disowned, Stage::Forgotten, Stage::Ended] {
            for on in [
                Move::Send,
                Move::Return,
                Move::Accept,
                Move::Start,
                Move::Disown,
                Move::Abandon,
                Move::End,
            ] {
                assert_eq!(stage.next(on), None, "{stage:?} {on:?}");
            }
        }
    }
}
