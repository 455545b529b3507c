//! What attempts, commands and the engine's loop have in common. It knows no tools.

mod commit;
mod drivers;
mod inbox;
mod phase;
mod sink;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::ids::{LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::lifecycle::State;
use raincheck_core::log::LogStore;
use raincheck_core::mac::MacKey;
use raincheck_core::progress::Progress;
use raincheck_core::store::{self, TaskStore};
use raincheck_core::task::{TaskRecord, WaitReason};

use crate::clock::Clock;
use crate::ids::Ids;
use crate::live::Lives;
use crate::observe::Observer;
use crate::running::RunningTime;
use crate::shards::lock;
use crate::waits::Waits;

pub(crate) use commit::{PAUSE, guarded};
pub(crate) use drivers::{Drivers, abort};
pub(crate) use inbox::{Found, Inbox};
pub(crate) use phase::{Need, Phase, Phases, shutting_down};
pub(crate) use sink::Sink;

fn drawn_key(ids: &dyn Ids) -> MacKey {
    let halves = [ids.nonce(), ids.nonce()].map(u128::to_be_bytes);
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(halves.as_flattened()) {
        *to = *from;
    }
    MacKey::from_bytes(bytes)
}

/// What a kernel works with.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) logs: Arc<dyn LogStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
}

/// What attempts, commands and the engine's loop have in common.
pub(crate) struct Kernel {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) logs: Arc<dyn LogStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) phases: Phases,
    pub(crate) drivers: Drivers,
    /// The attempts that run here.
    pub(crate) lives: Lives,
    /// Who waits for a task.
    pub(crate) waits: Arc<Waits>,
    /// Word for the engine's loop.
    pub(crate) inbox: Inbox,
    pub(crate) running: RunningTime,
    pub(crate) observer: Observer,
    lanes: Mutex<BTreeMap<LaneId, lane::Config>>,
    /// The key of this engine, where the store keeps none.
    own_key: MacKey,
}

impl Kernel {
    pub(crate) fn new(parts: Parts, lanes: BTreeMap<LaneId, lane::Config>) -> Self {
        let Parts { store, logs, clock, ids } = parts;
        Self {
            running: RunningTime::new(clock.now()),
            own_key: drawn_key(&*ids),
            store,
            logs,
            clock,
            ids,
            phases: Phases::new(),
            drivers: Drivers::new(),
            lives: Lives::new(),
            waits: Arc::new(Waits::new()),
            inbox: Inbox::new(),
            observer: Observer::new(),
            lanes: Mutex::new(lanes),
        }
    }

    /// Returns the key of the store, or the one of this engine where the store keeps none.
    pub(crate) fn mac_key(&self) -> MacKey {
        self.store.mac_key().unwrap_or_else(|| self.own_key.clone())
    }

    /// Waits until a request may use the store.
    pub(crate) async fn admit(&self, need: Need) -> Result<(), Error> {
        self.phases.admit(need).await
    }

    /// Returns how long the engine was able to run.
    pub(crate) fn running_time(&self) -> Duration {
        self.running.so_far(self.clock.now())
    }

    /// Has deadlines fired and lanes filled once more after the store failed.
    pub(crate) fn look_again(&self) {
        self.inbox.fire_by(self.clock.now() + PAUSE);
    }

    /// Returns the position of a task in its lane while it is in line.
    pub(crate) async fn position(&self, record: &TaskRecord) -> Result<Option<u32>, store::Error> {
        if matches!(record.state, State::Queued | State::Waiting) {
            return self.store.position(record.id()).await;
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
        self.lives.get(id).is_some_and(|live| !live.has_ended())
    }

    pub(crate) fn lane(&self, lane: &LaneId) -> Option<lane::Config> {
        lock(&self.lanes).get(lane).cloned()
    }

    pub(crate) fn lane_names(&self) -> Vec<LaneId> {
        lock(&self.lanes).keys().cloned().collect()
    }

    pub(crate) fn lanes(&self) -> Vec<(LaneId, lane::Config)> {
        lock(&self.lanes).iter().map(|(lane, config)| (lane.clone(), config.clone())).collect()
    }

    pub(crate) async fn set_lane(&self, lane: LaneId, config: lane::Config) -> Result<(), Error> {
        self.store.set_lane(lane.clone(), config.clone()).await?;
        lock(&self.lanes).insert(lane.clone(), config);
        self.inbox.fill(lane);
        Ok(())
    }

    pub(crate) async fn remove_lane(&self, lane: &LaneId) -> Result<bool, Error> {
        let is_gone = self.store.remove_lane(lane).await?;
        if is_gone {
            lock(&self.lanes).remove(lane);
        }
        Ok(is_gone)
    }

    pub(crate) async fn hold(&self, lane: LaneId, hold: Option<WaitReason>) -> Result<u32, Error> {
        let posted = self.store.hold(self.clock.now(), lane.clone(), hold).await?;
        posted.receipt.committed().await?;
        self.inbox.fill(lane);
        Ok(posted.value)
    }
}
