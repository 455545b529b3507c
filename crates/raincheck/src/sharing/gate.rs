//! What keeps an engine from a store that belongs to another process [DUR-4].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::store::{ChangeSink, Claimed, Error, StoreLayer, TaskStore};
use raincheck_core::time::Timestamp;

use super::seat::Seat;

/// A store that is opened by who has the seat.
pub(super) struct Gated {
    store: Arc<dyn TaskStore>,
    seat: Arc<Seat>,
}

impl Gated {
    pub(super) fn new(store: Arc<dyn TaskStore>, seat: Arc<Seat>) -> Self {
        Self { store, seat }
    }
}

impl fmt::Debug for Gated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gated").field("seat", &self.seat).finish_non_exhaustive()
    }
}

#[async_trait]
impl StoreLayer for Gated {
    fn inner(&self) -> &dyn TaskStore {
        &*self.store
    }

    async fn open(
        &self,
        now: Timestamp,
        lanes: Vec<(LaneId, lane::Config)>,
        reattach: Duration,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Vec<Claimed>, Error> {
        self.seat.check()?;
        self.store.open(now, lanes, reattach, sink).await
    }
}
