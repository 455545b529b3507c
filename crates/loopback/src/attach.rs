//! `GET /attach`: a connection that becomes two streams of bytes, for a process of the same user that is
//! served by this one [ATTACH-2].
//!
//! A handler answers a request that asks for it, and hands the connection to whoever serves those. Nothing
//! is spawned here.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::{CONNECTION, HeaderValue, RETRY_AFTER, UPGRADE};
use http::{HeaderMap, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::options::Policy;
use crate::service::Held;

/// The route.
pub const PATH: &str = "/attach";

/// What the connection becomes, as the header `Upgrade` names it.
pub const PROTOCOL: &str = "raincheck-attach";

/// Returns the policy of the route: the strictest, without a body, and for this machine alone.
#[must_use]
pub fn policy() -> Policy {
    Policy { max_body: 0, is_local: true, ..Policy::default() }
}

/// Returns the route, to be served under [`policy`]. Connections go to `serving`; while that is full, they
/// are refused with 503.
pub fn router(serving: mpsc::Sender<Upgrade>) -> Router {
    Router::new().route(PATH, get(answer)).with_state(serving)
}

/// A connection that was answered with leave to become streams.
#[derive(Debug)]
pub struct Upgrade(OnUpgrade);

async fn answer(State(serving): State<mpsc::Sender<Upgrade>>, mut request: Request) -> Response {
    let is_asked = names(request.headers(), PROTOCOL);
    let Some(connection) = request.extensions_mut().remove::<OnUpgrade>().filter(|_| is_asked)
    else {
        let mut refusal = StatusCode::UPGRADE_REQUIRED.into_response();
        refusal.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
        return refusal;
    };
    if serving.try_send(Upgrade(connection)).is_err() {
        let mut refusal = StatusCode::SERVICE_UNAVAILABLE.into_response();
        refusal.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        return refusal;
    }
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    response
}

/// Tells whether the head of a message names a protocol to go on with.
pub(crate) fn names(headers: &HeaderMap, protocol: &str) -> bool {
    headers
        .get(UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(protocol.as_bytes()))
}

impl Upgrade {
    /// Waits until the connection is a stream; `None` when it ended before. A peer may leave unread what it
    /// likes for as long as it likes: who writes to it must bound that.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection.
    pub async fn stream(self) -> Option<Stream> {
        Stream::of(self.0.await.ok()?)
    }
}

/// A connection as bytes.
pub struct Stream(Io);

enum Io {
    /// A socket of this machine.
    Socket(TcpStream),
    /// Another network, or a connection of which something was read already.
    Other(TokioIo<Upgraded>),
}

impl Stream {
    /// Takes a connection over. One that is a socket is used as such.
    pub(crate) fn of(upgraded: Upgraded) -> Option<Self> {
        let upgraded = match upgraded.downcast::<TokioIo<Held<TcpStream>>>() {
            Ok(parts) if parts.read_buf.is_empty() => {
                return Some(Self(Io::Socket(parts.io.into_inner().into_inner())));
            }
            // Nothing is sent before the answer was read.
            Ok(_) => return None,
            Err(upgraded) => upgraded,
        };
        Some(Self(Io::Other(TokioIo::new(upgraded))))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Io::Socket(io) => Pin::new(io).poll_read(context, buffer),
            Io::Other(io) => Pin::new(io).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Io::Socket(io) => Pin::new(io).poll_write(context, bytes),
            Io::Other(io) => Pin::new(io).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Io::Socket(io) => Pin::new(io).poll_flush(context),
            Io::Other(io) => Pin::new(io).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Io::Socket(io) => Pin::new(io).poll_shutdown(context),
            Io::Other(io) => Pin::new(io).poll_shutdown(context),
        }
    }
}
