//! The canonical vocabulary: the contract's own words, except that `waiting` is `queued` with a
//! `waiting_reason`.

use raincheck_core::lifecycle::State;

/// What each state is called.
const TABLE: &[(State, &str)] = &[
    (State::Waiting, "queued"),
    (State::Queued, "queued"),
    (State::Scheduled, "scheduled"),
    (State::Running, "running"),
    (State::InputRequired, "input_required"),
    (State::CancelRequested, "cancel_requested"),
    (State::Cancelling, "cancelling"),
    (State::Succeeded, "succeeded"),
    (State::Failed, "failed"),
    (State::Cancelled, "cancelled"),
    (State::TimedOut, "timed_out"),
    (State::Expired, "expired"),
];

/// Returns the word for a state.
pub(crate) fn word(state: State) -> &'static str {
    TABLE.iter().find(|(known, _)| *known == state).map_or(state.as_str(), |(_, word)| word)
}

/// Returns the states that a word stands for in a filter; `waiting` is taken as well.
pub(crate) fn states(word: &str) -> Vec<State> {
    let mut states: Vec<State> =
        TABLE.iter().filter(|(_, known)| *known == word).map(|(state, _)| *state).collect();
    if states.is_empty() {
        states.extend(State::from_word(word));
    }
    states
}

/// Returns the words that a filter may name.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    TABLE.iter().skip(1).map(|(_, word)| *word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_one_word() {
        for state in State::ALL {
            assert_eq!(TABLE.iter().filter(|(known, _)| known == state).count(), 1, "{state}");
            assert!(states(word(*state)).contains(state), "{state}");
        }
        assert_eq!(states("queued"), [State::Waiting, State::Queued]);
        assert_eq!(states("waiting"), [State::Waiting]);
        assert!(states("no_such_state").is_empty());
    }
}
