//! What a client says: requests, notifications, answers; and its sessions.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Response, StatusCode};
use rmcp::ErrorData;
use rmcp::model::{
    ClientRequest, ErrorCode, GetExtensions as _, InitializeRequestParams, JsonRpcMessage,
    ProtocolVersion, RequestMetaObject,
};
use rmcp::service::serve_directly_with_ct;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Face;
use super::body::HttpBody;
use super::channel::{End, Inlet, channel};
use super::exchange::Exchange;
use super::head::{self, Mismatch, PROTOCOL_VERSION, SESSION_ID, STATELESS};
use super::owner::Owner;
use super::reply::{self, EVENTS, JSON, Reply};
use super::session::{Asked, HttpSession};
use crate::caller::Connection;
use crate::server::{Session, read_request, read_response};
use crate::transport::refusals::{Refused, refused};
use crate::wire::{Id, Message, parse};

/// How long a response may say nothing at all before it becomes a stream of events, which shows that
/// somebody is there.
const QUIET: Duration = Duration::from_secs(10);

/// The most bytes of an `initialize`: the session keeps what it says.
const MAX_INTRODUCTION: usize = 64 << 10;

/// One POST.
pub(super) struct Post<'a> {
    pub(super) face: &'a Arc<Face>,
    pub(super) owner: Arc<Owner>,
    pub(super) headers: &'a HeaderMap,
}

/// A request of a body.
struct Asks<'a> {
    id: Id,
    method: &'a str,
    params: Option<&'a RawValue>,
    request: ClientRequest,
    n_bytes: usize,
}

impl Post<'_> {
    /// Takes what was posted.
    pub(super) async fn take(self, bytes: &[u8]) -> Result<Response<HttpBody>, Reply> {
        if !head::accepts(self.headers, &[JSON, EVENTS]) {
            let words = "`Accept` must name application/json and text/event-stream";
            return Err(Reply::plain(StatusCode::NOT_ACCEPTABLE, words));
        }
        check_type(self.headers)?;
        match parse(bytes) {
            Message::Request { id, method, params } => {
                let request = read_request(&method, params).map_err(|words| {
                    if method == "initialize" && self.is_of_stateless() {
                        let words = "there is no `initialize` since 2026-07-28";
                        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None);
                        return Reply::error(StatusCode::NOT_FOUND, Some(id.clone()), error);
                    }
                    let error = ErrorData::invalid_params(words, None);
                    Reply::error(StatusCode::OK, Some(id.clone()), error)
                })?;
                let n_bytes = bytes.len();
                self.request(Asks { id, method: &method, params, request, n_bytes }).await
            }
            Message::Cancelled(id) => self.noted(|session| session.cancel(&id)),
            Message::Initialized => self.noted(HttpSession::initialized),
            Message::Nothing => self.noted(|_| ()),
            Message::Response { id, outcome } => {
                let session = self.session()?.ok_or_else(no_session)?;
                let is_known = session.answered(&id, |id| match read_response(outcome) {
                    Ok(result) => JsonRpcMessage::response(result, id),
                    Err(error) => JsonRpcMessage::error(error, Some(id)),
                });
                if !is_known {
                    tracing::debug!("a client answered what nobody asked");
                }
                Ok(reply::accepted())
            }
            Message::Invalid(invalid) => {
                Err(Reply::Error(StatusCode::BAD_REQUEST, Refused::from(invalid)))
            }
        }
    }

    /// Tells whether the head names a revision without sessions.
    fn is_of_stateless(&self) -> bool {
        let version = head::one(self.headers, &PROTOCOL_VERSION).ok().flatten();
        version.is_some_and(|version| version >= STATELESS)
    }

    /// Takes what has no answer; where there is a session, it is told.
    fn noted(&self, tell: impl FnOnce(&HttpSession)) -> Result<Response<HttpBody>, Reply> {
        if let Some(session) = self.session()? {
            tell(&session);
        }
        Ok(reply::accepted())
    }

    async fn request(self, asks: Asks<'_>) -> Result<Response<HttpBody>, Reply> {
        if let ClientRequest::InitializeRequest(request) = &asks.request {
            return self.initialize(&asks.id, request.params.clone(), asks.n_bytes);
        }
        let mismatch = |Mismatch(words)| {
            let error = ErrorData::header_mismatch(words, None);
            Reply::error(StatusCode::BAD_REQUEST, Some(asks.id.clone()), error)
        };
        let version = head::one(self.headers, &PROTOCOL_VERSION).map_err(mismatch)?;
        let mut request = asks.request.clone();
        let meta = request.extensions_mut().get::<RequestMetaObject>().cloned().unwrap_or_default();
        let said = meta.protocol_version();
        let missing = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28);
        let is_modern = |version: &str| version >= STATELESS;
        let is_stateless = version.is_some_and(is_modern)
            || said.as_ref().is_some_and(|said| missing.is_empty() || is_modern(said.as_str()))
            || matches!(asks.request, ClientRequest::DiscoverRequest(_));
        if !is_stateless {
            let session = self.session()?.ok_or_else(no_session)?;
            return self.in_session(session, asks).await;
        }
        if let Some(said) = &said
            && version != Some(said.as_str())
        {
            let words = "`MCP-Protocol-Version` is not the version in `_meta` of the body";
            return Err(mismatch(Mismatch(words.into())));
        }
        if version.is_some_and(is_modern) {
            let schema = |tool: &str| self.face.server.input_schema(tool);
            head::check_standard(self.headers, asks.method, asks.params, schema)
                .map_err(mismatch)?;
        }
        if !missing.is_empty() {
            let words = format!("`_meta` of the request says nothing of {}", missing.join(", "));
            let error = ErrorData::invalid_params(words, None);
            return Err(Reply::error(StatusCode::BAD_REQUEST, Some(asks.id), error));
        }
        self.alone(asks).await
    }

    /// Serves a request that stands alone: when its response is given up, it is cancelled.
    async fn alone(self, asks: Asks<'_>) -> Result<Response<HttpBody>, Reply> {
        let connection = Connection {
            closing: self.face.closing.child_token(),
            ..Connection::new(self.owner.scope.clone())
        };
        let session = Session::new(self.face.server.clone(), connection);
        let (inlet, cancelled) = self.begin(asks, session, None)?;
        let unread = Some(cancelled.drop_guard());
        Ok(answered(inlet, unread, reply::status).await)
    }

    /// Serves a request of a session: it goes on when its response is given up.
    async fn in_session(
        self,
        session: Arc<HttpSession>,
        asks: Asks<'_>,
    ) -> Result<Response<HttpBody>, Reply> {
        let face = session.face.clone();
        let (inlet, _) = self.begin(asks, face, Some(session))?;
        Ok(answered(inlet, None, |_| StatusCode::OK).await)
    }

    /// Begins to serve a request; what comes out of it, and what cancels it, are returned.
    fn begin(
        &self,
        asks: Asks<'_>,
        service: Session,
        session: Option<Arc<HttpSession>>,
    ) -> Result<(Inlet, CancellationToken), Reply> {
        let Asks { id, mut request, n_bytes, .. } = asks;
        let refuse = |refusal| Reply::error(StatusCode::OK, Some(id.clone()), refused(refusal));
        let n_copied = session.as_ref().map_or(0, |session| session.n_bytes);
        let (place, flight) = self.owner.begin(n_bytes + n_copied).map_err(refuse)?;
        let cancelled = flight.cancelled.clone();
        if let Some(session) = &session
            && !session.take(&id, &cancelled)
        {
            return Err(refuse(crate::server::Refusal::IdTaken));
        }
        request.extensions_mut().insert(flight);
        let client = session.as_ref().map(|session| session.client.clone());
        let (out, inlet) = channel(&self.owner.backlog);
        let (_, asked) = Asked::new();
        let request = Some(JsonRpcMessage::request(request, id.clone().into()));
        let session = session.map(|session| (session, id));
        let exchange = Exchange { request, out, place, session, asked, is_answered: false };
        let running = serve_directly_with_ct(service, exchange, client, CancellationToken::new());
        self.face.serving.spawn(async move { running.waiting().await.map(drop) });
        Ok((inlet, cancelled))
    }

    /// Begins a session.
    fn initialize(
        self,
        id: &Id,
        mut client: InitializeRequestParams,
        n_bytes: usize,
    ) -> Result<Response<HttpBody>, Reply> {
        let face = self.face;
        if n_bytes > MAX_INTRODUCTION {
            let words = format!("an `initialize` may have {MAX_INTRODUCTION} bytes");
            let error = ErrorData::invalid_params(words, None);
            return Err(Reply::error(StatusCode::PAYLOAD_TOO_LARGE, Some(id.clone()), error));
        }
        let closing = face.closing.child_token();
        // What it chooses is its own. It has a name beside its id, which nobody else is to know.
        let name = format!("http-{:032x}", face.server.engine().nonce());
        let connection = Connection {
            name: Some(name.into()),
            closing: closing.clone(),
            ..Connection::new(self.owner.scope.clone())
        };
        let session = Session::new(face.server.clone(), connection);
        let introduced = session
            .introduce(&client)
            .map_err(|error| Reply::error(StatusCode::OK, Some(id.clone()), error))?;
        client.protocol_version = introduced.protocol_version.clone();
        (client.meta, client.capabilities.experimental, client.client_info.icons) =
            Default::default();
        let name = format!("{:032x}", face.server.engine().nonce()).into_boxed_str();
        let header = HeaderValue::from_str(&name);
        let session = HttpSession::begin(name, self.owner, (client, n_bytes), session, closing);
        face.sessions.add(&session).map_err(|_| {
            let words = "too many sessions are open and in use; end one of them with DELETE";
            Reply::plain(StatusCode::SERVICE_UNAVAILABLE, words)
        })?;
        face.serving.spawn(session.announcing());
        let answer = serde_json::json!({"jsonrpc": "2.0", "id": id, "result": introduced});
        let mut response = reply::json(StatusCode::OK, &answer);
        if let Ok(header) = header {
            response.headers_mut().insert(SESSION_ID, header);
        }
        Ok(response)
    }

    fn session(&self) -> Result<Option<Arc<HttpSession>>, Reply> {
        session(self.face, &self.owner, self.headers)
    }
}

/// Finds the session that a request names.
fn session(
    face: &Face,
    owner: &Owner,
    headers: &HeaderMap,
) -> Result<Option<Arc<HttpSession>>, Reply> {
    let bad = |Mismatch(words)| Reply::plain(StatusCode::BAD_REQUEST, words);
    let version = head::one(headers, &PROTOCOL_VERSION).map_err(bad)?;
    if version.is_some_and(|version| version >= STATELESS) {
        return Ok(None);
    }
    let known = |version: &str| {
        ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version)
    };
    if version.is_some_and(|version| !known(version)) {
        let words = "`MCP-Protocol-Version` names a version that this server does not speak";
        return Err(Reply::plain(StatusCode::BAD_REQUEST, words));
    }
    let Some(id) = head::one(headers, &SESSION_ID).map_err(bad)? else { return Ok(None) };
    let words = "there is no such session; begin one with `initialize`";
    face.sessions
        .find(id, owner)
        .map(Some)
        .ok_or_else(|| Reply::plain(StatusCode::NOT_FOUND, words))
}

fn no_session() -> Reply {
    let words = "`Mcp-Session-Id` is missing; `initialize` answers with it";
    Reply::plain(StatusCode::BAD_REQUEST, words)
}

/// Makes the response to a request: JSON when its answer is the first thing to say, else events.
async fn answered(
    mut inlet: Inlet,
    unread: Option<DropGuard>,
    status: impl FnOnce(End) -> StatusCode,
) -> Response<HttpBody> {
    let first = match timeout(QUIET, inlet.next()).await {
        Ok(Some(out)) => out,
        // It was cancelled: there is no answer.
        Ok(None) => return reply::events(HttpBody::events(None, inlet, None)),
        Err(_) => return reply::events(HttpBody::events(None, inlet, unread)),
    };
    let Some(end) = first.end else {
        return reply::events(HttpBody::events(Some(first), inlet, unread));
    };
    if let Some(unread) = unread {
        unread.disarm();
    }
    reply::answer(status(end), first, inlet)
}

/// Listens to what belongs to no request.
pub(super) fn listen(
    face: &Face,
    owner: &Owner,
    headers: &HeaderMap,
) -> Result<Response<HttpBody>, Reply> {
    if !head::accepts(headers, &[EVENTS]) {
        let words = "`Accept` must name text/event-stream";
        return Err(Reply::plain(StatusCode::NOT_ACCEPTABLE, words));
    }
    let session = of_session(face, owner, headers)?;
    Ok(reply::events(HttpBody::events(None, session.listen(), None)))
}

/// Ends a session.
pub(super) fn delete(
    face: &Face,
    owner: &Owner,
    headers: &HeaderMap,
) -> Result<Response<HttpBody>, Reply> {
    let session = of_session(face, owner, headers)?;
    face.sessions.remove(&session);
    Ok(reply::typed(StatusCode::NO_CONTENT, None, HttpBody::of("")))
}

/// Finds the session that a request is about; a revision without sessions has no such request.
fn of_session(face: &Face, owner: &Owner, headers: &HeaderMap) -> Result<Arc<HttpSession>, Reply> {
    let version = head::one(headers, &PROTOCOL_VERSION).ok().flatten();
    if version.is_some_and(|version| version >= STATELESS) {
        return Err(Reply::not_allowed("POST"));
    }
    session(face, owner, headers)?.ok_or_else(no_session)
}

fn check_type(headers: &HeaderMap) -> Result<(), Reply> {
    let form = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let form = form.and_then(|value| value.split(';').next()).unwrap_or_default();
    if form.trim().eq_ignore_ascii_case(JSON) {
        return Ok(());
    }
    let words = "`Content-Type` must be application/json";
    Err(Reply::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, words))
}
