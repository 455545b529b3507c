//! An engine, its bridge and its listener over a network in memory, and editors whose every move is the
//! test's.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::content::{Content, Json};
use raincheck_core::error::Error;
use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    self, Capabilities, Durability, MemoryLimits, MemoryStore, Receipt, StoreLayer, TaskStore,
    Write,
};
use raincheck_core::task::{Outcome, TaskRecord};
use raincheck_core::time::Timestamp;
use raincheck_loopback::{Accept, Secret};
use raincheck_runtime::{Handle, Options, Request, Submission, View, start};
use raincheck_testkit::editor::{Editor, Socket, Who};
use raincheck_unity::{Settings, Unity};
use serde_json::{Value, json};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::sim::Fault;

/// Longer than anything that is waited for; paused time makes it cheap.
pub(crate) const LONG: Duration = Duration::from_secs(24 * 3600);

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) const PORT: u16 = 4711;

/// The project that the server was started for.
pub(crate) const OWN: &str = "/projects/own";

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

/// Connects; `None` when nobody listens.
pub(crate) fn reach(network: &mpsc::UnboundedSender<DuplexStream>) -> Option<DuplexStream> {
    let (here, there) = duplex(256 * 1024);
    network.send(there).ok().map(|()| here)
}

/// A memory store that the next server opens again.
pub(crate) struct Kept {
    inner: MemoryStore,
    fault: Option<Fault>,
}

impl Kept {
    pub(crate) fn new(fault: Option<Fault>) -> Arc<Self> {
        Arc::new(Self { inner: MemoryStore::new(MemoryLimits::default()), fault })
    }

    fn close(&self) {
        self.inner.close();
    }
}

#[async_trait]
impl StoreLayer for Kept {
    fn inner(&self) -> &dyn TaskStore {
        &self.inner
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { durability: Durability::Process }
    }

    async fn fire(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> Result<Write<Option<Timestamp>>, store::Error> {
        if self.fault == Some(Fault::DeadlinesSleep) {
            return Ok(Write { value: None, receipt: Receipt::Ready });
        }
        self.inner.fire(now, limit).await
    }
}

/// A running server.
pub(crate) struct World {
    pub(crate) handle: Handle,
    pub(crate) bridge: Unity,
    store: Arc<Kept>,
    settings: Settings,
    network: mpsc::UnboundedSender<DuplexStream>,
    coplay: mpsc::UnboundedSender<DuplexStream>,
    stop: CancellationToken,
    running: JoinSet<()>,
}

pub(crate) type Scripted = Editor<DuplexStream>;

pub(crate) fn secret() -> Secret {
    Secret::from_bytes([7; 32])
}

pub(crate) fn settings() -> Settings {
    Settings { project: Some(OWN.into()), ..Settings::default() }
}

pub(crate) fn who() -> Who {
    Who::new(OWN, "Own")
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(settings())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::over(settings, Kept::new(None))
    }

    pub(crate) fn over(settings: Settings, store: Arc<Kept>) -> Self {
        let bridge = Unity::new(settings.clone());
        let kept = Arc::clone(&store);
        let mut options =
            Options::in_memory().with_store(kept).with_tools(Arc::new(bridge.clone()));
        options.reattach_grace = settings.reconnect_grace + 5 * SECOND;
        let (handle, service) = start(options);
        let (stop, mut running) = (CancellationToken::new(), JoinSet::new());
        running.spawn(service.run(stop.clone()));
        running.spawn(bridge.beside(handle.clone(), stop.clone()));
        let mut listen = |port, secret| {
            let (network, incoming) = mpsc::unbounded_channel();
            let (listening, over) = (bridge.clone(), stop.clone());
            running.spawn(async move {
                let address = (Ipv4Addr::LOCALHOST, port).into();
                let served = listening.serve_over(Net(incoming), address, secret, over);
                served.await.expect("a listener");
            });
            network
        };
        let (network, coplay) = (listen(PORT, Some(secret())), listen(PORT + 1, None));
        Self { handle, bridge, store, settings, network, coplay, stop, running }
    }

    /// Kills the server and starts the next one on the same store.
    pub(crate) async fn killed(mut self) -> Self {
        self.running.shutdown().await;
        self.store.close();
        Self::over(self.settings, self.store)
    }

    /// Ends the server in order and starts the next one on the same store.
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

    pub(crate) fn io(&self) -> DuplexStream {
        reach(&self.network).expect("a listener")
    }

    /// Where the server listens.
    pub(crate) fn network(&self) -> mpsc::UnboundedSender<DuplexStream> {
        self.network.clone()
    }

    /// A connection of CoplayDev's package.
    pub(crate) async fn coplay(&self) -> Socket<DuplexStream> {
        let io = reach(&self.coplay).expect("a listener");
        Socket::knock(io, "/hub/plugin", PORT + 1, "").await.expect("an upgrade")
    }

    /// Opens a socket and says nothing.
    pub(crate) async fn socket(&self) -> Socket<DuplexStream> {
        Socket::knock(self.io(), "/unity", PORT, "").await.expect("an upgrade")
    }

    pub(crate) async fn editor(&self) -> Scripted {
        self.editor_of(&who()).await
    }

    pub(crate) async fn editor_of(&self, who: &Who) -> Scripted {
        Editor::connect(self.io(), PORT, &secret(), who).await.expect("let in")
    }

    pub(crate) async fn try_submit(&self, tool: &str, inputs: Value) -> Result<Submission, Error> {
        let inputs = Json::of(&inputs).expect("JSON");
        self.handle.submit(Request::new(tool, inputs, Scope::local())).await
    }

    /// Asks by a window of a client.
    pub(crate) async fn ask_by(&self, window: &str, tool: &str, inputs: Value) -> Submission {
        let inputs = Json::of(&inputs).expect("JSON");
        let connection = Some(window.into());
        let request = Request { connection, ..Request::new(tool, inputs, Scope::local()) };
        self.handle.submit(request).await.expect("accepted")
    }

    /// Submits a call by a window of a client.
    pub(crate) async fn submit_by(&self, window: &str, tool: &str, inputs: Value) -> TaskId {
        match self.ask_by(window, tool, inputs).await {
            Submission::Task(accepted) => accepted.record.id(),
            Submission::Answer(_) => panic!("{tool} is a task"),
        }
    }

    pub(crate) async fn submit(&self, tool: &str, inputs: Value) -> TaskRecord {
        match self.try_submit(tool, inputs).await.expect("accepted") {
            Submission::Task(accepted) => accepted.record,
            Submission::Answer(_) => panic!("{tool} is a task"),
        }
    }

    /// Submits a call that changes something.
    pub(crate) async fn menu(&self, path: &str) -> TaskId {
        self.submit("execute_menu_item", json!({ "path": path })).await.id()
    }

    /// Asks for what is answered from memory.
    pub(crate) async fn answer(&self, tool: &str, inputs: Value) -> Value {
        match self.try_submit(tool, inputs).await.expect("answered") {
            Submission::Answer(Outcome::Succeeded(parts)) => json_of(&parts),
            Submission::Answer(outcome) => panic!("{tool}: {outcome:?}"),
            Submission::Task(_) => panic!("{tool} is answered from memory"),
        }
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

    pub(crate) async fn result(&self, id: TaskId) -> Value {
        let view = self.end(id).await;
        match view.payload.as_ref().expect("readable").outcome.as_ref() {
            Some(Outcome::Succeeded(parts)) => json_of(parts),
            outcome => panic!("no result: {outcome:?}"),
        }
    }

    pub(crate) async fn failure(&self, id: TaskId) -> Error {
        let view = self.end(id).await;
        match view.payload.as_ref().expect("readable").outcome.clone() {
            Some(Outcome::Failed(error)) => error,
            outcome => panic!("no failure: {outcome:?}"),
        }
    }

    /// Cancels a task and returns its state right after that.
    pub(crate) async fn cancel(&self, id: TaskId) -> State {
        self.handle.cancel(&Scope::local(), id, None).await.expect("a task").record.state
    }

    /// Waits until a task is in a state.
    pub(crate) async fn until(&self, id: TaskId, state: State) {
        for _ in 0..10_000 {
            if self.state(id).await == state {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{id} is {:?}, never {state:?}", self.state(id).await);
    }
}

pub(crate) fn json_of(parts: &[Content]) -> Value {
    match parts {
        [Content::Json(json)] => json.read().expect("JSON"),
        parts => panic!("no JSON: {parts:?}"),
    }
}

/// The late result of a task.
pub(crate) fn late(view: &View) -> Option<Outcome> {
    view.payload.as_ref().expect("readable").late.clone()
}
