//! The browser vocabulary: a command is queued, pending, or ended in one of five ways.

use raincheck_core::error::{Error, Kind};
use raincheck_core::lifecycle::State;
use raincheck_core::task::WaitReason;

/// What each state is called by the call that made the command, and by one that reads it.
const TABLE: &[(State, &str, &str)] = &[
    (State::Waiting, "queued", "pending"),
    (State::Queued, "queued", "pending"),
    (State::Scheduled, "queued", "pending"),
    (State::Running, "pending", "pending"),
    (State::InputRequired, "pending", "pending"),
    (State::CancelRequested, "pending", "pending"),
    (State::Cancelling, "pending", "pending"),
    (State::Succeeded, "complete", "complete"),
    (State::Failed, "error", "error"),
    (State::Cancelled, "cancelled", "cancelled"),
    (State::TimedOut, "timeout", "timeout"),
    (State::Expired, "expired", "expired"),
];

/// Why a command waits while no browser is there, in the bridge's word.
pub(super) const WAITING_FOR_BROWSER: WaitReason = WaitReason::new("waiting_for_browser");

/// Who is told the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// The caller that made the command.
    Submitter,
    /// A caller that reads it.
    Reader,
}

/// Returns the word for a state.
pub(crate) fn word(state: State, to: To) -> &'static str {
    let record = TABLE.iter().find(|(known, ..)| *known == state);
    record.map_or(state.as_str(), |(_, submitter, reader)| match to {
        To::Submitter => submitter,
        To::Reader => reader,
    })
}

/// Returns the word for a kind of failure: the browser vocabulary's own where it has one.
pub(crate) fn code(kind: Kind) -> &'static str {
    let entry = kind.entry();
    entry.browser.unwrap_or(entry.code)
}

/// Next steps in the words of a browser's user, where the table's are too general.
const HINTS: &[(Kind, &str)] = &[
    (
        Kind::AcceptTimeout,
        "the extension did not take the command in time; observe health tells whether a browser is \
         connected, wait_for_browser_ms waits longer for one",
    ),
    (
        Kind::RunTimeout,
        "look at the page for what it already did, then give a longer timeout_ms; cancel {correlation_id, \
         reload: true} ends it for good where it may go on",
    ),
    (Kind::PeerLost, "look at the page for what it already did before you run it again"),
    (
        Kind::ToolFailed,
        "read the message, look at observe snapshot or console, and correct the call",
    ),
    (Kind::NotFound, "check the correlation_id, or call observe pending_commands"),
    (Kind::Expired, "its result is not kept any more; run it again if you still need it"),
];

/// Returns the next step after a failure.
pub(crate) fn hint(error: &Error) -> String {
    let own = HINTS.iter().find(|(kind, _)| *kind == error.kind).map(|(_, hint)| *hint);
    // Words for the usual case of a kind do not fit where more may have run than that [LEASE-9].
    let is_usual = error.hint.is_none() && error.recovery() == error.kind.entry().recovery;
    own.filter(|_| is_usual).unwrap_or(error.hint()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_one_word_for_each_reader() {
        // [BROWSER-3]
        for state in State::ALL {
            assert_eq!(TABLE.iter().filter(|(known, ..)| known == state).count(), 1, "{state}");
        }
        assert_eq!(word(State::Queued, To::Submitter), "queued");
        assert_eq!(word(State::Queued, To::Reader), "pending");
    }
}
