//! What happened in a world, and the judge of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use raincheck_core::content::Content;
use raincheck_core::error::Guarantee;
use raincheck_core::ids::{Spelling, TaskId};
use raincheck_core::lifecycle::State;
use raincheck_core::task::{Outcome, TaskEvent, TaskRecord};
use raincheck_runtime::View;

pub(crate) type Log = Arc<Mutex<History>>;

/// What has to happen in some world, or the weather is too fine.
pub(crate) const WORTH_MEETING: &[&str] = &[
    "a command that succeeded",
    "a command that timed out",
    "a command that nobody accepted",
    "a command that was cancelled in line",
    "a command that was cancelled while it ran",
    "a result that won over a cancel",
    "a lost browser",
    "a lost worker",
    "a late result",
    "a delivery that came twice",
    "a command that was given back",
    "a command that outlived its server",
    "a post that could not be stored",
    "a script that went on and was ended with its page",
];

/// The numbers of ends for good begin here.
const OF_ENDS: usize = 1000;

/// A command, as its caller knows it.
#[derive(Debug)]
struct Command {
    number: usize,
    tab: i64,
    seq: u64,
    was_cancelled_in_line: bool,
    /// The command that it ends for good, where it does that.
    ends: Option<String>,
    /// The last view of it.
    seen: Option<View>,
}

/// One run of a script in a page.
#[derive(Debug)]
struct Effect {
    id: String,
    tab: i64,
    begun: Duration,
    ended: Option<Duration>,
}

/// Everything that happened.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) trace: Vec<String>,
    pub(crate) complaints: Vec<String>,
    pub(crate) met: BTreeSet<&'static str>,
    pub(crate) is_all_called: bool,
    pub(crate) is_over: bool,
    is_healed: bool,
    commands: BTreeMap<TaskId, Command>,
    effects: Vec<Effect>,
    /// The scripts that go on in their pages, whatever was told of them.
    left: BTreeSet<String>,
    /// The values that the extension kept, by command.
    answers: BTreeMap<String, String>,
    /// The answers on which there is no verdict yet.
    open: BTreeSet<String>,
    /// The values that the server confirmed.
    confirmed: BTreeMap<String, String>,
}

pub(crate) fn lock(log: &Log) -> MutexGuard<'_, History> {
    log.lock().expect("a log")
}

/// The time of the simulation, on the host that asks.
pub(crate) fn now() -> Duration {
    turmoil::sim_elapsed().unwrap_or_default()
}

fn name(id: TaskId) -> String {
    id.spell(Spelling::Correlation)
}

impl History {
    pub(crate) fn note(&mut self, at: Duration, words: &str) {
        self.trace.push(format!("{:>6} {words}", at.as_millis()));
    }

    pub(crate) fn complain(&mut self, words: String) {
        self.complaints.push(words);
    }

    pub(crate) fn meet(&mut self, what: &'static str) {
        self.met.insert(what);
    }

    pub(crate) const fn heal(&mut self) {
        self.is_healed = true;
    }

    /// Whether nothing is left to be said.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_healed && self.open.is_empty() && self.effects.iter().all(|it| it.ended.is_some())
    }

    // What callers did and saw.

    pub(crate) fn submitted(&mut self, at: Duration, number: usize, tab: i64, record: &TaskRecord) {
        self.note(at, &format!("command {number} is {}, in tab {tab}", name(record.id())));
        let seq = record.seq;
        let command =
            Command { number, tab, seq, was_cancelled_in_line: false, ends: None, seen: None };
        self.commands.insert(record.id(), command);
    }

    /// An end for good is a command of its own, in no tab.
    pub(crate) fn ends_for_good(&mut self, at: Duration, of: &str, record: &TaskRecord) {
        let number = OF_ENDS + self.commands.len();
        let tab = -i64::try_from(number).unwrap_or(i64::MAX);
        self.submitted(at, number, tab, record);
        if let Some(command) = self.commands.get_mut(&record.id()) {
            command.ends = Some(of.to_owned());
        }
    }

    pub(crate) fn id_of(&self, number: usize) -> Option<TaskId> {
        self.commands.iter().find(|(_, command)| command.number == number).map(|(id, _)| *id)
    }

    pub(crate) fn ids(&self) -> Vec<(usize, TaskId)> {
        self.commands.iter().map(|(id, command)| (command.number, *id)).collect()
    }

    pub(crate) fn cancelled(
        &mut self,
        at: Duration,
        number: usize,
        counts: bool,
        record: &TaskRecord,
    ) {
        self.note(at, &format!("a cancel of command {number}: {counts}, {}", record.state));
        if counts && record.state == State::Cancelled {
            self.met.insert("a command that was cancelled in line");
            if let Some(command) = self.commands.get_mut(&record.id()) {
                command.was_cancelled_in_line = true;
            }
        }
    }

    pub(crate) fn read(&mut self, at: Duration, number: usize, view: View) {
        let Some(command) = self.commands.get_mut(&view.record.id()) else { return };
        let ends = command.ends.clone();
        let (state, n_events) = (view.record.state, view.record.n_events);
        let before = command.seen.replace(view);
        let (old_state, old_events) = before
            .as_ref()
            .map_or((None, 0), |before| (Some(before.record.state), before.record.n_events));
        let is_other_end = old_state.is_some_and(|old| old.is_terminal() && old != state);
        if n_events < old_events || is_other_end {
            let old = old_state.map_or("nothing", State::as_str);
            self.complaints.push(format!(
                "command {number} went back: {old} with {old_events} events, then {state} with {n_events}"
            ));
        }
        if old_state != Some(state) {
            self.note(at, &format!("command {number} is {state}"));
            self.judge_end_for_good(state, ends);
        }
    }

    /// That something has ended for good is said only once it has.
    fn judge_end_for_good(&mut self, state: State, ends: Option<String>) {
        let Some(of) = ends.filter(|_| state == State::Succeeded) else { return };
        if self.left.contains(&of) {
            self.complain(format!("{of} went on although it was said to be over"));
        }
    }

    // What the extension did.

    pub(crate) fn begins(&mut self, at: Duration, id: &str, tab: i64) -> usize {
        self.note(at, &format!("{id} begins in tab {tab}"));
        self.effects.push(Effect { id: id.to_owned(), tab, begun: at, ended: None });
        self.effects.len() - 1
    }

    pub(crate) fn ends(&mut self, at: Duration, run: usize, how: &str) {
        if let Some(effect) = self.effects.get_mut(run) {
            effect.ended = Some(at);
        }
        self.note(at, &format!("run {run} ends: {how}"));
    }

    /// A script was told to stop, or reached its limit, and goes on in its page.
    pub(crate) fn goes_on(&mut self, at: Duration, id: &str) {
        self.note(at, &format!("{id} goes on"));
        self.left.insert(id.to_owned());
    }

    /// The page of a script is loaded anew; tells whether it was at work there.
    pub(crate) fn is_loaded_anew(&mut self, at: Duration, id: &str) -> bool {
        self.note(at, &format!("the page of {id} is loaded anew"));
        let was_left = self.left.remove(id);
        if was_left {
            self.meet("a script that went on and was ended with its page");
        }
        was_left
    }

    /// What ran in the worker ended with it.
    pub(crate) fn worker_died(&mut self) {
        for effect in self.effects.iter_mut().filter(|it| it.ended.is_none()) {
            effect.ended = Some(effect.begun);
        }
    }

    pub(crate) fn answered(&mut self, id: &str, value: Option<&str>) {
        self.open.insert(id.to_owned());
        if let Some(value) = value {
            self.answers.insert(id.to_owned(), value.to_owned());
        }
    }

    pub(crate) fn settled(&mut self, id: &str, confirmed: Option<&str>) {
        self.open.remove(id);
        if let Some(value) = confirmed {
            self.confirmed.insert(id.to_owned(), value.to_owned());
        }
    }

    // The judge.

    /// Judges the whole of it.
    pub(crate) fn judge(&mut self) {
        if !self.is_all_called {
            self.complain("not everything was called".to_owned());
        }
        let commands = std::mem::take(&mut self.commands);
        for (id, command) in &commands {
            match &command.seen {
                Some(view) => self.judge_command(*id, command, view),
                None => self.complain(format!("command {} was never read", command.number)),
            }
        }
        let mut seqs: BTreeMap<String, u64> = BTreeMap::new();
        let mut leases: BTreeMap<i64, Vec<(i64, i64, usize)>> = BTreeMap::new();
        for (id, command) in &commands {
            seqs.insert(name(*id), command.seq);
            let events = command.seen.iter().filter_map(|view| view.payload.as_ref());
            let held = events.flat_map(|payload| leases_of(&payload.events));
            let held = held.map(|(from, to)| (from, to, command.number));
            leases.entry(command.tab).or_default().extend(held);
        }
        self.judge_leases(leases);
        self.judge_effects(&seqs);
        self.commands = commands;
    }

    fn judge_command(&mut self, id: TaskId, command: &Command, view: &View) {
        let (number, state) = (command.number, view.record.state);
        if !state.is_terminal() {
            return self.complain(format!("command {number} did not end: {state}"));
        }
        let Some(payload) = &view.payload else {
            return self.complain(format!("command {number} cannot be read any more"));
        };
        self.judge_events(number, state, &payload.events);
        self.judge_values(id, number, view);
        let n_runs = self.effects.iter().filter(|it| it.id == name(id)).count();
        if n_runs > 1 {
            self.complain(format!("command {number} ran {n_runs} times"));
        }
        let may_not_have_run = match payload.outcome.as_ref() {
            Some(Outcome::Failed(error)) => error.guarantee() == Some(Guarantee::NotExecuted),
            _ => command.was_cancelled_in_line,
        };
        if may_not_have_run && n_runs > 0 {
            let why = view.record.failure.map_or("cancelled in line", |kind| kind.as_str());
            self.complain(format!("command {number} ran although it ended as {why}"));
        }
        self.meet_end(view, n_runs);
    }

    fn judge_events(&mut self, number: usize, state: State, events: &[TaskEvent]) {
        let n_ends =
            events.iter().filter(|it| it.to.is_terminal() && it.from != Some(it.to)).count();
        if n_ends != 1 {
            self.complain(format!("command {number} ended {n_ends} times"));
        }
        let mut last: Option<&TaskEvent> = None;
        for event in events {
            let follows = match last {
                None => event.seq == 1 && event.from.is_none(),
                Some(last) => {
                    event.seq == last.seq + 1
                        && event.from == Some(last.to)
                        && event.fence >= last.fence
                        && !last.to.is_terminal() | (event.to == last.to)
                }
            };
            if !follows {
                self.complain(format!(
                    "the history of command {number} has a gap at {}",
                    event.seq
                ));
            }
            last = Some(event);
        }
        if last.map(|it| it.to) != Some(state) {
            self.complain(format!("the history of command {number} does not lead to {state}"));
        }
    }

    /// What was confirmed is the outcome, and what was produced is the outcome or kept beside it.
    fn judge_values(&mut self, id: TaskId, number: usize, view: &View) {
        let Some(payload) = &view.payload else { return };
        let (outcome, late) = (value(payload.outcome.as_ref()), value(payload.late.as_ref()));
        let wrapped = |value: &String| format!(r#"{{"result":{value}}}"#);
        if let Some(confirmed) = self.confirmed.get(&name(id)).map(wrapped)
            && outcome.as_ref() != Some(&confirmed)
        {
            self.complaints.push(format!(
                "the result of command {number} was confirmed and is not its outcome: {outcome:?}"
            ));
        }
        if let Some(answer) = self.answers.get(&name(id)).map(wrapped)
            && outcome.as_ref() != Some(&answer)
            && late.as_ref() != Some(&answer)
        {
            self.complaints.push(format!("the result of command {number} is lost"));
        }
        let n_runs = self.effects.iter().filter(|it| it.id == name(id)).count();
        let is_told = self.answers.contains_key(&name(id))
            || !matches!(payload.outcome, Some(Outcome::Succeeded(_)));
        if n_runs > 0 && !is_told {
            self.complaints.push(format!("the result of command {number} came from nowhere"));
        }
    }

    fn judge_leases(&mut self, leases: BTreeMap<i64, Vec<(i64, i64, usize)>>) {
        for (tab, mut leases) in leases {
            leases.sort_unstable();
            for pair in leases.windows(2) {
                if pair[1].0 < pair[0].1 {
                    let (one, two) = (pair[0].2, pair[1].2);
                    self.complain(format!("tab {tab} had the commands {one} and {two} at once"));
                }
            }
        }
    }

    fn judge_effects(&mut self, seqs: &BTreeMap<String, u64>) {
        let mut last: BTreeMap<i64, (&Effect, u64)> = BTreeMap::new();
        let mut complaints = Vec::new();
        for effect in &self.effects {
            let Some(seq) = seqs.get(&effect.id) else {
                // Its server was killed before its caller had the answer.
                continue;
            };
            if let Some((before, before_seq)) = last.insert(effect.tab, (effect, *seq)) {
                if before.ended.is_none_or(|ended| ended > effect.begun) {
                    complaints.push(format!("tab {} ran two scripts at once", effect.tab));
                }
                if before_seq > *seq {
                    complaints.push(format!("tab {} ran {} out of turn", effect.tab, effect.id));
                }
            }
        }
        self.complaints.extend(complaints);
    }

    fn meet_end(&mut self, view: &View, n_runs: usize) {
        let Some(payload) = &view.payload else { return };
        let failure = view.record.failure.map_or("", |kind| kind.as_str());
        let was_given_back = payload
            .events
            .iter()
            .any(|event| event.from == Some(State::Scheduled) && event.to == State::Queued);
        let epochs: BTreeSet<u64> = payload.events.iter().map(|it| it.fence.raw() >> 32).collect();
        let is_won = view.record.cancel.is_some() && view.record.state == State::Succeeded;
        let met = [
            (view.record.state == State::Succeeded, "a command that succeeded"),
            (view.record.state == State::TimedOut, "a command that timed out"),
            (failure == "accept_timeout", "a command that nobody accepted"),
            (
                view.record.state == State::Cancelled && n_runs > 0,
                "a command that was cancelled while it ran",
            ),
            (is_won, "a result that won over a cancel"),
            (failure == "peer_lost", "a lost browser"),
            (failure == "worker_lost", "a lost worker"),
            (payload.late.is_some(), "a late result"),
            (was_given_back, "a command that was given back"),
            (epochs.iter().filter(|it| **it > 0).count() > 1, "a command that outlived its server"),
        ];
        self.met.extend(met.into_iter().filter(|(is, _)| *is).map(|(_, what)| what));
    }
}

/// When attempts of a command held its tab.
fn leases_of(events: &[TaskEvent]) -> Vec<(i64, i64)> {
    let mut leases = Vec::new();
    let mut since = None;
    for event in events {
        match (since, event.to.is_leased()) {
            (None, true) => since = Some(event.at.as_millis()),
            (Some(from), false) => {
                leases.push((from, event.at.as_millis()));
                since = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }
    leases
}

fn value(outcome: Option<&Outcome>) -> Option<String> {
    match outcome {
        Some(Outcome::Succeeded(content)) => match &content[..] {
            [Content::Json(json)] => Some(json.get().to_owned()),
            _ => None,
        },
        _ => None,
    }
}
