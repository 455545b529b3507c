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

/// Does something on the page `changes.html` as it was loaded, and returns the answer. A busy machine may not tell
/// in time what changed: then it is done once more, on a page that is loaded anew.
async fn act(rig: &Rig, tab_id: &Value, mut call: Value) -> Value {
    call["changes"] = json!(true);
    call["tab_id"] = tab_id.clone();
    call["timeout_ms"] = json!(60_000);
    let mut answer = Value::Null;
    for _ in 0..60 {
        let load =
            json!({ "action": "navigate", "url": rig.here("changes.html"), "tab_id": tab_id });
        rig.done(load).await;
        answer = rig.done(call.clone()).await;
        assert!(answer["untrusted_begins"].is_string(), "{answer}");
        if answer["result"]["changes"]["not_known"].is_null() {
            return answer["result"]["changes"].take();
        }
    }
    panic!("what changed was never known: {answer}")
}

#[tokio::test]
async fn an_act_answers_with_what_it_changed_and_is_done_whatever_becomes_of_that() {
    // [BROWSER-52]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("changes.html")).await;
    // The menu's lines only.
    let opened = act(&rig, &tab, json!({ "action": "click", "selector": "#menu" })).await;
    let lines: Vec<&str> = text(&opened).lines().collect();
    let shown: Vec<&str> = lines.iter().filter_map(|line| line.split(" [").next()).collect();
    let wanted = [
        "~ - button \"Menu\"",
        "+ - menu \"Things\"",
        "+   - menuitem \"Copy\"",
        "+   - menuitem \"Paste\"",
    ];
    assert_eq!(shown, wanted, "{opened}");
    let counts = [&opened["added"], &opened["removed"], &opened["changed"]];
    assert_eq!(counts, [&json!(3), &json!(0), &json!(1)]);
    assert!(lines[0].contains("[expanded]"), "{opened}");
    // What came can be acted on by its ref.
    let hover = json!({ "action": "hover", "ref": ref_of(&opened, "Paste"), "tab_id": tab });
    assert_eq!(rig.done(hover).await["result"]["target"], "menuitem \"Paste\"");

    // What is typed where secrets are typed is in no answer.
    let fill = json!({ "action": "fill", "selector": "#word", "text": "hunter22" });
    assert!(text(&act(&rig, &tab, fill).await).contains("It is ••••"));
    // Of a batch, what all of it changed.
    let steps = json!([
        { "action": "click", "selector": "#menu" },
        { "action": "fill", "selector": "#word", "text": "x" },
    ]);
    let batch = act(&rig, &tab, json!({ "action": "batch", "steps": steps })).await;
    assert!(text(&batch).contains("It is x") && text(&batch).contains("Copy"), "{batch}");
    // Of a page that came instead, the first lines.
    let left =
        act(&rig, &tab, json!({ "action": "navigate", "url": rig.here("plain.html") })).await;
    assert_eq!((&left["new_page"], text(&left)), (&json!(true), "- text: Plain"), "{left}");
    let again = act(&rig, &tab, json!({ "action": "reload" })).await;
    assert!(text(&again).starts_with("- heading \"What changes\""), "{again}");
    assert!(again["left_out"].to_string().contains("more lines"), "{again}");

    // Of a script, beside its value; of a new tab, the first lines.
    let script = "document.querySelector('#menu').click(), 7";
    let call = json!({
        "action": "execute_js", "script": script, "tab_id": tab, "changes": true, "timeout_ms": 60_000,
    });
    let told = rig.done(call).await;
    assert_eq!(told["result"]["value"], 7, "{told}");
    assert!(told["result"]["changes"].is_object(), "{told}");
    let call = json!({
        "action": "tab_new", "url": rig.here("plain.html"), "changes": true, "timeout_ms": 60_000,
    });
    let opened = rig.done(call).await;
    assert_eq!(opened["result"]["changes"]["new_page"], true, "{opened}");
    assert_eq!(text(&opened["result"]["changes"]), "- text: Plain", "{opened}");

    // A dialog that is left open holds the page up, and not the answer.
    let policy = |name: &str| json!({ "what": "dialog_policy", "policy": name, "wait_ms": 20_000 });
    rig.end_of(rig.call("configure", policy("report")).await).await;
    let call = json!({
        "action": "click", "selector": "#ask", "tab_id": tab, "changes": true, "timeout_ms": 60_000,
    });
    let asked = rig.done(call).await;
    assert!(asked["result"]["changes"]["not_known"].is_string(), "{asked}");
    assert_eq!(asked["result"]["dialog"]["outcome"], "open", "{asked}");
    rig.done(json!({ "action": "dialog", "accept": true, "tab_id": tab })).await;
    rig.end_of(rig.call("configure", policy("dismiss")).await).await;
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
    // The frame within the frame comes last.
    let is_whole = |told: &Value| {
        let told = told["result"]["text"].to_string();
        told.contains("\\\"far\\\"") && told.contains("\\\"back\\\"")
    };
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
