//! The reference server of the protocol behind the gateway, as it is: fetched by `tests/run.sh tools`.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::sdk::tools;
use crate::server::{self, Server, text};

const SCRIPT: &str =
    "everything/node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// Starts the gateway with its state in a folder.
fn wrapped(home: &Path) -> Server {
    let script = tools().join(SCRIPT);
    assert!(script.exists(), "the server is missing; fetch it with: bash tests/run.sh tools");
    let mut command = Command::new(server::binary());
    command.args(["wrap", "--wait-s", "20", "--", "node"]).arg(script);
    command.env("RAINCHECK_STATE_DIR", home.join("state"));
    command.env("RAINCHECK_RUNTIME_DIR", home.join("run"));
    command.current_dir(home);
    Server::of(command)
}

#[tokio::test]
async fn the_reference_server_is_served_with_all_that_it_has() {
    // [GATE-1, GATE-2, GATE-4, GATE-10]
    let home = TempDir::new().expect("a folder");
    let mut server = wrapped(home.path()).shake_hands().await;
    let list = server.request("tools/list", json!({})).await;
    let listed = list["result"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = listed.iter().filter_map(|tool| tool["name"].as_str()).collect();
    for name in ["echo", "get-sum", "get-tiny-image", "submit_task", "fetch_cached_response"] {
        assert!(names.contains(&name), "`{name}` is not among {names:?}");
    }
    assert!(listed.iter().all(|tool| tool.get("outputSchema").is_none()), "{list}");
    let echo = server.call("echo", json!({"message": "é"})).await;
    assert_eq!(text(&echo), "Echo: é");
    let image = server.call("get-tiny-image", json!({})).await;
    let types: Vec<&Value> =
        image["content"].as_array().expect("content").iter().map(|block| &block["type"]).collect();
    assert_eq!(types, ["text", "image"], "{image}");
    let weather = server.data("get-structured-content", json!({"location": "Chicago"})).await;
    assert!(weather["temperature"].is_number(), "{weather}");

    let params = json!({"name": "trigger-long-running-operation",
        "arguments": {"duration": 1, "steps": 4}, "_meta": {"progressToken": "t"}});
    let long = server.request("tools/call", params).await;
    assert!(text(&long["result"]).contains("completed"), "{long}");
    let is_progress = |one: &&Value| one["method"] == "notifications/progress";
    assert!(server.notifications.iter().any(|one| is_progress(&one)), "no progress was told");

    let prompts = server.request("prompts/list", json!({})).await;
    assert!(!prompts["result"]["prompts"].as_array().expect("prompts").is_empty(), "{prompts}");
    let prompt = server.request("prompts/get", json!({"name": "simple-prompt"})).await;
    assert!(prompt["result"]["messages"].is_array(), "{prompt}");
    let mut templates = Vec::new();
    let mut params = json!({});
    loop {
        let page = server.request("resources/templates/list", params).await;
        let found = page["result"]["resourceTemplates"].as_array().expect("templates").clone();
        templates.extend(found);
        let Some(cursor) = page["result"]["nextCursor"].as_str() else { break };
        params = json!({"cursor": cursor});
    }
    let all = json!(templates).to_string();
    assert!(all.contains("demo://") && all.contains("response://"), "both have a part: {all}");
    let uri = "demo://resource/dynamic/text/1";
    let read = server.request("resources/read", json!({"uri": uri})).await;
    assert_eq!(read["result"]["contents"][0]["uri"], uri, "{read}");
    assert!(server.close().await.success());
}

#[tokio::test]
async fn a_gateway_that_is_killed_says_what_it_does_not_know_and_keeps_what_it_does() {
    // [GATE-7, GATE-8, DUR-3]
    let home = TempDir::new().expect("a folder");
    let mut first = wrapped(home.path()).shake_hands().await;
    let submit = |tool: &str, inputs: Value| json!({"tool_name": tool, "inputs": inputs});
    let kept = first.data("submit_task", submit("echo", json!({"message": "kept"}))).await;
    let before = first.ended(&kept).await;
    assert_eq!(before["result"], "Echo: kept", "{before}");
    let long = submit("trigger-long-running-operation", json!({"duration": 600, "steps": 600}));
    let lost = first.data("submit_task", long).await;
    // The first report of the operation says that it runs.
    let mut status = Value::Null;
    while !status["progress"].is_object() {
        let read = json!({"task_id": lost["task_id"], "wait_s": 0.5});
        status = first.data("get_task_result", read).await;
    }
    first.child.kill().await.expect("killed");
    let mut second = wrapped(home.path()).shake_hands().await;
    assert_eq!(second.ended(&kept).await["result"], before["result"]);
    let ended = second.ended(&lost).await;
    let error = &ended["error"];
    assert_eq!((&error["code"], &error["guarantee"]), (&json!("worker_lost"), &json!("unknown")));
    assert!(second.close().await.success());
}
