//! The official SDKs as clients. Both walk the same way; what they saw is held against one list.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{self, message};

#[test]
fn the_python_sdk_sees_what_it_should() {
    // [CALL-1, CALL-5, TOOL-1, HOST-1]
    let mut client = Command::new(tools().join("python/bin/python"));
    client.arg(server::folder().join("sdk/client.py"));
    check(&walk(client));
}

#[test]
fn the_typescript_sdk_sees_what_it_should() {
    // [CALL-1, CALL-5, TOOL-1, HOST-1]
    let mut client = Command::new("node");
    client.arg(server::folder().join("sdk/client.mjs"));
    check(&walk(client));
}

/// Finds what `tests/run.sh tools` fetched.
pub(crate) fn tools() -> PathBuf {
    let beside =
        || server::binary().parent().and_then(Path::parent).map(|target| target.join("tools"));
    let tools = std::env::var_os("RAINCHECK_TEST_TOOLS").map(PathBuf::from).or_else(beside);
    let tools = tools.expect("a target folder");
    assert!(tools.exists(), "the SDKs are missing; fetch them with: bash tests/run.sh tools");
    tools
}

/// Runs a client and returns what it saw; every byte the server wrote must have been JSON-RPC.
fn walk(mut client: Command) -> Value {
    let home = TempDir::new().expect("a folder");
    let log = home.path().join("stdout");
    let output = client
        .arg(&log)
        .arg(server::binary())
        .args(["serve", "--store", "memory", "--config"])
        .arg(server::folder().join("tools/raincheck.toml"))
        .arg("--state-dir")
        .arg(home.path().join("state"))
        .env("RAINCHECK_TEST_TOOLS", tools())
        .output()
        .expect("the client starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}\n{complaints}", output.status);
    for line in std::fs::read_to_string(&log).expect("UTF-8").lines() {
        message(line);
    }
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("no JSON: {said}"))
}

pub(crate) fn check(seen: &Value) {
    assert_eq!(seen["server"], "raincheck", "{seen}");
    assert!(seen["instructions"].as_str().is_some_and(|text| text.contains("get_task_result")));
    let tools: Vec<&str> =
        seen["tools"].as_array().expect("tools").iter().filter_map(Value::as_str).collect();
    for tool in ["submit_task", "get_task_result", "list_tasks", "echo", "slow"] {
        assert!(tools.contains(&tool), "`{tool}` is not among {tools:?}");
    }
    assert_eq!(seen["echo"], "{\"n\":1,\"word\":\"é\"}");
    assert_eq!((&seen["echo_is_error"], &seen["broken_is_error"]), (&json!(false), &json!(true)));
    assert_eq!(seen["broken"]["error"]["code"], "tool_failed", "{}", seen["broken"]);
    let steps = seen["progress"].as_array().expect("progress");
    assert!(!steps.is_empty(), "no progress was told");
    assert_eq!(seen["result"]["state"], "succeeded", "{}", seen["result"]);
    assert_eq!(seen["result"]["result"], json!({"n": 2}));
    assert_eq!(seen["slow"]["status"], "running", "{}", seen["slow"]);
    assert_eq!(seen["cancelled"]["state"], "cancelled", "{}", seen["cancelled"]);
    assert_eq!(seen["status"]["cancel_requested"], true, "{}", seen["status"]);
    assert_eq!(seen["logs"]["lines"][0]["message"], "reading", "{}", seen["logs"]);
    assert_eq!(seen["list"]["tasks"].as_array().map(Vec::len), Some(2), "{}", seen["list"]);
    assert_eq!(seen["refused_is_error"], true);
    assert_eq!(seen["refused"]["error"]["code"], "invalid_params", "{}", seen["refused"]);
    assert_eq!(seen["unknown_tool"], -32602);
}
