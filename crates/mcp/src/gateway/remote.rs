//! A server behind a URL: Streamable HTTP, as lines.
//!
//! Each line of ours is the body of a POST, byte for byte; what comes back, as JSON or as events, is lines
//! again. A stream of the server's own is held open beside that where the server has one.

mod events;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use raincheck_https::{Answer, Failed, Http};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncWriteExt as _, DuplexStream, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::events::{Event, Events};

use super::calls::Calls;
use super::connect::{CLOSED, Connect, Why, Wires};
use super::message::{LOST, RpcError};
use crate::transport::stdio::{Lines, Read};

/// How many bytes may be on their way inside.
const PIPE: usize = 256 << 10;

/// The longest line, as of other connections.
const MAX_LINE: usize = 64 << 20;

/// The pause before a stream that ended is opened again, and how often for one request.
const AGAIN: Duration = Duration::from_secs(1);
const MAX_RESUMES: u32 = 10;

/// How long the goodbye may take.
const GOODBYE: Duration = Duration::from_millis(500);

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// A server behind a URL.
#[derive(Clone, Debug)]
pub struct Remote {
    url: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// A URL or a header that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadRemote(String);

impl Remote {
    /// Names the URL of a server's MCP endpoint, with `http` or `https`.
    ///
    /// # Errors
    /// What is wrong with the URL.
    pub fn new(url: &str) -> Result<Self, BadRemote> {
        let wrong =
            || BadRemote("the URL must begin with http:// or https:// and name a host".into());
        let url: Uri = url.parse().map_err(|_| wrong())?;
        let is_web = matches!(url.scheme_str(), Some("http" | "https"));
        let has_user = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
        if has_user {
            let words = "the URL holds a name or a password; send it as a header instead";
            return Err(BadRemote(words.into()));
        }
        if is_web && url.host().is_some() {
            Ok(Self { url, headers: Vec::new() })
        } else {
            Err(wrong())
        }
    }

    /// Sends a header with each request, such as `Authorization`. Its value is shown nowhere.
    ///
    /// # Errors
    /// When the name is none, or one of the protocol's own, or the value cannot be sent.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, BadRemote> {
        let wrong = |what: &str| BadRemote(format!("the header `{name}` {what}"));
        let key: HeaderName = name.parse().map_err(|_| wrong("has no proper name"))?;
        if [SESSION, REVISION, LAST_EVENT, ACCEPT, CONTENT_TYPE].contains(&key) {
            return Err(wrong("is one of the protocol's own"));
        }
        let mut value: HeaderValue =
            value.parse().map_err(|_| wrong("has a value that cannot be sent"))?;
        value.set_sensitive(true);
        self.headers.push((key, value));
        Ok(self)
    }
}

#[async_trait]
impl Connect for Remote {
    fn name(&self) -> String {
        format!("at {}", self.url.authority().map_or("?", |authority| authority.as_str()))
    }

    async fn connect(&self, _: &Arc<Calls>) -> Result<Wires, Why> {
        let http = Http::new(&self.url).map_err(Why::new)?;
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(ours);
        let end = CancellationToken::new();
        let (lines, said) = mpsc::channel(64);
        let (gone, ended) = mpsc::channel(1);
        let session =
            Arc::new(Session { http, remote: self.clone(), state: Mutex::default(), lines, gone });
        let beside = Box::pin(attend(session, theirs, said, ended, end.clone()));
        Ok(Wires { reader: Box::new(reader), writer: Box::new(writer), beside, end })
    }
}

/// What a session knows of itself.
#[derive(Debug, Default)]
struct State {
    id: Option<HeaderValue>,
    revision: Option<HeaderValue>,
}

/// One session with the server.
struct Session {
    http: Http,
    remote: Remote,
    state: Mutex<State>,
    /// Lines of the server.
    lines: mpsc::Sender<Vec<u8>>,
    /// Why the session is over.
    gone: mpsc::Sender<Why>,
}

/// Carries lines both ways until the session is over.
async fn attend(
    session: Arc<Session>,
    stream: DuplexStream,
    said: mpsc::Receiver<Vec<u8>>,
    mut ended: mpsc::Receiver<Why>,
    end: CancellationToken,
) -> Why {
    let (reader, writer) = tokio::io::split(stream);
    let mut lines = Lines::new(reader, MAX_LINE);
    let mut asking: JoinSet<()> = JoinSet::new();
    let mut writing = std::pin::pin!(write(writer, said));
    let why = loop {
        tokio::select! {
            line = lines.next() => match line {
                Ok(Read::Line(line)) => {
                    while asking.try_join_next().is_some() {}
                    asking.spawn(Arc::clone(&session).send(line));
                }
                Ok(Read::TooLong) => {}
                Ok(Read::End) | Err(_) => break Why::new(CLOSED),
            },
            why = ended.recv() => break why.unwrap_or_default(),
            () = &mut writing => break Why::new(CLOSED),
            () = end.cancelled() => break Why::new(CLOSED),
        }
    };
    asking.shutdown().await;
    let _ = timeout(GOODBYE, session.leave()).await;
    why
}

async fn write(mut writer: WriteHalf<DuplexStream>, mut said: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut line) = said.recv().await {
        line.push(b'\n');
        if writer.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// What matters of a line of ours.
#[derive(Deserialize)]
struct Ours<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
}

impl Session {
    /// Sends a line and takes in what is answered.
    async fn send(self: Arc<Self>, line: Vec<u8>) {
        let ours: Option<Ours<'_>> = serde_json::from_slice(&line).ok();
        let asked = ours.as_ref().filter(|ours| ours.method.is_some()).and_then(|ours| ours.id);
        let asked = asked.map(ToOwned::to_owned);
        let method = ours.and_then(|ours| ours.method).unwrap_or_default();
        let is_greeting = method == "initialize";
        match self.post(line).await {
            Ok(answer) => self.take(answer, asked.as_deref(), is_greeting).await,
            Err(failed) => self.lost(asked.as_deref(), &failed).await,
        }
        if method == "notifications/initialized" {
            self.listen().await;
        }
    }

    async fn post(&self, line: Vec<u8>) -> Result<Answer, Failed> {
        let mut request = self.request(Method::POST);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.body_mut() = line;
        self.http.ask(request).await
    }

    /// Makes a request with the headers that each one has.
    fn request(&self, method: Method) -> Request<Vec<u8>> {
        let mut request = Request::new(Vec::new());
        *request.method_mut() = method;
        *request.uri_mut() = self.remote.url.clone();
        let headers = request.headers_mut();
        for (name, value) in &self.remote.headers {
            headers.append(name, value.clone());
        }
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let state = self.state();
        for (name, value) in [(SESSION, &state.id), (REVISION, &state.revision)] {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        }
        request
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in an answer to a request of ours.
    async fn take(&self, answer: Answer, asked: Option<&RawValue>, is_greeting: bool) {
        if is_greeting && let Some(id) = answer.header(&SESSION) {
            self.state().id = Some(id);
        }
        let status = answer.status();
        if answer.is_events() && status.is_success() {
            let mut seen = Seen { asked, last: None, is_answered: asked.is_none(), is_greeting };
            self.events(answer, &mut seen).await;
            self.resume(seen).await;
            return;
        }
        if status == StatusCode::NOT_FOUND && self.state().id.is_some() {
            self.over("its session ended");
            return;
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            self.over(&format!("it wants other authorization than it was sent (status {status})"));
            return;
        }
        match answer.body(MAX_LINE).await {
            Ok(body) if is_message(&body) => self.heard(body, is_greeting).await,
            // A notification is acknowledged without a word.
            Ok(_) if asked.is_none() => {}
            Ok(_) => {
                self.lost(asked, &Failed::new(format!("it answered with the status {status}")))
                    .await;
            }
            Err(failed) => self.lost(asked, &failed).await,
        }
    }

    /// Passes on the messages of a stream of events to its end.
    async fn events(&self, answer: Answer, seen: &mut Seen<'_>) {
        let mut events = Events::new(answer, MAX_LINE);
        while let Ok(Some(Event { id, data })) = events.next().await {
            if let Some(id) = id.and_then(|id| HeaderValue::from_bytes(&id).ok()) {
                seen.last = Some(id);
            }
            if is_message(&data) {
                seen.is_answered |= seen.asked.is_some_and(|asked| answers(&data, asked));
                self.heard(data, seen.is_greeting).await;
            }
        }
    }

    /// Takes up a stream that ended before its request was answered, where the server lets us.
    async fn resume(&self, mut seen: Seen<'_>) {
        for _ in 0..MAX_RESUMES {
            if seen.is_answered {
                return;
            }
            let Some(last) = seen.last.clone() else { break };
            sleep(AGAIN).await;
            let mut request = self.request(Method::GET);
            request.headers_mut().insert(LAST_EVENT, last);
            match self.http.ask(request).await {
                Ok(answer) if answer.is_events() => self.events(answer, &mut seen).await,
                Ok(_) => break,
                Err(_) => {}
            }
        }
        if !seen.is_answered {
            self.lost(seen.asked, &Failed::new("the stream of the answer ended".to_owned())).await;
        }
    }

    /// Holds a stream open on which the server says something by itself; some servers have none.
    async fn listen(&self) {
        let mut seen = Seen { asked: None, last: None, is_answered: true, is_greeting: false };
        loop {
            let mut request = self.request(Method::GET);
            if let Some(last) = seen.last.clone() {
                request.headers_mut().insert(LAST_EVENT, last);
            }
            match self.http.ask(request).await {
                Ok(answer) if answer.status().is_success() && answer.is_events() => {
                    self.events(answer, &mut seen).await;
                }
                Ok(answer)
                    if answer.status() == StatusCode::NOT_FOUND && self.state().id.is_some() =>
                {
                    self.over("its session ended");
                    return;
                }
                Ok(_) => return,
                Err(_) => {}
            }
            sleep(AGAIN).await;
        }
    }

    async fn heard(&self, line: Vec<u8>, is_greeting: bool) {
        if is_greeting && let Some(revision) = revision(&line) {
            self.state().revision = Some(revision);
        }
        // A message is one line here; JSON has line ends only between its tokens.
        let line =
            line.into_iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
        // Nobody may listen any more.
        let _ = self.lines.send(line.collect()).await;
    }

    /// Says that a request will get no answer.
    async fn lost(&self, asked: Option<&RawValue>, failed: &Failed) {
        #[derive(Serialize)]
        struct Line<'a> {
            jsonrpc: &'static str,
            id: &'a RawValue,
            error: RpcError,
        }
        tracing::debug!(%failed, "a request to the wrapped server was lost");
        if failed.is_unreachable {
            self.over(&format!("it cannot be reached: {failed}"));
            return;
        }
        let Some(id) = asked else { return };
        let error = RpcError { code: LOST, message: failed.to_string(), data: None };
        if let Ok(line) = serde_json::to_vec(&Line { jsonrpc: "2.0", id, error }) {
            let _ = self.lines.send(line).await;
        }
    }

    fn over(&self, words: &str) {
        let _ = self.gone.try_send(Why::new(words));
    }

    /// Tells the server that the session is over.
    async fn leave(&self) {
        if self.state().id.is_some()
            && let Err(failed) = self.http.ask(self.request(Method::DELETE)).await
        {
            tracing::debug!(%failed, "the wrapped server was not told of the end");
        }
    }
}

/// What is known of a stream of events.
struct Seen<'a> {
    asked: Option<&'a RawValue>,
    last: Option<HeaderValue>,
    is_answered: bool,
    is_greeting: bool,
}

fn is_message(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{")
}

/// Tells whether a message is the answer to a request.
fn answers(message: &[u8], asked: &RawValue) -> bool {
    let answer: Option<Ours<'_>> = serde_json::from_slice(message).ok();
    answer.is_some_and(|it| it.method.is_none() && it.id.is_some_and(|id| id.get() == asked.get()))
}

/// Reads the revision that the server chose.
fn revision(greeting: &[u8]) -> Option<HeaderValue> {
    #[derive(Deserialize)]
    struct Greeting {
        result: Chosen,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Chosen {
        protocol_version: String,
    }
    let greeting: Greeting = serde_json::from_slice(greeting).ok()?;
    greeting.result.protocol_version.parse().ok()
}
