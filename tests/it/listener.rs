//! What the server serves over the listener on this machine: artifacts, and calls of its owner.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::server::{PATIENCE, Server};

const FRAMES: &[u8] = b"rendered\n";

/// A server whose folders outlive it.
fn spawn(folder: &TempDir) -> Server {
    let folder = folder.path().to_owned();
    Server::spawn_with(move |command| {
        command.arg("--store").arg(folder.join("store.db"));
        command.env("RAINCHECK_STATE_DIR", folder.join("state"));
        command.env("RAINCHECK_RUNTIME_DIR", folder.join("run"));
    })
}

async fn serve(folder: &TempDir) -> Server {
    spawn(folder).shake_hands().await
}

/// Sends a request to a listener and reads the answer to its end: status, head and body.
async fn http(address: &str, request: &str) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).await.expect("a listener");
    let request = request.replace('\n', "\r\n").replace("{host}", address);
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("an answer");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(bytes[..end].to_vec()).expect("text");
    (head[9..12].parse().expect("a status"), head, bytes[end + 4..].to_vec())
}

/// Fetches a link.
async fn get(url: &str) -> (u16, String, Vec<u8>) {
    let (address, target) =
        url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a link");
    http(address, &format!("GET /{target} HTTP/1.1\nHost: {{host}}\nConnection: close\n\n")).await
}

async fn artifact(server: &mut Server) -> (Value, Value) {
    let submit = json!({"tool_name": "artifact", "inputs": {"token": "hush-hush"}});
    let task = server.data("submit_task", submit).await;
    let ended = server.ended(&task).await;
    (task, ended["artifacts"][0].clone())
}

fn link(artifact: &Value) -> String {
    artifact["download_url"].as_str().unwrap_or_else(|| panic!("no link: {artifact}")).to_owned()
}

/// Finds the endpoint files.
fn endpoints(folder: &TempDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.path().join("run/http"));
    let entries = entries.into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join("endpoint.json")).collect()
}

/// Waits for an endpoint file beside those in `known`: a server answers before it listens.
async fn endpoint(folder: &TempDir, server: &mut Server, known: &[PathBuf]) -> (PathBuf, Value) {
    let look = async {
        loop {
            server.data("list_tasks", json!({})).await;
            let new = endpoints(folder).into_iter().find(|file| !known.contains(file));
            let text = new.as_deref().and_then(|file| std::fs::read_to_string(file).ok());
            if let (Some(file), Some(text)) = (new, text) {
                return (file, serde_json::from_str(&text).expect("JSON"));
            }
        }
    };
    timeout(PATIENCE, look).await.expect("an endpoint file in time")
}

fn mode(path: &Path) -> u32 {
    path.metadata().expect("there").permissions().mode() & 0o777
}

#[tokio::test]
async fn an_artifact_is_fetched_by_its_link_and_by_nothing_else() {
    // [ART-1] [ART-2] [SEC-1] [SEC-9]
    let mut server = Server::start().await;
    let (task, artifact) = artifact(&mut server).await;
    let url = link(&artifact);
    let id = artifact["artifact_id"].as_str().expect("an id");
    let (base, query) = url.split_once('?').expect("a signature");
    let (_, path) = base.split_once("//127.0.0.1:").expect("loopback [SEC-1]");
    assert_eq!(path.split_once('/').expect("a path").1, format!("artifacts/{id}/frames.txt"));
    let (status, head, body) = get(&url).await;
    assert_eq!((status, &body[..]), (200, FRAMES), "{head}");
    let head = head.to_lowercase();
    assert!(head.contains("content-disposition: attachment"), "{head}");
    assert!(head.contains("x-content-type-options: nosniff"), "{head}");
    let other = base.replace(id, "art_00000000000000000000000000000000");
    let odd = [
        base.to_owned(),
        format!("{base}?{query}0"),
        format!("{other}?{query}"),
        format!("{}?{query}", base.replace("frames.txt", "passwd.txt")),
        format!("{base}/../../{id}?{query}"),
    ];
    for url in odd {
        assert_eq!(get(&url).await.0, 404, "{url}");
    }
    let again = server.ended(&task).await;
    assert_eq!(again["artifacts"][0], artifact, "the listener stays where it is");
    assert!(server.close().await.success());
}

#[tokio::test]
async fn a_link_outlives_a_killed_server_and_leaves_a_taken_port_to_its_owner() {
    // [ART-1] [ART-2] [DUR-2] [SEC-5]
    let folder = TempDir::new().expect("a folder");
    let mut server = serve(&folder).await;
    let (task, artifact) = artifact(&mut server).await;
    let url = link(&artifact);
    let kept = folder.path().join("state/raincheck/http");
    assert_eq!((mode(&kept), mode(&kept.join("secret"))), (0o700, 0o600), "[SEC-4]");
    server.child.kill().await.expect("killed");

    let mut server = serve(&folder).await;
    assert_eq!(server.ended(&task).await["artifacts"][0], artifact, "the same link");
    assert_eq!(get(&url).await.2, FRAMES);
    server.child.kill().await.expect("killed");

    let port = url.rsplit(':').next().and_then(|rest| rest.split('/').next()).expect("a port");
    let owner = TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("the free port");
    let mut server = serve(&folder).await;
    let moved = link(&server.ended(&task).await["artifacts"][0]);
    assert_ne!(moved, url);
    assert_eq!(get(&moved).await.2, FRAMES);
    drop(owner);
    assert!(server.close().await.success());
}

#[tokio::test]
async fn where_nothing_can_listen_artifacts_are_listed_without_a_link() {
    let folder = TempDir::new().expect("a folder");
    let kept = folder.path().join("state/raincheck/http");
    std::fs::create_dir_all(&kept).expect("made");
    std::fs::write(kept.join("secret"), "letter to a friend").expect("written");
    let mut server = serve(&folder).await;
    let (_, artifact) = artifact(&mut server).await;
    assert_eq!(artifact["name"], "frames.txt", "[ART-1]");
    assert_eq!(artifact.get("download_url"), None, "{artifact}");
    assert!(server.close().await.success());
}

#[tokio::test]
async fn the_owner_finds_the_server_by_a_private_file_and_calls_it() {
    // [HOST-8] [SEC-2] [SEC-3] [SEC-4]
    let folder = TempDir::new().expect("a folder");
    let mut server = serve(&folder).await;
    let submitted = server.data("submit_task", json!({"tool_name": "slow", "inputs": {}})).await;
    let (file, endpoint) = endpoint(&folder, &mut server, &[]).await;
    assert_eq!((mode(&file), mode(file.parent().expect("a folder"))), (0o600, 0o700));
    assert_eq!((&endpoint["v"], &endpoint["kind"]), (&json!(1), &json!("http")), "{endpoint}");
    assert_eq!(endpoint["pid"], json!(server.child.id()));
    let address = endpoint["url"].as_str().and_then(|url| url.strip_prefix("http://"));
    let address = address.expect("an address");
    let secret = endpoint["secret"].as_str().expect("a secret");

    let call = |tool: &str, headers: &str| {
        let arguments = json!({"task_id": submitted["task_id"]});
        let body = json!({"scope": "local", "tool": tool, "arguments": arguments}).to_string();
        let length = body.len();
        format!(
            "POST /control/call HTTP/1.1\nHost: {{host}}\nConnection: close\nContent-Type: application/json\nContent-Length: {length}\n{headers}\n{body}"
        )
    };
    let bearer = format!("Authorization: Bearer {secret}\n");
    let origin = format!("{bearer}Origin: https://evil.example\n");
    for (headers, status) in [("", 401), (&*origin, 403)] {
        assert_eq!(http(address, &call("cancel_task", headers)).await.0, status, "{headers}");
    }
    let (status, _, body) = http(address, &call("cancel_task", &bearer)).await;
    let cancelled: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!((status, &cancelled["acknowledged"]), (200, &json!(true)), "{cancelled}");
    assert_eq!(server.ended(&submitted).await["state"], "cancelled");
    let (status, _, body) = http(address, &call("submit_task", &bearer)).await;
    let refused: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!((status, &refused["error"]["code"]), (404, &json!("unknown_tool")), "{refused}");

    assert!(server.close().await.success());
    assert_eq!(endpoints(&folder), Vec::<PathBuf>::new(), "the file goes with the server");
}

#[tokio::test]
async fn nothing_listens_for_a_client_that_only_looks_or_a_server_that_is_attached() {
    // [HOST-4] [HOST-8] [SEC-4]
    let folder = TempDir::new().expect("a folder");
    let mut probe = spawn(&folder);
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}});
    probe.request("initialize", params).await;
    probe.request("ping", json!({})).await;
    assert_eq!(endpoints(&folder), Vec::<PathBuf>::new());
    assert!(probe.close().await.success());

    let mut owner = serve(&folder).await;
    let (file, _) = endpoint(&folder, &mut owner, &[]).await;
    let mut second = serve(&folder).await;
    let served = second.data("list_tasks", json!({})).await;
    assert_eq!(served["tasks"], json!([]), "by the owner: {served}");
    assert_eq!(endpoints(&folder), std::slice::from_ref(&file));
    assert!(second.close().await.success());
    assert!(file.exists(), "another's file is left alone");

    owner.child.kill().await.expect("killed");
    let mut next = serve(&folder).await;
    let (new, _) = endpoint(&folder, &mut next, std::slice::from_ref(&file)).await;
    assert_eq!(endpoints(&folder), [new], "what the killed one left is swept");
    assert!(next.close().await.success());
}
