//! One session of one client: requests in, answers out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, CustomRequest, CustomResult,
    DiscoverResult, ElicitationCapability, ErrorCode, Implementation, InitializeRequestParams,
    InitializeResult, JsonObject, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    RootsCapabilities, SamplingCapability, ServerConfig,
};
use rmcp::service::{NotificationContext, Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::text;
use raincheck_core::tool::Needs;
use raincheck_core::trace::TraceContext;

use super::flight::InFlight;
use super::registry::{Owner, Registry};
use super::requests::{Retry, Written};
use super::rounds::{self, Round};
use super::{Server, line, lists, panics, peer, result};
use crate::answer::Refused;
use crate::call::{Told, go_on, known_tool};
use crate::caller::{Caller, Connection, Declared, Listener};
use crate::surface::{Call, Extension, Method, Surface};

/// Where a request of revision 2026-07-28 says what its client can do.
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A server, as one connection sees it.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    server: Server,
    connection: Connection,
    is_open: Arc<AtomicBool>,
    /// Whether it was begun by `initialize`: no extension is for it, whatever a request says.
    is_of_handshake: Arc<AtomicBool>,
}

impl Session {
    /// Begins a session on a connection.
    pub(crate) fn new(server: Server, connection: Connection) -> Self {
        let (is_open, is_of_handshake) = Default::default();
        Self { server, connection, is_open, is_of_handshake }
    }

    /// Says whether the client has introduced itself, or has asked for something without: before
    /// that, its notifications mean nothing.
    pub(crate) fn is_open(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_open)
    }

    /// Agrees with a client on a version, and introduces the server.
    ///
    /// # Errors
    /// When there is no version that both speak.
    pub(crate) fn introduce(
        &self,
        client: &InitializeRequestParams,
    ) -> Result<InitializeResult, ErrorData> {
        self.is_open.store(true, Ordering::Release);
        self.is_of_handshake.store(true, Ordering::Release);
        self.negotiate_initialize(client)
    }

    fn begin(&self) {
        self.is_open.store(true, Ordering::Release);
        self.server.start();
    }

    /// Gathers what a call must know of who makes it.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        let flight = context.extensions.get::<InFlight>();
        let now = Instant::now();
        let arrival = flight.map_or(now, |flight| flight.arrival);
        let client = context.client_info();
        let timeouts = &self.server.0.options.client_timeouts;
        let most = timeouts.budget(client.as_ref().map(|client| client.name.as_str()));
        let listener = context.meta.get_progress_token().map(|token| {
            let to = peer::Progress { peer: context.peer.clone(), token };
            Listener::new(Box::new(to), now)
        });
        let caller = Caller::new(self.connection.clone(), arrival, most)
            .of_client(client.as_ref().map(|client| client.name.as_str()))
            .declaring(self.declared(context))
            .in_trace(trace(context))
            .with_listener(listener)
            .with_peer(Box::new(peer::Client(context.peer.clone())));
        match flight {
            Some(flight) => caller
                .in_flight(flight.cancelled.clone(), Arc::new(flight.clone()))
                .in_turn(flight.turn.clone())
                .asked_as(flight.key.clone()),
            None => caller,
        }
    }

    /// Returns what a request declares that its client can do; `None` where its revision says nothing of it.
    fn declared(&self, context: &RequestContext<RoleServer>) -> Option<Declared> {
        let version = context.meta.protocol_version()?;
        if self.is_of_handshake.load(Ordering::Acquire) || version < ProtocolVersion::V_2026_07_28 {
            return None;
        }
        let declared = context.meta.get(CLIENT_CAPABILITIES).and_then(Value::as_object);
        Some(Declared::of(declared))
    }

    /// Makes a call: through the layers to its owner, and back.
    async fn call(
        &self,
        call: Call,
        retry: Option<&Retry>,
        mut who: Caller,
    ) -> Result<CallToolResponse, ErrorData> {
        let inner = &self.server.0;
        if who.is_cancelled() {
            return Err(over());
        }
        let round = Round::read(&inner.desk, &call, retry, &who).await;
        let round = round.map_err(|error| refused(&error))?;
        let mut roster = inner.roster();
        if roster.registry.owner(&call.tool).is_none() {
            // Its set may not know its tools yet.
            let known = known_tool(self.server.engine(), &call.tool, &who).await;
            roster = inner.roster();
            if let (Err(error), None) = (known, roster.registry.owner(&call.tool)) {
                if who.is_cancelled() {
                    return Err(over());
                }
                return Ok(Box::pin(self.not_known(error, &call, who)).await);
            }
        }
        let registry = &roster.registry;
        let Some(owner) = registry.owner(&call.tool) else {
            if who.is_repeated() {
                // Another process knew the tool, and may have begun the call.
                let error = no_such_tool(&call.tool);
                return Ok(Box::pin(self.not_known(error, &call, who)).await);
            }
            return Err(unknown_tool(&call.tool));
        };
        let answer = match owner {
            Owner::Layer(layer) => {
                who.begins_nothing();
                match layer.call(&inner.desk, call, &mut who).await {
                    Ok(answer) => answer,
                    Err(refused) => registry.first().refuse(&inner.desk, &refused),
                }
            }
            Owner::Surface(surface) => {
                self.suits(registry, &call.tool, &who)?;
                let asked = call.clone();
                let told = match round.id() {
                    Some(id) => {
                        let told = go_on(self.server.engine(), id, &mut who).await;
                        Ok(told.map_err(|error| refused(&rounds::gone(error)))?)
                    }
                    None => self.begin_call(registry, surface, call, &mut who).await,
                };
                let told = Box::pin(round.answer(&inner.desk, told, &mut who)).await;
                if told.is_err() {
                    // What is refused begins no work; those after it do not wait for its answer.
                    who.begins_nothing();
                }
                let is_short = told.as_ref().map_or(true, Told::is_short);
                if who.leave().await.is_err() && (who.is_cancelled() || !is_short) {
                    return Err(over());
                }
                let answer = match told {
                    Ok(Told::Live(view)) => {
                        if let Some(question) = rounds::question(&inner.desk, &view, &asked, &who) {
                            return Ok(line::verbatim_round(&question).into());
                        }
                        let mut layers = registry.layers().iter().rev();
                        if let Some(ticket) =
                            layers.find_map(|layer| layer.ticket(&inner.desk, &view, &who))
                        {
                            return ticket.read().map(CallToolResponse::Task).map_err(internal);
                        }
                        surface.write(&inner.desk, Told::Live(view), &who)
                    }
                    Ok(told) => surface.write(&inner.desk, told, &who),
                    Err(refused) => surface.refuse(&inner.desk, &refused),
                };
                inner.finish(registry, answer, &asked, surface, &who).await
            }
        };
        Ok(result::result(answer, inner.options.is_structured).into())
    }

    /// Hands a call to its surface.
    async fn begin_call(
        &self,
        registry: &Registry,
        surface: &dyn Surface,
        call: Call,
        who: &mut Caller,
    ) -> Result<Told, Refused> {
        let asked = call.clone();
        let (told, is_seen) = match self.take(registry, call, who).await {
            Ok(call) => (surface.call(&self.server.0.desk, call, who).await, true),
            Err(error) => (Err(error.into()), false),
        };
        match told {
            Err(refused) => Box::pin(self.server.as_repeated(refused, &asked, is_seen, who)).await,
            told => told,
        }
    }

    /// Looks whether a client can do what a tool needs of it, before anything is accepted [TASKS-8]. Where its
    /// revision has no word for that, nothing is asked of it.
    fn suits(&self, registry: &Registry, tool: &str, who: &Caller) -> Result<(), ErrorData> {
        let (Some(abilities), Some(spec)) = (who.abilities(), self.server.engine().spec(tool))
        else {
            return Ok(());
        };
        if spec.needs == Needs::default() {
            return Ok(());
        }
        let layers = registry.layers().iter().filter(|layer| layer.is_needed(spec.needs));
        let missing = layers.filter_map(|layer| layer.extension());
        let missing: Vec<_> = missing.filter(|one| !who.declares(one.id)).collect();
        let lacks = abilities.lacks(spec.needs);
        if missing.is_empty() && lacks == Needs::default() {
            return Ok(());
        }
        let mut required = required(&missing);
        required.elicitation = lacks.elicitation.then(ElicitationCapability::default);
        required.sampling = lacks.sampling.then(SamplingCapability::default);
        required.roots = lacks.roots.then(RootsCapabilities::default);
        Err(ErrorData::missing_required_client_capability(required))
    }

    /// Answers a call of a tool that is not known, or not yet.
    async fn not_known(&self, error: Error, call: &Call, mut who: Caller) -> CallToolResponse {
        let inner = &self.server.0;
        let roster = inner.roster();
        let first = roster.registry.first();
        let answer =
            match Box::pin(self.server.as_repeated(error.into(), call, false, &mut who)).await {
                Ok(told) => first.write(&inner.desk, told, &who),
                Err(refused) => first.refuse(&inner.desk, &refused),
            };
        result::result(answer, inner.options.is_structured).into()
    }

    async fn take(&self, registry: &Registry, mut call: Call, who: &Caller) -> Result<Call, Error> {
        for layer in registry.layers() {
            call.arguments = layer.take(&self.server.0.desk, call.arguments, who).await?;
        }
        Ok(call)
    }

    /// Looks whether a request may use an extension; `false` where there is none for it.
    fn admit(&self, extension: Extension, who: &Caller) -> Result<bool, ErrorData> {
        if !who.has_extensions() {
            return Ok(false);
        }
        if !who.declares(extension.id) {
            return Err(ErrorData::missing_required_client_capability(required(&[extension])));
        }
        self.begin();
        Ok(true)
    }

    /// Tells a client what changes by itself, until it is gone: the tools, and what the layers say. Never
    /// returns.
    pub(crate) async fn announce(&self, client: Peer<RoleServer>) {
        let mut telling = JoinSet::new();
        for layer in self.server.roster().registry.layers() {
            if let Some(notices) = layer.notices() {
                let is_open = self.is_open();
                telling.spawn(peer::tell(client.clone(), notices.subscribe(), is_open));
            }
        }
        let Some(mut watch) = self.server.engine().watch_specs() else {
            return std::future::pending().await;
        };
        loop {
            watch.changed().await;
            if self.is_open.load(Ordering::Acquire)
                && let Err(error) = client.notify_tool_list_changed().await
            {
                tracing::debug!(%error, "a client was not told that the tools changed");
            }
        }
    }

    async fn method(&self, method: Method, mut who: Caller) -> Result<CustomResult, ErrorData> {
        let inner = &self.server.0;
        let roster = inner.roster();
        let parts = lists::parts(&method.name, roster.registry.layers());
        if parts.len() > 1 {
            self.begin();
            let answer = lists::answer(&parts, &inner.desk, &method, &mut who).await;
            return answer.map(|json| line::verbatim(&json)).map_err(|error| refused(&error));
        }
        for layer in roster.registry.layers() {
            let extension = layer.extension();
            let is_of_extension = |one: &Extension| one.methods.contains(&method.name.as_str());
            if let Some(extension) = extension.filter(is_of_extension)
                && !self.admit(extension, &who)?
            {
                continue;
            }
            if let Some(answer) = layer.method(&inner.desk, &method, &mut who).await {
                return answer.map(|json| line::verbatim(&json)).map_err(|error| refused(&error));
            }
        }
        if method.name == "resources/read"
            && roster.registry.layers().iter().any(|layer| layer.has_resources())
        {
            let words = "`uri` is no address of this server";
            return Err(refused(&Error::new(Kind::InvalidParams, words)));
        }
        let name = text::escape(text::clip(&method.name, 100)).into_owned();
        tracing::debug!(method = name, "a client asked for a method that there is not");
        let words = format!("no method is named `{name}`");
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None))
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let options = &self.server.0.options;
        ServerConfig::new(self.server.capabilities())
            .with_server_info(
                Implementation::new(&options.name, &options.version).with_title("Raincheck"),
            )
            .with_instructions(self.server.instructions())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        if let Ok(capabilities) = Json::of(&request.capabilities) {
            for layer in self.server.roster().registry.layers() {
                layer.greeted(&capabilities);
            }
        }
        self.introduce(&request)
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let discovered = async {
            let mut info = self.get_info();
            info.capabilities.extensions = self.server.extensions();
            let versions = self.supported_protocol_versions().into_owned();
            DiscoverResult::from_server_info(versions, info)
        };
        panics::caught(discovered).await.map_err(|_| panicked())
    }

    async fn on_initialized(&self, _context: NotificationContext<RoleServer>) {
        self.begin();
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let listed = async {
            if self.server.has_live_tools() {
                // Whose tools they are has to be asked.
                self.begin();
            }
            // Any other list starts nothing: some clients start a second server only to ask it for that.
            self.is_open.store(true, Ordering::Release);
            if request.and_then(|request| request.cursor).is_some() {
                // Every list is one page, and gives none out.
                return Err(ErrorData::invalid_params(NO_CURSOR, None));
            }
            let who = self.caller(&context);
            Ok(ListToolsResult::with_all_items(self.server.list(&who).await))
        };
        panics::caught(listed).await.unwrap_or_else(|_| Err(panicked()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = match context.extensions.get::<Written>() {
            Some(Written(json)) => json.clone(),
            None => Json::of(&request.arguments.unwrap_or_default()).map_err(internal)?,
        };
        let call = Call { tool: request.name.into_owned(), arguments };
        let called = async {
            self.begin();
            self.call(call, context.extensions.get::<Retry>(), self.caller(&context)).await
        };
        panics::caught(called).await.unwrap_or_else(|_| Err(panicked()))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let params = context.extensions.get::<Written>();
        let params = params.map_or_else(Json::empty_object, |Written(json)| json.clone());
        let id = Json::of(&context.id).map_err(internal)?;
        let method = Method { name: request.method.clone(), id, params };
        let who = self.caller(&context);
        let answered =
            panics::caught(self.method(method, who)).await.unwrap_or_else(|_| Err(panicked()))?;
        let version = context.protocol_version();
        match version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
            true => Ok(line::completed(answered, &request.method)),
            false => Ok(answered),
        }
    }
}

/// Names extensions that a client would have to declare.
fn required(extensions: &[Extension]) -> ClientCapabilities {
    let named = extensions.iter().map(|one| (one.id.to_owned(), JsonObject::new()));
    let mut required = ClientCapabilities::default();
    required.extensions = (!extensions.is_empty()).then(|| named.collect());
    required
}

/// Reads the trace that a request belongs to, as every revision may bring it in `_meta` [TRACE-1].
fn trace(context: &RequestContext<RoleServer>) -> Option<TraceContext> {
    let field = |name: &str| context.meta.get(name).and_then(Value::as_str);
    TraceContext::new(field("traceparent")?, field("tracestate"), field("baggage"))
}

/// Refuses a name in `tools/call`: a JSON-RPC error, with the error table's object as its data
/// [CALL-5].
fn unknown_tool(name: &str) -> ErrorData {
    tracing::debug!(
        tool = %text::escape(text::clip(name, 100)),
        "a client called a tool that there is not"
    );
    refused(&no_such_tool(name))
}

fn no_such_tool(name: &str) -> Error {
    let name = text::escape(text::clip(name, 100));
    Error::new(Kind::UnknownTool, format!("no tool is named `{name}`"))
}

/// Refuses a request with the error table's object as its data: as a fault of the server where that is
/// what it is, and of what was asked otherwise.
fn refused(error: &Error) -> ErrorData {
    let (words, data) = (error.message.to_string(), serde_json::to_value(error).ok());
    match error.kind.entry().http {
        500.. => ErrorData::internal_error(words, data),
        _ => ErrorData::invalid_params(words, data),
    }
}

/// Said to whoever brings a cursor that no list gave.
const NO_CURSOR: &str = "no list of this server gave this cursor; ask again without one";

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// What nobody will see: the request was cancelled, or its connection is over.
fn over() -> ErrorData {
    ErrorData::internal_error("the request is over", None)
}

/// What became of the work is not known: the panic was in the server itself.
fn panicked() -> ErrorData {
    let error = Error::new(Kind::Panicked, "the server panicked at this request");
    ErrorData::internal_error(error.message.to_string(), serde_json::to_value(&error).ok())
}
