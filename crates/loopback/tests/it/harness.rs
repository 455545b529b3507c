//! A listener over a network in memory, with one surface of each kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use axum::routing::{get, post};
use raincheck_loopback::{Accept, Bearer, Info, Limits, Options, Origin, Policy, Secret, over};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) const PORT: u16 = 4711;
pub(crate) const PINNED: &str = "chrome-extension://abcdefghijklmnopabcdefghijklmnop";
pub(crate) const MAX_BODY: usize = 1024;

/// The bytes that one connection may have on its way.
const WIRE: usize = 4096;

/// A network in memory.
#[derive(Debug)]
pub(crate) struct Net(mpsc::UnboundedReceiver<DuplexStream>);

impl Accept for Net {
    type Io = DuplexStream;

    fn is_local(_: &DuplexStream) -> bool {
        true
    }

    async fn accept(&mut self) -> Option<DuplexStream> {
        self.0.recv().await
    }
}

/// A running listener.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) info: Info,
    pub(crate) stop: CancellationToken,
    /// How many requests reached a handler.
    pub(crate) handled: Arc<AtomicUsize>,
    /// Lets one `/hold` go.
    pub(crate) release: Arc<Notify>,
    network: mpsc::UnboundedSender<DuplexStream>,
    running: JoinSet<()>,
}

pub(crate) fn options() -> Options {
    let mut options = Options::new("rig").expect("random bytes");
    options.token = Some(Secret::from_bytes([9; 32]));
    options
}

pub(crate) fn start() -> Rig {
    start_with(Limits::default())
}

pub(crate) fn start_with(limits: Limits) -> Rig {
    start_of(Options { limits, ..options() })
}

pub(crate) fn start_of(options: Options) -> Rig {
    let (handled, release) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let options = surfaces(options, &handled, &release);
    let (network, incoming) = mpsc::unbounded_channel();
    let address = (std::net::Ipv4Addr::LOCALHOST, PORT).into();
    let (service, info) = over(Net(incoming), address, options).expect("a listener");
    let stop = CancellationToken::new();
    let mut running = JoinSet::new();
    running.spawn(service.run(stop.clone()));
    Rig { info, stop, handled, release, network, running }
}

/// Adds a bridge, an editor's socket, and an open surface.
pub(crate) fn surfaces(
    options: Options,
    handled: &Arc<AtomicUsize>,
    release: &Arc<Notify>,
) -> Options {
    let count = |text: &'static str| {
        let handled = Arc::clone(handled);
        async move || {
            handled.fetch_add(1, Ordering::Relaxed);
            text
        }
    };
    let (echoed, upgraded, release) =
        (Arc::clone(handled), Arc::clone(handled), Arc::clone(release));
    let echo = async move |body: Bytes| {
        echoed.fetch_add(1, Ordering::Relaxed);
        body
    };
    let hold = move || {
        let release = Arc::clone(&release);
        async move {
            release.notified().await;
            "released"
        }
    };
    let bridge = Router::new()
        .route("/pending-queries", get(count("commands")))
        .route("/query-result", post(echo))
        .route("/hold", get(hold))
        .route("/large", get(async || vec![b'x'; 1024 * 1024]));
    let socket = Router::new().route("/unity", get(async move |r: Request| upgrade(r, &upgraded)));
    let open = Router::new().route("/open", get(count("open")));
    let bridge_policy = Policy {
        origin: Origin::Pinned(vec![PINNED.to_owned()]),
        max_body: MAX_BODY,
        ..Policy::default()
    };
    options
        .serving(bridge, bridge_policy)
        .serving(socket, Policy { bearer: Bearer::Handshake, ..Policy::default() })
        .serving(open, Policy { bearer: Bearer::Optional, ..Policy::default() })
}

/// Takes the connection over and holds it until its peer ends it.
fn upgrade(request: Request, handled: &AtomicUsize) -> Response {
    handled.fetch_add(1, Ordering::Relaxed);
    let mut running = JoinSet::new();
    running.spawn(async move {
        let upgraded = hyper::upgrade::on(request).await.expect("an upgrade");
        let mut io = hyper_util::rt::TokioIo::new(upgraded);
        let mut bytes = Vec::new();
        io.read_to_end(&mut bytes).await.ok();
    });
    running.detach_all();
    Response::builder()
        .status(101)
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .body(Body::empty())
        .expect("a response")
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }
}

impl Rig {
    pub(crate) fn dial(&self) -> DuplexStream {
        let (here, there) = duplex(WIRE);
        self.network.send(there).expect("a listener");
        here
    }

    /// Returns the `Authorization` line with the right secret.
    pub(crate) fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.info.secret.text())
    }

    pub(crate) async fn send(&self, request: &[u8]) -> Option<Reply> {
        exchange(self.dial(), request).await
    }

    /// Sends a request that has all it needs and waits for its status.
    pub(crate) async fn get(&self, path: &str) -> u16 {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost:{PORT}\r\n{}\r\n", self.bearer());
        self.send(request.as_bytes()).await.expect("a reply").status
    }

    pub(crate) fn n_handled(&self) -> usize {
        self.handled.load(Ordering::Relaxed)
    }

    /// Waits until the listener has stopped.
    pub(crate) async fn stopped(mut self) {
        self.running.join_next().await.expect("running").expect("no panic");
    }
}

/// Sends bytes while it reads the answer; `None` when the connection ends without one.
pub(crate) async fn exchange<Io>(io: Io, request: &[u8]) -> Option<Reply>
where
    Io: AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let (mut from, mut to) = tokio::io::split(io);
    let sending = async {
        // The listener may answer and close before it has read everything.
        to.write_all(request).await.ok();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = sending => None,
        reply = receive(&mut from) => reply,
    }
}

pub(crate) async fn receive(io: &mut (impl AsyncRead + Unpin)) -> Option<Reply> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).expect("an ASCII head");
    let status = head.get(9..12).and_then(|status| status.parse().ok()).expect("a status");
    let mut reply = Reply { status, head, body: Vec::new() };
    let length = reply.header("content-length").map_or(0, |text| text.parse().expect("a number"));
    reply.body = vec![0; length];
    // An answer to HEAD has a length and no body.
    if io.read_exact(&mut reply.body).await.is_err() {
        reply.body.clear();
    }
    Some(reply)
}
