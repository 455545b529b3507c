//! How soon held polls wake: a thousand browsers, each with a poll of its own, over real sockets.
//!
//!     cargo bench --package raincheck-browser [-- BROWSERS]
//!
//! Every browser gets one command, all of them submitted one after the other without a pause. The time
//! of a command is from its submit to the last byte of its poll's answer; the engine keeps its tasks in
//! memory. Prints one JSON object a round; the first round makes the lanes and is no figure.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures ends at the first surprise, and tells its figures"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use raincheck_browser::{Browser, Settings};
use raincheck_core::content::Json;
use raincheck_core::scope::Scope;
use raincheck_loopback::{Limits, Options, bind};
use raincheck_runtime::{Options as Engine, Request, start};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 6;

fn main() {
    let browsers = std::env::args().filter_map(|it| it.parse().ok()).next_back().unwrap_or(1000);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure(browsers));
}

async fn measure(browsers: usize) {
    let settings =
        Settings { max_tabs: browsers * 2, max_browsers: browsers, ..Settings::default() };
    let bridge = Browser::new(settings);
    let engine = Engine::in_memory().with_tools(Arc::new(bridge.clone()));
    let (handle, service) = start(engine);
    let stop = CancellationToken::new();
    tokio::spawn(service.run(stop.clone()));
    tokio::spawn(bridge.beside(handle.clone(), stop.clone()));
    let mut options = Options::new("bench").unwrap();
    options.limits = Limits { connections: browsers + 8, ..Limits::default() };
    options.surfaces.push(bridge.surface("chrome-extension://none"));
    let (service, info) = bind(options).await.unwrap();
    tokio::spawn(service.run(stop.clone()));
    for round in 0..ROUNDS {
        let held = Arc::new(Barrier::new(browsers + 1));
        let mut polls = JoinSet::new();
        for n in 0..browsers {
            let (held, port) = (Arc::clone(&held), info.port);
            let secret = info.secret.text().to_owned();
            // A start of its own for each round: what the last one left is nobody's.
            polls.spawn(poll(port, secret, format!("b{n}"), format!("r{round}"), held));
        }
        held.wait().await;
        // The requests are written; let the server hold them all.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut submitted = Vec::with_capacity(browsers);
        for n in 0..browsers {
            let inputs = format!(r#"{{"action":"reload","browser_id":"b{n}"}}"#);
            let request = Request::new("interact", Json::parse(inputs).unwrap(), Scope::local());
            submitted.push(Instant::now());
            handle.submit(request).await.unwrap();
        }
        let all = Instant::now();
        let mut woken: Vec<(String, Instant)> = polls.join_all().await;
        woken.sort_by_key(|(name, _)| name.trim_start_matches('b').parse::<usize>().unwrap());
        let mut taken: Vec<Duration> =
            woken.iter().zip(&submitted).map(|((_, at), from)| at.duration_since(*from)).collect();
        taken.sort();
        let at =
            |share: usize| taken[(taken.len() * share / 100).min(taken.len() - 1)].as_secs_f64();
        let submits = all.duration_since(submitted[0]).as_secs_f64();
        println!(
            r#"{{"round":{round},"browsers":{browsers},"submits_ms":{:.1},"p50_ms":{:.2},"p99_ms":{:.2},"max_ms":{:.2}}}"#,
            submits * 1e3,
            at(50) * 1e3,
            at(99) * 1e3,
            at(100) * 1e3,
        );
        // Nobody accepts them: they end by themselves before the next round.
        tokio::time::sleep(Duration::from_secs(4)).await;
    }
    stop.cancel();
}

/// Holds one poll and returns when its answer had come whole.
async fn poll(
    port: u16,
    secret: String,
    name: String,
    session: String,
    held: Arc<Barrier>,
) -> (String, Instant) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let request = format!(
        "GET /pending-queries?wait_ms=25000 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\
         Authorization: Bearer {secret}\r\nX-Worker-Id: {name}\r\nX-Boot-Id: {session}\r\n\
         X-Raincheck-Protocol: 1\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    held.wait().await;
    let mut answer = Vec::new();
    while !answer.ends_with(b"]") {
        let n = stream.read_buf(&mut answer).await.unwrap();
        assert_ne!(n, 0, "the server went away: {}", String::from_utf8_lossy(&answer));
    }
    let at = Instant::now();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    assert!(answer.windows(6).any(|it| it == b"reload"), "{}", String::from_utf8_lossy(&answer));
    (name, at)
}
