//! Output as files: what a page shows, prints and says.

use serde_json::{Value, json};

use super::Rig;

#[tokio::test]
async fn output_goes_into_new_files_below_the_named_folder() {
    // [BROWSER-40]
    let rig = Rig::start().await;
    let files = rig.files();
    let tab = rig.open(&rig.here("plain.html")).await;
    let read =
        |name: &str| std::fs::read(files.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let with = |what: &str, name: &str| json!({ "what": what, "tab_id": tab, "save_to": name });

    let saved = rig.done(with("page_text", "texts/plain.txt")).await;
    assert_eq!(String::from_utf8_lossy(&read("texts/plain.txt")).trim(), "Plain");
    let path = saved["result"]["saved_to"].as_str().unwrap_or_else(|| panic!("{saved}"));
    assert!(path.ends_with("plain.txt"), "{saved}");
    assert!(saved["result"]["text"].is_null(), "{saved}");
    rig.done(with("screenshot", "shot.jpg")).await;
    assert!(read("shot.jpg").starts_with(&[0xff, 0xd8, 0xff]));
    rig.done(with("pdf", "page.pdf")).await;
    assert!(read("page.pdf").starts_with(b"%PDF"));
    let script = json!({
        "action": "execute_js", "tab_id": tab, "save_to": "value.json", "script": "console.log('said'), [1, 2]",
    });
    rig.done(script).await;
    assert_eq!(read("value.json"), b"[1,2]");
    // What the next call needs is still told.
    let shown = rig.done(with("snapshot", "tree.txt")).await;
    let told = &shown["result"];
    assert!(told["text"].is_null() && told["origin"].is_string(), "{shown}");
    let since = json!({ "what": "snapshot", "tab_id": tab, "since": told["snapshot_id"] });
    let same = rig.done(since).await;
    assert_eq!(
        (&same["result"]["added"], &same["result"]["text"]),
        (&json!(0), &json!("")),
        "{same}"
    );
    let log = rig.call("observe", with("console", "console.json")).await;
    assert_eq!(log["count"], log["n_console"], "{log}");
    assert!(log["bytes"].as_u64() > Some(0), "{log}");
    let log: Value = serde_json::from_slice(&read("console.json")).expect("JSON");
    assert!(log["console"].to_string().contains("said"), "{log}");

    // The print comes beside the answer, where it goes into no file.
    let printed = rig.done(json!({ "what": "pdf", "tab_id": tab })).await;
    assert_eq!(printed["result"]["mime"], "application/pdf", "{printed}");
    assert!(printed["result"]["bytes"].as_u64() > Some(0), "{printed}");

    let again = rig.end(with("page_text", "texts/plain.txt")).await;
    assert_eq!(again["error_info"]["guarantee"], "not_executed", "{again}");
    let outside = rig.call("observe", with("page_text", "../plain.txt")).await;
    assert_eq!(outside["error_info"]["code"], "invalid_params", "{outside}");
    rig.close().await;
}
