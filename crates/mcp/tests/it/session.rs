//! A client that writes lines and reads lines, with the server and its engine behind them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use raincheck_core::mac::MacKey;
use raincheck_core::scope::Scope;
use raincheck_core::store::{MemoryStore, StoreLayer, TaskStore};
use raincheck_mcp::{Options, Owners, Server, Streams, serve_shared, serve_stdio};
use raincheck_runtime::{Handle, Request, start};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::tools;

const PIPE: usize = 64 << 10;

/// What a test may choose.
pub(crate) struct Setup {
    pub(crate) version: &'static str,
    pub(crate) client: &'static str,
    pub(crate) scope: Scope,
    pub(crate) options: Options,
    pub(crate) engine: Option<raincheck_runtime::Options>,
}

impl Default for Setup {
    fn default() -> Self {
        let (scope, options) = (Scope::local(), Options::new("0.0.0"));
        Self { version: "2025-06-18", client: "case", scope, options, engine: None }
    }
}

/// One connection.
pub(crate) struct Session {
    to: Option<DuplexStream>,
    from: Lines<BufReader<DuplexStream>>,
    unread: VecDeque<Value>,
    /// The line that was read last.
    pub(crate) last: String,
    next_id: i64,
    server: JoinSet<()>,
    engine: JoinSet<()>,
    pub(crate) handle: Handle,
    pub(crate) stop: CancellationToken,
    pub(crate) n_starts: Arc<AtomicUsize>,
}

impl Session {
    /// Connects and shakes hands.
    pub(crate) async fn open() -> Self {
        Self::open_with(Setup::default()).await
    }

    /// Connects and shakes hands as a test chooses.
    pub(crate) async fn open_with(setup: Setup) -> Self {
        let (version, client) = (setup.version, setup.client);
        let mut session = Self::raw_with(setup);
        session.shake_hands(version, client).await;
        session
    }

    /// Introduces the client.
    pub(crate) async fn shake_hands(&mut self, version: &str, client: &str) {
        let params = json!({"protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": client, "version": "0"}});
        let request =
            json!({"jsonrpc": "2.0", "id": "h0", "method": "initialize", "params": params});
        self.send(&request.to_string()).await;
        let answer = self.answer(&json!("h0")).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    }

    /// Connects to a process that shares its store with others, and shakes hands.
    pub(crate) async fn shared(owners: Arc<dyn Owners>) -> Self {
        Self::shared_after(owners, Vec::new()).await
    }

    /// The same with the options of a test.
    pub(crate) async fn shared_with(owners: Arc<dyn Owners>, options: Options) -> Self {
        Self::share(owners, Vec::new(), options).await
    }

    /// The same on a store that has tasks already.
    pub(crate) async fn shared_after(owners: Arc<dyn Owners>, before: Vec<Request>) -> Self {
        Self::share(owners, before, Options::new("0.0.0")).await
    }

    async fn share(owners: Arc<dyn Owners>, before: Vec<Request>, options: Options) -> Self {
        let (handle, service) = start(tools::engine().with_store(Arc::new(Named::default())));
        let mut engine = JoinSet::new();
        engine.spawn(service.run(CancellationToken::new()));
        for request in before {
            handle.submit(request).await.expect("accepted");
        }
        let face = Server::new(handle, options, Box::new(|| {})).expect("sound tools");
        let starts = Arc::default();
        let mut session = Self::connect_by(face, engine, starts, |face, streams, stop| async {
            serve_shared(face, Scope::local(), streams, stop, owners, "window").await
        });
        session.shake_hands("2025-06-18", "case").await;
        session
    }

    /// Says nothing more.
    pub(crate) fn close_stdin(&mut self) {
        self.to = None;
    }

    /// Tells whether nothing more was written so far.
    pub(crate) async fn line_is_pending(&mut self) -> bool {
        let wait = std::time::Duration::from_secs(1);
        tokio::time::timeout(wait, self.from.next_line()).await.is_err()
    }

    /// Connects without a word.
    pub(crate) fn raw() -> Self {
        Self::raw_with(Setup::default())
    }

    /// Connects without a word as a test chooses.
    pub(crate) fn raw_with(mut setup: Setup) -> Self {
        let (handle, service) = start(setup.engine.take().unwrap_or_else(tools::engine));
        let mut engine = JoinSet::new();
        let (begin, begun) = tokio::sync::oneshot::channel();
        engine.spawn(async move {
            if begun.await.is_ok() {
                service.run(CancellationToken::new()).await;
            }
        });
        let begin = move || begin.send(()).expect("the engine waits for its start");
        Self::attach(handle, setup, engine, begin)
    }

    /// Connects a second client, of another scope, to the engine of the first.
    pub(crate) fn of_scope(&self, scope: &str) -> Self {
        self.of_scope_with(scope, Options::new("0.0.0"))
    }

    /// Connects a second client to the engine of the first, through a server of its own.
    pub(crate) fn of_scope_with(&self, scope: &str, options: Options) -> Self {
        let setup = Setup { scope: Scope::new(scope), options, ..Setup::default() };
        Self::attach(self.handle.clone(), setup, JoinSet::new(), || {})
    }

    fn attach(
        handle: Handle,
        setup: Setup,
        engine: JoinSet<()>,
        begin: impl FnOnce() + Send + 'static,
    ) -> Self {
        let n_starts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&n_starts);
        let starter = Box::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            begin();
        });
        let server = Server::new(handle, setup.options, starter).expect("sound tools");
        Self::connect(server, setup.scope, engine, n_starts)
    }

    /// Connects to a server.
    fn connect(
        face: Server,
        scope: Scope,
        engine: JoinSet<()>,
        n_starts: Arc<AtomicUsize>,
    ) -> Self {
        Self::connect_by(face, engine, n_starts, |face, streams, stop| {
            serve_stdio(face, scope, streams, stop)
        })
    }

    /// Connects to what is served in some way.
    fn connect_by<F>(
        face: Server,
        engine: JoinSet<()>,
        n_starts: Arc<AtomicUsize>,
        serve: impl FnOnce(Server, Streams, CancellationToken) -> F,
    ) -> Self
    where
        F: Future<Output = Result<(), raincheck_mcp::stdio::Error>> + Send + 'static,
    {
        let handle = face.engine().clone();
        let (to, reader) = tokio::io::duplex(PIPE);
        let (writer, from) = tokio::io::duplex(PIPE);
        let stop = CancellationToken::new();
        let token = stop.clone();
        let mut server = JoinSet::new();
        let served = serve(face, Streams::new(reader, writer), token);
        server.spawn(async move { served.await.expect("a whole session") });
        let from = BufReader::new(from).lines();
        let unread = VecDeque::new();
        let last = String::new();
        Self {
            to: Some(to),
            from,
            unread,
            last,
            next_id: 1000,
            server,
            engine,
            handle,
            stop,
            n_starts,
        }
    }

    /// Writes bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.to.as_mut().expect("an open stream").write_all(bytes).await.expect("a reader");
    }

    /// Writes a line.
    pub(crate) async fn send(&mut self, line: &str) {
        self.write(format!("{line}\n").as_bytes()).await;
    }

    /// Reads the next line; `None` at the end.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let line = self.from.next_line().await.expect("UTF-8");
        if let Some(line) = &line {
            let value: Value = serde_json::from_str(line).expect("every line is JSON");
            assert_eq!(value["jsonrpc"], "2.0", "{line}");
            self.last.clone_from(line);
        }
        line
    }

    /// Reads up to the answer with this id; what else comes is kept.
    pub(crate) async fn answer(&mut self, id: &Value) -> Value {
        if let Some(place) = self.unread.iter().position(|value| value.get("id") == Some(id)) {
            return self.unread.remove(place).expect("just found");
        }
        loop {
            let line = self.line().await.unwrap_or_else(|| panic!("no answer to {id}"));
            let value: Value = serde_json::from_str(&line).expect("JSON");
            if value.get("id") == Some(id) {
                return value;
            }
            self.unread.push_back(value);
        }
    }

    /// Returns what came beside the answers that were read.
    pub(crate) fn beside(&self) -> Vec<Value> {
        self.unread.iter().cloned().collect()
    }

    /// Sends a request without waiting for its answer.
    pub(crate) async fn begin(&mut self, method: &str, params: &str) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ))
        .await;
        json!(id)
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn request(&mut self, method: &str, params: &str) -> Value {
        let id = self.begin(method, params).await;
        self.answer(&id).await
    }

    /// Calls a tool without waiting; `arguments` are sent as they are.
    pub(crate) async fn begin_call(&mut self, tool: &str, arguments: &str) -> Value {
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        self.begin("tools/call", &params).await
    }

    /// Calls a tool; `arguments` are sent as they are.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &str) -> Answer {
        let id = self.begin_call(tool, arguments).await;
        Answer::of(self.answer(&id).await)
    }

    /// Calls a tool that must not fail, and returns the JSON of its answer.
    pub(crate) async fn good(&mut self, tool: &str, arguments: &str) -> Value {
        let answer = self.call(tool, arguments).await;
        assert!(!answer.is_error, "{tool} {arguments}: {}", answer.text);
        answer.data
    }

    /// Calls a tool that must fail, and returns the error object.
    pub(crate) async fn refused(&mut self, tool: &str, arguments: &str) -> Value {
        let answer = self.call(tool, arguments).await;
        assert!(answer.is_error, "{tool} {arguments}: {}", answer.text);
        answer.data["error"].clone()
    }

    /// Submits a task and returns its id.
    pub(crate) async fn submit(&mut self, tool: &str, inputs: &str) -> String {
        let arguments = format!(r#"{{"tool_name":"{tool}","inputs":{inputs}}}"#);
        let submitted = self.good("submit_task", &arguments).await;
        submitted["task_id"].as_str().expect("an id").to_owned()
    }

    /// Waits for the end of a task and returns its result answer.
    pub(crate) async fn end_of(&mut self, id: &str) -> Value {
        loop {
            let arguments = format!(r#"{{"task_id":"{id}","wait_s":15}}"#);
            let answer = self.good("get_task_result", &arguments).await;
            if answer.get("poll_after_ms").is_none() {
                return answer;
            }
        }
    }

    /// Says that nothing will follow, and reads all that still comes.
    pub(crate) async fn finish(&mut self) -> Vec<String> {
        self.to = None;
        let mut rest = Vec::new();
        while let Some(line) = self.line().await {
            rest.push(line);
        }
        self.server.join_next().await.expect("a server").expect("no panic");
        rest
    }

    /// Says that nothing will follow, reads nothing, and waits for the end of the session.
    pub(crate) async fn end_unread(&mut self) {
        self.to = None;
        self.server.join_next().await.expect("a server").expect("no panic");
    }

    /// Tells whether the engine was started.
    pub(crate) fn is_started(&self) -> bool {
        self.n_starts.load(Ordering::SeqCst) > 0 && !self.engine.is_empty()
    }
}

/// Takes the marks out: each server has its own.
pub(crate) fn without_marks(text: &str) -> String {
    let mut parts = text.split("untrusted-");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        rest.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    rest
}

/// A tool's answer.
pub(crate) struct Answer {
    pub(crate) raw: Value,
    pub(crate) text: String,
    pub(crate) data: Value,
    pub(crate) is_error: bool,
}

impl Answer {
    pub(crate) fn of(raw: Value) -> Self {
        let result = &raw["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        let data = serde_json::from_str(&text).unwrap_or(Value::Null);
        let is_error = result["isError"] == true;
        Self { raw, text, data, is_error }
    }
}

/// A store with a name, which a store in memory has not.
#[derive(Default)]
struct Named(MemoryStore);

/// The key of that store.
fn key() -> MacKey {
    MacKey::from_bytes([7; 32])
}

/// Returns the name of the store of a process that shares it.
pub(crate) fn store_name() -> Arc<str> {
    key().name()
}

#[async_trait]
impl StoreLayer for Named {
    fn inner(&self) -> &dyn TaskStore {
        &self.0
    }

    fn mac_key(&self) -> Option<MacKey> {
        Some(key())
    }
}
