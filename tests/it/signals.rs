//! A server that is stopped and goes on, and one that is told to end.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::durable::serve;
use crate::server::{Server, text};

/// Longer than the lease of an attempt.
const LEASE_AND_MORE: Duration = Duration::from_secs(32);

fn signal(server: &Server, signal: Signal) {
    let id = server.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    kill_process(id.expect("a process"), signal).expect("a signal");
}

#[tokio::test]
async fn a_server_that_was_stopped_for_longer_than_a_lease_kills_nothing_on_waking() {
    // [LEASE-8] Only real time passes for a process that is stopped.
    let folder = TempDir::new().expect("a folder");
    let open = folder.path().join("open");
    let mut server = serve(&folder).await;
    let submit = json!({"tool_name": "gate", "inputs": {"open": open}});
    let task = server.data("submit_task", submit).await;
    let follow = json!({"task_id": task["task_id"], "wait_s": 20});
    let logs = server.data("tail_task_logs", follow).await;
    assert_eq!(logs["lines"][0]["message"], "waiting", "{logs}");

    signal(&server, Signal::STOP);
    tokio::time::sleep(LEASE_AND_MORE).await;
    signal(&server, Signal::CONT);

    let id = json!({"task_id": task["task_id"]});
    let status = server.data("get_task_status", id).await;
    assert_eq!((&status["state"], &status["attempt"]), (&json!("running"), &json!(1)), "{status}");
    std::fs::write(&open, "").expect("written");
    let ended = server.ended(&task).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let ran = std::fs::read_to_string(folder.path().join("open.ran")).expect("a mark");
    assert_eq!(ran.lines().count(), 1, "it ran once: {ran}");
    assert!(server.close().await.success());
}

#[tokio::test]
async fn a_call_whose_program_runs_when_the_server_is_told_to_end_gets_its_id() {
    // [LEASE-9] [CANCEL-8]
    for end in [Signal::TERM, Signal::INT, Signal::HUP] {
        let folder = TempDir::new().expect("a folder");
        let open = folder.path().join("open");
        let mut server = serve(&folder).await;
        let arguments = json!({"open": open});
        let call = server
            .begin("tools/call", json!({"name": "patient_gate", "arguments": arguments}))
            .await;
        let mut tasks = json!([]);
        while tasks.as_array().is_none_or(Vec::is_empty) {
            tasks = server.data("list_tasks", json!({})).await["tasks"].clone();
        }
        let follow = json!({"task_id": tasks[0]["task_id"], "wait_s": 20});
        let logs = server.data("tail_task_logs", follow).await;
        assert_eq!(logs["lines"][0]["message"], "waiting", "its program runs: {logs}");
        signal(&server, end);
        let answer = server.read().await;
        assert_eq!(answer["id"], call, "{answer}");
        let handle: Value = serde_json::from_str(text(&answer["result"])).expect("JSON");
        assert_eq!(answer["result"]["isError"], json!(false), "{end:?}: {answer}");
        assert_eq!(handle["state"], "running", "{end:?}: {handle}");
        assert!(server.exit().await.success());

        std::fs::write(&open, "").expect("written");
        let mut next = serve(&folder).await;
        assert_eq!(next.ended(&handle).await["state"], "succeeded", "{end:?}: it went on");
        assert!(next.close().await.success());
    }
}
