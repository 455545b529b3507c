//! The lanes of tabs, made when a tab gets its first command, held while no browser is there, and freed
//! when there are too many and the tab has no command.

use std::collections::BTreeMap;

use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::task::WaitReason;
use raincheck_runtime::Handle;

/// The lane of commands that name no tab.
pub(crate) const DEFAULT: &str = "tab:default";

/// The lane of what must not wait for a tab: tabs themselves, dialogs, settings of the browser.
pub(crate) const CONTROL: &str = "browser";

/// Why commands wait while no browser is there [BROWSER-6].
const WAITING_FOR_BROWSER: WaitReason = WaitReason::new("waiting_for_browser");

/// What every lane of a tab begins with.
const PREFIX: &str = "tab:";

/// How many commands of the control lane may be under way.
const CONTROL_PLACES: u32 = 64;

/// Returns the lane of a tab.
pub(crate) fn of_tab(browser: Option<&str>, tab_id: Option<i64>) -> LaneId {
    match (browser, tab_id) {
        (None, None) => LaneId::from(DEFAULT),
        (None, Some(tab)) => LaneId::from(format!("{PREFIX}{tab}")),
        (Some(browser), None) => LaneId::from(format!("{PREFIX}{browser}:default")),
        (Some(browser), Some(tab)) => LaneId::from(format!("{PREFIX}{browser}:{tab}")),
    }
}

/// Returns the tab that a lane is for; `None` for a lane that is no tab's.
#[must_use]
pub fn tab_of(lane: &LaneId) -> Option<i64> {
    lane.as_str().strip_prefix(PREFIX)?.rsplit(':').next()?.parse().ok()
}

/// Returns the lanes that are always there.
pub(crate) fn fixed(queue_limit: u32) -> Vec<(LaneId, lane::Config)> {
    vec![
        (LaneId::from(DEFAULT), of_one(queue_limit)),
        (LaneId::from(CONTROL), lane::Config::new(CONTROL_PLACES, CONTROL_PLACES)),
    ]
}

/// A tab runs one command at a time [QUEUE-1].
const fn of_one(queue_limit: u32) -> lane::Config {
    lane::Config::new(1, queue_limit)
}

/// Which lanes there are, and whether they are held. Used by one caller at a time.
#[derive(Debug)]
pub(crate) struct Lanes {
    held: BTreeMap<LaneId, bool>,
    /// When each lane of a tab was asked for last, counted in requests.
    used: BTreeMap<LaneId, u64>,
    n_asked: u64,
    queue_limit: u32,
    most: usize,
}

impl Lanes {
    pub(crate) fn new(queue_limit: u32, most: usize) -> Self {
        let fixed = fixed(queue_limit).into_iter().map(|(lane, _)| (lane, false));
        let (used, n_asked) = (BTreeMap::new(), 0);
        Self { held: fixed.collect(), used, n_asked, queue_limit, most }
    }

    /// Learns of the lanes that an earlier server left commands in.
    pub(crate) async fn restore(&mut self, engine: &Handle) -> Result<(), Error> {
        for view in engine.lanes().await? {
            let is_new = !self.held.contains_key(&view.lane);
            if is_new && view.lane.as_str().starts_with(PREFIX) {
                self.make(engine, &view.lane).await?;
            }
        }
        Ok(())
    }

    /// Makes sure that a lane is there, and held as the others are.
    pub(crate) async fn ensure(
        &mut self,
        engine: &Handle,
        lane: &LaneId,
        is_held: bool,
    ) -> Result<(), Error> {
        self.n_asked += 1;
        if let Some(asked) = self.used.get_mut(lane) {
            *asked = self.n_asked;
        }
        if self.held.contains_key(lane) {
            return Ok(());
        }
        if self.held.len() >= self.most && !self.free(engine).await? {
            let message = format!("{} tabs have commands that have not ended", self.held.len());
            return Err(Error::new(Kind::QueueFull, message)
                .with_hint("wait until a command of another tab has ended, or cancel one"));
        }
        self.make(engine, lane).await?;
        self.set(engine, lane, is_held).await
    }

    /// Frees lanes of tabs that have no command, down to half of what there may be, so that this is
    /// seldom done; tells whether there is room now.
    ///
    /// Those that were asked for last stay if they can: their command may be on its way into the lane.
    async fn free(&mut self, engine: &Handle) -> Result<bool, Error> {
        let mut oldest: Vec<_> =
            self.used.iter().map(|(lane, asked)| (*asked, lane.clone())).collect();
        oldest.sort_unstable();
        for (_, lane) in oldest {
            if self.held.len() <= self.most / 2 {
                break;
            }
            if engine.remove_lane(lane.clone()).await? {
                self.held.remove(&lane);
                self.used.remove(&lane);
            }
        }
        Ok(self.held.len() < self.most)
    }

    /// Holds every lane, or lets every lane go on [QUEUE-5].
    pub(crate) async fn hold(&mut self, engine: &Handle, is_held: bool) -> Result<(), Error> {
        let lanes: Vec<LaneId> = self.held.keys().cloned().collect();
        for lane in lanes {
            if self.held.get(&lane) != Some(&is_held) {
                self.set(engine, &lane, is_held).await?;
            }
        }
        Ok(())
    }

    async fn make(&mut self, engine: &Handle, lane: &LaneId) -> Result<(), Error> {
        engine.set_lane(lane.clone(), of_one(self.queue_limit)).await?;
        self.held.insert(lane.clone(), false);
        self.used.insert(lane.clone(), self.n_asked);
        Ok(())
    }

    async fn set(&mut self, engine: &Handle, lane: &LaneId, is_held: bool) -> Result<(), Error> {
        let hold = is_held.then_some(WAITING_FOR_BROWSER);
        engine.hold(lane.clone(), hold).await?;
        self.held.insert(lane.clone(), is_held);
        Ok(())
    }
}
