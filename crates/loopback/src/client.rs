//! Calling the listener that an [`endpoint`](crate::endpoint) file tells of.

use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::attach::{self, Stream};
use crate::awake::timeout;
use crate::endpoint::Endpoint;
use crate::error::{Error, ErrorKind, random_name};
use crate::secret::Secret;

/// How long a listener has to say who it is.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// The longest answer that is taken.
const MAX_ANSWER: usize = 64 << 20;

/// Asks the listeners of endpoint files to prove that they know the secrets of these, all at once; an
/// endpoint file is believed only after that [SEC-13].
///
/// # Cancel safety
/// Safe.
pub async fn prove(endpoints: Vec<Endpoint>) -> Vec<(Endpoint, Result<(), Error>)> {
    let mut asked = JoinSet::new();
    for (place, endpoint) in endpoints.into_iter().enumerate() {
        asked.spawn(async move {
            let proof = Connection::open(&endpoint).await.map(drop);
            (place, endpoint, proof)
        });
    }
    let mut all = asked.join_all().await;
    all.sort_by_key(|(place, ..)| *place);
    all.into_iter().map(|(_, endpoint, proof)| (endpoint, proof)).collect()
}

/// What a listener answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

/// A connection to a listener that has proved to be the one of the endpoint file. Dropping it closes
/// it.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
    secret: Secret,
    /// What goes with every request that carries the secret.
    headers: HeaderMap,
    /// What moves the bytes.
    _wire: JoinSet<()>,
}

impl Connection {
    /// Connects, and has the listener prove that it knows the secret before it is told [SEC-3].
    ///
    /// # Errors
    /// `Unreachable` when nobody listens, or somebody else.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn open(endpoint: &Endpoint) -> Result<Self, Error> {
        let opened = timeout(HANDSHAKE, Self::shake_hands(endpoint)).await;
        opened.unwrap_or_else(|_| Err(unreachable("the server does not answer in time")))
    }

    async fn shake_hands(endpoint: &Endpoint) -> Result<Self, Error> {
        let secret = Secret::from_text(&endpoint.secret)
            .ok_or_else(|| unreachable("the endpoint file holds no secret"))?;
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, endpoint.port))
            .await
            .map_err(|error| unreachable("nobody listens on the server's port").because(error))?;
        let (sender, wire) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let mut wires = JoinSet::new();
        wires.spawn(async move {
            if let Err(error) = wire.with_upgrades().await {
                tracing::debug!(%error, "the connection broke");
            }
        });
        let authority = format!("127.0.0.1:{}", endpoint.port);
        let headers = HeaderMap::new();
        let mut connection = Self { sender, authority, secret, headers, _wire: wires };
        connection.check(endpoint.port).await?;
        Ok(connection)
    }

    /// Asks for the proof.
    async fn check(&mut self, port: u16) -> Result<(), Error> {
        /// The part of the answer that matters.
        #[derive(Deserialize)]
        struct Health {
            mac: String,
        }

        let nonce = random_name()?;
        let request = Request::builder().uri(format!("/health?nonce={nonce}"));
        let answer = self.send(request, Bytes::new()).await?;
        let health = serde_json::from_slice::<Health>(&answer.body).ok();
        let proof = format!("health|{nonce}|{port}");
        if health.is_some_and(|health| self.secret.proves(&proof, &health.mac)) {
            return Ok(());
        }
        Err(unreachable("another program listens on the server's port"))
    }

    /// Sends these headers with every further request.
    ///
    /// # Errors
    /// When one of them cannot be sent.
    pub fn with_headers(mut self, headers: &[(&str, &str)]) -> Result<Self, Error> {
        for (name, value) in headers {
            let pair = HeaderName::try_from(*name).ok().zip(HeaderValue::try_from(*value).ok());
            let (name, value) = pair.ok_or_else(|| unreachable("the request cannot be written"))?;
            self.headers.insert(name, value);
        }
        Ok(self)
    }

    /// Gets what is at a path and waits for the answer as long as it takes.
    ///
    /// # Errors
    /// `Unreachable` when the connection breaks.
    ///
    /// # Cancel safety
    /// Dropping the future gives the answer up; use the connection no more.
    pub async fn get(&mut self, path: &str) -> Result<Answer, Error> {
        let request = self.authorized(Method::GET, path);
        self.send(request, Bytes::new()).await
    }

    /// Posts a JSON text to a path and waits for the answer as long as it takes.
    ///
    /// # Errors
    /// `Unreachable` when the connection breaks.
    ///
    /// # Cancel safety
    /// Dropping the future gives the answer up; use the connection no more.
    pub async fn post(&mut self, path: &str, json: impl Into<Bytes>) -> Result<Answer, Error> {
        let request = self.authorized(Method::POST, path).header(CONTENT_TYPE, "application/json");
        self.send(request, json.into()).await
    }

    /// Asks for a connection of bytes in the place of this one [ATTACH-2]; `None` when the listener refuses
    /// it for now.
    ///
    /// # Errors
    /// `Unreachable` when the connection breaks, or the listener knows no such thing.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection.
    pub async fn attach(mut self) -> Result<Option<Stream>, Error> {
        let request = self
            .authorized(Method::GET, attach::PATH)
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, attach::PROTOCOL)
            .header(HOST, &self.authority)
            .body(Full::new(Bytes::new()));
        let request = request.map_err(|_| unreachable("the request cannot be written"))?;
        self.sender.ready().await.map_err(broken)?;
        let answer = self.sender.send_request(request).await.map_err(broken)?;
        match answer.status() {
            StatusCode::SWITCHING_PROTOCOLS
                if attach::names(answer.headers(), attach::PROTOCOL) =>
            {
                let upgraded = hyper::upgrade::on(answer).await.map_err(broken)?;
                Ok(Stream::of(upgraded))
            }
            StatusCode::SERVICE_UNAVAILABLE => Ok(None),
            status => Err(unreachable(&format!("the server answered {status} to an attach"))),
        }
    }

    fn authorized(&self, method: Method, path: &str) -> http::request::Builder {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(AUTHORIZATION, format!("Bearer {}", self.secret.text()));
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
        }
        request
    }

    async fn send(
        &mut self,
        request: http::request::Builder,
        body: Bytes,
    ) -> Result<Answer, Error> {
        let request = request.header(HOST, &self.authority).body(Full::new(body));
        let request = request.map_err(|_| unreachable("the request cannot be written"))?;
        self.sender.ready().await.map_err(broken)?;
        let answer = self.sender.send_request(request).await.map_err(broken)?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|_| unreachable("the server's answer broke off"))?.to_bytes();
        Ok(Answer { status, body })
    }
}

fn unreachable(message: &str) -> Error {
    Error::new(ErrorKind::Unreachable, message)
}

fn broken(error: hyper::Error) -> Error {
    unreachable("the connection to the server broke").because(std::io::Error::other(error))
}
