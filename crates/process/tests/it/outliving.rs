//! A store that outlives the servers of a test.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::store::{
    Capabilities, ChangeSink, Claimed, Durability, Error, MemoryStore, StoreLayer, TaskStore,
};
use raincheck_core::time::Timestamp;

/// Memory that says of itself that it survives the process, as far as the process is one runtime of
/// this test program.
#[derive(Default)]
pub(crate) struct Outliving(pub(crate) MemoryStore);

#[async_trait]
impl StoreLayer for Outliving {
    fn inner(&self) -> &dyn TaskStore {
        &self.0
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { durability: Durability::Full }
    }

    async fn open(
        &self,
        now: Timestamp,
        lanes: Vec<(LaneId, lane::Config)>,
        reattach: Duration,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Vec<Claimed>, Error> {
        self.0.close();
        self.0.open(now, lanes, reattach, sink).await
    }
}
