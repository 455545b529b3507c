//! What an answer below the limit pays for the cache: its two ways through the layer, in a real server.
//!
//! A layer before the cache and one behind it note the time, so that the difference is what the cache takes for
//! the arguments of a call and for its answer, with one look at the clock for each. Prints one JSON object.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark of known answers ends at the first surprise, and tells its figures by the clock"
)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use raincheck_core::content::{Content, Json};
use raincheck_core::error::Error;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_mcp::layers::cache::{CacheLayer, CacheOptions};
use raincheck_mcp::{Answer, Answered, Caller, Desk, Layer, Options, Server, Streams, serve_stdio};
use raincheck_runtime::{Functions, start};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;

/// Calls of each size.
const N_CALLS: usize = 2000;

/// When a call came to a layer, or went from it.
#[derive(Clone, Debug, Default)]
struct Times(Arc<Mutex<Option<Instant>>>);

impl Times {
    fn note(&self) {
        *self.0.lock().unwrap() = Some(Instant::now());
    }

    fn since(&self) -> Duration {
        self.0.lock().unwrap().take().map_or(Duration::ZERO, |began| began.elapsed())
    }
}

/// What both layers know.
#[derive(Clone, Debug, Default)]
struct Clock {
    taking: Times,
    finishing: Times,
    taken: Arc<Mutex<Vec<Duration>>>,
    finished: Arc<Mutex<Vec<Duration>>>,
}

/// Before the cache: arguments pass it first, answers last.
#[derive(Clone, Debug)]
struct Before(Clock);

/// Behind it.
#[derive(Clone, Debug)]
struct Behind(Clock);

#[async_trait]
impl Layer for Before {
    async fn take(&self, _: &Desk, arguments: Json, _: &Caller) -> Result<Json, Error> {
        self.0.taking.note();
        Ok(arguments)
    }

    async fn finish(&self, _: &Desk, answer: Answer, _: Answered<'_>, _: &Caller) -> Answer {
        self.0.finished.lock().unwrap().push(self.0.finishing.since());
        answer
    }
}

#[async_trait]
impl Layer for Behind {
    async fn take(&self, _: &Desk, arguments: Json, _: &Caller) -> Result<Json, Error> {
        self.0.taken.lock().unwrap().push(self.0.taking.since());
        Ok(arguments)
    }

    async fn finish(&self, _: &Desk, answer: Answer, _: Answered<'_>, _: &Caller) -> Answer {
        self.0.finishing.note();
        answer
    }
}

fn main() {
    // `cargo test --benches` only asks whether it starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for (name, text) in [
            ("200 bytes", "v".repeat(180)),
            ("4 KiB", "v".repeat(4080)),
            ("47,000 characters", "v".repeat(47_000)),
            ("30,000 characters of three bytes", "日".repeat(30_000)),
        ] {
            for has_cache in [true, false] {
                let clock = Clock::default();
                calls(&clock, has_cache, &text).await;
                let (take, finish) = (middle(&clock.taken), middle(&clock.finished));
                println!(
                    "{}",
                    json!({"answer": name, "cache": has_cache, "arguments, µs": take, "answer, µs": finish})
                );
            }
        }
    });
}

/// Makes calls whose answers are the text that was sent.
async fn calls(clock: &Clock, has_cache: bool, text: &str) {
    let object = Json::parse(r#"{"type":"object"}"#).unwrap();
    let echo = ToolSpec { lane: "cpu_small".into(), ..ToolSpec::new("echo", "Echo", object) };
    let functions = Functions::new().with(echo, |attempt, _| async move {
        Outcome::Succeeded(vec![Content::Json(attempt.inputs)])
    });
    let (handle, service) =
        start(raincheck_runtime::Options::in_memory().with_tools(Arc::new(functions)));
    let stop = CancellationToken::new();
    let engine = tokio::spawn(service.run(stop.clone()));
    let mut options = Options::new("0.0.0").wrap(Before(clock.clone()));
    if has_cache {
        options = options.wrap(CacheLayer::new(CacheOptions::default()));
    }
    let options = options.wrap(Behind(clock.clone()));
    let server = Server::new(handle, options, Box::new(|| {})).unwrap();
    let (mut to, reader) = tokio::io::duplex(1 << 20);
    let (writer, from) = tokio::io::duplex(1 << 20);
    let served = tokio::spawn(serve_stdio(
        server,
        Scope::local(),
        Streams::new(reader, writer),
        CancellationToken::new(),
    ));
    let mut lines = BufReader::new(from).lines();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}});
    to.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    lines.next_line().await.unwrap().unwrap();
    to.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
        .await
        .unwrap();
    for id in 1..=N_CALLS {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "echo", "arguments": {"v": text}}});
        to.write_all(format!("{call}\n").as_bytes()).await.unwrap();
        let line = lines.next_line().await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_ne!(answer.pointer("/result/isError"), Some(&json!(true)), "{line:.300}");
    }
    drop(to);
    served.await.unwrap().unwrap();
    stop.cancel();
    engine.await.unwrap();
}

/// Returns the median, in microseconds.
fn middle(times: &Mutex<Vec<Duration>>) -> f64 {
    let mut times = times.lock().unwrap().clone();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default().as_secs_f64() * 1e6
}
