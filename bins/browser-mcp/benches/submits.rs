//! How long a call that only submits takes inside the server: from the last byte of its request to the last
//! byte of its answer, in one process with the engine, the store in a file, the listener and the face.
//!
//!     cargo bench --package browser-mcp [-- ROUNDS]
//!
//! The browser is an extension in the same process, which speaks the wire over a socket. It answers every
//! command, is busy with the first ones for ever, or is not there. Where it answers, the next submit comes while it
//! does so, or once it has. Prints one JSON object a row.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures ends at the first surprise, and tells its figures"
)]

#[path = "../src/bridge.rs"]
mod bridge;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use raincheck::mcp::Streams;
use raincheck::mcp::surfaces::browser::Browser as Words;
use raincheck::{Raincheck, Sharing};
use raincheck_browser::extension::{self, Places};
use raincheck_browser::{BridgeListener, Browser, Settings};
use raincheck_loopback::client::Connection;
use raincheck_loopback::endpoint;
use raincheck_store_sqlite::{Options, SqliteStore};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use bridge::Bridge;

/// A tab holds 32 commands in line: many share them.
const TABS: usize = 30;

/// Calls of a row where nothing is done, which all stand in line.
const N_WAITING: usize = 900;

/// Calls of a row where all are done.
const N_DONE: usize = 3000;

/// As many threads as the server has.
const N_THREADS: usize = 2;

fn main() {
    // `cargo test --benches` only asks whether it starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let rounds = std::env::args().filter_map(|it| it.parse().ok()).next_back().unwrap_or(3);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(N_THREADS)
        .enable_all()
        .build()
        .unwrap();
    for round in 0..rounds {
        runtime.block_on(measure(round));
    }
}

async fn measure(round: usize) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = folder.path().join("run");
    let stop = CancellationToken::new();
    let mut client = serve(folder.path(), &runtime, &stop);
    client.say("initialize", json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"},
    })).await;
    // It listens once a browser can connect.
    client.tool("observe", json!({ "what": "health" })).await;
    while !runtime.join("browser/endpoint.json").exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let ends = Arc::new(Semaphore::new(0));
    let answering = tokio::spawn(browse(runtime.clone(), Some(Arc::clone(&ends))));
    client
        .tool("observe", json!({ "what": "health", "wait_for_browser_ms": 9000, "wait_ms": 9000 }))
        .await;
    client.row(round, "answers", N_DONE, Some(&ends)).await;
    client.row(round, "has answered", N_DONE, Some(&ends)).await;
    client.tool("cancel", json!({ "all": true })).await;
    answering.abort();
    let busy = tokio::spawn(browse(runtime.clone(), None));
    client.row(round, "is busy", N_WAITING, None).await;
    client.tool("cancel", json!({ "all": true })).await;
    busy.abort();
    // Until it counts as gone.
    tokio::time::sleep(Duration::from_secs(5)).await;
    client.row(round, "is not there", N_WAITING, None).await;
    stop.cancel();
}

/// Starts the server, and returns a client of its streams.
fn serve(folder: &Path, runtime: &Path, stop: &CancellationToken) -> Client {
    let bridge = Browser::new(Settings::default());
    let listening = BridgeListener::new(Places::new(&folder.join("state"), runtime), 0);
    std::fs::create_dir_all(folder.join("state/browser")).unwrap();
    let server = Raincheck::builder()
        .server_info("browser-mcp", "0.0.0")
        .surface(Words::new(Bridge(bridge.clone())))
        .scope("local")
        .sharing(Sharing::in_place(folder.join("state/owner")))
        .store(SqliteStore::new(Options::process(folder.join("state/store.db"))))
        .tools(bridge.clone())
        .beside(move |engine, stop| {
            let lanes = bridge.beside(engine.clone(), stop.clone());
            let listener = listening.serve(bridge, engine, stop);
            async move {
                tokio::join!(lanes, listener);
            }
        });
    let (to, reader) = tokio::io::duplex(1 << 20);
    let (writer, from) = tokio::io::duplex(1 << 20);
    let stop = stop.clone();
    tokio::spawn(async move { server.serve(Streams::new(reader, writer), stop).await.unwrap() });
    Client { to, from: BufReader::new(from), n: 0 }
}

/// The browser: it accepts every command, and answers it at once, which it tells, or never.
async fn browse(runtime: PathBuf, ends: Option<Arc<Semaphore>>) {
    let endpoint = endpoint::read(&runtime.join("browser/endpoint.json")).unwrap().unwrap();
    let headers = [
        ("X-Worker-Id", "bench"),
        ("X-Boot-Id", if ends.is_some() { "answers" } else { "is busy" }),
        ("X-Raincheck-Protocol", "1"),
        ("Origin", &extension::origin()),
        ("Sec-Fetch-Site", "none"),
    ];
    let mut link = Connection::open(&endpoint).await.unwrap().with_headers(&headers).unwrap();
    loop {
        let answer = link.get("/pending-queries?wait_ms=20000").await.unwrap();
        // A server that ends says so.
        let Ok(entries) = serde_json::from_slice::<Vec<Value>>(&answer.body) else { return };
        for command in entries.iter().filter(|it| it["type"] == "browser_action") {
            let verdict = post(&mut link, command, json!({ "status": "accepted" })).await;
            if let Some(ends) = ends.as_ref().filter(|_| verdict["accepted"] == true) {
                post(&mut link, command, json!({ "status": "complete", "result": 1 })).await;
                ends.add_permits(1);
            }
        }
    }
}

/// Says what became of a command, and returns the verdict.
async fn post(link: &mut Connection, command: &Value, mut item: Value) -> Value {
    for name in ["correlation_id", "attempt", "fence"] {
        item[name] = command[name].clone();
    }
    let answer = link.post("/query-result", item.to_string()).await.unwrap();
    let mut verdicts: Value = serde_json::from_slice(&answer.body).unwrap();
    verdicts["results"][0].take()
}

struct Client {
    to: DuplexStream,
    from: BufReader<DuplexStream>,
    n: usize,
}

impl Client {
    fn line(&mut self, method: &str, params: &Value) -> String {
        self.n += 1;
        format!(
            "{}\n",
            json!({ "jsonrpc": "2.0", "id": self.n, "method": method, "params": params })
        )
    }

    /// Returns an answer and how long it took.
    async fn timed(&mut self, line: &str) -> (String, Duration) {
        let mut answer = String::new();
        let from = Instant::now();
        self.to.write_all(line.as_bytes()).await.unwrap();
        self.from.read_line(&mut answer).await.unwrap();
        (answer, from.elapsed())
    }

    async fn say(&mut self, method: &str, params: Value) -> Value {
        let line = self.line(method, &params);
        let (answer, _) = self.timed(&line).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    async fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.say("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// Submits so many commands one after the other.
    async fn row(&mut self, round: usize, browser: &str, n: usize, ends: Option<&Semaphore>) {
        let mut taken = Vec::with_capacity(n);
        for each in 0..n {
            let arguments = json!({ "action": "execute_js", "script": "1", "wait_ms": 0, "tab_id": 1 + each % TABS });
            let line =
                self.line("tools/call", &json!({ "name": "interact", "arguments": arguments }));
            let (answer, took) = self.timed(&line).await;
            assert!(!answer.contains(r#""isError":true"#), "{answer}");
            taken.push(took);
            if ends.is_some() {
                // As a client that thinks between two calls.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            if let Some(ends) = ends.filter(|_| browser == "has answered") {
                ends.acquire().await.unwrap().forget();
            }
        }
        // Those that the row did not wait for.
        if let Some(ends) = ends.filter(|_| browser == "answers") {
            ends.acquire_many(u32::try_from(n).unwrap()).await.unwrap().forget();
        }
        taken.sort();
        let at = |share: usize| taken[(n * share / 100).min(n - 1)].as_secs_f64() * 1e3;
        println!(
            r#"{{"round":{round},"browser":"{browser}","submits":{n},"p50_ms":{:.3},"p99_ms":{:.3},"max_ms":{:.3}}}"#,
            at(50),
            at(99),
            at(100),
        );
    }
}
