//! `raincheck status` beside a server.

use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::durable::serve;
use crate::server::binary;

async fn status(folder: &TempDir, arguments: &[&str]) -> String {
    let mut command = Command::new(binary());
    command.arg("status").args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    command.env("RAINCHECK_STATE_DIR", folder.path().join("state"));
    command.env("RAINCHECK_RUNTIME_DIR", folder.path().join("run"));
    let output = command.output().await.expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Reads the workers of the one server that runs.
async fn workers(folder: &TempDir) -> Vec<Value> {
    let report: Value = serde_json::from_str(&status(folder, &["--json"]).await).expect("JSON");
    report["servers"][0]["workers"].as_array().unwrap_or_else(|| panic!("{report}")).clone()
}

#[tokio::test]
async fn who_works_at_what_is_shown_under_the_name_that_the_task_tells() {
    // [QUEUE-7]
    let folder = TempDir::new().expect("a folder");
    let mut server = serve(&folder).await;
    server.data("list_tasks", json!({})).await;
    let idle = workers(&folder).await;
    assert!(idle.len() >= 7, "a worker for every place of every lane: {idle:?}");
    assert!(idle.iter().all(|worker| worker["state"] == "idle"), "{idle:?}");

    let open = folder.path().join("open");
    let submit = json!({"tool_name": "gate", "inputs": {"open": open}});
    let task = server.data("submit_task", submit).await;
    let follow = json!({"task_id": task["task_id"], "wait_s": 20});
    server.data("tail_task_logs", follow).await;
    let told = server.data("get_task_status", json!({"task_id": task["task_id"]})).await;
    let all = workers(&folder).await;
    let busy: Vec<_> = all.iter().filter(|worker| worker["state"] == "busy").collect();
    let [worker] = busy[..] else { panic!("one has a task: {all:?}") };
    assert_eq!(
        (&worker["id"], &worker["lane"], &worker["current_task"]),
        (&told["worker_id"], &told["queue"], &task["task_id"])
    );
    assert!(worker["last_heartbeat"].is_string(), "{worker}");
    assert_eq!(all.len(), idle.len());
    let text = status(&folder, &[]).await;
    let id = worker["id"].as_str().expect("a name");
    assert!(text.contains(id) && text.contains("idle"), "{text}");

    std::fs::write(&open, "").expect("written");
    server.ended(&task).await;
    assert_eq!(workers(&folder).await, idle);
    assert!(server.close().await.success());
}
