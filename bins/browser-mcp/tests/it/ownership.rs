//! One server owns the browser, and a file proves nothing about which.

use std::net::TcpListener;
use std::path::Path;

use raincheck_loopback::endpoint::{self, Endpoint, Kind, Place};
use raincheck_loopback::{Options, bind};
use serde_json::{Value, json};

use crate::server::Server;
use crate::{browser_mcp, code, command, folder, out};

/// Writes an endpoint file of this living process that leads to somebody else's port.
pub(crate) async fn forge(runtime: &Path, port: u16) -> Endpoint {
    let path = runtime.join("browser/endpoint.json");
    let options = Options::new("browser-mcp").expect("random bytes");
    let started_at = raincheck::core::time::Timestamp::from_millis(0);
    let place = Place { path: path.clone(), kind: Kind::Browser, started_at };
    let (service, _) = bind(Options { endpoint: Some(place), ..options }).await.expect("bound");
    let endpoint = endpoint::read(&path).expect("readable").expect("written");
    drop(service);
    let forged = Endpoint { port, url: format!("http://127.0.0.1:{port}"), ..endpoint };
    std::fs::create_dir_all(runtime.join("browser")).expect("a folder");
    std::fs::write(&path, serde_json::to_vec(&forged).expect("JSON")).expect("written");
    forged
}

#[tokio::test]
async fn a_forged_endpoint_file_keeps_nobody_from_the_browser_and_is_not_shown() {
    // [SEC-13] [BROWSER-18]
    let folder = folder();
    let stranger = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = stranger.local_addr().expect("an address").port();
    let forged = forge(&folder.path().join("run"), port).await;
    assert!(forged.is_running());
    drop(stranger);

    let written = browser_mcp(folder.path(), &["extension", "install", "extension"]);
    assert_eq!(code(&written), Some(0));
    let pairing = std::fs::read(folder.path().join("extension/pairing.json")).expect("a pairing");
    let pairing: Value = serde_json::from_slice(&pairing).expect("JSON");
    assert_ne!(pairing["port"], port, "the extension would send its secret there");

    let status = browser_mcp(folder.path(), &["status"]);
    assert!(!out(&status).contains(&forged.url), "{}", out(&status));

    Server::listening(folder.path()).await.close().await;
}

#[tokio::test]
async fn of_many_servers_with_stores_of_their_own_one_owns_the_browser() {
    // [BROWSER-18] [ATTACH-1]
    let folder = folder();
    let first = Server::listening(folder.path()).await;
    let serve = async |more: &[&str]| {
        let arguments = [&["serve", "--log-level", "info"], more].concat();
        Server::of(command(folder.path(), &arguments)).await
    };
    // Another store; tasks in memory; another runtime folder: served by the first.
    let others: [&[&str]; 3] = [
        &["--store", "other.db"],
        &["--store", "memory"],
        &["--store", "memory", "--runtime-dir", "other-run"],
    ];
    for arguments in others {
        let server = serve(arguments).await;
        let answer = server.script(0).await;
        assert_eq!(answer["status"], "queued", "{arguments:?}: {answer}");
        let read = json!({ "what": "command_result", "correlation_id": answer["correlation_id"] });
        assert_ne!(first.call("observe", read).await["status"], "error", "{arguments:?}");
        server.close().await;
    }
    assert!(!folder.path().join("other.db").exists(), "a store that nobody owns");
    // Another state folder has other tasks, and not this browser.
    let mut apart = serve(&["--store", "memory", "--state-dir", "other-state"]).await;
    let answer = apart.script(0).await;
    let details = &answer["error_info"]["details"];
    assert_eq!(details["reason"], "owned_elsewhere", "{answer}");
    assert_eq!(details["pid"], json!(first.pid()), "{answer}");
    first.kill().await;
    apart.until_logged("listening for the extension").await;
    apart.close().await;
}

#[tokio::test]
async fn a_runtime_folder_that_cannot_be_used_is_what_health_and_errors_tell_of() {
    // Case browser-runtime-folder-that-is-not-there.
    let folder = folder();
    std::fs::write(folder.path().join("run"), "no folder").expect("written");
    let server = Server::start(folder.path()).await;
    let answer = server.script(0).await;
    assert_eq!(answer["error_info"]["code"], "peer_not_ready", "{answer}");
    assert!(answer["error_info"]["hint"].to_string().contains("--runtime-dir"), "{answer}");
    let health = server.call("observe", json!({ "what": "health" })).await;
    let message = health["message"].as_str().expect("a message");
    assert_eq!(health["ok"], false, "{health}");
    for part in ["cannot find this server", "--runtime-dir"] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    let doctor = browser_mcp(folder.path(), &["doctor"]);
    assert!(out(&doctor).contains("runtime folder"), "{}", out(&doctor));
    server.close().await;
}
