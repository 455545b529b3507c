//! The messages of the native protocol, read and written. Everything that an editor sends is data.

pub(crate) mod chunks;
pub(crate) mod inbound;
pub(crate) mod lenient;
pub(crate) mod outbound;
pub(crate) mod outcome;
pub(crate) mod proof;

use std::fmt;
use std::str::FromStr;

use raincheck_core::ids::{Spelling, TaskId};
use raincheck_core::text;

/// The version of the protocol.
pub(crate) const PROTOCOL: u64 = 1;

/// The most bytes of a name that an editor gives itself or anything else.
const MAX_NAME: usize = 64;

/// The most bytes of a path.
const MAX_PATH: usize = 1024;

/// A call as the wire names it: `<task>.<attempt>` [LEASE-1].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RequestId {
    pub(crate) task: TaskId,
    pub(crate) attempt: u32,
}

/// A text that names no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotARequest;

impl FromStr for RequestId {
    type Err = NotARequest;

    fn from_str(text: &str) -> Result<Self, NotARequest> {
        let (task, attempt) = text.rsplit_once('.').ok_or(NotARequest)?;
        let is_plain = attempt.bytes().all(|b| b.is_ascii_digit()) && !attempt.starts_with('0');
        Ok(Self {
            task: task.parse().map_err(|_| NotARequest)?,
            attempt: attempt.parse().ok().filter(|_| is_plain).ok_or(NotARequest)?,
        })
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.task.spell(Spelling::Uuid), self.attempt)
    }
}

impl serde::Serialize for RequestId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What an editor does, as it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditorState {
    Ready,
    Compiling,
    Reloading,
    Importing,
    EnteringPlayMode,
    Playing,
    Paused,
    ExitingPlayMode,
    RunningTests,
    Building,
    Blocked,
    Quitting,
}

/// Every state, its word, and why a call waits in it.
const STATES: &[(EditorState, &str, Option<&str>)] = &[
    (EditorState::Ready, "ready", None),
    (EditorState::Compiling, "compiling", Some("compiling")),
    (EditorState::Reloading, "reloading", Some("reloading")),
    (EditorState::Importing, "importing", Some("busy")),
    (EditorState::EnteringPlayMode, "entering_play_mode", Some("busy")),
    (EditorState::Playing, "playing", None),
    (EditorState::Paused, "paused", None),
    (EditorState::ExitingPlayMode, "exiting_play_mode", Some("busy")),
    (EditorState::RunningTests, "running_tests", None),
    (EditorState::Building, "building", Some("busy")),
    (EditorState::Blocked, "blocked", Some("busy")),
    (EditorState::Quitting, "quitting", Some("busy")),
];

impl EditorState {
    /// Finds the state that a word stands for.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        STATES.iter().find(|(_, known, _)| *known == word).map(|(state, ..)| *state)
    }

    fn row(self) -> Option<&'static (Self, &'static str, Option<&'static str>)> {
        STATES.iter().find(|(state, ..)| *state == self)
    }

    /// Returns the word of the wire.
    pub(crate) fn as_str(self) -> &'static str {
        self.row().map_or("ready", |(_, word, _)| word)
    }

    /// Returns why a call waits while the editor is in this state; `None` when it need not.
    pub(crate) fn waits_because(self) -> Option<&'static str> {
        self.row().and_then(|(.., reason)| *reason)
    }

    /// Tells whether the editor is about to lose its code and its connection.
    pub(crate) const fn is_compiling(self) -> bool {
        matches!(self, Self::Compiling | Self::Reloading)
    }
}

/// Makes a name of what an editor calls itself: short, on one line, without marks that act.
pub(crate) fn name(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || " _-.()#+:".contains(c);
    let text: String = text.chars().map(|c| if plain(c) { c } else { '?' }).collect();
    text::clip(text.trim(), MAX_NAME).to_owned()
}

/// Makes a path of what an editor says its project's is.
pub(crate) fn path(text: &str) -> String {
    let text = text::escape(text::clip(text, MAX_PATH)).into_owned();
    let trimmed = text.trim_end_matches(['/', '\\']);
    if trimmed.is_empty() { text } else { trimmed.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_its_task_and_attempt_in_any_spelling() {
        // [LEASE-1] [ID-1]
        let task = TaskId::from_parts(1_700_000_000_000, [7; 10]);
        let request = RequestId { task, attempt: 12 };
        assert_eq!(request.to_string().parse(), Ok(request));
        for spelling in [Spelling::Task, Spelling::Job, Spelling::Correlation] {
            assert_eq!(format!("{}.12", task.spell(spelling)).parse(), Ok(request));
        }
        for bad in
            ["", "ghost", "ghost.1", &task.to_string(), &format!("{task}."), &format!("{task}.+1")]
        {
            assert_eq!(bad.parse::<RequestId>(), Err(NotARequest), "{bad}");
        }
    }

    #[test]
    fn every_state_has_a_word_and_only_known_words_are_states() {
        // [UNITY-4]
        for (state, word, _) in STATES {
            assert_eq!(EditorState::from_word(word), Some(*state));
            assert_eq!(state.as_str(), *word);
        }
        assert_eq!(EditorState::from_word("kit_unheard_of"), None);
    }

    #[test]
    fn names_of_editors_are_short_and_say_nothing_to_a_terminal() {
        // [SEC-10]
        assert_eq!(name("My Game\u{1b}[2J\u{202e}"), "My Game??2J?");
        assert_eq!(name(&"x".repeat(500)).len(), 64);
        assert_eq!(path("/a b/Ünï #1/Proj/"), "/a b/Ünï #1/Proj");
    }
}
