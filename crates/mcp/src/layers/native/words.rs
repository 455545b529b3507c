//! The words of the extension for states, and which failures are the protocol's.

use raincheck_core::error::Kind;
use raincheck_core::lifecycle::State;

/// What a client sees of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Working,
    InputRequired,
    /// With a result; one that failed by its tool has an error result.
    Completed,
    Cancelled,
    /// With an error of the protocol, or a result, as [`is_fault`] says.
    Failed,
    /// As if it had never been.
    Unknown,
}

impl Status {
    /// Returns the word of the protocol.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// What each state is called [TASKS-4].
const TABLE: &[(State, Status)] = &[
    (State::Waiting, Status::Working),
    (State::Queued, Status::Working),
    (State::Scheduled, Status::Working),
    (State::Running, Status::Working),
    (State::InputRequired, Status::InputRequired),
    (State::CancelRequested, Status::Working),
    (State::Cancelling, Status::Working),
    (State::Succeeded, Status::Completed),
    (State::Failed, Status::Failed),
    (State::Cancelled, Status::Cancelled),
    (State::TimedOut, Status::Completed),
    (State::Expired, Status::Unknown),
];

/// The failures that no tool has answered for: what became of the work is not known, or nothing of this
/// server could run it. Any other failure is a result that says so, for the model to read.
const FAULTS: &[Kind] = &[
    Kind::WorkerLost,
    Kind::PeerLost,
    Kind::PeerIncompatible,
    Kind::InvalidResponse,
    Kind::Panicked,
    Kind::StorageUnavailable,
    Kind::UnknownTool,
];

/// Tells whether a task that failed so is `failed` with an error of JSON-RPC.
pub(super) fn is_fault(kind: Option<Kind>) -> bool {
    kind.is_none_or(|kind| FAULTS.contains(&kind))
}

/// Returns what a client is told of a task that failed with such an error, if it did.
pub(super) fn status(state: State, failure: Option<Kind>) -> Status {
    let status = TABLE.iter().find(|(known, _)| *known == state);
    let status = status.map_or(Status::Unknown, |(_, status)| *status);
    if status == Status::Failed && !is_fault(failure) { Status::Completed } else { status }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_one_word() {
        // [TASKS-4]
        for state in State::ALL {
            assert_eq!(TABLE.iter().filter(|(known, _)| known == state).count(), 1, "{state}");
        }
        let of = |state, failure| status(state, failure).as_str();
        assert_eq!(of(State::Failed, Some(Kind::ToolFailed)), "completed");
        assert_eq!(of(State::Failed, Some(Kind::PeerNotReady)), "completed");
        assert_eq!(of(State::Failed, Some(Kind::WorkerLost)), "failed");
        assert_eq!(of(State::TimedOut, Some(Kind::RunTimeout)), "completed");
        assert_eq!(of(State::CancelRequested, None), "working");
        assert_eq!(of(State::InputRequired, None), "input_required");
    }
}
