//! Who owns the store: this process, or another one that is found by its endpoint file.

use std::fmt;
use std::hash::Hasher as _;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::scope::Scope;
use raincheck_loopback::awake::timeout;
use raincheck_loopback::client::Connection;
use raincheck_loopback::endpoint;
use raincheck_mcp::{Found, Link, Owners, Server, Streams, serve_shared};
use raincheck_runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::hello::{Hello, PROTOCOL, Talk, Welcome};
use super::seat::Theirs;
use super::{Shared, Standing};
use crate::begin::Begin;

/// How long an owner is looked for before the client is told that it cannot be reached. One that ends
/// politely may take two seconds, and one that was stopped says nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause between two looks, at first and at the most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// Finds the owner for one process.
pub(crate) struct Finder {
    shared: Shared,
    hello: Hello,
    engine: Handle,
    begin: Mutex<Parts>,
    /// Whether the owner that is asked has said to wait.
    is_told_to_wait: AtomicBool,
}

/// What is begun once.
struct Parts {
    wanted: Option<oneshot::Sender<()>>,
    engine: Option<oneshot::Sender<()>>,
    owned: Option<oneshot::Sender<()>>,
}

/// What came of reaching for an owner.
enum Reached {
    /// It serves this process.
    Come(Link),
    /// It does not.
    Stay(String),
    /// Nobody answers yet.
    Nobody,
}

impl fmt::Debug for Finder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finder").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Finder {
    pub(super) fn new(
        shared: Shared,
        server: &Server,
        scope: &Scope,
        Begin { wanted, engine }: Begin,
        owned: oneshot::Sender<()>,
    ) -> Self {
        let hello = hello(&shared, server, scope.as_str());
        let parts = Parts { wanted: Some(wanted), engine: Some(engine), owned: Some(owned) };
        Self {
            shared,
            hello,
            engine: server.engine().clone(),
            begin: Mutex::new(parts),
            is_told_to_wait: AtomicBool::new(false),
        }
    }

    /// Serves one client, here or by the owner.
    pub(crate) async fn serve(
        self,
        server: Server,
        scope: Scope,
        streams: Streams,
        stop: CancellationToken,
    ) -> io::Result<()> {
        let process = self.shared.process.clone();
        let served = serve_shared(server, scope, streams, stop, Arc::new(self), &process).await;
        served.map_err(io::Error::other)
    }

    /// Owns the store as soon as nobody else does, for a server that is there to stay: its clients come to
    /// it, and are passed on to nobody. Until then they are told who has the store.
    #[cfg(feature = "http")]
    pub(crate) async fn own_in_the_end(&self, stop: &CancellationToken) {
        const PAUSE: Duration = Duration::from_secs(1);
        self.begin(|parts| [parts.wanted.take(), None]);
        let mut last = None;
        while !stop.is_cancelled() {
            let search = self.shared.seat.search();
            let Err(pid) = self.take(search).await else {
                self.own().await;
                return;
            };
            if last.replace(pid) != Some(pid) {
                let why = "which serves its own clients".to_owned();
                if let Found::Ours = self.apart(Theirs { pid, why }).await {
                    return;
                }
            }
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Takes the seat for a search, or tells who has it.
    async fn take(&self, search: u64) -> Result<(), Option<u32>> {
        let seat = Arc::clone(&self.shared.seat);
        spawn_blocking(move || seat.take(search)).await.unwrap_or(Err(None))
    }

    async fn look(&self, search: u64) -> Found {
        let (mut pause, most) = PAUSES;
        loop {
            let Err(pid) = self.take(search).await else { return self.own().await };
            match self.reach(pid).await {
                Reached::Come(link) => {
                    self.tell(Standing::Attached(pid.unwrap_or_default())).await;
                    return Found::Theirs(link);
                }
                Reached::Stay(why) => return self.apart(Theirs { pid, why }).await,
                Reached::Nobody => {}
            }
            sleep(pause).await;
            pause = (pause * 2).min(most);
        }
    }

    /// Reaches for the owner by its endpoint file.
    async fn reach(&self, pid: Option<u32>) -> Reached {
        let path = self.shared.seat.endpoint();
        let read = spawn_blocking(move || endpoint::read(&path).ok().flatten()).await;
        let Some(endpoint) =
            read.ok().flatten().filter(|found| pid.is_none_or(|pid| found.pid == pid))
        else {
            // It has just begun, or is about to end.
            return Reached::Nobody;
        };
        match self.attach(&endpoint).await {
            Ok(reached) => reached,
            Err(error) => {
                tracing::debug!(%error, pid, "the owner of the store cannot be reached");
                Reached::Nobody
            }
        }
    }

    async fn attach(&self, endpoint: &endpoint::Endpoint) -> io::Result<Reached> {
        let connection = Connection::open(endpoint).await.map_err(io::Error::other)?;
        let stream = connection.attach().await.map_err(io::Error::other)?;
        let Some(stream) = stream else { return Ok(Reached::Nobody) };
        let mut talk = Talk::new(stream);
        talk.say(&self.hello).await?;
        loop {
            match talk.hear::<Welcome>().await? {
                Welcome::Wait => self.is_told_to_wait.store(true, Ordering::Relaxed),
                Welcome::Stay { why } => return Ok(Reached::Stay(why)),
                Welcome::Come { store } => {
                    let Talk { reader, writer } = talk;
                    let (reader, writer) = (Box::new(reader), Box::new(writer));
                    let store = store.map(Into::into);
                    return Ok(Reached::Come(Link { reader, writer, store }));
                }
            }
        }
    }

    async fn own(&self) -> Found {
        self.begin(|parts| [parts.engine.take(), parts.owned.take()]);
        // It may run since this process was refused, and have found the store closed.
        self.engine.open_again();
        tracing::info!("this server owns the store");
        self.tell(Standing::Owner).await;
        Found::Ours
    }

    async fn apart(&self, theirs: Theirs) -> Found {
        let (pid, why) = (theirs.pid, theirs.why.clone());
        if !self.shared.seat.refused(theirs) {
            return self.own().await;
        }
        tracing::warn!(pid, "the store belongs to another process, {why}");
        self.begin(|parts| [parts.engine.take(), None]);
        self.tell(Standing::Apart(pid)).await;
        Found::Apart
    }

    fn begin(&self, which: impl FnOnce(&mut Parts) -> [Option<oneshot::Sender<()>>; 2]) {
        let senders = which(&mut self.begin.lock().unwrap_or_else(PoisonError::into_inner));
        for sender in senders.into_iter().flatten() {
            // Nobody waits for it once the process ends.
            let _ = sender.send(());
        }
    }

    async fn tell(&self, standing: Standing) {
        if let Some(tell) = self.shared.sharing.tell.clone() {
            // It may write files. One that panics has said so.
            spawn_blocking(move || tell(&standing)).await.ok();
        }
    }
}

#[async_trait]
impl Owners for Finder {
    async fn find(&self) -> Found {
        self.begin(|parts| [parts.wanted.take(), None]);
        let search = self.shared.seat.search();
        let mut look = pin!(self.look(search));
        loop {
            if let Ok(found) = timeout(PATIENCE, &mut look).await {
                return found;
            }
            // An owner that opens its store answers, and has to be waited for.
            if !self.is_told_to_wait.swap(false, Ordering::Relaxed) {
                break;
            }
        }
        // The owner may have gone at the last moment.
        let Err(pid) = self.take(search).await else { return self.own().await };
        self.apart(Theirs { pid, why: "which does not answer".to_owned() }).await
    }
}

/// Says who a process is.
pub(super) fn hello(shared: &Shared, server: &Server, scope: &str) -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: server.version().to_owned(),
        tools: server.digest(),
        settings: format!("{:016x}", shared.sharing.settings.finish()),
        process: shared.process.clone(),
        pid: std::process::id(),
        scope: scope.to_owned(),
    }
}
