//! The real binary, driven by raw lines. Every line it writes must be one JSON-RPC message.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Longer than anything here takes; a test that reaches it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// One running server with folders of its own.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Lines<BufReader<ChildStdout>>,
    pub(crate) notifications: Vec<Value>,
    next_id: u64,
    _home: Option<TempDir>,
}

impl Server {
    /// Starts a server with the tools of `tests/tools` and shakes hands.
    pub(crate) async fn start() -> Self {
        Self::spawn().shake_hands().await
    }

    /// Shakes hands as a client does.
    pub(crate) async fn shake_hands(mut self) -> Self {
        let server = &mut self;
        let answer = server
            .request(
                "initialize",
                json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "raincheck-tests", "version": "1"},
                }),
            )
            .await;
        assert_eq!(answer["result"]["serverInfo"]["name"], "raincheck", "{answer}");
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        self
    }

    /// Starts a server and says nothing yet.
    pub(crate) fn spawn() -> Self {
        Self::spawn_with(|_| ())
    }

    /// Starts a server whose command is changed first.
    pub(crate) fn spawn_with(change: impl FnOnce(&mut Command)) -> Self {
        let home = TempDir::new().expect("a folder");
        let mut command = command(home.path());
        command.stderr(Stdio::null());
        change(&mut command);
        Self { _home: Some(home), ..Self::of(command) }
    }

    /// Starts a server by a command that names its folders itself.
    pub(crate) fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().expect("the server starts");
        let stdout = child.stdout.take().expect("a pipe");
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(stdout).lines(),
            child,
            notifications: Vec::new(),
            next_id: 0,
            _home: None,
        }
    }

    /// Sends one message.
    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes()).await;
    }

    /// Sends bytes as they are.
    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("an open stdin");
        timeout(PATIENCE, stdin.write_all(bytes))
            .await
            .expect("in time")
            .expect("the server reads");
        stdin.flush().await.expect("the server reads");
    }

    /// Sends a request without waiting for its answer, and returns its id.
    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// Reads the next message that is no notification; notifications are kept.
    pub(crate) async fn read(&mut self) -> Value {
        loop {
            let line = timeout(PATIENCE, self.stdout.next_line()).await.expect("in time");
            let line = line.expect("UTF-8").expect("the server still writes");
            let message = message(&line);
            if message.get("id").is_some() {
                return message;
            }
            self.notifications.push(message);
        }
    }

    /// Sends a request and reads its answer, which must be the next one.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        let answer = self.read().await;
        assert_eq!(answer["id"], id, "another request was answered: {answer}");
        answer
    }

    /// Calls a tool and returns the result object.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer =
            self.request("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert!(answer.get("result").is_some(), "no result: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool and reads the JSON of its one text block.
    pub(crate) async fn data(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        serde_json::from_str(text(&result)).expect("JSON")
    }

    /// Waits for the end of a task.
    pub(crate) async fn ended(&mut self, task: &Value) -> Value {
        self.data("get_task_result", json!({"task_id": task["task_id"], "wait_s": 20})).await
    }

    /// Closes stdin and waits for the exit; whatever is still written must be JSON-RPC too.
    pub(crate) async fn close(mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.exit().await
    }

    /// Reads to the end of stdout and waits for the exit.
    pub(crate) async fn exit(&mut self) -> ExitStatus {
        while let Some(line) =
            timeout(PATIENCE, self.stdout.next_line()).await.expect("in time").expect("UTF-8")
        {
            message(&line);
        }
        timeout(PATIENCE, self.child.wait()).await.expect("in time").expect("an exit status")
    }
}

/// Returns the one text block of a tool's answer.
pub(crate) fn text(result: &Value) -> &str {
    let blocks = result["content"].as_array().expect("content");
    assert_eq!(blocks.len(), 1, "{result}");
    blocks[0]["text"].as_str().expect("text")
}

/// Parses one line of the server's stdout.
pub(crate) fn message(line: &str) -> Value {
    let message: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    assert_eq!(message["jsonrpc"], "2.0", "no JSON-RPC: {line}");
    let is_answer = message.get("result").is_some() != message.get("error").is_some();
    let is_notification = message.get("method").is_some() && message.get("id").is_none();
    assert!(is_answer || is_notification, "neither an answer nor a notification: {line}");
    message
}

/// Makes the command that serves the tools of `tests/tools`, with its state below `home` and its
/// tasks in memory, so that no program outlives it.
pub(crate) fn command(home: &Path) -> Command {
    let mut command = Command::new(binary());
    command.arg("serve").arg("--config").arg(folder().join("tools/raincheck.toml"));
    command.env("RAINCHECK_STATE_DIR", home.join("state"));
    command.env("RAINCHECK_STORE", "memory");
    command.env("RAINCHECK_RUNTIME_DIR", home.join("run"));
    command.env("A_SECRET_OF_THE_SERVER", "hush");
    command
}

/// Finds the binary that was built beside this test.
pub(crate) fn binary() -> PathBuf {
    let this = std::env::current_exe().expect("a path");
    let profile = this.parent().and_then(Path::parent).expect("target/<profile>/deps");
    let binary = profile.join(format!("raincheck{}", std::env::consts::EXE_SUFFIX));
    assert!(binary.exists(), "build the binary first: cargo build --package raincheck-cli");
    binary
}

/// The folder of this package.
pub(crate) fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
