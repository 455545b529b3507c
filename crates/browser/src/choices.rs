//! Which tab each caller works in.
//!
//! It is the tab that the caller named, opened or was answered about last, and never the one that the user
//! happens to look at. The extension remembers the same, so that a new server need not.

use std::collections::{BTreeMap, BTreeSet};
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

/// How many commands of a caller may have named a tab and not have ended; of more the oldest count no more.
const MAX_NAMED: usize = 64;

/// Of how many calls it is known whose they are before those that have ended are forgotten.
const MAX_CALLS: usize = 4096;

/// How many of the newest calls are kept whatever the store knows of them: it may be about to.
const NEWEST: u64 = 1024;

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

impl Choice {
    /// Tells whether it may be a tab of a browser, or of any where none is named.
    pub(crate) fn is_in(&self, wanted: Option<&str>) -> bool {
        match (self, wanted) {
            (Self::Tab(_, Some(browser)), Some(wanted)) => **browser == *wanted,
            (Self::Tab(..) | Self::Front, _) => true,
        }
    }

    /// Returns the tab, where it is one.
    pub(crate) const fn tab(&self) -> Option<i64> {
        match self {
            Self::Tab(tab, _) => Some(*tab),
            Self::Front => None,
        }
    }
}

/// What a call named, while it is not known whether its command was done there.
#[derive(Debug)]
struct Named {
    turn: u64,
    by: TaskId,
    choice: Choice,
}

/// What is known of a call that became a command.
#[derive(Debug)]
struct Given {
    turn: u64,
    owner: Scope,
    connection: Arc<str>,
    /// The tab of its caller when it was given; what is named later is not for it.
    tab: Option<Choice>,
}

/// The tabs of callers.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    /// Each with the turn of the command that it is from.
    chosen: BTreeMap<Caller, (u64, Choice)>,
    /// What each caller named in commands that have not ended, in the order of their turns.
    named: BTreeMap<Caller, Vec<Named>>,
    calls: BTreeMap<TaskId, Given>,
    /// How many of them were under way when those that had ended were forgotten last.
    n_kept: usize,
    n_calls: u64,
    /// When each caller gave a command last.
    heard: BTreeMap<Caller, Instant>,
}

impl Choices {
    /// Returns what is known of a caller's tab: what it named last, also while that command has not ended.
    pub(crate) fn of(&self, caller: &Caller) -> Option<&Choice> {
        self.without(caller, &[])
    }

    /// Returns the same, apart from what these commands named.
    pub(crate) fn without(&self, caller: &Caller, unknown: &[TaskId]) -> Option<&Choice> {
        self.before(caller, u64::MAX, unknown)
    }

    /// Returns what was known of a caller's tab when it gave a command, or came to be known since by
    /// commands that it gave before that one.
    pub(crate) fn of_call(&self, caller: &Caller, id: TaskId) -> Option<&Choice> {
        let Some(given) = self.calls.get(&id) else { return self.of(caller) };
        given.tab.as_ref().or_else(|| self.before(caller, given.turn, &[]))
    }

    fn before(&self, caller: &Caller, turn: u64, unknown: &[TaskId]) -> Option<&Choice> {
        let chosen = self.chosen.get(caller).filter(|(by, _)| *by < turn);
        let after = chosen.map_or(0, |(by, _)| *by);
        let named = self.named.get(caller).into_iter().flatten().rev();
        let counts =
            |named: &&Named| (after..turn).contains(&named.turn) && !unknown.contains(&named.by);
        let mut named = named.filter(counts);
        named.next().map(|named| &named.choice).or(chosen.map(|(_, choice)| choice))
    }

    /// Notes which tab a call names: it is the caller's for what follows, unless its command turns out to be
    /// [refused](Self::refuse). With too many callers the one that has named one longest ago is forgotten.
    pub(crate) fn name(&mut self, caller: &Caller, by: TaskId, choice: Choice) {
        let turn = self.turn_of(by);
        let choice = completed(choice, self.of_call(caller, by));
        let is_new = !self.named.contains_key(caller);
        if is_new && self.named.len() >= MAX {
            let last = |(_, named): &(&Caller, &Vec<Named>)| named.last().map(|last| last.turn);
            let oldest = self.named.iter().min_by_key(last);
            if let Some(oldest) = oldest.map(|(caller, _)| caller.clone()) {
                self.named.remove(&oldest);
            }
        }
        let named = self.named.entry(caller.clone()).or_default();
        named.push(Named { turn, by, choice });
        if named.len() > MAX_NAMED {
            named.remove(0);
        }
    }

    /// Returns the command that a caller's tab hangs on, apart from these, where that has not ended as far as
    /// is known.
    pub(crate) fn in_doubt(&self, caller: &Caller, unknown: &[TaskId]) -> Option<TaskId> {
        let after = self.chosen.get(caller).map_or(0, |(by, _)| *by);
        let mut named = self.named.get(caller)?.iter().rev();
        let last = named.find(|named| !unknown.contains(&named.by))?;
        (last.turn >= after).then_some(last.by)
    }

    /// Notes that a command did nothing in the tab that it named.
    pub(crate) fn refuse(&mut self, caller: &Caller, by: TaskId) {
        self.end(caller, by);
    }

    /// Notes that a command began in the tab that it named.
    pub(crate) fn confirm(&mut self, caller: &Caller, by: TaskId) {
        if let Some(choice) = self.end(caller, by) {
            self.choose(caller, by, choice);
        }
    }

    fn end(&mut self, caller: &Caller, by: TaskId) -> Option<Choice> {
        let named = self.named.get_mut(caller)?;
        let place = named.iter().position(|named| named.by == by)?;
        let ended = named.remove(place);
        if named.is_empty() {
            self.named.remove(caller);
        }
        Some(ended.choice)
    }

    /// Notes what a command chose, unless a later one has chosen. With too many callers the one that has
    /// chosen longest ago is forgotten.
    pub(crate) fn choose(&mut self, caller: &Caller, by: TaskId, choice: Choice) {
        self.end(caller, by);
        let by = self.turn_of(by);
        if self.chosen.get(caller).is_some_and(|(before, _)| *before > by) {
            return;
        }
        if self.chosen.len() >= MAX && !self.chosen.contains_key(caller) {
            let oldest = self.chosen.iter().min_by_key(|(_, (by, _))| *by);
            if let Some(oldest) = oldest.map(|(caller, _)| caller.clone()) {
                self.chosen.remove(&oldest);
            }
        }
        let choice = completed(choice, self.of(caller));
        self.chosen.insert(caller.clone(), (by, choice));
    }

    /// One of an earlier server comes before all of this one.
    fn turn_of(&self, by: TaskId) -> u64 {
        self.calls.get(&by).map_or(0, |given| given.turn)
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
        let others = self.chosen.keys().chain(self.named.keys()).filter(is_other);
        let mut tabs: Vec<i64> = others.filter_map(|other| self.of(other)?.tab()).collect();
        tabs.sort_unstable();
        tabs.dedup();
        tabs
    }

    /// Notes of which connection a call is, and which tab is its caller's `own` without it.
    pub(crate) fn note_call(&mut self, id: TaskId, caller: &Caller, own: Option<Choice>) {
        self.n_calls += 1;
        let tab = own.filter(|own| own.tab().is_some());
        let connection = caller.connection.as_deref().unwrap_or_default().into();
        let owner = Scope::new(&*caller.owner);
        self.calls.insert(id, Given { turn: self.n_calls, owner, connection, tab });
    }

    /// Returns the owners of calls, once there are so many that those which have ended are to be forgotten, and
    /// the number of the last call.
    pub(crate) fn crowd(&self) -> Option<(BTreeSet<Scope>, u64)> {
        if self.calls.len() < MAX_CALLS.max(self.n_kept.saturating_mul(2)) {
            return None;
        }
        let owners = self.calls.values().map(|given| given.owner.clone());
        Some((owners.collect(), self.n_calls))
    }

    /// Forgets the calls that are not under way, but for the newest before a number, and those after it.
    pub(crate) fn keep(&mut self, live: &BTreeSet<TaskId>, until: u64) {
        let oldest = until.saturating_sub(NEWEST);
        self.calls.retain(|id, given| given.turn > oldest || live.contains(id));
        self.n_kept = self.calls.len();
    }

    /// Forgets calls that became no tasks, or of whose tasks nothing is kept any more.
    pub(crate) fn forget(&mut self, ids: &[TaskId]) {
        for id in ids {
            if let Some(Given { owner, connection, .. }) = self.calls.remove(id) {
                self.refuse(&Caller::new(&owner, Some(&connection)), *id);
            }
        }
    }

    /// Returns by which connection a command was given, where that is known.
    pub(crate) fn connection_of(&self, id: TaskId) -> Option<Arc<str>> {
        self.calls.get(&id).map(|given| Arc::clone(&given.connection))
    }

    /// Returns who gave a command.
    pub(crate) fn caller_of(&self, scope: &Scope, id: TaskId) -> Caller {
        Caller::new(scope, self.calls.get(&id).map(|given| &*given.connection))
    }
}

/// A tab that is named alone is the one of the browser that it was known of.
fn completed(choice: Choice, known: Option<&Choice>) -> Choice {
    match (choice, known) {
        (Choice::Tab(tab, None), Some(known)) if known.tab() == Some(tab) => known.clone(),
        (choice, _) => choice,
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

    fn tab_of(choices: &Choices, caller: &Caller) -> Option<i64> {
        choices.of(caller)?.tab()
    }

    #[test]
    fn each_connection_has_a_tab_of_its_own_and_the_latest_command_decides() {
        // [BROWSER-19]
        let mut choices = Choices::default();
        let (one, two) = (caller(0, "one"), caller(0, "two"));
        (1..=3).for_each(|n| choices.note_call(id(n), &one, None));
        choices.choose(&one, id(2), Choice::Tab(7, None));
        assert_eq!((tab_of(&choices, &one), tab_of(&choices, &two)), (Some(7), None));
        choices.choose(&one, id(1), Choice::Tab(8, None));
        assert_eq!(tab_of(&choices, &one), Some(7), "an older command ended later");
        choices.choose(&one, id(3), Choice::Front);
        assert_eq!((tab_of(&choices, &one), choices.of(&one)), (None, Some(&Choice::Front)));
    }

    #[test]
    fn what_was_named_counts_until_it_is_refused_and_no_longer_than_a_later_choice() {
        // [BROWSER-70]
        let mut choices = Choices::default();
        let one = caller(0, "one");
        for n in 1..=4 {
            choices.note_call(id(n), &one, None);
        }
        choices.choose(&one, id(1), Choice::Tab(7, None));
        choices.name(&one, id(2), Choice::Tab(8, None));
        choices.name(&one, id(3), Choice::Tab(9, None));
        assert_eq!((tab_of(&choices, &one), choices.in_doubt(&one, &[])), (Some(9), Some(id(3))));
        choices.refuse(&one, id(3));
        assert_eq!((tab_of(&choices, &one), choices.in_doubt(&one, &[])), (Some(8), Some(id(2))));
        choices.choose(&one, id(4), Choice::Front);
        assert_eq!((choices.of(&one), choices.in_doubt(&one, &[])), (Some(&Choice::Front), None));
        choices.confirm(&one, id(2));
        assert_eq!(choices.of(&one), Some(&Choice::Front), "it was named earlier");
        assert!(choices.named.is_empty());
    }

    #[test]
    fn of_what_was_named_and_has_not_ended_only_so_much_is_kept() {
        // [BROWSER-70]
        let mut choices = Choices::default();
        for n in 0..=MAX {
            choices.name(&caller(n, ""), id(n as u64), Choice::Tab(7, None));
        }
        assert_eq!(choices.named.len(), MAX);
        let last = caller(1, "");
        for n in 0..=MAX_NAMED {
            choices.name(&last, id(n as u64), Choice::Tab(8, None));
        }
        choices.name(&last, id(0), Choice::Tab(9, None));
        let named = choices.named.values().map(Vec::len).max();
        assert_eq!((named, tab_of(&choices, &last)), (Some(MAX_NAMED), Some(9)));
    }

    #[test]
    fn of_too_many_callers_that_named_tabs_the_one_that_did_longest_ago_is_forgotten() {
        // [BROWSER-70]
        let mut choices = Choices::default();
        let numbers = (MAX / 2..=MAX).chain(0..MAX / 2);
        for (turn, n) in numbers.clone().enumerate() {
            choices.note_call(id(turn as u64), &caller(n, ""), None);
            choices.name(&caller(n, ""), id(turn as u64), Choice::Tab(7, None));
        }
        let gone: Vec<_> =
            numbers.filter(|n| tab_of(&choices, &caller(*n, "")).is_none()).collect();
        assert_eq!(gone, [MAX / 2]);
    }

    #[test]
    fn what_became_no_task_chose_no_tab_and_what_may_become_one_is_passed_over() {
        // [BROWSER-70]
        let mut choices = Choices::default();
        let one = caller(0, "one");
        for n in 1..=3 {
            choices.note_call(id(n), &one, None);
            choices.name(&one, id(n), Choice::Tab(i64::try_from(n).expect("small"), None));
        }
        assert_eq!(choices.without(&one, &[id(3)]), Some(&Choice::Tab(2, None)));
        assert_eq!(choices.in_doubt(&one, &[id(3)]), Some(id(2)));
        assert_eq!(choices.of(&one), Some(&Choice::Tab(3, None)));
        choices.forget(&[id(3), id(4)]);
        assert_eq!(choices.of(&one), Some(&Choice::Tab(2, None)));
        assert_eq!(choices.calls.len(), 2);
    }

    #[test]
    fn of_many_calls_those_that_are_under_way_and_the_newest_are_known() {
        // [BROWSER-71]
        let mut choices = Choices::default();
        let most = MAX_CALLS as u64;
        for n in 0..most {
            assert_eq!(choices.crowd(), None);
            choices.note_call(id(n), &caller(0, "one"), None);
        }
        let (owners, until) = choices.crowd().expect("many");
        assert_eq!((owners, until), ([Scope::new("o0")].into(), most));
        choices.note_call(id(most), &caller(0, "one"), None);
        choices.keep(&[id(1)].into(), until);
        let known = [1, most - NEWEST, most].map(|n| choices.connection_of(id(n)).is_some());
        assert_eq!((known, choices.calls.len() as u64), ([true; 3], NEWEST + 2));
        assert_eq!(choices.connection_of(id(most - NEWEST - 1)), None);
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
            let caller = caller(n, "");
            choices.note_call(id(n as u64), &caller, None);
            choices.choose(&caller, id(n as u64), Choice::Tab(7, None));
        }
        assert_eq!(tab_of(&choices, &caller(0, "")), None);
        assert_eq!(tab_of(&choices, &caller(1, "")), Some(7));
    }

    #[test]
    fn a_command_of_an_earlier_server_has_an_owner_and_no_connection() {
        let mut choices = Choices::default();
        let scope = Scope::new("o0");
        choices.note_call(id(1), &caller(0, "one"), None);
        assert_eq!(choices.caller_of(&scope, id(1)), caller(0, "one"));
        assert_eq!(choices.caller_of(&scope, id(2)), Caller::new(&scope, None));
    }
}
