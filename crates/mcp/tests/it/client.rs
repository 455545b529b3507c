//! Our own small client against our own server.

use raincheck_core::scope::Scope;
use raincheck_mcp::client::Client;
use raincheck_mcp::{Options, Server, Streams, serve_stdio};
use raincheck_runtime::start;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::tools;

#[tokio::test(start_paused = true)]
async fn the_client_lists_calls_and_leaves() {
    let (handle, service) = start(tools::engine());
    let mut tasks = JoinSet::new();
    let engine = tasks.spawn(service.run(CancellationToken::new()));
    let server = Server::new(handle, Options::new("0.0.0"), Box::new(|| {})).expect("sound tools");
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    tasks.spawn(async move {
        let stop = CancellationToken::new();
        let streams = Streams::new(reader, writer);
        serve_stdio(server, Scope::local(), streams, stop).await.expect("a whole session");
    });
    let (reader, writer) = tokio::io::split(ours);
    let client = Client::connect(reader, writer, "demo").await.expect("a session");
    assert!(client.tools().await.expect("tools").contains(&"submit_task".to_owned()));
    let arguments = serde_json::Map::from_iter([("a".to_owned(), 1.into())]);
    let reply = client.call("echo", arguments).await.expect("an answer");
    assert_eq!((reply.text.as_str(), reply.is_error), (r#"{"a":1}"#, false));
    let error = client.call("no_such", serde_json::Map::new()).await.expect_err("unknown");
    assert!(error.to_string().contains("no_such"), "{error}");
    client.close().await;
    engine.abort();
}
