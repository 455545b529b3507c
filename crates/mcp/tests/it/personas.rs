//! Clients as they are: each of them ends with one execution and a result that can be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use raincheck_core::cancel::OnDisconnect;
use raincheck_core::content::{Content, Json};
use raincheck_core::progress::Progress;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_mcp::Options;
use raincheck_mcp::layers::native::NativeTasks;
use raincheck_runtime::{Attempt, Functions, TaskContext};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::session::{Answer, Session, Setup};

/// Counts what was begun and what was done.
#[derive(Clone, Debug, Default)]
struct Counter {
    begun: Arc<AtomicU32>,
    done: Arc<AtomicU32>,
}

impl Counter {
    /// A job of half a minute, and one that ends with its caller.
    fn setup(&self, version: &'static str) -> Setup {
        let spec = |name: &str, on_disconnect| ToolSpec {
            lane: "cpu_small".into(),
            wait: Duration::from_secs(2),
            on_disconnect,
            ..ToolSpec::new(name, "Renders for half a minute", Json::empty_object())
        };
        let mut tools = Functions::new();
        for (name, on_disconnect) in
            [("render", OnDisconnect::Detach), ("preview", OnDisconnect::Cancel)]
        {
            let counter = self.clone();
            tools = tools.with(spec(name, on_disconnect), move |attempt, context| {
                render(counter.clone(), attempt, context)
            });
        }
        Setup {
            version,
            engine: Some(raincheck_runtime::Options::in_memory().with_tools(Arc::new(tools))),
            options: options(),
            ..Setup::default()
        }
    }

    fn counts(&self) -> (u32, u32) {
        (self.begun.load(Ordering::SeqCst), self.done.load(Ordering::SeqCst))
    }
}

fn options() -> Options {
    Options::new("0.0.0").wrap(NativeTasks::default())
}

async fn render(counter: Counter, attempt: Attempt, context: TaskContext) -> Outcome {
    counter.begun.fetch_add(1, Ordering::SeqCst);
    for percent in [10.0, 50.0, 90.0] {
        context.progress(Progress { percent: Some(percent), ..Progress::default() });
        tokio::select! {
            () = sleep(Duration::from_secs(10)) => {}
            () = context.cancellation_token().cancelled() => return Outcome::Cancelled,
        }
    }
    counter.done.fetch_add(1, Ordering::SeqCst);
    Outcome::Succeeded(vec![Content::Json(attempt.inputs)])
}

const INPUTS: &str = r#"{"scene":"a"}"#;

/// Reads the end of a task by its id, as a model does.
async fn result_of(session: &mut Session, id: &Value) -> Value {
    session.end_of(id.as_str().expect("an id")).await["result"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_client_without_capabilities_gets_an_id_and_reads_the_result() {
    let counter = Counter::default();
    let mut session = Session::open_with(counter.setup("2024-11-05")).await;
    let handle = session.good("render", INPUTS).await;
    assert_eq!(handle["next"]["tool"], "get_task_result");
    assert_eq!(result_of(&mut session, &handle["task_id"]).await, json!({"scene": "a"}));
    assert!(session.beside().is_empty(), "nothing it did not ask for");
    assert_eq!(counter.counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_only_wants_progress_gets_it_and_none_after_the_answer() {
    let counter = Counter::default();
    let mut session = Session::open_with(counter.setup("2025-06-18")).await;
    let call =
        format!(r#"{{"name":"render","arguments":{INPUTS},"_meta":{{"progressToken":"p"}}}}"#);
    let answer = Answer::of(session.request("tools/call", &call).await);
    let told: Vec<_> = session.beside().iter().map(|note| note["params"].clone()).collect();
    assert_eq!(told, [json!({"progressToken": "p", "progress": 10.0, "total": 100.0})]);
    assert_eq!(result_of(&mut session, &answer.data["task_id"]).await, json!({"scene": "a"}));
    assert_eq!(session.beside().len(), 1, "none after the answer");
    assert_eq!(counter.counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_client_of_native_tasks_polls_as_it_is_told_to() {
    let counter = Counter::default();
    let mut session = Session::raw_with(counter.setup("2026-07-28"));
    let made = session.modern_call("render", json!({"scene": "a"})).await;
    assert_eq!(made["statusMessage"], "10 %");
    let ended = session.native_end(&made["taskId"]).await;
    assert_eq!(Answer::of(ended).data, json!({"scene": "a"}));
    assert_eq!(counter.counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_gives_up_and_never_says_so_finds_its_task_in_the_list() {
    let counter = Counter::default();
    let mut session = Session::open_with(counter.setup("2025-11-25")).await;
    // It stops waiting after a second, and asks for something else much later; the answer goes unread.
    session.begin_call("render", INPUTS).await;
    sleep(Duration::from_secs(60)).await;
    let listed = session.good("list_tasks", r#"{"tool_name":"render"}"#).await;
    let tasks = listed["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), 1, "{listed}");
    assert_eq!(result_of(&mut session, &tasks[0]["task_id"]).await, json!({"scene": "a"}));
    assert_eq!(counter.counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cancels_and_retries_finds_the_first_task_by_its_key() {
    // [IDEM-1] [CANCEL-7]
    let counter = Counter::default();
    let mut session = Session::open_with(counter.setup("2025-11-25")).await;
    let submit = format!(
        r#"{{"name":"submit_task","arguments":{{"tool_name":"render","inputs":{INPUTS},"idempotency_key":"k"}}}}"#
    );
    let cancel = |id: &Value| {
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            .to_string()
    };
    let first = session.begin("tools/call", &submit).await;
    session.send(&cancel(&first)).await;
    sleep(Duration::from_secs(5)).await;
    let again = Answer::of(session.request("tools/call", &submit).await);
    assert_eq!(result_of(&mut session, &again.data["task_id"]).await, json!({"scene": "a"}));
    assert_eq!(counter.counts(), (1, 1));

    // Without a key the first call ends with its caller, and the second is done once.
    let counter = Counter::default();
    let mut session = Session::open_with(counter.setup("2025-11-25")).await;
    let first = session.begin_call("preview", INPUTS).await;
    sleep(Duration::from_secs(1)).await;
    session.send(&cancel(&first)).await;
    let again = session.good("preview", INPUTS).await;
    assert_eq!(result_of(&mut session, &again["task_id"]).await, json!({"scene": "a"}));
    assert_eq!(counter.counts().1, 1, "what was cancelled is not done");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_dies_in_the_middle_of_a_call_finds_the_result_when_it_is_back() {
    // [SCOPE-1] [CANCEL-7]
    let counter = Counter::default();
    let mut session = Session::open_with(counter.setup("2025-06-18")).await;
    session.begin_call("render", INPUTS).await;
    sleep(Duration::from_secs(1)).await;
    let mut next = session.of_scope_with("local", options());
    session.end_unread().await;
    next.shake_hands("2025-06-18", "case").await;
    let listed = next.good("list_tasks", "{}").await;
    let id = listed["tasks"][0]["task_id"].clone();
    assert_eq!(result_of(&mut next, &id).await, json!({"scene": "a"}));
    assert_eq!(counter.counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_connects_again_goes_on_with_its_native_task() {
    // [SCOPE-1] [TASKS-5]
    let counter = Counter::default();
    let mut session = Session::raw_with(counter.setup("2026-07-28"));
    let made = session.modern_call("render", json!({"scene": "a"})).await;
    let mut next = session.of_scope_with("local", options());
    session.end_unread().await;
    let ended = next.native_end(&made["taskId"]).await;
    assert_eq!(Answer::of(ended).data, json!({"scene": "a"}));
    assert_eq!(counter.counts(), (1, 1));
}
