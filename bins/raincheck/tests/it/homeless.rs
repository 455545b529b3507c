//! A server without a state folder that it can use still answers its client.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::{code, command, err, folder, out};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"it","version":"0"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
const TASKS: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_tasks","arguments":{}}}"#;

/// Serves with this `HOME`, or none, and returns the answer to a call.
fn call(home: Option<&str>, arguments: &[&str]) -> Value {
    let folder = folder("[tools.a]\ncommand = [\"a\"]\n");
    let arguments = [&["serve", "--config", "raincheck.toml"], arguments].concat();
    let mut server = command(folder.path(), &arguments);
    for name in [
        "RAINCHECK_STATE_DIR",
        "RAINCHECK_RUNTIME_DIR",
        "XDG_STATE_HOME",
        "XDG_RUNTIME_DIR",
        "HOME",
    ] {
        server.env_remove(name);
    }
    if let Some(home) = home {
        server.env("HOME", home);
    }
    server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = server.spawn().expect("it runs");
    let mut input = server.stdin.take().expect("a pipe");
    writeln!(input, "{HELLO}\n{LIST}\n{TASKS}").expect("written");
    drop(input);
    let served = server.wait_with_output().expect("it ends");
    assert_eq!(code(&served), Some(0), "{home:?} {arguments:?} {}", err(&served));
    let answers: Vec<Value> =
        out(&served).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), 3, "{home:?}: {answers:?}");
    let of = |id: u64| answers.iter().find(|it| it["id"] == id).expect("an answer");
    assert!(of(2)["result"]["tools"].as_array().is_some_and(|tools| tools.len() > 6), "{}", of(2));
    let text = of(3)["result"]["content"][0]["text"].as_str().expect("text");
    serde_json::from_str(text).expect("JSON")
}

#[cfg(unix)]
#[test]
fn the_handshake_and_the_list_are_answered_and_a_call_names_the_way_out() {
    // Case mcp-home-that-can-not-be-written. [DUR-5]
    for home in [None, Some(""), Some("/dev/null")] {
        let answer = call(home, &[]);
        assert_eq!(answer["error"]["code"], "storage_unavailable", "{home:?}: {answer}");
        let hint = answer["error"]["hint"].as_str().expect("a hint");
        assert!(hint.contains("--state-dir"), "{home:?}: {hint}");
    }
}

#[cfg(unix)]
#[test]
fn tasks_in_memory_need_no_home() {
    // Case mcp-home-that-can-not-be-written.
    for home in [None, Some("/dev/null")] {
        let answer = call(home, &["--store", "memory"]);
        assert!(answer["tasks"].is_array(), "{home:?}: {answer}");
    }
}
