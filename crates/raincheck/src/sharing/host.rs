//! The owner's side: a listener of its own, and a session for each process that is attached.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use std::{error, io};

use raincheck_core::scope::Scope;
use raincheck_core::time::Timestamp;
use raincheck_loopback::attach::{self, Upgrade};
use raincheck_loopback::endpoint::{Kind, Place};
use raincheck_loopback::{Error, Options, Service, bind};
use raincheck_mcp::{Server, Streams, serve_attached};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::hello::{Hello, Talk, Welcome};
use super::owners::hello;

/// What `GET /health` calls the server.
const NAME: &str = "raincheck";

/// How many processes may be attached at once.
const MAX_ATTACHED: usize = 64;

/// How many connections may wait to be looked at.
const WAITING: usize = 16;

/// The pause before a listener that could not be opened is tried again, and between two words to who
/// waits for the store.
const AGAIN: Duration = Duration::from_secs(1);

/// Serves the processes that are attached to this one.
pub(super) struct Host {
    server: Server,
    endpoint: PathBuf,
    own: Hello,
}

impl Host {
    pub(super) fn new(shared: &Shared, server: Server) -> Self {
        let own = hello(shared, &server, "");
        Self { server, endpoint: shared.seat.endpoint(), own }
    }

    /// Listens once this process owns the store, until `over` fires. Then every session is handed over: no
    /// task is touched, and the processes ask the next owner [ATTACH-7].
    pub(super) async fn run(self, owned: oneshot::Receiver<()>, over: CancellationToken) {
        let is_owner = tokio::select! {
            owned = owned => owned.is_ok(),
            () = over.cancelled() => false,
        };
        if !is_owner {
            return;
        }
        let opened = tokio::select! {
            opened = self.open() => opened,
            () = over.cancelled() => return,
        };
        if let Some((service, incoming)) = opened {
            tokio::join!(service.run(over.clone()), self.serve(incoming, over));
        }
    }

    /// Opens the listener. What is in the way, such as a full disk or too many open files, may be gone
    /// later.
    async fn open(&self) -> Option<(Service, mpsc::Receiver<Upgrade>)> {
        let mut is_told = false;
        loop {
            let (connections, incoming) = mpsc::channel(WAITING);
            let (place, started_at) = (self.endpoint.clone(), self.server.engine().now());
            let runtime = tokio::runtime::Handle::current();
            // Files are written on the way.
            let opened =
                spawn_blocking(move || runtime.block_on(open(place, started_at, connections)));
            match opened.await {
                Ok(Ok(service)) => return Some((service, incoming)),
                Ok(Err(error)) if !is_told => {
                    let error: &dyn error::Error = &error;
                    tracing::error!(error, "other processes cannot be served by this one for now");
                    is_told = true;
                }
                Ok(Err(_)) => {}
                Err(_) => {
                    tracing::error!("opening the listener for other processes failed");
                    return None;
                }
            }
            sleep(AGAIN).await;
        }
    }

    async fn serve(self, mut incoming: mpsc::Receiver<Upgrade>, over: CancellationToken) {
        let this = Arc::new(self);
        let mut sessions = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = over.cancelled() => break,
                Some(_) = sessions.join_next() => {}
                upgrade = incoming.recv() => {
                    let Some(upgrade) = upgrade else { break };
                    let is_full = sessions.len() >= MAX_ATTACHED;
                    sessions.spawn(Arc::clone(&this).session(upgrade, is_full, over.clone()));
                }
            }
        }
        while sessions.join_next().await.is_some() {}
    }

    /// Serves one process.
    async fn session(self: Arc<Self>, upgrade: Upgrade, is_full: bool, over: CancellationToken) {
        let served = async {
            let stream = upgrade.stream().await?;
            let mut talk = Talk::new(stream);
            let hello = talk.hear::<Hello>().await;
            let hello = hello.inspect_err(|error| tracing::debug!(%error, "no hello")).ok()?;
            let refused = hello
                .refused_by(&self.own)
                .or_else(|| is_full.then(|| format!("which serves {MAX_ATTACHED} others already")));
            let welcome = match refused {
                Some(why) => Welcome::Stay { why },
                None => Welcome::Come { store: self.store(&mut talk).await.ok()? },
            };
            talk.say(&welcome).await.ok()?;
            matches!(welcome, Welcome::Come { .. }).then_some((talk, hello))
        };
        let served = tokio::select! {
            biased;
            () = over.cancelled() => return,
            served = served => served,
        };
        let Some((Talk { reader, writer }, hello)) = served else { return };
        tracing::info!(pid = hello.pid, "another process is attached to this one");
        let scope = Scope::new(hello.scope.as_str());
        let streams = Streams::new(reader, writer);
        let session = serve_attached(self.server.clone(), scope, streams, &hello.process, over);
        if let Err(error) = session.await {
            tracing::debug!(%error, pid = hello.pid, "the session of an attached process broke");
        }
    }
}

impl Host {
    /// Opens the store and returns its name. Whoever waits for that is told that it takes long.
    async fn store(&self, talk: &mut Talk) -> io::Result<Option<String>> {
        let engine = self.server.engine();
        let mut opened = pin!(engine.open());
        loop {
            tokio::select! {
                biased;
                opened = &mut opened => {
                    let name = opened.ok().and_then(|()| engine.store_name());
                    return Ok(name.map(|name| name.to_string()));
                }
                () = sleep(AGAIN) => talk.say(&Welcome::Wait).await?,
            }
        }
    }
}

async fn open(
    path: PathBuf,
    started_at: Timestamp,
    connections: mpsc::Sender<Upgrade>,
) -> Result<Service, Error> {
    let mut options = Options::new(NAME)?.serving_later(move || {
        let routes = attach::router(connections);
        vec![raincheck_loopback::Surface { routes, policy: attach::policy() }]
    });
    options.endpoint = Some(Place { path, kind: Kind::Owner, started_at });
    let (service, info) = bind(options).await?;
    tracing::debug!(url = info.url, "listening for other processes");
    Ok(service)
}
