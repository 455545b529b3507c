//! One engine, spoken to in MCP: who calls, which surface answers, what is in flight.

mod backlog;
mod flight;
mod handler;
mod line;
mod list;
mod options;
mod panics;
mod peer;
mod registry;
mod requests;
mod result;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use async_trait::async_trait;
use rmcp::model::{ExtensionCapabilities, JsonObject, ServerCapabilities, Tool};

use raincheck_core::content::Json;
use raincheck_runtime::{Handle, View};

use crate::answer::Answer;
use crate::call::Told;
use crate::caller::Caller;
use crate::surface::{Answered, Call, Desk, Face, Surface};

use self::registry::{Owner, Registry};

pub use self::options::{Options, Starter};
pub use self::registry::Clash;

pub(crate) use self::backlog::Backlog;
pub(crate) use self::flight::{Flights, Refusal};
pub(crate) use self::handler::Session;
pub(crate) use self::line::{to_line, written};
pub(crate) use self::requests::{read_request, read_response};

/// An engine's MCP server. Cloning is cheap; each connection takes a clone.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    desk: Desk,
    options: Options,
    registry: Registry,
    list: OnceLock<Vec<Tool>>,
    starter: Mutex<Option<Starter>>,
}

impl Server {
    /// Puts MCP in front of an engine. `starter` is called once: when a client says that it is
    /// initialized, or at the first request other than discovery, handshake and ping.
    ///
    /// # Errors
    /// When two tools have the same name.
    pub fn new(engine: Handle, options: Options, starter: Starter) -> Result<Self, Clash> {
        let registry = Registry::new(&options, &engine.specs())?;
        Ok(Self(Arc::new_cyclic(|inner: &Weak<Inner>| Inner {
            desk: Desk::new(engine, options.links.clone()).of_server(inner.clone()),
            options,
            registry,
            list: OnceLock::new(),
            starter: Mutex::new(Some(starter)),
        })))
    }

    /// Returns the engine behind the server.
    #[must_use]
    pub fn engine(&self) -> &Handle {
        self.0.desk.engine()
    }

    fn start(&self) {
        let starter = self.0.starter.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(start) = starter {
            start();
            let surface = self.0.registry.surfaces().first();
            let whose = surface.map_or("the tool", |surface| surface.whose());
            for layer in self.0.registry.layers() {
                layer.start(&self.0.desk, whose);
            }
        }
    }

    /// Returns what `tools/list` shows: the same on every connection.
    fn list(&self) -> Vec<Tool> {
        let layers = self.0.registry.layers();
        let listed = |shown| list::tool(shown, layers);
        self.0.list.get_or_init(|| self.0.registry.shown().map(listed).collect()).clone()
    }

    fn instructions(&self) -> String {
        let durability = self.engine().capabilities().durability;
        let surfaces = self.0.registry.surfaces().iter();
        let mut parts: Vec<String> =
            surfaces.map(|surface| surface.practices(durability)).collect();
        let of_layers = self.0.registry.layers().iter().map(|layer| layer.practices());
        parts.extend(of_layers.filter(|part| !part.is_empty()));
        parts.join("\n\n")
    }

    /// Returns the extensions of the protocol that its layers serve, for `server/discover` alone.
    fn extensions(&self) -> Option<ExtensionCapabilities> {
        let extensions = self.0.registry.layers().iter().filter_map(|layer| layer.extension());
        let named: ExtensionCapabilities =
            extensions.map(|one| (one.id.to_owned(), JsonObject::new())).collect();
        (!named.is_empty()).then_some(named)
    }

    /// Returns what the server says it can do.
    fn capabilities(&self) -> ServerCapabilities {
        let capabilities = ServerCapabilities::builder().enable_tools();
        match self.0.registry.layers().iter().any(|layer| layer.has_resources()) {
            true => capabilities.enable_resources().build(),
            false => capabilities.build(),
        }
    }
}

impl Inner {
    /// Lets the layers change what a surface answered.
    async fn finish(
        &self,
        mut answer: Answer,
        call: &Call,
        surface: &dyn Surface,
        who: &Caller,
    ) -> Answer {
        let of = Answered { call, surface };
        for layer in self.registry.layers().iter().rev() {
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
        let surface = match self.registry.owner(&tool) {
            Some(Owner::Surface(surface)) => surface,
            Some(Owner::Layer(_)) | None => self.registry.first(),
        };
        let inputs = ended.payload.as_ref().map(|payload| payload.inputs.clone());
        let call = Call { tool, arguments: inputs.unwrap_or_else(Json::empty_object) };
        let answer = surface.write(&self.desk, Told::Ended(Box::new(ended)), who);
        let answer = self.finish(answer, &call, surface, who).await;
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
