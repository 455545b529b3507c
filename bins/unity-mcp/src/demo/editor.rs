//! The editor of the demo, simulated: it speaks the wire of the Unity package, to the same listener and
//! with the same proofs, and acts out what a project would do.
//!
//! As the package does, it keeps what it runs and what it finished over a lost connection and over a reload of
//! its code, and runs nothing twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use raincheck_loopback::Secret;
use raincheck_loopback::endpoint::{self, Endpoint};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::play::{self, N_TESTS, PROJECT};
use super::{Unmet, expect};

/// How long it waits before it looks for a server again.
const RETRY: Duration = Duration::from_millis(100);

/// How long a test takes.
const PER_TEST: Duration = Duration::from_millis(65);

/// After which test of the first run the editor reloads its code, and for how long it is gone.
const RELOAD: (usize, Duration) = (24, Duration::from_millis(600));

/// Above this many bytes a result travels in pieces.
const PIECE: usize = 512 * 1024;

/// What it says at first.
const NONCE: &str = "c2ltdWxhdGVkZWRpdG9yIQ";

/// The editor while it lives. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Editor {
    living: JoinSet<()>,
    n_reloads: Arc<AtomicU32>,
}

impl Editor {
    /// Begins to look for a server.
    pub(super) fn start(endpoint: &Path, project: &Path) -> Self {
        let n_reloads = Arc::new(AtomicU32::new(0));
        let mind = Mind {
            endpoint: endpoint.to_owned(),
            project: project.to_owned(),
            n_reloads: Arc::clone(&n_reloads),
            work: None,
            begun: BTreeMap::new(),
            finished: BTreeMap::new(),
        };
        let mut living = JoinSet::new();
        living.spawn(mind.live());
        Self { living, n_reloads }
    }

    /// Returns how often it reloaded its code.
    pub(super) fn n_reloads(&self) -> u32 {
        self.n_reloads.load(Ordering::Relaxed)
    }

    /// Ends it.
    pub(super) async fn close(mut self) {
        self.living.shutdown().await;
    }
}

type Socket = WebSocketStream<TcpStream>;

/// What outlives a connection and a reload.
struct Mind {
    endpoint: PathBuf,
    project: PathBuf,
    n_reloads: Arc<AtomicU32>,
    work: Option<Work>,
    /// How often each call was begun.
    begun: BTreeMap<String, u32>,
    /// Results that were not acknowledged.
    finished: BTreeMap<String, Value>,
}

/// A run of the tests.
struct Work {
    request_id: String,
    fence: Value,
    n_done: usize,
    next_at: Instant,
    seq: u64,
}

/// Why a connection is over.
enum Over {
    Reload,
    Gone,
}

impl Mind {
    async fn live(mut self) {
        loop {
            let found = endpoint::read(&self.endpoint).ok().flatten();
            if let Some(server) = found.filter(Endpoint::is_running) {
                match self.serve(&server).await {
                    Ok(Over::Reload) => {
                        self.n_reloads.fetch_add(1, Ordering::Relaxed);
                        sleep(RELOAD.1).await;
                    }
                    Ok(Over::Gone) => {}
                    Err(error) => tracing::debug!(%error, "the simulated editor has no server"),
                }
            }
            sleep(RETRY).await;
        }
    }

    /// Serves a server until the connection is over.
    async fn serve(&mut self, server: &Endpoint) -> Result<Over, Unmet> {
        let mut socket = knock(server.port).await?;
        self.shake_hands(&mut socket, server).await?;
        for result in self.finished.values().cloned().collect::<Vec<_>>() {
            say(&mut socket, &result).await?;
        }
        loop {
            let next = self.work.as_ref().map(|work| work.next_at);
            let step = async {
                match next {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                heard = socket.next() => match heard {
                    Some(Ok(Message::Text(text))) => {
                        let message: Value = serde_json::from_str(&text)?;
                        self.hear(&mut socket, &message).await?;
                    }
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(Over::Gone),
                    Some(Ok(_)) => {}
                },
                () = step => {
                    if self.step(&mut socket).await? {
                        return Ok(Over::Reload);
                    }
                }
            }
        }
    }

    /// Goes on with the tests by one. Returns whether the editor now reloads its code.
    async fn step(&mut self, socket: &mut Socket) -> Result<bool, Unmet> {
        let n_runs = self.begun.values().sum();
        let Some(work) = &mut self.work else { return Ok(false) };
        work.n_done += 1;
        work.next_at = Instant::now() + PER_TEST;
        work.seq += 1;
        let (id, n_done) = (work.request_id.clone(), work.n_done);
        if n_done < N_TESTS {
            let progress = json!({
                "type": "progress", "request_id": id, "fence": work.fence, "seq": work.seq,
                "current": n_done, "total": N_TESTS, "message": format!("{n_done} of {N_TESTS} tests"),
                "partial": play::partial(n_done),
            });
            say(socket, &progress).await?;
            let reloads = n_done == RELOAD.0 && self.n_reloads.load(Ordering::Relaxed) == 0;
            if reloads {
                let status = json!({ "type": "editor_status", "state": "reloading", "seq": 2 });
                say(socket, &status).await?;
                let bye =
                    json!({ "type": "bye", "reason": "domain reload", "expected_back_ms": 600 });
                say(socket, &bye).await?;
            }
            return Ok(reloads);
        }
        let result = ended(&id, &work.fence, "ok", &play::summary(n_runs));
        self.work = None;
        self.finish(socket, id, result).await?;
        Ok(false)
    }

    async fn hear(&mut self, socket: &mut Socket, message: &Value) -> Result<(), Unmet> {
        let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "execute" | "submit_job" => self.take(socket, message).await,
            "result_ack" => {
                self.finished.remove(text("request_id"));
                Ok(())
            }
            "cancel" => {
                let target = text("target_request_id").to_owned();
                let work = self.work.take_if(|work| work.request_id == target);
                let status = if work.is_some() { "cancelled" } else { "rejected" };
                let said = json!({
                    "type": "cancel_result", "request_id": message.get("request_id"),
                    "target_request_id": target, "status": status,
                });
                say(socket, &said).await?;
                let Some(work) = work else { return Ok(()) };
                let result = ended(&target, &work.fence, "cancelled", &Value::Null);
                self.finish(socket, target, result).await
            }
            _ => Ok(()),
        }
    }

    /// Takes a call on. One that it has already is not begun again.
    async fn take(&mut self, socket: &mut Socket, call: &Value) -> Result<(), Unmet> {
        let id = call.get("request_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if call.get("type") == Some(&json!("submit_job")) {
            let accepted = json!({
                "type": "submit_job_result", "request_id": id, "status": "accepted",
                "job_id": format!("job-{id}"),
            });
            say(socket, &accepted).await?;
        } else {
            say(socket, &json!({ "type": "accepted", "request_id": id })).await?;
        }
        if let Some(result) = self.finished.get(&id).cloned() {
            return say(socket, &result).await;
        }
        if self.begun.contains_key(&id) {
            return Ok(());
        }
        say(socket, &json!({ "type": "started", "request_id": id })).await?;
        let fence = call.get("fence").cloned().unwrap_or_default();
        let tool = call.get("tool_name").and_then(Value::as_str).unwrap_or_default();
        let action = call.pointer("/params/action").and_then(Value::as_str).unwrap_or_default();
        let (status, result) = match (tool, action) {
            ("run_tests", _) => {
                *self.begun.entry(id.clone()).or_default() += 1;
                let next_at = Instant::now() + PER_TEST;
                self.work = Some(Work { request_id: id, fence, n_done: 0, next_at, seq: 0 });
                return Ok(());
            }
            ("manage_scene", "get_active") => {
                ("ok", json!({ "name": "Level", "path": "Assets/Scenes/Level.unity" }))
            }
            ("manage_scene", "get_hierarchy") => ("ok", play::hierarchy()),
            _ => (
                "error",
                json!({ "code": "UNKNOWN", "message": "a simulated editor knows only what the demo asks" }),
            ),
        };
        let result = ended(&id, &fence, status, &result);
        self.finish(socket, id, result).await
    }

    /// Keeps a result until it is acknowledged, and sends it.
    async fn finish(
        &mut self,
        socket: &mut Socket,
        id: String,
        result: Value,
    ) -> Result<(), Unmet> {
        self.finished.insert(id, result.clone());
        say(socket, &result).await
    }

    async fn shake_hands(&self, socket: &mut Socket, server: &Endpoint) -> Result<(), Unmet> {
        let secret = Secret::from_text(&server.secret);
        let secret = secret.ok_or_else(|| Unmet("the endpoint file holds no secret".into()))?;
        let epoch = 1 + self.n_reloads.load(Ordering::Relaxed);
        let hello = json!({
            "type": "hello", "protocol_version": 1, "plugin_version": env!("CARGO_PKG_VERSION"),
            "unity_version": "6000.0.30f1 (simulated)", "project_name": PROJECT,
            "editor_instance_id": "simulated", "plugin_session_id": format!("simulated-{epoch}"),
            "pid": std::process::id(), "domain_epoch": epoch, "nonce": NONCE,
        });
        say(socket, &hello).await?;
        let said = hear_of(socket, "hello").await?;
        let nonce = said.get("nonce").and_then(Value::as_str).unwrap_or_default();
        let port = server.port;
        let proof = said.get("mac").and_then(Value::as_str).unwrap_or_default();
        let is_proved = secret.proves(&format!("server|{NONCE}|{nonce}|{port}"), proof);
        expect(is_proved, || "the server has not proved itself".into())?;
        let running: Vec<Value> = self
            .work
            .iter()
            .map(|work| json!({ "request_id": work.request_id, "fence": work.fence, "tool_name": "run_tests" }))
            .collect();
        let auth = json!({
            "type": "auth", "mac": secret.mac(&format!("client|{NONCE}|{nonce}|{port}")),
            "project_path": self.project, "state": "ready", "running": running,
            "finished_unacked": self.finished.keys().collect::<Vec<_>>(),
            "tools": [{ "name": "run_tests", "execution_mode": "job" }, { "name": "manage_scene" }],
        });
        say(socket, &auth).await?;
        hear_of(socket, "capability").await?;
        Ok(())
    }
}

fn ended(id: &str, fence: &Value, status: &str, result: &Value) -> Value {
    match status {
        "error" => {
            json!({ "type": "result", "request_id": id, "fence": fence, "status": status, "error": result })
        }
        _ => {
            json!({ "type": "result", "request_id": id, "fence": fence, "status": status, "result": result })
        }
    }
}

/// Asks for a WebSocket, as the editor's own client does.
async fn knock(port: u16) -> Result<Socket, Unmet> {
    let mut io = TcpStream::connect(("127.0.0.1", port)).await?;
    io.set_nodelay(true)?;
    let head = format!(
        "GET /unity HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    io.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(io.read_u8().await?);
    }
    expect(answer.starts_with(b"HTTP/1.1 101"), || "the server takes no editor".into())?;
    Ok(WebSocketStream::from_raw_socket(io, Role::Client, None).await)
}

/// Sends a message; a large one goes in pieces.
async fn say(socket: &mut Socket, message: &Value) -> Result<(), Unmet> {
    let text = message.to_string();
    if text.len() <= PIECE {
        return Ok(socket.send(Message::text(text)).await?);
    }
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(PIECE).collect();
    for (index, piece) in pieces.iter().enumerate() {
        let piece = json!({
            "type": "chunk", "request_id": message.get("request_id"), "index": index,
            "total": pieces.len(), "data": STANDARD.encode(piece),
        });
        socket.send(Message::text(piece.to_string())).await?;
    }
    Ok(())
}

/// Waits for a message of a type.
async fn hear_of(socket: &mut Socket, kind: &str) -> Result<Value, Unmet> {
    while let Some(heard) = socket.next().await {
        let Message::Text(text) = heard? else { continue };
        let message: Value = serde_json::from_str(&text)?;
        match message.get("type").and_then(Value::as_str) {
            Some(found) if found == kind => return Ok(message),
            Some("error") => return Err(Unmet(format!("the server refuses: {message}"))),
            Some(_) | None => {}
        }
    }
    Err(Unmet("the server is gone".into()))
}
