//! Requests that must not get through, each with its exact answer.

use crate::harness::{MAX_BODY, PINNED, PORT, start};

const EVIL: &str = "https://evil.example";

/// Where a bad request is sent: `{auth}` stands for the right bearer, `{secret}` for the bare secret.
type Attack = (&'static str, u16);

/// Sends each request and compares its status; none may reach a handler, see a secret, or be told that
/// another site may read the answer.
async fn check(attacks: &[Attack]) {
    let rig = start();
    let secret = rig.info.secret.text().to_owned();
    for (template, status) in attacks {
        let request = template
            .replace('\n', "\r\n")
            .replace("{auth}", &format!("Authorization: Bearer {secret}"))
            .replace("{secret}", &secret)
            .replace("{host}", &format!("Host: 127.0.0.1:{PORT}"))
            .replace("{port}", &PORT.to_string())
            .replace("{evil}", EVIL)
            .replace("{pinned}", PINNED)
            .replace("{100k}", &"a".repeat(100 * 1024));
        let reply = rig.send(request.as_bytes()).await;
        let reply = reply.unwrap_or_else(|| panic!("no answer to {template}"));
        assert_eq!(reply.status, *status, "{template}\n{}", reply.head);
        assert_eq!(rig.n_handled(), 0, "a handler saw {template}");
        let answer = reply.head.to_lowercase() + reply.text();
        assert!(!answer.contains("access-control"), "[SEC-3] {template}");
        assert!(!answer.contains(&secret) && !answer.contains(&secret[..8]), "[SEC-3] {template}");
        assert!(answer.contains("connection: close"), "{template}\n{answer}");
    }
    assert_eq!(rig.get("/pending-queries").await, 200, "the rightful caller is still served");
    assert_eq!(rig.n_handled(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_points_its_name_here_is_refused_on_every_route() {
    check(&[
        ("GET /health HTTP/1.1\nHost: evil.example:{port}\n\n", 403),
        ("GET /nowhere HTTP/1.1\nHost: evil.example:{port}\n\n", 403),
        ("GET /pending-queries HTTP/1.1\nHost: evil.example\n{auth}\n\n", 403),
        ("GET /pending-queries HTTP/1.1\nHost: 127.0.0.1:1\n{auth}\n\n", 403),
        ("GET /pending-queries HTTP/1.1\nHost: localhost\n{auth}\n\n", 403),
        ("GET /unity HTTP/1.1\nHost: 127.0.0.1.evil.example:{port}\n\n", 403),
        ("GET http://evil.example/pending-queries HTTP/1.1\n{host}\n{auth}\n\n", 403),
    ])
    .await; // [SEC-2]
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_none_is_malformed() {
    check(&[
        ("GET /health HTTP/1.1\n\n", 400),
        ("GET /health HTTP/1.0\n\n", 400),
        ("GET /health HTTP/1.1\nHost: \n\n", 400),
        ("GET /health HTTP/1.1\nHost: :{port}\n\n", 400),
        ("GET /health HTTP/1.1\nHost: a b\n\n", 400),
        ("GET /health HTTP/1.1\nHost: x@127.0.0.1:{port}\n\n", 400),
        ("GET /health HTTP/1.1\n{host}\n{host}\n\n", 400),
        ("GET /health HTTP/1.1\n{host}\nHost: evil.example\n\n", 400),
    ])
    .await; // [SEC-2]
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_is_not_pinned_is_refused_even_with_the_secret() {
    check(&[
        ("GET /pending-queries HTTP/1.1\n{host}\n{auth}\nOrigin: {evil}\n\n", 403),
        ("GET /pending-queries HTTP/1.1\n{host}\n{auth}\nOrigin: null\n\n", 403),
        ("GET /pending-queries HTTP/1.1\n{host}\n{auth}\nOrigin: \n\n", 403),
        ("GET /pending-queries HTTP/1.1\n{host}\n{auth}\nOrigin: http://127.0.0.1:{port}\n\n", 403),
        ("GET /pending-queries HTTP/1.1\n{host}\n{auth}\nOrigin: {pinned}.evil.example\n\n", 403),
        ("GET /pending-queries HTTP/1.1\n{host}\n{auth}\nOrigin: {pinned}@evil.example\n\n", 403),
        ("GET /pending-queries HTTP/1.1\n{host}\n{auth}\nOrigin: {pinned}/\n\n", 403),
        ("GET /pending-queries HTTP/1.1\n{host}\n{auth}\nOrigin: CHROME-EXTENSION://ABC\n\n", 403),
        (
            "GET /pending-queries HTTP/1.1\n{host}\n{auth}\nOrigin: {pinned}\nOrigin: {pinned}\n\n",
            403,
        ),
        ("POST /query-result HTTP/1.1\n{host}\nOrigin: {evil}\nContent-Type: text/plain\nContent-Length: 2\n\n[]", 403),
        ("GET /health HTTP/1.1\n{host}\nOrigin: {evil}\n\n", 403),
        ("GET /nowhere HTTP/1.1\n{host}\nOrigin: {evil}\n\n", 403),
    ])
    .await; // [SEC-2]
}

#[tokio::test(start_paused = true)]
async fn an_editors_socket_takes_no_origin_at_all() {
    check(&[
        ("GET /unity HTTP/1.1\n{host}\nConnection: upgrade\nUpgrade: websocket\nOrigin: {evil}\n\n", 403),
        ("GET /unity HTTP/1.1\n{host}\nConnection: upgrade\nUpgrade: websocket\nOrigin: {pinned}\n\n", 403),
        ("GET /unity HTTP/1.1\n{host}\nConnection: upgrade\nUpgrade: websocket\nOrigin: http://localhost:3000\n\n", 403),
    ])
    .await; // [SEC-2]
}

#[tokio::test(start_paused = true)]
async fn what_a_browser_sends_for_another_site_is_refused() {
    check(&[
        ("GET /pending-queries HTTP/1.1\n{host}\n{auth}\nSec-Fetch-Site: cross-site\n\n", 403),
        ("GET /pending-queries HTTP/1.1\n{host}\n{auth}\nSec-Fetch-Site: same-site\n\n", 403),
        ("GET /pending-queries HTTP/1.1\n{host}\n{auth}\nSec-Fetch-Site: None\n\n", 403),
        ("GET /health HTTP/1.1\n{host}\nSec-Fetch-Site: none\nSec-Fetch-Site: cross-site\n\n", 403),
        ("GET /open HTTP/1.1\n{host}\nSec-Fetch-Site: cross-site\n\n", 403),
    ])
    .await; // [SEC-2]
}

#[tokio::test(start_paused = true)]
async fn a_preflight_of_a_stranger_learns_nothing() {
    check(&[
        ("OPTIONS /pending-queries HTTP/1.1\n{host}\nOrigin: {evil}\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Private-Network: true\n\n", 403),
        ("OPTIONS /pending-queries HTTP/1.1\n{host}\nOrigin: {pinned}\nAccess-Control-Request-Method: POST\n\n", 401),
    ])
    .await; // [SEC-2, SEC-3]
}

#[tokio::test(start_paused = true)]
async fn without_the_whole_secret_in_its_header_nobody_gets_in() {
    check(&[
        ("GET /pending-queries HTTP/1.1\n{host}\n\n", 401),
        ("GET /pending-queries HTTP/1.1\n{host}\nOrigin: {pinned}\n\n", 401),
        ("GET /pending-queries HTTP/1.1\n{host}\nAuthorization: Bearer wrong\n\n", 401),
        ("GET /pending-queries HTTP/1.1\n{host}\nAuthorization: Bearer\n\n", 401),
        ("GET /pending-queries HTTP/1.1\n{host}\nAuthorization: Bearer {secret}x\n\n", 401),
        ("GET /pending-queries HTTP/1.1\n{host}\nAuthorization: Basic {secret}\n\n", 401),
        ("GET /pending-queries HTTP/1.1\n{host}\nAuthorization: {secret}\n\n", 401),
        ("GET /pending-queries HTTP/1.1\n{host}\n{auth}\n{auth}\n\n", 401),
        ("GET /pending-queries?token={secret}&access_token={secret} HTTP/1.1\n{host}\n\n", 401),
        ("GET /pending-queries HTTP/1.1\n{host}\nCookie: token={secret}\n\n", 401),
        ("POST /query-result HTTP/1.1\n{host}\nContent-Type: text/plain\nContent-Length: 2\n\n[]", 401),
        ("GET /open HTTP/1.1\n{host}\nAuthorization: Bearer wrong\n\n", 401),
    ])
    .await; // [SEC-3]
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_plain_json_is_not_read() {
    check(&[
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\nContent-Type: text/plain\nContent-Length: 2\n\n[]", 415),
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\nContent-Type: application/x-www-form-urlencoded\nContent-Length: 2\n\n[]", 415),
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\nContent-Type: multipart/form-data; boundary=x\nContent-Length: 2\n\n[]", 415),
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\nContent-Length: 2\n\n[]", 415),
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\n\n", 415),
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\nContent-Type: application/json\nContent-Encoding: gzip\nContent-Length: 2\n\n[]", 415),
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\nContent-Type: application/json\nContent-Type: text/plain\nContent-Length: 2\n\n[]", 415),
    ])
    .await; // [SEC-3]
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_refused_unread() {
    check(&[
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\nContent-Type: application/json\nContent-Length: 1073741824\n\n{", 413),
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\nContent-Type: application/json\nContent-Length: 1025\n\n{", 413),
        ("GET /health HTTP/1.1\n{host}\nX-Large: {100k}\n\n", 431),
        ("GET /{100k} HTTP/1.1\n{host}\n\n", 414),
        ("GET /health?nonce=a&{100k} HTTP/1.1\n{host}\n\n", 414),
    ])
    .await; // [SEC-6]
    let headers: String = (0..1000).map(|n| format!("X-{n}: y\r\n")).collect();
    let request = format!("GET /health HTTP/1.1\r\nHost: localhost:{PORT}\r\n{headers}\r\n");
    assert_eq!(start().send(request.as_bytes()).await.expect("a reply").status, 431, "[SEC-6]");
    let large = format!("X: {}\r\n", "a".repeat(32 * 1024));
    let request = format!("GET /health HTTP/1.1\r\nHost: localhost:{PORT}\r\n{large}\r\n");
    assert_eq!(start().send(request.as_bytes()).await.expect("a reply").status, 431, "[SEC-6]");
    let target =
        format!("GET /{} HTTP/1.1\r\nHost: localhost:{PORT}\r\n\r\n", "a".repeat(8 * 1024));
    assert_eq!(start().send(target.as_bytes()).await.expect("a reply").status, 414, "[SEC-6]");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_http_1_is_not_answered_as_if_it_were() {
    check(&[
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\nContent-Type: application/json\nContent-Length: 2\nContent-Length: 3\n\n[] ", 400),
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\nContent-Type: application/json\nContent-Length: -1\n\n[]", 400),
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\nContent-Type: application/json\nTransfer-Encoding: gzip\n\n[]", 400),
        ("POST /query-result HTTP/1.1\n{host}\n{auth}\nContent-Type: application/json\nTransfer-Encoding: chunked\n\nzz\n[]\n", 400),
        ("GET /health HTTP/1.1\n{host}\nBad Header: x\n\n", 400),
    ])
    .await;
    let rig = start();
    let preface = rig.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(preface.is_none_or(|reply| reply.status >= 400), "HTTP/2 is not spoken");
}

#[tokio::test(start_paused = true)]
async fn a_length_beside_a_chunked_body_hides_no_second_request() {
    let rig = start();
    let hidden = format!("GET /open HTTP/1.1\r\nHost: localhost:{PORT}\r\n\r\n");
    let request = format!(
        "POST /query-result HTTP/1.1\r\nHost: localhost:{PORT}\r\n{}Content-Type: application/json\r\n\
         Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n{hidden}",
        rig.bearer()
    );
    let reply = rig.send(request.as_bytes()).await.expect("a reply");
    assert_eq!((reply.status, reply.text()), (200, "[]"));
    assert_eq!(reply.header("connection"), Some("close"));
    assert_eq!(rig.n_handled(), 1, "the second request was not believed");
}

#[tokio::test(start_paused = true)]
async fn rightful_callers_get_through() {
    let rig = start();
    let host = format!("Host: [::1]:{PORT}\r\n");
    let auth = rig.bearer();
    let body = "x".repeat(MAX_BODY);
    let json = "Content-Type: application/json; charset=utf-8\r\n";
    let good = [
        format!("GET /pending-queries HTTP/1.1\r\n{host}{auth}Origin: {PINNED}\r\n\r\n"),
        format!("GET /pending-queries HTTP/1.1\r\n{host}{auth}Sec-Fetch-Site: none\r\n\r\n"),
        format!("GET /pending-queries HTTP/1.1\r\n{host}{}\r\n", auth.replace("Bearer", "bearer")),
        format!(
            "POST /query-result HTTP/1.1\r\n{host}{auth}{json}Content-Length: {MAX_BODY}\r\n\r\n{body}"
        ),
        format!("GET /open HTTP/1.1\r\n{host}Sec-Fetch-Site: same-origin\r\n\r\n"),
    ];
    for (n, request) in good.iter().enumerate() {
        let reply = rig.send(request.as_bytes()).await.expect("a reply");
        assert_eq!(reply.status, 200, "{request}");
        assert_eq!(rig.n_handled(), n + 1);
    }
    let upgrade =
        format!("GET /unity HTTP/1.1\r\n{host}Connection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(rig.send(upgrade.as_bytes()).await.expect("a reply").status, 101);
    for method in ["PUT", "DELETE", "PATCH"] {
        let request = format!("{method} /query-result HTTP/1.1\r\n{host}{auth}\r\n");
        assert_eq!(rig.send(request.as_bytes()).await.expect("a reply").status, 405, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_error_object_with_a_next_step() {
    let rig = start();
    let request = format!(
        "POST /query-result HTTP/1.1\r\nHost: localhost:{PORT}\r\n{}\
         Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n",
        rig.bearer()
    );
    let reply = rig.send(request.as_bytes()).await.expect("a reply");
    assert_eq!(
        reply.text(),
        r#"{"code":"too_large","message":"the body is larger than is read","retryable":false,"guarantee":"not_executed","recovery":"none","hint":"send at most max_bytes","max_bytes":1024}"#
    );
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let bare = format!("GET /pending-queries HTTP/1.1\r\nHost: localhost:{PORT}\r\n\r\n");
    let reply = rig.send(bare.as_bytes()).await.expect("a reply");
    assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    assert!(reply.text().contains("endpoint.json"), "{}", reply.text());
}
