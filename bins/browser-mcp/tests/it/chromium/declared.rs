//! Tools that a page declares itself.

use serde_json::{Value, json};

use super::Rig;

/// Returns what a list says of a tool.
fn named<'a>(listed: &'a Value, name: &str) -> &'a Value {
    let tools = listed["result"]["tools"].as_array().into_iter().flatten();
    let mut found = tools.filter(|tool| tool["name"] == name);
    found.next().unwrap_or_else(|| panic!("{name} in {listed}"))
}

/// Makes the call of a tool as it was listed.
fn call(tab: &Value, tool: &Value, arguments: &Value) -> Value {
    json!({
        "action": "page_tools", "tab_id": tab, "name": tool["name"], "arguments": arguments,
        "origin": tool["origin"], "schema_hash": tool["schema_hash"],
    })
}

#[tokio::test]
async fn a_page_s_own_tools_are_listed_and_called_as_they_were_listed_or_not_at_all() {
    // [BROWSER-56, BROWSER-57]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("page-tools.html")).await;
    let list = json!({ "action": "page_tools", "tab_id": tab });
    let listed = rig.done(list.clone()).await;
    assert!(listed["untrusted_begins"].is_string(), "{listed}");
    let add = named(&listed, "add").clone();
    assert_eq!(add["schema"]["required"], json!(["a"]), "{listed}");
    assert_eq!(rig.value(&tab, "is_own").await, true);

    let added = rig.done(call(&tab, &add, &json!({ "a": 2 }))).await;
    assert_eq!(added["result"]["value"], json!({ "sum": 3 }), "{added}");

    // What differs from the list is not called.
    for (member, other, reason) in [
        ("schema_hash", "0123456789abcdef0123456789abcdef", "page_tool_changed"),
        ("origin", "https://example.com", "page_tool_origin"),
        ("name", "subtract", "no_page_tool"),
    ] {
        let mut wrong = call(&tab, &add, &json!({ "a": 2 }));
        wrong[member] = json!(other);
        let refused = rig.end(wrong).await;
        assert_eq!(refused["error_info"]["guarantee"], "not_executed", "{refused}");
        assert_eq!(refused["error_info"]["details"]["reason"], reason, "{refused}");
    }
    // Nor is what its schema does not allow.
    for (arguments, place) in [(json!({}), "arguments.a"), (json!({ "a": "two" }), "arguments.a")] {
        let refused = rig.end(call(&tab, &add, &arguments)).await;
        assert_eq!(refused["error_info"]["details"]["reason"], "page_tool_arguments", "{refused}");
        assert_eq!(refused["error_info"]["guarantee"], "not_executed", "{refused}");
        assert!(refused["error"].to_string().contains(place), "{refused}");
    }
    assert_eq!(rig.value(&tab, "n_added").await, 1);

    // Those of a frame are of its origin, whatever the page around it is.
    let framed = format!(
        "new Promise((done) => {{ const frame = document.createElement('iframe'); frame.onload = () => done(1); \
         frame.src = '{}'; document.body.append(frame); }})",
        rig.elsewhere("page-tools.html")
    );
    rig.value(&tab, &framed).await;
    let both = rig.done(list.clone()).await;
    let tools = both["result"]["tools"].as_array().expect("a list");
    let inner = tools.iter().rfind(|tool| tool["name"] == "add").expect("one of the frame");
    assert_eq!(inner["origin"], rig.elsewhere("").trim_end_matches('/'), "{both}");
    assert_eq!(inner["schema_hash"], add["schema_hash"], "{both}");
    let added = rig.done(call(&tab, inner, &json!({ "a": 5 }))).await;
    assert_eq!(added["result"]["value"], json!({ "sum": 6 }), "{added}");
    assert_eq!(rig.value(&tab, "n_added").await, 1);

    // Nobody but the page knows how far a tool came that fails, or that leaves the page.
    let failed = rig.end(call(&tab, named(&listed, "fail"), &json!({}))).await;
    assert_eq!(failed["error_info"]["guarantee"], "unknown", "{failed}");
    assert!(failed["error"].to_string().contains("out of tea"), "{failed}");
    let left = rig.end(call(&tab, named(&listed, "leave"), &json!({}))).await;
    assert_eq!(left["error_info"]["guarantee"], "unknown", "{left}");
    assert_eq!(left["error_info"]["details"]["reason"], "navigated", "{left}");
    let seen = rig.value(&tab, "[location.pathname, localStorage.n_left]").await;
    assert_eq!(seen, json!(["/plain.html", "1"]));

    // Where a caller asks for it, pages find a `document.modelContext` that they did not bring.
    let set = rig.call("configure", json!({ "what": "webmcp", "shim": true })).await;
    assert_eq!(rig.end_of(set).await["result"]["shim"], true);
    rig.done(json!({ "action": "navigate", "tab_id": tab, "url": rig.here("page-tools.html") }))
        .await;
    assert_eq!(rig.value(&tab, "typeof is_own").await, "undefined");
    let listed = rig.done(list).await;
    assert_eq!(*named(&listed, "add"), add);
    let added = rig.done(call(&tab, &add, &json!({ "a": 3 }))).await;
    assert_eq!(added["result"]["value"], json!({ "sum": 4 }), "{added}");
    rig.close().await;
}
