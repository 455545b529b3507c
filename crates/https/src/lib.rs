//! Requests over HTTP/1.1, with TLS where the URL says so.
//!
//! [`Http`] holds the connections to one host and uses them again. It follows no redirect and sends nothing on
//! its own: what a request says is up to its maker.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(15);

/// How many connections are held for the next requests.
const MAX_IDLE: usize = 4;

/// Why a request got no answer.
#[derive(Clone, Debug)]
pub struct Failed {
    words: String,
    /// Whether there was no connection at all.
    pub is_unreachable: bool,
}

impl Failed {
    /// Says in words what failed, on a connection that there was.
    #[must_use]
    pub const fn new(words: String) -> Self {
        Self { words, is_unreachable: false }
    }

    fn unreachable(error: impl fmt::Display) -> Self {
        Self { words: error.to_string(), is_unreachable: true }
    }
}

impl std::error::Error for Failed {}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

type Sender = SendRequest<Full<Bytes>>;

/// Connections to one host, of which four at most are held while nothing is asked.
pub struct Http {
    host: String,
    port: u16,
    authority: HeaderValue,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    idle: Arc<Mutex<Vec<Sender>>>,
    /// What drives the connections.
    driving: Mutex<JoinSet<()>>,
}

impl Http {
    /// Prepares for the host of a URL with `http` or `https`; nothing is connected yet.
    ///
    /// # Errors
    /// When no certificate can have the name of the host, or this machine has none to check it against.
    pub fn new(url: &Uri) -> Result<Self, String> {
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let is_secure = url.scheme_str() == Some("https");
        let authority = url.authority().map(|it| it.as_str().to_owned()).unwrap_or_default();
        let tls = if is_secure {
            let name = ServerName::try_from(host.clone())
                .map_err(|_| "its host is no name that a certificate can have".to_owned())?;
            Some((TlsConnector::from(Arc::new(config()?)), name))
        } else {
            None
        };
        Ok(Self {
            port: url.port_u16().unwrap_or(if is_secure { 443 } else { 80 }),
            authority: authority.parse().map_err(|_| "its host is no host".to_owned())?,
            host,
            tls,
            idle: Arc::default(),
            driving: Mutex::default(),
        })
    }

    /// Makes a request and returns its answer once the headers of that are there. A connection is tried
    /// for 15 seconds; how long the answer may take is up to the caller.
    ///
    /// # Errors
    /// When the host cannot be reached or the connection breaks.
    ///
    /// # Cancel safety
    /// A request that was dropped may have been sent.
    pub async fn ask(&self, request: Request<Vec<u8>>) -> Result<Answer, Failed> {
        let mut request = request.map(|body| Full::new(Bytes::from(body)));
        request.headers_mut().insert(HOST, self.authority.clone());
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        *request.uri_mut() = path.parse().map_err(Failed::unreachable)?;
        while let Some(mut sender) = self.take() {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(self.answer(response, sender)),
                Err(mut error) => match error.take_message() {
                    // It was closed in the meantime; nothing of the request was sent.
                    Some(unsent) => request = unsent,
                    None => return Err(Failed::new(error.into_error().to_string())),
                },
            }
        }
        let mut sender = timeout(CONNECT, self.connect())
            .await
            .map_err(|_| Failed::unreachable("it takes too long"))??;
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| Failed::new(error.to_string()))?;
        Ok(self.answer(response, sender))
    }

    fn take(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(sender) = idle.pop() {
            if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    fn answer(&self, response: Response<Incoming>, sender: Sender) -> Answer {
        Answer { response, sender, idle: Arc::clone(&self.idle) }
    }

    async fn connect(&self) -> Result<Sender, Failed> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(Failed::unreachable)?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            Some((connector, name)) => {
                let secure = connector.connect(name.clone(), stream).await;
                self.drive(secure.map_err(Failed::unreachable)?).await
            }
            None => self.drive(stream).await,
        }
    }

    async fn drive(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Sender, Failed> {
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(Failed::unreachable)?;
        let mut driving = self.driving.lock().unwrap_or_else(PoisonError::into_inner);
        while driving.try_join_next().is_some() {}
        driving.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke");
            }
        });
        Ok(sender)
    }
}

/// Trusts whom this machine trusts.
fn config() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err("this machine has no certificates to check it against".to_owned());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder =
        builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// An answer whose body has not been read yet.
pub struct Answer {
    response: Response<Incoming>,
    sender: Sender,
    idle: Arc<Mutex<Vec<Sender>>>,
}

impl Answer {
    /// Returns its status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the first header of a name.
    #[must_use]
    pub fn header(&self, name: &HeaderName) -> Option<HeaderValue> {
        self.response.headers().get(name).cloned()
    }

    /// Tells whether the body is a stream of events.
    #[must_use]
    pub fn is_events(&self) -> bool {
        let kind = self.header(&CONTENT_TYPE);
        kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
    }

    /// Reads the whole body of so many bytes at most; the connection is free for the next request then.
    ///
    /// # Errors
    /// When the body is longer, or breaks off.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the connection.
    pub async fn body(self, most: usize) -> Result<Vec<u8>, Failed> {
        let Self { response, sender, idle } = self;
        let body = Limited::new(response.into_body(), most).collect().await;
        let body = body.map_err(|error| Failed::new(error.to_string()))?.to_bytes();
        let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE && !sender.is_closed() {
            idle.push(sender);
        }
        Ok(body.into())
    }

    /// Reads the next part of the body; `None` at its end.
    ///
    /// # Errors
    /// When the body breaks off.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub async fn part(&mut self) -> Result<Option<Bytes>, Failed> {
        loop {
            let Some(frame) = self.response.body_mut().frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| Failed::new(error.to_string()))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status()).finish_non_exhaustive()
    }
}
