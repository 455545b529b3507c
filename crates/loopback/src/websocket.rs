//! WebSockets: requests that ask for one, behind the same checks as every other.
//!
//! A handler answers a request with [`accept`] and is given an [`Upgrade`], which becomes a [`Socket`]
//! once the answer is on its way. Nothing is spawned here: who serves sockets awaits both.

use std::fmt;
use std::time::Duration;

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{CONNECTION, HeaderName, HeaderValue, UPGRADE};
use http::{HeaderMap, Method, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::awake;
use crate::refusal::Refusal;

const KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
const ACCEPT: HeaderName = HeaderName::from_static("sec-websocket-accept");
const VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");

/// What is read at once; most messages are small.
const READ_BUFFER: usize = 16 * 1024;

/// How long the other end has to take in that it was closed, before its bytes are answered by a reset
/// that may overtake the reason.
const FAREWELL: Duration = Duration::from_millis(500);

/// A request that was answered with leave to go on as a WebSocket.
#[derive(Debug)]
pub struct Upgrade {
    connection: OnUpgrade,
    max_message: usize,
}

/// Answers a request for a WebSocket whose messages have at most `max_message` bytes.
///
/// # Errors
/// The refusal of a request that asks for none, or for another version.
#[expect(clippy::result_large_err, reason = "a refusal is an answer, and seldom")]
pub fn accept(mut request: Request, max_message: usize) -> Result<(Response, Upgrade), Response> {
    let headers = request.headers();
    let is_asked = request.method() == Method::GET
        && has_token(headers, &CONNECTION, "upgrade")
        && has_token(headers, &UPGRADE, "websocket");
    if !is_asked {
        return Err(Refusal::NoWebSocket.into_response());
    }
    if headers.get(&VERSION).is_none_or(|version| version != "13") {
        let mut refusal = Refusal::NoWebSocket.into_response();
        refusal.headers_mut().insert(VERSION, HeaderValue::from_static("13"));
        return Err(refusal);
    }
    let key = headers.get(&KEY).filter(|key| key.len() == 24);
    let accepted = key.map(|key| derive_accept_key(key.as_bytes()));
    let accepted = accepted.and_then(|text| HeaderValue::from_str(&text).ok());
    let connection = request.extensions_mut().remove::<OnUpgrade>();
    let (Some(accepted), Some(connection)) = (accepted, connection) else {
        return Err(Refusal::NoWebSocket.into_response());
    };
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    let answer = response.headers_mut();
    answer.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(ACCEPT, accepted);
    Ok((response, Upgrade { connection, max_message }))
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let lines = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|one| one.trim().eq_ignore_ascii_case(token))
}

impl Upgrade {
    /// Waits until the connection is a WebSocket; `None` when it ended before.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection.
    pub async fn socket(self) -> Option<Socket> {
        let upgraded = self.connection.await.ok()?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0)
            .max_write_buffer_size(usize::MAX)
            .max_message_size(Some(self.max_message))
            .max_frame_size(Some(self.max_message));
        let io = TokioIo::new(upgraded);
        let stream = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        Some(Socket { stream })
    }
}

/// An open WebSocket of text messages.
pub struct Socket {
    stream: WebSocketStream<TokioIo<Upgraded>>,
}

/// Why nothing more comes from a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The other end closed it, or is gone.
    Closed,
    /// A message is larger than may be.
    TooLarge,
    /// What came is no WebSocket text.
    Malformed,
}

impl Socket {
    /// Waits for the next message. Pings are answered on the way.
    ///
    /// # Errors
    /// Why none comes any more.
    ///
    /// # Cancel safety
    /// Safe: no message is lost.
    pub async fn next(&mut self) -> Result<String, End> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                Some(Ok(Message::Binary(_))) => return Err(End::Malformed),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(_))) | None => return Err(End::Closed),
                Some(Err(Error::Capacity(_))) => return Err(End::TooLarge),
                Some(Err(Error::Protocol(_) | Error::Utf8(_))) => return Err(End::Malformed),
                Some(Err(_)) => return Err(End::Closed),
            }
        }
    }

    /// Writes a message; `false` when the connection is gone.
    ///
    /// # Cancel safety
    /// Dropping it may leave half a message behind: close the socket then.
    pub async fn send(&mut self, text: String) -> bool {
        self.stream.send(Message::text(text)).await.is_ok()
    }

    /// Closes the socket with a code, and waits a moment until the other end has taken that in.
    pub async fn close(mut self, code: u16, reason: &str) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: reason.to_owned().into() };
        let said = async {
            self.stream.send(Message::Close(Some(frame))).await.ok();
            self.stream.flush().await.ok();
            let io = self.stream.get_mut();
            let mut rest = [0; 4096];
            while io.read(&mut rest).await.is_ok_and(|n| n > 0) {}
        };
        if awake::timeout(FAREWELL, said).await.is_err() {
            tracing::debug!(code, "a closed socket was not ended by the other end");
        }
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Socket")
    }
}
