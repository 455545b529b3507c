//! The editor's end of the Unity wire, whose every move is the test's.
//!
//! [`Socket`] is a WebSocket and nothing more; [`Editor`] is one that has proved itself.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use raincheck_loopback::Secret;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

/// Longer than anything that is waited for; paused time makes it cheap.
const LONG: Duration = Duration::from_secs(3600);

/// The nonce of every simulated editor.
const NONCE: &str = "AAAAAAAAAAAAAAAAAAAAAA";

/// A WebSocket, as an editor has it.
#[derive(Debug)]
pub struct Socket<S> {
    stream: WebSocketStream<S>,
    code: Option<u16>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// Asks for a WebSocket; the HTTP status when that is refused, 0 without any.
    ///
    /// # Errors
    /// The status.
    pub async fn knock(mut io: S, path: &str, port: u16, headers: &str) -> Result<Self, u16> {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n"
        );
        io.write_all(head.as_bytes()).await.map_err(|_| 0_u16)?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(io.read_u8().await.map_err(|_| 0_u16)?);
        }
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        if status != 101 {
            return Err(status);
        }
        let stream = WebSocketStream::from_raw_socket(io, Role::Client, None).await;
        Ok(Self { stream, code: None })
    }

    /// Sends a message; `false` when the connection is gone.
    pub async fn say(&mut self, message: impl ToString) -> bool {
        self.send(Message::text(message.to_string())).await
    }

    /// Sends a frame of any kind; `false` when the connection is gone.
    pub async fn send(&mut self, frame: Message) -> bool {
        self.stream.send(frame).await.is_ok()
    }

    /// Waits for the next message; `None` when the connection is over.
    pub async fn hear(&mut self) -> Option<Value> {
        loop {
            match tokio::time::timeout(LONG, self.stream.next()).await.ok()?? {
                Ok(Message::Text(text)) => return serde_json::from_str(&text).ok(),
                Ok(Message::Close(frame)) => self.code = frame.map(|frame| frame.code.into()),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// Waits for the next message of a type, and passes over others.
    pub async fn hear_of(&mut self, kind: &str) -> Option<Value> {
        loop {
            let message = self.hear().await?;
            if message.get("type").is_some_and(|it| it == kind) {
                return Some(message);
            }
        }
    }

    /// Waits until the connection is over, and returns the code that it was closed with.
    pub async fn closed(&mut self) -> Option<u16> {
        while self.hear().await.is_some() {}
        self.code
    }

    /// Gives back what is below, without a goodbye.
    pub fn into_inner(self) -> S {
        self.stream.into_inner()
    }
}

/// Who an editor says it is, and what it has.
#[derive(Clone, Debug)]
pub struct Who {
    /// The path of its project.
    pub project: String,
    /// Its name and instance.
    pub name: String,
    /// What it does.
    pub state: String,
    /// The commands that it has registered.
    pub tools: Value,
    /// The calls that it runs: `[{request_id, job_id?}]`.
    pub running: Value,
    /// The calls whose results were not acknowledged.
    pub finished: Value,
}

impl Who {
    /// Makes an editor that has nothing to do.
    #[must_use]
    pub fn new(project: &str, name: &str) -> Self {
        Self {
            project: project.to_owned(),
            name: name.to_owned(),
            state: "ready".to_owned(),
            tools: json!([]),
            running: json!([]),
            finished: json!([]),
        }
    }

    /// Returns the first message.
    #[must_use]
    pub fn hello(&self) -> Value {
        json!({
            "type": "hello", "protocol_version": 1, "plugin_version": "0.0.1", "unity_version": "6000.0.30f1",
            "project_name": self.name, "editor_instance_id": self.name, "plugin_session_id": "s",
            "pid": 1, "domain_epoch": 1, "nonce": NONCE,
        })
    }

    /// Returns the answer to the server's proof.
    #[must_use]
    pub fn auth(&self, secret: &Secret, port: u16, server_nonce: &str) -> Value {
        json!({
            "type": "auth", "mac": secret.mac(&format!("client|{NONCE}|{server_nonce}|{port}")),
            "project_path": self.project, "state": self.state, "running": self.running,
            "finished_unacked": self.finished, "tools": self.tools,
        })
    }

    /// Returns what the server's proof must be.
    #[must_use]
    pub fn proof(&self, secret: &Secret, port: u16, server_nonce: &str) -> String {
        secret.mac(&format!("server|{NONCE}|{server_nonce}|{port}"))
    }
}

/// An editor that has proved itself, as the server has to it.
#[derive(Debug)]
pub struct Editor<S> {
    /// Its connection.
    pub socket: Socket<S>,
    seq: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Editor<S> {
    /// Connects; `None` when the server does not let it in, or does not prove itself.
    pub async fn connect(io: S, port: u16, secret: &Secret, who: &Who) -> Option<Self> {
        let mut socket = Socket::knock(io, "/unity", port, "").await.ok()?;
        socket.say(who.hello()).await;
        let hello = socket.hear_of("hello").await?;
        let nonce = hello.get("nonce")?.as_str()?;
        if hello.get("mac")?.as_str()? != who.proof(secret, port, nonce) {
            return None;
        }
        socket.say(who.auth(secret, port, nonce)).await;
        socket.hear_of("capability").await?;
        Some(Self { socket, seq: 0 })
    }

    /// Says what it does.
    pub async fn state(&mut self, state: &str) -> bool {
        self.seq += 1;
        self.socket.say(json!({ "type": "editor_status", "state": state, "seq": self.seq })).await
    }

    /// Waits for a call, whether it is a job or not.
    pub async fn call(&mut self) -> Option<Value> {
        loop {
            let message = self.socket.hear().await?;
            let kind = message.get("type").and_then(Value::as_str);
            if matches!(kind, Some("execute" | "submit_job")) {
                return Some(message);
            }
        }
    }

    /// Waits for a call and takes it on.
    pub async fn accept(&mut self) -> Option<Value> {
        let call = self.call().await?;
        self.about("accepted", &call).await;
        Some(call)
    }

    /// Says one word about a call.
    pub async fn about(&mut self, kind: &str, call: &Value) -> bool {
        let request = call.get("request_id");
        self.socket.say(json!({ "type": kind, "request_id": request })).await
    }

    /// Says how a call ended.
    pub async fn end(&mut self, call: &Value, status: &str, result: impl Into<Value>) -> bool {
        self.socket.say(ended(call, status, result)).await
    }
}

/// Writes how a call ended.
#[must_use]
pub fn ended(call: &Value, status: &str, result: impl Into<Value>) -> Value {
    let result: Value = result.into();
    json!({
        "type": "result", "request_id": call.get("request_id"), "fence": call.get("fence"),
        "status": status, "result": result,
    })
}
