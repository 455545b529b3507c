//! What is done to a page: the mouse in all its ways, whole forms, files.

use serde_json::{Value, json};

use super::Rig;

#[tokio::test]
async fn the_mouse_clicks_with_every_button_and_drags_what_can_be_dragged() {
    // [BROWSER-41]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("mouse.html")).await;
    for (how, wanted) in [
        (json!({}), json!(["click 0 1"])),
        (json!({ "count": 2 }), json!(["click 0 1", "click 0 2", "dblclick 0 2"])),
        (json!({ "button": "right" }), json!(["contextmenu 2 0", "auxclick 2 1"])),
        (json!({ "button": "middle" }), json!(["auxclick 1 1"])),
        (json!({ "modifiers": ["Shift", "Alt"] }), json!(["click 0 1 shift alt"])),
    ] {
        rig.value(&tab, "(seen.length = 0)").await;
        let mut call = json!({ "action": "click", "selector": "#button", "tab_id": tab });
        call.as_object_mut().expect("an object").extend(how.as_object().expect("one").clone());
        rig.done(call).await;
        let mut seen = rig.value(&tab, "[...seen]").await;
        if how["button"] == "right" {
            // Which of the two comes first differs between systems.
            seen.as_array_mut().expect("an array").retain(|one| *one == "contextmenu 2 0");
            assert_eq!(seen, json!(["contextmenu 2 0"]), "{how}");
        } else {
            assert_eq!(seen, wanted, "{how}");
        }
    }
    // The browser's own drag and drop.
    let call = json!({
        "action": "drag", "tab_id": tab,
        "from": { "selector": "#card" }, "to": { "selector": "#bin" },
    });
    rig.done(call).await;
    assert_eq!(rig.value(&tab, "bin.textContent").await, "a card");
    // A drag that the page makes itself of the mouse.
    let call = json!({
        "action": "drag", "tab_id": tab, "from": { "selector": "#knob" }, "to": { "selector": "#track" },
    });
    rig.done(call).await;
    let moved = rig.value(&tab, "[parseInt(knob.style.left), put_down]").await;
    assert_eq!(moved, json!([140, true]));
    let call = json!({
        "action": "drag", "tab_id": tab, "from": { "selector": "#knob" }, "to": { "selector": "#none" },
    });
    let missing = rig.end(call).await;
    assert_eq!(missing["error_info"]["guarantee"], "not_executed", "{missing}");
    rig.close().await;
}

#[tokio::test]
async fn a_page_hears_of_no_button_that_is_let_go_while_the_mouse_only_moves() {
    let rig = Rig::start().await;
    let behind = rig.open(&rig.here("mouse.html")).await;
    let in_front = rig.open_in_front(&rig.here("mouse.html")).await;
    let listen = "window.heard = []; for (const kind of ['pointermove', 'mousemove', 'pointerdown', \
                  'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'contextmenu']) \
                  addEventListener(kind, () => heard.push(kind), true)";
    let heard = "[heard.filter((one) => !one.endsWith('move')), \
                 heard.filter((one) => one === 'mousemove').length, \
                 heard.filter((one) => one === 'pointermove').length, heard.splice(0).at(-1)]";
    for tab in [behind, in_front] {
        rig.value(&tab, listen).await;
        rig.done(json!({ "action": "hover", "selector": "#button", "tab_id": tab })).await;
        let told = rig.value(&tab, heard).await;
        assert_eq!(told[0], json!([]), "{told}");
        assert!(told[1].as_u64() > Some(0) && told[2].as_u64() > Some(0), "{told}");
        let knob = json!({
            "action": "drag", "tab_id": tab, "from": { "selector": "#knob" },
            "to": { "selector": "#track" },
        });
        rig.done(knob).await;
        // Down and up once, and up after all moves.
        let told = rig.value(&tab, heard).await;
        let ups = json!(["pointerdown", "mousedown", "pointerup", "mouseup", "click"]);
        assert!(
            told[0] == ups || told[0] == json!(&ups.as_array().expect("a list")[..4]),
            "{told}"
        );
        assert!(told[1].as_u64() >= Some(8) && told[2].as_u64() >= Some(8), "{told}");
    }
    rig.close().await;
}

#[tokio::test]
async fn a_form_is_filled_in_one_call_that_says_of_each_field_whether_it_was_set() {
    // [BROWSER-42]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("form.html")).await;
    let fill = |fields: Value| json!({ "action": "fill_form", "tab_id": tab, "fields": fields });
    let filled = rig
        .done(fill(json!([
            { "selector": "#name", "value": "Ada" },
            { "selector": "#word", "value": "open sesame" },
            { "selector": "#notes", "value": "one\ntwo" },
            { "selector": "#country", "value": "Portugal" },
            { "selector": "#city", "value": "Porto" },
            { "selector": "#terms", "value": true },
            { "selector": "[name=size]", "value": "Large" },
            { "selector": "#day", "value": "2026-11-29" },
        ])))
        .await;
    assert_eq!(filled["result"]["n_filled"], 8, "{filled}");
    assert!(!filled.to_string().contains("open sesame"), "{filled}");
    let script = "[name.value, word.value, notes.value, country.value, city.value, terms.checked, \
                  document.querySelector('[name=size]:checked').value, day.value]";
    let script = script.replace("name.value, word", "document.getElementById('name').value, word");
    let set = rig.value(&tab, &script).await;
    let wanted = json!(["Ada", "open sesame", "one\ntwo", "pt", "Porto", true, "l", "2026-11-29"]);
    assert_eq!(set, wanted);
    let heard = rig.value(&tab, "heard.join()").await;
    assert_eq!(heard, "name,word,notes,country,city,terms,size,day");
    // One that cannot be set does not stop those after it, and the command says which.
    let mut call = fill(json!([
        { "selector": "#name", "value": "Bea" },
        { "selector": "#code", "value": "7" },
        { "selector": "#none", "value": "x" },
        { "selector": "#notes", "value": "three" },
    ]));
    call["timeout_ms"] = json!(3000);
    let failed = rig.end(call).await;
    assert_eq!(failed["status"], "error", "{failed}");
    let told = failed["error_info"].to_string();
    for words in ["form_incomplete", "disabled", "#none", "executed"] {
        assert!(told.contains(words), "{words}: {failed}");
    }
    let set = rig.value(&tab, "[document.getElementById('name').value, notes.value]").await;
    assert_eq!(set, json!(["Bea", "three"]));
    // What was clicked in vain was clicked, once; what was never there was not.
    for (selector, guarantee) in [("#stubborn", "executed"), ("#none", "not_executed")] {
        let mut call = fill(json!([{ "selector": selector, "value": true }]));
        call["timeout_ms"] = json!(3000);
        let failed = rig.end(call).await;
        assert_eq!(failed["error_info"]["guarantee"], guarantee, "{failed}");
    }
    assert_eq!(rig.value(&tab, "n_clicked").await, 1);
    rig.close().await;
}

#[tokio::test]
async fn files_below_the_named_folder_are_uploaded_and_no_others() {
    // [BROWSER-40]
    let rig = Rig::start().await;
    let files = rig.files();
    std::fs::create_dir(files.join("sub")).expect("created");
    std::fs::write(files.join("one.txt"), "first").expect("written");
    let large = "0123456789abcdef".repeat(512 * 1024);
    std::fs::write(files.join("sub/two.csv"), &large).expect("written");
    std::fs::write(rig.folder.path().join("secret"), "outside").expect("written");
    let tab = rig.open(&rig.here("upload.html")).await;
    let upload = |at: &str, files: Value| json!({ "action": "upload", "tab_id": tab, "selector": at, "files": files });
    // The field is hidden behind the button.
    let given = rig.done(upload("#choose", json!(["one.txt", "sub/two.csv"]))).await;
    assert_eq!(given["result"]["n_files"], 2, "{given}");
    let script = json!({
        "action": "wait_for", "tab_id": tab, "selector": "#field", "state": "attached",
    });
    rig.done(script).await;
    let read = json!({ "action": "execute_js", "tab_id": tab, "script": "window.got ?? null" });
    let got = rig.until(read, |answer| answer["result"].is_array()).await;
    let wanted = json!([
        ["one.txt", "text/plain", 5, "first"],
        ["two.csv", "text/csv", large.len(), &large[..40]],
    ]);
    assert_eq!(got["result"], wanted);
    let two = rig.end(upload("#single", json!(["one.txt", "sub/two.csv"]))).await;
    assert_eq!(two["error_info"]["guarantee"], "not_executed", "{two}");
    #[cfg(unix)]
    std::os::unix::fs::symlink(rig.folder.path().join("secret"), files.join("link")).expect("made");
    let outside = rig.folder.path().join("secret");
    for name in ["../secret", "link", "sub", "none.txt", outside.to_str().expect("text")] {
        let refused = rig.call("interact", upload("#field", json!([name]))).await;
        assert_eq!(refused["error_info"]["code"], "invalid_params", "{name}: {refused}");
        assert!(refused.to_string().contains("files[0]"), "{name}: {refused}");
    }
    rig.close().await;
}
