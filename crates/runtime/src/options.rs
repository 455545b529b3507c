//! What an engine is made of.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::log::{LogStore, MemoryLogs};
use raincheck_core::store::{MemoryLimits, MemoryStore, TaskStore};

use crate::clock::{Clock, SystemClock};
use crate::ids::{Ids, OsIds};
use crate::toolset::ToolSet;

/// What an engine is made of.
#[derive(Clone)]
pub struct Options {
    /// Keeps the tasks.
    pub store: Arc<dyn TaskStore>,
    /// Keeps the log lines.
    pub logs: Arc<dyn LogStore>,
    /// Bring the tools. Of two tools with one name the first counts.
    pub toolsets: Vec<Arc<dyn ToolSet>>,
    /// Lanes beside those of the tool sets; of two with one name the one named here counts.
    pub lanes: Vec<(LaneId, lane::Config)>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes identities.
    pub ids: Arc<dyn Ids>,
    /// How long an attempt that survived a restart has to be reattached.
    pub reattach_grace: Duration,
    /// How often tasks that nobody can read any more are removed [SWEEP-1].
    pub sweep_every: Duration,
}

impl Options {
    /// Makes an engine that keeps everything in memory and has the built-in lanes.
    ///
    /// Must be called within a tokio runtime when its time is paused.
    #[must_use]
    pub fn in_memory() -> Self {
        Self {
            store: Arc::new(MemoryStore::new(MemoryLimits::default())),
            logs: Arc::new(MemoryLogs::new()),
            toolsets: Vec::new(),
            lanes: lane::built_in(),
            clock: Arc::new(SystemClock::new()),
            ids: Arc::new(OsIds),
            reattach_grace: Duration::from_secs(45),
            sweep_every: Duration::from_secs(60),
        }
    }

    /// Adds a tool set.
    #[must_use]
    pub fn with_tools(mut self, tools: Arc<dyn ToolSet>) -> Self {
        self.toolsets.push(tools);
        self
    }

    /// Adds a lane, or changes what one may do.
    #[must_use]
    pub fn with_lane(mut self, lane: impl Into<LaneId>, config: lane::Config) -> Self {
        self.lanes.push((lane.into(), config));
        self
    }

    /// Keeps the log lines elsewhere.
    #[must_use]
    pub fn with_logs(mut self, logs: Arc<dyn LogStore>) -> Self {
        self.logs = logs;
        self
    }

    /// Keeps the tasks elsewhere.
    #[must_use]
    pub fn with_store(mut self, store: Arc<dyn TaskStore>) -> Self {
        self.store = store;
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("toolsets", &self.toolsets)
            .field("lanes", &self.lanes)
            .field("reattach_grace", &self.reattach_grace)
            .field("sweep_every", &self.sweep_every)
            .finish_non_exhaustive()
    }
}
