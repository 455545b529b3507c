//! `submit_task` [QUEUE-1..3, IDEM-1, TIME-3]. Case task-same-inputs-other-spelling.

use serde_json::{Value, json};

use crate::session::Session;

#[tokio::test(start_paused = true)]
async fn a_submit_answers_where_the_task_stands() {
    // [QUEUE-3]
    let mut session = Session::open().await;
    let mut positions = Vec::new();
    for _ in 0..3 {
        let arguments = r#"{"tool_name":"nap_one","inputs":{"s":5},"priority":3,"tags":["a"]}"#;
        let answer = session.good("submit_task", arguments).await;
        assert_eq!((&answer["queue"], &answer["poll_after_ms"]), (&json!("one"), &json!(500)));
        assert!(answer["submitted_at"].as_str().expect("a time").ends_with('Z'));
        assert!(answer.get("existing").is_none());
        positions.push((answer["state"].clone(), answer["position"].clone()));
    }
    assert_eq!(positions[1..], [(json!("queued"), json!(0)), (json!("queued"), json!(1))]);
}

#[tokio::test(start_paused = true)]
async fn each_bad_argument_is_refused_by_its_name() {
    let mut session = Session::open().await;
    let cases = [
        (r#"{"tool_name":"echo","inputs":{},"surprise":1}"#, "`surprise` is unknown"),
        (r#"{"tool_name":"echo"}"#, "`inputs` is missing"),
        (r#"{"inputs":{}}"#, "`tool_name` is missing"),
        (r#"{"tool_name":7,"inputs":{}}"#, "`tool_name` must be a string"),
        (r#"{"tool_name":"echo","inputs":[]}"#, "`inputs` must be an object"),
        (r#"{"tool_name":"echo","inputs":{},"priority":101}"#, "`priority`"),
        (r#"{"tool_name":"echo","inputs":{},"priority":-101}"#, "`priority`"),
        (r#"{"tool_name":"echo","inputs":{},"ttl_s":-1}"#, "`ttl_s`"),
        (r#"{"tool_name":"echo","inputs":{},"idempotency_key":""}"#, "`idempotency_key`"),
        (r#"{"tool_name":"echo","inputs":{},"tags":"a"}"#, "`tags` must be an array of strings"),
        (r#"{"tool_name":"echo","inputs":{},"resources":{"gpu":1}}"#, "`resources.gpu` is unknown"),
        (r#"{"tool_name":"echo","inputs":{},"resources":{"cpu":0}}"#, "`resources.cpu`"),
        (
            r#"{"tool_name":"nap_one","inputs":{"s":0},"resources":{"memory_mb":1000}}"#,
            "`resources.memory_mb`",
        ),
        (
            r#"{"tool_name":"echo","inputs":{},"resources":{"resource_class":"no_such_lane"}}"#,
            "`resources.resource_class`",
        ),
        (r#"{"tool_name":"typed","inputs":{"frames":"many"}}"#, "`/frames`"),
        (r#"{"tool_name":"typed","inputs":{}}"#, "frames"),
    ];
    for (arguments, words) in cases {
        let error = session.refused("submit_task", arguments).await;
        assert_eq!(error["code"], "invalid_params", "{arguments}: {error}");
        assert!(error["message"].as_str().expect("words").contains(words), "{arguments}: {error}");
    }
    let unknown = session.refused("submit_task", r#"{"tool_name":"no_such","inputs":{}}"#).await;
    assert_eq!(unknown["code"], "unknown_tool");
    assert_eq!(session.good("list_tasks", "{}").await["tasks"], json!([]), "nothing was made");
}

async fn keyed(session: &mut Session, key: &str, inputs: &str) -> Value {
    let key = json!(key);
    let arguments = format!(r#"{{"tool_name":"echo","idempotency_key":{key},"inputs":{inputs}}}"#);
    session.call("submit_task", &arguments).await.data
}

#[tokio::test(start_paused = true)]
async fn one_key_is_one_task_however_the_inputs_are_spelled() {
    // [IDEM-1]
    let mut session = Session::open().await;
    let first = keyed(&mut session, "same", r#"{"a":1,"b":{"c":[1,2],"d":null},"e":"é"}"#).await;
    let again =
        keyed(&mut session, "same", r#"{ "e":"\u00e9", "b":{"d":null,"c":[1,2]}, "a":1 }"#).await;
    assert_eq!((&again["task_id"], &again["existing"]), (&first["task_id"], &json!(true)));
    let others = [
        r#"{"a":1,"b":{"c":[2,1],"d":null},"e":"é"}"#,
        r#"{"a":1,"b":{"c":[1,2]},"e":"é"}"#,
        r#"{"a":1.0,"b":{"c":[1,2],"d":null},"e":"é"}"#,
        r#"{"a":"1","b":{"c":[1,2],"d":null},"e":"é"}"#,
        r#"{"a":1,"b":{"c":[1,2],"d":null},"e":"e\u0301"}"#,
    ];
    for inputs in others {
        let conflict = keyed(&mut session, "same", inputs).await;
        assert_eq!(conflict["error"]["code"], "idempotency_conflict", "{inputs}");
    }
    let power = keyed(&mut session, "power", r#"{"a":1E5}"#).await;
    let spelled = keyed(&mut session, "power", r#"{"a":1e+05}"#).await;
    assert_eq!((&spelled["task_id"], &spelled["existing"]), (&power["task_id"], &json!(true)));
    session.end_of(first["task_id"].as_str().expect("an id")).await;
    let options = r#"{"tool_name":"echo","idempotency_key":"same","inputs":{"a":1,"b":{"c":[1,2],"d":null},"e":"é"},"ttl_s":60,"priority":5}"#;
    let after = session.good("submit_task", options).await;
    assert_eq!(
        (&after["task_id"], &after["existing"]),
        (&first["task_id"], &json!(true)),
        "options are no inputs, and a key outlives the end [IDEM-2]"
    );
    for key in ["SAME", " same"] {
        let other = keyed(&mut session, key, "{}").await;
        assert!(other["task_id"].is_string() && other["task_id"] != first["task_id"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_lane_refuses_and_says_when_to_come_back() {
    // [QUEUE-2]
    let mut session = Session::open().await;
    for _ in 0..5 {
        session.submit("nap_one", r#"{"s":30}"#).await;
    }
    let arguments = r#"{"tool_name":"nap_one","inputs":{"s":1}}"#;
    let error = session.refused("submit_task", arguments).await;
    assert_eq!((&error["code"], &error["retryable"]), (&json!("queue_full"), &json!(true)));
    assert!(error["retry_after_ms"].as_u64().expect("a pause") > 0);
    let direct = session.refused("nap_one", r#"{"s":1}"#).await;
    assert_eq!(direct["code"], "queue_full");
}

#[tokio::test(start_paused = true)]
async fn the_caller_s_run_limit_is_kept() {
    // [TIME-3]
    let mut session = Session::open().await;
    let arguments = r#"{"tool_name":"nap","inputs":{"s":60},"resources":{"max_runtime_s":1}}"#;
    let id = session.good("submit_task", arguments).await["task_id"].clone();
    let end = session.end_of(id.as_str().expect("an id")).await;
    assert_eq!(end["state"], "timed_out");
    assert_eq!(
        (&end["error"]["code"], &end["error"]["guarantee"]),
        (&json!("run_timeout"), &json!("unknown"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_any_length_is_a_wait_and_what_is_none_is_refused() {
    // [CALL-2]
    let mut session = Session::open().await;
    let id = session.submit("nap", r#"{"s":1}"#).await;
    for wait in ["1e300", "61", "9e18"] {
        let arguments = format!(r#"{{"task_id":"{id}","wait_s":{wait}}}"#);
        let answer = session.good("get_task_result", &arguments).await;
        assert_eq!(answer["state"], "succeeded", "{wait}");
    }
    for wait in ["-1", "\"5\"", "true", "[1]"] {
        let arguments = format!(r#"{{"task_id":"{id}","wait_s":{wait}}}"#);
        let error = session.refused("get_task_result", &arguments).await;
        assert!(error["message"].as_str().is_some_and(|it| it.starts_with("`wait_s` must be")));
    }
}
