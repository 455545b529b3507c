//! How the server behaves as a process [HOST-1..5].

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::server::{Server, message, text};

#[expect(clippy::disallowed_methods, reason = "the time is measured from outside")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test]
async fn it_exits_when_stdin_ends() {
    let server = Server::start().await;
    let began = now();
    let status = server.close().await;
    assert!(status.success(), "{status}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn it_exits_on_sigterm_and_takes_its_programs_along() {
    let mut server = Server::start().await;
    let slow = server.data("slow", json!({})).await;
    assert_eq!(slow["status"], "running", "{slow}");
    let id = server.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    kill_process(id.expect("a process"), Signal::TERM).expect("a signal");
    let status = server.exit().await;
    assert!(status.success(), "{status}");
    let task = slow["task_id"].as_str().expect("an id").to_owned();
    assert_eq!(processes_of(&task), Vec::<String>::new());
}

/// Lists the processes whose environment names a task.
pub(crate) fn processes_of(task: &str) -> Vec<String> {
    let wanted = format!("RAINCHECK_TASK_ID={task}");
    let processes = std::fs::read_dir("/proc").expect("a process list");
    processes
        .flatten()
        .filter(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes())
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[tokio::test]
async fn broken_lines_are_answered_and_the_server_goes_on() {
    let mut server = Server::start().await;
    for (line, code) in [
        ("{\"jsonrpc\":\"2.0\",\"id\":1,", -32700),
        ("nonsense", -32700),
        ("[]", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"no/such\"}", -32601),
    ] {
        server.send_bytes(format!("{line}\n").as_bytes()).await;
        let answer = server.read().await;
        assert_eq!(answer["error"]["code"], code, "{line} was answered {answer}");
    }
    server.send_bytes(b"\r\n\n").await;
    let echo = server.call("echo", json!({"still": "there"})).await;
    assert_eq!(text(&echo), r#"{"still":"there"}"#);
    assert!(server.close().await.success());
}

#[tokio::test]
async fn the_handshake_needs_no_state_folder() {
    // [HOST-4]: a client that only looks at the server leaves nothing behind.
    let mut server = Server::spawn();
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}});
    let answer = server.request("initialize", params).await;
    assert!(answer["result"]["instructions"].as_str().is_some_and(|text| text.len() < 2048));
    let pong = server.request("ping", json!({})).await;
    assert_eq!(pong["result"], json!({}), "{pong}");
    assert!(server.close().await.success());
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_nothing() {
    // [HOST-5]: far more answers than a pipe holds are asked for before the first is read.
    let mut server = Server::start().await;
    let n_requests: u64 = 2_000;
    let mut lines = String::new();
    for id in 1..=n_requests {
        let list = json!({"jsonrpc": "2.0", "id": id + 1_000_000, "method": "tools/list"});
        lines += &format!("{list}\n");
    }
    let mut stdin = server.stdin.take().expect("an open stdin");
    let write = async {
        tokio::io::AsyncWriteExt::write_all(&mut stdin, lines.as_bytes()).await.expect("written");
        stdin
    };
    let read = async {
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < usize::try_from(n_requests).expect("few") {
            let line = server.stdout.next_line().await.expect("UTF-8").expect("an answer");
            let id = message(&line)["id"].as_u64().expect("an id");
            assert!(seen.insert(id), "{id} was answered twice");
        }
    };
    let both = async { tokio::join!(write, read) };
    let (stdin, ()) = tokio::time::timeout(Duration::from_secs(60), both).await.expect("in time");
    server.stdin = Some(stdin);
    assert!(server.close().await.success());
}

#[tokio::test]
async fn a_server_nobody_reads_still_exits() {
    let mut server = Server::start().await;
    let list = format!("{}\n", json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}));
    let mut stdin = server.stdin.take().expect("an open stdin");
    let flood = list.repeat(200);
    let write = tokio::io::AsyncWriteExt::write_all(&mut stdin, flood.as_bytes());
    // The server may stop reading; what was not taken by then is not sent.
    let _ = tokio::time::timeout(Duration::from_millis(500), write).await;
    drop(stdin);
    let waited = tokio::time::timeout(Duration::from_secs(10), server.child.wait()).await;
    assert!(waited.expect("in time").expect("a status").success());
}

#[tokio::test]
async fn logs_that_nobody_reads_do_not_hold_the_server_up() {
    // [HOST-1]: far more is logged than the pipe of stderr holds.
    let server = Server::spawn_with(|command| {
        command.stderr(std::process::Stdio::piped()).env("RAINCHECK_LOG_LEVEL", "trace");
    });
    let mut server = server.shake_hands().await;
    let unread = server.child.stderr.take().expect("a pipe");
    for n in 0..300 {
        let task =
            server.data("submit_task", json!({"tool_name": "queued", "inputs": {"n": n}})).await;
        if let Some(id) = task.get("task_id") {
            server.data("cancel_task", json!({"task_id": id})).await;
        }
    }
    assert!(server.close().await.success());
    drop(unread);
}
