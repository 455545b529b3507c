//! An embedder's server, spoken to by a real client over an in-memory pipe.

#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

#[cfg(all(unix, feature = "loopback", feature = "process"))]
mod artifacts;
#[cfg(feature = "http")]
mod http;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use raincheck::core::error::{Error, Kind};
use raincheck::core::lifecycle::State;
use raincheck::core::task::Outcome;
use raincheck::mcp::Streams;
use raincheck::mcp::client::{Client, Reply};
use raincheck::runtime::Called;
use raincheck::{Builder, Raincheck, TaskContext, Tool, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;

#[derive(Deserialize)]
struct Sum {
    a: u64,
    b: u64,
}

#[derive(Serialize)]
struct Total {
    total: u64,
}

async fn add(sum: Sum, _context: TaskContext) -> Result<Total, ToolError> {
    let total = sum.a.checked_add(sum.b).ok_or_else(|| ToolError::new("the sum is too large"))?;
    Ok(Total { total })
}

/// Tells when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn server() -> Builder {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#;
    let add = Tool::new("add", "Adds", add).schema(schema).expect("JSON");
    let refuse = Tool::new("refuse", "Refuses", |_: Value, _context| async {
        Err::<Total, _>(Error::new(Kind::TooLarge, "too much").into())
    });
    Raincheck::builder().server_info("sums", "1.2.3").tool(add).tool(refuse)
}

/// Serves on one end of a pipe while a client speaks at the other.
async fn with_client<T>(server: Builder, speak: impl AsyncFnOnce(&Client) -> T) -> T {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(far);
    let stop = CancellationToken::new();
    let serving = server.serve(Streams::new(reader, writer), stop.clone());
    let speaking = async {
        let (reader, writer) = tokio::io::split(near);
        let client = Client::connect(reader, writer, "test").await.expect("a session");
        let said = speak(&client).await;
        client.close().await;
        stop.cancel();
        said
    };
    let (served, said) = tokio::join!(serving, speaking);
    served.expect("a whole session");
    said
}

async fn call(client: &Client, tool: &str, arguments: Value) -> (Value, bool) {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let Reply { text, is_error } = client.call(tool, arguments).await.expect("an answer");
    (serde_json::from_str(&text).expect("JSON"), is_error)
}

// [CALL-1] [CALL-5]
#[tokio::test]
async fn a_function_is_a_tool_whose_result_comes_inline() {
    with_client(server(), async |client| {
        assert!(client.tools().await.expect("tools").contains(&"add".to_owned()));
        let sum = call(client, "add", json!({ "a": 2, "b": 3 })).await;
        assert_eq!(sum, (json!({ "total": 5 }), false));
        let (refused, is_error) = call(client, "add", json!({ "a": "two", "b": 3 })).await;
        assert!(is_error && refused.to_string().contains("invalid_params"), "{refused}");
    })
    .await;
}

#[tokio::test]
async fn a_fault_is_the_tasks_error_and_keeps_its_kind() {
    with_client(server(), async |client| {
        let (failed, is_error) = call(client, "add", json!({ "a": u64::MAX, "b": 1 })).await;
        assert!(is_error);
        assert_eq!(failed["error"]["code"], "tool_failed");
        assert_eq!(failed["error"]["message"], "the sum is too large");
        let (failed, _) = call(client, "refuse", json!({})).await;
        assert_eq!(failed["error"]["code"], "too_large");
    })
    .await;
}

// [CANCEL-2]
#[tokio::test]
async fn a_cancelled_function_is_dropped() {
    let is_dropped = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_dropped);
    let endless = Tool::new("endless", "Never ends", move |_: Value, _context| {
        let guard = Dropped(Arc::clone(&seen));
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Ok(())
        }
    });
    let server = Raincheck::builder().tool(endless.wait(Duration::ZERO));
    with_client(server, async |client| {
        let (ticket, _) = call(client, "endless", json!({})).await;
        let task = json!({ "task_id": ticket["task_id"], "wait_s": 30 });
        call(client, "cancel_task", json!({ "task_id": ticket["task_id"] })).await;
        let (result, _) = call(client, "get_task_result", task).await;
        assert_eq!(result["state"], "cancelled");
    })
    .await;
    assert!(is_dropped.load(Ordering::SeqCst));
}

/// Makes a tool that cleans up for a while once it is cancelled, and says when it has.
fn tidy(clean_up: Duration, is_clean: &Arc<AtomicBool>) -> Tool {
    let is_clean = Arc::clone(is_clean);
    Tool::new("tidy", "Cleans up", move |_: Value, context: TaskContext| {
        let is_clean = Arc::clone(&is_clean);
        async move {
            context.cancellation_token().cancelled().await;
            tokio::time::sleep(clean_up).await;
            is_clean.store(true, Ordering::SeqCst);
            Err::<(), _>(ToolError::new("interrupted"))
        }
    })
}

// [CANCEL-2] [CANCEL-6]
#[tokio::test(start_paused = true)]
async fn a_function_that_notices_its_cancel_cleans_up_within_the_grace() {
    for (clean_up, cleans_up) in [(4, true), (6, false)] {
        let is_clean = Arc::new(AtomicBool::new(false));
        let tidy = tidy(Duration::from_secs(clean_up), &is_clean).wait(Duration::ZERO);
        let (engine, service) = Raincheck::builder().tool(tidy).engine();
        let stop = CancellationToken::new();
        let calling = async {
            let called = engine.call("tidy", json!({})).await.expect("accepted");
            let Called::Task(task) = called else { panic!("it has ended: {called:?}") };
            let mut watch = engine.watch(task.id());
            while task.view().await.expect("a task").record.state != State::Running {
                watch.changed().await;
            }
            assert!(task.cancel().await.expect("a task").acknowledged);
            let outcome = task.outcome().await.expect("an end");
            assert_eq!(outcome, Outcome::Cancelled, "{clean_up} s");
            stop.cancel();
        };
        tokio::join!(calling, service.run(stop.clone()));
        assert_eq!(is_clean.load(Ordering::SeqCst), cleans_up, "{clean_up} s");
    }
}

/// Calls a tool, cancels it once it runs, and returns its outcome and how long that took.
async fn cancelled(tool: Tool) -> (Outcome, Duration) {
    let (engine, service) = Raincheck::builder().tool(tool.wait(Duration::ZERO)).engine();
    let stop = CancellationToken::new();
    let calling = async {
        let called = engine.call("tool", json!({})).await.expect("accepted");
        let task = if let Called::Task(task) = called { Some(task) } else { None };
        let task = task.expect("it runs");
        let mut watch = engine.watch(task.id());
        while task.view().await.expect("a task").record.state != State::Running {
            watch.changed().await;
        }
        let began = tokio::time::Instant::now();
        assert!(task.cancel().await.expect("a task").acknowledged);
        let outcome = task.outcome().await.expect("an end");
        stop.cancel();
        (outcome, began.elapsed())
    };
    tokio::join!(calling, service.run(stop.clone())).0
}

// [CANCEL-2] [CANCEL-6]
#[tokio::test(start_paused = true)]
async fn a_function_that_never_asked_is_dropped_at_once() {
    let dropped = Arc::new(AtomicBool::new(false));
    let guard = Arc::clone(&dropped);
    let never = Tool::new("tool", "Never looks", move |_: Value, _context: TaskContext| {
        let guard = SetWhenDropped(Arc::clone(&guard));
        async move {
            let _guard = guard;
            std::future::pending::<Result<(), ToolError>>().await
        }
    });
    let (outcome, took) = cancelled(never).await;
    assert_eq!(outcome, Outcome::Cancelled);
    assert!(took < Duration::from_secs(1), "{took:?}: the grace is for who asked");
    assert!(dropped.load(Ordering::SeqCst));
}

/// Tells that it was dropped.
struct SetWhenDropped(Arc<AtomicBool>);

impl Drop for SetWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

// [CANCEL-2]
#[tokio::test(start_paused = true)]
async fn a_function_that_returns_an_error_when_it_is_cancelled_was_cancelled() {
    let prompt = Tool::new("tool", "Looks", |_: Value, context: TaskContext| async move {
        context.cancellation_token().cancelled().await;
        Err::<(), _>(ToolError::new("cancelled before it was written"))
    });
    assert_eq!(cancelled(prompt).await.0, Outcome::Cancelled);
}

// [CALL-1] [IDEM-1] [QUEUE-1] [LEASE-3]
#[tokio::test(start_paused = true)]
async fn an_embedders_call_gives_the_outcome_or_a_handle() {
    let slow = Tool::new("slow", "Naps", |seconds: u64, context: TaskContext| async move {
        context.sleep(Duration::from_secs(seconds)).await;
        Ok(seconds)
    });
    let slow = slow.wait(Duration::from_secs(5)).idempotent().priority(7);
    let (engine, service) = Raincheck::builder().tool(slow).engine();
    let stop = CancellationToken::new();
    let calling = async {
        let done = |called| match called {
            Called::Outcome(Outcome::Succeeded(result)) => format!("{result:?}"),
            Called::Outcome(_) | Called::Task(_) => panic!("no result: {called:?}"),
        };
        assert!(done(engine.call("slow", 1).await.expect("accepted")).contains('1'));
        let Called::Task(task) = engine.call("slow", 30).key("k").await.expect("accepted") else {
            panic!("it takes longer than the call")
        };
        let record = task.view().await.expect("a task").record;
        assert_eq!((record.task.priority, record.task.is_idempotent), (7, true));
        assert_eq!(task.wait(Duration::ZERO).await.expect("a task"), None);
        let same = engine.call("slow", 30).key("k").wait(Duration::from_secs(60)).await;
        assert!(done(same.expect("the first task")).contains("30"));
        assert!(matches!(task.outcome().await, Ok(Outcome::Succeeded(_))));
        let unknown = engine.call("fast", 1).await.expect_err("no such tool");
        assert_eq!(unknown.kind, Kind::UnknownTool);
        stop.cancel();
    };
    tokio::join!(calling, service.run(stop.clone()));
}

#[tokio::test]
async fn a_client_that_only_probes_does_not_start_the_engine() {
    let is_started = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_started);
    let server = server().before_start(move || seen.store(true, Ordering::SeqCst));
    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(far);
    let serving = server.serve(Streams::new(reader, writer), CancellationToken::new());
    let probing = async move {
        let (reader, mut writer) = tokio::io::split(near);
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "probe", "version": "1" } } });
        writer.write_all(format!("{hello}\n").as_bytes()).await.expect("written");
        let mut answer = String::new();
        BufReader::new(reader).read_line(&mut answer).await.expect("an answer");
        writer.shutdown().await.expect("closed");
        answer
    };
    let (served, answer) = tokio::join!(serving, probing);
    served.expect("a whole session");
    assert!(answer.contains(r#""name":"sums","#) && answer.contains("1.2.3"), "{answer}");
    assert!(!is_started.load(Ordering::SeqCst));
}

// [CANCEL-7] [HOST-3]
#[tokio::test]
async fn a_call_that_is_open_when_the_server_is_told_to_end_gets_the_id_of_its_task() {
    let long = Tool::new("long", "Takes long", |_: Value, _context| async {
        std::future::pending::<()>().await;
        Ok(())
    });
    let server = Raincheck::builder().tool(long.wait(Duration::from_secs(60)));
    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(far);
    let stop = CancellationToken::new();
    let serving = server.serve(Streams::new(reader, writer), stop.clone());
    let speaking = async {
        let (reader, mut writer) = tokio::io::split(near);
        let mut lines = BufReader::new(reader).lines();
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "claude-code", "version": "1" } } });
        let request = |id: u64, tool: &str| {
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": tool, "arguments": {} } })
        };
        let call = request(2, "long");
        writer.write_all(format!("{hello}\n{call}\n").as_bytes()).await.expect("written");
        lines.next_line().await.expect("a line").expect("an answer");
        // The call runs when it is listed as running.
        for id in 3.. {
            let list = request(id, "list_tasks");
            writer.write_all(format!("{list}\n").as_bytes()).await.expect("written");
            let listed = lines.next_line().await.expect("a line").expect("an answer");
            if listed.contains("running") {
                break;
            }
        }
        stop.cancel();
        let answer = lines.next_line().await.expect("a line").expect("an answer");
        serde_json::from_str::<Value>(&answer).expect("JSON")
    };
    let (served, answer) = tokio::join!(serving, speaking);
    served.expect("a whole session");
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(2), &json!(false)));
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    let told: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(told["status"], "running", "{told}");
    assert!(told["task_id"].as_str().is_some_and(|id| id.starts_with("tsk_")), "{told}");
}

#[tokio::test]
async fn what_was_made_before_the_start_is_dropped_after_the_end() {
    let is_dropped = Arc::new(AtomicBool::new(false));
    let guard = Dropped(Arc::clone(&is_dropped));
    let server = server().before_start(move || guard);
    with_client(server, async |client| {
        call(client, "list_tasks", json!({})).await;
        assert!(!is_dropped.load(Ordering::SeqCst));
    })
    .await;
    assert!(is_dropped.load(Ordering::SeqCst));
}

// [SEC-11]
#[tokio::test]
async fn an_input_of_the_wrong_type_is_told_without_a_sensitive_value() {
    let plain = Tool::new("plain", "Adds", add);
    let secret = Tool::new("secret", "Adds", add).with(|spec| {
        spec.sensitive = ["/a".to_owned()].as_slice().into();
    });
    let server = Raincheck::builder().tool(plain).tool(secret);
    with_client(server, async |client| {
        let wrong = json!({"a": "s3cr3t", "b": 1});
        let (told, _) = call(client, "plain", wrong.clone()).await;
        assert!(told.to_string().contains("expected u64"), "{told}");
        let (told, is_error) = call(client, "secret", wrong).await;
        assert!(is_error && !told.to_string().contains("s3cr3t"), "{told}");
        assert_eq!(told["error"]["code"], "invalid_params");
        assert!(told.to_string().contains("line 1 column"), "{told}");
    })
    .await;
}
