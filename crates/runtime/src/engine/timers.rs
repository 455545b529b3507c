//! Deadlines of tasks: one alarm for all of them [STATE-5].

use std::sync::Arc;
use std::time::Duration;

use raincheck_core::store;
use raincheck_core::time::Timestamp;

use super::Shared;

/// How many deadlines fire in one transaction.
const BATCH: u32 = 256;

/// The pause before a store that failed is asked again.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

impl Shared {
    /// Fires deadlines as they pass, until it is dropped.
    pub(super) async fn fire_deadlines(self: Arc<Self>) {
        loop {
            self.timers.disarm();
            match self.fire().await {
                Ok(Some(next)) => self.timers.arm(next),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%error, "deadlines could not be fired");
                    self.look_again();
                }
            }
            // A lapsed lease frees a place without a row that says so.
            self.mark_all_lanes();
            self.timers.rings(&*self.clock).await;
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Has deadlines fired and lanes filled once more after the store failed.
    pub(crate) fn look_again(&self) {
        self.timers.arm(self.clock.now() + PAUSE);
    }

    async fn fire(&self) -> Result<Option<Timestamp>, store::Error> {
        let posted = self.store.fire(self.clock.now(), BATCH).await?;
        posted.receipt.committed().await?;
        Ok(posted.value)
    }
}
