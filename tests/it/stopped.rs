//! Windows that are stopped (SIGSTOP) while others go on, and what they find when they are continued.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::attach::{call_gate, data, n_runs};
use crate::durable::serve;
use crate::server::{PATIENCE, Server};

fn pid(window: &Server) -> Pid {
    let pid = window.child.id().and_then(|pid| i32::try_from(pid).ok());
    pid.and_then(Pid::from_raw).expect("it runs")
}

/// Stops a process, and waits until it stands.
async fn hold(window: &Server) {
    let pid = pid(window);
    kill_process(pid, Signal::STOP).expect("a signal");
    // Its parent is told when all of it stands.
    let events = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let standing = spawn_blocking(move || waitid(WaitId::Pid(pid), events));
    let standing = timeout(PATIENCE, standing).await.expect("in time").expect("no panic");
    assert!(standing.expect("a child").is_some_and(|event| event.stopped()), "it ended");
}

fn go_on(window: &Server) {
    kill_process(pid(window), Signal::CONT).expect("a signal");
}

fn owner_of(folder: &Path) -> String {
    let lock = folder.join("state/raincheck/store.db.owner/lock");
    std::fs::read_to_string(lock).expect("a lock").trim().to_owned()
}

/// Looks at the answer to a call of the gate. On a machine that is busy it took longer than the call waits.
async fn assert_opened(window: &mut Server, answer: &Value) {
    let told = data(answer);
    if told.get("task_id").is_some() {
        let ended = window.ended(&told).await;
        assert_eq!(ended["state"], "succeeded", "{ended}");
    } else {
        assert_eq!(told, json!({"opened": true}));
    }
}

#[tokio::test]
async fn nobody_takes_over_from_an_owner_that_is_stopped_and_it_goes_on_where_it_was() {
    // [ATTACH-8] [ATTACH-5] [LEASE-8]
    let folder = TempDir::new().expect("a folder");
    let mut owner = serve(&folder).await;
    owner.data("list_tasks", json!({})).await;
    let mut next = serve(&folder).await;
    let gate = folder.path().join("gate");
    let open = call_gate(&mut next, &gate).await;
    hold(&owner).await;
    // One that is attached waits; one that comes is told who does not answer.
    let asked = next.begin("tools/call", json!({"name": "echo", "arguments": {"a": 1}})).await;
    let mut late = serve(&folder).await;
    let refused = late.data("echo", json!({"b": 1})).await;
    let message = refused["error"]["message"].as_str().expect("words");
    assert!(message.contains("does not answer"), "{refused}");
    assert_eq!(refused["error"]["guarantee"], "not_executed", "{refused}");
    assert_eq!(owner_of(folder.path()), pid(&owner).as_raw_nonzero().to_string());
    // What ran goes on, and ends while the owner stands.
    std::fs::write(&gate, "").expect("written");
    go_on(&owner);
    let answers = [next.read().await, next.read().await];
    let of = |id: u64| answers.iter().find(|answer| answer["id"] == json!(id)).expect("an answer");
    assert_eq!(data(of(asked)), json!({"a": 1}));
    assert_opened(&mut next, of(open)).await;
    assert_eq!(n_runs(&gate), 1);
    // It looks again with a later call.
    let served = async {
        while late.data("echo", json!({"c": 1})).await != json!({"c": 1}) {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, served).await.expect("in time");
    assert_eq!(owner_of(folder.path()), pid(&owner).as_raw_nonzero().to_string());
    for window in [late, next, owner] {
        assert!(window.close().await.success());
    }
}

#[tokio::test]
async fn a_window_that_is_stopped_over_a_change_of_the_owner_gets_its_answer() {
    // [ATTACH-5] [ATTACH-6]
    let folder = TempDir::new().expect("a folder");
    let mut owner = serve(&folder).await;
    owner.data("list_tasks", json!({})).await;
    let (mut next, mut last) = (serve(&folder).await, serve(&folder).await);
    let gate = folder.path().join("gate");
    let id = call_gate(&mut next, &gate).await;
    hold(&next).await;
    owner.child.kill().await.expect("killed");
    let listed = last.data("list_tasks", json!({})).await;
    assert_eq!(listed["tasks"][0]["state"], "running", "{listed}");
    assert_eq!(owner_of(folder.path()), pid(&last).as_raw_nonzero().to_string());
    // It ends while the window that asked for it stands.
    std::fs::write(&gate, "").expect("written");
    let ended = last.ended(&listed["tasks"][0]).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    go_on(&next);
    let answer = next.read().await;
    assert_eq!(answer["id"], json!(id));
    assert_opened(&mut next, &answer).await;
    assert_eq!(n_runs(&gate), 1);
    assert!(last.close().await.success());
    assert!(next.close().await.success());
}

#[tokio::test]
async fn a_call_whose_store_was_put_aside_is_not_run_again() {
    // [ATTACH-6] [LEASE-9] [DUR-5]
    let folder = TempDir::new().expect("a folder");
    let mut owner = serve(&folder).await;
    owner.data("list_tasks", json!({})).await;
    let mut next = serve(&folder).await;
    let gates = ["one", "two"].map(|name| folder.path().join(name));
    for gate in &gates {
        call_gate(&mut next, gate).await;
    }
    hold(&next).await;
    owner.child.kill().await.expect("killed");
    let state = folder.path().join("state/raincheck");
    std::fs::write(state.join("store.db"), "no database").expect("written");
    std::fs::remove_file(state.join("store.db-wal")).expect("it was killed");
    go_on(&next);
    for _ in &gates {
        let answer = next.read().await;
        let told: Value = data(&answer);
        if told.get("task_id").is_some() {
            // It was answered before its owner was killed.
            continue;
        }
        assert_eq!(told["error"]["guarantee"], "unknown", "{answer}");
    }
    let listed = next.data("list_tasks", json!({})).await;
    assert_eq!(listed["tasks"], json!([]), "nothing runs in the new store");
    // The programs of the first owner end.
    for gate in &gates {
        std::fs::write(gate, "").expect("written");
    }
    assert!(next.close().await.success());
}
