//! What the service, its drivers and every handle have in common.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use futures_util::future::poll_immediate;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::lifecycle::State;
use raincheck_core::log::LogStore;
use raincheck_core::progress::Progress;
use raincheck_core::store::{self, TaskStore, Update, UpdateResult};
use raincheck_core::task::{TaskRecord, WaitReason};

use super::dispatch::Unfilled;
use super::tools::Tools;
use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::ids::Ids;
use crate::live::Lives;
use crate::observe::Observer;
use crate::shards::lock;
use crate::waits::Waits;

/// How far the engine is.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// The store is not open yet.
    Opening,
    /// Requests are taken.
    Open,
    /// No request is taken any more.
    Closed,
    /// The store could not be opened.
    Failed(store::Error),
}

/// What the service, its drivers and every handle have in common.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) logs: Arc<dyn LogStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) tools: Tools,
    pub(crate) lives: Lives,
    pub(crate) waits: Arc<Waits>,
    pub(crate) observer: Observer,
    pub(super) timers: Alarm,
    pub(super) beats: Alarm,
    pub(super) unfilled: Unfilled,
    /// The futures that run attempts.
    pub(super) drivers: Mutex<JoinSet<()>>,
    /// The commands whose callers went away.
    pub(super) orphans: TaskTracker,
    pub(super) phase: watch::Sender<Phase>,
    /// Told when a request finds a store that could not be opened.
    pub(super) wanted: Notify,
    lanes: Mutex<BTreeMap<LaneId, lane::Config>>,
}

impl Shared {
    pub(super) fn new(
        options: &super::Options,
        lanes: BTreeMap<LaneId, lane::Config>,
        tools: Tools,
    ) -> Self {
        Self {
            store: Arc::clone(&options.store),
            logs: Arc::clone(&options.logs),
            clock: Arc::clone(&options.clock),
            ids: Arc::clone(&options.ids),
            tools,
            lives: Lives::new(),
            waits: Arc::new(Waits::new()),
            observer: Observer::new(),
            timers: Alarm::new(),
            beats: Alarm::new(),
            unfilled: Unfilled::new(),
            drivers: Mutex::default(),
            orphans: TaskTracker::new(),
            phase: watch::Sender::new(Phase::Opening),
            wanted: Notify::new(),
            lanes: Mutex::new(lanes),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Open)
    }

    /// Waits until the store is open. One that could not be opened is tried again: what was in the
    /// way, such as a full disk or another owner, may be gone.
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        if self.is_open() {
            return Ok(());
        }
        let mut phases = self.phase.subscribe();
        if matches!(*phases.borrow_and_update(), Phase::Failed(_)) {
            self.wanted.notify_one();
            // The sender is a part of this value.
            let _ = phases.changed().await;
        }
        let phase = phases.wait_for(|phase| !matches!(phase, Phase::Opening)).await;
        match phase.as_deref() {
            Ok(Phase::Open) => Ok(()),
            Ok(Phase::Failed(error)) => Err(error.clone().into()),
            Ok(Phase::Opening | Phase::Closed) | Err(_) => {
                Err(Error::new(Kind::StorageUnavailable, "the server is shutting down"))
            }
        }
    }

    /// Waits until the store is open, without asking for it; `false` when the engine ends before.
    pub(crate) async fn opened(&self) -> bool {
        let mut phases = self.phase.subscribe();
        let phase = phases.wait_for(|phase| matches!(phase, Phase::Open | Phase::Closed)).await;
        matches!(phase.as_deref(), Ok(Phase::Open))
    }

    /// Runs a command to its end even when the caller goes away: what is not ready at the first
    /// poll goes on beside the caller.
    pub(crate) async fn detached<T, F>(&self, command: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let mut command = Box::pin(command);
        if let Some(done) = poll_immediate(&mut command).await {
            return done;
        }
        self.orphans.spawn(command).await.unwrap_or_else(|_| {
            Err(Error::new(Kind::StorageUnavailable, "the command was cut off at the shutdown"))
        })
    }

    /// Posts one event and waits for its commit.
    pub(crate) async fn update_one(&self, update: Update) -> Result<UpdateResult, Error> {
        let posted = self.store.update(self.clock.now(), vec![update], None).await?;
        posted.receipt.committed().await?;
        let (mut verdicts, _) = posted.value;
        verdicts.pop().ok_or_else(|| {
            Error::new(Kind::StorageUnavailable, "the store gave no verdict on an event")
        })
    }

    /// Returns the place of a task in its lane while it is in line.
    pub(crate) async fn position(&self, record: &TaskRecord) -> Result<Option<u32>, Error> {
        if matches!(record.state, State::Queued | State::Waiting) {
            return Ok(self.store.position(record.id()).await?);
        }
        Ok(None)
    }

    /// Returns what the running attempt of a task last reported.
    pub(crate) fn report(&self, record: &TaskRecord) -> (Option<Progress>, Option<Json>) {
        if !record.state.is_leased() {
            return (None, None);
        }
        match self.lives.get(record.id()).filter(|live| live.fence == record.fence) {
            Some(live) => {
                let report = lock(&live.report);
                (report.progress.clone(), report.partial.clone())
            }
            None => (None, None),
        }
    }

    /// Tells whether the executor of a task is still at work here.
    pub(crate) fn has_executor(&self, id: TaskId) -> bool {
        self.lives.get(id).is_some_and(|live| !live.has_ended.load(Ordering::Acquire))
    }

    pub(crate) fn lane(&self, lane: &LaneId) -> Option<lane::Config> {
        lock(&self.lanes).get(lane).cloned()
    }

    pub(crate) fn lane_names(&self) -> Vec<LaneId> {
        lock(&self.lanes).keys().cloned().collect()
    }

    pub(super) fn lanes(&self) -> Vec<(LaneId, lane::Config)> {
        lock(&self.lanes).iter().map(|(lane, config)| (lane.clone(), config.clone())).collect()
    }

    pub(crate) async fn set_lane(&self, lane: LaneId, config: lane::Config) -> Result<(), Error> {
        self.store.set_lane(lane.clone(), config.clone()).await?;
        lock(&self.lanes).insert(lane.clone(), config);
        self.unfilled.mark(lane);
        Ok(())
    }

    pub(crate) async fn hold(&self, lane: LaneId, hold: Option<WaitReason>) -> Result<u32, Error> {
        let posted = self.store.hold(self.clock.now(), lane.clone(), hold).await?;
        posted.receipt.committed().await?;
        self.unfilled.mark(lane);
        Ok(posted.value)
    }
}
