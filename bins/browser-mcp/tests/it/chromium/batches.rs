//! Several steps in one call.

use serde_json::{Value, json};

use super::Rig;

fn batch(tab: &Value, steps: &Value) -> Value {
    json!({ "action": "batch", "tab_id": tab, "steps": steps })
}

#[tokio::test]
async fn a_batch_ends_with_its_first_failure_and_a_cancel_stops_the_step_under_way() {
    // [BROWSER-43]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("form.html")).await;
    let done = rig
        .done(batch(
            &tab,
            &json!([
                { "action": "fill", "selector": "#name", "text": "Ada" },
                { "action": "execute_js", "script": "document.getElementById('name').value" },
                { "action": "navigate", "url": rig.here("plain.html") },
                { "action": "execute_js", "script": "location.pathname" },
                { "what": "page_text" },
            ]),
        ))
        .await;
    let steps = &done["result"]["steps"];
    assert_eq!(done["result"]["n_done"], 5, "{done}");
    assert_eq!(steps[1]["result"], "Ada", "{done}");
    assert_eq!(steps[3]["result"], "/plain.html", "{done}");
    assert!(steps[4]["result"]["text"].to_string().contains("Plain"), "{done}");

    let mut call = batch(
        &tab,
        &json!([
            { "action": "execute_js", "script": "window.n = 1" },
            { "action": "click", "selector": "#none" },
            { "action": "execute_js", "script": "window.n = 3" },
        ]),
    );
    call["timeout_ms"] = json!(20_000);
    let failed = rig.end(call).await;
    assert_eq!(failed["status"], "error", "{failed}");
    let told = failed["error_info"].to_string();
    for words in ["step_failed", "element_not_ready", "failed_step", "executed"] {
        assert!(told.contains(words), "{words}: {failed}");
    }
    assert_eq!(rig.value(&tab, "window.n").await, 1);

    // An endless script is stopped, and no step after it begins.
    let mut call = batch(
        &tab,
        &json!([
            { "action": "execute_js", "script": "window.m = 1" },
            { "action": "execute_js", "script": "while (true) {}" },
            { "action": "execute_js", "script": "window.m = 3" },
        ]),
    );
    call["wait_ms"] = json!(0);
    call["timeout_ms"] = json!(110_000);
    let begun = rig.call("interact", call).await;
    let id = &begun["correlation_id"];
    let read = json!({ "what": "command_result", "correlation_id": id });
    let is_in_second = |answer: &Value| answer["progress"]["step"] == 1;
    let mut seen = Value::Null;
    for _ in 0..600 {
        seen = rig
            .call(
                "observe",
                json!({ "what": "command_result", "correlation_id": id, "wait_ms": 100 }),
            )
            .await;
        if is_in_second(&seen) {
            break;
        }
    }
    assert!(is_in_second(&seen), "{seen}");
    rig.call("cancel", json!({ "correlation_id": id })).await;
    let ended = rig.end_of(rig.call("observe", read).await).await;
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert_eq!(ended["partial_result"]["steps"][0]["action"], "execute_js", "{ended}");
    assert_eq!(rig.value(&tab, "window.m").await, 1);
    rig.close().await;
}
