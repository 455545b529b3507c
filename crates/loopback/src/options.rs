//! What a listener is made of.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;

use crate::endpoint::Place;
use crate::error::{Error, random_name};
use crate::keys::Keys;
use crate::secret::Secret;

/// Everything a listener needs to know.
#[derive(Debug)]
pub struct Options {
    /// What `GET /health` calls the server.
    pub name: &'static str,
    /// The protocol that `GET /health` names.
    pub protocol: u32,
    /// Where to listen. A port that is taken is left to its owner and another is used; 0 is any port.
    pub address: SocketAddr,
    /// Whether another port than the one of `address` is no use: clients have it written down.
    pub is_exact: bool,
    /// Where the last port is kept: while `address` has port 0, it is used again when it is free.
    pub kept_port: Option<PathBuf>,
    /// Whether an address that other machines reach is meant; it needs a `token` too.
    pub allow_remote: bool,
    /// The secret of this listener; one is drawn when there is none.
    pub token: Option<Secret>,
    /// Names that clients, or a proxy in front of the listener, may call it by, on whatever port.
    pub names: Vec<String>,
    /// Tells this start of the server from every other.
    pub instance_id: String,
    /// Where to write the endpoint file.
    pub endpoint: Option<Place>,
    /// What is served. No two surfaces may share a route, and none may have a fallback.
    pub surfaces: Vec<Surface>,
    /// Makes more surfaces with the first connection; until then they take no memory.
    pub later: Option<Later>,
    /// The limits of connections and requests.
    pub limits: Limits,
}

/// Makes surfaces when they are needed.
pub struct Later(pub(crate) Box<dyn FnOnce() -> Vec<Surface> + Send>);

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Later")
    }
}

impl Options {
    /// Makes the options of a listener on 127.0.0.1 with a fresh instance id and nothing to serve.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn new(name: &'static str) -> Result<Self, Error> {
        Ok(Self {
            name,
            protocol: 1,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            is_exact: false,
            kept_port: None,
            allow_remote: false,
            token: None,
            names: Vec::new(),
            instance_id: random_name()?,
            endpoint: None,
            surfaces: Vec::new(),
            later: None,
            limits: Limits::default(),
        })
    }

    /// Adds a surface.
    #[must_use]
    pub fn serving(mut self, routes: Router, policy: Policy) -> Self {
        self.surfaces.push(Surface { routes, policy });
        self
    }

    /// Adds surfaces that are made with the first connection.
    #[must_use]
    pub fn serving_later(mut self, make: impl FnOnce() -> Vec<Surface> + Send + 'static) -> Self {
        self.later = Some(Later(Box::new(make)));
        self
    }
}

/// Routes that share a policy.
#[derive(Debug)]
pub struct Surface {
    /// The routes.
    pub routes: Router,
    /// What a request must satisfy to reach them.
    pub policy: Policy,
}

/// What a request must satisfy to reach a surface, beyond what holds for all [SEC-2, SEC-3, SEC-6].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which `Origin` it may carry.
    pub origin: Origin,
    /// Whether it must carry the secret.
    pub bearer: Bearer,
    /// Whether a body must be `application/json`.
    pub json_bodies: bool,
    /// The most bytes of a body.
    pub max_body: usize,
    /// Whether it is there for peers on this machine alone; others are answered that nothing is here.
    pub is_local: bool,
}

impl Default for Policy {
    /// Returns the strictest policy, with bodies up to 4 MiB.
    fn default() -> Self {
        Self {
            origin: Origin::Refused,
            bearer: Bearer::Required,
            json_bodies: true,
            max_body: 4 * 1024 * 1024,
            is_local: false,
        }
    }
}

/// Which `Origin` a request may carry. Without the header it does not come from a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// None at all.
    Refused,
    /// One of these, byte for byte.
    Pinned(Vec<String>),
}

impl Origin {
    pub(crate) fn allows(&self, origin: &[u8]) -> bool {
        match self {
            Self::Refused => false,
            Self::Pinned(list) => list.iter().any(|one| one.as_bytes() == origin),
        }
    }
}

/// Whether a request must carry the secret in its `Authorization` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// It must.
    Required,
    /// It need not, and what it carries must be right. On a remote listener this is `Required`.
    Optional,
    /// The header is not looked at: what is served is meant for everybody.
    Public,
    /// The header is not looked at: the link is signed, as artifacts are.
    SignedUrl,
    /// The header is not looked at: both ends prove themselves after the upgrade.
    Handshake,
    /// It must carry one of these tokens, which say who calls.
    Named(Keys),
}

/// The limits of connections and requests [SEC-6]. Times count what the process could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long the head of a request may take; also how long a connection may idle.
    pub head: Duration,
    /// How long the body of a request may take, and how long it may wait for its turn before that.
    pub body: Duration,
    /// The most bytes of bodies that are read at once, for each owner; further ones wait.
    pub bodies: usize,
    /// How long a peer may leave what is written to it unread.
    pub unread: Duration,
    /// How long requests have to end when the listener stops.
    pub stop: Duration,
    /// The most connections, upgraded ones included.
    pub connections: usize,
    /// The most bytes of all header lines.
    pub max_head: usize,
    /// The most header lines.
    pub max_headers: usize,
    /// The most bytes of a request's target.
    pub max_target: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(5),
            body: Duration::from_secs(10),
            bodies: 64 * 1024 * 1024,
            unread: Duration::from_secs(30),
            stop: Duration::from_millis(400),
            connections: 256,
            max_head: 32 * 1024,
            max_headers: 100,
            max_target: 8 * 1024,
        }
    }
}
