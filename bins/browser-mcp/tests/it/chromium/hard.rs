//! Pages that are hard to work with: what cannot be read, what floods, what goes away.

use serde_json::{Value, json};

use super::Rig;

/// Returns the cause and the guarantee of a failed command.
fn why(answer: &Value) -> (&str, &str) {
    let words = answer["error_info"]["message"].as_str().unwrap_or_default();
    (words, answer["error_info"]["guarantee"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn redirects_that_lead_nowhere_are_told_as_what_they_are() {
    // [BROWSER-35]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("plain.html")).await;
    let go = |to: &str| {
        let url = rig.here(&format!("redirect?{to}"));
        rig.end(json!({ "action": "navigate", "url": url, "tab_id": tab }))
    };
    for (to, cause) in [
        ("http://127.0.0.1:1/", "net::ERR_UNSAFE_PORT"),
        ("http://nobody.invalid/", "net::ERR_"),
        ("file:///etc/hostname", "net::ERR_UNSAFE_REDIRECT"),
    ] {
        let answer = go(to).await;
        assert_eq!(answer["status"], "error", "{to}: {answer}");
        assert!(why(&answer).0.contains(cause), "{to}: {answer}");
    }
    let nothing = go("{{here}}/status?204").await;
    assert_eq!(nothing["result"]["reason"], "no_content", "{nothing}");
    rig.close().await;
}

#[tokio::test]
async fn a_page_that_cannot_be_read_is_told_at_once_by_its_kind() {
    // Cases browser-pages-nobody-may-script and browser-pdf-in-front. [BROWSER-36]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("bill.pdf")).await;
    for call in [
        json!({ "what": "snapshot" }),
        json!({ "action": "click", "selector": "a" }),
        json!({ "action": "wait_for", "text": "tea" }),
    ] {
        let mut call = call;
        call["tab_id"] = tab.clone();
        let answer = rig.end(call).await;
        let (words, guarantee) = why(&answer);
        assert!(words.contains("a PDF") && guarantee == "not_executed", "{answer}");
        assert!(answer.to_string().contains("fetch(location.href)"), "what to do: {answer}");
    }
    let text = rig.done(json!({ "what": "page_text", "tab_id": tab })).await;
    assert_eq!(text["result"]["text"], "[page 1]\nTea, 12 EUR", "{text}");
    let script = "(await (await fetch(location.href)).text()).slice(0, 5)";
    assert_eq!(rig.value(&tab, script).await, "%PDF-");

    let nowhere = json!({ "action": "navigate", "url": "http://127.0.0.1:1/", "tab_id": tab });
    rig.end(nowhere).await;
    for call in [json!({ "what": "snapshot" }), json!({ "action": "execute_js", "script": "1" })] {
        let mut call = call;
        call["tab_id"] = tab.clone();
        let answer = rig.end(call).await;
        let (words, guarantee) = why(&answer);
        assert!(words.contains("page about a failure") && guarantee == "not_executed", "{answer}");
    }
    let back = json!({ "action": "navigate", "url": rig.here("plain.html"), "tab_id": tab });
    rig.done(back).await;
    rig.close().await;
}

#[tokio::test]
async fn scripts_fields_and_links_do_what_a_person_would_expect() {
    // [BROWSER-37]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("declared.html")).await;
    for (script, value) in [
        ("const data = 5; data", json!(5)),
        ("let count = 7; await Promise.resolve(count)", json!(7)),
        ("class Kind { n = 1 } new Kind()", json!({ "n": 1 })),
        ("[data, count]", json!([[1, 2], 1])),
    ] {
        assert_eq!(rig.value(&tab, script).await, value, "{script}");
    }

    rig.done(json!({ "action": "navigate", "url": rig.here("hand-over.html"), "tab_id": tab }))
        .await;
    for (id, scheme) in
        [("#mail", json!("mailto:")), ("#call", json!("tel:")), ("#here", Value::Null)]
    {
        let answer = rig.done(json!({ "action": "click", "selector": id, "tab_id": tab })).await;
        assert_eq!(answer["result"]["scheme"], scheme, "{id}: {answer}");
    }

    rig.done(json!({ "action": "navigate", "url": rig.here("fields.html"), "tab_id": tab })).await;
    let act = |action: &str, more: Value| {
        let mut call = json!({ "action": action, "tab_id": tab });
        if let (Value::Object(call), Value::Object(more)) = (&mut call, more) {
            call.extend(more);
        }
        rig.done(call)
    };
    act("fill", json!({ "selector": "#tea", "text": "Darjeeling" })).await;
    assert_eq!(rig.value(&tab, "document.querySelector('#tea').value").await, "d");
    act("click", json!({ "selector": "#text" })).await;
    for key in ["Shift+a", "b", "Shift+1", "Shift+B"] {
        act("press", json!({ "key": key })).await;
    }
    assert_eq!(rig.value(&tab, "document.querySelector('#text').value").await, "Ab!B");
    let typed = act("type", json!({ "selector": "#inner", "text": "in the shade" })).await;
    assert_eq!(typed["result"]["value"], "in the shade", "{typed}");
    // What can be hit where it is does not scroll; that would close the menu.
    act("click", json!({ "selector": "#menu" })).await;
    rig.until(json!({ "action": "wait_for", "selector": "#item", "tab_id": tab }), |told| {
        told["status"] == "complete"
    })
    .await;
    act("click", json!({ "selector": "#item" })).await;
    assert_eq!(rig.value(&tab, "document.title").await, "chosen");
    rig.close().await;
}

#[tokio::test]
async fn a_page_that_tells_without_end_holds_up_no_other_tab() {
    // [BROWSER-38]
    let rig = Rig::start().await;
    let calm = rig.open(&rig.here("plain.html")).await;
    for (page, words) in [
        ("flood.html", "only a part of them is kept"),
        ("flood-of-words.html", "only a part of them is kept"),
        ("flood-scripts.html", "until it is left, what runs in it cannot be stopped"),
    ] {
        let flood = rig.open(&rig.here(page)).await;
        for n in 0..10 {
            assert_eq!(rig.value(&calm, &format!("{n} + 1")).await, n + 1);
            rig.value(&flood, "1").await;
        }
        // That only a sample is told is told, too.
        let read = json!({ "what": "console", "tab_id": flood, "filter": words });
        rig.until(read, |told| told["count"].as_u64().is_some_and(|count| count > 0)).await;
        rig.done(json!({ "action": "tab_close", "tab_id": flood })).await;
    }
    // What another tab logs is there all the same.
    rig.value(&calm, "console.log('calm words')").await;
    let read = json!({ "what": "console", "tab_id": calm, "filter": "calm words" });
    let console = rig.call("observe", read).await;
    assert_eq!(console["count"], 1, "{console}");
    rig.close().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_crash_of_a_page_ends_its_commands_at_once() {
    // [BROWSER-39]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.elsewhere("plain.html")).await;
    let other = rig.open(&rig.here("plain.html")).await;
    let endless = json!({
        "action": "execute_js", "script": "console.log('begun'); await new Promise(() => {})",
        "tab_id": tab, "wait_ms": 0,
    });
    let open = rig.call("interact", endless).await;
    // What it logged tells that it runs.
    let begun =
        || rig.call("observe", json!({ "what": "console", "tab_id": tab, "filter": "begun" }));
    while begun().await["count"] != 1 {
        rig.value(&other, "1").await;
    }
    rig.crash_pages();
    let ended = rig.end_of(open).await;
    assert_eq!(ended["error_info"]["code"], "peer_lost", "{ended}");
    assert!(why(&ended).0.contains("crashed"), "{ended}");
    let refused = rig.end(json!({ "what": "page_text", "tab_id": tab })).await;
    assert!(
        why(&refused).0.contains("the page crashed") && why(&refused).1 == "not_executed",
        "{refused}"
    );
    rig.done(json!({ "action": "reload", "tab_id": tab })).await;
    assert_eq!(rig.value(&tab, "1 + 1").await, 2);
    rig.close().await;
}
