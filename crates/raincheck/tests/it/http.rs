//! A server over HTTP, on real sockets [HTTP-3, SEC-1].

use std::net::SocketAddr;
use std::path::Path;

use raincheck::loopback::endpoint::{self, Endpoint};
use raincheck::{Builder, HttpConfig, LoopbackConfig};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::server;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210";
const LOOPBACK: SocketAddr =
    SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0));

/// Serves while a client speaks, which is given the endpoint file.
async fn with_server<T>(
    server: Builder,
    http: HttpConfig,
    speak: impl AsyncFnOnce(&Endpoint) -> T,
) -> T {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server.listening(LoopbackConfig::new().announced_in(folder.path()));
    let stop = CancellationToken::new();
    let speaking = async {
        let endpoint = found(folder.path()).await;
        let said = speak(&endpoint).await;
        stop.cancel();
        said
    };
    let (served, said) = tokio::join!(server.serve_http(http, stop.clone()), speaking);
    served.expect("it served");
    assert!(endpoint::all(folder.path()).is_empty(), "[SEC-4] the file goes with the server");
    said
}

/// Waits until a server has written its endpoint file.
async fn found(folder: &Path) -> Endpoint {
    loop {
        if let Some(endpoint) = endpoint::all(folder).pop() {
            return endpoint;
        }
        tokio::task::yield_now().await;
    }
}

/// Sends a request and returns the whole response.
async fn send(endpoint: &Endpoint, headers: &str, body: &str) -> String {
    let address = format!("127.0.0.1:{}", endpoint.port);
    let mut stream = TcpStream::connect(&address).await.expect("a listener");
    let host =
        if headers.contains("Host:") { String::new() } else { format!("Host: {address}\r\n") };
    let request = format!(
        "POST /mcp HTTP/1.1\r\n{host}{headers}Connection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// Asks for a document.
async fn get(endpoint: &Endpoint, path: &str) -> String {
    let address = format!("127.0.0.1:{}", endpoint.port);
    let mut stream = TcpStream::connect(&address).await.expect("a listener");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// Calls a tool as whoever shows a token.
async fn call(endpoint: &Endpoint, token: &str, tool: &str, arguments: &str) -> String {
    let headers = format!(
        "Authorization: Bearer {token}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: {tool}\r\n"
    );
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let params = format!(r#"{{"name":"{tool}","arguments":{arguments},"_meta":{meta}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    send(endpoint, &headers, &body).await
}

/// Returns what stands behind the head, without what changes from call to call.
fn body(response: &str) -> &str {
    response.split_once("\r\n\r\n").expect("a head").1
}

#[tokio::test]
async fn a_token_says_whose_the_tasks_are() {
    // [SCOPE-1, SCOPE-2, HTTP-3]
    let http = HttpConfig::new(LOOPBACK).token("alice", TOKEN).token("bob", OTHER);
    with_server(server(), http, async |endpoint| {
        let submit = r#"{"tool_name":"add","inputs":{"a":1,"b":2}}"#;
        let submitted = call(endpoint, TOKEN, "submit_task", submit).await;
        let at = submitted.find("tsk_").expect("a task");
        let id = &submitted[at..at + 30];
        let read = async |token: &str, id: &str| {
            let arguments = json!({"task_id": id, "wait_s": 5}).to_string();
            call(endpoint, token, "get_task_result", &arguments).await
        };
        assert!(read(TOKEN, id).await.contains("succeeded"));
        let never = "tsk_01JZZZZZZZZZZZZZZZZZZZZZZZ";
        let (foreign, unknown) = (read(OTHER, id).await, read(OTHER, never).await);
        assert_eq!(body(&foreign).replace(id, never), body(&unknown), "as if it never was");
        assert!(read(&endpoint.secret, id).await.contains("not_found"), "the owner's own scope");
        let owners = call(endpoint, &endpoint.secret, "submit_task", submit).await;
        assert!(owners.contains("tsk_"), "{owners}");
    })
    .await;
}

#[tokio::test]
async fn who_shows_no_token_or_a_wrong_one_is_refused() {
    // [SEC-2, SEC-3, HTTP-3]
    let http = HttpConfig::new(LOOPBACK).token("alice", TOKEN);
    with_server(server(), http, async |endpoint| {
        for (headers, status) in [
            (String::new(), "401"),
            ("Authorization: Bearer wrong\r\n".into(), "401"),
            (format!("Authorization: Basic {TOKEN}\r\n"), "401"),
            (format!("Authorization: Bearer {TOKEN}\r\nHost: evil.example\r\n"), "403"),
            (format!("Authorization: Bearer {TOKEN}\r\nOrigin: http://localhost\r\n"), "403"),
            (format!("Authorization: Bearer {TOKEN}\r\n"), "400"),
        ] {
            let refused = send(endpoint, &headers, "{}").await;
            assert!(refused.starts_with(&format!("HTTP/1.1 {status}")), "{headers}: {refused}");
            assert!(
                !refused.contains(TOKEN) && !refused.contains("resource_metadata"),
                "{refused}"
            );
            assert!(!refused.to_lowercase().contains("access-control"), "{refused}");
        }
    })
    .await;
}

/// A server in front of which stands an issuer of tokens that cannot be reached.
#[cfg(feature = "oauth")]
fn issued() -> HttpConfig {
    let oauth = raincheck::OAuth::new("https://login.example.org", "https://mcp.example.org/mcp");
    let oauth = oauth
        .and_then(|it| it.require("tasks"))
        .and_then(|it| it.keys_at("http://127.0.0.1:1/keys"));
    HttpConfig::new(LOOPBACK).token("alice", TOKEN).oauth(oauth.expect("settings"))
}

#[cfg(feature = "oauth")]
#[tokio::test]
async fn callers_without_a_token_are_told_who_issues_them() {
    // [HTTP-3, HTTP-9]
    let challenge = "www-authenticate: Bearer resource_metadata=\
                     \"https://mcp.example.org/.well-known/oauth-protected-resource/mcp\"";
    with_server(server(), issued(), async |endpoint| {
        let refused = send(endpoint, "", "{}").await;
        assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
        assert!(refused.contains(&format!("{challenge}, scope=\"tasks\"\r\n")), "{refused}");
        let wrong = send(endpoint, "Authorization: Bearer wrong\r\n", "{}").await;
        assert!(wrong.starts_with("HTTP/1.1 401"), "{wrong}");
        assert!(wrong.contains(&format!("{challenge}, error=\"invalid_token\"")), "{wrong}");
        let own = send(endpoint, &format!("Authorization: Bearer {TOKEN}\r\n"), "{}").await;
        assert!(
            own.starts_with("HTTP/1.1 400"),
            "a token of the configuration is one still: {own}"
        );
        for path in
            ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"]
        {
            let metadata = get(endpoint, path).await;
            assert!(metadata.starts_with("HTTP/1.1 200"), "{metadata}");
            let metadata: serde_json::Value = serde_json::from_str(body(&metadata)).expect("JSON");
            let expected = json!({"resource": "https://mcp.example.org/mcp",
                "authorization_servers": ["https://login.example.org"],
                "scopes_supported": ["tasks"], "bearer_methods_supported": ["header"]});
            assert_eq!(metadata, expected);
        }
    })
    .await;
}

#[cfg(feature = "oauth")]
#[tokio::test]
async fn a_token_whose_issuer_is_away_is_neither_right_nor_wrong() {
    // [HTTP-9]
    with_server(server(), issued(), async |endpoint| {
        // {"alg":"ES256"} . {} . nothing
        let headers = "Authorization: Bearer eyJhbGciOiJFUzI1NiJ9.e30.\r\n";
        let refused = send(endpoint, headers, "{}").await;
        assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
        assert!(
            refused.contains("retry-after: 1") && refused.contains("\"retryable\":true"),
            "{refused}"
        );
        assert!(!refused.contains("www-authenticate"), "a new token would not help: {refused}");
    })
    .await;
}

#[tokio::test]
async fn without_an_issuer_nothing_is_said_of_one() {
    // [HTTP-9]
    with_server(server(), HttpConfig::new(LOOPBACK).token("alice", TOKEN), async |endpoint| {
        for path in [
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-authorization-server",
        ] {
            let nothing = get(endpoint, path).await;
            assert!(nothing.starts_with("HTTP/1.1 404"), "{path}: {nothing}");
        }
    })
    .await;
}

#[tokio::test]
async fn without_a_token_only_this_machine_is_let_in_and_only_when_that_was_said() {
    // [SEC-1, HTTP-3]
    with_server(server(), HttpConfig::new(LOOPBACK).anonymous(), async |endpoint| {
        assert!(
            send(endpoint, "", "{}").await.starts_with("HTTP/1.1 400"),
            "let in, and no message"
        );
        let wrong = send(endpoint, "Authorization: Bearer wrong\r\n", "{}").await;
        assert!(wrong.starts_with("HTTP/1.1 401"), "{wrong}");
    })
    .await;
    let remote: SocketAddr = ([0, 0, 0, 0], 0).into();
    for http in [
        HttpConfig::new(remote),
        HttpConfig::new(remote).token("alice", TOKEN),
        HttpConfig::new(remote).allow_remote(),
        HttpConfig::new(remote).allow_remote().token("alice", TOKEN).anonymous(),
        HttpConfig::new(LOOPBACK).token("alice", "guess"),
    ] {
        let refused = server().serve_http(http, CancellationToken::new()).await;
        let error = refused.expect_err("refused");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
    }
}

#[tokio::test]
async fn a_port_that_belongs_to_another_program_is_an_error() {
    // [SEC-5, HTTP-3]
    let taken = tokio::net::TcpListener::bind(LOOPBACK).await.expect("a port");
    let address = taken.local_addr().expect("an address");
    let served = server().serve_http(HttpConfig::new(address), CancellationToken::new()).await;
    let error = served.expect_err("it is taken").to_string();
    assert!(error.contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_while_another_server_has_the_store_too() {
    // [HTTP-3] [ATTACH-4]
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("owner");
    let owner = raincheck_loopback::ownership::take(&place.join("lock")).expect("a lock");
    let taken = tokio::net::TcpListener::bind(LOOPBACK).await.expect("a port");
    let address = taken.local_addr().expect("an address");
    let server = server().sharing(raincheck::Sharing::in_place(place));
    let served = server.serve_http(HttpConfig::new(address), CancellationToken::new()).await;
    let error = served.expect_err("it does not wait for the store").to_string();
    assert!(error.contains(&address.to_string()), "{error}");
    drop(owner);
}
