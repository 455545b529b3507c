//! The lanes of editors: one per editor, held while it is away or busy, and those beside them.

use std::collections::BTreeMap;
use std::time::Duration;

use raincheck_core::error::Error;
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::task::WaitReason;
use raincheck_runtime::Handle;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// The lane of calls that are made while no editor is known.
pub(crate) const DEFAULT: &str = "unity:default";

/// The lane of what is answered off an editor's main thread.
pub(crate) const CONTROL: &str = "unity:control";

/// The lane of calls that join one that runs.
pub(crate) const JOINED: &str = "unity:joined";

/// What every lane begins with.
const PREFIX: &str = "unity:";

/// The least time between two changes of why a lane is held.
const PACE: Duration = Duration::from_millis(100);

/// How many calls beside the lanes of editors may be under way.
const PLACES_BESIDE: u32 = 64;

/// Returns the lane of the editor of a project.
pub(crate) fn of_project(path: &str) -> LaneId {
    let digest = Sha256::digest(path.as_bytes());
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    LaneId::from(format!("{PREFIX}{name}"))
}

/// Returns the lanes that are always there.
pub(crate) fn fixed(queue_limit: u32) -> Vec<(LaneId, lane::Config)> {
    let beside = lane::Config::new(PLACES_BESIDE, PLACES_BESIDE);
    vec![
        (LaneId::from(DEFAULT), of_one(queue_limit)),
        (LaneId::from(CONTROL), beside.clone()),
        (LaneId::from(JOINED), beside),
    ]
}

/// An editor runs one call at a time on its main thread [QUEUE-1].
const fn of_one(queue_limit: u32) -> lane::Config {
    lane::Config::new(1, queue_limit)
}

/// Which lanes there are, and why they are held. Used by one caller at a time.
#[derive(Debug)]
pub(crate) struct Lanes {
    held: BTreeMap<LaneId, Option<WaitReason>>,
    /// When each was held or released last.
    moved: BTreeMap<LaneId, Instant>,
    queue_limit: u32,
    most: usize,
}

impl Lanes {
    pub(crate) fn new(queue_limit: u32, max_editors: usize) -> Self {
        let fixed = fixed(queue_limit);
        let most = max_editors * 2 + fixed.len();
        let held = fixed.into_iter().map(|(lane, _)| (lane, None)).collect();
        Self { held, moved: BTreeMap::new(), queue_limit, most }
    }

    /// Learns of the lanes that an earlier server left calls in.
    pub(crate) async fn restore(&mut self, engine: &Handle) -> Result<(), Error> {
        for view in engine.lanes().await? {
            let is_new = !self.held.contains_key(&view.lane);
            if is_new && view.lane.as_str().starts_with(PREFIX) {
                self.make(engine, &view.lane).await?;
            }
        }
        Ok(())
    }

    /// Returns the lanes there are.
    pub(crate) fn all(&self) -> Vec<LaneId> {
        self.held.keys().cloned().collect()
    }

    /// Makes sure that a lane is there, and held as it should be. An editor that changes faster than that
    /// is followed once per [`PACE`]; then the instant to come again is returned.
    pub(crate) async fn set(
        &mut self,
        engine: &Handle,
        lane: &LaneId,
        hold: Option<WaitReason>,
        now: Instant,
    ) -> Result<Option<Instant>, Error> {
        if !self.held.contains_key(lane) {
            self.free(engine, lane).await?;
            self.make(engine, lane).await?;
        }
        if self.held.get(lane) != Some(&hold) {
            let next = self.moved.get(lane).map(|moved| *moved + PACE);
            if next.is_some_and(|next| now < next) {
                return Ok(next);
            }
            tracing::debug!(%lane, hold = ?hold, "a lane is held or goes on");
            engine.hold(lane.clone(), hold.clone()).await?;
            self.held.insert(lane.clone(), hold);
            self.moved.insert(lane.clone(), now);
        }
        Ok(None)
    }

    /// Frees lanes of editors that have no call, if there are too many.
    async fn free(&mut self, engine: &Handle, but: &LaneId) -> Result<(), Error> {
        if self.held.len() < self.most {
            return Ok(());
        }
        let fixed = fixed(self.queue_limit);
        let others =
            self.held.keys().filter(|it| *it != but && fixed.iter().all(|(one, _)| one != *it));
        for lane in others.cloned().collect::<Vec<_>>() {
            if engine.remove_lane(lane.clone()).await? {
                self.held.remove(&lane);
                self.moved.remove(&lane);
            }
        }
        Ok(())
    }

    async fn make(&mut self, engine: &Handle, lane: &LaneId) -> Result<(), Error> {
        engine.set_lane(lane.clone(), of_one(self.queue_limit)).await?;
        self.held.insert(lane.clone(), None);
        Ok(())
    }
}
