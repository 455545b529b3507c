//! The part of the engine that owns what runs: one loop, the jobs that it begins, and the attempts.

mod shutdown;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::store;
use raincheck_core::time::Timestamp;
use raincheck_core::tool::Class;

use crate::engine::{Agenda, Done, Engine, JobKind};
use crate::handle::Handle;
use crate::kernel::{Kernel, Parts, Phase, Sink};
use crate::options::Options;
use crate::running::{IDLE_TURN, TURN};
use crate::tools::Tools;
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
    let parts = Parts {
        store: Arc::clone(&options.store),
        logs: Arc::clone(&options.logs),
        clock: Arc::clone(&options.clock),
        ids: Arc::clone(&options.ids),
    };
    let kernel = Arc::new(Kernel::new(parts, lanes));
    let engine = Arc::new(Engine { kernel, tools, has_cleared: AtomicBool::new(false) });
    let handle = Handle::new(Arc::clone(&engine));
    let Options { toolsets, reattach_grace, sweep_every, .. } = options;
    (handle, Service { engine, toolsets: toolsets.into(), reattach_grace, sweep_every })
}

fn lanes_of(options: &Options, tools: &Tools) -> BTreeMap<LaneId, lane::Config> {
    let mut lanes = BTreeMap::new();
    if tools.specs().iter().any(|spec| spec.class == Class::Control) {
        let config = lane::Config::new(CONTROL_PLACES, CONTROL_PLACES);
        lanes.insert(LaneId::from(CONTROL_LANE), config);
    }
    for set in &options.toolsets {
        lanes.extend(set.lanes());
    }
    lanes.extend(options.lanes.iter().cloned());
    lanes
}

/// The engine itself: everything that it spawns runs on the runtime of [`run`](Self::run), and ends
/// with it.
pub struct Service {
    engine: Arc<Engine>,
    toolsets: Arc<[Arc<dyn ToolSet>]>,
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
        self.engine.kernel.drivers.settle();
        let mut jobs = JoinSet::new();
        if self.open_in_the_end(&stop).await {
            self.work(&mut jobs, &stop).await;
        }
        self.shut_down(jobs).await;
    }

    /// Does what the agenda says until told to stop. The loop itself waits for no store: it looks at
    /// the clock at every turn, so that a time in which it could not run is noticed.
    async fn work(&self, jobs: &mut JoinSet<Done>, stop: &CancellationToken) {
        let kernel = &self.engine.kernel;
        let mut agenda = Agenda::new(kernel.clock.now(), self.sweep_every);
        loop {
            let now = kernel.clock.now();
            let turn = if kernel.lives.is_empty() { IDLE_TURN } else { TURN };
            let stalled = kernel.running.turn(now, turn);
            for job in agenda.step(now, stalled, kernel.inbox.look()) {
                // What is due from now on is another job.
                match job.kind() {
                    JobKind::Fire => kernel.inbox.take_fire(),
                    JobKind::Beat => kernel.inbox.take_beat(),
                    JobKind::Extend | JobKind::Fill | JobKind::Sweep => {}
                }
                let (engine, sets) = (Arc::clone(&self.engine), Arc::clone(&self.toolsets));
                jobs.spawn(engine.perform(now, job, sets));
            }
            let pause = agenda.next().since(now).min(turn);
            tokio::select! {
                () = stop.cancelled() => return,
                Some(done) = jobs.join_next() => {
                    // A job reports its own panic; this one was aborted with the runtime.
                    let Ok(done) = done else { return };
                    agenda.done(kernel.clock.now(), done);
                }
                () = kernel.inbox.news() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Opens the store, after a failure again with the next request; `false` when told to stop
    /// before that.
    async fn open_in_the_end(&self, stop: &CancellationToken) -> bool {
        let phases = &self.engine.kernel.phases;
        let mut told = None;
        loop {
            let Err(error) = self.open().await else { return true };
            if told.as_ref() != Some(&error.message) {
                tracing::error!(%error, "the store could not be opened");
                told = Some(Arc::clone(&error.message));
            }
            phases.set(Phase::Failed(error));
            tokio::select! {
                () = stop.cancelled() => return false,
                () = phases.wanted.notified() => {}
            }
            phases.set(Phase::Opening);
        }
    }

    async fn open(&self) -> Result<(), store::Error> {
        let kernel = &self.engine.kernel;
        let sink = Arc::new(Sink::new(kernel));
        let now: Timestamp = kernel.clock.now();
        let survivors = kernel.store.open(now, kernel.lanes(), self.reattach_grace, sink).await?;
        kernel.phases.set(Phase::Open);
        for survivor in survivors {
            self.engine.reattach(survivor);
        }
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let kernel = &self.engine.kernel;
        kernel.phases.end();
        kernel.running.rest();
        kernel.drivers.end_now();
        kernel.waits.tell_all();
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
