//! The task tools for programs that are no MCP client.

use std::time::Duration;

use raincheck_mcp::Control;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::session::Session;

async fn raw(control: &Control, body: &str) -> (u16, Value) {
    let reply = control.call(body.as_bytes(), CancellationToken::new()).await;
    (reply.status, serde_json::from_str(&reply.body).expect("JSON"))
}

async fn call(control: &Control, tool: &str, arguments: Value) -> (u16, Value) {
    let call = json!({"scope": "local", "tool": tool, "arguments": arguments});
    raw(control, &call.to_string()).await
}

async fn open() -> (Session, Control) {
    let session = Session::open().await;
    let control = Control::new(session.handle.clone(), None);
    (session, control)
}

#[tokio::test(start_paused = true)]
async fn the_answers_are_those_of_the_tools() {
    let (mut session, control) = open().await;
    let id = session.submit("echo", r#"{"z":1.0}"#).await;
    let ended = session.end_of(&id).await;
    let task = json!({"task_id": id});
    let (code, again) = call(&control, "get_task_result", task.clone()).await;
    assert_eq!(code, 200);
    assert_eq!(again, ended);
    let status = session.good("get_task_status", &task.to_string()).await;
    assert_eq!(call(&control, "get_task_status", task).await, (200, status));
    let (code, listed) = call(&control, "list_tasks", Value::Null).await;
    assert_eq!((code, &listed["tasks"][0]["task_id"]), (200, &json!(id)));
}

#[tokio::test(start_paused = true)]
async fn a_log_is_followed_and_a_task_cancelled() {
    let (mut session, control) = open().await;
    let id = session.submit("chatter", r#"{"n":2,"pause_ms":5000}"#).await;
    let mut follow = json!({"task_id": id, "wait_s": 20});
    for n in 0..2 {
        let (code, part) = call(&control, "tail_task_logs", follow.clone()).await;
        assert_eq!((code, &part["lines"][0]["message"]), (200, &json!(format!("line {n}"))));
        follow["cursor"] = part["next_cursor"].clone();
    }
    let id = session.submit("nap", r#"{"s":600}"#).await;
    let (code, cancelled) = call(&control, "cancel_task", json!({"task_id": id})).await;
    assert_eq!((code, &cancelled["acknowledged"]), (200, &json!(true)), "[CANCEL-2] {cancelled}");
    assert_eq!(session.end_of(&id).await["state"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_scope_sees_its_own_tasks_only() {
    let (mut session, control) = open().await;
    let id = session.submit("echo", "{}").await;
    let call = json!({"scope": "other", "tool": "get_task_status", "arguments": {"task_id": id}});
    let (code, refused) = raw(&control, &call.to_string()).await;
    assert_eq!((code, &refused["error"]["code"]), (404, &json!("not_found")), "[SCOPE-2]");
}

#[tokio::test(start_paused = true)]
async fn a_failure_has_the_status_and_the_fields_of_the_error_table() {
    let (_session, control) = open().await;
    let unknown = json!({"task_id": "tsk_00000000000000000000000000"});
    let cases = [
        (call(&control, "get_task_result", unknown).await, 404, "not_found"),
        (call(&control, "list_tasks", json!({"limit": 0})).await, 400, "invalid_params"),
        (call(&control, "submit_task", json!({})).await, 404, "unknown_tool"),
        (call(&control, "echo", json!({})).await, 404, "unknown_tool"),
        (raw(&control, r#"{"tool":"list_tasks"}"#).await, 400, "invalid_params"),
        (raw(&control, r#"{"scope":"","tool":"list_tasks"}"#).await, 400, "invalid_params"),
        (raw(&control, r#"{"scope":"a","tool":"list_tasks","x":1}"#).await, 400, "invalid_params"),
        (raw(&control, r#"{"scope":"a","scope":"b"}"#).await, 400, "invalid_request"),
        (raw(&control, "").await, 400, "invalid_request"),
        (raw(&control, &"[".repeat(1000)).await, 400, "invalid_request"),
    ];
    for ((code, answer), status, kind) in cases {
        assert_eq!((code, &answer["error"]["code"]), (status, &json!(kind)), "[CALL-5] {answer}");
        // A guarantee is told of work, or of a call whose very form was refused [LEASE-4].
        let guarantee = (kind != "not_found").then_some("not_executed");
        assert_eq!(answer["error"]["guarantee"].as_str(), guarantee, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_listener_closes() {
    let (mut session, control) = open().await;
    let id = session.submit("nap", r#"{"s":600}"#).await;
    let wait = json!({"task_id": id, "wait_s": 60});
    let call = json!({"scope": "local", "tool": "get_task_result", "arguments": wait}).to_string();
    let closing = CancellationToken::new();
    let close = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        closing.cancel();
    };
    let began = tokio::time::Instant::now();
    let (reply, ()) = tokio::join!(control.call(call.as_bytes(), closing.clone()), close);
    assert_eq!(reply.status, 200);
    assert_eq!(began.elapsed(), Duration::from_secs(5));
}
