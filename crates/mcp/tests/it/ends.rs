//! The end of a connection [CANCEL-7, CANCEL-8].

use std::time::Duration;

use raincheck_core::scope::Scope;
use raincheck_core::store::Filter;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::session::{Answer, Session};

#[tokio::test(start_paused = true)]
async fn an_idle_session_ends_at_once() {
    let mut session = Session::open().await;
    let began = Instant::now();
    assert_eq!(session.finish().await, Vec::<String>::new());
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_never_began_ends_at_once() {
    let mut session = Session::raw();
    assert_eq!(session.finish().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn requests_that_were_written_before_the_end_are_answered() {
    let mut session = Session::open().await;
    session.begin_call("echo", r#"{"a":1}"#).await;
    session.begin_call("nap", r#"{"s":0.2}"#).await;
    let rest = session.finish().await;
    assert_eq!(rest.len(), 2, "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn waiting_reads_answer_what_they_have_and_calls_end_as_their_tools_say() {
    let mut session = Session::open().await;
    let id = session.submit("nap", r#"{"s":600}"#).await;
    let wait = json!({"task_id": id, "wait_s": 20}).to_string();
    session.begin_call("get_task_result", &wait).await;
    session.begin_call("tail_task_logs", &wait).await;
    let held = session.begin_call("held", r#"{"s":600}"#).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    let rest = session.finish().await;
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
    assert_eq!(rest.len(), 3, "{rest:?}");
    let answers: Vec<Value> =
        rest.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let ended = answers.iter().find(|answer| answer["id"] == held).expect("an answer");
    // It was asked to end and has not ended yet: what is said of it is its id [LEASE-10].
    let left = Answer::of(ended.clone());
    assert!(!left.is_error && left.data["task_id"].is_string(), "{}", left.text);
    let view = session.handle.view(&Scope::local(), id.parse().expect("an id")).await;
    assert_eq!(view.expect("a view").record.state.as_str(), "running", "what has a handle goes on");
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_session_like_an_end_of_the_stream() {
    let mut session = Session::open().await;
    session.begin_call("held", r#"{"s":600}"#).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    session.stop.cancel();
    let line = session.line().await.expect("the call is answered");
    assert!(line.contains("task_id") && !line.contains("not_executed"), "{line}");
    assert_eq!(session.line().await, None);
    let filter = Filter::default();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let page = session.handle.list(&Scope::local(), &filter, None, 9).await.expect("a list");
    assert_eq!(page.items[0].state.as_str(), "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_cancelled_is_not_said_to_be() {
    // [CANCEL-3] [LEASE-10]
    let mut session = Session::open().await;
    session.begin_call("unyielding", r#"{"s":600}"#).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let rest = session.finish().await;
    let [line] = rest.as_slice() else { panic!("{rest:?}") };
    let left = Answer::of(serde_json::from_str(line).expect("JSON"));
    assert_eq!((left.is_error, &left.data["status"]), (false, &json!("running")), "{}", left.text);
    let id = left.data["task_id"].as_str().expect("its id").parse().expect("an id");
    let view = session.handle.view(&Scope::local(), id).await.expect("a view");
    assert!(view.record.cancel.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_progress_is_reported_all_the_time_gets_its_id_at_the_end() {
    // [CANCEL-7] [CALL-3]
    let percents: Vec<u32> = (0..100).collect();
    let arguments = json!({"percents": percents, "pause_ms": 260});
    let params = json!({"name": "steps", "arguments": arguments, "_meta": {"progressToken": "t"}});
    let mut session = Session::open().await;
    let id = session.begin("tools/call", &params.to_string()).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let rest = session.finish().await;
    let answers: Vec<Value> =
        rest.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let answer = answers.into_iter().find(|answer| answer["id"] == id).expect("an answer");
    let left = Answer::of(answer);
    assert!(left.data["task_id"].is_string(), "{}", left.text);
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_gives_its_id_also_to_a_client_that_did_not_read() {
    // [CALL-7] [LEASE-9]
    let mut session = Session::open().await;
    let big = json!({"v": "v".repeat(2 << 20)}).to_string();
    let read = session.submit("echo", &big).await;
    let nap = session.begin_call("nap", r#"{"s":600}"#).await;
    let wait = json!({"task_id": read, "wait_s": 9}).to_string();
    for _ in 0..12 {
        session.begin_call("get_task_result", &wait).await;
    }
    let submit = r#"{"tool_name":"nap","inputs":{"s":600}}"#;
    let submitted = session.begin_call("submit_task", submit).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    session.stop.cancel();
    tokio::time::sleep(Duration::from_millis(400)).await;
    for id in [nap, submitted] {
        let answer = Answer::of(session.answer(&id).await);
        assert!(answer.data["task_id"].is_string(), "{}", answer.text);
    }
}
