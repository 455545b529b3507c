//! The store as the engine sees it.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use raincheck_core::content::{Content, Json};
use raincheck_core::decide::Change;
use raincheck_core::error::Guarantee;
use raincheck_core::ids::{ArtifactId, Fence, LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::mac::MacKey;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    AttemptReport, Capabilities, ChangeSink, Claim, Claimed, Cursor, Durability, Error, Filter,
    Found, Heartbeat, HeartbeatReply, LaneView, Page, Receipt, Submit, Submitted, TaskStatus,
    TaskStore, Update, UpdateResult, Write,
};
use raincheck_core::task::{Artifact, Outcome, TaskEvent, TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;

use crate::fault::Fault;
use crate::files::{self, Files, INLINE, Stored};
use crate::front::{Front, Shared};
use crate::housekeeper::Chore;
use crate::list;
use crate::outcome;
use crate::payload;
use crate::readers::{Readers, blocking};
use crate::wanted::Wanted;
use crate::writer::{Start, Writer};

/// How many KiB may be on their way to the disk; commands wait for room before they are applied.
const ROOM: u32 = 64 << 10;

/// The pause before work whose inputs could not be read is leased again.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// How much of what expires on the disk goes in one transaction: nobody waits long behind it.
const EXPIRE_AT_ONCE: u32 = 64;

/// Where a store lies, and what it survives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The database file; files beside it begin with its name.
    pub path: PathBuf,
    /// `Full` survives a power loss, `Process` any crash of the process [DUR-7]. A file survives at
    /// least that: `None` counts as `Process`.
    pub durability: Durability,
}

impl Options {
    /// Makes a store that survives a power loss.
    #[must_use]
    pub fn full(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), durability: Durability::Full }
    }

    /// Makes a store that survives any crash of the process, and answers sooner.
    #[must_use]
    pub fn process(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), durability: Durability::Process }
    }
}

/// Keeps tasks in one SQLite file. See the [crate](crate) for what it promises.
pub struct SqliteStore {
    options: Options,
    /// The database file, behind all links.
    path: PathBuf,
    pub(crate) shared: Arc<Shared>,
    files: Arc<Files>,
    pub(crate) readers: Arc<Readers>,
    /// Held by the one submit that is being accepted: they are accepted in the order in which they came.
    order: tokio::sync::Mutex<()>,
    /// Held by who looks for what expires on the disk.
    firing: tokio::sync::Mutex<()>,
    room: Arc<Semaphore>,
    chores: Mutex<Option<std::sync::mpsc::Sender<Chore>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    #[cfg(test)]
    pub(crate) faults: crate::writer::tests::Faults,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("options", &self.options).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Makes a store that touches nothing until it is [opened](TaskStore::open).
    #[must_use]
    pub fn new(options: Options) -> Self {
        let path = files::behind_links(&options.path);
        let files = Arc::new(Files::new(&path));
        let readers = Arc::new(Readers::new(path.clone(), Arc::clone(&files)));
        Self {
            options,
            path,
            shared: Arc::new(Shared::new()),
            files,
            readers,
            order: tokio::sync::Mutex::default(),
            firing: tokio::sync::Mutex::default(),
            room: Arc::new(Semaphore::new(ROOM as usize)),
            chores: Mutex::new(None),
            writer: Mutex::new(None),
            #[cfg(test)]
            faults: crate::writer::tests::Faults::default(),
        }
    }

    /// Writes a content for its row: into a file, off the threads that must not block, if it is of
    /// about more than [`INLINE`] bytes.
    async fn store<T: Send + 'static>(
        &self,
        id: TaskId,
        size: usize,
        content: T,
        encode: fn(&T) -> Vec<u8>,
    ) -> Result<Stored, Error> {
        if size <= INLINE {
            return Ok(Stored::Inline(encode(&content)));
        }
        let files = Arc::clone(&self.files);
        blocking(move || Ok(Stored::File(files.write(id, &encode(&content))?))).await
    }

    async fn store_inputs(&self, id: TaskId, inputs: &Json) -> Result<Stored, Error> {
        let size = inputs.get().len();
        self.store(id, size, inputs.clone(), |inputs| inputs.get().as_bytes().to_vec()).await
    }

    async fn store_outcome(&self, id: TaskId, outcome: &Outcome) -> Result<Stored, Error> {
        let size = match outcome {
            Outcome::Succeeded(parts) => parts.iter().map(Content::size).sum(),
            Outcome::Failed(error) => error.details.as_ref().map_or(0, |json| json.get().len()),
            Outcome::Cancelled => 0,
        };
        self.store(id, size, outcome.clone(), outcome::encode).await
    }

    /// Removes a file that no row came to name.
    fn drop_stored(&self, unused: impl Iterator<Item = Stored>) {
        let names: Vec<_> = unused.filter_map(|one| one.file().map(str::to_owned)).collect();
        let chores = self.chores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chores) = chores.as_ref().filter(|_| !names.is_empty()) {
            // A file that stays is swept at the next opening.
            let _ = chores.send(Chore::Remove(names));
        }
    }

    /// Waits until there is room for so many bytes on their way to the disk.
    async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Error> {
        let kib = u32::try_from(bytes >> 10).unwrap_or(ROOM).saturating_add(1).min(ROOM);
        let room = Arc::clone(&self.room).acquire_many_owned(kib).await;
        room.map_err(|_| Error::new("the store is closed"))
    }

    /// Adds what the tools are given: from memory while it is not committed, then from the disk. What
    /// cannot be read is [let go of](Self::let_go): whoever is answered has no part in it.
    async fn with_inputs(&self, now: Timestamp, leased: Vec<Leased>) -> Given {
        let on_disk: Vec<u64> =
            leased.iter().filter(|one| one.inputs.is_none()).map(|one| one.record.seq).collect();
        let mut read = Vec::new().into_iter();
        let mut failure = None;
        if !on_disk.is_empty() {
            let inputs = self.readers.read(move |connection, files| {
                let inputs = on_disk.iter().map(|seq| payload::inputs_of(connection, files, *seq));
                inputs.collect::<Result<Vec<_>, _>>()
            });
            match inputs.await {
                Ok(inputs) => read = inputs.into_iter(),
                Err(error) => failure = Some(error),
            }
        }
        let (mut claimed, mut lost) = (Vec::with_capacity(leased.len()), Vec::new());
        for Leased { record, inputs } in leased {
            match inputs.map(Ok).or_else(|| read.next()) {
                Some(Ok(inputs)) => claimed.push(Claimed { record, inputs }),
                Some(Err(fault)) => {
                    let task = record.id();
                    tracing::error!(%task, error = ?fault, "the inputs of a task are gone");
                    lost.push(unreadable(&record));
                }
                None => lost.push(unread(&record)),
            }
        }
        self.let_go(now, lost);
        Given { claimed, failure }
    }

    /// Ends attempts that were leased and cannot begin: nothing waits for the commit.
    fn let_go(&self, now: Timestamp, lost: Vec<Update>) {
        if lost.is_empty() {
            return;
        }
        let done = self.shared.transact(now, |front| {
            for update in lost {
                front.apply(|ledger| ledger.update(now, update));
            }
        });
        if let Err(error) = done {
            // Its lease lapses.
            tracing::error!(%error, "an attempt that cannot begin was not given back");
        }
    }
}

/// What was leased and can begin.
struct Given {
    claimed: Vec<Claimed>,
    /// Why something else could not.
    failure: Option<Error>,
}

/// Ends the attempt of a task whose inputs are gone.
fn unreadable(record: &TaskRecord) -> Update {
    let error = payload::inputs_lost(Guarantee::NotExecuted);
    let change = Change::Finish(Outcome::Failed(error));
    Update { releases: true, ..Update::attempt(record.id(), record.fence, change) }
}

/// Gives back the attempt of a task whose inputs cannot be read now.
fn unread(record: &TaskRecord) -> Update {
    Update { releases: true, ..Update::attempt(record.id(), record.fence, Change::Undeliver) }
}

/// A leased task, with its inputs while they are in memory.
struct Leased {
    record: TaskRecord,
    inputs: Option<Json>,
}

fn lease(front: &mut Front, now: Timestamp, claim: Option<Claim>) -> Vec<Leased> {
    let Some(claim) = claim else { return Vec::new() };
    let rows = front.apply(|ledger| ledger.claim(now, &claim));
    rows.into_iter()
        .map(|record| Leased { inputs: front.take_inputs(record.id()), record })
        .collect()
}

/// Accepts one task; what is `stored` of it is taken when it is a new one.
fn submit(
    front: &mut Front,
    now: Timestamp,
    submit: Submit,
    stored: &mut Option<Stored>,
) -> Submitted {
    let Submit { task, inputs, waiting, is_inline: _, is_known } = submit;
    if is_known {
        return front.ledger.known(&task).unwrap_or(Submitted::Unknown);
    }
    let submitted = front.apply(|ledger| ledger.submit(now, task, waiting));
    if let Submitted::Inserted { record, .. } = &submitted
        && let Some(stored) = stored.take()
    {
        front.give(record, inputs, stored);
    }
    submitted
}

/// One event, and the bytes of the outcome it brings.
struct Prepared {
    update: Update,
    outcome: Option<Stored>,
}

fn update(front: &mut Front, now: Timestamp, prepared: &mut Prepared) -> UpdateResult {
    let mut update = prepared.update.clone();
    if let (Some(report), Some(fence)) = (update.report.take(), update.fence) {
        front.keep_report(update.id, fence, *report);
    }
    front.apply_with(&mut prepared.outcome, |ledger| ledger.update(now, update))
}

fn size_of(report: Option<&AttemptReport>) -> usize {
    report.and_then(|report| report.partial.as_ref()).map_or(0, |partial| partial.get().len())
}

#[async_trait]
impl TaskStore for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            durability: match self.options.durability {
                Durability::Full => Durability::Full,
                Durability::Process | Durability::None => Durability::Process,
            },
        }
    }

    async fn open(
        &self,
        now: Timestamp,
        lanes: Vec<(LaneId, lane::Config)>,
        reattach: Duration,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Vec<Claimed>, Error> {
        self.shared.begin_opening()?;
        let start = Start {
            named: self.options.path.clone(),
            path: self.path.clone(),
            durability: self.options.durability,
            shared: Arc::clone(&self.shared),
            files: Arc::clone(&self.files),
            sink,
            now,
            lanes,
            reattach,
            #[cfg(test)]
            faults: self.faults.clone(),
        };
        let (sender, opened) = oneshot::channel();
        let (shared, readers) = (Arc::clone(&self.shared), Arc::clone(&self.readers));
        let thread = thread::Builder::new().name("raincheck-store".to_owned()).spawn(move || {
            match Writer::open(start) {
                Ok((writer, survivors)) => {
                    if let Err(fault) = readers.open() {
                        tracing::warn!(error = ?fault, "reads open the store's file later");
                    }
                    // Who no longer waits for the opening finds the store open.
                    let _ = sender.send(Ok((survivors, writer.housekeeper().chores())));
                    writer.run();
                }
                Err(error) => {
                    shared.end_opening();
                    let _ = sender.send(Err(error));
                }
            }
        });
        match thread {
            Ok(thread) => {
                *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
            }
            Err(error) => {
                self.shared.end_opening();
                return Err(Fault::from(error).into());
            }
        }
        let opened = opened.await.map_err(|_| Error::new("the store's thread ended"))?;
        let (survivors, chores) = opened?;
        *self.chores.lock().unwrap_or_else(PoisonError::into_inner) = chores;
        Ok(survivors)
    }

    fn mac_key(&self) -> Option<MacKey> {
        self.shared.mac_key()
    }

    async fn set_lane(&self, lane: LaneId, config: lane::Config) -> Result<(), Error> {
        let set = |front: &mut Front| front.ledger.set_lane(lane, config);
        self.shared.transact(Timestamp::MIN, set).map(|_| ())
    }

    async fn remove_lane(&self, lane: &LaneId) -> Result<bool, Error> {
        let remove = |front: &mut Front| front.ledger.remove_lane(lane);
        self.shared.transact(Timestamp::MIN, remove).map(|(is_gone, _)| is_gone)
    }

    async fn submit(
        &self,
        now: Timestamp,
        batch: Vec<Submit>,
        then: Option<Claim>,
    ) -> Result<Write<(Vec<Submitted>, Vec<Claimed>)>, Error> {
        let may_lag = batch.iter().all(|one| one.is_inline && one.task.key.is_none());
        let wanted = Wanted::keys_of(batch.iter().map(|one| &one.task));
        // A large content of one submit, or a look for its key, lets no later one pass.
        let order = self.order.lock().await;
        let mut size = 0;
        let mut all_inputs = Vec::with_capacity(batch.len());
        for Submit { task, inputs, .. } in &batch {
            let stored = self.store_inputs(task.id, inputs).await?;
            size += stored.size();
            all_inputs.push(Some(stored));
        }
        let room = self.room(size).await?;
        let accept = |front: &mut Front| {
            let each = batch.into_iter().zip(&mut all_inputs);
            let submitted: Vec<_> =
                each.map(|(one, stored)| submit(front, now, one, stored)).collect();
            front.occupy(room);
            (submitted, lease(front, now, then))
        };
        let done = self.transact(now, wanted, accept).await;
        drop(order);
        self.drop_stored(all_inputs.into_iter().flatten());
        let ((submitted, leased), receipt) = done?;
        let is_own = |leased: &Leased| {
            submitted.iter().any(
                |one| matches!(one, Submitted::Inserted { record: row, .. } if row.id() == leased.record.id()),
            )
        };
        // The commit of calls that are answered inline may lag behind their start [DUR-6].
        let receipt = if may_lag && leased.iter().all(is_own) { Receipt::Ready } else { receipt };
        let claimed = self.with_inputs(now, leased).await.claimed;
        Ok(Write { value: (submitted, claimed), receipt })
    }

    async fn claim(&self, now: Timestamp, claim: Claim) -> Result<Write<Vec<Claimed>>, Error> {
        let (leased, receipt) =
            self.shared.transact(now, |front| lease(front, now, Some(claim)))?;
        match self.with_inputs(now, leased).await {
            Given { claimed, failure: Some(error) } if claimed.is_empty() => {
                // What was given back is in line again, and would be leased again at once.
                tokio::time::sleep(READ_AGAIN).await;
                Err(error)
            }
            Given { claimed, .. } => Ok(Write { value: claimed, receipt }),
        }
    }

    async fn update(
        &self,
        now: Timestamp,
        batch: Vec<Update>,
        then: Option<Claim>,
    ) -> Result<Write<(Vec<UpdateResult>, Vec<Claimed>)>, Error> {
        let mut all = Vec::with_capacity(batch.len());
        let mut size = 0;
        for update in batch {
            let outcome = match &update.change {
                Change::Finish(outcome) | Change::GiveUp(outcome) => {
                    Some(self.store_outcome(update.id, outcome).await?)
                }
                Change::Stop => Some(self.store_outcome(update.id, &Outcome::Cancelled).await?),
                Change::Hold(_)
                | Change::Resume
                | Change::Lease { .. }
                | Change::Accept
                | Change::Start
                | Change::Undeliver
                | Change::AskInput { .. }
                | Change::GiveInput { .. }
                | Change::RequestCancel { .. }
                | Change::CommitCancel
                | Change::Due(_) => None,
            };
            size += outcome.as_ref().map_or(0, Stored::size) + size_of(update.report.as_deref());
            all.push(Prepared { update, outcome });
        }
        let room = self.room(size).await?;
        let wanted = Wanted::tasks(all.iter().map(|prepared| prepared.update.id));
        let apply = |front: &mut Front| {
            let verdicts: Vec<_> =
                all.iter_mut().map(|prepared| update(front, now, prepared)).collect();
            let leased = lease(front, now, then);
            front.occupy(room);
            (verdicts, leased)
        };
        let done = self.transact(now, wanted, apply).await;
        self.drop_stored(all.into_iter().filter_map(|prepared| prepared.outcome));
        let ((verdicts, leased), receipt) = done?;
        let claimed = self.with_inputs(now, leased).await.claimed;
        Ok(Write { value: (verdicts, claimed), receipt })
    }

    async fn heartbeat(
        &self,
        now: Timestamp,
        beats: Vec<Heartbeat>,
    ) -> Result<Vec<HeartbeatReply>, Error> {
        let beat = |front: &mut Front, beat: Heartbeat| {
            let record = front.ledger.get(beat.id);
            if record.is_some_and(|record| record.fence == beat.fence && record.state.is_leased()) {
                front.keep_heartbeat(&beat);
            }
            front.apply(|ledger| ledger.heartbeat(now, &beat))
        };
        let (replies, _) = self
            .shared
            .transact(now, |front| beats.into_iter().map(|one| beat(front, one)).collect())?;
        Ok(replies)
    }

    async fn release(
        &self,
        now: Timestamp,
        slots: Vec<(TaskId, Fence)>,
    ) -> Result<Write<()>, Error> {
        let release = |front: &mut Front| {
            for (task, fence) in slots {
                front.apply(|ledger| ledger.release(task, fence));
            }
        };
        let (value, receipt) = self.shared.transact(now, release)?;
        Ok(Write { value, receipt })
    }

    async fn hold(
        &self,
        now: Timestamp,
        lane: LaneId,
        hold: Option<WaitReason>,
    ) -> Result<Write<u32>, Error> {
        let hold = |front: &mut Front| front.apply(|ledger| ledger.hold(now, &lane, hold));
        let (value, receipt) = self.shared.transact(now, hold)?;
        Ok(Write { value, receipt })
    }

    async fn extend_deadlines(&self, now: Timestamp, by: Duration) -> Result<Write<u32>, Error> {
        let extend = |front: &mut Front| front.apply(|ledger| ledger.extend(by));
        let (value, receipt) = self.shared.transact(now, extend)?;
        Ok(Write { value, receipt })
    }

    async fn fire(&self, now: Timestamp, limit: u32) -> Result<Write<Option<Timestamp>>, Error> {
        let _alone = self.firing.lock().await;
        let _pins = self.recall_due(now, limit.min(EXPIRE_AT_ONCE)).await?;
        let (value, receipt) = self.shared.transact(now, |front| {
            front.apply(|ledger| ledger.fire(now, limit));
            front.next_deadline()
        })?;
        Ok(Write { value, receipt })
    }

    async fn find(&self, scope: &Scope, id: TaskId) -> Result<Found, Error> {
        self.read_task(scope, id).await
    }

    async fn status(&self, scope: &Scope, id: TaskId) -> Result<Option<TaskStatus>, Error> {
        self.read_status(scope, id).await
    }

    async fn record(&self, scope: &Scope, id: TaskId) -> Result<Option<TaskRecord>, Error> {
        self.read_record(scope, id).await
    }

    async fn unknown(&self, ids: Vec<TaskId>) -> Result<Vec<TaskId>, Error> {
        // What was accepted is in the file when this is over, or never will be.
        self.barrier().committed().await?;
        self.readers.read(move |connection, _| crate::rows::unknown(connection, ids)).await
    }

    async fn artifact(&self, id: &ArtifactId) -> Result<Option<(TaskId, Artifact)>, Error> {
        // What the file holds is committed.
        let id = id.clone();
        self.readers.read(move |connection, _| payload::find_artifact(connection, &id)).await
    }

    async fn events(&self, scope: &Scope, id: TaskId) -> Result<Option<Vec<TaskEvent>>, Error> {
        self.read_events(scope, id).await
    }

    async fn position(&self, id: TaskId) -> Result<Option<u32>, Error> {
        self.shared.read(|front| front.ledger.position(id))
    }

    async fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        before: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<TaskRecord>, Error> {
        self.shared.read(|_| ())?;
        let (scope, filter) = (scope.clone(), filter.clone());
        let list = move |connection: &Connection, _: &Files| {
            list::list(connection, &scope, &filter, before, limit)
        };
        self.readers.read(list).await
    }

    async fn lanes(&self) -> Result<Vec<LaneView>, Error> {
        self.committed(|front| (front.ledger.lanes(), front.receipt(front.head()))).await
    }

    async fn sweep(&self, now: Timestamp, limit: u32) -> Result<Vec<TaskId>, Error> {
        let _pins = self.recall_tombstones(now, limit).await?;
        let sweep = |front: &mut Front| front.apply(|ledger| ledger.sweep(now, limit));
        let (gone, receipt) = self.shared.transact(now, sweep)?;
        receipt.committed().await?;
        Ok(gone)
    }

    fn barrier(&self) -> Receipt {
        self.shared.barrier()
    }
}

impl Drop for SqliteStore {
    /// Waits until what was handed over is written.
    fn drop(&mut self) {
        self.shared.close();
        // The housekeeper goes on as long as somebody may give it chores.
        *self.chores.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The sink may hold the last engine, and so this store: then it ends on its own thread.
        if let Some(writer) = writer.filter(|one| one.thread().id() != thread::current().id())
            && writer.join().is_err()
        {
            tracing::error!("the writer of the store panicked");
        }
    }
}
