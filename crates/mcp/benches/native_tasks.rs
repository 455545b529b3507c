//! How many `tasks/get` a second one connection is answered: of a task that runs and of one that has ended,
//! one request at a time and 64 on their way. Prints one JSON object a row.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark of known answers ends at the first surprise, and tells its figures by the clock"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use raincheck_core::content::{Content, Json};
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_mcp::layers::native::NativeTasks;
use raincheck_mcp::{Options, Server, Streams, serve_stdio};
use raincheck_runtime::{Functions, start};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio_util::sync::CancellationToken;

/// Requests of each row.
const N_REQUESTS: usize = 20_000;

fn main() {
    // `cargo test --benches` only asks whether it starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(rows());
}

/// One client.
struct Client {
    to: DuplexStream,
    from: Lines<BufReader<DuplexStream>>,
}

impl Client {
    async fn send(&mut self, id: usize, method: &str, mut params: Value) {
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":
                {"extensions": {"io.modelcontextprotocol/tasks": {}}},
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"}});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.to.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        self.from.next_line().await.unwrap().unwrap()
    }

    async fn made(&mut self, tool: &str) -> String {
        self.send(1, "tools/call", json!({"name": tool, "arguments": {}})).await;
        let answer: Value = serde_json::from_str(&self.line().await).unwrap();
        answer["result"]["taskId"].as_str().unwrap().to_owned()
    }

    /// Asks for a task again and again, with so many requests on their way.
    async fn row(&mut self, id: &str, status: &str, n_ahead: usize) -> Duration {
        let began = Instant::now();
        let (mut sent, mut answered) = (0, 0);
        while answered < N_REQUESTS {
            while sent < N_REQUESTS && sent - answered < n_ahead {
                sent += 1;
                self.send(sent, "tasks/get", json!({ "taskId": id })).await;
            }
            let line = self.line().await;
            assert!(line.contains(status), "{line:.300}");
            answered += 1;
        }
        began.elapsed()
    }
}

async fn rows() {
    let spec = |name: &str| ToolSpec {
        lane: "cpu_small".into(),
        wait: Duration::ZERO,
        ..ToolSpec::new(name, "A tool", Json::empty_object())
    };
    let tools = Functions::new()
        .with(spec("done"), |_, _| async {
            Outcome::Succeeded(vec![Content::Json(Json::parse(r#"{"frames":400}"#).unwrap())])
        })
        .with(spec("runs"), |_, context| async move {
            context.cancellation_token().cancelled().await;
            Outcome::Cancelled
        });
    let (handle, service) =
        start(raincheck_runtime::Options::in_memory().with_tools(Arc::new(tools)));
    let stop = CancellationToken::new();
    let engine = tokio::spawn(service.run(stop.clone()));
    let options = Options::new("0.0.0").wrap(NativeTasks::default());
    let server = Server::new(handle, options, Box::new(|| {})).unwrap();
    let (to, reader) = tokio::io::duplex(1 << 20);
    let (writer, from) = tokio::io::duplex(1 << 20);
    let streams = Streams::new(reader, writer);
    let served = tokio::spawn(serve_stdio(server, Scope::local(), streams, stop.clone()));
    let mut client = Client { to, from: BufReader::new(from).lines() };
    for (tool, status) in [("runs", "\"working\""), ("done", "\"completed\"")] {
        let id = client.made(tool).await;
        for n_ahead in [1, 64] {
            let took = client.row(&id, status, n_ahead).await;
            #[expect(clippy::cast_precision_loss, reason = "thousands of requests")]
            let rate = N_REQUESTS as f64 / took.as_secs_f64();
            println!("{}", json!({"task": status, "on their way": n_ahead, "per second": rate}));
        }
    }
    stop.cancel();
    served.await.unwrap().unwrap();
    engine.await.unwrap();
}
