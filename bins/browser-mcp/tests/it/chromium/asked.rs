//! What a page asks of whoever is before it: dialogs, whether it may be left, the print preview.

use serde_json::{Value, json};

use super::Rig;

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
async fn a_page_that_asks_is_left_only_by_a_command_that_may_change_it() {
    // [BROWSER-22]
    let rig = Rig::start().await;
    let beside = rig.open(&rig.here("plain.html")).await;
    let tab = rig.open(&rig.here("draft.html")).await;
    let typed = json!({ "action": "type", "selector": "#text", "text": "a draft", "tab_id": tab });
    rig.done(typed).await;
    let to = rig.here("plain.html");
    let leave = format!("localStorage.removeItem('leave'); localStorage.leave = '{to}'; 1");
    let dialogs = json!({ "what": "dialogs", "tab_id": tab });
    let n_of = |told: &Value, outcome: &str| {
        let rows = told["dialogs"].as_array().into_iter().flatten();
        rows.filter(|row| row["type"] == "beforeunload" && row["outcome"] == outcome).count()
    };
    // It is left while nothing is at work there, as by its user, and then while something only looks.
    let waits = json!({
        "action": "wait_for", "text": "never", "tab_id": tab, "timeout_ms": 110_000, "wait_ms": 0,
    });
    for looks in [None, Some(waits)] {
        let n_before = n_of(&rig.end(dialogs.clone()).await, "open");
        let mut at_work = None;
        if let Some(call) = looks {
            at_work = Some(rig.call("interact", call).await);
        }
        rig.value(&beside, &leave).await;
        rig.until(dialogs.clone(), |told| n_of(told, "open") > n_before).await;
        if let Some(at_work) = at_work {
            rig.call("cancel", json!({ "correlation_id": at_work["correlation_id"] })).await;
            let ended = rig.end_of(at_work).await;
            assert!(ended.to_string().contains("beforeunload"), "it is named: {ended}");
        }
        let held_off = rig.end(json!({ "what": "page_text", "tab_id": tab })).await;
        assert_eq!(reason(&held_off), "dialog_open", "{held_off}");
        assert!(held_off.to_string().contains("beforeunload"), "it is named: {held_off}");
        rig.done(json!({ "action": "dialog", "accept": false, "tab_id": tab })).await;
        rig.until(dialogs.clone(), |told| n_of(told, "dismissed") > n_before).await;
        let text = rig.value(&tab, "document.querySelector('#text').value").await;
        assert_eq!(text, "a draft");
    }
    let left = rig.done(json!({ "action": "navigate", "url": to, "tab_id": tab })).await;
    assert_eq!(left["title"], "plain", "{left}");
    rig.close().await;
}

#[tokio::test]
async fn under_report_only_dialog_answers_and_what_is_held_up_names_what_it_waits_for() {
    // [BROWSER-22]
    let rig = Rig::start().await;
    let policy = json!({ "what": "dialog_policy", "policy": "report", "wait_ms": 20_000 });
    rig.end_of(rig.call("configure", policy).await).await;
    let tab = rig.open(&rig.here("draft.html")).await;
    let clicked = rig.done(json!({ "action": "click", "selector": "#ask", "tab_id": tab })).await;
    assert_eq!(clicked["result"]["dialog"]["outcome"], "open", "{clicked}");
    for call in [
        json!({ "action": "execute_js", "script": "1", "tab_id": tab }),
        json!({ "what": "snapshot", "tab_id": tab }),
        json!({ "action": "navigate", "url": rig.here("plain.html"), "tab_id": tab }),
    ] {
        let held_off = rig.end(call).await;
        assert_eq!(reason(&held_off), "dialog_open", "{held_off}");
        assert!(held_off.to_string().contains("confirm: sure?"), "it is named: {held_off}");
    }
    let outcome = |told: &Value| told["dialogs"][0]["outcome"].clone();
    let dialogs = json!({ "what": "dialogs", "tab_id": tab });
    assert_eq!(outcome(&rig.end(dialogs.clone()).await), "open");
    rig.done(json!({ "action": "dialog", "accept": true, "tab_id": tab })).await;
    rig.until(dialogs, |told| outcome(told) == "accepted").await;
    assert_eq!(rig.value(&tab, "document.title").await, "answered true");
    // One that asks itself ends at its limit, with the dialog as the cause.
    let asks = json!({
        "action": "execute_js", "script": "confirm('and now?')", "tab_id": tab, "timeout_ms": 3000,
    });
    let ended = rig.end(asks).await;
    let told = ended.to_string();
    assert!(told.contains("a dialog (confirm) is open in its tab"), "{ended}");
    rig.done(json!({ "action": "dialog", "accept": false, "tab_id": tab })).await;
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
async fn a_print_preview_holds_commands_off_and_is_named_by_the_one_that_it_held_up() {
    // [BROWSER-22]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("prints.html")).await;
    rig.done(json!({ "what": "page_text", "tab_id": tab })).await;
    let click = json!({
        "action": "click", "selector": "#print", "tab_id": tab, "timeout_ms": 5000,
    });
    let held_up = rig.end(click).await;
    assert_eq!(held_up["status"], "timeout", "{held_up}");
    assert!(held_up.to_string().contains("the print preview is open"), "{held_up}");
    for call in [
        json!({ "action": "execute_js", "script": "1", "tab_id": tab }),
        json!({ "what": "page_text", "tab_id": tab }),
        json!({ "action": "navigate", "url": rig.here("plain.html"), "tab_id": tab }),
    ] {
        let held_off = rig.end(call).await;
        assert_eq!(reason(&held_off), "print_preview_open", "{held_off}");
        assert_eq!(held_off["error_info"]["guarantee"], "not_executed", "{held_off}");
    }
    rig.done(json!({ "action": "tab_close", "tab_id": tab })).await;
    rig.close().await;
}
