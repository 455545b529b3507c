//! What every command goes through: the ledger, and what it decided that is not written yet.
//!
//! A command is applied and handed over to the writer under one lock, so that changes are written in
//! the order in which they were decided.

mod inputs;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use raincheck_core::content::Json;
use raincheck_core::ids::{Fence, LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::ledger::{Effect, Ledger};
use raincheck_core::mac::MacKey;
use raincheck_core::progress::Progress;
use raincheck_core::scope::Scope;
use raincheck_core::store::{AttemptReport, ChangeSink, Committed, Error, Heartbeat, Receipt};
use raincheck_core::task::{Metrics, TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;

use crate::batch::Batch;
use crate::files::Stored;
use crate::settled::Settled;
use inputs::Inputs;

/// How far the writer is. Each life of the ledger has its own.
#[derive(Clone, Debug, Default)]
struct Reached {
    /// The last hand-over that is committed.
    upto: u64,
    /// Set when everything after it is lost.
    lost: Option<Error>,
}

/// Whether commands are taken.
#[derive(Debug)]
enum Phase {
    /// Not opened yet, or not successfully.
    Closed,
    /// Being opened.
    Opening,
    /// Yes.
    Open,
    /// No: a commit failed. Asked anew by each command, so that the writer tries to recover.
    Failed { error: Error, is_asked: bool, view: View },
    /// No more.
    Gone,
}

/// What the ledger shows after a failed commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    /// Still what is lost, too: a read waits for its receipt.
    Ahead,
    /// What is on the disk.
    Committed,
    /// Nothing: the disk cannot be read.
    Nothing,
}

/// The word that a batch is committed.
///
/// Whoever waits runs at once, often in the place of the thread that woke it: on a machine with other
/// work the writer may not get a processor again for milliseconds. So it must hold no lock then, and
/// have nothing left to do for this batch.
#[must_use]
pub(crate) struct Announcement(watch::Sender<Reached>);

impl Announcement {
    pub(crate) fn tell(self) {
        self.0.send_modify(|_| {});
    }
}

/// What the writer does next.
#[derive(Debug)]
pub(crate) enum Job {
    /// Write this.
    Commit(Box<Batch>),
    /// Read the ledger back from the disk; the instant is the last one that was told.
    Recover(Timestamp),
    /// End.
    Stop,
}

/// The state behind the lock.
pub(crate) struct Front {
    pub(crate) ledger: Ledger,
    phase: Phase,
    batch: Batch,
    /// How many hand-overs there were.
    head: u64,
    /// The last hand-over that changed a task, until it is committed.
    touched: BTreeMap<TaskId, u64>,
    inputs: Inputs,
    /// What is in memory of what has ended, and what is known of the rest.
    pub(crate) settled: Settled,
    /// What running attempts used so far, until they end.
    metrics: BTreeMap<TaskId, Metrics>,
    /// What running attempts last said with a heartbeat, until they end.
    said: BTreeMap<TaskId, Said>,
    /// The tasks that the last failed commit took with it, and why.
    lost: Option<(BTreeMap<TaskId, Scope>, Error)>,
    progress: watch::Sender<Reached>,
    now: Timestamp,
}

/// The front and the bell of the writer.
pub(crate) struct Shared {
    front: Mutex<Front>,
    bell: Condvar,
    mac_key: OnceLock<MacKey>,
}

impl Shared {
    pub(crate) fn new() -> Self {
        let front = Front {
            ledger: Ledger::new(0),
            phase: Phase::Closed,
            batch: Batch::default(),
            head: 0,
            touched: BTreeMap::new(),
            inputs: Inputs::default(),
            settled: Settled::default(),
            metrics: BTreeMap::new(),
            said: BTreeMap::new(),
            lost: None,
            progress: watch::Sender::default(),
            now: Timestamp::MIN,
        };
        Self { front: Mutex::new(front), bell: Condvar::new(), mac_key: OnceLock::new() }
    }

    /// Returns the key that goes with the file, once that was opened.
    pub(crate) fn mac_key(&self) -> Option<MacKey> {
        self.mac_key.get().cloned()
    }

    /// Keeps the key that goes with the file.
    pub(crate) fn set_mac_key(&self, key: MacKey) {
        // A store is opened once, and the key of its file never changes.
        let _ = self.mac_key.set(key);
    }

    fn lock(&self) -> MutexGuard<'_, Front> {
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the state, or changes what no commit depends on.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Front) -> T) -> T {
        work(&mut self.lock())
    }

    /// Runs one command and hands over what it changed; the receipt covers it and all before it.
    pub(crate) fn transact<T>(
        &self,
        now: Timestamp,
        work: impl FnOnce(&mut Front) -> T,
    ) -> Result<(T, Receipt), Error> {
        let mut front = self.lock();
        front.now = front.now.max(now);
        if let Err(error) = front.check() {
            self.bell.notify_one();
            return Err(error);
        }
        let value = work(&mut front);
        let receipt = front.receipt(front.head);
        let has_work = front.has_work();
        drop(front);
        if has_work {
            self.bell.notify_one();
        }
        Ok((value, receipt))
    }

    /// Reads under the lock; what is read may leave once its receipt is committed.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Front) -> T) -> Result<T, Error> {
        let mut front = self.lock();
        let is_readable =
            matches!(front.phase, Phase::Failed { view: View::Ahead | View::Committed, .. });
        if !is_readable && let Err(error) = front.check() {
            self.bell.notify_one();
            return Err(error);
        }
        Ok(work(&front))
    }

    /// Returns a receipt for everything before it.
    pub(crate) fn barrier(&self) -> Receipt {
        let front = self.lock();
        front.receipt(front.head)
    }

    /// Begins to open; refused when the store is open already.
    pub(crate) fn begin_opening(&self) -> Result<(), Error> {
        let mut front = self.lock();
        match front.phase {
            Phase::Closed => {
                front.phase = Phase::Opening;
                Ok(())
            }
            Phase::Opening | Phase::Open | Phase::Failed { .. } | Phase::Gone => {
                Err(Error::new("the store is open already"))
            }
        }
    }

    /// Ends an opening that failed: it may be tried again.
    pub(crate) fn end_opening(&self) {
        let mut front = self.lock();
        if matches!(front.phase, Phase::Opening) {
            front.phase = Phase::Closed;
        }
    }

    /// Begins to take commands on a ledger that was read from the disk.
    pub(crate) fn begin_life(&self, ledger: Ledger, settled: Settled) {
        let mut front = self.lock();
        if matches!(front.phase, Phase::Gone) {
            return;
        }
        front.phase = Phase::Open;
        front.batch = Batch::default();
        front.restore(ledger, settled);
        let upto = front.head;
        front.progress = watch::Sender::new(Reached { upto, lost: None });
        // What was changed while it was read from the disk.
        front.apply(|_| ());
    }

    /// Takes no commands from now on. What waits for a commit does not know yet that it is lost.
    /// Returns the files that only what was still to be written named.
    pub(crate) fn refuse(&self, error: &Error) -> Vec<String> {
        let mut front = self.lock();
        let files = std::mem::take(&mut front.batch).files().collect();
        let view = match front.phase {
            Phase::Gone => return files,
            Phase::Failed { view, .. } => view,
            Phase::Closed | Phase::Opening | Phase::Open => View::Ahead,
        };
        front.phase = Phase::Failed { error: error.clone(), is_asked: false, view };
        files
    }

    /// Ends a life of the ledger: nothing that is not committed may be acknowledged. What is, can
    /// be read on, if it could be read back from the disk.
    pub(crate) fn fall_back(&self, error: &Error, committed: Option<(Ledger, Settled)>) {
        let mut front = self.lock();
        if let Phase::Failed { view, .. } = &mut front.phase {
            *view = if committed.is_some() { View::Committed } else { View::Nothing };
        }
        if let Some((ledger, settled)) = committed {
            let gone = front.touched.keys().filter(|id| ledger.get(**id).is_none());
            let scopes = gone
                .filter_map(|id| front.ledger.get(*id).map(|row| (*id, row.task.scope.clone())));
            front.lost = Some((scopes.collect(), error.clone()));
            front.restore(ledger, settled);
        }
        front.progress.send_modify(|progress| progress.lost = Some(error.clone()));
    }

    /// Takes no more commands; the writer ends after what it has.
    pub(crate) fn close(&self) {
        self.lock().phase = Phase::Gone;
        self.bell.notify_one();
    }

    /// Ends for good, whatever ended the writer: who still waits is told.
    pub(crate) fn end(&self) {
        let mut front = self.lock();
        front.batch = Batch::default();
        front.phase = Phase::Gone;
        let error = Error::new("the store is closed");
        front.progress.send_modify(|progress| progress.lost = Some(error));
    }

    /// Waits for something to write.
    pub(crate) fn next_job(&self) -> Job {
        let mut front = self.lock();
        loop {
            if front.has_work() {
                return Job::Commit(Box::new(std::mem::take(&mut front.batch)));
            }
            let now = front.now;
            match &mut front.phase {
                Phase::Gone => return Job::Stop,
                Phase::Failed { is_asked, .. } if *is_asked => {
                    *is_asked = false;
                    return Job::Recover(now);
                }
                Phase::Closed | Phase::Opening | Phase::Open | Phase::Failed { .. } => {}
            }
            front = self.bell.wait(front).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that a batch is committed, and returns what [tells](Announcement::tell) everybody who
    /// waits for it.
    pub(crate) fn committed(&self, batch: &Batch) -> Announcement {
        let mut front = self.lock();
        front.touched.retain(|_, seq| *seq > batch.upto);
        for standing in batch.rows.values().filter(|standing| standing.is_new) {
            front.inputs.commit(standing.row.id());
        }
        front.settle(batch);
        front.progress.send_if_modified(|progress| {
            progress.upto = batch.upto;
            false
        });
        Announcement(front.progress.clone())
    }

    /// Shows the lanes, and why each is held, for a ledger that is read back.
    pub(crate) fn lanes(&self) -> Vec<(LaneId, lane::Config, Option<WaitReason>)> {
        let front = self.lock();
        let lanes = front.ledger.lanes().into_iter();
        lanes.map(|lane| (lane.lane, lane.config, lane.held)).collect()
    }
}

impl Front {
    fn check(&mut self) -> Result<(), Error> {
        match &mut self.phase {
            Phase::Open => Ok(()),
            Phase::Failed { error, is_asked, .. } => {
                *is_asked = true;
                Err(error.clone())
            }
            Phase::Closed | Phase::Opening => Err(Error::new("the store is not open yet")),
            Phase::Gone => Err(Error::new("the store is closed")),
        }
    }

    fn has_work(&self) -> bool {
        self.batch.upto > 0
    }

    /// Puts a ledger that was read from the disk in place of one that may be ahead of it.
    fn restore(&mut self, ledger: Ledger, settled: Settled) {
        self.ledger = ledger;
        let before = std::mem::replace(&mut self.settled, settled);
        self.settled.succeed(before);
        for lane in self.ledger.lanes() {
            let has_ended =
                |id: &TaskId| self.ledger.get(*id).is_some_and(|record| record.state.is_terminal());
            let holders = lane.slots.iter().map(|slot| slot.task).filter(has_ended);
            holders.for_each(|id| self.settled.add(id));
        }
        self.touched.clear();
        self.inputs.clear();
        self.metrics.clear();
        self.said.clear();
    }

    /// Takes what ended a while ago out of memory: it is on the disk.
    fn settle(&mut self, batch: &Batch) {
        let ended = batch.rows.values().filter(|standing| standing.row.state.is_terminal());
        ended.for_each(|standing| self.settled.add(standing.row.id()));
        for id in self.settled.overdue(batch.rows.len()) {
            let Some(record) = self.ledger.get(id) else { continue };
            if self.touched.contains_key(&id) || self.settled.is_pinned(record) {
                self.settled.add(id);
            } else if let Some(record) = self.ledger.evict(id) {
                self.settled.send_away(&record);
            } else {
                self.settled.add(id);
            }
        }
    }

    /// Brings a task back that was read from the disk, unless it is here.
    pub(crate) fn recall(&mut self, record: TaskRecord) {
        if record.state.is_terminal() && self.ledger.get(record.id()).is_none() {
            self.settled.take_back(&record);
            self.ledger.recall(record);
        }
    }

    /// Returns when the next deadline passes, on the disk or in memory.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        [self.ledger.next_deadline(), self.settled.due()].into_iter().flatten().min()
    }

    /// Returns why a scope's task is not there, if a failed commit took it.
    pub(crate) fn loss(&self, scope: &Scope, id: TaskId) -> Option<Error> {
        let (tasks, error) = self.lost.as_ref()?;
        tasks.get(&id).filter(|owner| *owner == scope).map(|_| error.clone())
    }

    /// The number of the last hand-over that a task's row depends on.
    pub(crate) fn touched(&self, id: TaskId) -> u64 {
        self.touched.get(&id).copied().unwrap_or(0)
    }

    /// The number of the last hand-over that the ledger as a whole depends on.
    pub(crate) const fn head(&self) -> u64 {
        if matches!(self.phase, Phase::Failed { view: View::Committed, .. }) {
            0
        } else {
            self.head
        }
    }

    pub(crate) fn receipt(&self, upto: u64) -> Receipt {
        if self.progress.borrow().upto >= upto {
            return Receipt::Ready;
        }
        Receipt::Pending(Box::new(Waiting { upto, progress: self.progress.subscribe() }))
    }

    /// Does something with the ledger, and hands over what it changed.
    pub(crate) fn apply<T>(&mut self, work: impl FnOnce(&mut Ledger) -> T) -> T {
        self.apply_with(&mut None, work)
    }

    /// The same; `given` is the outcome that comes with it, where that is written already.
    pub(crate) fn apply_with<T>(
        &mut self,
        given: &mut Option<Stored>,
        work: impl FnOnce(&mut Ledger) -> T,
    ) -> T {
        let value = work(&mut self.ledger);
        let effects: Vec<_> = self.ledger.drain_effects().collect();
        for effect in effects {
            self.keep(effect, given);
        }
        value
    }

    fn keep(&mut self, effect: Effect, given: &mut Option<Stored>) {
        let upto = self.hand_over();
        let metrics = match &effect {
            Effect::Inserted { record: row, .. } | Effect::Late { record: row, .. } => {
                self.touched.insert(row.id(), upto);
                None
            }
            Effect::Moved { record, outcome, retried, .. } => {
                self.touched.insert(record.id(), upto);
                if record.state.is_terminal() {
                    self.inputs.spend(record.id());
                }
                if !record.state.is_leased() {
                    self.said.remove(&record.id());
                }
                let has_ended = outcome.is_some() || retried.is_some();
                has_ended.then(|| self.metrics.remove(&record.id())).flatten()
            }
            Effect::Taken(_) | Effect::Heard(_) | Effect::Freed { .. } | Effect::Forgotten(_) => {
                None
            }
        };
        self.batch.keep(effect, metrics, given);
    }

    /// Counts one more change that waits for the writer.
    fn hand_over(&mut self) -> u64 {
        self.head += 1;
        self.batch.upto = self.head;
        self.head
    }

    /// Keeps what a new task was given.
    pub(crate) fn give(&mut self, row: &TaskRecord, inputs: Json, stored: Stored) {
        self.inputs.give(row.id(), inputs);
        self.batch.inputs.push((row.seq, stored));
    }

    /// Returns the inputs of a task that is leased now, if they are in memory: else they are on the
    /// disk.
    pub(crate) fn take_inputs(&mut self, id: TaskId) -> Option<Json> {
        let inputs = self.inputs.get(id);
        self.inputs.spend(id);
        inputs
    }

    /// Keeps what an attempt says beside its change, if it still may.
    pub(crate) fn keep_report(&mut self, id: TaskId, fence: Fence, report: AttemptReport) {
        let Some(row) = self.ledger.get(id).filter(|row| row.takes_report(fence)) else { return };
        let (seq, holds) = (row.seq, row.state.is_leased());
        let AttemptReport { progress, partial, artifacts, metrics } = report;
        // What has ended is listed already.
        if let Some(metrics) = metrics.filter(|_| holds) {
            self.metrics.insert(id, metrics);
        }
        if progress.is_some() || partial.is_some() || !artifacts.is_empty() {
            let upto = self.hand_over();
            self.touched.insert(id, upto);
            let results = self.batch.results.entry(seq).or_default();
            results.progress = progress.or(results.progress.take());
            results.partial = partial.or(results.partial.take());
            self.batch.artifacts.extend(artifacts.into_iter().map(|artifact| (seq, artifact)));
        }
    }

    /// Keeps what comes with a heartbeat, where it is not what the last one brought [LEASE-2].
    pub(crate) fn keep_heartbeat(&mut self, beat: &Heartbeat) {
        let Heartbeat { id, fence, progress, partial } = beat;
        let said = self.said.entry(*id).or_default();
        if said.fence != *fence {
            *said = Said { fence: *fence, ..Said::default() };
        }
        let report = AttemptReport {
            progress: progress.clone().filter(|new| said.progress.as_ref() != Some(new)),
            partial: partial.clone().filter(|new| !is_same(said.partial.as_ref(), new)),
            ..AttemptReport::default()
        };
        said.progress = report.progress.clone().or(said.progress.take());
        said.partial = report.partial.clone().or(said.partial.take());
        self.keep_report(*id, *fence, report);
    }

    /// Lets a batch keep the room its bytes take.
    pub(crate) fn occupy(&mut self, room: tokio::sync::OwnedSemaphorePermit) {
        if self.has_work() {
            self.batch.room.push(room);
        }
    }
}

/// What an attempt last said with a heartbeat.
#[derive(Debug)]
struct Said {
    fence: Fence,
    progress: Option<Progress>,
    partial: Option<Json>,
}

impl Default for Said {
    fn default() -> Self {
        Self { fence: Fence::NONE, progress: None, partial: None }
    }
}

/// Whether a text is the one before, which it mostly is to the byte of its place in memory.
fn is_same(before: Option<&Json>, new: &Json) -> bool {
    before.is_some_and(|before| std::ptr::eq(before.get(), new.get()) || before.get() == new.get())
}

/// A hand-over whose commit is still to come.
struct Waiting {
    upto: u64,
    progress: watch::Receiver<Reached>,
}

#[async_trait]
impl Committed for Waiting {
    async fn wait(mut self: Box<Self>) -> Result<(), Error> {
        let upto = self.upto;
        let reached = self.progress.wait_for(|now| now.upto >= upto || now.lost.is_some()).await;
        match reached.as_deref() {
            Ok(now) if now.upto >= upto => Ok(()),
            Ok(Reached { lost: Some(error), .. }) => Err(error.clone()),
            Ok(_) | Err(_) => Err(Error::new("the store was closed before the commit")),
        }
    }
}

/// Who is told of committed rows.
pub(crate) type Sink = Arc<dyn ChangeSink>;
