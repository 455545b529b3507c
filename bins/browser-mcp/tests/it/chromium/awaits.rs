//! What ends, and what is said of what does not.

use serde_json::{Value, json};

use super::Rig;

/// A script that counts in the page for as long as its document is there.
const COUNTS: &str = "console.log('it counts'); window.n = 0; \
     while (true) { window.n++; await new Promise((r) => setTimeout(r, 10)) }";

/// Starts a script, waits until it has logged `word`, and cancels it. Returns its name and how it ended.
async fn cancelled(rig: &Rig, tab: &Value, beside: &Value, script: &str, word: &str) -> [Value; 2] {
    let begins = json!({
        "action": "execute_js", "script": script, "tab_id": tab, "wait_ms": 0, "timeout_ms": 120_000,
    });
    let begun = rig.call("interact", begins).await;
    let logged =
        || rig.call("observe", json!({ "what": "console", "tab_id": tab, "filter": word }));
    let mut n_logged = logged().await["count"].take();
    for _ in 0..10_000 {
        if n_logged == 1 {
            break;
        }
        rig.value(beside, "1").await;
        n_logged = logged().await["count"].take();
    }
    assert_eq!(n_logged, 1, "it never ran");
    let id = begun["correlation_id"].clone();
    rig.call("cancel", json!({ "correlation_id": id })).await;
    let ended = end_of(rig, &id).await;
    [id, ended]
}

/// Starts the script that counts, and cancels it. Returns its name.
async fn left_counting(rig: &Rig, tab: &Value, beside: &Value) -> Value {
    let [id, ended] = cancelled(rig, tab, beside, COUNTS, "it counts").await;
    assert_eq!(ended["status"], "error", "{ended}");
    let info = &ended["error_info"];
    assert_eq!(
        (&info["guarantee"], &info["details"]["reason"]),
        (&json!("unknown"), &json!("not_stopped")),
        "{ended}"
    );
    assert!(info["hint"].to_string().contains("reload: true"), "{ended}");
    id
}

async fn end_of(rig: &Rig, id: &Value) -> Value {
    rig.end(json!({ "what": "command_result", "correlation_id": id })).await
}

async fn count(rig: &Rig, tab: &Value) -> Value {
    rig.value(tab, "String(window.n)").await
}

async fn ended_for_good(rig: &Rig, id: &Value) -> Value {
    let call = json!({ "correlation_id": id, "reload": true });
    let mut told = rig.call("cancel", call.clone()).await;
    for _ in 0..20 {
        if told["status"] != "cancel_requested" {
            break;
        }
        told = rig.call("cancel", call.clone()).await;
    }
    told
}

#[tokio::test]
async fn a_script_that_awaits_is_cancelled_only_with_its_document() {
    // [BROWSER-23] [LEASE-10]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("plain.html")).await;
    let beside = rig.open(&rig.here("plain.html?beside")).await;
    let id = left_counting(&rig, &tab, &beside).await;
    let seen = count(&rig, &tab).await;
    let more = json!({ "action": "execute_js", "script": "String(window.n)", "tab_id": tab });
    rig.until(more, |told| told["result"] != seen).await;
    let told = ended_for_good(&rig, &id).await;
    let wanted = (&json!("cancelled"), &json!(true));
    assert_eq!((&told["status"], &told["acknowledged"]), wanted, "{told}");
    assert_eq!(count(&rig, &tab).await, "undefined", "its document is gone");
    let again = ended_for_good(&rig, &id).await;
    assert_eq!(again["status"], "cancelled", "{again}");
    // One that is on the thread is stopped where it is, and the page lives on.
    rig.value(&tab, "window.here = 1").await;
    let endless =
        json!({ "action": "execute_js", "script": "for (;;) {}", "tab_id": tab, "wait_ms": 0 });
    let begun = rig.call("interact", endless).await;
    let told = ended_for_good(&rig, &begun["correlation_id"]).await;
    assert_eq!(told["status"], "cancelled", "{told}");
    assert_eq!(rig.value(&tab, "window.here").await, 1);
    rig.close().await;
}

#[tokio::test]
async fn a_page_that_the_user_went_to_is_not_loaded_anew() {
    // [BROWSER-23]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("login.html")).await;
    let beside = rig.open(&rig.here("plain.html")).await;
    let id = left_counting(&rig, &tab, &beside).await;
    rig.leaves(&tab, &beside, &rig.here("plain.html?2")).await;
    rig.value(&tab, "window.here = 1").await;
    let told = ended_for_good(&rig, &id).await;
    // It is over, unless its page waits for the back button; then that is said.
    let is_over = told["status"] == "cancelled" || told.to_string().contains("tab_close");
    assert!(is_over, "{told}");
    assert_eq!(rig.value(&tab, "window.here").await, 1, "{told}");
    rig.close().await;
}

#[tokio::test]
async fn a_script_that_waits_for_what_nothing_can_bring_is_over_when_it_is_cancelled() {
    // [BROWSER-23]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("plain.html")).await;
    let beside = rig.open(&rig.here("plain.html?beside")).await;
    let waits = ["new Promise(() => {})", "const x = 1; await new Promise(() => {}); x"];
    for (n, waits) in waits.iter().enumerate() {
        let word = format!("it waits {n}");
        let script = format!("console.log('{word}'); {waits}");
        let [_, ended] = cancelled(&rig, &tab, &beside, &script, &word).await;
        assert_eq!(ended["status"], "cancelled", "{script}: {ended}");
    }
    rig.close().await;
}

#[tokio::test]
async fn a_script_that_awaits_past_its_limit_is_not_told_as_if_it_had_stopped() {
    // [BROWSER-23]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("plain.html")).await;
    let begins = json!({
        "action": "execute_js", "script": COUNTS, "tab_id": tab, "timeout_ms": 3000,
    });
    let ended = rig.end(begins).await;
    let info = &ended["error_info"];
    assert_eq!((&ended["status"], &info["guarantee"]), (&json!("timeout"), &json!("unknown")));
    assert!(info["hint"].to_string().contains("reload: true"), "{ended}");
    let seen = count(&rig, &tab).await;
    let more = json!({ "action": "execute_js", "script": "String(window.n)", "tab_id": tab });
    rig.until(more, |told| told["result"] != seen).await;
    let told = ended_for_good(&rig, &ended["correlation_id"]).await;
    assert_eq!(told["status"], "cancelled", "{told}");
    assert_eq!(count(&rig, &tab).await, "undefined", "its document is gone");
    rig.close().await;
}
