//! A store in front of another one: it counts what is opened, and changes nothing else.
//!
//! A store of its own implements `TaskStore` whole, and passes the suite of `raincheck-testkit`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use raincheck::core::ids::LaneId;
use raincheck::core::lane;
use raincheck::core::store::{
    ChangeSink, Claimed, Error, MemoryLimits, MemoryStore, StoreLayer, TaskStore,
};
use raincheck::core::time::Timestamp;
use raincheck::{Raincheck, TaskContext, Tool, ToolError};

/// Counts how often the store was opened.
struct Counted {
    store: MemoryStore,
    n_opened: AtomicU64,
}

#[async_trait]
impl StoreLayer for Counted {
    fn inner(&self) -> &dyn TaskStore {
        &self.store
    }

    async fn open(
        &self,
        now: Timestamp,
        lanes: Vec<(LaneId, lane::Config)>,
        reattach: Duration,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Vec<Claimed>, Error> {
        self.n_opened.fetch_add(1, Ordering::Relaxed);
        self.store.open(now, lanes, reattach, sink).await
    }
}

async fn greet(name: String, _: TaskContext) -> Result<String, ToolError> {
    Ok(format!("hello {name}"))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let store = MemoryStore::new(MemoryLimits::default());
    let store = Counted { store, n_opened: AtomicU64::new(0) };
    let greet = Tool::new("greet", "Greets somebody", greet);
    Raincheck::builder().store(store).tool(greet).serve_stdio().await
}
