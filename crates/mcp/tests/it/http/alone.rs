//! Requests of 2026-07-28, which stand alone [HTTP-2, HTTP-5, HTTP-6].

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use raincheck_core::scope::Scope;
use raincheck_mcp::{Desk, Extension, HttpOptions, Layer, Options};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower_service::Service as _;

use super::rig::{META, Web, call_alone, post, read, request};

#[tokio::test(start_paused = true)]
async fn arguments_and_results_keep_their_bytes() {
    // [HTTP-2, TOOL-6]
    let web = Web::start();
    let arguments = r#"{ "z":1.0,  "a":1e2, "e":"\u00e9\/","big":123456789012345678901234567890}"#;
    let read = web.call_alone("echo", arguments).await;
    assert_eq!((read.status, read.form.as_str()), (StatusCode::OK, "application/json"));
    assert_eq!(read.json()["result"]["content"][0]["text"], arguments, "{read:?}");
    assert_eq!(read.json()["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn headers_must_say_what_the_body_says() {
    // [HTTP-6]
    let web = Web::start();
    let body = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#)
    };
    let echo = format!(r#"{{"name":"echo","arguments":{{}},"_meta":{{{META}}}}}"#);
    let bare = format!(r#"{{"_meta":{{{META}}}}}"#);
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let cases: &[(&[(&str, &str)], String)] = &[
        (&[("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")], body("tools/call", &echo)),
        (&[version, ("Mcp-Name", "echo")], body("tools/call", &echo)),
        (&[version, ("Mcp-Method", "tools/call")], body("tools/call", &echo)),
        (&[version, ("Mcp-Method", "tools/list"), ("Mcp-Name", "echo")], body("tools/call", &echo)),
        (&[version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "nap")], body("tools/call", &echo)),
        (&[("MCP-Protocol-Version", "2025-11-25")], body("tools/list", &bare)),
        (
            &[version, ("Mcp-Method", "tasks/get"), ("Mcp-Name", "tsk_other")],
            body("tasks/get", &format!(r#"{{"taskId":"tsk_this","_meta":{{{META}}}}}"#)),
        ),
    ];
    for (headers, body) in cases {
        let read = web.post(headers, body).await;
        assert_eq!((read.status, read.code()), (StatusCode::BAD_REQUEST, -32020), "{headers:?}");
        assert_eq!(read.json()["id"], 7, "{read:?}");
    }
    assert_eq!(web.call_alone("list_tasks", "{}").await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_request_is_said_by_code_and_status() {
    // [HTTP-5]
    let web = Web::start();
    let ask = async |version: &str, method: &str, meta: &str| {
        let headers = [("MCP-Protocol-Version", version), ("Mcp-Method", method)];
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{{meta}}}}}}}"#
        );
        web.post(&headers, &body).await
    };
    let read = ask("2026-07-28", "tools/list", META).await;
    assert_eq!(read.status, StatusCode::OK, "{read:?}");
    let read = ask("2026-07-28", "server/discover", META).await;
    let versions = read.json()["result"]["supportedVersions"].clone();
    assert!(versions.as_array().is_some_and(|all| all.contains(&json!("2026-07-28"))), "{read:?}");
    let read = ask("2026-07-28", "no/such", META).await;
    assert_eq!((read.status, read.code()), (StatusCode::NOT_FOUND, -32601));
    let read = ask("2026-07-28", "tools/list", "").await;
    assert_eq!((read.status, read.code()), (StatusCode::BAD_REQUEST, -32602), "no metadata");
    let read = ask("2099-01-01", "tools/list", &META.replace("2026-07-28", "2099-01-01")).await;
    assert_eq!((read.status, read.code()), (StatusCode::BAD_REQUEST, -32022));
    assert_eq!(read.json()["error"]["data"]["supported"], versions, "{read:?}");
    let read = ask("2026-07-28", "initialize", META).await;
    assert_eq!((read.status, read.code()), (StatusCode::NOT_FOUND, -32601), "it is of the past");
    let read = web.post(&[], "{").await;
    assert_eq!((read.status, read.code()), (StatusCode::BAD_REQUEST, -32700));
    let read = web.post(&[], "[]").await;
    assert_eq!((read.status, read.code()), (StatusCode::BAD_REQUEST, -32600));
    let read = web.post(&[("Accept", "application/json")], "{}").await;
    assert_eq!(read.status, StatusCode::NOT_ACCEPTABLE);
    let read = web.post(&[("Content-Type", "text/plain")], "{}").await;
    assert_eq!(read.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let version = [("MCP-Protocol-Version", "2026-07-28")];
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let read = web.exchange(request(method, &version, "")).await;
        assert_eq!(read.status, StatusCode::METHOD_NOT_ALLOWED);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_comes_on_the_stream_of_its_request_and_the_answer_last() {
    // [HTTP-4, RESULT-2]
    let web = Web::start();
    let steps = r#"{"percents":[10,60]}"#;
    let read = web.exchange(call_alone("steps", steps, r#","progressToken":"p""#)).await;
    assert_eq!((read.status, read.form.as_str()), (StatusCode::OK, "text/event-stream"));
    let said: Vec<Value> = read.messages();
    let values: Vec<&Value> =
        said.iter().map(|one| &one["params"]["progress"]).filter(|one| !one.is_null()).collect();
    assert_eq!(values, [&json!(10.0), &json!(60.0)], "{read:?}");
    assert_eq!(said.len(), 3);
    assert!(said[2]["result"]["content"].is_array() && said[2]["id"] == 1, "{read:?}");
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_the_response_cancels_the_request() {
    // [HTTP-5, CANCEL-7]
    let web = Web::start();
    // Before anything was said, and while events are read.
    let begun = web.send(call_alone("held", r#"{"s":600}"#, ""));
    assert!(tokio::time::timeout(Duration::from_millis(100), begun).await.is_err(), "it waits");
    sleep(Duration::from_millis(100)).await;
    assert_eq!(web.state().await, "cancelled");
    let response = web.send(call_alone("held", r#"{"s":600}"#, r#","progressToken":1"#)).await;
    let mut body = response.into_body();
    body.frame().await.expect("progress").expect("a frame");
    assert_eq!(web.state().await, "running");
    drop(body);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(web.state().await, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_response_that_says_nothing_shows_that_somebody_is_there() {
    // [HTTP-4]
    let web = Web::start();
    let response = web.send(call_alone("get_task_result", r#"{"task_id":"x"}"#, "")).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    let id = web.submit("nap", r#"{"s":60}"#).await;
    let wait = json!({"task_id": id, "wait_s": 60}).to_string();
    let mut body = web.send(call_alone("get_task_result", &wait, "")).await.into_body();
    let first = body.frame().await.expect("a comment").expect("a frame");
    assert_eq!(first.into_data().expect("data").as_ref(), b":\n\n");
}

#[tokio::test(start_paused = true)]
async fn pages_and_other_names_are_kept_out() {
    // [SEC-2]
    let web = Web::start();
    for headers in [
        &[("Origin", "https://evil.example")][..],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Origin", "null")],
    ] {
        assert_eq!(web.post(headers, "{}").await.status, StatusCode::FORBIDDEN, "{headers:?}");
    }
    let mut foreign = post(&[], "{}");
    foreign.headers_mut().insert("host", "evil.example:1".parse().expect("a value"));
    assert_eq!(web.exchange(foreign).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_served_who_is_not_known_and_a_body_has_a_limit() {
    // [HTTP-3, HTTP-7]
    let http = HttpOptions { max_body: 1000, ..HttpOptions::new(None) };
    let web = Web::start_with(Options::new("0.0.0"), http);
    let list = || call_alone("list_tasks", "{}", "");
    let read_of = web.exchange(list()).await;
    assert_eq!(read_of.status, StatusCode::UNAUTHORIZED);
    let mut known = list();
    known.extensions_mut().insert(Scope::new("alice"));
    assert_eq!(web.exchange(known).await.status, StatusCode::OK);
    for (size, status) in [(1000, StatusCode::BAD_REQUEST), (1001, StatusCode::PAYLOAD_TOO_LARGE)] {
        let mut large = post(&[], &"x".repeat(size));
        large.extensions_mut().insert(Scope::new("alice"));
        assert_eq!(read(web.send(large).await).await.status, status, "{size}");
    }
}

#[tokio::test(start_paused = true)]
async fn at_the_end_what_is_open_is_answered_and_nothing_more_is_taken() {
    // [HTTP-8, LEASE-9]
    let web = Web::start();
    let long = web.exchange(call_alone("nap", r#"{"s":600}"#, ""));
    let end = async {
        sleep(Duration::from_millis(100)).await;
        web.service.close().await;
        web.call_alone("echo", "{}").await
    };
    let (answered, refused) = tokio::join!(long, end);
    let said = answered.messages();
    let text = said.last().expect("an answer")["result"]["content"][0]["text"].to_string();
    assert!(text.contains("task_id"), "{text}");
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(web.handle.spec("echo").is_some(), "the engine is still there");
}

/// A body that comes in as the test sends it.
struct Slow(mpsc::UnboundedReceiver<Bytes>);

impl Slow {
    fn new() -> (mpsc::UnboundedSender<Bytes>, Self) {
        let (sender, pieces) = mpsc::unbounded_channel();
        (sender, Self(pieces))
    }
}

impl Body for Slow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Posts a call whose body comes from a channel.
fn slowly(body: Slow) -> http::Request<Slow> {
    call_alone("nap", r#"{"s":600}"#, "").map(|_| body)
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    // [HTTP-7]
    let web = Web::start();
    let (sender, body) = Slow::new();
    sender.send(Bytes::from_static(b"{")).expect("sent");
    let begin = tokio::time::Instant::now();
    let Ok(response) = web.service.clone().call(slowly(body)).await;
    assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
    assert_eq!(begin.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn bodies_of_one_owner_are_read_in_turn() {
    // [HTTP-7]
    let web = Web::start();
    let mut senders = Vec::new();
    let mut waiting = JoinSet::new();
    for _ in 0..4 {
        let (sender, body) = Slow::new();
        senders.push(sender);
        let mut service = web.service.clone();
        waiting.spawn(async move { service.call(slowly(body)).await });
    }
    sleep(Duration::from_secs(1)).await;
    let mine = web.call_alone("echo", "{}");
    let mut others = call_alone("echo", "{}", "");
    others.extensions_mut().insert(Scope::new("another"));
    let begin = tokio::time::Instant::now();
    assert_eq!(web.exchange(others).await.status, StatusCode::OK, "another's room is its own");
    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert_eq!(mine.await.status, StatusCode::OK, "when a body of 16 MiB has given up");
    assert_eq!(begin.elapsed().as_secs(), 9);
    while let Some(one) = waiting.join_next().await {
        let Ok(response) = one.expect("no panic");
        assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
    }
    drop(senders);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_late_begins_nothing_after_the_end() {
    // [HTTP-8]
    let web = Web::start();
    let (sender, body) = Slow::new();
    let mut service = web.service.clone();
    let late = async { service.call(slowly(body)).await };
    let whole = call_alone("nap", r#"{"s":600}"#, "").into_body().collect().await;
    let ending = async {
        sleep(Duration::from_millis(10)).await;
        web.service.close().await;
        sender.send(whole.expect("a body").to_bytes()).ok();
        drop(sender);
    };
    let (response, ()) = tokio::join!(late, ending);
    let Ok(response) = response;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    sleep(Duration::from_secs(1)).await;
    let all = web.handle.list(&Scope::local(), &Default::default(), None, 9).await;
    assert_eq!(all.expect("a list").items.len(), 0, "nothing was begun");
}

/// Panics when the server starts it, and when it is asked for its extension from then on.
#[derive(Debug, Default)]
struct Faulty(AtomicBool);

impl Layer for Faulty {
    fn start(&self, _: &Desk, _: &'static str) {
        self.0.store(true, Ordering::SeqCst);
        panic!("of a layer");
    }

    fn extension(&self) -> Option<Extension> {
        assert!(!self.0.load(Ordering::SeqCst), "of a layer");
        None
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_the_answer_to_its_request_whatever_was_asked() {
    // [CALL-7]
    let options = Options::new("0.0.0").wrap(Faulty::default());
    let web = Web::start_with(options, HttpOptions::new(Some(Scope::local())));
    let discover = async || {
        let method = "server/discover";
        let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{{META}}}}}}}"#
        );
        web.post(&headers, &body).await.json()["error"]["code"].clone()
    };
    assert_eq!(discover().await, Value::Null);
    assert_eq!(web.call_alone("echo", "{}").await.code(), -32603, "it starts the server");
    assert_eq!(discover().await, -32603);
    let answered = web.call_alone("echo", "{}").await.json();
    assert_eq!(answered["error"], Value::Null, "no place is lost");
}
