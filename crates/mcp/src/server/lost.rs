//! What a process says of calls whose owner is gone, and by what two of them are one server.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rmcp::model::{JsonRpcMessage, ServerResult};

use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::tool::Hints;

use super::{Server, result, to_line};
use crate::wire::Id;

impl Server {
    /// Tells whether a call of a tool may be made again without asking: the tool says that it changes
    /// nothing, or nothing more the second time.
    pub(crate) fn may_repeat(&self, tool: &str) -> bool {
        self.hints(tool).is_some_and(|hints| hints.read_only || hints.idempotent)
    }

    /// Returns what a client may assume of a tool; nothing where it is not in the list.
    pub(super) fn hints(&self, tool: &str) -> Option<Hints> {
        self.roster().registry.hints(tool)
    }

    /// Tells whether its tools come and go: then the list is asked of whoever has them.
    pub(crate) fn has_live_tools(&self) -> bool {
        self.engine().watch_specs().is_some()
    }

    /// Answers a call that an owner had that is gone, with everything it knew [LEASE-9].
    pub(crate) fn lost(&self, id: &Id, tool: &str) -> Option<Vec<u8>> {
        let inner = &self.0;
        let tool = raincheck_core::text::escape(raincheck_core::text::clip(tool, 100)).into_owned();
        let message = format!(
            "the server that had this call of `{tool}` ended before it answered, and what it knew is gone"
        );
        let error = Error::new(Kind::WorkerLost, message).with_guarantee(Guarantee::Unknown);
        let answer = self.roster().registry.first().refuse(&inner.desk, &error.into());
        let result =
            ServerResult::CallToolResult(result::result(answer, inner.options.is_structured));
        to_line(&JsonRpcMessage::response(result, id.clone().into()))
    }

    /// Returns a text that is the same for servers whose tools and answers are.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.0.options.name.hash(&mut hasher);
        self.0.options.version.hash(&mut hasher);
        self.0.options.is_structured.hash(&mut hasher);
        if !self.has_live_tools() {
            serde_json::to_string(&self.roster().list).unwrap_or_default().hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }
}
