//! `raincheck tasks` beside a server, and after it.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::durable::serve;
use crate::server::binary;

/// Runs `raincheck tasks` on the state of a folder.
async fn tasks(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("tasks").args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    command.env_remove("RAINCHECK_STORE");
    command.env("RAINCHECK_STATE_DIR", folder.path().join("state"));
    command.env("RAINCHECK_RUNTIME_DIR", folder.path().join("run"));
    command.output().await.expect("it runs")
}

/// Runs `raincheck tasks`, which must do what it is asked, and returns what it printed.
async fn good(folder: &TempDir, arguments: &[&str]) -> String {
    let output = tasks(folder, arguments).await;
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {complaints}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

async fn data(folder: &TempDir, arguments: &[&str]) -> Value {
    let told = good(folder, &[arguments, &["--json"]].concat()).await;
    serde_json::from_str(&told).unwrap_or_else(|_| panic!("no JSON: {told}"))
}

/// Runs `raincheck tasks`, which must refuse, and returns its complaint.
async fn refused(folder: &TempDir, arguments: &[&str]) -> String {
    let output = tasks(folder, arguments).await;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{arguments:?}");
    assert!(complaint.contains("next: "), "{complaint}");
    complaint
}

fn id(task: &Value) -> &str {
    task["task_id"].as_str().expect("an id")
}

/// Checks that a history is one chain, and returns where it ends.
fn chain(shown: &Value) -> &str {
    let events = shown["events"].as_array().expect("events");
    assert_eq!((&events[0]["event"], &events[0]["from"]), (&json!("received"), &Value::Null));
    for (n, pair) in events.windows(2).enumerate() {
        assert_eq!(pair[1]["from"], pair[0]["to"], "entry {n}: {shown}");
        assert_eq!(pair[1]["seq"], n + 2, "entry {n}: {shown}");
    }
    events.last().and_then(|last| last["to"].as_str()).expect("a state")
}

#[tokio::test]
async fn what_a_server_keeps_is_shown_beside_it_and_after_it() {
    // [TOOL-8] [STATE-4] [SCOPE-2] [SEC-10] [SEC-11]
    let folder = TempDir::new().expect("a folder");
    let complaint = refused(&folder, &["list"]).await;
    assert!(complaint.contains("--state-dir"), "{complaint}");
    let mut server = serve(&folder).await;
    let echo = json!({"tool_name": "echo", "inputs": {"z": 1.0, "a": 2}, "tags": ["a\u{1b}[31m"]});
    let echo = server.data("submit_task", echo).await;
    let secret = json!({"tool_name": "artifact", "inputs": {"token": "hush-hush"}});
    let secret = server.data("submit_task", secret).await;
    server.ended(&echo).await;
    let ended = server.ended(&secret).await;

    let mut before = None;
    for server in [Some(server), None] {
        let listed = data(&folder, &["list"]).await;
        let ids: Vec<&str> = listed["tasks"].as_array().expect("tasks").iter().map(id).collect();
        assert_eq!(ids, [id(&secret), id(&echo)], "newest first");
        let table = good(&folder, &["list", "--state", "succeeded", "--tool", "echo"]).await;
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].starts_with("TASK ") && lines[0].contains("STATE"), "{table}");
        assert!(lines.len() == 2 && lines[1].starts_with(id(&echo)), "{table}");

        let shown = data(&folder, &["show", id(&echo)]).await;
        assert_eq!((&shown["state"], chain(&shown)), (&json!("succeeded"), "succeeded"));
        assert_eq!(shown["inputs_bytes"], r#"{"a":2,"z":1.0}"#.len(), "{shown}");
        let raw = good(&folder, &["show", id(&echo), "--json"]).await;
        assert!(raw.contains(r#""result":{"a":2,"z":1.0}"#), "bytes stay bytes: {raw}");
        let text = good(&folder, &["show", id(&echo)]).await;
        assert!(!text.contains('\u{1b}') && text.contains("received"), "{text}");

        let shown = data(&folder, &["show", id(&secret)]).await;
        assert_eq!(shown["artifacts"][0]["sha256"], ended["artifacts"][0]["sha256"], "{shown}");
        let logs = good(&folder, &["logs", id(&secret)]).await;
        let texts = [good(&folder, &["show", id(&secret)]).await, shown.to_string(), logs.clone()];
        for text in &texts {
            assert!(!text.contains("hush-hush") && !text.contains('\u{1b}'), "{text}");
        }
        let lines = good(&folder, &["logs", id(&secret), "--json", "--follow"]).await;
        let numbers: Vec<u64> = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["seq"].as_u64())
            .map(|seq| seq.expect("a number"))
            .collect();
        assert!(!numbers.is_empty() && numbers.iter().copied().eq(1..=numbers.len() as u64));
        assert_eq!(logs.lines().count(), numbers.len(), "{logs}");

        let foreign = refused(&folder, &["show", id(&echo), "--scope", "other"]).await;
        assert!(foreign.contains("no task"), "{foreign}");
        let again = data(&folder, &["cancel", id(&echo)]).await;
        assert_eq!((&again["state"], &again["acknowledged"]), (&json!("succeeded"), &json!(false)));

        let all = (listed, shown);
        assert!(before.is_none_or(|before| before == all), "the server's end changes nothing");
        before = Some(all);
        if let Some(server) = server {
            assert!(server.close().await.success());
        }
    }
}

#[tokio::test]
async fn a_task_without_a_server_is_cancelled_by_hand_and_the_next_server_ends_its_program() {
    // [TOOL-8] [CANCEL-1] [DUR-3] [DUR-4]
    let folder = TempDir::new().expect("a folder");
    let open = folder.path().join("open");
    let mut server = serve(&folder).await;
    let mut gates = Vec::new();
    for n in 0..3 {
        let submit = json!({"tool_name": "gate", "inputs": {"open": open, "n": n}});
        gates.push(server.data("submit_task", submit).await);
    }
    for gate in &gates[..2] {
        let follow = json!({"task_id": gate["task_id"], "wait_s": 20});
        let logs = server.data("tail_task_logs", follow).await;
        assert_eq!(logs["lines"][0]["message"], "waiting", "{logs}");
    }
    server.child.kill().await.expect("killed");

    let queued = data(&folder, &["show", id(&gates[2])]).await;
    assert_eq!((&queued["state"], &queued["position"]), (&json!("queued"), &json!(0)), "{queued}");
    let told = good(&folder, &["cancel", id(&gates[2]), "--reason", "enough"]).await;
    assert!(told.contains("is cancelled"), "{told}");
    let told = good(&folder, &["cancel", id(&gates[0])]).await;
    assert!(told.contains("no server runs"), "{told}");
    let told = refused(&folder, &["logs", "--follow", id(&gates[0])]).await;
    assert!(told.contains("no server"), "{told}");

    let mut server = serve(&folder).await;
    assert_eq!(server.ended(&gates[0]).await["state"], "cancelled");
    std::fs::write(&open, "").expect("written");
    assert_eq!(server.ended(&gates[1]).await["state"], "succeeded");
    let shown = data(&folder, &["show", id(&gates[2])]).await;
    assert_eq!((chain(&shown), &shown["attempt"]), ("cancelled", &json!(0)));
    assert_eq!(shown["cancel_reason"], "enough", "{shown}");
    assert!(server.close().await.success());
}

#[tokio::test]
async fn a_program_that_ended_while_no_server_ran_is_shown_as_ended_then_and_later() {
    // [TIME-5] [TOOL-8] [DUR-3]
    let folder = TempDir::new().expect("a folder");
    let open = folder.path().join("open");
    let mut server = serve(&folder).await;
    let submit = json!({"tool_name": "gate", "inputs": {"open": open}});
    let gate = server.data("submit_task", submit).await;
    let follow = json!({"task_id": gate["task_id"], "wait_s": 20});
    let logs = server.data("tail_task_logs", follow).await;
    assert_eq!(logs["lines"][0]["message"], "waiting", "{logs}");
    server.child.kill().await.expect("killed");

    std::fs::write(&open, "").expect("written");
    let mut shown = good(&folder, &["show", id(&gate)]).await;
    while !shown.contains("while no server ran") {
        shown = good(&folder, &["show", id(&gate)]).await;
    }
    let ended = shown.lines().find_map(|line| line.trim().strip_prefix("ended"));
    let ended = ended.and_then(|text| text.trim().split(',').next()).expect("an instant");
    let listed = good(&folder, &["list"]).await;
    assert!(listed.contains("for the next server to record"), "{listed}");
    let shown = data(&folder, &["show", id(&gate)]).await;
    let listed = data(&folder, &["list"]).await;
    assert_eq!((&shown["state"], &shown["program_ended_at"]), (&json!("running"), &json!(ended)));
    assert_eq!(listed["tasks"][0]["program_ended_at"], ended, "{listed}");

    let mut server = serve(&folder).await;
    assert_eq!(server.ended(&gate).await["completed_at"], ended);
    let shown = good(&folder, &["show", id(&gate)]).await;
    assert!(shown.contains(ended) && !shown.contains("while no server ran"), "{shown}");
    let shown = data(&folder, &["show", id(&gate)]).await;
    assert!(shown.get("program_ended_at").is_none(), "it is on record: {shown}");
    assert!(server.close().await.success());
}
