//! What the server says of itself: handshake, revisions, `tools/list`.

use expect_test::expect;
use raincheck_mcp::Options;
use serde_json::{Value, json};

use crate::session::{Session, Setup};
use crate::tools::N_TOOLS;

const CANONICAL: usize = 7;

async fn tools(session: &mut Session) -> Vec<Value> {
    let answer = session.request("tools/list", "{}").await;
    answer["result"]["tools"].as_array().expect("tools").clone()
}

#[tokio::test(start_paused = true)]
async fn every_revision_is_spoken_and_none_of_them_is_shown_native_tasks() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut session = Session::open_with(Setup { version, ..Setup::default() }).await;
        assert_eq!(tools(&mut session).await.len(), CANONICAL + N_TOOLS, "{version}");
        let made = session
            .request("tools/call", r#"{"name":"nap","arguments":{"s":9},"task":{"ttl":60000}}"#)
            .await;
        assert!(made["result"].get("task").is_none() && made["result"].get("taskId").is_none());
        let get = session.request("tasks/get", r#"{"taskId":"x"}"#).await;
        assert_eq!(get["error"]["code"], -32601, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_without_handshake_is_held_in_the_newest_revision() {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "case", "version": "0"}});
    let mut session = Session::raw();
    session
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    let discovered = session.request("server/discover", &json!({"_meta": meta}).to_string()).await;
    let versions = discovered["result"]["supportedVersions"].as_array();
    let versions = versions.unwrap_or_else(|| panic!("{discovered}"));
    assert!(versions.contains(&json!("2026-07-28")));
    assert!(!session.is_started(), "a probe starts nothing");
    let params = json!({"name": "echo", "arguments": {"a": 1}, "_meta": meta}).to_string();
    let answer = session.request("tools/call", &params).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"a":1}"#);
    assert!(session.is_started());
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_before_the_client_is_ready_to_work() {
    let mut session = Session::raw();
    assert!(session.request("ping", "{}").await["result"].is_object());
    let params = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"0"}}"#;
    let init = session.request("initialize", params).await;
    assert_eq!(init["result"]["serverInfo"]["name"], "raincheck");
    assert_eq!(init["result"]["serverInfo"]["version"], "0.0.0");
    let words = init["result"]["instructions"].as_str().expect("instructions");
    assert!(words.len() < 2048 && words.contains("get_task_result"));
    assert!(!session.is_started());
    session.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    session.request("ping", "{}").await;
    session.good("list_tasks", "{}").await;
    assert_eq!(session.n_starts.load(std::sync::atomic::Ordering::SeqCst), 1, "started once");
}

#[tokio::test(start_paused = true)]
async fn a_broken_initialize_is_refused_and_may_be_tried_again() {
    let mut session = Session::raw();
    let broken = session.request("initialize", r#"{"protocolVersion":7}"#).await;
    assert_eq!(broken["error"]["code"], -32602, "{broken}");
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"0"}}"#;
    assert!(session.request("initialize", params).await["result"].is_object());
}

#[tokio::test(start_paused = true)]
async fn every_tool_is_described_and_the_six_stay_small() {
    let mut session = Session::open().await;
    let all = tools(&mut session).await;
    for tool in &all {
        let description = tool["description"].as_str().expect("a description");
        assert!((1..400).contains(&description.len()), "{}", tool["name"]);
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert!(tool["title"].is_string());
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{} {hint}", tool["name"]);
        }
    }
    let size: usize = all[..CANONICAL].iter().map(|tool| tool.to_string().len()).sum();
    assert!(size <= 6 << 10, "{size} bytes");
    let mut other = Session::open_with(Setup { client: "other", ..Setup::default() }).await;
    assert_eq!(tools(&mut other).await, all, "the same on every connection");
    let names: Vec<&str> = all.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    expect!["submit_task get_task_status tail_task_logs list_tasks cancel_task get_task_result give_task_input echo verbatim nap nap_one held stubborn unyielding fail steps chatter leave picture typed"]
        .assert_eq(&names.join(" "));
}

#[tokio::test(start_paused = true)]
async fn the_canonical_tools_are_these() {
    let mut session = Session::open().await;
    let all = tools(&mut session).await;
    let lines: Vec<String> = all[..CANONICAL].iter().map(Value::to_string).collect();
    expect_test::expect_file!["surface/canonical.snap"].assert_eq(&(lines.join("\n") + "\n"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_one_text_block_and_structured_content_only_beside_it() {
    let options = Options { is_structured: true, ..Options::new("0.0.0") };
    let mut session = Session::open_with(Setup { options, ..Setup::default() }).await;
    for (tool, arguments) in
        [("echo", "{\"a\":1}"), ("list_tasks", "{}"), ("get_task_status", "{}")]
    {
        let answer = session.call(tool, arguments).await;
        let result = &answer.raw["result"];
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{tool}");
        assert_eq!(result["structuredContent"], answer.data, "{tool}");
    }
    let mut plain = Session::open().await;
    assert!(plain.call("echo", "{}").await.raw["result"].get("structuredContent").is_none());
}

/// The tools of a list that clients are asked to load always.
pub(crate) fn always_loaded(tools: &[Value]) -> Vec<&str> {
    let is_loaded = |tool: &&Value| tool["_meta"]["anthropic/alwaysLoad"] == true;
    tools.iter().filter(is_loaded).filter_map(|tool| tool["name"].as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_tools_that_lead_to_the_others_are_always_loaded() {
    // [TOOL-9]
    let mut session = Session::open().await;
    let all = tools(&mut session).await;
    assert_eq!(always_loaded(&all), ["submit_task", "list_tasks", "get_task_result"]);
}

/// What people write when they look for such a tool.
const WORDS: &[(&str, &[&str])] = &[
    ("submit_task", &["background", "start", "idempotency"]),
    ("get_task_status", &["status", "progress", "position"]),
    ("tail_task_logs", &["log", "lines", "wait"]),
    ("list_tasks", &["list", "tasks", "running", "failed"]),
    ("cancel_task", &["cancel", "stop", "end"]),
    ("get_task_result", &["result", "error", "artifacts", "wait"]),
    ("give_task_input", &["input", "answer", "question", "accept", "decline"]),
];

#[tokio::test(start_paused = true)]
async fn a_tool_is_found_by_the_words_that_people_use() {
    // [TOOL-9]
    let mut session = Session::open().await;
    for tool in &tools(&mut session).await[..CANONICAL] {
        let text = |member: &str| tool[member].as_str().expect("a text").to_lowercase();
        let all = [text("name"), text("title"), text("description")].join(" ");
        let of_tool = WORDS.iter().find(|(name, _)| tool["name"] == *name);
        let (name, words) = of_tool.unwrap_or_else(|| panic!("no words for {}", tool["name"]));
        for word in *words {
            assert!(all.contains(word), "{name} is not found by `{word}`: {all}");
        }
    }
}
