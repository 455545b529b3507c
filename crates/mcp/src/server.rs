//! The facade: one engine, spoken to in MCP.

mod catalogue;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::scope::Scope;
use raincheck_core::text;
use raincheck_runtime::Handle;

use crate::budget::{Budget, ClientTimeouts};
use crate::call::{self, Caller};
use crate::connection::{Arguments, Connection};
use crate::instructions;
use crate::links::Links;
use crate::progress::Listener;
use crate::schema::Validators;
use crate::tools::browser::{self, Readings};
use crate::tools::canonical;

use self::catalogue::Catalogue;

/// Which tools stand beside those of the engine, and in whose words calls are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dialect {
    /// The six task tools; every tool of the engine is called by its name.
    #[default]
    Canonical,
    /// The four browser tools; there are no others.
    Browser,
}

/// How the facade presents itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name the server gives itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// In whose words it speaks.
    pub dialect: Dialect,
    /// Who owns the tasks of this surface [SCOPE-1].
    pub scope: Scope,
    /// Whether objects are sent as `structuredContent` as well.
    pub is_structured: bool,
    /// After what time clients give up.
    pub client_timeouts: ClientTimeouts,
    /// Writes links to artifacts; without it they are listed without one.
    pub links: Option<Arc<dyn Links>>,
}

impl Options {
    /// Presents the server as `raincheck` of a version, in the scope `local`.
    #[must_use]
    pub fn new(version: impl Into<String>) -> Self {
        Self {
            name: "raincheck".into(),
            version: version.into(),
            dialect: Dialect::default(),
            scope: Scope::local(),
            is_structured: false,
            client_timeouts: ClientTimeouts::default(),
            links: None,
        }
    }
}

/// Starts what must not be started by a mere probe: stores, locks, ports.
pub type Starter = Box<dyn FnOnce() + Send>;

/// An engine's MCP surface. Cloning is cheap; each connection takes a clone.
#[derive(Clone)]
pub struct Facade(Arc<Inner>);

struct Inner {
    engine: Handle,
    options: Options,
    catalogue: Catalogue,
    validators: Validators,
    readings: Readings,
    starter: Mutex<Option<Starter>>,
}

impl Facade {
    /// Puts MCP in front of an engine. `starter` is called once: when a client says that it is
    /// initialized, or at the first request other than discovery, handshake and ping.
    #[must_use]
    pub fn new(engine: Handle, options: Options, starter: Starter) -> Self {
        let specs = engine.specs();
        Self(Arc::new(Inner {
            catalogue: Catalogue::default(),
            validators: Validators::new(&specs),
            readings: Readings::default(),
            starter: Mutex::new(Some(starter)),
            engine,
            options,
        }))
    }

    /// Returns the engine behind the facade.
    #[must_use]
    pub fn engine(&self) -> &Handle {
        &self.0.engine
    }

    pub(crate) fn links(&self) -> Option<&dyn Links> {
        self.0.options.links.as_deref()
    }

    pub(crate) fn readings(&self) -> &Readings {
        &self.0.readings
    }

    pub(crate) fn validators(&self) -> &Validators {
        &self.0.validators
    }

    fn start(&self) {
        let starter = self.0.starter.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(start) = starter {
            start();
        }
    }

    /// Gathers what a call must know of who makes it.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        let connection = context.extensions.get::<Connection>();
        let now = Instant::now();
        let options = &self.0.options;
        let client = context.client_info();
        let most =
            options.client_timeouts.budget(client.as_ref().map(|client| client.name.as_str()));
        let token = context.meta.get_progress_token();
        Caller {
            scope: options.scope.clone(),
            budget: Budget::new(connection.map_or(now, |connection| connection.arrival), most),
            listener: token.map(|token| Listener::new(context.peer.clone(), token, now)),
            cancelled: context.ct.clone(),
            closing: connection.map_or_else(CancellationToken::new, |c| c.closing.clone()),
        }
    }
}

impl ServerHandler for Facade {
    fn get_info(&self) -> ServerConfig {
        let Options { name, version, .. } = &self.0.options;
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(name, version).with_title("Raincheck"))
            .with_instructions(instructions::text(
                self.0.options.dialect,
                self.0.engine.capabilities().durability,
            ))
    }

    async fn on_initialized(&self, _context: NotificationContext<RoleServer>) {
        self.start();
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.start();
        Ok(ListToolsResult::with_all_items(
            self.0.catalogue.tools(self.0.options.dialect, &self.0.engine.specs()),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.start();
        let arguments = match context.extensions.get::<Arguments>() {
            Some(Arguments(json)) => json.clone(),
            None => Json::of(&request.arguments.unwrap_or_default())
                .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?,
        };
        let mut caller = self.caller(&context);
        let answer = match self.0.options.dialect {
            Dialect::Canonical => {
                if let Some(tool) = canonical::Tool::find(&request.name) {
                    canonical::call(self, tool, &arguments, &mut caller).await
                } else if let Some(spec) = self.0.engine.spec(&request.name) {
                    call::run(self, &spec, arguments, caller).await
                } else {
                    return Err(unknown_tool(&request.name));
                }
            }
            Dialect::Browser => match browser::Tool::find(&request.name) {
                Some(tool) => browser::call(self, tool, &arguments, &mut caller).await,
                None => return Err(unknown_tool(&request.name)),
            },
        };
        Ok(answer.into_result(self.0.options.is_structured).into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let name = text::escape(text::clip(&request.method, 100)).into_owned();
        tracing::debug!(method = name, "a client asked for a method that there is not");
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("no method is named `{name}`"),
            None,
        ))
    }
}

/// Refuses a name in `tools/call`: a JSON-RPC error, with the error table's object as its data
/// [CALL-5].
fn unknown_tool(name: &str) -> ErrorData {
    let name = text::escape(text::clip(name, 100)).into_owned();
    tracing::debug!(tool = name, "a client called a tool that there is not");
    let error = Error::new(Kind::UnknownTool, format!("no tool is named `{name}`"));
    ErrorData::invalid_params(error.message.to_string(), serde_json::to_value(&error).ok())
}

impl fmt::Debug for Facade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facade").field("options", &self.0.options).finish_non_exhaustive()
    }
}
