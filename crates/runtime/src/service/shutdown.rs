//! The end of the engine, in phases with budgets.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use raincheck_core::cancel::OnExit;
use raincheck_core::store::Durability;

use super::Service;
use crate::engine::Done;
use crate::kernel::{Kernel, abort};
use crate::stop::StopReason;

/// How long jobs under way have to end by themselves: one that leases work would leave it behind.
const SETTLE: Duration = Duration::from_millis(100);

/// How long attempts that are told to stop have for it.
const DRAIN: Duration = Duration::from_millis(500);

/// How long the commands under way and the store have to finish.
const FLUSH: Duration = Duration::from_millis(500);

impl Service {
    /// Ends the engine: takes no more work, stops what has to stop, and drops the rest [CANCEL-8].
    /// Takes about a second at the most, and no time when nothing runs.
    pub(super) async fn shut_down(&self, mut jobs: JoinSet<Done>) {
        let kernel = &self.engine.kernel;
        kernel.phases.close();
        // Whoever waits is answered with how it stands.
        kernel.waits.tell_all();
        let deadline = Instant::now() + SETTLE;
        while let Ok(Some(_)) = timeout_at(deadline, jobs.join_next()).await {}
        abort(jobs).await;
        if kernel.stop_attempts() {
            kernel.drivers.drain(Instant::now() + DRAIN).await;
        }
        kernel.drivers.end().await;
        let deadline = Instant::now() + FLUSH;
        kernel.drivers.finish_commands(deadline).await;
        match timeout_at(deadline, kernel.store.barrier().committed()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the last commands were not committed"),
            Err(_) => tracing::error!("the store did not finish in time"),
        }
    }
}

impl Kernel {
    /// Tells every attempt to stop that cannot outlive the process; tells whether any is to be waited
    /// for.
    fn stop_attempts(&self) -> bool {
        let none_survives = self.store.capabilities().durability == Durability::None;
        let mut any = false;
        for live in self.lives.all() {
            if none_survives || live.on_exit == OnExit::Stop {
                live.stop(StopReason::Shutdown);
                any = true;
            }
            // It gives its slot back.
            any |= live.was_given_back();
        }
        any
    }
}
