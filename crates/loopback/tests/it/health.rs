//! `GET /health` [SEC-4].

use crate::harness::{PORT, Reply, Rig, start};

async fn health(rig: &Rig, query: &str) -> Reply {
    let request = format!("GET /health{query} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n\r\n");
    rig.send(request.as_bytes()).await.expect("a reply")
}

#[tokio::test(start_paused = true)]
async fn health_says_that_a_server_is_here_and_nothing_else() {
    let reply = health(&start(), "").await;
    assert_eq!((reply.status, reply.text()), (200, r#"{"ok":true,"name":"rig","protocol":1}"#));
}

#[tokio::test(start_paused = true)]
async fn a_nonce_is_answered_with_a_proof_of_the_secret_and_the_port() {
    // From Python: hmac.new(bytes([9] * 32), b"health|kit-nonce-123|4711", "sha256").
    let reply = health(&start(), "?nonce=kit-nonce-123").await;
    let body = r#"{"ok":true,"name":"rig","protocol":1,"mac":"fP5aIxt-Md-jJhD-3_O6AcmtGExiPehYee48xhlnowM"}"#;
    assert_eq!((reply.status, reply.text()), (200, body), "[SEC-4]");
}

#[tokio::test(start_paused = true)]
async fn what_could_be_another_message_is_no_nonce() {
    let rig = start();
    let long = format!("?nonce={}", "a".repeat(129));
    for query in ["?nonce=", "?nonce=a|b", "?nonce=a%7Cb", "?nonce=a&nonce=b", &long] {
        assert_eq!(health(&rig, query).await.status, 400, "{query}");
    }
}
