//! Who is connected, which calls are in whose hands, and who waits for them.
//!
//! A plain value: the present instant comes in, and what is to be said to connections goes out. What
//! waits for whom is the caller's business.

pub(crate) mod choices;
pub(crate) mod editor;
pub(crate) mod run;
pub(crate) mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::LaneId;
use raincheck_core::scope::Scope;
use raincheck_core::task::WaitReason;
use raincheck_core::time::Timestamp;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::backend::{Ask, Introduction, Target};
use crate::lanes;
use crate::settings::Settings;
use crate::spelling::{self, Key};
use crate::wire::RequestId;

use choices::{Asker, Choice, Choices};
use editor::{Editor, Link};
use run::{Report, Run};
use stage::{Move, Stage};

/// The calls that an editor says it has, with the names of those that are jobs.
pub(crate) type Has = BTreeMap<RequestId, Option<String>>;

/// Editors and calls.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    pub(crate) editors: BTreeMap<Key, Editor>,
    pub(crate) runs: BTreeMap<RequestId, Run>,
    pub(crate) choices: Choices,
    /// When the last call that may change something was made that had no editor yet.
    pub(crate) last_change: Option<Timestamp>,
    /// Whether calls may be under way that were made while no editor was known.
    pub(crate) has_unplaced: bool,
    n_links: u64,
}

/// A connection that was let in.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) key: Key,
    pub(crate) serial: u64,
    /// What is to be asked of the editor first.
    pub(crate) asks: Vec<Ask>,
}

/// Where the editor of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// Connected.
    Here,
    /// Away, and expected back until then.
    Away(Instant),
    /// Not heard of since the call was taken up again.
    Unheard,
}

impl Desk {
    // Editors.

    /// Lets an editor in that has proved itself. Another connection of the same project is over. `None`
    /// when there are too many editors.
    pub(crate) fn attach(
        &mut self,
        now: Instant,
        settings: &Settings,
        (key, introduction): (Key, Introduction),
        asks: mpsc::Sender<Ask>,
    ) -> Option<Attached> {
        self.forget_the_gone(now, settings);
        self.choices.heard(&key);
        if !self.editors.contains_key(&key) && self.editors.len() >= settings.max_editors {
            return None;
        }
        self.n_links += 1;
        let serial = self.n_links;
        let link = Link { serial, asks };
        let running = introduction.running.clone();
        let has = introduction.has.clone().map(|has| has.into_iter().collect::<BTreeMap<_, _>>());
        let lane = lanes::of_project(&key);
        match self.editors.get_mut(&key) {
            Some(editor) => {
                if let Some(older) = editor.come_back(link, introduction) {
                    older.leave(
                        crate::backend::code::SUPERSEDED,
                        "another connection of the same project took its place",
                    );
                }
            }
            None => {
                self.editors
                    .insert(Arc::clone(&key), Editor::new(lane.clone(), link, introduction));
            }
        }
        let asks = has.map_or_else(Vec::new, |has| self.settle(&key, &lane, has));
        self.keep_the_turn(now, &key, running);
        self.tell_runs(&key);
        Some(Attached { key, serial, asks })
    }

    /// Compares the calls that an editor should have with those that it has [LEASE-6].
    fn settle(&mut self, key: &Key, lane: &LaneId, has: Has) -> Vec<Ask> {
        let mut asks = Vec::new();
        for (request, run) in &mut self.runs {
            asks.extend(settle_one(*request, run, (key, lane, &has)));
        }
        if let Some(editor) = self.editors.get_mut(key) {
            editor.had = has;
        }
        asks
    }

    /// Gives an editor's main thread to the calls that it says it runs. Those that nobody waits for any more
    /// have it too, until it says how they ended [QUEUE-6].
    fn keep_the_turn(&mut self, now: Instant, key: &Key, running: Vec<(RequestId, String)>) {
        let Some(editor) = self.editors.get(key) else { return };
        let (lane, turn) = (editor.lane.clone(), Arc::clone(&editor.turn));
        for (request, tool) in running {
            let run = self
                .runs
                .entry(request)
                .or_insert_with(|| Run::of_nobody(key, &lane, tool.as_str().into(), now));
            if run.turn.is_none() && run.stage.is_under_way() {
                run.turn = Arc::clone(&turn).try_acquire_owned().ok();
            }
        }
        self.runs.retain(|_, run| run.stage.is_under_way() || !run.is_nobody_s());
    }

    /// Takes up a call of an earlier server, and compares it with what editors said before of what they
    /// have.
    pub(crate) fn take_up(&mut self, request: RequestId, mut run: Run) {
        // Nobody has waited for it until now.
        run.turn = self.runs.remove(&request).and_then(|mut older| older.turn.take());
        let run = self.runs.entry(request).or_insert(run);
        let mut asks = Vec::new();
        for (key, editor) in self.editors.iter().filter(|(_, editor)| editor.link.is_some()) {
            if editor.reports_calls && run.is_unheard {
                let told = settle_one(request, run, (key, &editor.lane, &editor.had));
                asks.extend(told.into_iter().map(|ask| (Arc::clone(key), ask)));
            }
        }
        for (key, ask) in asks {
            self.ask(&key, ask);
        }
    }

    /// A connection is over. `false` when another took its place before.
    pub(crate) fn detach(&mut self, now: Instant, key: &Key, serial: u64) -> bool {
        let Some(editor) = self.editors.get_mut(key).filter(|editor| editor.is_linked_by(serial))
        else {
            return false;
        };
        editor.go(now);
        let reports_calls = editor.reports_calls;
        if !reports_calls {
            // It will not say what became of its calls.
            for run in self.runs.values_mut().filter(|run| run.editor.as_ref() == Some(key)) {
                run.step(Move::Abandon);
            }
        }
        self.tell_runs(key);
        true
    }

    /// Finds the editor of a connection, if that is its current one.
    pub(crate) fn linked(&mut self, key: &Key, serial: u64) -> Option<&mut Editor> {
        self.editors.get_mut(key).filter(|editor| editor.is_linked_by(serial))
    }

    /// Forgets editors that did not come back, and returns when the next one is to be forgotten.
    pub(crate) fn forget_the_gone(&mut self, now: Instant, settings: &Settings) -> Option<Instant> {
        let Self { editors, runs, .. } = self;
        editors.retain(|_, editor| editor.back_by(settings).is_none_or(|by| now < by));
        // What nobody waits for, and nobody will tell of any more.
        runs.retain(|_, run| {
            let is_known = run.editor.as_ref().is_none_or(|key| editors.contains_key(key));
            is_known || !run.is_nobody_s()
        });
        self.editors.values().filter_map(|editor| editor.back_by(settings)).min()
    }

    /// The editors that a call may go to.
    fn candidates(&self) -> impl Iterator<Item = (&Key, &Editor)> {
        self.editors.iter().filter(|(_, editor)| !editor.has_quit)
    }

    /// Tells whether there is one editor that calls can go to, and no other.
    pub(crate) fn has_one(&self) -> bool {
        self.candidates().count() == 1
    }

    /// Returns the editor that a caller's calls go to, which may not have come back since an earlier server
    /// had it; `None` while none is known.
    ///
    /// # Errors
    /// When there are several and none was selected, or the one that was selected is gone.
    pub(crate) fn target(&self, asker: Asker<'_>) -> Result<Option<Key>, Error> {
        let chosen = self.choices.of(asker).map_err(|_| {
            self.ambiguous("several editors were selected, and it is not known who made the call")
        })?;
        if let Some(Choice { key: chosen, is_unheard }) = chosen {
            // One that an earlier server had is expected back.
            let is_expected = *is_unheard && !self.editors.contains_key(chosen);
            if is_expected || self.candidates().any(|(key, _)| key == chosen) {
                return Ok(Some(Arc::clone(chosen)));
            }
            if self.candidates().next().is_some() {
                return Err(self.ambiguous("the editor that was selected is gone"));
            }
        }
        let mut all = self.candidates();
        match (all.next(), all.next()) {
            (only, None) => Ok(only.map(|(key, _)| Arc::clone(key))),
            (_, Some(_)) => {
                Err(self.ambiguous("several editors are connected and none is selected"))
            }
        }
    }

    fn ambiguous(&self, why: &str) -> Error {
        let named: Vec<_> = self.candidates().map(|(_, editor)| editor.named()).collect();
        if named.is_empty() {
            return Error::new(
                Kind::InvalidParams,
                "no editor is connected, so none can be selected",
            )
            .with_hint("open the project in Unity, with the package installed");
        }
        let names: Vec<String> = named.iter().map(editor::Named::words).collect();
        let details = Json::of(&json!({ "reason": "no_editor_selected" })).ok();
        // Names and paths are the editors' own words [CALL-8].
        Error { details, ..Error::new(Kind::InvalidParams, why) }
            .with_hint("call select_editor with the instance of one of those that are named")
            .with_quoted(names.join(", "), Json::of(&json!({ "editors": named })).ok())
    }

    /// Selects an editor for a caller by its instance, its name or its path.
    ///
    /// # Errors
    /// When it names none, or several.
    pub(crate) fn select(
        &mut self,
        scope: &Scope,
        connection: &str,
        wanted: &str,
    ) -> Result<Key, Error> {
        // As the names of editors are taken in.
        let (path, name) = (crate::wire::path(wanted), crate::wire::name(wanted));
        let by = |is: &dyn Fn(&Key, &Editor) -> bool| -> Vec<Key> {
            self.candidates()
                .filter(|(key, editor)| is(key, editor))
                .map(|(key, _)| Arc::clone(key))
                .collect()
        };
        let found = [
            by(&|_, editor| *editor.instance == *name),
            by(&|key, editor| *editor.project_path == *path || **key == *spelling::folded(&path)),
            by(&|_, editor| *editor.name == *name),
        ];
        let Some(found) = found.into_iter().find(|found| !found.is_empty()) else {
            return Err(self.ambiguous("no editor is known by that"));
        };
        let [key] = &found[..] else {
            return Err(self.ambiguous("several editors are known by that"));
        };
        self.choices.choose(scope, connection, key);
        Ok(Arc::clone(key))
    }

    /// Returns why calls of a lane have to wait; `None` when they need not.
    pub(crate) fn hold_of(&self, lane: &LaneId) -> Option<WaitReason> {
        const DISCONNECTED: WaitReason = WaitReason::new("disconnected");
        if lane.as_str() == lanes::JOINED {
            return None;
        }
        let is_control = lane.as_str() == lanes::CONTROL;
        let own = self.editors.values().find(|editor| editor.lane == *lane && !is_control);
        if let Some(editor) = own {
            return editor.hold();
        }
        // The default lane is no editor's: its calls were made while none was known.
        let is_shared = is_control || lane.as_str() == lanes::DEFAULT;
        if !is_shared {
            return Some(DISCONNECTED);
        }
        let holds = self
            .candidates()
            .map(|(_, editor)| if is_control { editor.away() } else { editor.hold() });
        holds.min_by_key(Option::is_some).unwrap_or(Some(DISCONNECTED))
    }

    // Calls.

    /// Says to the editor of a call that something is wanted; `false` when it cannot be told now.
    pub(crate) fn ask(&self, key: &Key, ask: Ask) -> bool {
        let link = self.editors.get(key).and_then(|editor| editor.link.as_ref());
        link.is_some_and(|link| link.asks.try_send(ask).is_ok())
    }

    /// Finds a call by what it is named by.
    pub(crate) fn run_of(&mut self, target: &Target) -> Option<(RequestId, &mut Run)> {
        let found = match target {
            Target::Request(request) => Some(*request),
            Target::Job(job) => {
                let is_it = |(_, run): &(&RequestId, &Run)| run.job_id.as_deref() == Some(job);
                self.runs.iter().find(is_it).map(|(request, _)| *request)
            }
        }?;
        self.runs.get_mut(&found).map(|run| (found, run))
    }

    /// Moves a call.
    pub(crate) fn step(&mut self, request: RequestId, on: Move) {
        if let Some(run) = self.runs.get_mut(&request) {
            run.step(on);
        }
    }

    /// Wakes everybody that waits for a call of an editor: it came or went.
    fn tell_runs(&mut self, key: &Key) {
        for run in self.runs.values_mut().filter(|run| run.editor.as_ref() == Some(key)) {
            run.wake();
        }
    }

    /// Tells where the editor of a call is.
    pub(crate) fn whereabouts(&self, settings: &Settings, request: RequestId) -> Whereabouts {
        let run = self.runs.get(&request).filter(|run| !run.is_unheard);
        let Some(key) = run.and_then(|run| run.editor.as_ref()) else {
            return Whereabouts::Unheard;
        };
        match self.editors.get(key) {
            Some(editor) => {
                editor.back_by_for_calls(settings).map_or(Whereabouts::Here, Whereabouts::Away)
            }
            None => Whereabouts::Unheard,
        }
    }

    /// Takes a caller out of a call. One that is over goes with its last caller; one that goes on in its
    /// editor stays until that says how it ended.
    pub(crate) fn leave(&mut self, request: RequestId, member: RequestId) {
        let Some(run) = self.runs.get_mut(&request) else { return };
        run.members.remove(&member);
        if run.stage != Stage::Ended {
            run.uncommitted.remove(&member);
        }
        let is_over = !run.stage.is_under_way() && run.stage != Stage::Posted;
        if is_over && run.is_nobody_s() {
            self.runs.remove(&request);
        }
    }

    /// An outcome is committed. Returns what may be acknowledged now, and to whom: a call that all who
    /// asked for it have the outcome of.
    pub(crate) fn committed(&mut self, member: RequestId) -> Vec<(Key, Ask)> {
        let mut acks = Vec::new();
        self.runs.retain(|request, run| {
            let was_member = run.uncommitted.remove(&member);
            let is_done = was_member && run.stage == Stage::Ended && run.uncommitted.is_empty();
            if let Some(key) = run.editor.clone().filter(|_| is_done) {
                let named = run.named.take().unwrap_or_else(|| request.to_string());
                acks.push((key, Ask::Ack(named)));
            }
            !is_done
        });
        acks
    }

    /// Takes down that a call was made that may change what others find: in its editor, or, while that is
    /// not known, in any.
    pub(crate) fn changes(&mut self, key: Option<&Key>, tool: &str, at: Timestamp) {
        match key.and_then(|key| self.editors.get_mut(key)) {
            Some(editor) => editor.changes(tool, at),
            None => self.last_change = self.last_change.max(Some(at)),
        }
    }

    /// Finds a call that runs with the same arguments and may be joined: one that was made after the last
    /// change, whether that has been run or not, and that nobody has stopped.
    pub(crate) fn joinable(&self, key: &run::JoinKey) -> Option<RequestId> {
        let editor = self.editors.get(&key.editor)?;
        let last_change = self.last_change.max(editor.last_change(&key.tool));
        let fits = |run: &Run| {
            let is_same =
                run.join.as_ref().is_some_and(|(its, at)| its == key && last_change <= Some(*at));
            is_same && run.stage.is_under_way() && !run.is_stopping
        };
        self.runs.iter().find(|(_, run)| fits(run)).map(|(request, _)| *request)
    }

    /// Joins a call.
    pub(crate) fn join(
        &mut self,
        request: RequestId,
        member: RequestId,
    ) -> Option<watch::Receiver<Report>> {
        let run = self.runs.get_mut(&request)?;
        run.members.insert(member);
        run.uncommitted.insert(member);
        Some(run.report.subscribe())
    }
}

/// Compares a call with what an editor says that it has; returns what is to be asked of it.
fn settle_one(
    request: RequestId,
    run: &mut Run,
    (key, lane, has): (&Key, &LaneId, &Has),
) -> Vec<Ask> {
    if run.stage == Stage::Ended {
        return Vec::new();
    }
    if let Some(job) = has.get(&request) {
        run.editor = Some(Arc::clone(key));
        run.step(Move::Accept);
        run.job_id = job.clone().or(run.job_id.take());
        run.is_unheard = false;
        run.seq = 0;
        let status = job.clone().map(|job_id| Ask::JobStatus { request, job_id });
        return status.into_iter().chain(run.stop_again(request)).collect();
    }
    let is_theirs = match &run.editor {
        Some(editor) => editor == key,
        // One beside the lanes of editors may be with any that comes back later.
        None => run.lane == *lane,
    };
    if is_theirs {
        run.editor = Some(Arc::clone(key));
        run.is_unheard = false;
        run.step(Move::Disown);
    }
    Vec::new()
}

/// How long an editor of which nothing is known is waited for.
pub(crate) const fn grace_of(settings: &Settings, was_compiling: bool) -> Duration {
    if was_compiling { settings.reconnect_grace_compiling } else { settings.reconnect_grace }
}
