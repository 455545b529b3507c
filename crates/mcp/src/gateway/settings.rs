//! How the tools of another server are run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::tool::ToolSpec;

/// The lane that calls of another server stand in.
const LANE: &str = "wrapped";

/// Changes what the other server said about a tool.
pub type Adjust = Arc<dyn Fn(&mut ToolSpec) + Send + Sync>;

/// Hears what the other server calls its tools, those that are left out too. It is called when the other
/// server names them, and again when they are others; it must not block.
pub type Named = Arc<dyn Fn(&[&str]) + Send + Sync>;

/// How the tools of another server are run.
#[derive(Clone)]
pub struct Settings {
    /// The lane that calls stand in.
    pub lane: LaneId,
    /// How many calls run at once, and how many may wait.
    pub config: lane::Config,
    /// How long a direct call waits before it is answered with a task id.
    pub wait: Duration,
    /// How long a call may run; `None` is without limit.
    pub run_timeout: Option<Duration>,
    /// How long a call waits for the other server to be there.
    pub ready: Duration,
    /// How long the other server has for the handshake and its list of tools.
    pub start: Duration,
    /// How often the other server is started again, one time after the other, when it ends early. After that
    /// only a call starts it.
    pub restarts: u32,
    /// Names that tools of ours have. A tool of the other server with such a name is listed as `inner_` and
    /// its name.
    pub reserved: BTreeSet<String>,
    /// Tools of the other server that are left out.
    pub hidden: BTreeSet<String>,
    /// Changes what the other server said about its tools, after their names.
    pub adjust: BTreeMap<String, Adjust>,
    /// Hears the names of its tools.
    pub named: Option<Named>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lane: LaneId::from(LANE),
            config: lane::Config::new(8, 256),
            wait: Duration::from_secs(10),
            run_timeout: Some(Duration::from_secs(3600)),
            ready: Duration::from_secs(30),
            start: Duration::from_secs(60),
            restarts: 5,
            reserved: crate::surfaces::canonical::Tool::ALL
                .iter()
                .map(|tool| tool.name().to_owned())
                .chain(["fetch_cached_response".to_owned()])
                .collect(),
            hidden: BTreeSet::new(),
            adjust: BTreeMap::new(),
            named: None,
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("lane", &self.lane)
            .field("wait", &self.wait)
            .field("run_timeout", &self.run_timeout)
            .finish_non_exhaustive()
    }
}
