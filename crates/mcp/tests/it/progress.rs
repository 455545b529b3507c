//! Progress notifications [RESULT-2]. Case mcp-progress-token-zero.

use std::time::Duration;

use serde_json::{Value, json};

use crate::session::Session;

async fn told(meta: &str, arguments: &str) -> (Vec<Value>, Value) {
    let mut session = Session::open().await;
    let params = format!(r#"{{"name":"steps","arguments":{arguments}{meta}}}"#);
    let answer = session.request("tools/call", &params).await;
    let before = session.beside();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(session.finish().await, Vec::<String>::new(), "none after the answer");
    (before, answer)
}

#[tokio::test(start_paused = true)]
async fn a_token_is_present_or_absent_and_comes_back_as_it_is() {
    let percents = r#"{"percents":[0,10,10,25,20,60,60,100]}"#;
    for token in ["0", "\"\"", "\"0\"", "\"tok-1\""] {
        let meta = format!(r#","_meta":{{"progressToken":{token}}}"#);
        let (notes, answer) = told(&meta, percents).await;
        assert!(answer["result"].is_object());
        let token: Value = serde_json::from_str(token).expect("JSON");
        assert!(notes.iter().all(|note| note["params"]["progressToken"] == token), "{notes:?}");
        let values: Vec<f64> =
            notes.iter().filter_map(|note| note["params"]["progress"].as_f64()).collect();
        assert_eq!(values, [0.0, 10.0, 25.0, 60.0, 100.0]);
        assert_eq!(notes[0]["params"]["total"], 100.0);
    }
}

#[tokio::test(start_paused = true)]
async fn who_did_not_ask_hears_nothing() {
    for meta in ["", r#","_meta":null"#, r#","_meta":{}"#, r#","_meta":{"progressToken":{"a":1}}"#]
    {
        let (notes, answer) = told(meta, r#"{"percents":[1,50]}"#).await;
        assert_eq!((notes, &answer["result"]["isError"]), (vec![], &json!(false)), "{meta}");
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_four_a_second_are_told() {
    let percents: Vec<u32> = (0..100).collect();
    let arguments = json!({"percents": percents, "pause_ms": 30}).to_string();
    let (notes, _) = told(r#","_meta":{"progressToken":"t"}"#, &arguments).await;
    assert!((8..=13).contains(&notes.len()), "{} in three seconds", notes.len());
    let values: Vec<f64> =
        notes.iter().filter_map(|note| note["params"]["progress"].as_f64()).collect();
    assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_read_tells_the_progress_of_its_task() {
    let mut session = Session::open().await;
    let id = session.submit("steps", r#"{"percents":[1,50,90]}"#).await;
    let params = json!({"name": "get_task_result", "arguments": {"task_id": id, "wait_s": 9},
        "_meta": {"progressToken": 7}});
    let answer = session.request("tools/call", &params.to_string()).await;
    assert!(answer["result"]["content"][0]["text"].as_str().expect("text").contains("succeeded"));
    let notes = session.beside();
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes.iter().all(|note| note["params"]["progressToken"] == 7));
}
