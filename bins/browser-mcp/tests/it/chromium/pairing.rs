//! How an extension finds its server.

use std::net::Ipv4Addr;
use std::process::Stdio;

use serde_json::Value;
use tokio::net::TcpListener;

use super::{Rig, TURN, serve};
use crate::ownership::forge;
use crate::{command, folder};

#[tokio::test]
async fn an_extension_that_is_installed_while_a_server_opens_its_listener_finds_it() {
    // [BROWSER-17]
    let turn = TURN.lock().await;
    let folder = folder();
    // The look for a server lasts until one has opened its listener beside it.
    let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = stranger.local_addr().expect("an address").port();
    forge(&folder.path().join("run"), port).await;
    let install = command(folder.path(), &["extension", "install", "extension"]);
    let mut install = tokio::process::Command::from(install);
    let mut install = install.stdout(Stdio::null()).spawn().expect("it runs");
    let (asked, _) = stranger.accept().await.expect("it looks");
    // A port that is asked for is told to no later start.
    let port = free_port().await;
    let server = serve(folder.path(), &["--port", &port.to_string()]).await;
    drop((asked, stranger));
    assert!(install.wait().await.expect("it ends").success());
    let pairing = std::fs::read(folder.path().join("extension/pairing.json")).expect("a pairing");
    let pairing: Value = serde_json::from_slice(&pairing).expect("JSON");
    assert_eq!(pairing["port"], port, "{pairing}");
    Rig::of(turn, folder, server).await.close().await;
}

/// Returns a port that nobody listens on.
async fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    listener.local_addr().expect("an address").port()
}
