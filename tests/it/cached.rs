//! Large answers of the real binary: what a killed server leaves, filters without end, and the command line.

use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::durable::serve;
use crate::server::{Server, binary};

/// Calls a tool and reads the first of its blocks, whatever stands beside it.
async fn first(server: &mut Server, tool: &str, arguments: Value) -> Value {
    let result = server.call(tool, arguments).await;
    let text = result["content"][0]["text"].as_str().expect("a text");
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

async fn fetch(server: &mut Server, id: &str, action: &str, more: Value) -> Value {
    let mut arguments = json!({"cache_id": id, "action": action});
    let Value::Object(more) = more else { panic!("{more}") };
    arguments.as_object_mut().expect("an object").extend(more);
    first(server, "fetch_cached_response", arguments).await
}

fn items(n: usize) -> Value {
    let item = |n: usize| json!({"id": n, "name": format!("item {n:05}"), "pad": "x".repeat(60)});
    json!({"items": (0..n).map(item).collect::<Vec<_>>()})
}

/// Has an answer cached and returns its handle.
async fn handle(server: &mut Server, inputs: &Value) -> String {
    let told = first(server, "echo", inputs.clone()).await;
    assert_eq!(told["cached"], true, "{told}");
    told["cache_id"].as_str().expect("a handle").to_owned()
}

/// Runs `raincheck cache` on the state of a folder.
async fn cache(folder: &TempDir, arguments: &[&str]) -> String {
    let (is_good, printed, complaints) = said(folder, arguments).await;
    assert!(is_good, "{arguments:?}: {complaints}");
    printed
}

/// Runs `raincheck cache` and returns whether it succeeded, and what it printed.
async fn said(folder: &TempDir, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(binary());
    command.arg("cache").args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    command.env_remove("RAINCHECK_STORE");
    command.env("RAINCHECK_STATE_DIR", folder.path().join("state"));
    command.env("RAINCHECK_RUNTIME_DIR", folder.path().join("run"));
    let output = command.output().await.expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn handles_outlive_a_killed_server_and_a_person_sees_them() {
    // [CACHE-9] [CACHE-5]
    let folder = TempDir::new().expect("a folder");
    let mut server = serve(&folder).await;
    let inputs = items(600);
    let (kept, gone) = (handle(&mut server, &inputs).await, handle(&mut server, &items(700)).await);
    fetch(&mut server, &gone, "delete", json!({})).await;
    server.child.kill().await.expect("killed");

    let listed: Value =
        serde_json::from_str(&cache(&folder, &["list", "--json"]).await).expect("JSON");
    assert_eq!(listed["items"][0]["cache_id"], json!(kept), "without a server: {listed}");
    let (is_good, _, complaints) = said(&folder, &["show", "nonsense"]).await;
    assert!(!is_good && complaints.contains("no cached response of this id"), "{complaints}");
    assert!(!complaints.contains("server"), "there is none: {complaints}");

    let mut server = serve(&folder).await;
    let page = json!({"path": "/items/3"});
    let read = fetch(&mut server, &kept, "get_page", page).await;
    assert_eq!(read["data"]["data"], inputs["items"][3], "{read}");
    assert!(read["data"]["untrusted_ends"].is_string(), "the mark is there again: {read}");
    let miss = fetch(&mut server, &gone, "get_page", json!({})).await;
    assert_eq!(miss["error"]["details"]["reason"], "deleted", "{miss}");
    assert_eq!(miss["error"]["details"]["rerun"]["tool"], "echo", "{miss}");

    assert!(cache(&folder, &["list"]).await.contains(&kept), "through the server");
    assert!(cache(&folder, &["show", &kept]).await.contains(".items[].name"));
    assert_eq!(cache(&folder, &["clear"]).await, "1 cached response deleted\n");
    let miss = fetch(&mut server, &kept, "info", json!({})).await;
    assert_eq!(miss["error"]["details"]["reason"], "deleted", "{miss}");
    assert!(server.close().await.success());
}

#[tokio::test]
async fn a_filter_without_end_is_ended_and_keeps_nobody_waiting() {
    // [CACHE-10]
    let folder = TempDir::new().expect("a folder");
    let mut server = serve(&folder).await;
    let id = handle(&mut server, &items(600)).await;
    let endless = json!({"cache_id": id, "action": "filter", "jq_filter": "def f: f; f"});
    let call = json!({"name": "fetch_cached_response", "arguments": endless});
    let mut waiting = Vec::new();
    for _ in 0..6 {
        waiting.push(server.begin("tools/call", call.clone()).await);
    }
    // The next answers are those of the calls that came after: no filter has ended yet.
    let rows = first(&mut server, "list_tasks", json!({})).await;
    assert!(rows["tasks"].is_array(), "{rows}");
    let page = fetch(&mut server, &id, "get_page", json!({"page_size_kb": 8})).await;
    assert_eq!(page["success"], true, "{page}");
    while !waiting.is_empty() {
        let answer = server.read().await;
        waiting.retain(|id| answer["id"] != *id);
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
        assert!(text.contains("filter_limit"), "{text}");
    }
    let after = json!({"jq_filter": "[.items[] | select(.id % 2 == 0)] | length"});
    let made = fetch(&mut server, &id, "filter", after).await;
    assert_eq!(made["data"]["outputs"], json!([300]), "{made}");
    for secret in ["env", "$ENV", "input", "halt", "import \"a\" as a; ."] {
        let told = fetch(&mut server, &id, "filter", json!({"jq_filter": secret})).await;
        assert!(!told.to_string().contains("PATH"), "{secret}: {told}");
    }
    assert!(server.close().await.success());
}
