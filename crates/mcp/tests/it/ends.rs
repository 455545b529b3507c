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
    let error = Answer::of(ended.clone()).data["error"].clone();
    assert_eq!((&error["code"], &error["guarantee"]), (&json!("cancelled"), &json!("unknown")));
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
    assert!(line.contains("cancelled"), "{line}");
    assert_eq!(session.line().await, None);
    let filter = Filter::default();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let page = session.handle.list(&Scope::local(), &filter, None, 9).await.expect("a list");
    assert_eq!(page.items[0].state.as_str(), "cancelled");
}
