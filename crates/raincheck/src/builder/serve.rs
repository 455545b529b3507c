//! A server on the standard streams, or over HTTP.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "loopback")]
use std::sync::Arc;

#[cfg(feature = "http")]
use raincheck_mcp::HttpService;
#[cfg(feature = "loopback")]
use raincheck_mcp::{Links, Starter};
use raincheck_mcp::{Server, Streams, serve_stdio, take_stdout};
use raincheck_runtime::{Handle, Service};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Builder;
use crate::begin::{Begun, begins};
#[cfg(feature = "http")]
use crate::http::HttpConfig;
#[cfg(feature = "loopback")]
use crate::listener::{Listener, LoopbackConfig};
#[cfg(feature = "loopback")]
use crate::sharing::{self, Finder, Shared};

/// Made when a client means to stay; what it returns is kept until the engine has ended.
pub(super) type Prepare = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// Begins what runs beside the engine.
pub(super) type Beside =
    Box<dyn FnOnce(Handle, CancellationToken) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

impl Builder {
    /// Runs something beside the engine, such as the far side of a bridge. It begins before the first
    /// call is taken, and is over soon after its token fires; the server ends when it has.
    pub fn beside<F>(
        mut self,
        begin: impl FnOnce(Handle, CancellationToken) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.beside.push(Box::new(|engine, stop| Box::pin(begin(engine, stop))));
        self
    }

    /// Does something before the engine starts, where blocking is allowed. What it returns is kept,
    /// and dropped when the engine has ended.
    ///
    /// A client that only asks what the server is does not start the engine.
    pub fn before_start<T: Send + 'static>(
        mut self,
        prepare: impl FnOnce() -> T + Send + 'static,
    ) -> Self {
        self.prepare = Some(Box::new(move || Box::new(prepare())));
        self
    }

    /// Serves MCP on standard input and output until the client closes it.
    ///
    /// Whatever else the process prints goes to standard error from now on.
    ///
    /// # Errors
    /// When the standard streams cannot be used, or the session breaks.
    pub async fn serve_stdio(self) -> std::io::Result<()> {
        let streams = Streams::standard(take_stdout()?)?;
        self.serve(streams, CancellationToken::new()).await
    }

    /// Serves MCP on two streams until the client closes them or `stop` fires; then `stop` has
    /// fired and the engine has ended.
    ///
    /// Either way the session comes first: calls that are still open are answered while the engine
    /// runs, so that a call whose task goes on gets its id [LEASE-9]. What runs beside the engine is told
    /// to end with it.
    ///
    /// # Errors
    /// When the session breaks.
    pub async fn serve(self, streams: Streams, stop: CancellationToken) -> std::io::Result<()> {
        let scope = self.scope.clone();
        self.hold(stop, |parts| async move {
            #[cfg(feature = "loopback")]
            let Parts { server, stop, finder: None, .. } = parts else {
                let Parts { server, stop, finder: Some(finder), .. } = parts else { return Ok(()) };
                return finder.serve(server, scope, streams, stop).await;
            };
            #[cfg(not(feature = "loopback"))]
            let Parts { server, stop } = parts;
            serve_stdio(server, scope, streams, stop).await.map_err(std::io::Error::other)
        })
        .await
    }

    /// Serves MCP over Streamable HTTP, at `/mcp` of a listener, until `stop` fires; then the engine has
    /// ended.
    ///
    /// The engine is started at once: a server that listens is there to stay. At the end the last
    /// requests are answered first, as [`serve`](Self::serve) does.
    ///
    /// # Errors
    /// When the address cannot be listened on, or is one that other machines reach and it was not said
    /// that they may, or who they are.
    #[cfg(feature = "http")]
    pub async fn serve_http(
        mut self,
        http: HttpConfig,
        stop: CancellationToken,
    ) -> std::io::Result<()> {
        let keys = (http.keys(&self.scope)?, self.scope.clone());
        let listening = self.listening.take().unwrap_or_default();
        self.listening = Some(listening.reached_over(http));
        self.hold(stop, |Parts { server, listener, finder, stop }| async move {
            let listener = listener.ok_or(std::io::ErrorKind::NotConnected)?;
            let owning = async {
                if let Some(finder) = finder {
                    finder.own_in_the_end(&stop).await;
                }
                // It serves to the end, whoever owns the store.
                std::future::pending::<()>().await;
            };
            tokio::select! {
                served = listener.serve_mcp(server, keys, stop.clone()) => served,
                () = owning => Ok(()),
            }
        })
        .await
    }

    /// Makes a `tower` service that answers MCP over Streamable HTTP, to be mounted in a server that there
    /// is, and the future that runs the engine behind it. That ends once `stop` has fired, the last
    /// requests are answered, and the engine has ended; whoever listens should go on for a moment.
    ///
    /// The service lets requests in that are addressed to this machine by the names of loopback, unless
    /// its [options](raincheck_mcp::HttpOptions) say otherwise, and takes as their owner the
    /// [`Scope`](raincheck_core::scope::Scope) among their extensions, else the one of the options.
    ///
    /// ```no_run
    /// use raincheck::Raincheck;
    /// use raincheck::core::scope::Scope;
    /// use raincheck::mcp::HttpOptions;
    /// use tokio_util::sync::CancellationToken;
    ///
    /// # async fn serve() -> std::io::Result<()> {
    /// let options = HttpOptions::new(Some(Scope::local()));
    /// let (service, running) = Raincheck::builder().into_service(options, CancellationToken::new())?;
    /// // `service` goes into a router, such as axum's: `Router::new().route_service("/mcp", service)`.
    /// # drop(service);
    /// running.await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When two tools have one name.
    #[cfg(feature = "http")]
    pub fn into_service(
        self,
        options: raincheck_mcp::HttpOptions,
        stop: CancellationToken,
    ) -> std::io::Result<(HttpService, impl Future<Output = ()> + Send + use<>)> {
        // The engine outlives the requests that are still open when it is told to end.
        let over = CancellationToken::new();
        let (Parts { server, finder, .. }, engine) = self.assemble(&over, &stop)?;
        let service = HttpService::new(server.clone(), options);
        server.start();
        let closing = service.clone();
        let owning = stop.clone();
        let owned = async move {
            if let Some(finder) = finder {
                finder.own_in_the_end(&owning).await;
            }
        };
        let end = async move {
            stop.cancelled().await;
            closing.close().await;
            over.cancel();
        };
        Ok((service, async move {
            tokio::join!(end, owned, engine);
        }))
    }

    /// Runs the engine, and what is beside it, around a session.
    async fn hold<F>(
        self,
        stop: CancellationToken,
        session: impl FnOnce(Parts) -> F,
    ) -> std::io::Result<()>
    where
        F: Future<Output = std::io::Result<()>>,
    {
        // The engine outlives the session: a call that is open at its end gets the id of its task.
        let over = CancellationToken::new();
        let (parts, engine) = self.assemble(&over, &stop)?;
        let session = async {
            let served = Box::pin(session(parts)).await;
            stop.cancel();
            over.cancel();
            served
        };
        tokio::join!(session, engine).0
    }

    /// Puts the server together, and what runs behind it until `over` fires.
    fn assemble(
        mut self,
        over: &CancellationToken,
        stop: &CancellationToken,
    ) -> std::io::Result<(Parts, impl Future<Output = ()> + Send + use<>)> {
        let (begin, begun) = begins();
        let (prepare, face) = (self.prepare.take(), self.face.clone());
        #[cfg(feature = "loopback")]
        let shared = self.shared()?;
        #[cfg(feature = "loopback")]
        let (starter, begin) = match shared {
            // What starts is decided by who owns the store.
            Some(shared) => (Box::new(|| {}) as Starter, Some((shared, begin, self.scope.clone()))),
            None => (begin.starter(), None),
        };
        #[cfg(not(feature = "loopback"))]
        let starter = begin.starter();
        #[cfg(feature = "loopback")]
        let listening = self.listening.take();
        let beside = std::mem::take(&mut self.beside);
        let (handle, service) = self.engine();
        let beside: JoinSet<()> =
            beside.into_iter().map(|begin| begin(handle.clone(), over.clone())).collect();
        #[cfg(feature = "loopback")]
        let (face, listener) = listen(listening, &handle, face, over);
        let server = Server::new(handle, face, starter).map_err(std::io::Error::other)?;
        #[cfg(not(feature = "loopback"))]
        let listening = std::future::ready(());
        #[cfg(feature = "loopback")]
        let listening = run(listener.clone());
        #[cfg(not(feature = "loopback"))]
        let host = std::future::ready(());
        #[cfg(feature = "loopback")]
        let (finder, host) = sharing::begin(begin, &server, over);
        #[cfg(feature = "loopback")]
        let host = Box::pin(host);
        let parts = Parts {
            server,
            #[cfg(feature = "http")]
            listener,
            #[cfg(feature = "loopback")]
            finder,
            stop: stop.clone(),
        };
        let engine = engine(service, prepare, begun, over.clone());
        Ok((parts, async move {
            tokio::join!(engine, listening, host, ended(beside));
        }))
    }

    /// Takes a place among the processes that share a store, and keeps the engine from the store of
    /// another one.
    #[cfg(feature = "loopback")]
    fn shared(&mut self) -> std::io::Result<Option<Shared>> {
        let Some(sharing) = self.sharing.take() else { return Ok(None) };
        let shared = Shared::new(sharing).map_err(std::io::Error::other)?;
        self.engine.store = shared.gated(Arc::clone(&self.engine.store));
        Ok(Some(shared))
    }
}

/// What a session is made of.
struct Parts {
    server: Server,
    #[cfg(feature = "http")]
    listener: Option<Listener>,
    #[cfg(feature = "loopback")]
    finder: Option<Finder>,
    stop: CancellationToken,
}

/// Makes the listener, and the face that shows its links.
#[cfg(feature = "loopback")]
fn listen(
    listening: Option<LoopbackConfig>,
    engine: &Handle,
    mut face: raincheck_mcp::Options,
    stop: &CancellationToken,
) -> (raincheck_mcp::Options, Option<Listener>) {
    let layers = face.layers.clone();
    let listener =
        listening.map(|listening| Listener::new(listening, engine.clone(), layers, stop.clone()));
    face.links = listener.clone().map(|listener| Arc::new(listener) as Arc<dyn Links>);
    (face, listener)
}

/// Waits until the listener is closed.
#[cfg(feature = "loopback")]
async fn run(listener: Option<Listener>) {
    if let Some(listener) = listener {
        listener.run().await;
    }
}

/// Waits for what runs beside the engine.
async fn ended(mut beside: JoinSet<()>) {
    while let Some(ended) = beside.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            tracing::error!("what runs beside the engine panicked");
        }
    }
}

/// Runs the engine once a client means to stay, and the store is this process's or nobody serves it.
async fn engine(service: Service, prepare: Option<Prepare>, begun: Begun, stop: CancellationToken) {
    if !is_told(begun.wanted, &stop).await {
        return;
    }
    let kept = match prepare {
        Some(prepare) => tokio::task::spawn_blocking(prepare).await.ok(),
        None => None,
    };
    if is_told(begun.engine, &stop).await {
        service.run(stop).await;
    }
    drop(kept);
}

/// Waits until something is begun; `false` when the end comes first.
async fn is_told(begun: oneshot::Receiver<()>, stop: &CancellationToken) -> bool {
    tokio::select! {
        begun = begun => begun.is_ok(),
        () = stop.cancelled() => false,
    }
}
