//! A server of its own for the demo, and calls to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, mem};

use raincheck::Role;
use raincheck_app::config::CANONICAL_TOOLS;
use raincheck_app::instance;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::programs::{ENDLESS, FAIL, LIST, RENDER, STARTS};
use super::server::Server;
use super::{Answer, Transcript, Unmet, expect};

/// A running server with the demo's programs as its tools.
pub(super) struct Session {
    server: Server,
    places: Places,
    pub(super) transcript: Transcript,
}

/// Where the demo has what it keeps while it runs.
struct Places {
    folder: PathBuf,
    config: PathBuf,
    state: PathBuf,
    run: PathBuf,
}

impl Session {
    /// Starts a server with its configuration and state in `folder`.
    pub(super) async fn open(folder: &Path, transcript: Transcript) -> Result<Self, Unmet> {
        let places = Places::below(folder);
        fs::write(&places.config, configuration(&env::current_exe()?))?;
        let start = Instant::now();
        let server = places.serve().await?;
        let took = start.elapsed();
        let tools = server.client.tools().await?;
        transcript.heading("A real server, started over stdio by a real MCP client")?;
        transcript.answer(took, &format!("ready, {} tools", tools.len()))?;
        let (canonical, programs): (Vec<&str>, Vec<&str>) =
            tools.iter().map(String::as_str).partition(|name| CANONICAL_TOOLS.contains(name));
        transcript.detail(&format!("programs: {}", programs.join(", ")))?;
        transcript.detail(&format!("for tasks: {}", canonical.join(", ")))?;
        Ok(Self { server, places, transcript })
    }

    /// Kills the server in the middle of its work, and starts another on the same folders.
    pub(super) async fn replace_server(&mut self) -> Result<(), Unmet> {
        let Some(pid) = self.server.pid() else {
            return Err(Unmet("the server ended by itself".into()));
        };
        self.transcript.act(&format!("kill -9 {pid}"))?;
        let start = Instant::now();
        let status = self.server.kill().await?;
        self.transcript.answer(start.elapsed(), &format!("the server is gone, {status}"))?;
        self.transcript.act("a new server on the same folders")?;
        let start = Instant::now();
        let server = self.places.serve().await?;
        let took = start.elapsed();
        let pid = server.pid().unwrap_or_default();
        mem::replace(&mut self.server, server).client.close().await;
        self.transcript.answer(took, &format!("ready, process {pid}"))
    }

    /// Returns what the program `render` noted at each of its starts.
    pub(super) fn starts(&self) -> Result<String, Unmet> {
        Ok(fs::read_to_string(self.places.folder.join(STARTS))?)
    }

    /// Calls a tool and shows the call; the caller shows what matters of the answer.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, Unmet> {
        self.transcript.call(tool, &arguments.to_string())?;
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let start = Instant::now();
        let reply = self.server.client.call(tool, arguments).await?;
        Answer::read(&reply.text, reply.is_error, start.elapsed())
    }

    /// Ends the server, looks at what it left, and returns how long its end took.
    pub(super) async fn close(self) -> Result<Duration, Unmet> {
        let Self { server, places, .. } = self;
        let start = Instant::now();
        server.close().await?;
        let took = start.elapsed();
        let left = instance::look(&places.state.join("raincheck"));
        expect(left.is_empty(), || format!("the server left {left:?}"))?;
        Ok(took)
    }
}

impl Places {
    fn below(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            config: folder.join("raincheck.toml"),
            state: folder.join("state"),
            run: folder.join("run"),
        }
    }

    async fn serve(&self) -> Result<Server, Unmet> {
        Server::start(&self.config, &self.state, &self.run).await
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
        tool("list_scene", "Lists a scene", &LIST, "wait_s = 10\nread_only = true"),
        tool("watch", "Watches for ever", &ENDLESS, "wait_s = 0.4\non_exit = \"stop\""),
    ]
    .concat()
}
