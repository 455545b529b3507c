//! Calls of one connection are accepted in the order of their lines [CALL-7].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Call, Executor, Functions, Route, ToolSet};
use serde_json::{Value, json};

use crate::session::{Session, Setup};

/// Takes its time to say where a call goes, the more the earlier it came.
struct Slow(Functions);

#[async_trait]
impl ToolSet for Slow {
    fn specs(&self) -> Vec<ToolSpec> {
        self.0.specs()
    }

    fn lanes(&self) -> Vec<(LaneId, lane::Config)> {
        self.0.lanes()
    }

    async fn route(&self, call: &Call) -> Result<Route, Error> {
        let inputs: Value = call.inputs.read().expect("an object");
        let n = inputs["n"].as_u64().expect("a number");
        tokio::time::sleep(Duration::from_millis(100 - 10 * n)).await;
        self.0.route(call).await
    }

    fn executor(&self) -> Arc<dyn Executor> {
        self.0.executor()
    }
}

#[tokio::test(start_paused = true)]
async fn submits_and_calls_are_accepted_in_the_order_of_their_lines() {
    let object = Json::parse(r#"{"type":"object"}"#).expect("JSON");
    let spec = ToolSpec { lane: "cpu_small".into(), ..ToolSpec::new("echo", "Echoes", object) };
    let echo = Functions::new().with(spec, |attempt, _| async move {
        let echoed = raincheck_core::content::Content::Json(attempt.inputs);
        raincheck_core::task::Outcome::Succeeded(vec![echoed])
    });
    let engine = raincheck_runtime::Options::in_memory().with_tools(Arc::new(Slow(echo)));
    let mut session = Session::open_with(Setup { engine: Some(engine), ..Setup::default() }).await;
    let mut ids = Vec::new();
    for n in 0..8 {
        let inputs = json!({"n": n});
        let id = if n % 2 == 0 {
            let submit = json!({"tool_name": "echo", "inputs": inputs, "tags": [n.to_string()]});
            session.begin_call("submit_task", &submit.to_string()).await
        } else {
            session.begin_call("echo", &inputs.to_string()).await
        };
        ids.push(id);
    }
    // A read in between waits for nobody.
    let began = tokio::time::Instant::now();
    session.good("list_tasks", "{}").await;
    assert!(began.elapsed() < Duration::from_millis(50), "{:?}", began.elapsed());
    for id in &ids {
        session.answer(id).await;
    }
    let listed = session.good("list_tasks", "{}").await;
    let mut submitted = Vec::new();
    for task in listed["tasks"].as_array().expect("tasks").iter().rev() {
        let end = session.end_of(task["task_id"].as_str().expect("an id")).await;
        submitted.push(end["result"]["n"].as_u64().expect("a number"));
    }
    assert_eq!(submitted, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_in_line_holds_nobody_up_and_runs_nothing() {
    let object = Json::parse(r#"{"type":"object"}"#).expect("JSON");
    let spec = ToolSpec { lane: "cpu_small".into(), ..ToolSpec::new("echo", "Echoes", object) };
    let echo = Functions::new().with(spec, |attempt, _| async move {
        let echoed = raincheck_core::content::Content::Json(attempt.inputs);
        raincheck_core::task::Outcome::Succeeded(vec![echoed])
    });
    let engine = raincheck_runtime::Options::in_memory().with_tools(Arc::new(Slow(echo)));
    let mut session = Session::open_with(Setup { engine: Some(engine), ..Setup::default() }).await;
    let first = session.begin_call("echo", r#"{"n":0}"#).await;
    let second = session.begin_call("echo", r#"{"n":1}"#).await;
    let third = session.begin_call("echo", r#"{"n":2}"#).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": second}});
    session.send(&cancel.to_string()).await;
    assert!(session.answer(&first).await["result"].is_object());
    assert!(session.answer(&third).await["result"].is_object());
    let listed = session.good("list_tasks", "{}").await;
    assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(2), "{listed}");
}
