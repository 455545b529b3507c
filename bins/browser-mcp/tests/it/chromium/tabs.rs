//! Which tab a command acts on, and what is said of it.

use serde_json::{Value, json};

use super::Rig;

/// Runs a script without naming a tab.
async fn script(rig: &Rig, script: &str) -> Value {
    rig.end(json!({ "action": "execute_js", "script": script })).await
}

fn reason(answer: &Value) -> &Value {
    &answer["error_info"]["details"]["reason"]
}

async fn row_of(rig: &Rig, tab: &Value) -> Value {
    let tabs = rig.done(json!({ "what": "tabs" })).await;
    let rows = tabs["result"].as_array().cloned().unwrap_or_default();
    rows.into_iter().find(|row| row["tab_id"] == *tab).unwrap_or_else(|| panic!("{tab}: {tabs}"))
}

#[tokio::test]
async fn commands_that_name_a_tab_stay_in_it_and_say_which_page_it_is() {
    // [BROWSER-19]
    let rig = Rig::start().await;
    let here = rig.open(&rig.here("plain.html")).await;
    let there = rig.open(&rig.there("plain.html")).await;
    for (tab, origin) in [(&here, rig.here("")), (&there, rig.there(""))] {
        let call =
            json!({ "action": "execute_js", "script": "location.origin + '/'", "tab_id": tab });
        let seen = rig.done(call).await;
        assert_eq!(seen["result"], *origin, "{seen}");
        assert_eq!(format!("{}/", seen["origin"].as_str().unwrap_or_default()), origin, "{seen}");
        assert_eq!((&seen["tab_id"], &seen["title"]), (tab, &json!("plain")), "{seen}");
    }
    let failed =
        json!({ "action": "execute_js", "script": "throw new Error('no')", "tab_id": here });
    let failed = rig.end(failed).await;
    assert_eq!(failed["tab_id"], here, "{failed}");
    assert_eq!(format!("{}/", failed["origin"].as_str().unwrap_or_default()), rig.here(""));
    rig.value(&here, "console.log('said here')").await;
    let console = json!({ "what": "console", "tab_id": here });
    rig.until(console, |told| told.to_string().contains("said here")).await;
    rig.close().await;
}

#[tokio::test]
async fn a_caller_s_tab_is_not_the_one_in_front() {
    // [BROWSER-19] [BROWSER-20]
    let rig = Rig::start().await;
    // A caller that has none yet takes the one in front, and is told so.
    let first = script(&rig, "location.href").await;
    assert_eq!(first["result"], "about:blank", "{first}");
    assert!(first["message"].to_string().contains("the one in front"), "{first}");
    let second = script(&rig, "1").await;
    assert!(!second["message"].to_string().contains("in front"), "{second}");
    // One that it opens is its own, behind the one that the user looks at.
    let own = rig.open(&rig.here("opener.html")).await;
    let row = row_of(&rig, &own).await;
    assert_eq!((&row["active"], &row["in_hand"]), (&json!(false), &json!(true)), "{row}");
    assert_eq!(script(&rig, "document.title").await["result"], "opener");
    // One that the page opens comes in front; it is told, and not followed.
    let clicked = rig.done(json!({ "action": "click", "selector": "#open" })).await;
    let opened = clicked["opened_tab_id"].clone();
    assert!(opened.is_i64() && opened != own, "{clicked}");
    let origin = clicked["opened_origin"].as_str().unwrap_or_default();
    assert_eq!(format!("{origin}/"), rig.there(""), "{clicked}");
    let shown = |row: &Value| row["result"].to_string().contains("\"active\":true");
    rig.until(json!({ "what": "tabs", "filter": "login" }), shown).await;
    let filled = json!({ "action": "fill", "selector": "#pw", "text": "hunter2" });
    assert_eq!(rig.done(filled).await["tab_id"], own);
    assert_eq!(rig.value(&opened, "document.querySelector('#pw').value").await, "");
    // What it names last is its own from then on.
    assert_eq!(script(&rig, "document.title").await["tab_id"], opened);
    let front = rig
        .done(json!({ "action": "tab_new", "url": rig.here("plain.html"), "background": false }));
    let front = front.await["tab_id"].clone();
    assert_eq!(row_of(&rig, &front).await["active"], true);
    rig.close().await;
}

#[tokio::test]
async fn a_tab_that_is_gone_is_replaced_by_no_other() {
    // [BROWSER-20]
    let rig = Rig::start().await;
    script(&rig, "1").await;
    let refused = rig.end(json!({ "action": "tab_close" })).await;
    assert_eq!(refused["error_info"]["code"], "invalid_params", "it opened no tab: {refused}");
    let own = rig.open(&rig.here("opener.html")).await;
    let clicked = rig.done(json!({ "action": "click", "selector": "#open" })).await;
    let opened = clicked["opened_tab_id"].clone();
    rig.done(json!({ "what": "page_text", "tab_id": opened })).await;
    rig.done(json!({ "action": "click", "selector": "#close", "tab_id": own })).await;
    // It was closed by the page; then it is the caller's own in another way.
    let chosen = json!({ "what": "default_tab", "tab_id": opened });
    rig.call("configure", chosen).await;
    for _ in 0..2 {
        let gone = script(&rig, "document.title").await;
        assert_eq!(reason(&gone), "own_tab_gone", "{gone}");
        assert_eq!(gone["error_info"]["guarantee"], "not_executed", "{gone}");
        assert!(gone["error_info"]["hint"].to_string().contains("tab_new"), "{gone}");
    }
    assert_eq!(rig.value(&own, "document.title").await, "opener");
    let closed = rig.done(json!({ "action": "tab_close" })).await;
    assert_eq!(closed["result"]["tab_id"], own, "it opened this one: {closed}");
    assert_eq!(reason(&script(&rig, "document.title").await), "own_tab_gone");
    rig.call("configure", json!({ "what": "default_tab" })).await;
    let front = script(&rig, "document.title").await;
    assert!(front["message"].to_string().contains("the one in front"), "{front}");
    rig.close().await;
}

#[tokio::test]
async fn a_password_goes_only_to_the_origin_that_was_told_last() {
    // [BROWSER-21]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("login.html")).await;
    let fill = |more: Value| {
        let mut call =
            json!({ "action": "fill", "selector": "#pw", "text": "hunter2", "tab_id": tab });
        call.as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().unwrap_or_default());
        call
    };
    rig.done(fill(json!({}))).await;
    // The page goes elsewhere by itself after the answer.
    let beside = rig.open(&rig.here("plain.html")).await;
    rig.leaves(&tab, &beside, &rig.there("login.html")).await;
    for action in ["fill", "type"] {
        let mut call = fill(json!({}));
        call["action"] = json!(action);
        let refused = rig.end(call).await;
        assert_eq!(reason(&refused), "other_origin", "{refused}");
        assert_eq!(refused["error_info"]["guarantee"], "not_executed", "{refused}");
        // The refusal said whose page it is: it is the last answer now.
        assert_eq!(format!("{}/", refused["origin"].as_str().unwrap_or_default()), rig.there(""));
        let back = json!({ "action": "navigate", "url": rig.here("login.html"), "tab_id": tab });
        rig.done(back).await;
        rig.leaves(&tab, &beside, &rig.there("login.html")).await;
    }
    let wrong = rig.end(fill(json!({ "origin": rig.here("") }))).await;
    assert_eq!(reason(&wrong), "other_origin", "{wrong}");
    rig.done(fill(json!({ "origin": rig.there("") }))).await;
    rig.close().await;
}

#[tokio::test]
async fn a_frame_of_another_origin_can_be_clicked_in_a_tab_behind() {
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("frames.html")).await;
    let far = |told: &Value| told["result"]["text"].to_string().contains("\\\"far\\\"");
    let view = rig.until(json!({ "what": "snapshot", "tab_id": tab }), far).await;
    let text = view["result"]["text"].as_str().unwrap_or_default();
    let line = text.lines().find(|line| line.contains("\"far\"")).expect("a button");
    let (_, rest) = line.split_once("[ref=").expect("a ref");
    let (name, _) = rest.split_once(']').expect("a ref");
    let clicked = rig.done(json!({ "action": "click", "ref": name })).await;
    assert_eq!(clicked["tab_id"], tab, "{clicked}");
    let read = rig.done(json!({ "what": "page_text" })).await;
    assert!(read.to_string().contains("far was clicked"), "{read}");
    rig.close().await;
}
