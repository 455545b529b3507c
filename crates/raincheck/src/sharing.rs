//! Several processes, one store: the first owns it, the others are served by that one [ATTACH-1].
//!
//! `seat` is the lock that decides, `gate` keeps the engine from a store without it. `owners` finds the owner
//! or becomes it, `host` serves the attached, `hello` is what both say first.

mod gate;
mod hello;
mod host;
mod owners;
mod seat;

use std::fmt;
use std::hash::{DefaultHasher, Hash};
use std::path::PathBuf;
use std::sync::Arc;

use raincheck_core::scope::Scope;
use raincheck_core::store::TaskStore;
use raincheck_loopback::Secret;
use raincheck_mcp::Server;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::begin::Begin;

use self::gate::Gated;
use self::host::Host;
use self::seat::Seat;

pub(crate) use self::owners::Finder;

/// Told what a process is.
type Tell = Arc<dyn Fn(&Standing) + Send + Sync>;

/// Told what a process is called.
type Name = Arc<dyn Fn(&str) + Send + Sync>;

/// What a process is to the store that it shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It owns the store.
    Owner,
    /// It is served by the owner, which is this process.
    Attached(u32),
    /// It is not served by the owner, whose number is told where it is known.
    Apart(Option<u32>),
}

/// How processes share a store: the first one of a place owns it, and the others attach to that one.
///
/// Two processes share when they are of one version and have the same tools and settings; their scopes
/// stay apart. When the owner ends, or is killed, one of the others takes over. Where the store is no
/// file, the tasks end with their owner, and calls that it had not answered are told as lost.
///
/// ```
/// use raincheck::{Raincheck, Sharing};
///
/// let sharing = Sharing::in_place("state/store.db.owner");
/// let server = Raincheck::builder().sharing(sharing);
/// # drop(server);
/// ```
#[derive(Clone)]
pub struct Sharing {
    place: PathBuf,
    settings: DefaultHasher,
    tell: Option<Tell>,
    name: Option<Name>,
}

impl Sharing {
    /// Shares with the processes that name the same folder. It is made when a client means to stay, and
    /// holds the lock that decides who the owner is, and the file that leads to it.
    #[must_use]
    pub fn in_place(place: impl Into<PathBuf>) -> Self {
        Self { place: place.into(), settings: DefaultHasher::new(), tell: None, name: None }
    }

    /// Adds what two processes must have in common, such as what a configuration says of their tools.
    #[must_use]
    pub fn with_settings(mut self, settings: impl Hash) -> Self {
        settings.hash(&mut self.settings);
        self
    }

    /// Tells what the process is whenever that changes.
    #[must_use]
    pub fn telling(mut self, tell: impl Fn(&Standing) + Send + Sync + 'static) -> Self {
        self.tell = Some(Arc::new(tell));
        self
    }

    /// Tells the name of this process, which no other has, once before it serves. It is the connection of the
    /// calls of its own client, here and while another process serves it.
    #[must_use]
    pub fn naming(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.name = Some(Arc::new(tell));
        self
    }
}

impl fmt::Debug for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharing").field("place", &self.place).finish_non_exhaustive()
    }
}

/// One process among those that share.
#[derive(Debug)]
pub(crate) struct Shared {
    sharing: Sharing,
    seat: Arc<Seat>,
    /// A name that no other process has.
    process: String,
}

impl Shared {
    /// Takes a place among them; nothing is locked yet.
    pub(crate) fn new(sharing: Sharing) -> Result<Self, raincheck_loopback::Error> {
        let seat = Arc::new(Seat::new(&sharing.place));
        let process = Secret::random()?.text().to_owned();
        if let Some(tell) = &sharing.name {
            tell(&process);
        }
        Ok(Self { sharing, seat, process })
    }

    /// Puts what keeps the engine from a store of another process before the store.
    pub(crate) fn gated(&self, store: Arc<dyn TaskStore>) -> Arc<dyn TaskStore> {
        Arc::new(Gated::new(store, Arc::clone(&self.seat)))
    }
}

/// What finds the owner for a server that shares, and what serves those that are attached should this
/// process own the store.
pub(crate) fn begin(
    shared: Option<(Shared, Begin, Scope)>,
    server: &Server,
    over: &CancellationToken,
) -> (Option<Finder>, impl Future<Output = ()> + use<>) {
    let (owned, is_owned) = oneshot::channel();
    let parts = shared.map(|(shared, begin, scope)| {
        let host = Host::new(&shared, server.clone());
        (Finder::new(shared, server, &scope, begin, owned), host)
    });
    let (finder, host) = parts.unzip();
    let over = over.clone();
    let run = async move {
        if let Some(host) = host {
            host.run(is_owned, over).await;
        }
    };
    (finder, run)
}
