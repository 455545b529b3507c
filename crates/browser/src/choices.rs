//! Which tab each caller works in.
//!
//! It is the tab that the caller named, opened or was answered about last, and never the one that the user
//! happens to look at. The extension remembers the same, so that a new server need not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::ids::TaskId;
use raincheck_core::scope::Scope;
use serde::Serialize;
use tokio::time::Instant;

/// How many callers it is known of which tab is theirs.
const MAX: usize = 1024;

/// How long a tab is its caller's, and is found for no other one, after that was heard of last.
const IN_USE: Duration = Duration::from_secs(600);

/// How many calls it is known of which connection they are.
const MAX_CALLS: usize = 4096;

/// Who gives commands: an owner, by one of its connections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Caller {
    owner: Box<str>,
    /// The window or session of the client; `None` when it is not known any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<Box<str>>,
}

impl Caller {
    pub(crate) fn new(scope: &Scope, connection: Option<&str>) -> Self {
        Self { owner: scope.as_str().into(), connection: connection.map(Into::into) }
    }
}

/// What is known of a caller's tab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Its commands are for this tab, of this browser where that is known.
    Tab(i64, Option<Arc<str>>),
    /// It gave its tab up: the next command takes the one in front.
    Front,
}

/// The tabs of callers.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    /// Each with the turn of the command that it is from.
    chosen: BTreeMap<Caller, (u64, Choice)>,
    /// The turns and the connections of calls that have become commands.
    calls: BTreeMap<TaskId, (u64, Arc<str>)>,
    n_calls: u64,
    /// When each caller gave a command last.
    heard: BTreeMap<Caller, Instant>,
}

impl Choices {
    /// Returns what is known of a caller's tab.
    pub(crate) fn of(&self, caller: &Caller) -> Option<&Choice> {
        self.chosen.get(caller).map(|(_, choice)| choice)
    }

    /// Returns the tab of a caller.
    pub(crate) fn tab_of(&self, caller: &Caller) -> Option<i64> {
        match self.of(caller)? {
            Choice::Tab(tab, _) => Some(*tab),
            Choice::Front => None,
        }
    }

    /// Notes what a command chose, unless a later one has chosen. With too many callers the one that has
    /// chosen longest ago is forgotten.
    pub(crate) fn choose(&mut self, caller: &Caller, by: TaskId, choice: Choice) {
        // One of an earlier server comes before all of this one.
        let by = self.calls.get(&by).map_or(0, |(turn, _)| *turn);
        if self.chosen.get(caller).is_some_and(|(before, _)| *before > by) {
            return;
        }
        if self.chosen.len() >= MAX && !self.chosen.contains_key(caller) {
            let oldest = self.chosen.iter().min_by_key(|(_, (by, _))| *by);
            if let Some(oldest) = oldest.map(|(caller, _)| caller.clone()) {
                self.chosen.remove(&oldest);
            }
        }
        let known = self.chosen.get(caller).map(|(_, known)| known);
        let choice = match (choice, known) {
            // A tab that is named alone is the one of the browser that it was known of.
            (Choice::Tab(tab, None), Some(known @ Choice::Tab(before, _))) if tab == *before => {
                known.clone()
            }
            (choice, _) => choice,
        };
        self.chosen.insert(caller.clone(), (by, choice));
    }

    /// Notes that a caller gives a command now. With too many callers the one that was heard of longest ago is
    /// forgotten.
    pub(crate) fn hear(&mut self, caller: Caller, now: Instant) {
        self.heard.insert(caller, now);
        self.heard.retain(|_, at| now.saturating_duration_since(*at) < IN_USE);
        if self.heard.len() > MAX {
            let oldest = self.heard.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(caller, _)| caller.clone()) {
                self.heard.remove(&oldest);
            }
        }
    }

    /// Returns the tabs of the other callers that gave a command not long ago.
    pub(crate) fn of_others(&self, caller: &Caller, now: Instant) -> Vec<i64> {
        let is_other = |other: &&Caller| {
            let at = self.heard.get(*other);
            *other != caller && at.is_some_and(|at| now.saturating_duration_since(*at) < IN_USE)
        };
        let others = self.chosen.keys().filter(is_other);
        let mut tabs: Vec<i64> = others.filter_map(|other| self.tab_of(other)).collect();
        tabs.sort_unstable();
        tabs.dedup();
        tabs
    }

    /// Notes of which connection a call is.
    pub(crate) fn note_call(&mut self, id: TaskId, connection: Option<&str>) {
        // Whoever has one owner and no connections is known all the same.
        self.n_calls += 1;
        self.calls.insert(id, (self.n_calls, connection.unwrap_or_default().into()));
        if self.calls.len() > MAX_CALLS {
            self.calls.pop_first();
        }
    }

    /// Returns who gave a command.
    pub(crate) fn caller_of(&self, scope: &Scope, id: TaskId) -> Caller {
        Caller::new(scope, self.calls.get(&id).map(|(_, name)| &**name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> TaskId {
        TaskId::from_parts(n, [0; 10])
    }

    fn caller(owner: usize, connection: &str) -> Caller {
        Caller::new(&Scope::new(format!("o{owner}")), Some(connection))
    }

    #[test]
    fn each_connection_has_a_tab_of_its_own_and_the_latest_command_decides() {
        // [BROWSER-19]
        let mut choices = Choices::default();
        let (one, two) = (caller(0, "one"), caller(0, "two"));
        (1..=3).for_each(|n| choices.note_call(id(n), Some("one")));
        choices.choose(&one, id(2), Choice::Tab(7, None));
        assert_eq!((choices.tab_of(&one), choices.tab_of(&two)), (Some(7), None));
        choices.choose(&one, id(1), Choice::Tab(8, None));
        assert_eq!(choices.tab_of(&one), Some(7), "an older command ended later");
        choices.choose(&one, id(3), Choice::Front);
        assert_eq!((choices.tab_of(&one), choices.of(&one)), (None, Some(&Choice::Front)));
    }

    #[test]
    fn the_tabs_of_others_are_those_of_callers_that_were_heard_of_not_long_ago() {
        // [BROWSER-53]
        let mut choices = Choices::default();
        let (one, two, new) = (caller(0, "one"), caller(1, "two"), caller(0, "new"));
        let begin = Instant::now();
        choices.choose(&one, id(1), Choice::Tab(7, None));
        choices.choose(&two, id(2), Choice::Tab(8, None));
        choices.hear(one.clone(), begin);
        choices.hear(two.clone(), begin + IN_USE / 2);
        let of = |choices: &Choices, caller, at| choices.of_others(caller, begin + at);
        assert_eq!(of(&choices, &new, IN_USE / 2), [7, 8]);
        assert_eq!(of(&choices, &one, IN_USE / 2), [8]);
        assert_eq!(of(&choices, &new, IN_USE), [8]);
        choices.choose(&two, id(3), Choice::Front);
        assert_eq!(of(&choices, &new, IN_USE), [0; 0]);
        choices.hear(new, begin + IN_USE * 2);
        assert_eq!(choices.heard.len(), 1);
    }

    #[test]
    fn with_too_many_callers_the_one_heard_of_longest_ago_is_forgotten() {
        let mut choices = Choices::default();
        let begin = Instant::now();
        for n in 0..=MAX {
            choices.hear(caller(n, ""), begin + Duration::from_millis(n as u64));
        }
        assert_eq!(choices.heard.len(), MAX);
        assert!(!choices.heard.contains_key(&caller(0, "")));
    }

    #[test]
    fn with_too_many_callers_the_oldest_choice_is_forgotten() {
        let mut choices = Choices::default();
        for n in 0..=MAX {
            choices.note_call(id(n as u64), None);
            choices.choose(&caller(n, ""), id(n as u64), Choice::Tab(7, None));
        }
        assert_eq!(choices.tab_of(&caller(0, "")), None);
        assert_eq!(choices.tab_of(&caller(1, "")), Some(7));
    }

    #[test]
    fn a_command_of_an_earlier_server_has_an_owner_and_no_connection() {
        let mut choices = Choices::default();
        let scope = Scope::new("o0");
        choices.note_call(id(1), Some("one"));
        assert_eq!(choices.caller_of(&scope, id(1)), caller(0, "one"));
        assert_eq!(choices.caller_of(&scope, id(2)), Caller::new(&scope, None));
    }
}
