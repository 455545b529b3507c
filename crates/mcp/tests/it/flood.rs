//! Clients that ask much and read little [CALL-7, HOST-5].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use raincheck_mcp::{Answer, Answered, Caller, Desk, Layer, Options};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::session::{Session, Setup};

/// Counts the answers that are made.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<AtomicUsize>);

#[async_trait]
impl Layer for Counted {
    async fn finish(&self, _: &Desk, answer: Answer, _: Answered<'_>, _: &Caller) -> Answer {
        self.0.fetch_add(1, Ordering::SeqCst);
        answer
    }
}

/// Opens a session with a task whose result has 2 MB, and asks for it many times without reading.
async fn flooded(n_reads: usize) -> (Session, Counted, Vec<Value>) {
    let counted = Counted::default();
    let options = Options::new("0.0.0").wrap(counted.clone());
    let mut session = Session::open_with(Setup { options, ..Setup::default() }).await;
    let inputs = json!({"v": "v".repeat(2 << 20)}).to_string();
    let id = session.submit("echo", &inputs).await;
    let wait = json!({"task_id": id, "wait_s": 9}).to_string();
    let mut ids = Vec::new();
    for _ in 0..n_reads {
        ids.push(session.begin_call("get_task_result", &wait).await);
    }
    sleep(Duration::from_secs(20)).await;
    (session, counted, ids)
}

#[tokio::test(start_paused = true)]
async fn answers_that_nobody_reads_are_not_made() {
    let (mut session, counted, ids) = flooded(100).await;
    let n_made = counted.0.load(Ordering::SeqCst);
    assert!(n_made <= 12, "{n_made} answers of 2 MB wait");
    for id in ids {
        assert!(session.answer(&id).await["result"].is_object(), "none is lost");
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_stream_is_seen_while_nothing_is_read() {
    let (mut session, _, _) = flooded(100).await;
    let began = Instant::now();
    session.end_unread().await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_read_stops_waiting_and_its_answer_comes_under_no_id() {
    let mut session = Session::open().await;
    let id = session.submit("nap", r#"{"s":3}"#).await;
    for tool in ["get_task_result", "tail_task_logs"] {
        let call = json!({"jsonrpc": "2.0", "id": tool, "method": "tools/call",
            "params": {"name": tool, "arguments": {"task_id": id, "wait_s": 60}}});
        session.send(&call.to_string()).await;
        session.request("ping", "{}").await;
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": tool}});
        session.send(&cancel.to_string()).await;
        session.request("ping", "{}").await;
        // The read has ended, so its id can be used again, and what comes under it is the new answer.
        let again = json!({"jsonrpc": "2.0", "id": tool, "method": "ping"});
        session.send(&again.to_string()).await;
        assert_eq!(session.answer(&json!(tool)).await["result"], json!({}));
    }
    sleep(Duration::from_secs(60)).await;
    assert_eq!(session.finish().await, Vec::<String>::new());
    assert_eq!(session.beside(), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn reads_that_are_cancelled_leave_nothing_behind() {
    let mut session = Session::open().await;
    let id = session.submit("nap", r#"{"s":600}"#).await;
    for n in 0..10_000 {
        let call = json!({"jsonrpc": "2.0", "id": n, "method": "tools/call",
            "params": {"name": "get_task_result", "arguments": {"task_id": id, "wait_s": 60}}});
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": n}});
        session.send(&format!("{call}\n{cancel}")).await;
    }
    session.request("ping", "{}").await;
    assert_eq!(session.beside(), Vec::<Value>::new(), "none was refused");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_before_it_begins_runs_nothing() {
    let (mut session, _, ids) = flooded(100).await;
    let call = session.begin_call("echo", r#"{"n":1}"#).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": call}});
    session.send(&cancel.to_string()).await;
    for id in ids {
        session.answer(&id).await;
    }
    let listed = session.good("list_tasks", r#"{"tool_name":"echo"}"#).await;
    assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(1), "the one that is read");
}
