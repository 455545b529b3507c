//! A listener on this machine: artifacts by signed links, and calls of the owner's own programs.

use std::error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "http")]
use std::sync::OnceLock;

#[cfg(feature = "http")]
use crate::http::HttpConfig;
use async_trait::async_trait;
use raincheck_core::ids::ArtifactId;
#[cfg(feature = "http")]
use raincheck_core::scope::Scope;
use raincheck_core::task::Artifact;
use raincheck_core::time::Timestamp;
#[cfg(feature = "http")]
use raincheck_loopback::Keys;
use raincheck_loopback::artifacts::{
    self, ArtifactSource, Artifacts, OpenArtifact, Signer, open_beneath,
};
use raincheck_loopback::endpoint::{self, Kind, Place};
use raincheck_loopback::{Error, Info, Options, Secret, Service, Surface, bind, control};
use raincheck_mcp::{Control, Layer, Links};
#[cfg(feature = "http")]
use raincheck_mcp::{HttpOptions, HttpService, Server};
use raincheck_runtime::{Handle, Kept};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What `GET /health` calls the server.
const NAME: &str = "raincheck";

/// How a server listens on 127.0.0.1.
///
/// The listener opens with the first artifact that is listed. Links are good until their task expires,
/// and as long as the server runs.
///
/// ```
/// use raincheck::{LoopbackConfig, Raincheck};
///
/// let listening = LoopbackConfig::new().persist_in("state/http");
/// let server = Raincheck::builder().listening(listening);
/// # drop(server);
/// ```
#[derive(Clone, Debug, Default)]
pub struct LoopbackConfig {
    persist_in: Option<PathBuf>,
    endpoints: Option<PathBuf>,
    announced: Option<PathBuf>,
    #[cfg(feature = "http")]
    http: Option<HttpConfig>,
}

impl LoopbackConfig {
    /// Serves artifacts, and nothing else.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps the secret of links and the last port in a private folder: links stay good across a
    /// restart when the port is free then. It is of use with a store that outlives the server.
    #[must_use]
    pub fn persist_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.persist_in = Some(folder.into());
        self
    }

    /// Answers calls of the same user's programs too. They find the server by
    /// `<folder>/<instance>/endpoint.json`; the listener opens as soon as the store is open.
    #[must_use]
    pub fn control_api(mut self, folder: impl Into<PathBuf>) -> Self {
        self.endpoints = Some(folder.into());
        self
    }

    /// Writes `<folder>/<instance>/endpoint.json` while it listens, for whoever may read it.
    #[must_use]
    pub fn announced_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.announced = Some(folder.into());
        self
    }

    /// Listens where clients of other programs call.
    #[cfg(feature = "http")]
    pub(crate) fn reached_over(mut self, http: HttpConfig) -> Self {
        self.http = Some(http);
        self
    }

    /// Says where to listen, and how a client may call the listener.
    fn placed(&self, options: Options) -> Options {
        #[cfg(feature = "http")]
        if let Some(http) = &self.http {
            return http.placed(options);
        }
        options
    }
}

/// The listener of one server, open or not. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Listener(Arc<Inner>);

struct Inner {
    listening: LoopbackConfig,
    engine: Handle,
    started_at: Timestamp,
    stop: CancellationToken,
    /// What answers calls of its own tools.
    layers: Vec<Arc<dyn Layer>>,
    /// The listener while it serves.
    serving: TaskTracker,
    open: OnceCell<Open>,
    /// What is served at `/mcp`, and to whom.
    #[cfg(feature = "http")]
    mcp: OnceLock<(HttpService, Keys, Scope)>,
}

/// What links are written with.
#[derive(Clone)]
struct Open {
    url: String,
    signer: Signer,
    /// The endpoint file.
    #[cfg(feature = "http")]
    announced: Option<PathBuf>,
}

impl Listener {
    /// Makes a listener that is closed until it is needed, and again when `stop` fires.
    pub(crate) fn new(
        listening: LoopbackConfig,
        engine: Handle,
        layers: Vec<Arc<dyn Layer>>,
        stop: CancellationToken,
    ) -> Self {
        Self(Arc::new(Inner {
            listening,
            started_at: engine.now(),
            engine,
            layers,
            stop,
            serving: TaskTracker::new(),
            open: OnceCell::new(),
            #[cfg(feature = "http")]
            mcp: OnceLock::new(),
        }))
    }

    /// Serves MCP to whoever shows one of the keys, until `stop` fires and the last requests are answered.
    #[cfg(feature = "http")]
    pub(crate) async fn serve_mcp(
        &self,
        server: Server,
        (keys, scope): (Keys, Scope),
        stop: CancellationToken,
    ) -> io::Result<()> {
        let options = HttpOptions { pages: None, ..HttpOptions::new(None) };
        let service = HttpService::new(server.clone(), options);
        self.0.mcp.set((service.clone(), keys, scope.clone())).ok();
        let open = self.open().await?;
        if let Some(http) = &self.0.listening.http {
            crate::http::announce(&open.url, http, &scope, open.announced.as_deref());
        }
        server.start();
        stop.cancelled().await;
        service.close().await;
        Ok(())
    }

    /// Opens at the start what the owner's programs call, then waits until everything is closed.
    pub(crate) async fn run(self) {
        let Inner { listening, engine, stop, serving, .. } = &*self.0;
        // A server that does not own its store has nothing to tell.
        if listening.endpoints.is_some()
            && engine.opened().await
            && let Err(error) = self.open().await
        {
            let error: &dyn error::Error = &error;
            tracing::warn!(error, "the command line of this user cannot reach this server");
        }
        stop.cancelled().await;
        serving.close();
        serving.wait().await;
    }

    /// Returns the open listener, and opens it first if nobody has.
    async fn open(&self) -> io::Result<&Open> {
        let open = async || {
            let (listener, runtime) = (self.clone(), tokio::runtime::Handle::current());
            // Files are written on the way.
            let binding = spawn_blocking(move || runtime.block_on(listener.bind()));
            let (service, open) = binding.await?.map_err(io::Error::other)?;
            self.0.serving.spawn(service.run(self.0.stop.clone()));
            tracing::info!(url = open.url, "listening");
            Ok(open)
        };
        self.0.open.get_or_try_init(open).await
    }

    async fn bind(&self) -> Result<(Service, Open), Error> {
        let Inner { listening, started_at, .. } = &*self.0;
        let (secret, kept_port) = match &listening.persist_in {
            Some(folder) => (Secret::kept(&folder.join("secret"))?, Some(folder.join("port"))),
            None => (Secret::random()?, None),
        };
        let signer = Signer::new(secret);
        let (listener, links) = (self.clone(), signer.clone());
        let secret = Secret::random()?;
        let options = Options { kept_port, token: Some(secret.clone()), ..Options::new(NAME)? };
        let mut options =
            listening.placed(options).serving_later(move || listener.surfaces(links, &secret));
        if let Some(folder) = listening.endpoints.as_ref().or(listening.announced.as_ref()) {
            let n_swept = endpoint::sweep(folder);
            if n_swept > 0 {
                tracing::info!(n_swept, "removed the endpoint files of killed servers");
            }
            let path = endpoint::of_instance(folder, &options.instance_id);
            options.endpoint = Some(Place { path, kind: Kind::Http, started_at: *started_at });
        }
        #[cfg(feature = "http")]
        let announced = options.endpoint.as_ref().map(|place| place.path.clone());
        let (service, Info { url, .. }) = bind(options).await?;
        let open = Open {
            url,
            signer,
            #[cfg(feature = "http")]
            announced,
        };
        Ok((service, open))
    }

    /// Makes what is served, with the first connection. It holds this listener while it serves.
    fn surfaces(self, signer: Signer, secret: &Secret) -> Vec<Surface> {
        let engine = &self.0.engine;
        let clock = engine.clone();
        let source = Arc::new(Source(engine.clone()));
        let artifacts = Artifacts::new(signer, source, Arc::new(move || clock.now())).router();
        let mut all = vec![Surface { routes: artifacts, policy: artifacts::policy() }];
        if self.0.listening.endpoints.is_some() {
            let routes = control::router(self.calls());
            all.push(Surface { routes, policy: control::policy() });
        }
        #[cfg(feature = "http")]
        if let (Some((service, keys, scope)), Some(http)) =
            (self.0.mcp.get(), &self.0.listening.http)
        {
            let keys = keys.clone().with(secret.text(), scope.clone());
            all.extend(http.surfaces(service.clone(), keys));
        }
        #[cfg(not(feature = "http"))]
        let _ = secret;
        all
    }

    fn calls(&self) -> Arc<dyn control::Calls> {
        let links: Arc<dyn Links> = Arc::new(self.clone());
        let control =
            Control::new(self.0.engine.clone(), Some(links)).with_layers(self.0.layers.clone());
        Arc::new(Calls { control, closing: self.0.stop.clone() })
    }
}

#[async_trait]
impl Links for Listener {
    async fn write(&self, artifacts: &[Artifact], expires: Timestamp) -> Option<Vec<String>> {
        match self.open().await {
            Ok(Open { url, signer, .. }) => {
                let link = |one: &Artifact| signer.url(url, &one.id, &one.name, expires);
                Some(artifacts.iter().map(link).collect())
            }
            Err(error) => {
                let error: &dyn error::Error = &error;
                tracing::warn!(error, "artifacts are listed without a link");
                None
            }
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("listening", &self.0.listening)
            .field("is_open", &self.0.open.initialized())
            .finish_non_exhaustive()
    }
}

/// The artifacts of an engine.
struct Source(Handle);

#[async_trait]
impl ArtifactSource for Source {
    async fn open(&self, id: &ArtifactId) -> Option<OpenArtifact> {
        let found = self.0.artifact(id).await.inspect_err(|error| {
            tracing::warn!(%error, "an artifact could not be looked up");
        });
        let Kept { artifact, path, folders } = found.ok()??;
        let opening = spawn_blocking(move || {
            let file = folders.iter().find_map(|folder| open_beneath(folder, &path).ok())?;
            let size = file.metadata().ok()?.len();
            Some((file, size))
        });
        let (file, size) = opening.await.ok()??;
        if size != artifact.size {
            tracing::warn!(artifact = %id, "an artifact is not as it was left and is not served");
            return None;
        }
        Some(OpenArtifact { file: file.into(), name: artifact.name, size })
    }
}

/// The calls of the owner's programs.
struct Calls {
    control: Control,
    closing: CancellationToken,
}

#[async_trait]
impl control::Calls for Calls {
    async fn call(&self, body: &[u8]) -> control::Reply {
        let raincheck_mcp::Reply { status, body } =
            self.control.call(body, self.closing.clone()).await;
        control::Reply { status, body }
    }
}
