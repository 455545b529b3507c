//! Native MCP tasks: the extension of revision 2026-07-28 [TASKS-1..5].

use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_mcp::Options;
use raincheck_mcp::layers::native::NativeTasks;
use raincheck_mcp::surfaces::operations::Operations;
use raincheck_runtime::Functions;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::operations::{self, Near};
use crate::session::{Answer, Session, Setup, without_marks};

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// What a request of the newest revision says of its client.
pub(crate) fn meta(is_declaring: bool) -> Value {
    let extensions = if is_declaring { json!({ EXTENSION: {} }) } else { json!({}) };
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": extensions},
        "io.modelcontextprotocol/clientInfo": {"name": "case", "version": "0"}})
}

fn options() -> Options {
    Options::new("0.0.0").wrap(NativeTasks::default())
}

fn native() -> Setup {
    Setup { options: options(), ..Setup::default() }
}

impl Session {
    /// Makes a request of the newest revision that declares the extension, and reads its answer.
    pub(crate) async fn modern(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = meta(true);
        self.request(method, &params.to_string()).await
    }

    /// Calls a tool so, and returns the result.
    pub(crate) async fn modern_call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.modern("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Reads a native task.
    pub(crate) async fn task(&mut self, id: &Value) -> Value {
        let answer = self.modern("tasks/get", json!({"taskId": id})).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        answer["result"].clone()
    }

    /// Reads a native task, as often as it asks for, until it has ended.
    pub(crate) async fn native_end(&mut self, id: &Value) -> Value {
        loop {
            let task = self.task(id).await;
            match task["pollIntervalMs"].as_u64() {
                Some(pause) => sleep(Duration::from_millis(pause)).await,
                None => return task,
            }
        }
    }

    async fn code(&mut self, method: &str, params: Value) -> Value {
        self.modern(method, params).await["error"]["code"].clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_in_time_completes_and_a_longer_one_becomes_a_task() {
    // [TASKS-2] [TASKS-3] [CALL-1] [TOOL-7]
    let mut session = Session::raw_with(native());
    let fast = session.modern_call("echo", json!({"a": 1})).await;
    assert_eq!(fast["resultType"], "complete", "{fast}");
    let made = session.modern_call("nap", json!({"s": 9})).await;
    assert_eq!((&made["resultType"], &made["status"]), (&json!("task"), &json!("working")));
    assert!(made.get("content").is_none(), "{made}");
    assert!(made.get("ttlMs").is_some_and(Value::is_null), "{made}");
    assert!(made["pollIntervalMs"].as_u64().is_some_and(|pause| pause >= 500), "{made}");
    assert!(made["createdAt"].is_string() && made["lastUpdatedAt"].is_string(), "{made}");
    let id = &made["taskId"];
    let task = session.task(id).await;
    assert_eq!((&task["status"], &task["taskId"]), (&json!("working"), id));
    assert!(task.get("result").is_none() && task.get("error").is_none(), "{task}");
    let ended = session.native_end(id).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(ended["ttlMs"], json!(24 * 3_600_000 + 9_000), "from its creation on");
    let result = &ended["result"];
    assert_eq!(result["content"], json!([{"type": "text", "text": r#"{"s":9}"#}]));
    assert_eq!((&result["isError"], &result["resultType"]), (&json!(false), &json!("complete")));
    assert_eq!(session.native_end(id).await, ended, "reading is repeatable [RESULT-1]");
    // The same task as every other surface reads.
    let status = session.modern_call("get_task_status", json!({"task_id": id})).await;
    let status = Answer::of(json!({ "result": status })).data;
    assert_eq!((&status["state"], &status["task_id"]), (&json!("succeeded"), id));
}

#[tokio::test(start_paused = true)]
async fn the_status_message_is_the_latest_progress_and_a_tools_words_stand_inside_a_mark() {
    // [TASKS-3] [CALL-8]
    let mut session = Session::raw_with(native());
    let made = session.modern_call("nap", json!({"s": 9})).await;
    let words = made["statusMessage"].as_str().expect("words").to_owned();
    let lines: Vec<&str> = words.lines().collect();
    let [begins, said, ends] = lines[..] else { panic!("{words}") };
    assert!(begins.starts_with(ends) && begins.contains("what the tool said"), "{words}");
    assert!(!said.contains('\u{1b}') && said.contains("[2Jz"), "{words}");
    let again = session.task(&made["taskId"]).await;
    assert_eq!(again["statusMessage"], made["statusMessage"], "the mark follows from the words");
    let made = session.modern_call("nap_one", json!({"s": 9})).await;
    assert!(made["statusMessage"].is_string());
    let queued = session.modern_call("nap_one", json!({"s": 1})).await;
    assert_eq!(queued["statusMessage"], "queued at position 0");
}

#[tokio::test(start_paused = true)]
async fn the_extension_is_announced_to_nobody_else_and_refused_to_who_does_not_declare_it() {
    // [TASKS-1]
    let mut session = Session::raw_with(native());
    let undeclared = json!({"_meta": meta(false)}).to_string();
    let discovered = session.request("server/discover", &undeclared).await;
    let extensions = &discovered["result"]["capabilities"]["extensions"];
    assert_eq!(*extensions, json!({ EXTENSION: {} }), "{discovered}");
    // It knocked with the new revision, and goes on with the old one.
    session.shake_hands("2025-11-25", "case").await;
    assert!(!session.last.contains(EXTENSION), "{}", session.last);
    let task = session.good("nap", r#"{"s":2}"#).await;
    assert_eq!(task["status"], "running", "in the surface's own words");
    let id = task["task_id"].clone();
    // Nothing that a request says makes the session another one.
    let made = session.modern_call("nap", json!({"s": 2})).await;
    assert!(made.get("taskId").is_none(), "{made}");
    assert_eq!(session.code("tasks/get", json!({"taskId": id})).await, -32601);

    let mut session = Session::raw_with(native());
    let call = json!({"name": "nap", "arguments": {"s": 2}, "_meta": meta(false)}).to_string();
    let answer = Answer::of(session.request("tools/call", &call).await);
    assert_eq!((&answer.data["status"], answer.is_error), (&json!("running"), false));
    let get = json!({"taskId": answer.data["task_id"], "_meta": meta(false)}).to_string();
    let refused = session.request("tasks/get", &get).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let required = &refused["error"]["data"]["requiredCapabilities"]["extensions"];
    assert_eq!(*required, json!({ EXTENSION: {} }));
    assert_eq!(session.task(&answer.data["task_id"]).await["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_the_callers_is_unknown_and_methods_of_another_revision_are_gone() {
    // [TASKS-5] [SCOPE-2]
    let mut session = Session::raw_with(native());
    let made = session.modern_call("nap", json!({"s": 30})).await;
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(session.code(method, json!({"taskId": made["taskId"]})).await, -32601);
    }
    let mut other = session.of_scope_with("other", options());
    let unknown = "tsk_01JDZZZZZZ0000000000000000";
    for method in ["tasks/get", "tasks/cancel"] {
        let mut answers = Vec::new();
        for id in [&made["taskId"], &json!(unknown), &json!("x"), &json!("")] {
            let mut answer = other.modern(method, json!({ "taskId": id })).await;
            assert_eq!(answer["error"]["code"], -32602, "{method} {id}");
            answer["id"] = Value::Null;
            answers.push(answer);
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
        let odd = other.modern(method, json!({"taskId": 7})).await;
        assert_eq!(odd["error"]["code"], -32602);
        assert!(odd["error"]["message"].as_str().is_some_and(|words| words.contains("taskId")));
    }
    assert_eq!(session.task(&made["taskId"]).await["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_cancelled_ends_so_and_a_cancel_of_an_ended_one_changes_nothing() {
    // [TASKS-5] [CANCEL-2] [CANCEL-4]
    let mut session = Session::raw_with(native());
    let made = session.modern_call("nap", json!({"s": 300})).await;
    let id = &made["taskId"];
    let asked = session.modern("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(asked["result"], json!({"resultType": "complete"}), "{asked}");
    let ended = session.native_end(id).await;
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert!(ended.get("result").is_none() && ended.get("error").is_none(), "{ended}");
    let again = session.modern("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(again["result"], asked["result"]);
    assert_eq!(session.task(id).await, ended);
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_retention_is_over_is_as_unknown_as_one_that_never_was() {
    // [TASKS-5] [TIME-5]
    let mut session = Session::raw_with(native());
    let made = session.modern_call("nap", json!({"s": 30})).await;
    let id = &made["taskId"];
    session.native_end(id).await;
    sleep(Duration::from_secs(30 * 24 * 3600)).await;
    let requests = [
        ("tasks/get", json!({"taskId": id})),
        ("tasks/cancel", json!({"taskId": id})),
        ("tasks/update", json!({"taskId": id, "inputResponses": {}})),
        ("tasks/update", json!({"taskId": id, "inputResponses": {"a": {}}})),
    ];
    for (method, params) in requests {
        let mut never = params.clone();
        never["taskId"] = json!("tsk_01JDZZZZZZ0000000000000000");
        let answer = session.modern(method, params).await;
        assert_eq!(answer["error"]["code"], -32602, "{method} {answer}");
        assert_eq!(answer["error"], session.modern(method, never).await["error"], "{method}");
    }
}

/// Tools that end in every way, none of them before its caller has the id.
fn ends() -> raincheck_runtime::Options {
    let spec = |name: &str| ToolSpec {
        lane: "cpu_small".into(),
        wait: Duration::ZERO,
        ..ToolSpec::new(name, "Ends", Json::empty_object())
    };
    let late = || sleep(Duration::from_secs(1));
    let tools = Functions::new()
        .with(spec("fails"), move |_, _| async move {
            late().await;
            let error = raincheck_core::error::Error::new(
                raincheck_core::error::Kind::ToolFailed,
                "exit code 3",
            );
            Outcome::Failed(error.with_quoted("its last line", None))
        })
        .with(spec("panics"), move |_, _| async move {
            late().await;
            panic!("a fault of the tool")
        })
        .with(
            ToolSpec { run_timeout: Some(Duration::from_secs(2)), ..spec("runs_on") },
            move |_, _| async move {
                sleep(Duration::from_secs(900)).await;
                Outcome::Cancelled
            },
        )
        .with(spec("writes"), move |_, _| async move {
            late().await;
            let json = Json::parse(r#"{"z":1.0,"a":1e2}"#).expect("JSON");
            Outcome::Succeeded(vec![Content::Json(json)])
        });
    raincheck_runtime::Options::in_memory().with_tools(Arc::new(tools))
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_is_a_completed_task_with_an_error_result_and_a_fault_is_a_failed_one() {
    // [TASKS-4] [CALL-5]
    let setup = Setup { engine: Some(ends()), ..native() };
    let mut session = Session::raw_with(setup);
    let made = session.modern_call("fails", json!({})).await;
    let ended = session.native_end(&made["taskId"]).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(ended["result"]["isError"], true);
    let read = session.modern_call("get_task_result", json!({"task_id": made["taskId"]})).await;
    let read = Answer::of(json!({ "result": read })).data;
    let failed = Answer::of(ended).data;
    assert_eq!(failed["error"]["code"], "tool_failed", "{failed}");
    assert_eq!(
        without_marks(&failed["error"].to_string()),
        without_marks(&read["error"].to_string())
    );

    let made = session.modern_call("runs_on", json!({})).await;
    let ended = session.native_end(&made["taskId"]).await;
    assert_eq!(
        (&ended["status"], &ended["result"]["isError"]),
        (&json!("completed"), &json!(true))
    );
    assert_eq!(Answer::of(ended).data["error"]["code"], "run_timeout");

    let made = session.modern_call("panics", json!({})).await;
    let ended = session.native_end(&made["taskId"]).await;
    assert_eq!(ended["status"], "failed", "{ended}");
    let error = &ended["error"];
    assert_eq!((&error["code"], &error["message"]), (&json!(-32603), &json!("the tool panicked")));
    assert_eq!(error["data"]["guarantee"], "unknown", "{error}");
    assert!(ended.get("result").is_none(), "{ended}");
}

#[tokio::test(start_paused = true)]
async fn a_result_keeps_its_bytes_also_as_structured_content() {
    // [TOOL-6] [RESULT-1]
    let options = Options { is_structured: true, ..options() };
    let setup = Setup { engine: Some(ends()), options, ..Setup::default() };
    let mut session = Session::raw_with(setup);
    let made = session.modern_call("writes", json!({})).await;
    session.native_end(&made["taskId"]).await;
    let structured = r#""structuredContent":{"z":1.0,"a":1e2}"#;
    assert!(session.last.contains(structured), "{}", session.last);
}

#[tokio::test(start_paused = true)]
async fn other_surfaces_have_native_tasks_and_their_own_words_in_the_result() {
    // [TASKS-2] [OPS-1]
    let options = Options::new("0.0.0").offer(Operations::new(Near)).wrap(NativeTasks::default());
    let setup = Setup { options, engine: Some(operations::engine()), ..Setup::default() };
    let mut session = Session::raw_with(setup);
    let made = session.modern_call("run_tests", json!({"mode": "EditMode", "s": 30})).await;
    assert_eq!(made["resultType"], "task", "{made}");
    let words = made["statusMessage"].as_str().expect("words");
    assert!(words.starts_with("step 15 of 42\n"), "{words}");
    assert!(words.contains("what the other end said"), "{words}");
    let ended = Answer::of(session.native_end(&made["taskId"]).await);
    assert_eq!((&ended.data["status"], ended.is_error), (&json!("completed"), false));
    assert_eq!(ended.data["result"], json!({"mode": "EditMode", "s": 30}));
    let read = json!({"log_id": ended.data["log_id"]});
    let read = session.modern_call("get_operation_result", read).await;
    assert_eq!(Answer::of(json!({ "result": read })).data["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn the_first_request_may_be_one_for_a_task_of_an_earlier_session() {
    // [SCOPE-1] [HOST-4]
    let mut session = Session::raw_with(native());
    let made = session.modern_call("nap", json!({"s": 5})).await;
    let mut next = session.of_scope_with(Scope::local().as_str(), options());
    assert!(!next.is_started());
    assert_eq!(next.native_end(&made["taskId"]).await["status"], "completed");
    assert_eq!(next.n_starts.load(std::sync::atomic::Ordering::SeqCst), 1);
}

/// The notifications that came, by their methods.
fn noted(session: &Session, method: &str) -> Vec<Value> {
    let all = session.beside();
    all.into_iter()
        .filter(|note| note["method"] == method)
        .map(|note| note["params"].clone())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_subscription_tells_each_change_of_a_task_and_ends_with_the_last() {
    // [TASKS-7]
    let mut session = Session::raw_with(native());
    let made = session.modern_call("nap", json!({"s": 9})).await;
    let id = &made["taskId"];
    let mut other = session.of_scope_with("other", options());
    let foreign = other.modern_call("nap", json!({"s": 9})).await["taskId"].clone();
    let ids = json!([id, foreign, "x"]);
    let ended =
        session.modern("subscriptions/listen", json!({"notifications": {"taskIds": ids}})).await;
    assert_eq!(ended["result"]["resultType"], "complete", "{ended}");
    let mark = |params: &Value| params["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    let accepted = noted(&session, "notifications/subscriptions/acknowledged");
    assert_eq!(accepted.len(), 1);
    assert_eq!(accepted[0]["notifications"], json!({"taskIds": [id]}), "only the caller's");
    assert_eq!((&mark(&accepted[0]), &mark(&ended["result"])), (&ended["id"], &ended["id"]));
    let told = noted(&session, "notifications/tasks");
    let states: Vec<_> = told.iter().map(|task| task["status"].clone()).collect();
    assert_eq!(states, ["working", "completed"], "{told:?}");
    let last = told.last().expect("two");
    assert_eq!((&mark(last), &last["taskId"]), (&ended["id"], id));
    assert_eq!(last["result"], session.task(id).await["result"]);
    assert!(last.get("resultType").is_none(), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_when_it_is_cancelled_and_other_filters_are_not_ours() {
    // [TASKS-7] [CALL-3]
    let mut session = Session::raw_with(native());
    let made = session.modern_call("nap", json!({"s": 60})).await;
    let params = json!({"notifications": {"taskIds": [made["taskId"]]}, "_meta": meta(true)});
    let id = session.begin("subscriptions/listen", &params.to_string()).await;
    session.task(&made["taskId"]).await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    session.send(&cancel.to_string()).await;
    session.native_end(&made["taskId"]).await;
    assert!(session.beside().iter().all(|line| line.get("id") != Some(&id)), "no answer");
    let told = noted(&session, "notifications/tasks");
    assert!(told.iter().all(|task| task["status"] == "working"), "none after the cancel: {told:?}");
    let tools = json!({"notifications": {"toolsListChanged": true}});
    assert_eq!(session.code("subscriptions/listen", tools).await, -32601);
    let undeclared = json!({"notifications": {"taskIds": ["x"]}, "_meta": meta(false)});
    let refused = session.request("subscriptions/listen", &undeclared.to_string()).await;
    assert_eq!(refused["error"]["code"], -32601);
}
