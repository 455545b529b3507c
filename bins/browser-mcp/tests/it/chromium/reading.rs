//! What of a page is read: however large it is, through shadow roots and frames.

use serde_json::{Value, json};

use super::Rig;

async fn snapshot(rig: &Rig, tab_id: &Value, more: Value) -> Value {
    let mut call = json!({ "what": "snapshot", "tab_id": tab_id, "wait_ms": 20_000 });
    if let (Value::Object(call), Value::Object(more)) = (&mut call, more) {
        call.extend(more);
    }
    rig.done(call).await["result"].take()
}

/// Returns the text of a view.
fn text(view: &Value) -> &str {
    view["text"].as_str().expect("a text")
}

/// Returns the ref of the element whose line has these words.
fn ref_of(view: &Value, words: &str) -> String {
    let line = text(view).lines().find(|line| line.contains(words));
    let line = line.unwrap_or_else(|| panic!("{words} is not in {}", text(view)));
    let (_, rest) = line.split_once("[ref=").unwrap_or_else(|| panic!("no ref: {line}"));
    rest.split(']').next().expect("a ref").to_owned()
}

#[tokio::test]
async fn a_page_of_many_nodes_goes_on_while_it_is_read_and_the_rest_is_told() {
    // [BROWSER-30] [BROWSER-31]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("many-nodes.html")).await;
    // Every node is looked at. Meanwhile the page stands still for a part of that time only.
    rig.value(&tab, "window.longest = 0").await;
    let whole = json!({ "what": "snapshot", "tab_id": tab, "max_nodes": 1_000_000, "max_bytes": 4_000_000 });
    let whole = rig.end(whole).await;
    let took = whole["page"]["duration_ms"].as_f64().unwrap_or_else(|| panic!("{whole}"));
    let longest = rig.value(&tab, "window.longest").await.as_f64().expect("a number");
    assert!(longest * 2.0 < took, "the page stood still for {longest} ms of {took}");

    let most = json!({ "max_bytes": 20_000, "selector": "#rows" });
    let part = snapshot(&rig, &tab, most).await;
    let told = text(&part);
    assert!(told.len() < 22_000 && told.contains("Act 99"), "{} bytes: {told}", told.len());
    let left_out = part["left_out"][0].as_str().expect("what is left out");
    assert!(told.contains("[left out: about ") && left_out.contains("more elements"), "{left_out}");

    let flat = snapshot(&rig, &tab, json!({ "depth": 1 })).await;
    assert!(text(&flat).contains("heading \"Rows\"") && !text(&flat).contains("Act 1"), "{flat}");
    assert!(flat["left_out"][0].as_str().is_some_and(|it| it.contains("deeper")), "{flat}");
    let one = snapshot(&rig, &tab, json!({ "selector": ".row:nth-child(77)" })).await;
    assert!(text(&one).contains("textbox \"Field 76\"") && one["left_out"].is_null(), "{one}");
    let few = snapshot(&rig, &tab, json!({ "max_nodes": 5 })).await;
    assert_eq!(text(&few).lines().filter(|line| line.contains("- ")).count(), 5, "{few}");
    rig.close().await;
}

#[tokio::test]
async fn shadow_roots_and_frames_of_every_origin_are_read_and_acted_in() {
    // Case browser-frame-of-another-origin. [BROWSER-32]
    let rig = Rig::start().await;
    // The mouse reaches frames of other processes only in the tab in front.
    let tab = rig.open_in_front(&rig.here("frames.html")).await;
    let all = ["near", "far", "back", "shaded", "boxed", "shut"];
    let read = json!({ "what": "snapshot", "tab_id": tab });
    // The frames load when they do.
    let view = rig
        .until(read, |told| {
            all.iter().all(|name| told.to_string().contains(&format!("\\\"{name}\\\"")))
        })
        .await;
    let view = view["result"].clone();
    assert!(text(&view).contains(&format!("(origin {})", rig.elsewhere(""))), "{view}");
    let left_out = view["left_out"].to_string();
    assert!(left_out.contains("http://127.0.0.1:1/nobody"), "what is not read is named: {view}");

    for name in all {
        let click = json!({ "action": "click", "tab_id": tab, "ref": ref_of(&view, &format!("\"{name}\"")) });
        rig.done(click).await;
    }
    let call = json!({ "what": "page_text", "tab_id": tab });
    let told = rig.done(call).await;
    for name in ["near", "far", "back", "shaded"] {
        assert!(
            text(&told["result"]).contains(&format!("{name} was clicked true")),
            "{name}: {told}"
        );
    }
    for words in ["boxed was clicked", "shut was clicked", "In the shade", "by itself"] {
        assert!(text(&told["result"]).contains(words), "{words}: {told}");
    }
    for (target, text) in [
        (json!({ "ref": ref_of(&view, "\"far text\"") }), "in a frame"),
        (json!({ "ref": ref_of(&view, "\"dark\"") }), "in the shade"),
        (json!({ "selector": "[placeholder='back text']" }), "found there"),
    ] {
        let mut call = json!({ "action": "type", "tab_id": tab, "text": text });
        let (Value::Object(members), Value::Object(target)) = (&mut call, target) else { panic!() };
        members.extend(target);
        assert_eq!(rig.done(call).await["result"]["value"], text);
    }
    let wait = json!({ "action": "wait_for", "tab_id": tab, "text": "back was clicked" });
    assert_eq!(rig.done(wait).await["result"]["state"], "visible");
    // A ref of a frame that is gone names nothing else.
    let gone = json!({ "action": "click", "tab_id": tab, "ref": ref_of(&view, "\"back\"") });
    rig.value(&tab, "document.querySelectorAll('iframe')[1].remove()").await;
    let refused = rig.end(gone).await;
    assert_eq!(refused["error_info"]["guarantee"], "not_executed", "{refused}");
    rig.close().await;
}

#[tokio::test]
async fn what_a_script_logged_is_there_when_it_has_ended() {
    // [BROWSER-33]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("plain.html")).await;
    for n in 0..5 {
        rig.value(&tab, &format!("console.log('line {n} of it')")).await;
        let read = json!({ "what": "console", "tab_id": tab, "filter": format!("line {n} of it") });
        let console = rig.call("observe", read).await;
        assert_eq!(console["count"], 1, "{console}");
    }
    rig.close().await;
}

#[tokio::test]
async fn values_are_read_as_they_are_whatever_a_page_replaced() {
    // Case browser-odd-values. [BROWSER-13] [BROWSER-34]
    let rig = Rig::start().await;
    for page in ["replaced.html", "plain.html"] {
        let tab = rig.open(&rig.here(page)).await;
        for (script, value) in [
            (
                "({ list: [1, [true], { a: 'x' }], none: null })",
                json!({ "list": [1, [true], { "a": "x" }], "none": null }),
            ),
            ("new Date(0)", json!("1970-01-01T00:00:00.000Z")),
            ("document.body", json!("<body>")),
            (r#"['\ud83d half', { '\udc00': 1 }]"#, json!(["\u{fffd} half", { "\u{fffd}": 1 }])),
        ] {
            assert_eq!(rig.value(&tab, script).await, value, "{page}: {script}");
        }
        let script = "throw new Error('outer', { cause: new RangeError('inner', { cause: [1] }) })";
        let thrown =
            rig.end(json!({ "action": "execute_js", "script": script, "tab_id": tab })).await;
        let cause = &thrown["error_info"]["details"]["cause"];
        assert_eq!(
            *cause,
            json!({ "$type": "Error", "name": "RangeError", "message": "inner", "cause": [1] }),
            "{thrown}"
        );
        // Nothing of how it was read is left in the page.
        assert_eq!(rig.value(&tab, "window.length").await, 0, "{page}");
        let text = "half \\ud83d of one";
        rig.value(&tab, &format!("console.log('{text}')")).await;
        let read = json!({ "what": "console", "tab_id": tab, "filter": "half" });
        let console = rig.call("observe", read).await;
        assert_eq!(console["console"][0]["text"], "half \u{fffd} of one", "{console}");
    }
    // A text that is cut is cut between characters, as its reader sees it.
    let tab = rig.open(&rig.here("plain.html")).await;
    let script = "document.body.textContent = 'x'.repeat(999_999) + '\u{1f600} and more'; 1";
    rig.value(&tab, script).await;
    rig.done(json!({ "what": "page_text", "tab_id": tab, "save_to": "long.txt" })).await;
    let text = std::fs::read_to_string(rig.files().join("long.txt")).expect("a text");
    let end: String = text.chars().skip(999_998).take(13).collect();
    assert_eq!(end, "x\u{fffd}\n[left out:");
    // 10.8 MB: below the limit of a post, above what servers take unless they are told otherwise.
    let tab = rig.open(&rig.here("plain.html")).await;
    let script = "Array.from({ length: 3 }, () => '\u{8336}'.repeat(1_200_000))";
    let large = rig.end(json!({ "action": "execute_js", "script": script, "tab_id": tab })).await;
    let kilobytes = large["data"]["size_kb"].as_f64().unwrap_or_else(|| panic!("{large}"));
    assert!(kilobytes > 10_000.0, "{kilobytes}");
    rig.close().await;
}
