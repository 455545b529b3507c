//! Calls of the owner's own programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use raincheck_loopback::control::{Calls, Reply, policy, router};
use raincheck_loopback::{Accept, Surface, attach, over};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::harness::{PORT, Rig, exchange, options, start_of};

/// Repeats what it is sent, and counts.
#[derive(Default)]
struct Echo(AtomicUsize);

#[async_trait]
impl Calls for Echo {
    async fn call(&self, body: &[u8]) -> Reply {
        self.0.fetch_add(1, Ordering::Relaxed);
        let status = if body.is_empty() { 7 } else { 404 };
        Reply { status, body: String::from_utf8(body.to_vec()).expect("UTF-8") }
    }
}

fn start() -> (Rig, Arc<Echo>) {
    let echo = Arc::new(Echo::default());
    let calls: Arc<dyn Calls> = Arc::clone(&echo) as _;
    (start_of(options().serving(router(calls), policy())), echo)
}

#[tokio::test(start_paused = true)]
async fn what_is_made_later_is_made_with_the_first_connection_and_once() {
    let n_made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_made);
    let rig = start_of(options().serving_later(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let routes = router(Arc::new(Echo::default()));
        vec![Surface { routes, policy: policy() }]
    }));
    tokio::task::yield_now().await;
    assert_eq!(n_made.load(Ordering::Relaxed), 0);
    for _ in 0..2 {
        let headers = format!("{JSON}{}", rig.bearer());
        assert_eq!(status(&rig, "POST", &headers, "{}").await, 404);
        assert_eq!(status(&rig, "POST", JSON, "{}").await, 401, "[SEC-3] it is gated all the same");
    }
    assert_eq!(rig.get("/pending-queries").await, 200, "beside the others");
    assert_eq!(n_made.load(Ordering::Relaxed), 1);
}

async fn status(rig: &Rig, method: &str, headers: &str, body: &str) -> u16 {
    let length = body.len();
    let request = format!(
        "{method} /control/call HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    rig.send(request.as_bytes()).await.expect("a reply").status
}

const JSON: &str = "Content-Type: application/json\r\n";

#[tokio::test(start_paused = true)]
async fn the_answer_is_passed_on_with_its_status() {
    let (rig, _) = start();
    let headers = format!("{JSON}{}", rig.bearer());
    let request = format!(
        "POST /control/call HTTP/1.1\r\nHost: localhost:{PORT}\r\nContent-Length: 2\r\n{headers}\r\n{{}}"
    );
    let reply = rig.send(request.as_bytes()).await.expect("a reply");
    assert_eq!((reply.status, reply.text()), (404, "{}"));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(status(&rig, "POST", &headers, "").await, 500, "a status that is none");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_the_secret_or_from_a_page_reaches_nobody() {
    let (rig, echo) = start();
    let bearer = rig.bearer();
    let wrong = "Authorization: Bearer AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\r\n";
    let large = "x".repeat(256 * 1024 + 1);
    let refused = [
        ("POST", JSON.to_owned(), "{}", 401),
        ("POST", format!("{JSON}{wrong}"), "{}", 401),
        ("POST", format!("{JSON}{bearer}Origin: http://127.0.0.1:{PORT}\r\n"), "{}", 403),
        ("POST", format!("{JSON}{bearer}Origin: null\r\n"), "{}", 403),
        ("POST", format!("{JSON}{bearer}Sec-Fetch-Site: cross-site\r\n"), "{}", 403),
        ("POST", bearer.clone(), "{}", 415),
        ("POST", format!("Content-Type: text/plain\r\n{bearer}"), "{}", 415),
        ("POST", format!("{JSON}{bearer}"), &large, 413),
        ("GET", bearer.clone(), "", 405),
        ("GET", String::new(), "", 401),
    ];
    for (method, headers, body, expected) in refused {
        let got = status(&rig, method, &headers, body).await;
        assert_eq!(got, expected, "[SEC-2, SEC-3, SEC-6] {method} {headers}");
    }
    assert_eq!(echo.0.load(Ordering::Relaxed), 0, "[SEC-3]");
}

/// A network whose peers are other machines.
struct Far(mpsc::UnboundedReceiver<DuplexStream>);

impl Accept for Far {
    type Io = DuplexStream;

    fn is_local(_: &DuplexStream) -> bool {
        false
    }

    async fn accept(&mut self) -> Option<DuplexStream> {
        self.0.recv().await
    }
}

#[tokio::test(start_paused = true)]
async fn for_another_machine_nothing_is_here_even_with_the_secret() {
    let (network, incoming) = mpsc::unbounded_channel();
    let echo = Arc::new(Echo::default());
    let calls: Arc<dyn Calls> = Arc::clone(&echo) as _;
    let (attaching, _attached) = mpsc::channel(1);
    let options = options()
        .serving(router(calls), policy())
        .serving(attach::router(attaching), attach::policy());
    let address = (std::net::Ipv4Addr::LOCALHOST, PORT).into();
    let (service, info) = over(Far(incoming), address, options).expect("a listener");
    let mut running = JoinSet::new();
    running.spawn(service.run(CancellationToken::new()));
    let bearer = format!("Authorization: Bearer {}", info.secret.text());
    for (line, status) in [
        ("POST /control/call", 404),
        ("GET /attach", 404),
        ("GET /never", 404),
        ("GET /health", 200),
    ] {
        let (here, there) = duplex(4096);
        network.send(there).expect("a listener");
        let request = format!(
            "{line} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n{bearer}\r\n{JSON}Content-Length: 0\r\n\r\n"
        );
        let reply = exchange(here, request.as_bytes()).await.expect("a reply");
        assert_eq!(reply.status, status, "[SEC-1] {line}");
    }
    assert_eq!(echo.0.load(Ordering::Relaxed), 0);
}
