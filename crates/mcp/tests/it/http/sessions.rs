//! Sessions of the revisions up to 2025-11-25 [HTTP-1].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use raincheck_core::content::{Content, Json};
use raincheck_core::error::Error;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::{Hints, ToolSpec};
use raincheck_mcp::{
    Answer, Answered, Call, Caller, Desk, HttpOptions, Layer, Notice, Notices, Options, Refused,
    Shown,
};
use raincheck_runtime::{self as runtime, Executor, Functions, Route, ToolSet};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower_service::Service as _;

use super::rig::{Web, call, post, read, request};

#[tokio::test(start_paused = true)]
async fn a_session_is_begun_used_and_ended() {
    let web = Web::start();
    let session = web.initialize(None).await;
    let arguments = r#"{ "z":1.0,  "a":1e2 }"#;
    let answered = web.call(&session, 5, "echo", arguments).await;
    assert_eq!(answered.json()["result"]["content"][0]["text"], arguments, "[TOOL-6] {answered:?}");
    assert!(answered.json()["result"].get("resultType").is_none(), "[HTTP-1] of a later revision");
    let named = [("Mcp-Session-Id", session.as_str())];
    let ended = web.exchange(request(Method::DELETE, &named, "")).await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT);
    assert_eq!(web.call(&session, 6, "echo", "{}").await.status, StatusCode::NOT_FOUND);
    let ended = web.exchange(request(Method::DELETE, &named, "")).await;
    assert_eq!(ended.status, StatusCode::NOT_FOUND);
}

/// Answers with the name of the connection of a call.
struct Whose;

#[async_trait]
impl ToolSet for Whose {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![ToolSpec::new("whose", "Says whose call it is", Json::empty_object())]
    }

    async fn route(&self, call: &runtime::Call) -> Result<Route, Error> {
        let name = call.connection.as_deref().unwrap_or("nobody's");
        Ok(Route::Answer(Outcome::Succeeded(vec![Content::Text(name.into())])))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Functions::new().executor()
    }
}

#[tokio::test(start_paused = true)]
async fn each_session_is_a_connection_of_its_own() {
    // [HTTP-1]
    let engine = runtime::Options::in_memory().with_tools(Arc::new(Whose));
    let http = HttpOptions::new(Some(Scope::local()));
    let web = Web::start_of(engine, Options::new("0.0.0"), http);
    let whose = async |session: &str| {
        let said = web.call(session, 5, "whose", "{}").await;
        said.json()["result"]["content"][0]["text"].as_str().expect("a text").to_owned()
    };
    let (one, two) = (web.initialize(None).await, web.initialize(None).await);
    let first = whose(&one).await;
    assert_eq!(whose(&one).await, first, "its calls have one name");
    assert_ne!(whose(&two).await, first);
    assert!(!first.contains(&one), "the id of a session is for its client alone");
    let alone = web.call_alone("whose", "{}").await;
    assert_eq!(alone.json()["result"]["content"][0]["text"], "nobody's", "{alone:?}");
}

#[tokio::test(start_paused = true)]
async fn a_foreign_session_is_as_unknown_as_one_that_never_was() {
    // [SCOPE-2]
    let web = Web::start();
    let session = web.initialize(Some("alice")).await;
    let ask = async |session: &str, scope: &str| {
        let mut request = post(&[("Mcp-Session-Id", session)], &call(1, "echo", "{}"));
        request.extensions_mut().insert(Scope::new(scope));
        web.exchange(request).await
    };
    assert_eq!(ask(&session, "alice").await.status, StatusCode::OK);
    let (foreign, unknown) = (ask(&session, "bob").await, ask("never", "bob").await);
    assert_eq!((foreign.status, unknown.status), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND));
    assert_eq!(foreign.text, unknown.text);
    let none = web.post(&[], &call(1, "echo", "{}")).await;
    assert_eq!(none.status, StatusCode::BAD_REQUEST, "no session is named");
    let version = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "1999-01-01")];
    assert_eq!(web.post(&version, &call(1, "echo", "{}")).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_given_up_cancels_nothing() {
    // [HTTP-5]
    let web = Web::start();
    let session = web.initialize(None).await;
    let named = [("Mcp-Session-Id", session.as_str())];
    let begun = web.send(post(&named, &call(1, "held", r#"{"s":3}"#)));
    drop(timeout(Duration::from_millis(100), begun).await);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(web.state().await, "running");
    sleep(Duration::from_secs(4)).await;
    assert_eq!(web.state().await, "succeeded");
    // Its id is free again.
    assert_eq!(web.call(&session, 1, "echo", "{}").await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_cancelled_gets_no_answer_and_an_id_is_taken_until_then() {
    // [CALL-3, CALL-7]
    let web = Web::start();
    let session = web.initialize(None).await;
    let named = [("Mcp-Session-Id", session.as_str())];
    let long = web.exchange(post(&named, &call(1, "held", r#"{"s":600}"#)));
    let cancelling = async {
        sleep(Duration::from_millis(50)).await;
        let twice = web.call(&session, 1, "echo", "{}").await;
        assert_eq!(twice.code(), -32600, "{twice:?}");
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 1}});
        web.post(&named, &cancel.to_string()).await.status
    };
    let (answered, cancelled) = tokio::join!(long, cancelling);
    assert_eq!(cancelled, StatusCode::ACCEPTED);
    let answers = answered.messages();
    assert!(answers.iter().all(|one| one.get("id").is_none()), "{answered:?}");
    assert_eq!(web.state().await, "cancelled");
    assert_eq!(web.call(&session, 1, "echo", "{}").await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn an_owner_has_as_many_sessions_as_it_may_and_idle_ones_end() {
    // [HTTP-7]
    let http = HttpOptions { max_sessions: 3, ..HttpOptions::new(Some(Scope::local())) };
    let idle = http.session_idle;
    let web = Web::start_with(Options::new("0.0.0"), http);
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(web.initialize(None).await);
        sleep(Duration::from_secs(1)).await;
    }
    let named = [("Mcp-Session-Id", sessions[0].as_str())];
    let listening = web.send(request(Method::GET, &named, "")).await;
    assert_eq!(listening.status(), StatusCode::OK);
    sessions.push(web.initialize(None).await);
    let answers = async |session: &str| web.call(session, 1, "echo", "{}").await.status;
    assert_eq!(answers(&sessions[1]).await, StatusCode::NOT_FOUND, "idle for longest");
    for used in [0, 2, 3] {
        assert_eq!(answers(&sessions[used]).await, StatusCode::OK, "{used}");
    }
    web.initialize(Some("another")).await;
    assert_eq!(answers(&sessions[2]).await, StatusCode::OK, "another owner's count is its own");
    sleep(idle).await;
    assert_eq!(answers(&sessions[2]).await, StatusCode::NOT_FOUND);
    assert_eq!(answers(&sessions[0]).await, StatusCode::OK, "somebody listens");
    drop(listening);
}

/// Asks its client something and answers with what it said.
#[derive(Debug)]
struct Asks;

#[async_trait]
impl Layer for Asks {
    fn tools(&self) -> Vec<Shown> {
        let hints =
            Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
        let (name, schema) = ("asks".to_owned(), Json::empty_object());
        let (title, description) = (name.clone(), name.clone());
        vec![Shown { meta: None, name, title, description, schema, hints }]
    }

    async fn call(&self, _: &Desk, call: Call, who: &mut Caller) -> Result<Answer, Refused> {
        let peer = who.peer().expect("a client");
        let said = peer.ask("parrot/ask", call.arguments).await;
        Ok(Answer::json(&said.map_err(|error| error.to_string())))
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_asked_on_the_stream_of_its_request_and_answered_by_a_post() {
    // [HTTP-4]
    let options = Options::new("0.0.0").wrap(Asks);
    let web = Web::start_with(options, HttpOptions::new(Some(Scope::local())));
    let (one, other) = (web.initialize(None).await, web.initialize(None).await);
    let named = [("Mcp-Session-Id", one.as_str())];
    let mut bodies = Vec::new();
    for id in 1..=2 {
        let response = web.send(post(&named, &call(id, "asks", &format!(r#"{{"n":{id}}}"#)))).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        bodies.push(response.into_body());
    }
    let mut questions = Vec::new();
    for body in &mut bodies {
        let mut text = String::new();
        while !text.contains("\n\n") {
            let frame = body.frame().await.expect("a question").expect("a frame");
            text += std::str::from_utf8(&frame.into_data().expect("data")).expect("UTF-8");
        }
        let data = text.lines().find_map(|line| line.strip_prefix("data: ")).expect("data");
        questions.push(serde_json::from_str::<Value>(data).expect("JSON"));
    }
    assert_eq!(questions[0]["params"]["n"], 1);
    assert_ne!(questions[0]["id"], questions[1]["id"], "ids of one session are unique");
    // Answered out of order, and by another session, which asked nothing.
    for (session, place) in [(&other, 0), (&one, 1), (&one, 0)] {
        let n = if session == &other { 99 } else { place + 1 };
        let answer = json!({"jsonrpc": "2.0", "id": questions[place]["id"], "result": {"is": n}});
        let read = web.post(&[("Mcp-Session-Id", session)], &answer.to_string()).await;
        assert_eq!(read.status, StatusCode::ACCEPTED);
    }
    for (place, body) in bodies.into_iter().enumerate() {
        let rest = read(http::Response::new(body)).await.text;
        let said = format!(r#"{{\"is\":{}}}"#, place + 1);
        assert!(rest.contains(&said), "{rest}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_so_much_is_asked_at_once() {
    // [CALL-7, HTTP-7]
    let web = Web::start();
    let session = web.initialize(None).await;
    let named = [("Mcp-Session-Id", session.as_str())];
    let wait = json!({"task_id": web.submit("nap", r#"{"s":600}"#).await, "wait_s": 9}).to_string();
    let mut begun = JoinSet::new();
    for id in 0..4096 {
        let (mut service, request) =
            (web.service.clone(), post(&named, &call(id, "get_task_result", &wait)));
        begun.spawn(async move {
            let Ok(response) = service.call(request).await;
            read(response).await
        });
    }
    sleep(Duration::from_millis(10)).await;
    let refused = web.call(&session, 9999, "echo", "{}").await;
    assert_eq!(refused.json()["error"]["data"]["code"], "queue_full", "{refused:?}");
    sleep(Duration::from_secs(30)).await;
    assert_eq!(web.call(&session, 9999, "echo", "{}").await.json()["error"], Value::Null);
    while let Some(one) = begun.join_next().await {
        assert_eq!(one.expect("no panic").status, StatusCode::OK);
    }
}

/// Counts the answers that are made.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<AtomicUsize>);

#[async_trait]
impl Layer for Counted {
    async fn finish(&self, _: &Desk, answer: Answer, _: Answered<'_>, _: &Caller) -> Answer {
        self.0.fetch_add(1, Ordering::SeqCst);
        answer
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_nobody_reads_are_not_made_and_none_is_lost() {
    // [CALL-7, HTTP-7]
    let counted = Counted::default();
    let options = Options::new("0.0.0").wrap(counted.clone());
    let web = Web::start_with(options, HttpOptions::new(Some(Scope::local())));
    let session = web.initialize(None).await;
    let named = [("Mcp-Session-Id", session.as_str())];
    let inputs = json!({"v": "v".repeat(2 << 20)}).to_string();
    let wait = json!({"task_id": web.submit("echo", &inputs).await, "wait_s": 5}).to_string();
    let n_before = counted.0.load(Ordering::SeqCst);
    let mut unread = JoinSet::new();
    for id in 0..30 {
        let (mut service, request) =
            (web.service.clone(), post(&named, &call(id, "get_task_result", &wait)));
        unread.spawn(async move {
            let Ok(response) = service.call(request).await;
            response
        });
    }
    sleep(Duration::from_secs(60)).await;
    let n_made = counted.0.load(Ordering::SeqCst) - n_before;
    assert!((16..=24).contains(&n_made), "{n_made} answers of 2 MB wait, and 32 MiB may");
    while let Some(response) = unread.join_next().await {
        let read = read(response.expect("no panic")).await;
        assert!(read.messages().last().is_some_and(|one| one["result"].is_object()), "lost");
    }
}

#[tokio::test(start_paused = true)]
async fn an_introduction_has_a_limit() {
    // [HTTP-7]
    let web = Web::start();
    let initialize = |n: usize| {
        let mut body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"experimental": {"x": {"y": ""}}},
            "clientInfo": {"name": "web", "version": "0"}}});
        let rest = n - body.to_string().len();
        body["params"]["capabilities"]["experimental"]["x"]["y"] = "y".repeat(rest).into();
        body.to_string()
    };
    let large = web.post(&[], &initialize(65_536)).await;
    assert_eq!(large.status, StatusCode::OK, "{large:?}");
    let larger = web.post(&[], &initialize(65_537)).await;
    assert_eq!((larger.status, larger.code()), (StatusCode::PAYLOAD_TOO_LARGE, -32602));
    assert!(larger.session.is_none());
}

/// How many notices are more than a stream holds unread.
const TOLD: usize = 8000;

/// Tells what it is made to tell.
#[derive(Clone, Debug, Default)]
struct Telling(Notices);

impl Layer for Telling {
    fn notices(&self) -> Option<Notices> {
        Some(self.0.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_read_ends_and_holds_no_answer_up() {
    // [HTTP-7, CALL-7]
    let telling = Telling::default();
    let options = Options::new("0.0.0").wrap(telling.clone());
    let web = Web::start_with(options, HttpOptions::new(Some(Scope::local())));
    let session = web.initialize(None).await;
    let named = [("Mcp-Session-Id", session.as_str())];
    let listening = web.send(request(Method::GET, &named, "")).await;
    for _ in 0..TOLD {
        telling.0.tell(Notice::ResourcesChanged);
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(web.call(&session, 1, "echo", "{}").await.status, StatusCode::OK);
    let heard = timeout(Duration::from_secs(60), read(listening)).await.expect("it ended");
    let n_heard = heard.messages().len();
    assert!((1..TOLD).contains(&n_heard), "what was in it is still read: {n_heard}");
    let again = web.send(request(Method::GET, &named, "")).await;
    telling.0.tell(Notice::ResourcesChanged);
    sleep(Duration::from_millis(1)).await;
    let mut body = again.into_body();
    let mut text = String::new();
    while !text.contains("list_changed") {
        let frame = body.frame().await.expect("a notice").expect("a frame");
        text += std::str::from_utf8(&frame.into_data().expect("data")).expect("UTF-8");
    }
}
