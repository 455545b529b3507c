//! What is the user's own, and what may not be read.

use serde_json::{Value, json};

use super::Rig;
use crate::typed::{SECRET, holding};

fn reason(answer: &Value) -> &Value {
    &answer["error_info"]["details"]["reason"]
}

#[tokio::test]
async fn a_dialog_of_the_user_s_is_left_to_the_user() {
    // [BROWSER-22]
    let rig = Rig::start().await;
    let beside = rig.open(&rig.here("plain.html")).await;
    let tab = rig.open(&rig.here("asks.html")).await;
    rig.done(json!({ "what": "page_text", "tab_id": tab })).await;
    // The page asks while no command is at work in its tab.
    rig.value(&beside, "localStorage.ask = String(Math.random()); 1").await;
    let asked = |told: &Value| told.to_string().contains("\"outcome\":\"open\"");
    rig.until(json!({ "what": "dialogs", "tab_id": tab }), asked).await;
    for call in [
        json!({ "action": "execute_js", "script": "1", "tab_id": tab }),
        json!({ "what": "page_text", "tab_id": tab }),
        json!({ "action": "navigate", "url": rig.here("plain.html"), "tab_id": tab }),
    ] {
        let held_off = rig.end(call).await;
        assert_eq!(reason(&held_off), "dialog_open", "{held_off}");
        assert_eq!(held_off["error_info"]["guarantee"], "not_executed", "{held_off}");
        assert!(held_off.to_string().contains("confirm: mine?"), "it is named: {held_off}");
    }
    let unanswered = rig.value(&beside, "localStorage.answered ?? 'not yet'").await;
    assert_eq!(unanswered, "not yet");
    rig.done(json!({ "action": "dialog", "accept": true, "tab_id": tab })).await;
    let answered = json!({ "what": "dialogs", "tab_id": tab });
    rig.until(answered, |told| told.to_string().contains("\"outcome\":\"accepted\"")).await;
    assert_eq!(rig.value(&tab, "localStorage.answered").await, "true");
    rig.close().await;
}

#[tokio::test]
async fn a_tab_is_opened_and_closed_also_where_its_page_asks() {
    // [BROWSER-22]
    let rig = Rig::start().await;
    let opened =
        rig.done(json!({ "action": "tab_new", "url": rig.here("asks-at-once.html") })).await;
    assert_eq!(opened["result"]["loaded"], true, "{opened}");
    assert_eq!(rig.value(&opened["tab_id"], "document.title").await, "answered false");
    let tab = rig.open(&rig.here("zoo-leave-me-not.html")).await;
    // A page may ask only after it was touched.
    rig.done(json!({ "action": "click", "selector": "p", "tab_id": tab })).await;
    let closed = rig.done(json!({ "action": "tab_close", "tab_id": tab })).await;
    assert_eq!(closed["result"]["closed"], true, "{closed}");
    let asked = rig.end(json!({ "what": "dialogs", "tab_id": tab })).await;
    assert!(asked.to_string().contains("beforeunload"), "it asked: {asked}");
    rig.close().await;
}

#[tokio::test]
async fn a_page_that_came_late_to_the_server_s_own_listener_is_not_read() {
    // [BROWSER-16] [SEC-7]
    let rig = Rig::start().await;
    let health = rig.call("observe", json!({ "what": "health" })).await;
    let port = health["server"]["port"].clone();
    let beside = rig.open(&rig.here("plain.html")).await;
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let tab = rig.open(&rig.here("login.html")).await;
        let own = format!("http://{host}:{port}/health");
        rig.leaves(&tab, &beside, &own).await;
        for call in [
            json!({ "action": "execute_js", "script": "document.body.innerText" }),
            json!({ "what": "page_text" }),
            json!({ "what": "snapshot" }),
            json!({ "what": "screenshot" }),
        ] {
            let mut call = call;
            call["tab_id"] = tab.clone();
            let said = call.to_string();
            let refused = rig.end(call).await;
            assert_eq!(refused["error_info"]["code"], "url_blocked", "{host} {said}: {refused}");
            assert_eq!(refused["error_info"]["guarantee"], "not_executed", "{refused}");
            assert!(refused.get("result").is_none(), "{refused}");
        }
        rig.done(json!({ "action": "navigate", "url": rig.here("plain.html"), "tab_id": tab }))
            .await;
        assert_eq!(rig.value(&tab, "document.title").await, "plain");
        rig.done(json!({ "action": "tab_close", "tab_id": tab })).await;
    }
    rig.close().await;
}

#[tokio::test]
async fn what_is_typed_into_a_password_field_is_in_no_answer_and_in_no_store() {
    // [BROWSER-24] [BROWSER-28]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("login.html")).await;
    let fill = json!({ "action": "fill", "selector": "#pw", "text": SECRET });
    let form = json!({ "selector": "#pw", "value": SECRET });
    for mut call in [
        fill.clone(),
        json!({ "action": "type", "selector": "#pw", "text": SECRET }),
        json!({ "action": "fill_form", "fields": [form] }),
        json!({ "action": "batch", "steps": [{ "action": "fill", "selector": "#pw", "text": "" }, fill] }),
    ] {
        rig.value(&tab, "document.querySelector('#pw').value = ''").await;
        call["tab_id"] = tab.clone();
        let answer = rig.done(call).await;
        assert!(!answer.to_string().contains(SECRET), "{answer}");
        let typed = rig.value(&tab, "document.querySelector('#pw').value.length").await;
        assert_eq!(typed, SECRET.len(), "{answer}");
    }
    let mut left = holding(&rig.state());
    for _ in 0..1000 {
        // Only what is held beside the store until the end is known, and that for a moment.
        assert!(left.iter().all(|path| path.contains("typed/")), "{left:?}");
        if left.is_empty() {
            break;
        }
        rig.value(&tab, "1").await;
        left = holding(&rig.state());
    }
    assert!(left.is_empty(), "{left:?}");
    rig.close().await;
}
