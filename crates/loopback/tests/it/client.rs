//! The client of the owner's own programs against a real listener.

use axum::Router;
use axum::routing::{get, post};
use http::HeaderMap;
use raincheck_core::time::Timestamp;
use raincheck_loopback::client::Connection;
use raincheck_loopback::endpoint::{self, Endpoint, Kind, Place};
use raincheck_loopback::{ErrorKind, Options, Policy, Secret, bind};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A listener that gives back what it is sent, and its endpoint as others read it.
async fn start(folder: &std::path::Path, running: &mut JoinSet<()>) -> Endpoint {
    let path = folder.join("run/endpoint.json");
    let mut options = Options::new("rig").expect("random bytes");
    options.endpoint =
        Some(Place { path: path.clone(), kind: Kind::Http, started_at: Timestamp::from_millis(1) });
    let name = async |headers: HeaderMap| match headers.get("x-name") {
        Some(name) => name.to_str().unwrap_or_default().to_owned(),
        None => String::new(),
    };
    let echo =
        Router::new().route("/echo", post(async |body: String| body)).route("/name", get(name));
    let (service, _) = bind(options.serving(echo, Policy::default())).await.expect("a listener");
    running.spawn(service.run(CancellationToken::new()));
    endpoint::read(&path).expect("readable").expect("written")
}

#[tokio::test]
async fn a_call_reaches_the_listener_of_the_endpoint_file() {
    // [SEC-3] [SEC-4]
    let (folder, mut running) = (tempfile::tempdir().expect("a folder"), JoinSet::new());
    let endpoint = start(folder.path(), &mut running).await;
    let mut connection = Connection::open(&endpoint).await.expect("reached");
    for body in ["{\"n\":1}", "{\"n\":2}"] {
        let answer = connection.post("/echo", body).await.expect("answered");
        assert_eq!((answer.status, &answer.body[..]), (200, body.as_bytes()));
    }
    let missing = connection.post("/nothing", "{}").await.expect("answered");
    assert_eq!(missing.status, 404);
}

#[tokio::test]
async fn headers_go_with_every_further_request() {
    let (folder, mut running) = (tempfile::tempdir().expect("a folder"), JoinSet::new());
    let endpoint = start(folder.path(), &mut running).await;
    let connection = Connection::open(&endpoint).await.expect("reached");
    let mut connection = connection.with_headers(&[("X-Name", "one")]).expect("a header");
    for _ in 0..2 {
        let answer = connection.get("/name").await.expect("answered");
        assert_eq!((answer.status, &answer.body[..]), (200, &b"one"[..]));
    }
    assert!(connection.with_headers(&[("X-Name", "a\nb")]).is_err());
}

#[tokio::test]
async fn another_listener_on_the_port_is_not_told_the_secret() {
    // [SEC-3]: the stale file of a server whose port somebody else has now.
    let (folder, mut running) = (tempfile::tempdir().expect("a folder"), JoinSet::new());
    let mut endpoint = start(folder.path(), &mut running).await;
    endpoint.secret = Secret::random().expect("random bytes").text().to_owned();
    let error = Connection::open(&endpoint).await.expect_err("a stranger");
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.to_string().contains("another program"), "{error}");
}

#[tokio::test]
async fn a_port_that_nobody_has_is_unreachable() {
    let (folder, mut running) = (tempfile::tempdir().expect("a folder"), JoinSet::new());
    let endpoint = start(folder.path(), &mut running).await;
    running.shutdown().await;
    let error = Connection::open(&endpoint).await.expect_err("gone");
    assert_eq!(error.kind(), ErrorKind::Unreachable);
}
