//! How soon held polls wake: a thousand browsers, each with a poll of its own, over real sockets.
//!
//!     cargo bench --package raincheck-browser [-- BROWSERS]
//!
//! Every browser gets one command a round: in a burst, one submitted after the other without a pause, or
//! at a steady rate, each when it is due, whatever became of those before. The time of a command is from its
//! submit, or from the instant at which that was due, to the last byte of its poll's answer; `ready` is from
//! when its submit was acknowledged, which is once it is committed and leased. The engine keeps its tasks in
//! memory. The thousand clients are in the same process and share its processors. Prints one JSON object a
//! round; the first round makes the lanes and is no figure.
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
use raincheck_runtime::{Handle, Options as Engine, Request, start};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 6;

/// How often a command is due at the steady rate.
const EVERY: Duration = Duration::from_millis(2);

/// How the commands of a round come.
#[derive(Clone, Copy, Debug)]
enum Coming {
    Burst,
    Steady,
}

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
    for (round, coming) in
        (0..ROUNDS).flat_map(|round| [(round, Coming::Burst), (round, Coming::Steady)])
    {
        let held = Arc::new(Barrier::new(browsers + 1));
        let mut polls = JoinSet::new();
        for n in 0..browsers {
            let (held, port) = (Arc::clone(&held), info.port);
            let secret = info.secret.text().to_owned();
            // A start of its own for each round: what the last one left is nobody's.
            polls.spawn(poll(port, secret, format!("b{n}"), format!("r{round}{coming:?}"), held));
        }
        held.wait().await;
        // The requests are written; let the server hold them all.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let submitted = submit_all(&handle, browsers, coming).await;
        let mut woken = polls.join_all().await;
        woken.sort_by_key(|Woken { name, .. }| {
            name.trim_start_matches('b').parse::<usize>().unwrap()
        });
        let taken = |from: fn(&Submitted) -> Instant| {
            let spans = woken.iter().zip(&submitted);
            let mut taken: Vec<f64> = spans
                .map(|(Woken { at, .. }, submitted)| at.saturating_duration_since(from(submitted)))
                .map(|span| span.as_secs_f64() * 1e3)
                .collect();
            taken.sort_by(f64::total_cmp);
            taken
        };
        let (whole, ready) = (taken(|it| it.due), taken(|it| it.acknowledged));
        let at = |all: &[f64], share: usize| all[(all.len() * share / 100).min(all.len() - 1)];
        let last = submitted.iter().map(|it| it.acknowledged).max().unwrap();
        println!(
            r#"{{"round":{round},"coming":"{coming:?}","browsers":{browsers},"submits_ms":{:.1},"p50_ms":{:.2},"p99_ms":{:.2},"max_ms":{:.2},"ready_p50_ms":{:.2},"ready_p99_ms":{:.2}}}"#,
            last.duration_since(submitted[0].due).as_secs_f64() * 1e3,
            at(&whole, 50),
            at(&whole, 99),
            at(&whole, 100),
            at(&ready, 50),
            at(&ready, 99),
        );
        // Nobody accepts them: they end by themselves before the next round.
        tokio::time::sleep(Duration::from_secs(4)).await;
    }
    stop.cancel();
}

/// When a command was to be submitted, and when its submit was acknowledged.
struct Submitted {
    due: Instant,
    acknowledged: Instant,
}

/// Submits one command for each browser, in their order.
async fn submit_all(handle: &Handle, browsers: usize, coming: Coming) -> Vec<Submitted> {
    let begin = Instant::now();
    let mut under_way = Vec::with_capacity(browsers);
    let mut submitted = Vec::with_capacity(browsers);
    for n in 0..browsers {
        let inputs = format!(r#"{{"action":"reload","browser_id":"b{n}"}}"#);
        let request = Request::new("interact", Json::parse(inputs).unwrap(), Scope::local());
        let handle = handle.clone();
        let submit = async move |due| {
            handle.submit(request).await.unwrap();
            Submitted { due, acknowledged: Instant::now() }
        };
        match coming {
            Coming::Burst => submitted.push(submit(Instant::now()).await),
            Coming::Steady => {
                let due = begin + EVERY * u32::try_from(n).unwrap();
                tokio::time::sleep_until(due.into()).await;
                under_way.push(tokio::spawn(submit(due)));
            }
        }
    }
    for one in under_way {
        submitted.push(one.await.unwrap());
    }
    submitted
}

/// A poll that was answered.
struct Woken {
    name: String,
    at: Instant,
    _connection: TcpStream,
}

/// Holds one poll and returns when its answer had come whole.
async fn poll(
    port: u16,
    secret: String,
    name: String,
    session: String,
    held: Arc<Barrier>,
) -> Woken {
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
    // A browser keeps its connection.
    Woken { name, at, _connection: stream }
}
