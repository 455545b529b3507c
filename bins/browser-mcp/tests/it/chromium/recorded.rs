//! What was done once is done again.

use serde_json::{Value, json};

use super::Rig;

/// Returns the refs of a snapshot whose lines have these words, in order.
fn refs(text: &str, words: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains(words));
    let of = |line: &str| Some(line.split_once("ref=")?.1.split([']', ' ']).next()?.to_owned());
    lines.filter_map(of).collect()
}

#[tokio::test]
async fn a_session_is_recorded_as_a_batch_that_comes_to_the_same_on_a_page_that_is_loaded_anew() {
    // [BROWSER-58, BROWSER-59]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("record.html")).await;
    rig.done(json!({ "action": "record_start", "tab_id": tab })).await;
    let shown = rig.done(json!({ "what": "snapshot", "tab_id": tab })).await;
    let text = shown["result"]["text"].as_str().expect("a text").to_owned();
    let named = |words: &str, n: usize| {
        refs(&text, words).get(n).cloned().unwrap_or_else(|| panic!("{words}: {text}"))
    };
    for mut call in [
        json!({ "action": "fill_form", "fields": [
            { "ref": named("\"Name\"", 0), "value": "Ada" },
            { "ref": named("\"Terms\"", 0), "value": true },
        ] }),
        json!({ "action": "fill", "ref": named("\"Word\"", 0), "text": "open sesame" }),
        json!({ "action": "select", "ref": named("combobox", 0), "value": "Porto" }),
        json!({ "action": "batch", "steps": [
            { "action": "click", "ref": named("\"Deep\"", 0) },
            { "action": "click", "ref": named("\"In a frame\"", 0) },
        ] }),
        json!({ "action": "click", "ref": named("\"Send\"", 1) }),
    ] {
        call["tab_id"] = tab.clone();
        rig.done(call).await;
    }
    let end = json!("Ada,open sesame,p,true,1,1");
    assert_eq!(rig.value(&tab, "end.value").await, end);
    // An act that fails is none of the session.
    let click = json!({ "action": "click", "selector": "#none", "tab_id": tab, "timeout_ms": 600 });
    assert_eq!(rig.end(click).await["status"], "error");

    let stopped = rig.done(json!({ "action": "record_stop", "save_to": "sign-up.json" })).await;
    assert!(stopped["result"]["saved_to"].is_string(), "{stopped}");
    let script = std::fs::read_to_string(rig.files().join("sign-up.json")).expect("saved");
    assert!(!script.contains("open sesame") && !script.contains("\"ref\""), "{script}");
    let mut replay: Value = serde_json::from_str(&script).expect("JSON");
    assert_eq!(replay["recorded"]["n_steps"], 7, "{script}");
    assert!(replay["recorded"]["left_out"].is_null(), "{script}");
    assert_eq!(replay["values"], json!({ "word": null }), "{script}");

    rig.done(json!({ "action": "reload", "tab_id": tab })).await;
    replay["tab_id"] = tab.clone();
    let refused = rig.end(replay.clone()).await;
    assert!(refused.to_string().contains("values.word"), "{refused}");
    replay["values"] = json!({ "word": "open sesame" });
    // The script that looked at the end is one of the steps.
    let replayed = rig.done(replay).await;
    assert_eq!(replayed["result"]["n_done"], 7, "{replayed}");
    assert_eq!(replayed["result"]["steps"][6]["result"], end, "{replayed}");
    rig.close().await;
}
