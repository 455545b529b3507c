//! Tabs beside each other.

use serde_json::json;

use super::Rig;

/// How many tabs.
const N: usize = 8;

#[tokio::test]
async fn scripts_in_eight_tabs_run_at_the_same_time() {
    // [BROWSER-5] None ends before all have begun.
    let rig = Rig::start().await;
    let mut tabs = Vec::new();
    for _ in 0..N {
        tabs.push(rig.open(&rig.here("plain.html")).await);
    }
    let mut begun = Vec::new();
    for (n, tab) in tabs.iter().enumerate() {
        let script = format!(
            "new Promise((done) => {{
                const look = () => {{
                    const n = Object.keys(localStorage).filter((key) => key.startsWith('at ')).length;
                    if (n === {N}) done(n);
                }};
                addEventListener('storage', look);
                localStorage['at {n}'] = 'work';
                look();
            }})"
        );
        let call = json!({
            "action": "execute_js", "script": script, "tab_id": tab, "timeout_ms": 110_000, "wait_ms": 0,
        });
        begun.push(rig.call("interact", call).await);
    }
    for answer in begun {
        let end = rig.end_of(answer).await;
        assert_eq!(end["result"], N, "{end}");
    }
    rig.close().await;
}
