//! The listener: opened by [`bind`], driven by [`Service::run`].

mod accept;
mod connection;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::endpoint::Published;
use crate::error::{Error, ErrorKind};
use crate::gate::{self, Hosts, Near};
use crate::health;
use crate::options::{Later, Limits, Options};
use crate::port;
use crate::secret::Secret;

pub use accept::{Accept, Sockets};
pub(crate) use connection::Held;
use connection::serve;

/// The answer to a connection over the cap, given before anything of it is read.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// What others need to know about an open listener.
#[derive(Clone, Debug)]
pub struct Info {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its port.
    pub port: u16,
    /// Its address as clients write it, without a path or a slash at the end.
    pub url: String,
    /// Its secret.
    pub secret: Secret,
    /// The start of the server that it belongs to.
    pub instance_id: String,
    /// The port that was asked for and belongs to another program.
    pub taken_port: Option<u16>,
}

/// A listener that is open and not served yet.
#[derive(Debug)]
pub struct Service<A = Sockets> {
    accept: A,
    routes: Routes,
    limits: Limits,
    published: Option<Published>,
}

/// What is served.
enum Routes {
    Made(Router),
    Later(Box<dyn FnOnce() -> Router + Send>),
}

impl Routes {
    /// Returns the router, and makes it if nobody has.
    fn get(&mut self) -> Router {
        let router = match std::mem::replace(self, Self::Made(Router::new())) {
            Self::Made(router) => router,
            Self::Later(make) => make(),
        };
        *self = Self::Made(router.clone());
        router
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Made(_) => "Made",
            Self::Later(_) => "Later",
        })
    }
}

/// Opens a listener on the sockets of this machine. Writes its endpoint file, and keeps its port, with
/// blocking calls.
///
/// # Errors
/// When the address is not loopback and that was not meant or has no token, when it cannot be
/// listened on, or when the endpoint file cannot be written.
///
/// # Panics
/// When two surfaces share a route, or one has a fallback.
pub async fn bind(options: Options) -> Result<(Service, Info), Error> {
    check_reach(&options)?;
    let kept = options.kept_port.clone().filter(|_| options.address.port() == 0);
    let last = kept.as_deref().and_then(port::last);
    let mut asked = options.address;
    asked.set_port(last.unwrap_or(asked.port()));
    let opened = match options.is_exact {
        true => Sockets::open_exactly(asked).await,
        false => Sockets::open(asked).await,
    };
    let sockets = opened.map_err(|error| {
        let message = format!("cannot listen on `{asked}`; choose another address");
        Error::new(ErrorKind::Address, message).because(error)
    })?;
    let address = sockets.address();
    let taken_port = Some(asked.port()).filter(|&port| port != 0 && port != address.port());
    if let Some(taken) = taken_port {
        tracing::warn!(taken, port = address.port(), "the port belongs to another program");
    }
    if let Some(path) = kept.filter(|_| last != Some(address.port()))
        && let Err(error) = port::keep(&path, address.port())
    {
        tracing::warn!(%error, "the port was not kept; the next start will have another");
    }
    let (service, info) = over(sockets, address, options)?;
    Ok((service, Info { taken_port, ..info }))
}

/// Returns whether a listener could be opened on a port of loopback now; 0 is any port.
///
/// # Errors
/// Why it could not.
pub fn can_listen(port: u16) -> io::Result<()> {
    std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(drop)
}

/// Makes a listener of any network that can accept, which goes by `address`.
///
/// # Errors
/// As [`bind`], except for listening itself.
///
/// # Panics
/// When two surfaces share a route, or one has a fallback.
pub fn over<A: Accept>(
    accept: A,
    address: SocketAddr,
    mut options: Options,
) -> Result<(Service<A>, Info), Error> {
    check_reach(&options)?;
    let secret = options.token.take().map_or_else(Secret::random, Ok)?;
    let port = address.port();
    let url = url(address);
    let info = Info {
        address,
        port,
        url: url.clone(),
        secret: secret.clone(),
        instance_id: options.instance_id.clone(),
        taken_port: None,
    };
    let place = options.endpoint.take();
    let published = place
        .map(|place| Published::write(&place, &url, port, &options.instance_id, secret.text()))
        .transpose()?;
    let limits = options.limits;
    let facts = health::Facts {
        name: options.name,
        protocol: options.protocol,
        port,
        secret: secret.clone(),
    };
    let hosts = Hosts::new(address, std::mem::take(&mut options.names));
    let routes = match options.later.take() {
        None => Routes::Made(gate::router(options, hosts, secret, health::router(facts))),
        Some(Later(make)) => Routes::Later(Box::new(move || {
            options.surfaces.extend(make());
            gate::router(options, hosts, secret, health::router(facts))
        })),
    };
    Ok((Service { accept, routes, limits, published }, info))
}

fn check_reach(options: &Options) -> Result<(), Error> {
    let address = options.address;
    if address.ip().is_loopback() || options.allow_remote && options.token.is_some() {
        return Ok(());
    }
    let message = format!(
        "other machines reach `{address}`, which needs leave and a token; \
         listen on 127.0.0.1, or give --allow-remote and a token"
    );
    Err(Error::new(ErrorKind::Options, message))
}

/// Returns the address as a local client writes it.
fn url(address: SocketAddr) -> String {
    let ip = address.ip();
    if ip.is_unspecified() {
        return url((Ipv4Addr::LOCALHOST, address.port()).into());
    }
    format!("http://{address}")
}

impl<A: Accept> Service<A> {
    /// Serves until `stop`, then takes no more, lets requests end for a moment, and cuts off the rest.
    ///
    /// The endpoint file is removed first. A connection that was upgraded belongs to its handler.
    pub async fn run(self, stop: CancellationToken) {
        let Self { mut accept, mut routes, limits, published } = self;
        let places = Arc::new(Semaphore::new(limits.connections));
        let stopping = CancellationToken::new();
        let mut connections = JoinSet::new();
        loop {
            let io = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(end) = connections.join_next() => {
                    tell(end);
                    continue;
                }
                io = accept.accept() => io,
            };
            let Some(io) = io else { break };
            match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => {
                    let near = Near(A::is_local(&io));
                    let io = Held::new(io, place, limits.unread);
                    connections.spawn(serve(io, (routes.get(), near), limits, stopping.clone()));
                }
                Err(_) => refuse(io).await,
            }
        }
        drop(published);
        drop(accept);
        stopping.cancel();
        let ended = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(limits.stop, ended).await.is_err() {
            tracing::debug!(n = connections.len(), "connections are cut off");
        }
        connections.shutdown().await;
    }
}

fn tell(end: Result<(), JoinError>) {
    if let Err(error) = end
        && error.is_panic()
    {
        tracing::error!("a handler panicked; its connection is closed");
    }
}

/// Answers a connection over the cap. What it sent stays unread.
async fn refuse(mut io: impl tokio::io::AsyncWrite + Unpin) {
    const PATIENCE: Duration = Duration::from_millis(20);
    let answer = async {
        io.write_all(FULL).await?;
        io.shutdown().await
    };
    let told: Result<io::Result<()>, _> = tokio::time::timeout(PATIENCE, answer).await;
    if !matches!(told, Ok(Ok(()))) {
        tracing::debug!("a connection over the cap could not be told");
    }
}
