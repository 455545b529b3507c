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
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rmcp::model::{ServerCapabilities, Tool};

use raincheck_runtime::Handle;

use crate::surface::Desk;

use self::registry::Registry;

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
        Ok(Self(Arc::new(Inner {
            desk: Desk::new(engine, options.links.clone()),
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

    /// Returns what the server says it can do.
    fn capabilities(&self) -> ServerCapabilities {
        let capabilities = ServerCapabilities::builder().enable_tools();
        match self.0.registry.layers().iter().any(|layer| layer.has_resources()) {
            true => capabilities.enable_resources().build(),
            false => capabilities.build(),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("options", &self.0.options).finish_non_exhaustive()
    }
}
