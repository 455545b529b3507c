//! How a listener stops.

use std::time::Duration;

use raincheck_core::time::Timestamp;
use raincheck_loopback::Options;
use raincheck_loopback::endpoint::{self, Kind, Place};
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep};

use crate::harness::{PORT, options, receive, start, start_of};

#[tokio::test(start_paused = true)]
async fn a_request_that_ends_soon_is_answered_while_the_listener_stops() {
    let rig = start();
    let held = rig.get("/hold");
    let stopping = async {
        sleep(Duration::from_millis(10)).await;
        rig.stop.cancel();
        sleep(Duration::from_millis(200)).await;
        rig.release.notify_one();
    };
    assert_eq!(tokio::join!(held, stopping).0, 200);
    rig.stopped().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_does_not_end_is_cut_off_within_half_a_second() {
    let rig = start();
    let mut io = rig.dial();
    let request = format!("GET /hold HTTP/1.1\r\nHost: localhost:{PORT}\r\n{}\r\n", rig.bearer());
    io.write_all(request.as_bytes()).await.expect("written");
    sleep(Duration::from_millis(10)).await;
    let begin = Instant::now();
    rig.stop.cancel();
    rig.stopped().await;
    assert!(begin.elapsed() <= Duration::from_millis(500), "{:?}", begin.elapsed());
    assert!(receive(&mut io).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn idle_connections_do_not_delay_the_stop() {
    let rig = start();
    let idle: Vec<_> = (0..20).map(|_| rig.dial()).collect();
    sleep(Duration::from_millis(10)).await;
    let begin = Instant::now();
    rig.stop.cancel();
    rig.stopped().await;
    assert!(begin.elapsed() <= Duration::from_millis(500), "{:?}", begin.elapsed());
    drop(idle);
}

#[tokio::test(start_paused = true)]
async fn the_endpoint_file_is_there_while_the_listener_is() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("run/endpoint.json");
    let place = Place { path: path.clone(), kind: Kind::Http, started_at: Timestamp::MIN };
    let rig = start_of(Options { endpoint: Some(place), ..options() });
    let found = endpoint::read(&path).expect("readable").expect("there");
    assert_eq!((found.port, &*found.secret), (PORT, rig.info.secret.text()), "[SEC-4]");
    assert_eq!((&found.url, &found.instance_id), (&rig.info.url, &rig.info.instance_id));
    rig.stop.cancel();
    rig.stopped().await;
    assert!(endpoint::read(&path).expect("readable").is_none(), "[SEC-4]");
}
