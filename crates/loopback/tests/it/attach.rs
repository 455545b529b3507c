//! A request that becomes a stream [ATTACH-2].

use raincheck_core::time::Timestamp;
use raincheck_loopback::attach::{self, Upgrade};
use raincheck_loopback::client::Connection;
use raincheck_loopback::endpoint::{self, Kind, Place};
use raincheck_loopback::{Options, bind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::harness::{PORT, options, start_of};

async fn status(headers: &str) -> (u16, usize) {
    let (serving, mut incoming) = mpsc::channel::<Upgrade>(4);
    let rig = start_of(options().serving(attach::router(serving), attach::policy()));
    let headers = headers.replace("BEARER", &rig.bearer());
    let request = format!("GET /attach HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n{headers}\r\n");
    let status = rig.send(request.as_bytes()).await.map_or(0, |reply| reply.status);
    let n_served = std::iter::from_fn(|| incoming.try_recv().ok()).count();
    (status, n_served)
}

#[tokio::test(start_paused = true)]
async fn who_does_not_show_the_secret_or_comes_from_a_page_is_served_nothing() {
    // [ATTACH-2] [SEC-2] [SEC-3]
    let upgrade = "Connection: upgrade\r\nUpgrade: raincheck-attach\r\n";
    assert_eq!(status(upgrade).await, (401, 0));
    let page = format!("BEAREROrigin: https://example.com\r\n{upgrade}");
    assert_eq!(status(&page).await, (403, 0));
    assert_eq!(status("BEARER").await, (426, 0), "it asks for nothing");
    let other = "BEARERConnection: upgrade\r\nUpgrade: websocket\r\n";
    assert_eq!(status(other).await, (426, 0));
}

#[tokio::test]
async fn a_connection_becomes_two_streams_and_outlives_the_listener() {
    // [ATTACH-2]
    let (folder, mut running) = (tempfile::tempdir().expect("a folder"), JoinSet::new());
    let path = folder.path().join("owner/endpoint.json");
    let (serving, mut incoming) = mpsc::channel(1);
    let mut options = Options::new("rig").expect("random bytes");
    let started_at = Timestamp::from_millis(1);
    options.endpoint = Some(Place { path: path.clone(), kind: Kind::Owner, started_at });
    let options = options.serving(attach::router(serving), attach::policy());
    let (service, _) = bind(options).await.expect("a listener");
    let stop = CancellationToken::new();
    running.spawn(service.run(stop.clone()));
    let endpoint = endpoint::read(&path).expect("readable").expect("written");

    let connection = Connection::open(&endpoint).await.expect("reached");
    let mut near = connection.attach().await.expect("answered").expect("taken in");
    let upgrade = incoming.recv().await.expect("one asks");
    let mut far = upgrade.stream().await.expect("a stream");
    // One that nobody takes on fills the line; the next is told to come later.
    let mut waiting = Vec::new();
    let connection = Connection::open(&endpoint).await.expect("reached");
    waiting.push(connection.attach().await.expect("answered").expect("taken in"));
    let connection = Connection::open(&endpoint).await.expect("reached");
    assert!(connection.attach().await.expect("answered").is_none(), "[ATTACH-8]");

    stop.cancel();
    running.join_next().await.expect("the listener").expect("ended");
    near.write_all(b"ping\n").await.expect("open");
    far.write_all(b"pong\n").await.expect("open");
    let mut heard = [0; 5];
    far.read_exact(&mut heard).await.expect("open");
    assert_eq!(&heard, b"ping\n");
    near.read_exact(&mut heard).await.expect("open");
    assert_eq!(&heard, b"pong\n");
    // One half may end before the other.
    near.shutdown().await.expect("open");
    assert_eq!(far.read(&mut heard).await.expect("its end"), 0);
    far.write_all(b"last\n").await.expect("open");
    near.read_exact(&mut heard).await.expect("open");
    drop(far);
    assert_eq!(near.read(&mut heard).await.expect("its end"), 0);
}
