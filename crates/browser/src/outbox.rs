//! The outbox between executors and browsers: who is connected, and which command is in whose hands.
//!
//! A plain value: the present instant comes in, entries and reports go out. What waits for whom is the
//! caller's business.

mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::ids::{Fence, Spelling, TaskId};
use raincheck_core::progress::Progress;
use raincheck_core::task::Outcome;
use raincheck_loopback::awake::Now;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::choices::Caller;
use crate::saving::SaveTo;
use crate::verdict::Verdict;
use crate::wire::{Delivery, Stopping};

pub(crate) use stage::{Move, Stage};

/// After this time a delivery that nobody answered may have been lost on its way, and goes out again
/// to the same session of the extension, which knows whether it has it already.
const UNSURE: Duration = Duration::from_millis(750);

/// How many entries one poll takes at the most.
const MAX_ENTRIES: usize = 64;

/// What a browser says of a command, for the executor that waits for it.
#[derive(Debug)]
pub(crate) enum Report {
    /// It took the command on, and waits for leave to begin.
    Accepted(oneshot::Sender<Verdict>),
    /// It is at work.
    Progress(Option<Progress>, Option<Json>),
    /// It is done, in this tab.
    Ended(Outcome, Option<i64>),
    /// It surely never began with it.
    GivenBack,
    /// Its extension is too old for it, and was not asked.
    TooOld,
    /// It is there and has not said yet whether it still has it.
    Doubted,
}

/// A command in the outbox.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) fence: Fence,
    pub(crate) attempt: u32,
    pub(crate) stage: Stage,
    /// The action or the view.
    pub(crate) what: Arc<str>,
    /// The file that its output goes into.
    pub(crate) save_to: Option<SaveTo>,
    /// The browser that has to run it; `None` is whichever is there.
    pub(crate) target: Option<Arc<str>>,
    pub(crate) tab_id: Option<i64>,
    pub(crate) caller: Caller,
    /// Whether its caller gave up the tab that the browser may know of it.
    pub(crate) is_anew: bool,
    /// The tabs that other callers work in, where the browser finds the tab.
    pub(crate) others: Vec<i64>,
    /// The process that delivers it.
    pub(crate) server: Option<Arc<str>>,
    pub(crate) params: Json,
    /// The least revision of an extension that does it as it is asked.
    pub(crate) revision: u32,
    pub(crate) accept: Duration,
    pub(crate) run: Duration,
    /// Who waits for it.
    pub(crate) reports: mpsc::UnboundedSender<Report>,
    /// Fires once its outcome is committed.
    pub(crate) recorded: CancellationToken,
}

/// A command and where it lies.
#[derive(Debug)]
struct Outgoing {
    command: Command,
    place: u64,
    browser: Option<Arc<str>>,
    /// The session of the extension that it was delivered to, and when.
    delivered: Option<(Arc<str>, Instant)>,
    is_stopping: bool,
    stop_sent: Option<Instant>,
}

/// A browser profile with the extension.
#[derive(Debug)]
struct Profile {
    session: Arc<str>,
    /// What its extension knows.
    revision: u32,
    /// The poll that is held for it.
    poll: Option<u64>,
    wake: Arc<Notify>,
    /// When it was heard of first.
    known_since: Instant,
    last_word: Now,
    is_paused: bool,
    pending: BTreeMap<u64, TaskId>,
}

/// What is told of a browser.
#[derive(Clone, Debug)]
pub(crate) struct Presence {
    pub(crate) name: Arc<str>,
    pub(crate) is_there: bool,
    pub(crate) silent_for: Duration,
    /// Whether its user has paused commands.
    pub(crate) is_paused: bool,
    /// What its extension knows.
    pub(crate) revision: u32,
    pub(crate) n_waiting: usize,
}

/// A poll that is held.
#[derive(Debug)]
pub(crate) struct Poll {
    pub(crate) serial: u64,
    pub(crate) wake: Arc<Notify>,
    /// Whether no other is held, so that a browser may have come.
    pub(crate) is_only: bool,
}

/// What a poll comes back with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A newer poll of the same browser took its place.
    Replaced,
    /// The entries, as JSON texts.
    Entries(Vec<String>),
    /// None yet; with the instant at which one that went out is due again.
    Nothing(Option<Instant>),
}

/// Who a post about a command is for.
#[derive(Debug)]
pub(crate) enum Addressee {
    /// Nobody here waits for it.
    Nobody,
    /// Its attempt is not the one that is under way.
    Stale,
    /// An executor waits for it.
    Executor {
        /// The action or the view.
        what: Arc<str>,
        /// The file that its output goes into.
        save_to: Option<SaveTo>,
        reports: mpsc::UnboundedSender<Report>,
        recorded: CancellationToken,
    },
    /// It has ended, and its outcome is being committed.
    Ended(CancellationToken),
}

/// The commands under way and the browsers.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    profiles: BTreeMap<Arc<str>, Profile>,
    /// In the order of their ids, so that the same past leads to the same future.
    commands: BTreeMap<TaskId, Outgoing>,
    n_polls: u64,
    /// How many browsers hold a poll.
    n_held: usize,
    n_laid: u64,
}

impl Outbox {
    /// Puts a command into the outbox.
    pub(crate) fn put(&mut self, now: Now, linger: Duration, id: TaskId, command: Command) {
        self.n_laid += 1;
        let place = self.n_laid;
        let browser = match &command.target {
            Some(target) => self.profiles.contains_key(target).then(|| Arc::clone(target)),
            None => self.whoever_is_there(now, linger),
        };
        let is_waiting = command.stage.is_unaccepted();
        let (delivered, is_stopping, stop_sent) = (None, false, None);
        let outgoing = Outgoing { command, place, browser, delivered, is_stopping, stop_sent };
        if is_waiting
            && let Some(profile) = outgoing.browser.as_ref().and_then(|b| self.profiles.get_mut(b))
        {
            profile.pending.insert(place, id);
            profile.wake.notify_one();
        }
        // An attempt that was given back can be laid down anew before its executor has gone.
        if let Some(older) = self.commands.insert(id, outgoing)
            && let Some(profile) = older.browser.and_then(|name| self.profiles.get_mut(&name))
        {
            profile.pending.remove(&older.place);
        }
    }

    /// The browser that a command without a wish goes to: one that holds a poll, the one heard of
    /// last first.
    fn whoever_is_there(&self, now: Now, linger: Duration) -> Option<Arc<str>> {
        let there = self.profiles.iter().filter(|(_, profile)| profile.is_there(now, linger));
        let best =
            there.max_by_key(|(_, profile)| (profile.poll.is_some(), profile.last_word.awake));
        best.map(|(name, _)| Arc::clone(name))
    }

    /// Opens a poll. An older one of the same browser is over; `None` when there are too many browsers.
    pub(crate) fn open(
        &mut self,
        now: Now,
        (name, session, revision): (&Arc<str>, &Arc<str>, u32),
        (linger, most): (Duration, usize),
    ) -> Option<Poll> {
        if !self.profiles.contains_key(name) {
            if self.profiles.len() >= most {
                let gone = self.profiles.iter().find(|(_, profile)| !profile.is_there(now, linger));
                let gone = Arc::clone(gone?.0);
                self.remove(&gone);
            }
            self.profiles.insert(Arc::clone(name), Profile::new(now, session, revision));
        }
        self.n_polls += 1;
        let serial = self.n_polls;
        let profile = self.profiles.get_mut(name)?;
        let is_new_session = profile.session != *session;
        profile.session = Arc::clone(session);
        profile.revision = revision;
        profile.last_word = now;
        if profile.poll.replace(serial).is_none() {
            self.n_held += 1;
        }
        let is_only = self.n_held == 1;
        // The older poll looks, and sees that it is over.
        profile.wake.notify_waiters();
        let wake = Arc::clone(&profile.wake);
        if is_new_session {
            self.give_back(name, session);
        }
        self.assign(name);
        Some(Poll { serial, wake, is_only })
    }

    /// Gives back what an earlier session of the extension was handed and never accepted: nobody may
    /// begin with it any more.
    fn give_back(&mut self, name: &Arc<str>, session: &Arc<str>) {
        for outgoing in self.commands.values_mut() {
            let was_theirs = outgoing.browser.as_ref() == Some(name)
                && outgoing.delivered.as_ref().is_some_and(|(to, _)| to != session);
            let report = match outgoing.command.stage {
                Stage::Delivered if was_theirs => Report::GivenBack,
                // Its notes are gone with the earlier session.
                Stage::Accepted if was_theirs => Report::Doubted,
                Stage::Posted | Stage::Delivered | Stage::Accepted | Stage::Ended => continue,
            };
            // An executor that is gone has withdrawn it.
            let _ = outgoing.command.reports.send(report);
        }
    }

    /// Hands commands that no browser was there for to the one that is there now.
    fn assign(&mut self, name: &Arc<str>) {
        let Some(profile) = self.profiles.get_mut(name) else { return };
        for (id, outgoing) in &mut self.commands {
            let fits = outgoing.command.target.as_ref().is_none_or(|target| target == name);
            if outgoing.browser.is_none() && fits {
                outgoing.browser = Some(Arc::clone(name));
                if outgoing.command.stage == Stage::Accepted {
                    let _ = outgoing.command.reports.send(Report::Doubted);
                }
                if outgoing.command.stage.is_unaccepted() || outgoing.is_stopping {
                    profile.pending.insert(outgoing.place, *id);
                }
            }
        }
    }

    fn remove(&mut self, name: &Arc<str>) {
        self.profiles.remove(name);
        for outgoing in self.commands.values_mut() {
            if outgoing.browser.as_ref() == Some(name) {
                outgoing.browser = None;
            }
        }
    }

    /// Takes what there is for a poll.
    pub(crate) fn take(&mut self, now: Now, name: &Arc<str>, serial: u64) -> Taken {
        let Some(profile) =
            self.profiles.get_mut(name).filter(|profile| profile.poll == Some(serial))
        else {
            return Taken::Replaced;
        };
        let mut entries = Vec::new();
        let mut refused = Vec::new();
        for (place, id) in &profile.pending {
            if entries.len() >= MAX_ENTRIES {
                break;
            }
            let Some(outgoing) = self.commands.get_mut(id) else { continue };
            if outgoing.refuse(profile.revision) {
                refused.push(*place);
            } else {
                entries.extend(outgoing.entry(now, *id, &profile.session));
            }
        }
        for place in refused {
            profile.pending.remove(&place);
        }
        if entries.is_empty() {
            let outgoing = profile.pending.values().filter_map(|id| self.commands.get(id));
            return Taken::Nothing(
                outgoing.filter_map(|outgoing| outgoing.due_again(&profile.session)).min(),
            );
        }
        profile.last_word = now;
        Taken::Entries(entries)
    }

    /// Ends a poll, however it came about; tells whether none is held any more.
    pub(crate) fn close(&mut self, now: Now, name: &Arc<str>, serial: u64) -> bool {
        if let Some(profile) = self.profiles.get_mut(name)
            && profile.poll == Some(serial)
        {
            profile.poll = None;
            profile.last_word = now;
            self.n_held -= 1;
        }
        self.n_held == 0
    }

    /// Tells whether a browser is known.
    pub(crate) fn has(&self, name: &Arc<str>) -> bool {
        self.profiles.contains_key(name)
    }

    /// Returns the browsers that are there in the place of one that nobody knows and that is not about to
    /// come: after a start of the server all come within `soon`.
    pub(crate) fn instead_of(
        &self,
        (now, linger, soon): (Now, Duration, Duration),
        name: &Arc<str>,
    ) -> Option<Vec<Arc<str>>> {
        if self.profiles.contains_key(name) {
            return None;
        }
        let there = || self.profiles.iter().filter(|(_, profile)| profile.is_there(now, linger));
        let is_late = there()
            .any(|(_, profile)| now.awake.saturating_duration_since(profile.known_since) >= soon);
        is_late.then(|| there().map(|(name, _)| Arc::clone(name)).collect())
    }

    /// Notes that a browser was heard of.
    pub(crate) fn heard(&mut self, now: Now, name: &Arc<str>) {
        if let Some(profile) = self.profiles.get_mut(name) {
            profile.last_word = now;
        }
    }

    /// Notes that the user of a browser paused it, or ended that.
    pub(crate) fn set_paused(&mut self, name: &Arc<str>, is_paused: bool) {
        if let Some(profile) = self.profiles.get_mut(name) {
            profile.is_paused = is_paused;
        }
    }

    /// Tells whom a post is for. An item without a fence is about the attempt that is under way.
    pub(crate) fn addressee(
        &mut self,
        id: TaskId,
        fence: Option<Fence>,
        attempt: Option<u32>,
    ) -> Addressee {
        let Some(outgoing) = self.commands.get(&id) else { return Addressee::Nobody };
        let command = &outgoing.command;
        let is_ours = fence.is_none_or(|fence| fence == command.fence)
            && attempt.is_none_or(|attempt| attempt == command.attempt);
        if !is_ours {
            return Addressee::Stale;
        }
        let recorded = command.recorded.clone();
        if command.stage == Stage::Ended {
            return Addressee::Ended(recorded);
        }
        let (what, reports) = (Arc::clone(&command.what), command.reports.clone());
        let save_to = command.save_to.clone();
        Addressee::Executor { what, save_to, reports, recorded }
    }

    /// Moves a command; `false` when its stage does not have the move.
    pub(crate) fn step(&mut self, id: TaskId, on: Move) -> bool {
        let Some(outgoing) = self.commands.get_mut(&id) else { return false };
        let Some(to) = outgoing.command.stage.next(on) else { return false };
        outgoing.command.stage = to;
        let is_to_be_told = to.is_unaccepted() || (to == Stage::Accepted && outgoing.is_stopping);
        if !is_to_be_told {
            let (browser, place) = (outgoing.browser.clone(), outgoing.place);
            if let Some(profile) = browser.and_then(|name| self.profiles.get_mut(&name)) {
                profile.pending.remove(&place);
            }
        }
        true
    }

    /// Asks whoever runs a command to stop it.
    pub(crate) fn stop(&mut self, id: TaskId) {
        let Some(outgoing) = self.commands.get_mut(&id) else { return };
        outgoing.is_stopping = true;
        if let Some(profile) =
            outgoing.browser.as_ref().and_then(|name| self.profiles.get_mut(name))
        {
            profile.pending.insert(outgoing.place, id);
            profile.wake.notify_one();
        }
    }

    /// Takes a command out of the outbox.
    pub(crate) fn withdraw(&mut self, id: TaskId, fence: Fence) {
        if self.commands.get(&id).is_none_or(|outgoing| outgoing.command.fence != fence) {
            return;
        }
        if let Some(outgoing) = self.commands.remove(&id)
            && let Some(profile) = outgoing.browser.and_then(|name| self.profiles.get_mut(&name))
        {
            profile.pending.remove(&outgoing.place);
        }
    }

    /// Takes a command out of the outbox whose outcome is committed, and lets go who waits for that.
    pub(crate) fn recorded(&mut self, id: TaskId) {
        if let Some(outgoing) =
            self.commands.get(&id).filter(|outgoing| outgoing.command.stage == Stage::Ended)
        {
            let (fence, recorded) = (outgoing.command.fence, outgoing.command.recorded.clone());
            self.withdraw(id, fence);
            recorded.cancel();
        }
    }

    /// Tells whether a command waits for a browser here, or is in the hands of one.
    pub(crate) fn is_under_way(&self, id: TaskId) -> bool {
        self.commands.contains_key(&id)
    }

    /// Returns the browser that has a command.
    pub(crate) fn browser_of(&self, id: TaskId) -> Option<Arc<str>> {
        self.commands.get(&id)?.browser.clone()
    }

    /// Returns what a browser was asked to do that has begun with it, or may begin now.
    pub(crate) fn begun(&self, id: TaskId) -> Option<(Arc<str>, Json)> {
        let Command { stage, what, params, .. } = &self.commands.get(&id)?.command;
        (*stage == Stage::Accepted).then(|| (Arc::clone(what), params.clone()))
    }

    /// Returns when the browser that has a command was last heard of; `None` when none has it.
    pub(crate) fn last_word(&self, now: Now, id: TaskId) -> Option<Instant> {
        let browser = self.commands.get(&id)?.browser.as_ref()?;
        let profile = self.profiles.get(browser)?;
        Some(if profile.poll.is_some() { now.awake } else { profile.last_word.awake })
    }

    /// Tells whether any browser is there, and when that changes if nobody is heard of. It is asked with
    /// every command: no browser is looked at while one holds a poll.
    pub(crate) fn presence(&self, now: Now, linger: Duration) -> (bool, Option<Instant>) {
        if self.n_held > 0 {
            return (true, None);
        }
        let there = self.profiles.values().filter(|profile| profile.is_there(now, linger));
        let until = there.map(|profile| profile.last_word.awake + linger).max();
        (until.is_some(), until)
    }

    /// Shows the browsers.
    pub(crate) fn browsers(&self, now: Now, linger: Duration) -> Vec<Presence> {
        let show = |(name, profile): (&Arc<str>, &Profile)| Presence {
            name: Arc::clone(name),
            is_there: profile.is_there(now, linger),
            silent_for: match profile.poll {
                Some(_) => Duration::ZERO,
                None => now.real.saturating_duration_since(profile.last_word.real),
            },
            is_paused: profile.is_paused,
            revision: profile.revision,
            n_waiting: profile.pending.len(),
        };
        self.profiles.iter().map(show).collect()
    }
}

impl Outgoing {
    /// Ends a command that nobody has yet, where the extension that asks for it is too old; tells whether it did.
    fn refuse(&mut self, revision: u32) -> bool {
        if self.command.stage != Stage::Posted || self.command.revision <= revision {
            return false;
        }
        let Some(ended) = self.command.stage.next(Move::End) else { return false };
        self.command.stage = ended;
        // An executor that is gone has withdrawn it.
        let _ = self.command.reports.send(Report::TooOld);
        true
    }

    /// When what went out for the command goes out again, if nobody answers it.
    fn due_again(&self, session: &Arc<str>) -> Option<Instant> {
        let sent = match (self.command.stage == Stage::Accepted, self.is_stopping) {
            (true, true) => self.stop_sent,
            (false, false) => {
                self.delivered.as_ref().filter(|(to, _)| to == session).map(|(_, at)| *at)
            }
            (true, false) | (false, true) => None,
        };
        sent.map(|at| at + UNSURE)
    }

    /// Writes what the browser has to be told of the command now, if anything.
    fn entry(&mut self, now: Now, id: TaskId, session: &Arc<str>) -> Option<String> {
        let Command { stage, .. } = self.command;
        if stage == Stage::Accepted {
            let is_due = self.stop_sent.is_none_or(|at| now.real.duration_since(at) >= UNSURE);
            if !(self.is_stopping && is_due) {
                return None;
            }
            self.stop_sent = Some(now.real);
            return serde_json::to_string(&Stopping::of(id)).ok();
        }
        let is_due = match &self.delivered {
            None => true,
            // Another session's: it is being given back.
            Some((to, at)) => to == session && now.real.duration_since(*at) >= UNSURE,
        };
        if !is_due || self.is_stopping {
            return None;
        }
        self.command.stage = stage.next(Move::Deliver)?;
        self.delivered = Some((Arc::clone(session), now.real));
        let command = &self.command;
        let correlation_id = id.spell(Spelling::Correlation);
        let entry = Delivery {
            id: format!("{correlation_id}.{}", command.fence.raw()),
            correlation_id,
            kind: "browser_action",
            params: &command.params,
            attempt: command.attempt,
            fence: command.fence,
            tab_id: command.tab_id,
            caller: &command.caller,
            is_anew: command.is_anew,
            others: &command.others,
            server: command.server.as_deref(),
            accept_ms: millis(command.accept),
            deadline_ms: millis(command.run),
        };
        serde_json::to_string(&entry).ok()
    }
}

impl Profile {
    fn new(now: Now, session: &Arc<str>, revision: u32) -> Self {
        Self {
            session: Arc::clone(session),
            revision,
            poll: None,
            wake: Arc::default(),
            known_since: now.awake,
            last_word: now,
            is_paused: false,
            pending: BTreeMap::new(),
        }
    }

    fn is_there(&self, now: Now, linger: Duration) -> bool {
        self.poll.is_some() || now.awake.saturating_duration_since(self.last_word.awake) < linger
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
