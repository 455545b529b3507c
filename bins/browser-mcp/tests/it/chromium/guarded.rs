//! What may not be read, and what is kept to nobody.

use serde_json::{Value, json};

use super::Rig;
use crate::typed::{SECRET, holding};

#[tokio::test]
async fn a_page_that_asks_while_it_loads_holds_no_command_up_where_dialogs_are_reported() {
    // [BROWSER-22]
    let rig = Rig::start().await;
    let policy = json!({ "what": "dialog_policy", "policy": "report", "wait_ms": 20_000 });
    rig.end_of(rig.call("configure", policy).await).await;
    let tab = rig.open(&rig.here("plain.html")).await;
    let url = rig.here("asks-at-once.html");
    // Its limit would be told as a timeout.
    for mut call in [
        json!({ "action": "navigate", "tab_id": tab, "changes": true }),
        json!({ "action": "tab_new" }),
    ] {
        (call["url"], call["timeout_ms"]) = (json!(url), json!(30_000));
        let asked = rig.done(call).await;
        let dialog = &asked["result"]["dialog"];
        assert_eq!(
            (&dialog["type"], &dialog["outcome"]),
            (&json!("confirm"), &json!("open")),
            "{asked}"
        );
        assert_eq!(asked["result"]["navigated"], true, "{asked}");
        let accept = json!({ "action": "dialog", "accept": true, "tab_id": asked["tab_id"] });
        rig.done(accept).await;
        assert_eq!(rig.value(&asked["tab_id"], "document.title").await, "answered true");
    }
    rig.close().await;
}

#[tokio::test]
async fn a_dialog_of_the_page_that_is_left_is_told_with_the_navigation_that_goes_on() {
    // [BROWSER-22]
    let rig = Rig::start().await;
    let policy = json!({ "what": "dialog_policy", "policy": "report", "wait_ms": 20_000 });
    rig.end_of(rig.call("configure", policy).await).await;
    let asks = "addEventListener('beforeunload', () => setTimeout(() => confirm('now?'), 0)), true";
    let tab = rig.open(&rig.here("plain.html")).await;
    rig.value(&tab, asks).await;
    let away = json!({
        "action": "navigate", "url": rig.here("never"), "tab_id": tab, "timeout_ms": 30_000,
    });
    let asked = rig.done(away).await;
    let told = &asked["result"];
    assert_eq!(
        (&told["navigating"], &told["dialog"]["type"]),
        (&json!(true), &json!("confirm")),
        "{asked}"
    );
    assert!(told.get("navigated").is_none(), "{asked}");
    // The page that comes meanwhile is shown once the old one is answered.
    let tab = rig.open(&rig.here("plain.html")).await;
    rig.value(&tab, asks).await;
    let url = rig.here("login.html");
    let went = rig.done(json!({ "action": "navigate", "url": url, "tab_id": tab })).await;
    if went["result"]["navigated"].is_null() {
        assert_eq!(went["result"]["navigating"], true, "{went}");
        rig.done(json!({ "action": "dialog", "accept": true, "tab_id": tab })).await;
    }
    rig.until_shown(&tab, &url).await;
    rig.close().await;
}

#[tokio::test]
async fn a_key_for_a_password_field_in_a_frame_goes_only_to_the_origin_that_is_said() {
    // [BROWSER-21]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("plain.html")).await;
    let frame = format!(
        "new Promise((done) => {{ const frame = document.createElement('iframe'); \
         frame.src = '{}'; frame.onload = () => done(true); document.body.append(frame); }})",
        rig.elsewhere("login.html")
    );
    rig.value(&tab, &frame).await;
    let origin = rig.elsewhere("");
    let give = |action: &str, more: Value| {
        let mut call = json!({ "action": action, "tab_id": tab });
        let members = more.as_object().cloned().unwrap_or_default();
        call.as_object_mut().expect("an object").extend(members);
        call
    };
    let (key, said) = (json!({ "key": "h" }), json!({ "key": "h", "origin": origin }));
    // Both leave the focus in the frame.
    rig.done(give("type", json!({ "selector": "#name", "text": "a" }))).await;
    assert_eq!(rig.done(give("press", key.clone())).await["result"]["key"], "h");
    let word = json!({ "selector": "#pw", "text": SECRET, "origin": origin });
    rig.done(give("type", word)).await;
    let refused = rig.end(give("press", key.clone())).await;
    assert_eq!(refused["error_info"]["details"]["reason"], "other_origin", "{refused}");
    assert_eq!(refused["error_info"]["guarantee"], "not_executed", "{refused}");
    assert_eq!(rig.done(give("press", said)).await["result"]["key"], "••••");
    // With the focus in the page itself the frame is not asked for.
    rig.value(&tab, "(document.querySelector('iframe').blur(), document.activeElement.tagName)")
        .await;
    rig.done(give("press", key)).await;
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
        // At once, too, where it redirects there.
        let url = rig.here(&format!("redirect?{own}"));
        let refused = rig.end(json!({ "action": "navigate", "url": url, "tab_id": tab })).await;
        assert_eq!(refused["error_info"]["code"], "url_blocked", "{host}: {refused}");
        assert_eq!(rig.value(&tab, "location.href").await, "about:blank");
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
    // Key by key it is the same text, also where the page shows it.
    let tab = rig.open(&rig.here("changes.html")).await;
    rig.done(json!({ "action": "click", "selector": "#word", "tab_id": tab })).await;
    for key in SECRET.chars() {
        let pressed = rig.done(json!({ "action": "press", "key": key, "tab_id": tab })).await;
        assert_eq!(pressed["result"]["key"], "••••", "{pressed}");
    }
    let shown = rig.value(&tab, "document.querySelector('#shown').textContent.length").await;
    assert_eq!(shown, "It is ".len() + SECRET.len(), "the page shows it");
    let read = rig.done(json!({ "what": "page_text", "tab_id": tab })).await;
    assert!(read["result"]["text"].to_string().contains("It is ••••"), "{read}");
    assert!(!read.to_string().contains(SECRET), "{read}");
    rig.done(json!({ "action": "reload", "tab_id": tab })).await;
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
