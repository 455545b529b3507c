//! A server of its own for the demo, and calls to it.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raincheck::Role;
use raincheck::mcp::client::Client;
use raincheck_app::config::CANONICAL_TOOLS;
use raincheck_app::instance;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::Instant;

use super::programs::{ENDLESS, FAIL, RENDER};
use super::transcript::Transcript;
use super::{Unmet, expect};

/// A running server with the demo's programs as its tools.
pub(super) struct Session {
    client: Client,
    home: PathBuf,
    pub(super) transcript: Transcript,
}

/// One answer of the server.
pub(super) struct Answer {
    pub(super) data: Value,
    pub(super) is_error: bool,
    pub(super) took: Duration,
}

impl Answer {
    /// Returns a text of the answer by its JSON Pointer.
    pub(super) fn text(&self, pointer: &str) -> Result<&str, Unmet> {
        let found = self.data.pointer(pointer).and_then(Value::as_str);
        found.ok_or_else(|| Unmet(format!("`{pointer}` is missing in {}", self.data)))
    }

    /// Goes on only if the answer has a state.
    pub(super) fn expect_state(&self, state: &str) -> Result<(), Unmet> {
        expect(self.text("/state")? == state, || format!("the task is not {state}: {}", self.data))
    }
}

impl Session {
    /// Starts a server with its configuration and state in `folder`.
    pub(super) async fn open(folder: &Path, transcript: Transcript) -> Result<Self, Unmet> {
        let binary = env::current_exe()?;
        let config = folder.join("raincheck.toml");
        std::fs::write(&config, configuration(&binary))?;
        let state = folder.join("state");
        let mut command = Command::new(&binary);
        for (name, _) in env::vars_os() {
            let is_ours = name.to_str().is_some_and(|name| name.starts_with("RAINCHECK_"));
            if is_ours && name != "RAINCHECK_LOG_LEVEL" {
                command.env_remove(name);
            }
        }
        if env::var_os("RAINCHECK_LOG_LEVEL").is_none() {
            command.env("RAINCHECK_LOG_LEVEL", "error");
        }
        command.arg("serve").arg("--config").arg(&config);
        command
            .args(["--store", "memory"])
            .arg("--state-dir")
            .arg(&state)
            .arg("--runtime-dir")
            .arg(folder.join("run"));
        let start = Instant::now();
        let client = Client::spawn(command, "raincheck-demo").await?;
        let took = start.elapsed();
        let tools = client.tools().await?;
        transcript.heading("A real server, started over stdio by a real MCP client")?;
        transcript.answer(took, &format!("ready, {} tools", tools.len()))?;
        let (canonical, programs): (Vec<&str>, Vec<&str>) =
            tools.iter().map(String::as_str).partition(|name| CANONICAL_TOOLS.contains(name));
        transcript.detail(&format!("programs: {}", programs.join(", ")))?;
        transcript.detail(&format!("for tasks: {}", canonical.join(", ")))?;
        Ok(Self { client, home: state.join("raincheck"), transcript })
    }

    /// Calls a tool and shows the call; the caller shows what matters of the answer.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, Unmet> {
        self.transcript.call(tool, &arguments.to_string())?;
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let start = Instant::now();
        let reply = self.client.call(tool, arguments).await?;
        let took = start.elapsed();
        let data = serde_json::from_str(&reply.text)?;
        Ok(Answer { data, is_error: reply.is_error, took })
    }

    /// Ends the server and looks at what it left.
    pub(super) async fn close(self) -> Result<(), Unmet> {
        let Self { client, home, transcript } = self;
        let start = Instant::now();
        client.close().await;
        let took = start.elapsed();
        let left = instance::look(&home);
        expect(left.is_empty(), || format!("the server left {left:?}"))?;
        transcript.heading("The client goes, and the server with it")?;
        transcript.answer(took, "the server ended and left nothing behind")
    }
}

/// Writes the configuration in which this binary's roles are tools.
fn configuration(binary: &Path) -> String {
    let binary = binary.to_string_lossy();
    let tool = |name: &str, about: &str, role: &Role, more: &str| {
        let [mark, role] = role.arguments();
        let command = json!([binary, mark, role]);
        format!("[tools.{name}]\ndescription = {about:?}\ncommand = {command}\n{more}\n")
    };
    let schema = "input_schema = { type = \"object\", properties = { frames = { type = \"integer\" } }, required = [\"frames\"] }";
    [
        tool("render", "Renders a picture", &RENDER, &format!("wait_s = 0.4\n{schema}")),
        tool("bake", "Bakes a scene", &FAIL, "wait_s = 10"),
        tool("watch", "Watches for ever", &ENDLESS, "wait_s = 0.4"),
    ]
    .concat()
}
