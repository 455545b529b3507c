//! The budgeted call [CALL-1, CALL-2, CALL-3, CALL-5, CANCEL-7].

use std::time::Duration;

use raincheck_core::ids::{Spelling, TaskId};
use raincheck_mcp::{ClientTimeouts, Options};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::session::{Answer, Session, Setup};

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_in_time_answers_its_result_byte_for_byte() {
    // [CALL-1, RESULT-1]
    let mut session = Session::open().await;
    let text = r#"{"z":1.0,"a":1e2,"m":123456789012345678901234567890,"neg":-0.0,"e":"\u00e9\/é","":{"y":1,"x":2}}"#;
    let answer = session.call("echo", text).await;
    assert_eq!(answer.text, text);
    assert!(!answer.is_error);
    let spaced = r#"{ "b" : [1,  2] }"#;
    assert_eq!(session.call("echo", spaced).await.text, spaced);
    let listed = session.good("list_tasks", r#"{"tool_name":"echo"}"#).await;
    assert_eq!(listed["tasks"].as_array().expect("rows").len(), 2, "every call is one task");
}

#[tokio::test(start_paused = true)]
async fn a_call_beyond_its_budget_answers_a_handle_and_the_next_call() {
    // [CALL-1, CALL-2, TIME-1]
    let mut session = Session::open().await;
    let began = Instant::now();
    let answer = session.call("nap", r#"{"s":4}"#).await;
    assert_eq!(began.elapsed().as_secs(), 1, "the tool's own wait");
    assert!(!answer.is_error);
    let data = &answer.data;
    assert_eq!((&data["status"], &data["state"]), (&json!("running"), &json!("running")));
    let id: TaskId = data["task_id"].as_str().expect("an id").parse().expect("an id");
    assert_eq!(data["log_id"], id.spell(Spelling::Uuid));
    assert_eq!(data["partial_result"], json!({"dreams": 1}));
    assert_eq!(data["progress"]["message"], "\\x1b[2Jz", "escapes are shown, not sent");
    assert_eq!(data["poll_after_ms"], 500);
    assert!(data["timeout_at"].is_string(), "[TIME-7]");
    let words = data["message"].as_str().expect("words");
    assert!(words.contains("get_task_result") && words.contains("task_id"), "{words}");
    let next = &data["next"];
    assert_eq!(next["arguments"]["task_id"], data["task_id"]);
    let end =
        session.good(next["tool"].as_str().expect("a name"), &next["arguments"].to_string()).await;
    assert_eq!((&end["state"], &end["result"]), (&json!("succeeded"), &json!({"s": 4})));
}

#[tokio::test(start_paused = true)]
async fn the_client_s_ceiling_cuts_every_wait_counted_from_arrival() {
    // [CALL-2]
    let client_timeouts = ClientTimeouts::default().with("hasty", Duration::from_secs(5));
    let options = Options { client_timeouts, ..Options::new("0.0.0") };
    let setup = Setup { client: "Hasty Client", options, ..Setup::default() };
    let mut session = Session::open_with(setup).await;
    let began = Instant::now();
    let answer = session.call("held", r#"{"s":60}"#).await;
    assert_eq!(answer.data["status"], "running");
    assert_eq!(began.elapsed().as_secs(), 4, "five seconds less the margin");
    assert_eq!(answer.data["next"]["arguments"]["wait_s"], 4);
    let id = answer.data["task_id"].as_str().expect("an id").to_owned();
    let began = Instant::now();
    session.good("get_task_result", &format!(r#"{{"task_id":"{id}","wait_s":60}}"#)).await;
    assert_eq!(began.elapsed().as_secs(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_is_a_failed_call_with_the_error_object() {
    // [CALL-5, LEASE-4]
    let mut session = Session::open().await;
    let answer = session.call("fail", "{}").await;
    assert!(answer.is_error && answer.raw.get("error").is_none());
    let error = &answer.data["error"];
    assert_eq!(error["code"], "tool_failed");
    assert_eq!(error["message"], "exit code 3:\nlast \\x1b[31mwords");
    assert_eq!(
        (&error["guarantee"], &error["details"]["exit_code"]),
        (&json!("executed"), &json!(3))
    );
    assert_eq!(answer.data["status"], "failed");
    assert!(answer.data["task_id"].is_string());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_an_error_of_the_protocol() {
    // [CALL-5]
    let mut session = Session::open().await;
    let answer = session.request("tools/call", r#"{"name":"no_such_tool","arguments":{}}"#).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["data"]["code"], "unknown_tool");
}

#[tokio::test(start_paused = true)]
async fn inputs_that_do_not_fit_are_refused_by_name_and_nothing_runs() {
    let mut session = Session::open().await;
    let error = session.refused("typed", r#"{"frames":"many","token":"s3cr3t"}"#).await;
    assert_eq!(error["code"], "invalid_params");
    let words = error.to_string();
    assert!(words.contains("/frames") && words.contains("/token"), "{words}");
    assert!(!words.contains("s3cr3t") && !words.contains("many"), "no value comes back: {words}");
    let doubled = session.refused("echo", r#"{"a":1,"a":2}"#).await;
    assert_eq!(doubled["code"], "invalid_request");
    let half = session.refused("echo", r#"{"a":"\ud800"}"#).await;
    assert_eq!(half["code"], "invalid_request");
    assert_eq!(session.good("list_tasks", "{}").await["tasks"], json!([]));
    let odd = r#"{"a":"\u0000"}"#;
    assert_eq!(session.call("echo", odd).await.text, odd, "any valid string is kept");
}

/// Starts a call, cancels its request, and returns the state its task ended in.
async fn state_after_cancelled_call(tool: &str) -> Value {
    let mut session = Session::open().await;
    let id = session.begin_call(tool, r#"{"s":3}"#).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let note = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"user"}}}}"#
    );
    session.send(&format!("{note}\n{note}")).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let listed = session.good("list_tasks", "{}").await;
    assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(1));
    let rest = session.finish().await;
    let answered = rest.iter().any(|line| line.contains(&format!("\"id\":{id},")));
    assert!(!answered && session.beside().is_empty(), "no answer after a cancel [CALL-3]");
    listed["tasks"][0]["state"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_ends_its_task_as_the_tool_says() {
    // [CANCEL-7, CALL-3]
    assert_eq!(state_after_cancelled_call("held").await, "cancelled");
    assert_eq!(state_after_cancelled_call("nap").await, "succeeded");
}

#[tokio::test(start_paused = true)]
async fn results_that_are_not_objects_are_results() {
    // Case mcp-results-that-are-not-objects.
    for version in ["2025-06-18", "2024-11-05"] {
        let options = Options { is_structured: true, ..Options::new("0.0.0") };
        let mut session = Session::open_with(Setup { version, options, ..Setup::default() }).await;
        let values = [
            "[1,2]",
            "\"text\"",
            "null",
            "7",
            "true",
            "[]",
            "{}",
            "{\"structuredContent\":[1]}",
            "[{\"type\":\"text\",\"text\":\"x\"}]",
        ];
        for value in values {
            let arguments = json!({"text": value}).to_string();
            let answer = session.call("verbatim", &arguments).await;
            assert_eq!(answer.text, value);
            let structured = answer.raw["result"].get("structuredContent");
            let expected = value.starts_with('{').then_some(&answer.data);
            assert_eq!(structured, expected, "{value}");
            let id = session.submit("verbatim", &arguments).await;
            let read = format!(r#"{{"task_id":"{id}","wait_s":9}}"#);
            let result = session.call("get_task_result", &read).await;
            assert!(result.text.contains(&format!(r#""result":{value},"#)), "{}", result.text);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_stands_beside_the_json() {
    let mut session = Session::open().await;
    let answer = session.call("picture", "{}").await;
    assert_eq!(answer.text, r#"{"w":2,"h":1}"#);
    let content = &answer.raw["result"]["content"];
    assert_eq!(content[1], json!({"type": "image", "data": "cG5n", "mimeType": "image/png"}));
    let id = session.submit("picture", "{}").await;
    let id =
        session.begin_call("get_task_result", &format!(r#"{{"task_id":"{id}","wait_s":9}}"#)).await;
    let result = session.answer(&id).await;
    assert_eq!(result["result"]["content"].as_array().map(Vec::len), Some(2));
    assert_eq!(Answer::of(result).data["result"], json!({"w": 2, "h": 1}));
}
