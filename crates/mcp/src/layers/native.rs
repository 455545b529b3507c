//! Native MCP tasks: the extension `io.modelcontextprotocol/tasks` of revision 2026-07-28, over the engine
//! [TASKS-1].
//!
//! A call that outlives its wait is answered with a `CreateTaskResult` where the request declared the
//! extension, and with the surface's own words everywhere else. `methods` answers `tasks/get`,
//! `tasks/update` and `tasks/cancel`, `listen` a subscription to tasks; `task` writes a task as the protocol has it, `words` its states and
//! `progress` its status message. The task is the same that every other surface reads.

mod listen;
mod methods;
mod progress;
mod task;
mod words;

use std::sync::OnceLock;

use async_trait::async_trait;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::tool::Needs;
use raincheck_runtime::View;

use crate::caller::Caller;
use crate::surface::{Desk, Extension, Layer, Method};

/// The identifier of the extension.
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Native MCP tasks, for clients that declare them. A server has them when the layer is registered; a
/// server that is made by a builder has it.
#[derive(Debug, Default)]
pub struct NativeTasks {
    /// Who speaks in the words of tasks.
    whose: OnceLock<&'static str>,
}

impl NativeTasks {
    fn whose(&self) -> &'static str {
        self.whose.get().copied().unwrap_or("the tool")
    }
}

#[async_trait]
impl Layer for NativeTasks {
    fn start(&self, _desk: &Desk, whose: &'static str) {
        // Set once: a server starts once.
        let _ = self.whose.set(whose);
    }

    fn extension(&self) -> Option<Extension> {
        Some(Extension { id: EXTENSION, methods: methods::ALL })
    }

    fn is_needed(&self, needs: Needs) -> bool {
        needs.tasks
    }

    /// What may not be kept gets no ticket, which promises that it can be read [TASKS-2].
    fn ticket(&self, desk: &Desk, live: &View, who: &Caller) -> Option<Json> {
        let is_for_it = live.is_committed && who.declares(EXTENSION);
        is_for_it.then(|| task::created(desk, live, self.whose()))
    }

    async fn method(
        &self,
        desk: &Desk,
        method: &Method,
        who: &mut Caller,
    ) -> Option<Result<Json, Error>> {
        if method.name == listen::LISTEN && who.declares(EXTENSION) {
            let ids = listen::task_ids(method)?;
            return Some(listen::listen(desk, method, ids, who, self.whose()).await);
        }
        methods::answer(desk, method, who, self.whose()).await
    }
}
