//! What single lines get as an answer [CALL-3, CALL-5]. Cases: mcp-bom-before-first-line,
//! mcp-crlf-line-ends, mcp-odd-lines-keep-the-server, mcp-request-ids-come-back-unchanged,
//! mcp-cancel-of-nothing, mcp-client-that-does-not-read.

use serde_json::{Value, json};

use crate::session::{Answer, Session};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"case","version":"0"}}}"#;
const PING_99: &str = r#"{"jsonrpc":"2.0","id":99,"method":"ping"}"#;

#[tokio::test(start_paused = true)]
async fn a_mark_before_the_first_line_is_dropped() {
    let mut session = Session::raw();
    session.write(b"\xEF\xBB\xBF").await;
    session.send(INITIALIZE).await;
    session.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    session.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#).await;
    let init = session.answer(&json!(1)).await;
    assert_eq!(init["result"]["protocolVersion"], "2025-06-18");
    assert!(session.answer(&json!(2)).await["result"]["tools"].is_array());
}

#[tokio::test(start_paused = true)]
async fn cr_lf_blank_lines_and_trailing_blanks_are_taken() {
    let mut session = Session::raw();
    session.write(format!("{INITIALIZE}\r\n").as_bytes()).await;
    session
        .write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\r\n\r\n \r\n")
        .await;
    session
        .write(b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/list\",\"params\":{}}\r\n")
        .await;
    session.write(b"\n\n{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\"}  \r\n").await;
    let lines = session.finish().await;
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.iter().all(|line| !line.contains('\r') && line.contains("\"result\"")));
}

/// Sends lines after a handshake and returns what came back, by id, up to the ping that ends them.
async fn answers_to(lines: &[&str]) -> Vec<Value> {
    let mut session = Session::open().await;
    for line in lines {
        session.send(line).await;
    }
    session.send(PING_99).await;
    session.answer(&json!(99)).await;
    let rest = session.finish().await;
    let rest = rest.iter().map(|line| serde_json::from_str(line).expect("JSON"));
    session.beside().into_iter().chain(rest).collect()
}

fn code_of(answers: &[Value], id: &Value) -> Value {
    let mut found = answers.iter().filter(|answer| answer["id"] == *id);
    let answer = found.next().unwrap_or_else(|| panic!("no answer to {id}"));
    assert!(found.next().is_none(), "two answers to {id}");
    answer["error"]["code"].clone()
}

#[tokio::test(start_paused = true)]
async fn each_odd_line_gets_one_answer_and_the_next_line_is_read() {
    let answers = answers_to(&[
        r#"{"jsonrpc":"2.0","id":2,"method":"shelf/turn","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":null}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","id":6,"method":"tools/list","params":null}"#,
        r#"{"jsonrpc":"1.0","id":9,"method":"ping"}"#,
        r#"{"id":10,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"list_tasks","arguments":null}}"#,
        r#"{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"list_tasks","arguments":[]}}"#,
        r#"{"jsonrpc":"2.0","id":13,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/no_such"}"#,
        r#"{"jsonrpc":"2.0","id":14,"method":"tools/call","params":{"name":"list_tasks","arguments":{},"extra":{"x":1}}}"#,
        r#"{"jsonrpc":"2.0","id":15,"method":"resources/list"}"#,
        r#"{"jsonrpc":"2.0","id":16,"method":"tasks/list","params":{}}"#,
    ])
    .await;
    let expected = [
        (2, -32601),
        (4, -32602),
        (5, -32602),
        (9, -32600),
        (10, -32600),
        (15, -32601),
        (16, -32601),
    ];
    for (id, code) in expected {
        assert_eq!(code_of(&answers, &json!(id)), code, "id {id}");
    }
    for id in [6, 11, 14] {
        assert_eq!(code_of(&answers, &json!(id)), Value::Null, "id {id} has a result");
    }
    let array = answers.iter().find(|answer| answer["id"] == 12).expect("an answer").clone();
    assert_eq!(Answer::of(array).data["error"]["code"], "invalid_params");
    assert!(!answers.iter().any(|answer| answer["id"] == 13));
    assert_eq!(answers.len(), 11, "{answers:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_is_refused_without_an_id() {
    let lines = [
        (r#"{"jsonrpc":"2.0","id":3,"method":"#, -32700),
        (
            r#"[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]"#,
            -32600,
        ),
        ("{}", -32600),
        ("[]", -32600),
        ("null", -32600),
        ("42", -32600),
        ("\"ping\"", -32600),
    ];
    for (line, code) in lines {
        let answers = answers_to(&[line]).await;
        assert_eq!(answers.len(), 1, "{line}");
        assert_eq!(answers[0]["error"]["code"], code, "{line}");
        assert_eq!(answers[0].get("id"), Some(&Value::Null), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_comes_back_as_it_was_sent() {
    let long = format!("\"{}\"", "q".repeat(5000));
    let ids = [
        "\"1\"",
        "1",
        "0",
        "\"\"",
        "\"0\"",
        "-7",
        "9007199254740993",
        "9223372036854775807",
        "\"0x1\"",
        "\"é😀\"",
        "\"a\\u0000b\"",
        &long,
    ];
    let mut session = Session::open().await;
    for id in ids {
        session.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).await;
        let line = session.line().await.expect("an answer");
        assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
    for odd in ["1.5", "null", "{\"a\":1}", "true"] {
        session.send(&format!(r#"{{"jsonrpc":"2.0","id":{odd},"method":"ping"}}"#)).await;
        let line = session.line().await.expect("an answer");
        assert!(line.contains("-32600") && line.contains(r#""id":null"#), "{line}");
    }
    session.send(r#"{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"get_task_status","arguments":{"task_id":"tsk_00000000000000000000000042"}}}"#).await;
    session.send(r#"{"jsonrpc":"2.0","id":"42","method":"tools/call","params":{"name":"list_tasks","arguments":{}}}"#).await;
    let number = Answer::of(session.answer(&json!(42)).await);
    assert_eq!(number.data["error"]["code"], "not_found");
    assert_eq!(Answer::of(session.answer(&json!("42")).await).data["tasks"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_still_unanswered_cannot_be_used_again() {
    let mut session = Session::open().await;
    let nap = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"nap","arguments":{"s":0.5}}}"#;
    session.send(nap).await;
    session.send(nap).await;
    let first = session.answer(&json!(7)).await;
    assert_eq!(first["error"]["code"], -32600, "{first}");
    assert_eq!(Answer::of(session.answer(&json!(7)).await).data["s"], 0.5);
}

#[tokio::test(start_paused = true)]
async fn too_many_unanswered_requests_are_refused_and_not_kept_waiting() {
    let mut session = Session::open().await;
    let task = session.submit("nap", r#"{"s":600}"#).await;
    let wait = json!({"task_id": task, "wait_s": 15}).to_string();
    for _ in 0..4096 {
        session.begin_call("get_task_result", &wait).await;
    }
    let refused = session.request("ping", "{}").await;
    assert_eq!(refused["error"]["data"]["code"], "queue_full");
    tokio::time::sleep(std::time::Duration::from_secs(16)).await;
    for _ in 0..4096 {
        assert!(session.line().await.expect("an answer").contains("poll_after_ms"));
    }
    assert!(session.request("ping", "{}").await["result"].is_object());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_hits_nothing_is_nothing() {
    // [CANCEL-7]
    let mut session = Session::open().await;
    for params in [
        r#"{"requestId":999}"#,
        r#"{"requestId":"nope"}"#,
        r#"{"requestId":null}"#,
        "{}",
        r#"{"requestId":{"a":1}}"#,
        r#"{"requestId":[]}"#,
        r#"{"requestId":-1,"reason":"x"}"#,
        r#"{"requestId":"h0","reason":7}"#,
    ] {
        let note =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
        session.send(&note).await;
    }
    session.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#).await;
    session.send(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"nap","arguments":{"s":0.5}}}"#).await;
    session
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"3"}}"#)
        .await;
    let answer = Answer::of(session.answer(&json!(3)).await);
    assert_eq!(answer.data, json!({"s": 0.5}), "the string \"3\" does not cancel the number 3");
    assert_eq!(session.beside(), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_line_over_the_limit_is_refused_and_the_next_one_is_read() {
    let mut session = Session::open().await;
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..17 {
        session.write(&chunk).await;
    }
    session.write(b"\n").await;
    let refusal: Value =
        serde_json::from_str(&session.line().await.expect("a line")).expect("JSON");
    assert_eq!((&refusal["error"]["code"], &refusal["id"]), (&json!(-32600), &Value::Null));
    session.send(PING_99).await;
    assert!(session.answer(&json!(99)).await["result"].is_object());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_delays_only_its_own_answers() {
    let mut session = Session::open().await;
    let id = session.submit("nap", r#"{"s":60}"#).await;
    let task = id.parse().expect("an id");
    for id in 1000..1400 {
        let list = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{}}}}"#);
        session.send(&list).await;
    }
    // Nobody reads, yet the engine goes on and ends the task.
    let scope = raincheck_core::scope::Scope::local();
    let wait = std::time::Duration::from_secs(90);
    let view = session.handle.wait_end(&scope, task, wait).await.expect("a view");
    assert_eq!(view.record.state, raincheck_core::lifecycle::State::Succeeded);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 1000..1400 {
        let line: Value =
            serde_json::from_str(&session.line().await.expect("a line")).expect("JSON");
        assert!(line["result"]["tools"].is_array());
        assert!(seen.insert(line["id"].as_i64().expect("an id")), "one answer each");
    }
    assert_eq!((seen.first(), seen.last()), (Some(&1000), Some(&1399)));
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_and_not_read_is_bounded_and_each_request_is_answered_once() {
    // [CALL-3] [CALL-7]
    let mut session = Session::open().await;
    let big = format!(r#"{{"v":"{}"}}"#, "v".repeat(1 << 20));
    let mut left = std::collections::BTreeSet::new();
    for _ in 0..80 {
        left.insert(session.begin_call("echo", &big).await.as_i64().expect("a number"));
    }
    let (mut n_answered, mut n_refused) = (0, 0);
    while !left.is_empty() {
        let line: Value =
            serde_json::from_str(&session.line().await.expect("a line")).expect("JSON");
        assert!(left.remove(&line["id"].as_i64().expect("an id")), "one answer each");
        if line["error"]["code"] == -32000 {
            n_refused += 1;
        } else {
            assert_eq!(Answer::of(line).text, big);
            n_answered += 1;
        }
    }
    assert!(n_answered >= 40 && n_refused >= 5, "{n_answered} answered, {n_refused} refused");
}
