//! The requests of the extension: polls, posts of outcomes, posts of events.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use raincheck_core::error::{Error, Kind};
use raincheck_core::text;
use raincheck_loopback::{Origin, Policy, Surface};
use serde::{Deserialize, Serialize};
use tokio::time::sleep_until;

use crate::arguments::Arguments;
use crate::bridge::{Browser, Incompatible, blocking};
use crate::files;
use crate::outbox::Taken;
use crate::revisions;
use crate::verdict::{Line, Verdict};
use crate::wire;

const WORKER: HeaderName = HeaderName::from_static("x-worker-id");
const SESSION: HeaderName = HeaderName::from_static("x-boot-id");
const PROTOCOL: HeaderName = HeaderName::from_static("x-raincheck-protocol");
const REVISION: HeaderName = HeaderName::from_static("x-raincheck-revision");

/// The longest name of a browser or of a start of its extension.
const MAX_NAME: usize = 128;

impl Browser {
    /// Returns the routes of the extension; `origin` is the only one that may come with a request.
    #[must_use]
    pub fn surface(&self, origin: &str) -> Surface {
        let routes = Router::new()
            .route("/pending-queries", get(poll))
            .route("/query-result", post(results))
            .route("/events", post(events))
            .route("/upload-file", get(file))
            .with_state(self.clone());
        let policy = Policy {
            origin: Origin::Pinned(vec![origin.to_owned()]),
            max_body: self.settings().max_body,
            ..Policy::default()
        };
        Surface { routes, policy }
    }
}

/// Who makes a request.
struct Peer {
    name: Arc<str>,
    session: Arc<str>,
    /// What it knows [BROWSER-66].
    revision: u32,
}

impl Peer {
    /// Reads who makes a request, and that it speaks this protocol.
    fn read(bridge: &Browser, headers: &HeaderMap) -> Result<Self, Error> {
        let protocol = headers.get(&PROTOCOL).map(|value| value.to_str().unwrap_or("?"));
        // An extension that names none is taken to speak this one.
        if let Some(protocol) = protocol.filter(|it| *it != wire::PROTOCOL.to_string()) {
            let protocol = text::escape(text::clip(protocol, 40)).into_owned();
            *bridge.incompatible() =
                Some(Incompatible { protocol: protocol.clone(), at: bridge.now() });
            let words =
                format!("the extension speaks protocol {protocol}, this server {}", wire::PROTOCOL);
            return Err(Error::new(Kind::PeerIncompatible, words)
                .with_hint("run: browser-mcp extension install DIR, and reload the extension"));
        }
        let revision = headers.get(&REVISION).and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(Self {
            name: name(headers, &WORKER)?,
            session: name(headers, &SESSION)?,
            revision: revision.unwrap_or(revisions::FIRST),
        })
    }
}

fn name(headers: &HeaderMap, header: &HeaderName) -> Result<Arc<str>, Error> {
    let Some(value) = headers.get(header) else { return Ok("default".into()) };
    let text = value.to_str().ok().filter(|it| !it.is_empty() && it.len() <= MAX_NAME);
    let is_plain = |it: &&str| it.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    text.filter(is_plain).map(Arc::from).ok_or_else(|| {
        let words = format!("`{header}` must be 1 to {MAX_NAME} letters, digits, `-`, `_` or `.`");
        Error::new(Kind::InvalidRequest, words)
    })
}

#[derive(Deserialize)]
struct Wish {
    wait_ms: Option<String>,
}

/// `GET /pending-queries`: answers at once when there is something, else holds the request.
async fn poll(
    State(bridge): State<Browser>,
    Query(Wish { wait_ms }): Query<Wish>,
    headers: HeaderMap,
) -> Response {
    let wait = match wait_ms.as_deref().map(str::parse::<u64>) {
        None => Duration::ZERO,
        Some(Ok(ms)) => Duration::from_millis(ms),
        Some(Err(_)) => {
            let words = "`wait_ms` must be a whole number of milliseconds";
            return refusal(&Error::new(Kind::InvalidRequest, words));
        }
    };
    let peer = match Peer::read(&bridge, &headers) {
        Ok(peer) => peer,
        Err(error) => return refusal(&error),
    };
    let Some(held) = Held::open(&bridge, peer) else {
        let words = "too many browsers are connected";
        return refusal(
            &Error::new(Kind::QueueFull, words).with_retry_after(Duration::from_secs(1)),
        );
    };
    match held.entries(wait).await {
        Some(entries) => json(StatusCode::OK, entries),
        None => refusal(&closing()),
    }
}

/// Says that this server ends: what is asked of its port from now on may reach another program, so that
/// the extension has to have the next listener prove itself before it sends the secret again.
fn closing() -> Error {
    Error::new(Kind::PeerNotReady, "this server is ending")
        .with_hint("have the listener prove itself again")
}

/// A poll while it is held. Dropping it, also when the extension goes away, closes it.
struct Held<'a> {
    bridge: &'a Browser,
    peer: Peer,
    poll: crate::outbox::Poll,
}

impl<'a> Held<'a> {
    fn open(bridge: &'a Browser, peer: Peer) -> Option<Self> {
        let (linger, most) = {
            let settings = bridge.settings();
            (settings.linger, settings.max_browsers)
        };
        let named = (&peer.name, &peer.session, peer.revision);
        let opened = bridge.outbox().open(bridge.clock().now(), named, (linger, most));
        let poll = opened?;
        if poll.is_only {
            bridge.moved();
        }
        Some(Self { bridge, peer, poll })
    }

    /// Waits for entries, and writes them as an array; `None` when the server ends meanwhile.
    async fn entries(&self, wait: Duration) -> Option<String> {
        let clock = self.bridge.clock();
        let deadline = clock.now().awake + wait.min(self.bridge.settings().max_hold);
        loop {
            // Registered before the look: what is laid down in between wakes it.
            let wake = self.poll.wake.notified();
            tokio::pin!(wake);
            wake.as_mut().enable();
            let now = clock.now();
            let taken = self.bridge.outbox().take(now, &self.peer.name, self.poll.serial);
            let due = match taken {
                Taken::Entries(entries) => return Some(format!("[{}]", entries.join(","))),
                Taken::Nothing(due) if now.awake < deadline => due,
                Taken::Nothing(_) | Taken::Replaced => return Some("[]".to_owned()),
            };
            tokio::select! {
                () = wake => {}
                // What was lost on its way must not wait for something new.
                () = sleep_until(due.unwrap_or(now.real)), if due.is_some() => {}
                () = clock.sleep_until(deadline) => {}
                () = self.bridge.closing().cancelled() => return None,
            }
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let now = self.bridge.clock().now();
        let is_last = self.bridge.outbox().close(now, &self.peer.name, self.poll.serial);
        if is_last {
            self.bridge.moved();
        }
    }
}

/// `POST /query-result`: one item or many, each with a verdict of its own.
async fn results(State(bridge): State<Browser>, headers: HeaderMap, body: Bytes) -> Response {
    #[derive(Serialize)]
    struct Verdicts {
        results: Vec<Line>,
    }
    let peer = match Peer::read(&bridge, &headers) {
        Ok(peer) => peer,
        Err(error) => return refusal(&error),
    };
    bridge.outbox().heard(bridge.clock().now(), &peer.name);
    let items = match wire::items(&body) {
        Ok(items) => items,
        Err(error) => return refusal(&error),
    };
    drop(body);
    let mut results = Vec::with_capacity(items.len());
    for item in items {
        let named = wire::named(&item);
        let verdict = match wire::understand(&item) {
            Ok(said) => bridge.hear(said).await,
            Err(error) if error.kind == Kind::NotFound => Verdict::Unknown,
            Err(error) => Verdict::Invalid(error.message.to_string()),
        };
        results.push(verdict.line(named));
    }
    json(StatusCode::OK, serde_json::to_string(&Verdicts { results }).unwrap_or_default())
}

/// `POST /events`: what happened in the browser, for `observe`.
async fn events(State(bridge): State<Browser>, headers: HeaderMap, body: Bytes) -> Response {
    #[derive(Serialize)]
    struct Kept {
        accepted: usize,
        dropped: usize,
    }
    let peer = match Peer::read(&bridge, &headers) {
        Ok(peer) => peer,
        Err(error) => return refusal(&error),
    };
    bridge.outbox().heard(bridge.clock().now(), &peer.name);
    match wire::items(&body) {
        Ok(items) => {
            let is_there = |name: &Arc<str>| bridge.outbox().has(name);
            bridge.tabs().keep_only(|name| *name == peer.name || is_there(name));
            bridge.tabs().hear(&peer.name, &peer.session, &items);
            if let Some(is_paused) = items.iter().rev().find_map(|item| wire::paused(item)) {
                bridge.outbox().set_paused(&peer.name, is_paused);
            }
            let (accepted, dropped) = bridge.rings().take(bridge.now(), &peer.name, &items);
            json(
                StatusCode::OK,
                serde_json::to_string(&Kept { accepted, dropped }).unwrap_or_default(),
            )
        }
        Err(error) => refusal(&error),
    }
}

/// Which file of a command is asked for: the `n`th that it uploads, or that a step of it does.
#[derive(Deserialize)]
struct Asked {
    correlation_id: String,
    step: Option<usize>,
    n: usize,
}

/// `GET /upload-file`: the bytes of a file that a command uploads, once it has been accepted [BROWSER-40].
async fn file(
    State(bridge): State<Browser>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Response {
    if let Err(error) = Peer::read(&bridge, &headers) {
        return refusal(&error);
    }
    match bridge.file(&asked).await {
        Ok(bytes) => {
            let mut response = bytes.into_response();
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(error) => refusal(&error),
    }
}

impl Browser {
    async fn file(&self, Asked { correlation_id, step, n }: &Asked) -> Result<Vec<u8>, Error> {
        let id = correlation_id.parse().map_err(|_| Error::not_found())?;
        let (_, params) = self.outbox().begun(id).ok_or_else(Error::not_found)?;
        let arguments = Arguments::read(&params)?;
        let steps = arguments.objects("steps");
        let from = match step {
            Some(step) => steps.get(*step).ok_or_else(Error::not_found)?,
            None => &arguments,
        };
        let name = (*from.texts("files").get(*n).ok_or_else(Error::not_found)?).to_owned();
        let root = self.settings().files_dir.clone();
        let field = format!("files[{n}]");
        blocking(move || files::read(&field, root.as_deref(), &name)).await?
    }
}

fn json(status: StatusCode, body: String) -> Response {
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Refuses a whole request, in the words of the error table.
fn refusal(error: &Error) -> Response {
    #[derive(Serialize)]
    struct Refusal<'a> {
        code: &'a str,
        error: &'a Error,
    }
    let is_full = error.kind == Kind::QueueFull;
    let status = if is_full { 503 } else { error.kind.entry().http };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = Refusal { code: error.kind.as_str(), error };
    let mut response = json(status, serde_json::to_string(&body).unwrap_or_default());
    if is_full {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
