//! An engine, its bridge and its listener over a network in memory, and an extension whose every
//! move is the test's.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use raincheck_browser::{Browser, Settings};
use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::ids::{Spelling, TaskId};
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::task::{Outcome, TaskRecord};
use raincheck_loopback::{Accept, Secret, over};
use raincheck_runtime::{Handle, Options, Request, Submission, View, start};
use serde_json::{Value, json};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::http::{SECRET, Sender, ask};
use crate::store::Store;

/// Longer than anything that is waited for; paused time makes it cheap.
pub(crate) const LONG: Duration = Duration::from_secs(24 * 3600);

pub(crate) const SECOND: Duration = Duration::from_secs(1);

const PORT: u16 = 4711;

/// A network in memory.
struct Net(mpsc::UnboundedReceiver<DuplexStream>);

impl Accept for Net {
    type Io = DuplexStream;

    fn is_local(_: &DuplexStream) -> bool {
        true
    }

    async fn accept(&mut self) -> Option<DuplexStream> {
        self.0.recv().await
    }
}

/// A running server.
pub(crate) struct World {
    pub(crate) handle: Handle,
    pub(crate) store: Arc<Store>,
    pub(crate) bridge: Browser,
    settings: Settings,
    network: mpsc::UnboundedSender<DuplexStream>,
    stop: CancellationToken,
    running: JoinSet<()>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::over(settings, Store::new())
    }

    fn over(settings: Settings, store: Arc<Store>) -> Self {
        let bridge = Browser::new(settings.clone());
        let kept: Arc<Store> = Arc::clone(&store);
        let options = Options::in_memory().with_store(kept).with_tools(Arc::new(bridge.clone()));
        let (handle, service) = start(options);
        let (stop, mut running) = (CancellationToken::new(), JoinSet::new());
        running.spawn(service.run(stop.clone()));
        running.spawn(bridge.beside(handle.clone(), stop.clone()));
        let (network, incoming) = mpsc::unbounded_channel();
        let mut options = raincheck_loopback::Options::new("browser-mcp").expect("random bytes");
        options.token = Some(Secret::from_bytes(SECRET));
        options.surfaces.push(bridge.surface("chrome-extension://a"));
        let address = (Ipv4Addr::LOCALHOST, PORT).into();
        let (listener, _) = over(Net(incoming), address, options).expect("a listener");
        running.spawn(listener.run(stop.clone()));
        Self { handle, store, bridge, settings, network, stop, running }
    }

    /// Ends the server and starts the next one on the same store.
    pub(crate) async fn restarted(mut self) -> Self {
        self.stop.cancel();
        while let Some(ended) = self.running.join_next().await {
            ended.expect("no panic");
        }
        self.store.close();
        Self::over(self.settings, self.store)
    }

    /// Tells the server to end.
    pub(crate) fn close(&self) {
        self.stop.cancel();
    }

    /// An extension that speaks to this server.
    pub(crate) fn extension(&self, name: &'static str, session: &'static str) -> Extension {
        Extension { network: self.network.clone(), name, session, revision: 2 }
    }

    pub(crate) async fn submit(&self, request: Request) -> TaskRecord {
        match self.handle.submit(request).await.expect("accepted") {
            Submission::Task(accepted) => accepted.record,
            Submission::Answer(_) => panic!("a command is a task"),
        }
    }

    /// Submits a script for a tab.
    pub(crate) async fn script(&self, tab: i64, script: &str) -> TaskId {
        self.submit(script_in(tab, script)).await.id()
    }

    pub(crate) async fn view(&self, id: TaskId) -> View {
        self.handle.view(&Scope::local(), id).await.expect("a task")
    }

    pub(crate) async fn state(&self, id: TaskId) -> State {
        self.view(id).await.record.state
    }

    pub(crate) async fn end(&self, id: TaskId) -> View {
        self.handle.wait_end(&Scope::local(), id, LONG).await.expect("a task")
    }

    /// Cancels a task and returns its state right after that.
    pub(crate) async fn cancel(&self, id: TaskId) -> State {
        self.handle.cancel(&Scope::local(), id, None).await.expect("a task").record.state
    }
}

pub(crate) fn script_in(tab: i64, script: &str) -> Request {
    request(&json!({ "action": "execute_js", "tab_id": tab, "script": script }))
}

pub(crate) fn request(inputs: &Value) -> Request {
    Request::new("interact", Json::of(inputs).expect("JSON"), Scope::local())
}

pub(crate) fn failure(view: &View) -> Error {
    match view.payload.as_ref().expect("a readable task").outcome.clone() {
        Some(Outcome::Failed(error)) => error,
        outcome => panic!("no failure: {outcome:?}"),
    }
}

/// The JSON of a result.
pub(crate) fn text_of(outcome: Option<&Outcome>) -> String {
    let Some(Outcome::Succeeded(content)) = outcome else { panic!("no result: {outcome:?}") };
    match &content[..] {
        [raincheck_core::content::Content::Json(json)] => json.get().to_owned(),
        content => panic!("no JSON: {content:?}"),
    }
}

pub(crate) fn result(view: &View) -> String {
    text_of(view.payload.as_ref().expect("a readable task").outcome.as_ref())
}

/// An extension whose every move is the test's.
pub(crate) struct Extension {
    network: mpsc::UnboundedSender<DuplexStream>,
    name: &'static str,
    session: &'static str,
    revision: u32,
}

impl Extension {
    /// The same one as it was before its second revision.
    pub(crate) fn of_first_revision(self) -> Self {
        Self { revision: 1, ..self }
    }

    pub(crate) async fn ask(&self, path: &str, body: Option<&str>) -> (u16, Value) {
        let (here, there) = duplex(64 * 1024);
        self.network.send(there).expect("a listener");
        let bearer = Secret::from_bytes(SECRET);
        let (name, session, revision) = (self.name, self.session, self.revision);
        let bearer = bearer.text();
        let sender = Sender { bearer, port: PORT, name, session, revision };
        let (status, body) = ask(here, sender, path, body).await.expect("an answer");
        (status, serde_json::from_str(&body).expect("JSON"))
    }

    /// Polls until there is something to say, or until the wait is over.
    pub(crate) async fn poll(&self, wait: Duration) -> Vec<Value> {
        let path = format!("/pending-queries?wait_ms={}", wait.as_millis());
        match self.ask(&path, None).await {
            (200, Value::Array(entries)) => entries,
            answer => panic!("no entries: {answer:?}"),
        }
    }

    /// Polls for one command.
    pub(crate) async fn command(&self) -> Value {
        let entries = self.poll(20 * SECOND).await;
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries.into_iter().next().expect("one")
    }

    /// Posts items, and returns a word for each.
    pub(crate) async fn post(&self, items: &[String]) -> Vec<String> {
        let body = format!("[{}]", items.join(","));
        let (status, answer) = self.ask("/query-result", Some(&body)).await;
        assert_eq!(status, 200, "{answer}");
        let verdicts = answer["results"].as_array().expect("verdicts").iter();
        verdicts.map(word).collect()
    }

    /// Says one thing about a command.
    pub(crate) async fn say(&self, entry: &Value, status: &str, more: &str) -> String {
        self.post(&[item(entry, status, more)]).await.remove(0)
    }

    /// Takes one command on.
    pub(crate) async fn accept(&self) -> Value {
        let entry = self.command().await;
        assert_eq!(self.say(&entry, "accepted", "").await, "accepted");
        entry
    }
}

fn word(verdict: &Value) -> String {
    let reason = verdict["reason"].as_str();
    assert_eq!(verdict["accepted"], reason.is_none(), "{verdict}");
    reason.unwrap_or("accepted").to_owned()
}

/// One item of a post.
pub(crate) fn item(entry: &Value, status: &str, more: &str) -> String {
    let comma = if more.is_empty() { "" } else { "," };
    format!(
        r#"{{"correlation_id":{},"attempt":{},"fence":{},"status":"{status}"{comma}{more}}}"#,
        entry["correlation_id"], entry["attempt"], entry["fence"],
    )
}

/// Whether an entry is about a task.
pub(crate) fn is_about(entry: &Value, id: TaskId) -> bool {
    entry["correlation_id"] == id.spell(Spelling::Correlation)
}

/// Seconds since an instant, to the millisecond.
pub(crate) fn seconds_since(begin: Instant) -> f64 {
    begin.elapsed().as_millis() as f64 / 1000.0
}
