//! The vocabulary of operations: `running` and three ends; beside it the words for states of jobs.

use serde::Deserialize;

use raincheck_core::error::{Error, Kind};
use raincheck_core::lifecycle::State;

use super::Bridge;

/// What each state is called: the status of an operation, and the state of a job.
const TABLE: &[(State, &str, &str)] = &[
    (State::Waiting, "running", "waiting_editor_ready"),
    (State::Queued, "running", "queued"),
    (State::Scheduled, "running", "queued"),
    (State::Running, "running", "running"),
    (State::InputRequired, "running", "running"),
    (State::CancelRequested, "running", "running"),
    (State::Cancelling, "running", "running"),
    (State::Succeeded, "completed", "succeeded"),
    (State::Failed, "error", "failed"),
    (State::Cancelled, "error", "cancelled"),
    (State::TimedOut, "error", "timeout"),
    (State::Expired, "not_found", "expired"),
];

/// Returns the status of an operation.
pub(super) fn status(state: State) -> &'static str {
    row(state).map_or(state.as_str(), |(_, status, _)| status)
}

/// Returns the state of a job.
pub(super) fn job(state: State) -> &'static str {
    row(state).map_or(state.as_str(), |(_, _, job)| job)
}

fn row(state: State) -> Option<&'static (State, &'static str, &'static str)> {
    TABLE.iter().find(|(known, ..)| *known == state)
}

/// Returns the states that a word of either vocabulary stands for in a filter; none for a word of
/// neither.
pub(super) fn states(word: &str) -> Vec<State> {
    let named = |of: fn(State) -> &'static str| {
        State::ALL.iter().copied().filter(move |state| of(*state) == word)
    };
    // `running` is both: the status of everything that has not ended.
    let found: Vec<State> = named(status).collect();
    if !found.is_empty() {
        return found;
    }
    let jobs: Vec<State> = named(job).collect();
    if jobs.is_empty() { State::from_word(word).into_iter().collect() } else { jobs }
}

/// The words that a filter may name.
pub(super) const FILTERS: &[&str] = &[
    "running",
    "completed",
    "error",
    "waiting_editor_ready",
    "queued",
    "succeeded",
    "failed",
    "timeout",
    "cancelled",
];

/// Returns the word for a failure: the first of its kind, unless its reason has a word of its own.
pub(super) fn code(error: &Error) -> &'static str {
    /// Why what is needed was not ready.
    #[derive(Deserialize)]
    struct Why {
        reason: String,
    }

    let words = error.kind.entry().unity;
    let usual = words.first().copied().unwrap_or(error.kind.as_str());
    if error.kind != Kind::PeerNotReady {
        return usual;
    }
    let why = error.details.as_ref().and_then(|details| details.read::<Why>().ok());
    let place = match why.as_ref().map(|why| why.reason.as_str()) {
        Some("disconnected") => 1,
        Some("compiling") => 2,
        Some(_) | None => 0,
    };
    words.get(place).copied().unwrap_or(usual)
}

/// Next steps where the table's are too general.
const HINTS: &[(Kind, &str)] = &[
    (Kind::NotFound, "check the log_id, or call list_operations"),
    (Kind::Expired, "its result is not kept any more; call the tool again if you still need it"),
    (Kind::IdempotencyConflict, "use a new client_request_id for other inputs"),
    (
        Kind::PeerLost,
        "look at what it already did, such as with read_console, before you call it again",
    ),
    (
        Kind::WorkerLost,
        "look at what it already did, such as with read_console, before you call it again",
    ),
    (
        Kind::RunTimeout,
        "look at what it already did, such as with read_console, before you call it again",
    ),
    (
        Kind::ToolFailed,
        "read the message, look at read_console, correct the cause and call it again",
    ),
    (Kind::Cancelled, "call it again if it is still needed"),
];

/// Says of a failure to reach the other end what the bridge knows about that.
pub(super) fn of_bridge(error: Error, bridge: &dyn Bridge) -> Error {
    /// Why the operation waited.
    #[derive(Deserialize)]
    struct Waited {
        waiting_reason: String,
    }

    if error.kind != Kind::PeerNotReady {
        return error;
    }
    let why = error.details.as_ref().and_then(|details| details.read::<Waited>().ok());
    let next = why.and_then(|why| bridge.not_ready(&why.waiting_reason));
    let message = error.message.replacen("the peer", bridge.whose(), 1);
    let error = Error { message: message.into(), ..error };
    match next {
        Some(next) if error.hint.is_none() => error.with_hint(next),
        Some(_) | None => error,
    }
}

/// Returns the next step after a failure.
pub(super) fn hint(error: &Error) -> String {
    let own = HINTS.iter().find(|(kind, _)| *kind == error.kind).map(|(_, hint)| *hint);
    // Words for the usual case of a kind do not fit where more may have run than that [LEASE-9].
    let is_usual = error.hint.is_none() && error.recovery() == error.kind.entry().recovery;
    own.filter(|_| is_usual).unwrap_or(error.hint()).to_owned()
}

#[cfg(test)]
mod tests {
    use raincheck_core::content::Json;

    use super::*;

    #[test]
    fn every_state_has_one_word_of_each_vocabulary() {
        // [OPS-1]
        for state in State::ALL {
            assert_eq!(TABLE.iter().filter(|(known, ..)| known == state).count(), 1, "{state}");
        }
        assert!(State::ALL.iter().all(|state| states(status(*state)).contains(state)));
    }

    #[test]
    fn a_filter_takes_the_words_of_both_vocabularies() {
        assert_eq!(states("queued"), [State::Queued, State::Scheduled]);
        assert_eq!(states("running").len(), 7);
        assert_eq!(states("error"), [State::Failed, State::Cancelled, State::TimedOut]);
        assert_eq!(states("timeout"), [State::TimedOut]);
        assert_eq!(states("waiting"), [State::Waiting]);
        assert!(states("no_such_state").is_empty());
        assert!(FILTERS.iter().all(|word| !states(word).is_empty()));
    }

    #[test]
    fn a_peer_that_is_not_ready_is_told_by_its_reason() {
        let error = |reason: &str| {
            let details = Json::of(&serde_json::json!({ "reason": reason })).expect("JSON");
            Error::new(Kind::PeerNotReady, "words").with_details(details)
        };
        for (reason, word) in [
            ("disconnected", "ERR_UNITY_DISCONNECTED"),
            ("compiling", "ERR_COMPILE_TIMEOUT"),
            ("owned_elsewhere", "ERR_EDITOR_NOT_READY"),
        ] {
            assert_eq!(code(&error(reason)), word, "{reason}");
        }
        assert_eq!(code(&Error::new(Kind::PeerNotReady, "words")), "ERR_EDITOR_NOT_READY");
        assert_eq!(code(&Error::new(Kind::ToolFailed, "words")), "ERR_UNITY_EXECUTION");
    }
}
