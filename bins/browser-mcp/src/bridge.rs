//! The bridge, as the browser's words know it.

use std::sync::Arc;

use async_trait::async_trait;
use raincheck::core::error::Error;
use raincheck::core::ids::{LaneId, TaskId};
use raincheck::mcp::surfaces::browser;
use raincheck_browser::Browser;

/// What the surface must know of the bridge.
#[derive(Debug)]
pub(crate) struct Bridge(pub(crate) Browser);

#[async_trait]
impl browser::Bridge for Bridge {
    fn tab_of(&self, lane: &LaneId) -> Option<i64> {
        raincheck_browser::tab_of(lane)
    }

    fn connection_of(&self, id: TaskId) -> Option<Arc<str>> {
        self.0.connection_of(id)
    }

    fn owned_elsewhere(&self, pid: u32) -> Error {
        raincheck_browser::owned_elsewhere(Some(pid))
    }

    async fn browser_comes(&self) {
        self.0.is_connected().await;
    }
}
