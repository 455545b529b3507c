//! The part of the engine that owns what runs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::store;
use raincheck_core::tool::Class;

use super::Options;
use super::shared::{Phase, Shared};
use super::sink::Sink;
use super::tools::Tools;
use crate::handle::Handle;
use crate::toolset::{CONTROL_LANE, ToolSet};

/// How many control tools may run at once; there to bound a flood, not to make anybody wait.
const CONTROL_PLACES: u32 = 1024;

/// Makes an engine that stands still until its service [runs](Service::run).
///
/// The handle answers [`specs`](Handle::specs) at once; whatever needs the store waits for it.
#[must_use]
pub fn start(options: Options) -> (Handle, Service) {
    let tools = Tools::new(&options.toolsets);
    let lanes = lanes_of(&options, &tools);
    let shared = Arc::new(Shared::new(&options, lanes, tools));
    let handle = Handle::new(Arc::clone(&shared));
    let Options { toolsets, reattach_grace, sweep_every, .. } = options;
    (handle, Service { shared, toolsets, reattach_grace, sweep_every })
}

fn lanes_of(options: &Options, tools: &Tools) -> BTreeMap<LaneId, lane::Config> {
    let mut lanes = BTreeMap::new();
    if tools.specs.iter().any(|spec| spec.class == Class::Control) {
        let config = lane::Config::new(CONTROL_PLACES, CONTROL_PLACES);
        lanes.insert(LaneId::from(CONTROL_LANE), config);
    }
    for set in &options.toolsets {
        lanes.extend(set.lanes());
    }
    lanes.extend(options.lanes.iter().cloned());
    lanes
}

/// The engine itself: everything that it spawns ends with [`run`](Self::run).
pub struct Service {
    shared: Arc<Shared>,
    toolsets: Vec<Arc<dyn ToolSet>>,
    reattach_grace: Duration,
    sweep_every: Duration,
}

impl Service {
    /// Opens the store, takes up what survived, and serves until `stop` fires [DUR-3].
    ///
    /// Returns within 1.5 seconds after that, at once when nothing runs. A store that cannot be
    /// opened is the answer of every request, and each one has it tried again.
    ///
    /// # Cancel safety
    /// Dropping the future ends the engine without the courtesy of a shutdown.
    pub async fn run(self, stop: CancellationToken) {
        let mut loops = JoinSet::new();
        if self.open_in_the_end(&stop).await {
            loops.spawn(Arc::clone(&self.shared).fire_deadlines());
            loops.spawn(Arc::clone(&self.shared).beat());
            loops.spawn(Arc::clone(&self.shared).dispatch());
            let sets = self.toolsets.clone();
            loops.spawn(Arc::clone(&self.shared).sweep(self.sweep_every, sets));
            stop.cancelled().await;
        }
        self.shared.shut_down(loops).await;
    }

    /// Opens the store, after a failure again with the next request; `false` when told to stop
    /// before that.
    async fn open_in_the_end(&self, stop: &CancellationToken) -> bool {
        let mut told = None;
        loop {
            let Err(error) = self.open().await else { return true };
            if told.as_ref() != Some(&error.message) {
                tracing::error!(%error, "the store could not be opened");
                told = Some(Arc::clone(&error.message));
            }
            self.shared.phase.send_replace(Phase::Failed(error));
            tokio::select! {
                () = stop.cancelled() => return false,
                () = self.shared.wanted.notified() => {}
            }
            self.shared.phase.send_replace(Phase::Opening);
        }
    }

    async fn open(&self) -> Result<(), store::Error> {
        let shared = &self.shared;
        let sink = Arc::new(Sink::new(shared));
        let now = shared.clock.now();
        let survivors = shared.store.open(now, shared.lanes(), self.reattach_grace, sink).await?;
        shared.phase.send_replace(Phase::Open);
        for survivor in survivors {
            Shared::reattach(shared, survivor);
        }
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.phase.send_replace(Phase::Closed);
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("reattach_grace", &self.reattach_grace)
            .field("sweep_every", &self.sweep_every)
            .finish_non_exhaustive()
    }
}
