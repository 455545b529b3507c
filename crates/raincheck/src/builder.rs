//! From tools to a server.

#[cfg(feature = "mcp")]
mod serve;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::log::LogStore;
use raincheck_core::store::TaskStore;
use raincheck_runtime::{Clock, Functions, Handle, Ids, Options, Service, ToolSet};

#[cfg(feature = "loopback")]
use crate::listener::LoopbackConfig;
use crate::tool::Tool;

/// Where a server begins: [`Raincheck::builder`].
///
/// ```
/// use raincheck::Raincheck;
///
/// let server = Raincheck::builder();
/// # drop(server);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Raincheck;

impl Raincheck {
    /// Begins a server that keeps its tasks in memory and has the built-in lanes.
    pub fn builder() -> Builder {
        Builder {
            functions: Functions::new(),
            engine: Options::in_memory(),
            #[cfg(feature = "mcp")]
            face: raincheck_mcp::Options::new(env!("CARGO_PKG_VERSION"))
                .wrap(raincheck_mcp::layers::native::NativeTasks::default()),
            #[cfg(feature = "mcp")]
            scope: raincheck_core::scope::Scope::local(),
            #[cfg(feature = "mcp")]
            prepare: None,
            #[cfg(feature = "mcp")]
            beside: Vec::new(),
            #[cfg(feature = "loopback")]
            listening: None,
            #[cfg(feature = "loopback")]
            sharing: None,
        }
    }
}

/// A server in the making. The order of its calls does not matter; nothing is opened, started or
/// listened on before it serves.
#[must_use = "a server does nothing until it serves"]
pub struct Builder {
    functions: Functions,
    engine: Options,
    #[cfg(feature = "mcp")]
    face: raincheck_mcp::Options,
    #[cfg(feature = "mcp")]
    scope: raincheck_core::scope::Scope,
    #[cfg(feature = "mcp")]
    prepare: Option<serve::Prepare>,
    #[cfg(feature = "mcp")]
    beside: Vec<serve::Beside>,
    #[cfg(feature = "loopback")]
    listening: Option<LoopbackConfig>,
    #[cfg(feature = "loopback")]
    sharing: Option<crate::sharing::Sharing>,
}

impl Builder {
    /// Adds a function as a tool.
    ///
    /// A server with two tools of one name does not start.
    ///
    /// ```
    /// use raincheck::{Raincheck, TaskContext, Tool, ToolError};
    ///
    /// async fn double(n: u64, _: TaskContext) -> Result<u64, ToolError> {
    ///     Ok(2 * n)
    /// }
    ///
    /// let server = Raincheck::builder().tool(Tool::new("double", "Doubles a number", double));
    /// # drop(server);
    /// ```
    pub fn tool(mut self, tool: Tool) -> Self {
        self.functions = tool.add_to(self.functions);
        self
    }

    /// Adds a set of tools, such as command tools or a bridge. It is asked for its tools once, when the
    /// server starts.
    pub fn tools(mut self, tools: impl ToolSet) -> Self {
        self.engine = self.engine.with_tools(Arc::new(tools));
        self
    }

    /// Adds a lane, or changes what one may do. A call of a tool whose lane does not exist is refused,
    /// and names the lanes that there are.
    ///
    /// ```
    /// use raincheck::Raincheck;
    /// use raincheck::core::lane::Config;
    ///
    /// // Two at a time, and up to twenty that wait.
    /// let server = Raincheck::builder().lane("renders", Config::new(2, 20));
    /// # drop(server);
    /// ```
    pub fn lane(mut self, name: impl Into<LaneId>, config: lane::Config) -> Self {
        self.engine = self.engine.with_lane(name, config);
        self
    }

    /// Keeps tasks elsewhere than in memory: in `SqliteStore` of the crate `raincheck-store-sqlite`, or in
    /// a store of your own.
    ///
    /// It is opened when a client has introduced itself; until it is open, and when it cannot be opened,
    /// calls fail with `storage_unavailable` and nothing runs.
    pub fn store(mut self, store: impl TaskStore) -> Self {
        self.engine = self.engine.with_store(Arc::new(store));
        self
    }

    /// Keeps log lines elsewhere than in memory. [`FileLogs`](raincheck_runtime::FileLogs) keeps them in
    /// files beside a store that outlives the server.
    ///
    /// ```
    /// use raincheck::Raincheck;
    /// use raincheck::runtime::FileLogs;
    ///
    /// let server = Raincheck::builder().logs(FileLogs::new("state/tasks"));
    /// # drop(server);
    /// ```
    pub fn logs(mut self, logs: impl LogStore) -> Self {
        self.engine = self.engine.with_logs(Arc::new(logs));
        self
    }

    /// Tells the time by another clock, for tests. It must never go back: limits, leases and retention are
    /// counted by it.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.engine.clock = Arc::new(clock);
        self
    }

    /// Makes identities in another way, for tests that need the same ones again. They must be unique, and
    /// what guards a secret must not be predictable.
    pub fn ids(mut self, ids: impl Ids) -> Self {
        self.engine.ids = Arc::new(ids);
        self
    }

    /// Sets how long an attempt that survived a restart has to be heard of; 45 s by default. What is not
    /// heard of by then fails as `worker_lost`, or is tried again where its tool allows that.
    pub fn reattach_grace(mut self, grace: Duration) -> Self {
        self.engine.reattach_grace = grace;
        self
    }

    /// Makes the engine alone, for whoever brings a surface of their own.
    ///
    /// ```
    /// use raincheck::runtime::Called;
    /// use raincheck::{Raincheck, TaskContext, Tool, ToolError};
    /// use tokio_util::sync::CancellationToken;
    ///
    /// async fn double(n: u64, _: TaskContext) -> Result<u64, ToolError> {
    ///     Ok(2 * n)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let double = Tool::new("double", "Doubles a number", double);
    /// let (engine, service) = Raincheck::builder().tool(double).engine();
    /// let stop = CancellationToken::new();
    /// let calling = async {
    ///     let called = engine.call("double", 21).await;
    ///     stop.cancel();
    ///     called
    /// };
    /// let (called, ()) = tokio::join!(calling, service.run(stop.clone()));
    /// assert!(matches!(called?, Called::Outcome(outcome) if format!("{outcome:?}").contains("42")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn engine(self) -> (Handle, Service) {
        raincheck_runtime::start(self.engine.with_tools(Arc::new(self.functions)))
    }
}

#[cfg(feature = "mcp")]
impl Builder {
    /// Sets how the server introduces itself: `serverInfo` of the handshake.
    pub fn server_info(mut self, name: &str, version: &str) -> Self {
        self.face.name = name.into();
        self.face.version = version.into();
        self
    }

    /// Adds a surface: a vocabulary of tools and answers. A server with none speaks canonically.
    ///
    /// A server whose surfaces have two tools of one name does not start.
    pub fn surface(mut self, surface: impl raincheck_mcp::Surface) -> Self {
        self.face = self.face.offer(surface);
        self
    }

    /// Wraps the calls of every surface into a layer, outside of those that were added before: it sees
    /// arguments first and answers last.
    pub fn layer(mut self, layer: impl raincheck_mcp::Layer) -> Self {
        self.face = self.face.wrap(layer);
        self
    }

    /// Sets who owns the tasks; `local` by default. Tasks of another owner in the same store are neither
    /// listed nor read nor cancelled: they read as unknown.
    pub fn scope(mut self, name: &str) -> Self {
        self.scope = raincheck_core::scope::Scope::new(name);
        self
    }

    /// Sends objects as `structuredContent` as well, for clients that are known to read it: the data goes
    /// out twice.
    pub fn structured_content(mut self) -> Self {
        self.face.is_structured = true;
        self
    }

    /// Sets after what time a client whose name contains `name`, in any case, gives a call up. A call is
    /// answered a little earlier than that, with a task id if need be.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use raincheck::Raincheck;
    ///
    /// let server = Raincheck::builder().client_timeout("my-editor", Duration::from_secs(15));
    /// # drop(server);
    /// ```
    pub fn client_timeout(mut self, name: &str, timeout: Duration) -> Self {
        self.face.client_timeouts = self.face.client_timeouts.with(name, timeout);
        self
    }
}

#[cfg(feature = "mcp")]
impl Builder {
    /// Serves the tools of an MCP server written with `rmcp`, with no change to it: its calls become tasks,
    /// with handles, progress, logs and cancel.
    ///
    /// ```
    /// use raincheck::Raincheck;
    /// use raincheck::mcp::gateway::ServerHandler;
    ///
    /// struct Existing;
    /// impl ServerHandler for Existing {}
    ///
    /// let server = Raincheck::builder().wrap(Existing);
    /// # drop(server);
    /// ```
    pub fn wrap(self, handler: impl raincheck_mcp::gateway::ServerHandler) -> Self {
        self.gateway(raincheck_mcp::gateway::Gateway::handler(handler, Default::default()))
    }

    /// Serves the tools, resources and prompts of another MCP server, such as a program.
    ///
    /// ```
    /// use raincheck::Raincheck;
    /// use raincheck::mcp::gateway::{Command, Gateway, Settings};
    ///
    /// let command = Command::new("npx").argument("@modelcontextprotocol/server-everything");
    /// let server = Raincheck::builder().gateway(Gateway::command(command, Settings::default()));
    /// # drop(server);
    /// ```
    pub fn gateway(self, gateway: raincheck_mcp::gateway::Gateway) -> Self {
        let running = gateway.clone();
        self.layer(gateway.clone())
            .tools(gateway)
            .beside(move |engine, stop| running.run(engine, stop))
    }
}

#[cfg(feature = "cache")]
impl Builder {
    /// Keeps an answer that is too large to send, and answers with a handle, an outline and the first
    /// page instead; the tool `fetch_cached_response` reads the rest.
    ///
    /// Calls that are made ahead are made for the [scope](Self::scope) that was set before.
    ///
    /// Filters beyond plain paths run in a child process: call [`child_main`](crate::child_main) first in
    /// `main`.
    ///
    /// ```no_run
    /// use raincheck::mcp::layers::cache::CacheOptions;
    /// use raincheck::{Raincheck, TaskContext, Tool, ToolError};
    ///
    /// async fn scene(depth: u32, _: TaskContext) -> Result<Vec<String>, ToolError> {
    ///     Ok((0..10_000 * depth).map(|n| format!("object {n}")).collect())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::io::Result<()> {
    /// let server = Raincheck::builder()
    ///     .tool(Tool::new("scene", "Lists a scene", scene))
    ///     .cache(CacheOptions::default());
    /// server.serve_stdio().await
    /// # }
    /// ```
    pub fn cache(mut self, mut options: raincheck_mcp::layers::cache::CacheOptions) -> Self {
        if options.filter_child.is_none() {
            options.filter_child = crate::child::filter_child();
        }
        options.warm_scope = self.scope.clone();
        let cache = raincheck_mcp::layers::cache::CacheLayer::new(options);
        self.face = self.face.wrap(cache.clone());
        self.beside(move |engine, stop| async move { cache.run(&engine, stop).await })
    }
}

#[cfg(feature = "loopback")]
impl Builder {
    /// Listens on this machine, so that artifacts are listed with a link to download them. The socket is
    /// bound to 127.0.0.1 and opened with the first artifact that is listed.
    pub fn listening(mut self, listening: LoopbackConfig) -> Self {
        self.listening = Some(listening);
        self
    }

    /// Shares the store, and what is behind the tools, with other processes of the same program: the
    /// first one owns it, and the others are served by that one as long as it lives.
    pub fn sharing(mut self, sharing: crate::sharing::Sharing) -> Self {
        self.sharing = Some(sharing);
        self
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("functions", &self.functions)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}
