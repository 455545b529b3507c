//! What changed: since an earlier snapshot, and by an act.

use serde_json::{Value, json};

use super::Rig;

/// Returns the text of a view.
fn text(view: &Value) -> &str {
    view["text"].as_str().unwrap_or_else(|| panic!("no text: {view}"))
}

/// Returns the ref of the element whose line has these words.
fn ref_of(view: &Value, words: &str) -> String {
    let line = text(view).lines().find(|line| line.contains(words));
    let line = line.unwrap_or_else(|| panic!("{words} is not in {}", text(view)));
    let (_, rest) = line.split_once("[ref=").unwrap_or_else(|| panic!("no ref: {line}"));
    rest.split(']').next().expect("a ref").to_owned()
}

#[tokio::test]
async fn an_act_answers_with_what_it_changed_and_is_done_whatever_becomes_of_that() {
    // [BROWSER-52]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("changes.html")).await;
    let act = async |mut call: Value| {
        call["changes"] = json!(true);
        call["tab_id"] = tab.clone();
        call["timeout_ms"] = json!(60_000);
        let answer = rig.done(call).await;
        assert!(answer["untrusted_begins"].is_string(), "{answer}");
        answer["result"]["changes"].clone()
    };
    // The menu's lines only.
    let opened = act(json!({ "action": "click", "selector": "#menu" })).await;
    let lines: Vec<&str> = text(&opened).lines().map(str::trim_end).collect();
    let shown: Vec<String> =
        lines.iter().map(|line| line.split(" [").next().expect("a line").to_owned()).collect();
    let wanted = [
        "~ - button \"Menu\"",
        "+ - menu \"Things\"",
        "+   - menuitem \"Copy\"",
        "+   - menuitem \"Paste\"",
    ];
    assert_eq!(shown, wanted, "{opened}");
    assert_eq!(
        (&opened["added"], &opened["removed"], &opened["changed"]),
        (&json!(3), &json!(0), &json!(1))
    );
    assert!(lines[0].contains("[expanded]"), "{opened}");
    // What came can be acted on by its ref.
    let paste = ref_of(&opened, "Paste");
    assert_eq!(
        rig.done(json!({ "action": "hover", "ref": paste, "tab_id": tab })).await["result"]["target"],
        "menuitem \"Paste\""
    );

    // What is typed where secrets are typed is in no answer.
    let typed = act(json!({ "action": "fill", "selector": "#word", "text": "hunter22" })).await;
    assert!(text(&typed).contains("It is ••••"), "{typed}");
    // Of a batch, what all of it changed.
    let call = json!({ "action": "batch", "steps": [{ "action": "click", "selector": "#menu" }, { "action": "fill", "selector": "#word", "text": "x" }] });
    assert!(text(&act(call).await).contains("It is x"));

    // A dialog that is left open holds the page up, and not the answer.
    rig.call(
        "configure",
        json!({ "what": "dialog_policy", "policy": "report", "wait_ms": 20_000 }),
    )
    .await;
    let asked = act(json!({ "action": "click", "selector": "#ask" })).await;
    assert!(asked["not_known"].to_string().contains("dialog"), "{asked}");
    rig.done(json!({ "action": "dialog", "accept": true, "tab_id": tab })).await;
    rig.call(
        "configure",
        json!({ "what": "dialog_policy", "policy": "dismiss", "wait_ms": 20_000 }),
    )
    .await;

    // Of a page that came, the first lines.
    let left = act(json!({ "action": "click", "selector": "#away" })).await;
    assert_eq!((&left["new_page"], text(&left)), (&json!(true), "- text: Plain"), "{left}");
    // A new page is not compared with the page before it.
    let back = act(json!({ "action": "navigate", "url": rig.here("changes.html") })).await;
    assert!(text(&back).starts_with("- heading \"What changes\""), "{back}");
    assert!(back["left_out"].to_string().contains("more lines"), "{back}");
    rig.close().await;
}

#[tokio::test]
async fn a_snapshot_since_another_tells_what_changed_in_frames_and_shadow_roots_too() {
    // [BROWSER-51]
    let rig = Rig::start().await;
    let tab = rig.open_in_front(&rig.here("changes.html")).await;
    let read = |more: Value| {
        let mut call = json!({ "what": "snapshot", "tab_id": tab });
        call.as_object_mut().expect("one").extend(more.as_object().expect("one").clone());
        call
    };
    let is_whole = |told: &Value| told["result"]["text"].to_string().contains("\\\"far\\\"");
    let first = rig.until(read(json!({})), is_whole).await["result"].clone();
    let since = read(json!({ "since": first["snapshot_id"] }));
    let same = rig.done(since.clone()).await["result"].clone();
    assert_eq!(
        (text(&same), &same["added"], &same["changed"]),
        ("", &json!(0), &json!(0)),
        "{same}"
    );
    for name in ["far", "shut"] {
        let click = json!({ "action": "click", "ref": ref_of(&first, &format!("\"{name}\"")), "tab_id": tab });
        rig.done(click).await;
    }
    let is_there = |told: &Value| {
        let told = told["result"]["text"].to_string();
        told.contains("far was clicked") && told.contains("shut was clicked")
    };
    let told = rig.until(since.clone(), is_there).await["result"].clone();
    assert!(told["whole_because"].is_null() && !text(&told).contains("Row 7"), "{told}");
    // Elements that were there keep their refs.
    for name in ["far", "shut"] {
        assert_eq!(
            ref_of(&told, &format!("\"{name} was clicked")),
            ref_of(&first, &format!("\"{name}\""))
        );
    }
    // Of a part, the same part; another one is told whole.
    let part = rig.done(read(json!({ "selector": "[aria-label=Rows]" }))).await["result"].clone();
    rig.value(&tab, "(rows.children[3].remove(), 0)").await;
    let of_part = rig.done(read(json!({ "since": part["snapshot_id"] }))).await["result"].clone();
    assert!(text(&of_part).contains("Row 3") && of_part["removed"].as_i64() > Some(0), "{of_part}");
    let other = rig.done(read(json!({ "since": part["snapshot_id"], "selector": "#menu" }))).await;
    assert_eq!(other["result"]["whole_because"], "other_part", "{other}");
    rig.value(&tab, "(document.body.innerHTML = '<p>All else</p>', 0)").await;
    let larger = rig.done(since.clone()).await["result"].clone();
    assert_eq!(
        (&larger["whole_because"], text(&larger)),
        (&json!("changes_larger"), "- text: All else")
    );
    for _ in 0..9 {
        rig.done(read(json!({ "max_nodes": 1 }))).await;
    }
    assert_eq!(rig.done(since.clone()).await["result"]["whole_because"], "forgotten");
    rig.done(json!({ "action": "reload", "tab_id": tab })).await;
    let navigated = rig.done(since).await["result"].clone();
    assert_eq!(navigated["whole_because"], "navigated", "{navigated}");
    assert!(text(&navigated).contains("What changes"), "{navigated}");
    rig.close().await;
}
