//! What a process says of calls whose owner is gone, and by what two of them are one server.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::iter;

use rmcp::model::{JsonRpcMessage, ServerResult};

use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::ToolName;
use raincheck_core::tool::Hints;

use super::{Server, result, to_line};
use crate::answer::Refused;
use crate::call::{Told, find_again};
use crate::caller::Caller;
use crate::surface::Call;
use crate::surfaces::canonical;
use crate::wire::Id;

impl Server {
    /// Tells whether a call of a tool may be made again without asking: it changes nothing, or nothing more
    /// the second time. What another server says of its own tools does not count [GATE-11].
    pub(crate) fn may_repeat(&self, tool: &str) -> bool {
        self.hints(tool).is_some_and(|hints| hints.read_only || hints.idempotent)
    }

    /// What refuses a call that was asked of another process before does not know what became of it
    /// there [LEASE-9]: what it became is looked for, and is the answer if it is found [ATTACH-6].
    ///
    /// The store itself says that a lane is full only of what it does not hold; `is_seen` tells that it was
    /// asked, or may have been.
    pub(super) async fn as_repeated(
        &self,
        mut refused: Refused,
        call: &Call,
        is_seen: bool,
        who: &mut Caller,
    ) -> Result<Told, Refused> {
        let Some(key) = who.key().filter(|key| key.repeat.is_some()).cloned() else {
            return Err(refused);
        };
        let error = &refused.error;
        let is_in_doubt = error.guarantee() == Some(Guarantee::NotExecuted)
            && !(is_seen && error.kind == Kind::QueueFull)
            && self.hints(&call.tool).is_none_or(|hints| !hints.read_only);
        if refused.is_read || !is_in_doubt {
            return Err(refused);
        }
        // One tool that makes tasks of others answers with their ids.
        if canonical::Tool::find(&call.tool).is_none() {
            let engine = self.engine();
            let named = ToolName::from(call.tool.as_str());
            let others = engine.specs();
            let others = others.iter().map(|spec| &spec.name).filter(|name| **name != named);
            let tools: Vec<_> = iter::once(named.clone()).chain(others.cloned()).collect();
            match find_again(engine, tools, &key, who).await {
                Ok(Some(told)) => return Ok(told),
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "what a call became could not be looked for"),
            }
        }
        refused.error = refused.error.with_guarantee(Guarantee::Unknown);
        Err(refused)
    }

    /// Returns what may be relied on of a tool; nothing where it is not in the list.
    pub(super) fn hints(&self, tool: &str) -> Option<Hints> {
        match self.engine().spec(tool) {
            Some(spec) if spec.has_foreign_hints => Some(spec.trusted_hints()),
            Some(_) | None => self.roster().registry.hints(tool),
        }
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
