//! What a tab is made to believe, what it keeps, and what it downloaded.

use serde_json::json;

use super::Rig;

#[tokio::test]
async fn a_tab_is_emulated_until_that_is_undone_and_tells_what_it_keeps() {
    // [BROWSER-47, BROWSER-48, BROWSER-49]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("keeps.html")).await;
    let seen = "[innerWidth, navigator.userAgent.includes('Mobile'), devicePixelRatio]";
    let before = rig.value(&tab, seen).await;
    let emulate = |what: serde_json::Value| {
        let mut call = json!({ "action": "emulate", "tab_id": tab });
        call.as_object_mut().expect("one").extend(what.as_object().expect("one").clone());
        call
    };
    let held = rig.done(emulate(json!({ "device": "iphone", "cpu": 2 }))).await;
    assert_eq!(held["result"]["emulated"], json!({ "device": "iphone", "cpu": 2 }), "{held}");
    rig.done(json!({ "action": "reload", "tab_id": tab })).await;
    let phone = rig.value(&tab, "[screen.width, navigator.userAgent.includes('iPhone')]").await;
    assert_eq!(phone, json!([393, true]));
    rig.done(emulate(json!({ "viewport": { "width": 500, "height": 400 }, "network": "offline" })))
        .await;
    assert_eq!(rig.value(&tab, "[innerWidth, innerHeight]").await, json!([500, 400]));
    let fetched = "fetch('tea.bin?' + Math.random()).then(() => 'there', () => 'gone')";
    assert_eq!(rig.value(&tab, fetched).await, "gone");
    let undone = rig.done(emulate(json!({}))).await;
    assert_eq!(undone["result"]["emulated"], json!({}), "{undone}");
    assert_eq!(rig.value(&tab, fetched).await, "there");
    assert_eq!(rig.value(&tab, seen).await, before);

    let stored = rig.done(json!({ "what": "storage", "tab_id": tab })).await;
    assert_eq!(stored["result"]["local"], json!({ "cup": "blue" }), "{stored}");
    assert_eq!(stored["result"]["session"], json!({ "pot": "warm" }), "{stored}");
    let cookies = rig.done(json!({ "what": "cookies", "tab_id": tab })).await;
    let first = &cookies["result"]["cookies"][0];
    assert_eq!((&first["name"], &first["value"]), (&json!("leaf"), &json!("green")), "{cookies}");

    rig.done(json!({ "action": "click", "selector": "#get", "tab_id": tab })).await;
    let downloads = json!({ "what": "downloads" });
    let told = rig.until(downloads, |told| told["result"][0]["state"] == "complete").await;
    let row = &told["result"][0];
    assert_eq!((&row["tab_id"], &row["bytes"]), (&tab, &json!(14)), "{told}");
    let path = std::path::Path::new(row["path"].as_str().unwrap_or_else(|| panic!("{told}")));
    assert_eq!(std::fs::read(path).expect("there"), b"tea in a file\n");
    let id = row["download_id"].to_string();
    let save = |id: &str| json!({ "what": "downloads", "id": id, "save_to": "cups/tea.bin" });
    let saved = rig.done(save(&id)).await;
    let result = &saved["result"];
    assert_eq!(result["bytes"], 14, "{saved}");
    assert!(result["saved_to"].as_str().is_some_and(|to| to.ends_with("tea.bin")), "{saved}");
    assert_eq!(result["path"], row["path"], "what is known of the download: {saved}");
    let copy = std::fs::read(rig.files().join("cups/tea.bin")).expect("saved");
    assert_eq!(copy, b"tea in a file\n");
    assert_eq!(rig.end(save(&id)).await["error_info"]["guarantee"], "not_executed", "written over");
    let none = rig.end(json!({ "what": "downloads", "id": "none" })).await;
    assert_eq!(none["error_info"]["details"]["reason"], "no_download", "{none}");
    std::fs::remove_file(path).expect("removed");
    rig.close().await;
}
