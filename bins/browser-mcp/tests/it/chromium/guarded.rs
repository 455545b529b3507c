//! What may not be read.

use serde_json::json;

use super::Rig;

#[tokio::test]
async fn a_page_that_came_late_to_the_server_s_own_listener_is_not_read() {
    // [BROWSER-16] [SEC-7]
    let rig = Rig::start().await;
    let health = rig.call("observe", json!({ "what": "health" })).await;
    let port = health["server"]["port"].clone();
    let beside = rig.open(&rig.here("plain.html")).await;
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let tab = rig.open(&rig.here("login.html")).await;
        let own = format!("http://{host}:{port}/health");
        rig.leaves(&tab, &beside, &own).await;
        for call in [
            json!({ "action": "execute_js", "script": "document.body.innerText" }),
            json!({ "what": "page_text" }),
            json!({ "what": "snapshot" }),
            json!({ "what": "screenshot" }),
        ] {
            let mut call = call;
            call["tab_id"] = tab.clone();
            let said = call.to_string();
            let refused = rig.end(call).await;
            assert_eq!(refused["error_info"]["code"], "url_blocked", "{host} {said}: {refused}");
            assert_eq!(refused["error_info"]["guarantee"], "not_executed", "{refused}");
            assert!(refused.get("result").is_none(), "{refused}");
        }
        rig.done(json!({ "action": "navigate", "url": rig.here("plain.html"), "tab_id": tab }))
            .await;
        assert_eq!(rig.value(&tab, "document.title").await, "plain");
        rig.done(json!({ "action": "tab_close", "tab_id": tab })).await;
    }
    rig.close().await;
}
