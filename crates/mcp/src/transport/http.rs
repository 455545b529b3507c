//! MCP over Streamable HTTP: a `tower` service of one endpoint, for every revision of the protocol.
//!
//! Revisions up to 2025-11-25 have sessions: `initialize` answers with an `Mcp-Session-Id`, requests are
//! POSTed under it, `GET` listens to what belongs to no request, `DELETE` ends it. Since 2026-07-28 every
//! request stands alone, and headers say what its body says. Both are served at the same address, by the
//! same [`Server`].
//!
//! As on stdio, bytes stay bytes: arguments reach a tool as they were written. Each request is served in
//! its own response, as JSON when the answer is all there is to say, else as a stream of events.

mod body;
mod channel;
mod exchange;
mod head;
mod owner;
mod pages;
mod post;
mod reply;
mod session;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use raincheck_core::scope::Scope;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::owner::{Owner, Owners};
use self::post::Post;
use self::reply::{Reply, plain};
use self::session::Sessions;
use crate::server::Server;
use crate::transport::stdio::DRAIN;

pub use self::body::HttpBody;
pub use self::pages::Pages;

/// How a service over HTTP answers.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Who owns what a request makes that came without a [`Scope`] among its extensions; where there is
    /// none, such a request is refused with 401.
    pub scope: Option<Scope>,
    /// Which pages and which names of this machine may call it; `None` where whoever mounts the
    /// service has checked that.
    pub pages: Option<Pages>,
    /// The most bytes of a request's body. Those of one owner that are being read may have 64 MiB
    /// together; further ones wait.
    pub max_body: usize,
    /// How long a body may take, and how long it may wait for its turn before that.
    pub body_time: Duration,
    /// The most sessions of one owner; one more ends the one that was idle longest.
    pub max_sessions: usize,
    /// After what time a session ends that asks nothing and listens to nothing.
    pub session_idle: Duration,
}

impl HttpOptions {
    /// The most bytes of a request's body, unless it is changed.
    pub const MAX_BODY: usize = 16 << 20;

    /// Answers requests that name no owner for `scope`, and only clients on this machine.
    #[must_use]
    pub fn new(scope: Option<Scope>) -> Self {
        Self {
            scope,
            pages: Some(Pages::default()),
            max_body: Self::MAX_BODY,
            body_time: Duration::from_secs(10),
            max_sessions: 256,
            session_idle: Duration::from_secs(30 * 60),
        }
    }
}

/// A server at one HTTP endpoint, as a `tower` service. Cloning shares it.
///
/// Whoever mounts it decides who calls: a layer before it puts the [`Scope`] of the caller into the
/// request's extensions.
#[derive(Clone)]
pub struct HttpService(Arc<Face>);

/// What all clones share.
struct Face {
    server: Server,
    options: HttpOptions,
    owners: Owners,
    sessions: Sessions,
    /// Fires when no further request is taken.
    closing: CancellationToken,
    /// The requests that are being served.
    serving: TaskTracker,
}

impl HttpService {
    /// Puts a server at an endpoint.
    #[must_use]
    pub fn new(server: Server, options: HttpOptions) -> Self {
        let sessions = Sessions::new(options.max_sessions, options.session_idle);
        Self(Arc::new(Face {
            server,
            options,
            owners: Owners::default(),
            sessions,
            closing: CancellationToken::new(),
            serving: TaskTracker::new(),
        }))
    }

    /// Takes no further request, and returns once the open ones are answered, within 600 ms.
    ///
    /// As at the end of stdio, waiting reads answer at once with what they have, and calls without a
    /// task id end as their tool says [CANCEL-7]. The engine must run until this has returned, and
    /// whoever listens should go on for a moment, so that the last answers are read.
    ///
    /// # Cancel safety
    /// Dropping the future leaves requests unanswered; the service stays closed.
    pub async fn close(&self) {
        let Face { closing, serving, sessions, .. } = &*self.0;
        closing.cancel();
        serving.close();
        if timeout(DRAIN, serving.wait()).await.is_err() {
            tracing::debug!("requests were still open at the end of the service");
        }
        sessions.clear();
    }

    async fn answer<B>(self, request: Request<B>) -> Response<HttpBody>
    where
        B: Body + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Face { options, closing, owners, serving, .. } = &*self.0;
        // From here on the end of the service waits for this request.
        let _open = serving.token();
        if closing.is_cancelled() {
            return Reply::ending().into_response();
        }
        if let Some(pages) = &options.pages
            && let Err(words) = pages.check(&request)
        {
            return plain(StatusCode::FORBIDDEN, words);
        }
        let scope = request.extensions().get::<Scope>().or(options.scope.as_ref()).cloned();
        let Some(scope) = scope else {
            return reply::unauthorized();
        };
        let owner = owners.of(&scope);
        let (head, body) = request.into_parts();
        let method = head.method.clone();
        let replied = match method {
            Method::POST => {
                let bytes = tokio::select! {
                    biased;
                    () = closing.cancelled() => Err(Reply::ending()),
                    bytes = read(body, options, &owner) => bytes,
                };
                match bytes {
                    Ok(bytes) => {
                        Post { face: &self.0, owner, headers: &head.headers }.take(&bytes).await
                    }
                    Err(reply) => Err(reply),
                }
            }
            Method::GET => post::listen(&self.0, &owner, &head.headers),
            Method::DELETE => post::delete(&self.0, &owner, &head.headers),
            _ => Err(Reply::not_allowed("GET, POST, DELETE")),
        };
        replied.unwrap_or_else(Reply::into_response)
    }
}

/// Reads a whole body, once there is room for it among those of its owner [HTTP-7].
async fn read<B>(body: B, options: &HttpOptions, owner: &Owner) -> Result<Bytes, Reply>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (most, limit) = (options.max_body, options.body_time);
    let n_bytes = body.size_hint().upper().and_then(|n| usize::try_from(n).ok()).unwrap_or(most);
    let Ok(_room) = timeout(limit, owner.room(n_bytes.min(most))).await else {
        let words = "too many bodies are on their way; send it again when others are through";
        return Err(Reply::plain(StatusCode::SERVICE_UNAVAILABLE, words));
    };
    let Ok(whole) = timeout(limit, Limited::new(body, most).collect()).await else {
        return Err(Reply::plain(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"));
    };
    match whole {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Reply::plain(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("a body may have {most} bytes"),
        )),
        Err(_) => Err(Reply::plain(StatusCode::BAD_REQUEST, "the body broke off")),
    }
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("options", &self.0.options).finish_non_exhaustive()
    }
}
