//! The end of the engine, in three phases with budgets.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use raincheck_core::cancel::OnExit;
use raincheck_core::store::Durability;

use super::Shared;
use super::shared::Phase;
use crate::context::StopReason;
use crate::shards::lock;

/// How long attempts that are told to stop have for it.
const DRAIN: Duration = Duration::from_millis(500);

/// How long futures that were aborted have to be dropped.
const DROP: Duration = Duration::from_millis(100);

/// How long the commands under way and the store have to finish.
const FLUSH: Duration = Duration::from_millis(500);

impl Shared {
    /// Ends the engine: takes no more requests, stops what has to stop, and drops the rest
    /// [CANCEL-8]. Takes about a second at the most, and no time when nothing runs.
    pub(super) async fn shut_down(self: &Arc<Self>, loops: JoinSet<()>) {
        self.phase.send_replace(Phase::Closed);
        abort(loops).await;
        let mut drivers = std::mem::take(&mut *lock(&self.drivers));
        if self.stop_attempts() {
            let deadline = Instant::now() + DRAIN;
            while let Ok(Some(_)) = timeout_at(deadline, drivers.join_next()).await {}
        }
        abort(drivers).await;
        let deadline = Instant::now() + FLUSH;
        self.orphans.close();
        let _ = timeout_at(deadline, self.orphans.wait()).await;
        // A command that was under way may have leased an attempt meanwhile.
        let drivers = std::mem::take(&mut *lock(&self.drivers));
        abort(drivers).await;
        match timeout_at(deadline, self.store.barrier().committed()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the last commands were not committed"),
            Err(_) => tracing::error!("the store did not finish in time"),
        }
    }

    /// Tells every attempt to stop that cannot outlive the process; tells whether there is one.
    fn stop_attempts(&self) -> bool {
        let none_survives = self.store.capabilities().durability == Durability::None;
        let mut any = false;
        for live in self.lives.all() {
            if none_survives || live.on_exit == OnExit::Stop {
                live.stop(StopReason::Shutdown);
                any = true;
            }
        }
        any
    }
}

/// Drops futures, and waits for it; one that blocks its thread is left behind.
async fn abort(mut futures: JoinSet<()>) {
    futures.abort_all();
    let deadline = Instant::now() + DROP;
    while let Ok(Some(_)) = timeout_at(deadline, futures.join_next()).await {}
}
