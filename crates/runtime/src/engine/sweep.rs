//! Removing what nobody can read any more [SWEEP-1].

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use raincheck_core::store;

use super::Shared;
use crate::toolset::ToolSet;

/// How many tasks are forgotten in one transaction.
const BATCH: u32 = 200;

impl Shared {
    /// Sweeps at every turn of `every`, until it is dropped.
    pub(super) async fn sweep(self: Arc<Self>, every: Duration, sets: Vec<Arc<dyn ToolSet>>) {
        let mut turns = interval(every.max(Duration::from_millis(1)));
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            turns.tick().await;
            while let Ok(true) = self.sweep_some(&sets).await.inspect_err(|error| {
                tracing::error!(%error, "the sweep failed");
            }) {}
        }
    }

    /// Sweeps one batch and tells whether more may be left. Files go after their rows.
    async fn sweep_some(&self, sets: &[Arc<dyn ToolSet>]) -> Result<bool, store::Error> {
        let gone = self.store.sweep(self.clock.now(), BATCH).await?;
        if gone.is_empty() {
            return Ok(false);
        }
        for set in sets {
            set.forget(&gone).await;
        }
        let is_full = gone.len() >= BATCH as usize;
        self.logs.remove(gone).await?;
        Ok(is_full)
    }
}
