//! Performance traces.

use serde_json::json;

use super::Rig;

#[tokio::test]
async fn a_trace_says_where_the_time_of_a_page_went() {
    // [BROWSER-50]
    let rig = Rig::start().await;
    let tab = rig.open(&rig.here("traffic.html")).await;
    let act = |action: &str| json!({ "action": action, "tab_id": tab });
    let none = rig.end(act("trace_stop")).await;
    assert_eq!(none["error_info"]["details"]["reason"], "no_trace", "{none}");
    rig.done(act("trace_start")).await;
    let twice = rig.end(act("trace_start")).await;
    assert_eq!(twice["error_info"]["guarantee"], "not_executed", "{twice}");
    rig.done(act("reload")).await;
    let busy = "{ const end = performance.now() + 400; while (performance.now() < end); } 'busy'";
    rig.value(&tab, busy).await;
    rig.value(&tab, "ask().then(() => 1)").await;
    let mut stop = act("trace_stop");
    stop["save_to"] = json!("trace.json.gz");
    stop["timeout_ms"] = json!(60_000);
    let told = rig.done(stop).await;
    let result = &told["result"];
    let file = std::fs::read(rig.files().join("trace.json.gz")).expect("a file beside the summary");
    assert!(file.starts_with(&[0x1f, 0x8b]), "no gzip of {} bytes", file.len());
    assert_eq!(result["bytes"], json!(file.len()), "{told}");
    assert!(result["events"].as_u64() > Some(100) && result["raw"].is_null(), "{told}");
    assert!(result["main_thread"]["busy_ms"].as_u64() >= Some(300), "{told}");
    assert!(result["long_tasks"]["count"].as_u64() >= Some(1), "{told}");
    assert!(result["requests"]["count"].as_u64() >= Some(1), "{told}");
    assert!(result["requests"].to_string().contains("answer.json"), "{told}");
    rig.close().await;
}
