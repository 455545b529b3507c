//! What a page asks for and what it says: requests, an idle network, the console by level.

use serde_json::json;

use super::Rig;

#[tokio::test]
async fn a_request_is_shown_with_its_headers_and_bodies_and_without_what_authenticates() {
    // [BROWSER-44, BROWSER-45, BROWSER-46]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("traffic.html")).await;
    assert_eq!(rig.value(&tab, "ask().then((told) => told.tea)").await, "Assam");
    let network = json!({ "what": "network", "tab_id": tab, "filter": "answer.json" });
    let listed = rig.until(network, |told| told["network"][0]["request_id"].is_string()).await;
    let id = &listed["network"][0]["request_id"];
    let request = json!({ "what": "request", "id": id, "tab_id": tab });
    let told = rig.until(request, |told| told["result"]["state"] == "done").await;
    let result = &told["result"];
    assert_eq!((&result["method"], &result["status"]), (&json!("POST"), &json!(200)), "{told}");
    assert_eq!(result["request"]["headers"]["Authorization"], "[redacted]", "{told}");
    assert_eq!(result["request"]["headers"]["Content-Type"], "application/json", "{told}");
    assert!(result["request"]["body"].to_string().contains("ada"), "{told}");
    assert!(result["response"]["body"].to_string().contains("Assam"), "{told}");
    assert!(!told.to_string().contains("hush"), "{told}");
    assert!(told["untrusted_begins"].is_string(), "{told}");
    let unknown = rig.end(json!({ "what": "request", "id": "none", "tab_id": tab })).await;
    assert_eq!(unknown["error_info"]["details"]["reason"], "no_request", "{unknown}");

    // An idle network: all of a chain has been answered.
    rig.value(&tab, "(chain(12), 0)").await;
    let idle =
        json!({ "action": "wait_for", "network_idle": true, "tab_id": tab, "timeout_ms": 100_000 });
    rig.done(idle).await;
    assert_eq!(rig.value(&tab, "window.chained").await, 12);

    // What the page that is shown now said, and how grave that was.
    rig.value(&tab, "console.error('before')").await;
    rig.done(json!({ "action": "reload", "tab_id": tab })).await;
    rig.value(&tab, "(console.warn('after'), console.debug('detail'))").await;
    let console = |more: serde_json::Value| {
        let mut call = json!({ "what": "console", "tab_id": tab });
        call.as_object_mut().expect("one").extend(more.as_object().expect("one").clone());
        call
    };
    rig.until(console(json!({})), |told| told.to_string().contains("detail")).await;
    let since = rig.call("observe", console(json!({ "since": "navigation" }))).await.to_string();
    assert!(since.contains("after") && !since.contains("before"), "{since}");
    let grave = rig.call("observe", console(json!({ "level": "warning" }))).await.to_string();
    assert!(grave.contains("after") && grave.contains("before"), "{grave}");
    assert!(!grave.contains("detail"), "{grave}");
    rig.close().await;
}
