//! Tasks in a file: what a killed server leaves, and what the next one finds.

use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::server::{Server, binary};

/// Starts a server on the store of a state folder: the default one.
pub(crate) async fn serve(folder: &TempDir) -> Server {
    let (state, run) = (folder.path().join("state"), folder.path().join("run"));
    Server::spawn_with(|command| {
        command.env_remove("RAINCHECK_STORE");
        command.env("RAINCHECK_STATE_DIR", state).env("RAINCHECK_RUNTIME_DIR", run);
    })
    .shake_hands()
    .await
}

async fn status(server: &mut Server, task: &Value) -> Value {
    server.data("get_task_status", json!({"task_id": task["task_id"]})).await
}

#[tokio::test]
async fn a_killed_server_loses_no_task_and_runs_none_twice() {
    // [DUR-1] [DUR-2] [DUR-3] [CANCEL-8] [LOG-1] [RESULT-1] [CMD-8]
    let folder = TempDir::new().expect("a folder");
    let open = folder.path().join("open");
    let mut server = serve(&folder).await;
    let mut tasks = Vec::new();
    for n in 0..4 {
        let inputs = json!({"open": open, "n": n});
        let submit =
            json!({"tool_name": "gate", "inputs": inputs, "idempotency_key": n.to_string()});
        tasks.push(server.data("submit_task", submit).await);
    }
    let follow = json!({"task_id": tasks[0]["task_id"], "wait_s": 20});
    let logs = server.data("tail_task_logs", follow).await;
    assert_eq!(logs["lines"][0]["message"], "waiting", "{logs}");
    server.child.kill().await.expect("killed");

    let mut server = serve(&folder).await;
    let first = status(&mut server, &tasks[0]).await;
    assert_eq!((&first["state"], &first["attempt"]), (&json!("running"), &json!(1)), "{first}");
    let again =
        json!({"tool_name": "gate", "inputs": {"open": open, "n": 3}, "idempotency_key": "3"});
    let again = server.data("submit_task", again).await;
    assert_eq!(again["task_id"], tasks[3]["task_id"], "the key is kept [IDEM-2]: {again}");
    std::fs::write(&open, "").expect("written");
    for task in &tasks {
        let ended = server.ended(task).await;
        assert_eq!(ended["state"], "succeeded", "{ended}");
    }
    let ran = std::fs::read_to_string(folder.path().join("open.ran")).expect("marks");
    let mut ran: Vec<&str> = ran.lines().collect();
    ran.sort_unstable();
    let mut ids: Vec<&str> = tasks.iter().filter_map(|task| task["task_id"].as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ran, ids, "each ran once");

    let refusal = json!({"tool_name": "broken", "inputs": {}});
    tasks.push(server.data("submit_task", refusal).await);
    let mut before = Vec::new();
    for task in &tasks {
        before.push(server.ended(task).await);
        assert_eq!(server.ended(task).await, before[before.len() - 1], "read twice");
    }
    assert!(server.close().await.success());
    let mut server = serve(&folder).await;
    for (task, before) in tasks.iter().zip(&before) {
        assert_eq!(&server.ended(task).await, before, "the marks, too [CALL-8]");
    }
    assert!(server.close().await.success());
    assert!(folder.path().join("state/raincheck/store.db").exists(), "the default store");
}

#[tokio::test]
async fn a_second_server_with_other_tools_is_told_who_owns_the_store() {
    // [DUR-4] [ATTACH-4]
    let folder = TempDir::new().expect("a folder");
    let mut owner = serve(&folder).await;
    assert_eq!(owner.data("list_tasks", json!({})).await["tasks"], json!([]));
    let pid = owner.child.id().expect("it runs").to_string();
    let mut command = Command::new(binary());
    let tools = crate::server::folder().join("tools/kill.toml");
    command.arg("serve").arg("--config").arg(tools).stderr(Stdio::null());
    command.env("RAINCHECK_STATE_DIR", folder.path().join("state"));
    command.env("RAINCHECK_RUNTIME_DIR", folder.path().join("run"));
    let mut second = Server::of(command).shake_hands().await;
    let tools = second.request("tools/list", json!({})).await;
    assert!(tools["result"]["tools"].is_array(), "a probe is answered [HOST-4]: {tools}");
    let refused = second.data("list_tasks", json!({})).await;
    assert_eq!(refused["error"]["code"], "storage_unavailable", "{refused}");
    let message = refused["error"]["message"].as_str().expect("words");
    assert!(message.contains(&pid) && message.contains("other tools or settings"), "{refused}");
    assert!(
        refused["error"]["hint"].as_str().is_some_and(|h| h.contains("--state-dir")),
        "{refused}"
    );
    assert!(owner.close().await.success());
    let mut taken = second.data("list_tasks", json!({})).await;
    while taken["error"]["recovery"] == "retry" {
        // A search that took long is not repeated at once.
        taken = second.data("list_tasks", json!({})).await;
    }
    assert_eq!(taken["tasks"], json!([]), "the store is free now: {taken}");
    assert!(second.close().await.success());
}
