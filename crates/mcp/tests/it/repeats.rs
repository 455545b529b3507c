//! Requests that were asked of another owner before [ATTACH-6].

use raincheck_core::scope::Scope;
use raincheck_mcp::{Options, Server, Streams, serve_attached};
use raincheck_runtime::start;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::tools;

/// Says lines to an owner, each with its number, and returns as many answers.
async fn answers(lines: &[&str]) -> Vec<Value> {
    let (handle, service) = start(tools::engine());
    let mut running = JoinSet::new();
    running.spawn(service.run(CancellationToken::new()));
    let server = Server::new(handle, Options::new("0.0.0"), Box::new(|| {})).expect("sound tools");
    let ((mut to, reader), (writer, from)) = (duplex(1 << 20), duplex(1 << 20));
    running.spawn(async move {
        let (streams, over) = (Streams::new(reader, writer), CancellationToken::new());
        serve_attached(server, Scope::local(), streams, "window", over).await.expect("a session");
    });
    let mut from = BufReader::new(from).lines();
    let mut told = Vec::new();
    for line in lines {
        to.write_all(format!("{line}\n").as_bytes()).await.expect("a reader");
        let line = from.next_line().await.expect("readable").expect("an answer");
        told.push(serde_json::from_str(&line).expect("JSON"));
    }
    told
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_there_any_more_may_have_been_run_by_the_owner_before() {
    // [ATTACH-6] [LEASE-9]
    let hello = r#"1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"case","version":"0"}}}"#;
    let call =
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"gone","arguments":{}}}"#;
    let (first, again) = (format!("2 {call}"), format!("3! {call}"));
    let told = answers(&[hello, &first, &again]).await;
    assert_eq!(told[1]["error"]["data"]["guarantee"], "not_executed", "{}", told[1]);
    let text = told[2]["result"]["content"][0]["text"].as_str().expect("words");
    let error: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(error["error"]["code"], "unknown_tool", "{error}");
    assert_eq!(error["error"]["guarantee"], "unknown", "{error}");
    assert_eq!(told[2]["result"]["isError"], true);
}
