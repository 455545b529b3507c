//! One engine, spoken to in MCP: who calls, which surface answers, what is in flight.

mod backlog;
mod flight;
mod handler;
mod line;
mod list;
mod lists;
mod lost;
mod options;
mod panics;
mod peer;
mod registry;
mod requests;
mod result;
mod roster;
mod rounds;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use rmcp::model::{
    ExtensionCapabilities, JsonObject, PromptsCapability, ResourcesCapability, ServerCapabilities,
    Tool,
};

use raincheck_core::content::Json;
use raincheck_runtime::{Handle, View};

use crate::answer::Answer;
use crate::call::{self, Told};
use crate::caller::Caller;
use crate::surface::{Answered, Call, Desk, Face, Surface};

use self::registry::{Owner, Registry};
use self::roster::{Live, Roster};

pub use self::options::{Options, Starter};
pub use self::registry::Clash;

pub(crate) use self::backlog::Backlog;
#[cfg(feature = "http")]
pub(crate) use self::flight::InFlight;
pub(crate) use self::flight::{Flights, MAX_BYTES, MAX_REQUESTS, Refusal};
pub(crate) use self::handler::Session;
pub(crate) use self::line::{to_line, written};
pub(crate) use self::requests::{read_request, read_response};

/// An engine's MCP server. Cloning is cheap; each connection takes a clone.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    desk: Desk,
    options: Options,
    roster: Live,
    starter: Mutex<Option<Starter>>,
}

impl Server {
    /// Puts MCP in front of an engine. `starter` is called once: when a client says that it is
    /// initialized, or at the first request other than discovery, handshake and ping.
    ///
    /// # Errors
    /// When two tools have the same name.
    pub fn new(engine: Handle, options: Options, starter: Starter) -> Result<Self, Clash> {
        let roster = Live::new(&options, &engine)?;
        Ok(Self(Arc::new_cyclic(|inner: &Weak<Inner>| Inner {
            desk: Desk::new(engine, options.links.clone()).of_server(inner.clone()),
            options,
            roster,
            starter: Mutex::new(Some(starter)),
        })))
    }

    /// Returns the engine behind the server.
    #[must_use]
    pub fn engine(&self) -> &Handle {
        self.0.desk.engine()
    }

    /// Returns the version that the server tells.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.0.options.version
    }

    /// Returns the schema of a tool's arguments.
    #[cfg(feature = "http")]
    pub(crate) fn input_schema(&self, tool: &str) -> Option<Json> {
        let roster = self.roster();
        let shown = roster.registry.shown().find(|shown| shown.name == tool);
        shown.map(|shown| shown.schema.clone())
    }

    /// Starts the engine, if nobody has: for a server that is there to stay, whoever calls it.
    pub fn start(&self) {
        let starter = self.0.starter.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(start) = starter {
            start();
            let roster = self.roster();
            let surface = roster.registry.surfaces().first();
            let whose = surface.map_or("the tool", |surface| surface.whose());
            for layer in roster.registry.layers() {
                layer.start(&self.0.desk, whose);
            }
        }
    }

    /// Returns which tool is whose, for the tools that the engine has now.
    fn roster(&self) -> Arc<Roster> {
        self.0.roster()
    }

    /// Returns what `tools/list` shows: the same on every connection. The first list waits until the tools
    /// are known, within what the client waits for; what is known later is told as a change.
    async fn list(&self, who: &Caller) -> Vec<Tool> {
        if let Err(error) = call::known(self.engine(), who).await {
            tracing::info!(%error, "the list of tools is not complete");
        }
        self.roster().list.clone()
    }

    fn instructions(&self) -> String {
        let durability = self.engine().capabilities().durability;
        let roster = self.roster();
        let surfaces = roster.registry.surfaces().iter();
        let mut parts: Vec<String> =
            surfaces.map(|surface| surface.practices(durability)).collect();
        let of_layers = roster.registry.layers().iter().map(|layer| layer.practices());
        parts.extend(of_layers.filter(|part| !part.is_empty()));
        parts.join("\n\n")
    }

    /// Returns the extensions of the protocol that its layers serve, for `server/discover` alone.
    fn extensions(&self) -> Option<ExtensionCapabilities> {
        let roster = self.roster();
        let extensions = roster.registry.layers().iter().filter_map(|layer| layer.extension());
        let named: ExtensionCapabilities =
            extensions.map(|one| (one.id.to_owned(), JsonObject::new())).collect();
        (!named.is_empty()).then_some(named)
    }

    /// Returns what the server says it can do.
    /// Names the lists of which its clients are told that they changed.
    pub(crate) fn live_lists(&self) -> Vec<&'static str> {
        let ServerCapabilities { tools, resources, prompts, .. } = self.capabilities();
        let is_live = |told: Option<bool>| told == Some(true);
        let lists = [
            ("tools", is_live(tools.and_then(|one| one.list_changed))),
            ("resources", is_live(resources.and_then(|one| one.list_changed))),
            ("prompts", is_live(prompts.and_then(|one| one.list_changed))),
        ];
        lists.into_iter().filter_map(|(name, is_live)| is_live.then_some(name)).collect()
    }

    fn capabilities(&self) -> ServerCapabilities {
        let roster = self.roster();
        let has_resources = roster.registry.layers().iter().any(|layer| layer.has_resources());
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        if let Some(tools) = capabilities.tools.as_mut() {
            tools.list_changed = self.engine().watch_specs().map(|_| true);
        }
        let has_prompts = roster.registry.layers().iter().any(|layer| layer.has_prompts());
        let tells = roster.registry.layers().iter().any(|layer| layer.notices().is_some());
        let told = tells.then_some(true);
        capabilities.resources = has_resources.then(|| {
            let mut resources = ResourcesCapability::default();
            resources.list_changed = told;
            resources
        });
        capabilities.prompts = has_prompts.then(|| {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = told;
            prompts
        });
        // They are asked for beside prompts and templates, and passed on with them.
        capabilities.completions = has_prompts.then(JsonObject::new);
        capabilities
    }
}

impl Inner {
    fn roster(&self) -> Arc<Roster> {
        self.roster.now(&self.options, self.desk.engine())
    }

    /// Lets the layers change what a surface answered.
    async fn finish(
        &self,
        registry: &Registry,
        mut answer: Answer,
        call: &Call,
        surface: &dyn Surface,
        who: &Caller,
    ) -> Answer {
        let of = Answered { call, surface };
        for layer in registry.layers().iter().rev() {
            answer = layer.finish(&self.desk, answer, of, who).await;
        }
        answer
    }
}

#[async_trait]
impl Face for Inner {
    /// A tool that is gone since is answered for by the first surface.
    async fn result_of(&self, ended: View, who: &Caller) -> Json {
        let tool = ended.record.task.tool.to_string();
        let roster = self.roster();
        let surface = match roster.registry.owner(&tool) {
            Some(Owner::Surface(surface)) => surface,
            Some(Owner::Layer(_)) | None => roster.registry.first(),
        };
        let inputs = ended.payload.as_ref().map(|payload| payload.inputs.clone());
        let call = Call { tool, arguments: inputs.unwrap_or_else(Json::empty_object) };
        let answer = surface.write(&self.desk, Told::Ended(Box::new(ended)), who);
        let answer = self.finish(&roster.registry, answer, &call, surface, who).await;
        line::of_call(&result::result(answer, self.options.is_structured))
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("options", &self.options).finish_non_exhaustive()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.0).finish()
    }
}
