//! Which tab a command acts on.

use serde_json::json;

use super::Rig;

#[tokio::test]
async fn commands_that_name_a_tab_stay_in_it() {
    let rig = Rig::start().await;
    let here = rig.open(&rig.here("plain.html")).await;
    let there = rig.open(&rig.there("plain.html")).await;
    for (tab, origin) in [(&here, rig.here("")), (&there, rig.there(""))] {
        let seen = rig.value(tab, "location.origin + '/'").await;
        assert_eq!(seen, *origin);
    }
    rig.value(&here, "console.log('said here')").await;
    let console = json!({ "what": "console", "tab_id": here });
    rig.until(console, |told| told.to_string().contains("said here")).await;
    rig.close().await;
}
