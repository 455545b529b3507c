//! Real sockets of this machine [SEC-1, SEC-5].

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use raincheck_loopback::{ErrorKind, Info, Options, bind};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::harness::{exchange, options, surfaces};

/// Opens and runs a listener until the set is dropped.
async fn open(options: Options) -> (Info, JoinSet<()>) {
    let options = surfaces(options, &Arc::default(), &Arc::default());
    let (service, info) = bind(options).await.expect("a listener");
    let mut running = JoinSet::new();
    running.spawn(service.run(CancellationToken::new()));
    (info, running)
}

async fn get(address: SocketAddr, head: &str) -> u16 {
    let io = TcpStream::connect(address).await.expect("connected");
    let request = format!("GET {head}\r\n\r\n");
    exchange(io, request.as_bytes()).await.expect("a reply").status
}

#[tokio::test]
async fn a_listener_is_reached_on_loopback_by_what_its_info_says() {
    let (info, _running) = open(options()).await;
    assert_eq!(info.address.ip(), Ipv4Addr::LOCALHOST, "[SEC-1]");
    assert_eq!(info.url, format!("http://127.0.0.1:{}", info.port));
    assert_eq!(info.taken_port, None);
    let health = format!("/health HTTP/1.1\r\nHost: localhost:{}", info.port);
    assert_eq!(get(info.address, &health).await, 200);
    let v6 = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, info.port));
    if TcpListener::bind((std::net::Ipv6Addr::LOCALHOST, 0)).await.is_ok() {
        assert_eq!(get(v6, &health).await, 200, "[SEC-1]");
    }
}

#[tokio::test]
async fn a_taken_port_is_left_to_its_owner() {
    let owner = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = owner.local_addr().expect("an address");
    let (info, _running) = open(Options { address, ..options() }).await;
    assert_ne!(info.port, address.port(), "[SEC-5]");
    assert_eq!(info.taken_port, Some(address.port()), "[SEC-5]");
    let (_stream, accepted) = tokio::join!(TcpStream::connect(address), owner.accept());
    assert!(accepted.is_ok(), "[SEC-5] the owner still has it");
    let health = format!("/health HTTP/1.1\r\nHost: localhost:{}", info.port);
    assert_eq!(get(info.address, &health).await, 200);
}

#[tokio::test]
async fn a_port_that_was_kept_is_taken_again_when_it_is_free() {
    let dir = tempfile::tempdir().expect("a folder");
    let kept_port = Some(dir.path().join("kept/port"));
    let kept = || Options { kept_port: kept_port.clone(), ..options() };
    let (first, mut running) = open(kept()).await;
    let (meanwhile, mut also) = open(kept()).await;
    assert_ne!(meanwhile.port, first.port, "[SEC-5]");
    running.shutdown().await;
    also.shutdown().await;
    let (again, mut running) = open(kept()).await;
    assert_eq!(again.port, meanwhile.port, "the last one that was used");
    running.shutdown().await;
    std::fs::write(kept_port.as_deref().expect("a path"), "no port").expect("written");
    assert!(open(kept()).await.0.port > 0, "what is no port does not stop a start");
}

#[tokio::test]
async fn an_address_that_other_machines_reach_needs_leave_and_a_token() {
    let anywhere: SocketAddr = (Ipv4Addr::UNSPECIFIED, 0).into();
    let without_leave = Options { address: anywhere, ..options() };
    let without_token = Options { address: anywhere, allow_remote: true, token: None, ..options() };
    for options in [without_leave, without_token] {
        let error = bind(options).await.expect_err("[SEC-1] refused");
        assert_eq!(error.kind(), ErrorKind::Options, "[SEC-1]");
        assert!(error.to_string().contains("--allow-remote"), "{error}");
    }
}

#[tokio::test]
async fn a_remote_listener_asks_everybody_for_the_token() {
    let anywhere = (Ipv4Addr::UNSPECIFIED, 0).into();
    let (info, _running) =
        open(Options { address: anywhere, allow_remote: true, ..options() }).await;
    let address = (Ipv4Addr::LOCALHOST, info.port).into();
    let open = format!("/open HTTP/1.1\r\nHost: 127.0.0.1:{}", info.port);
    assert_eq!(get(address, &open).await, 401, "[SEC-1]");
    let with = format!("{open}\r\nAuthorization: Bearer {}", info.secret.text());
    assert_eq!(get(address, &with).await, 200);
    assert_eq!(info.url, format!("http://127.0.0.1:{}", info.port));
}

#[tokio::test]
async fn an_address_of_another_machine_is_explained() {
    let address = (Ipv4Addr::new(192, 0, 2, 1), 0).into();
    let options = Options { address, allow_remote: true, ..options() };
    let error = bind(options).await.expect_err("not ours");
    assert_eq!(error.kind(), ErrorKind::Address);
    assert!(error.to_string().contains("192.0.2.1:0"), "{error}");
}

#[tokio::test]
async fn every_listener_has_a_secret_of_its_own() {
    let (one, _running) = open(Options { token: None, ..options() }).await;
    let (two, _also) = open(Options { token: None, ..options() }).await;
    assert_ne!(one.secret.text(), two.secret.text(), "[SEC-3]");
    assert_ne!(one.instance_id, two.instance_id);
}
