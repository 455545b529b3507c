//! A call that asked its client something, after its server was killed [TASKS-9].

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use raincheck::mcp::layers::native::NativeTasks;
use raincheck::mcp::{Options, Server, Streams, serve_stdio};
use raincheck::runtime::{self, Functions};
use raincheck_core::content::{Content, Json};
use raincheck_core::input::InputRequest;
use raincheck_core::lane;
use raincheck_core::retry::Policy;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_store_sqlite::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A client of a server on a file.
struct Client {
    to: DuplexStream,
    from: Lines<BufReader<DuplexStream>>,
    running: JoinSet<()>,
    n: u32,
}

impl Client {
    fn new(folder: &Path) -> Self {
        let options = raincheck_store_sqlite::Options::process(folder.join("tasks.db"));
        let options = runtime::Options::in_memory()
            .with_store(Arc::new(SqliteStore::new(options)))
            .with_tools(Arc::new(tools()));
        let (handle, service) = runtime::start(options);
        let mut running = JoinSet::new();
        running.spawn(service.run(CancellationToken::new()));
        let options = Options::new("0").wrap(NativeTasks::default());
        let server = Server::new(handle, options, Box::new(|| {})).expect("sound tools");
        let (to, reader) = tokio::io::duplex(1 << 16);
        let (writer, from) = tokio::io::duplex(1 << 16);
        running.spawn(async move {
            let streams = Streams::new(reader, writer);
            let _ = serve_stdio(server, Scope::local(), streams, CancellationToken::new()).await;
        });
        Self { to, from: BufReader::new(from).lines(), running, n: 0 }
    }

    /// Calls a tool, and returns the result.
    async fn call(&mut self, tool: &str, more: Value) -> Value {
        self.n += 1;
        let mut params = more;
        params["name"] = json!(tool);
        params["arguments"] = json!({});
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            "io.modelcontextprotocol/clientInfo": {"name": "case", "version": "0"}});
        let call =
            json!({"jsonrpc": "2.0", "id": self.n, "method": "tools/call", "params": params});
        self.to.write_all(format!("{call}\n").as_bytes()).await.expect("a server");
        loop {
            let line = self.from.next_line().await.expect("UTF-8").expect("an answer");
            let answer: Value = serde_json::from_str(&line).expect("JSON");
            if answer["id"] == self.n {
                assert!(answer["result"].is_object(), "{answer}");
                return answer["result"].clone();
            }
        }
    }

    /// Kills the server, and waits until its store can be opened again.
    async fn kill(mut self) {
        self.running.shutdown().await;
    }
}

/// Two tools that ask twice: one may run again, the other not.
fn tools() -> Functions {
    let spec = |name: &str, is_idempotent| ToolSpec {
        is_idempotent,
        wait: Duration::from_secs(60),
        retry: Policy { max_attempts: 9, backoff: Duration::from_millis(1), on: Vec::new() },
        ..ToolSpec::new(name, "Asks twice", Json::empty_object())
    };
    let ask = |_, context: runtime::TaskContext| async move {
        let mut said = Vec::new();
        for key in ["first", "second"] {
            let schema = json!({"type": "object"});
            let question = InputRequest::elicitation(key, key, &schema).expect("JSON");
            match context.request_input(question).await {
                Ok(answer) => said.push(Content::Json(answer)),
                Err(error) => return Outcome::Failed(error),
            }
        }
        Outcome::Succeeded(said)
    };
    Functions::new()
        .with_lane("cpu_standard", lane::Config::new(1, 4))
        .with(spec("again", true), ask)
        .with(spec("once", false), ask)
}

fn asks(result: &Value, key: &str) -> Value {
    assert_eq!(result["resultType"], "input_required", "{result}");
    assert!(result["inputRequests"][key].is_object(), "{result}");
    result["requestState"].clone()
}

#[tokio::test]
async fn a_call_goes_on_with_the_answers_after_its_server_was_killed() {
    // [TASKS-9] [DUR-3] [LEASE-3]
    let folder = TempDir::new().expect("a folder");
    let mut client = Client::new(folder.path());
    let again = asks(&client.call("again", json!({})).await, "first");
    client.kill().await;

    // What may run again asks anew, and is given what the retry brings.
    let mut client = Client::new(folder.path());
    let accept = |n: u32| json!({"action": "accept", "content": {"n": n}});
    let retry = json!({"requestState": again, "inputResponses": {"first": accept(1)}});
    let second = asks(&client.call("again", retry.clone()).await, "second");
    client.kill().await;

    let mut client = Client::new(folder.path());
    asks(&client.call("again", retry).await, "second");
    let retry = json!({"requestState": second, "inputResponses": {"second": accept(2)}});
    let end = client.call("again", retry.clone()).await;
    let said = format!("[{},{}]", accept(1), accept(2));
    assert_eq!(end["content"][0]["text"], said, "{end}");

    // What may not run again ends, and its client is told so.
    let once = asks(&client.call("once", json!({})).await, "first");
    client.kill().await;
    let mut client = Client::new(folder.path());
    let lost = json!({"requestState": once, "inputResponses": {"first": accept(1)}});
    let lost = client.call("once", lost).await;
    assert_eq!((&lost["resultType"], &lost["isError"]), (&json!("complete"), &json!(true)));
    let words = lost["content"][0]["text"].as_str().expect("a text");
    assert!(words.contains("worker_lost"), "{words}");
    assert_eq!(client.call("again", retry).await, end, "the end is kept");
    client.kill().await;
}
