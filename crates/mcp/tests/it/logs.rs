//! `tail_task_logs` [LOG-1, CALL-4].

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::session::Session;

async fn page(session: &mut Session, id: &str, more: &Value) -> Value {
    let mut arguments = json!({"task_id": id});
    for (name, value) in more.as_object().expect("an object") {
        arguments[name] = value.clone();
    }
    session.good("tail_task_logs", &arguments.to_string()).await
}

#[tokio::test(start_paused = true)]
async fn pages_have_no_gap_and_no_repeat() {
    let mut session = Session::open().await;
    let id = session.submit("chatter", r#"{"n":25}"#).await;
    session.end_of(&id).await;
    let mut seen = Vec::new();
    let mut more = json!({"limit": 10});
    loop {
        let page = page(&mut session, &id, &more).await;
        let lines = page["lines"].as_array().expect("lines").clone();
        assert_eq!(page["truncated"], seen.len() + lines.len() < 25);
        if lines.is_empty() {
            break;
        }
        seen.extend(lines);
        more["cursor"] = page["next_cursor"].clone();
    }
    assert_eq!(seen.len(), 25);
    for (place, line) in seen.iter().enumerate() {
        assert_eq!(line["seq"], place + 1);
        assert_eq!(line["message"], format!("line {place}"));
        assert_eq!((&line["stream"], &line["level"]), (&json!("stdout"), &json!("info")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_read_wakes_on_the_first_line_and_on_the_end() {
    // [CALL-4]
    let mut session = Session::open().await;
    let id = session.submit("chatter", r#"{"n":3,"pause_ms":500}"#).await;
    let mut cursor = Value::Null;
    let began = Instant::now();
    let mut n_lines = 0;
    while n_lines < 3 {
        let page = page(&mut session, &id, &json!({"cursor": cursor, "wait_s": 15})).await;
        n_lines += page["lines"].as_array().expect("lines").len();
        cursor = page["next_cursor"].clone();
    }
    assert!(began.elapsed().as_millis() < 1400, "{:?}", began.elapsed());
    let last = page(&mut session, &id, &json!({"cursor": cursor, "wait_s": 15})).await;
    assert_eq!(last["lines"], json!([]));
    assert_eq!(last["next_cursor"], cursor);
    assert!(began.elapsed().as_secs() < 3, "the end of the task ends the wait");
}

#[tokio::test(start_paused = true)]
async fn a_cursor_of_another_log_is_refused() {
    let mut session = Session::open().await;
    let one = session.submit("chatter", r#"{"n":5}"#).await;
    let two = session.submit("chatter", r#"{"n":5}"#).await;
    session.end_of(&two).await;
    let cursor = page(&mut session, &one, &json!({"limit": 2})).await["next_cursor"].clone();
    let cursor = cursor.as_str().expect("a cursor");
    for odd in [&format!("{cursor}x"), "garbage", "-1", "' OR 1=1", "\u{0}", &"A".repeat(5000)] {
        let arguments = json!({"task_id": one, "cursor": odd}).to_string();
        assert_eq!(session.refused("tail_task_logs", &arguments).await["code"], "bad_cursor");
    }
    let arguments = json!({"task_id": two, "cursor": cursor}).to_string();
    assert_eq!(session.refused("tail_task_logs", &arguments).await["code"], "bad_cursor");
    let nobody = json!({"task_id": "tsk_01K0000000E0000000000000AA", "cursor": cursor}).to_string();
    assert_eq!(session.refused("tail_task_logs", &nobody).await["code"], "not_found", "[SCOPE-2]");
}

#[tokio::test(start_paused = true)]
async fn a_limit_out_of_range_is_refused_and_a_whole_float_is_taken() {
    let mut session = Session::open().await;
    let id = session.submit("chatter", r#"{"n":5}"#).await;
    session.end_of(&id).await;
    for odd in ["0", "1001", "-1", "2.5", "\"7\""] {
        let arguments = format!(r#"{{"task_id":"{id}","limit":{odd}}}"#);
        let error = session.refused("tail_task_logs", &arguments).await;
        assert!(error["message"].as_str().expect("words").starts_with("`limit` must"), "{error}");
    }
    let arguments = format!(r#"{{"task_id":"{id}","limit":2.0,"cursor":null}}"#);
    assert_eq!(
        session.good("tail_task_logs", &arguments).await["lines"].as_array().map(Vec::len),
        Some(2)
    );
}
