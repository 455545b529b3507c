//! A task that asks its caller something, as every kind of client sees it [TASKS-6].

use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::Content;
use raincheck_core::error::Kind;
use raincheck_core::input::InputRequest;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_mcp::Options;
use raincheck_mcp::layers::native::NativeTasks;
use raincheck_runtime::{Functions, TaskContext};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::session::{Answer, Session, Setup};

/// Asks a person, and gives back the answer.
async fn ask(context: TaskContext) -> Outcome {
    let schema = json!({"type": "object", "properties": {"sure": {"type": "boolean"}}});
    let question = InputRequest::elicitation("delete-3", "Delete \u{1b}[31m3 files?", &schema);
    match context.request_input(question.expect("JSON")).await {
        Ok(answer) => Outcome::Succeeded(vec![Content::Json(answer)]),
        Err(error) if error.kind == Kind::Cancelled => Outcome::Cancelled,
        Err(error) => Outcome::Failed(error),
    }
}

fn setup() -> Setup {
    let spec = ToolSpec {
        lane: "cpu_small".into(),
        wait: Duration::from_secs(15),
        ..ToolSpec::new("ask", "Asks", raincheck_core::content::Json::empty_object())
    };
    let tools = Functions::new().with(spec, |_, context| ask(context));
    Setup {
        engine: Some(raincheck_runtime::Options::in_memory().with_tools(Arc::new(tools))),
        options: Options::new("0.0.0").wrap(NativeTasks::default()),
        ..Setup::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_native_task_shows_what_it_asks_and_is_answered_once() {
    // [TASKS-3] [TASKS-6]
    let mut session = Session::raw_with(setup());
    let begun = Instant::now();
    let made = session.modern_call("ask", json!({})).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "nothing is waited for");
    assert_eq!(made["status"], "input_required", "{made}");
    let id = &made["taskId"];
    let task = session.task(id).await;
    assert_eq!(task["status"], "input_required", "{task}");
    let request = &task["inputRequests"]["delete-3"];
    assert_eq!(request["method"], "elicitation/create", "{task}");
    assert_eq!(request["params"]["requestedSchema"]["type"], "object");
    let update = |answer: Value| json!({"taskId": id, "inputResponses": answer});
    let accept = json!({"action": "accept", "content": {"sure": true}});
    // What was not asked is passed over; a repetition changes nothing.
    for answers in [
        json!({}),
        json!({"other": accept}),
        json!({"delete-3": accept}),
        json!({"delete-3": {"action": "decline"}}),
    ] {
        let done = session.modern("tasks/update", update(answers)).await;
        assert_eq!(done["result"], json!({"resultType": "complete"}), "{done}");
    }
    let ended = session.native_end(id).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(Answer::of(ended.clone()).data, accept);
    assert!(ended.get("inputRequests").is_none(), "{ended}");
    for (params, code) in [
        (json!({"taskId": "x", "inputResponses": {}}), -32602),
        (json!({"taskId": "x", "inputResponses": {"a": {}}}), -32602),
        (json!({"taskId": id}), -32602),
        (json!({"taskId": id, "inputResponses": []}), -32602),
        (json!({"taskId": id, "inputResponses": {"delete-3": "yes"}}), -32602),
    ] {
        assert_eq!(session.modern("tasks/update", params).await["error"]["code"], code);
    }
}

#[tokio::test(start_paused = true)]
async fn questions_that_are_open_together_are_shown_together_and_answered_one_by_one() {
    // [TASKS-6]
    let spec = ToolSpec {
        lane: "cpu_small".into(),
        wait: Duration::ZERO,
        ..ToolSpec::new("both", "Asks", raincheck_core::content::Json::empty_object())
    };
    let tools = Functions::new().with(spec, |_, context: TaskContext| async move {
        let schema = json!({"type": "object"});
        let ask = |key: &'static str| {
            let question = InputRequest::elicitation(key, "Which?", &schema).expect("JSON");
            context.request_input(question)
        };
        let (one, two) = tokio::join!(ask("one"), ask("two"));
        let said = [one.expect("an answer"), two.expect("an answer")];
        Outcome::Succeeded(said.into_iter().map(Content::Json).collect())
    });
    let mut session = Session::raw_with(Setup {
        engine: Some(raincheck_runtime::Options::in_memory().with_tools(Arc::new(tools))),
        ..setup()
    });
    let made = session.modern_call("both", json!({})).await;
    let id = &made["taskId"];
    let asked = |task: &Value| -> Vec<String> {
        let asked = task["inputRequests"].as_object();
        asked.into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let mut task = session.task(id).await;
    while asked(&task).len() < 2 {
        assert_ne!(task["status"], "completed", "{task}");
        tokio::time::sleep(Duration::from_millis(10)).await;
        task = session.task(id).await;
    }
    assert_eq!(
        (asked(&task), &task["status"]),
        (vec!["one".into(), "two".into()], &json!("input_required"))
    );
    let update = |answer: Value| json!({"taskId": id, "inputResponses": answer});
    session.modern("tasks/update", update(json!({"two": {"action": "decline"}}))).await;
    let task = session.task(id).await;
    assert_eq!((asked(&task), &task["status"]), (vec!["one".into()], &json!("input_required")));
    session.modern("tasks/update", update(json!({"one": {"action": "cancel"}}))).await;
    assert_eq!(session.native_end(id).await["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_client_of_tools_alone_is_shown_the_question_and_how_to_answer_it() {
    // [TASKS-6] [CALL-8]
    let mut session = Session::open_with(setup()).await;
    let begun = Instant::now();
    let handle = session.good("ask", "{}").await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(
        (&handle["status"], &handle["state"]),
        (&json!("running"), &json!("input_required"))
    );
    let next = &handle["next"];
    assert_eq!(next["tool"], "give_task_input");
    assert_eq!(next["arguments"], json!({"task_id": handle["task_id"], "key": "delete-3"}));
    assert!(handle["message"].as_str().is_some_and(|words| words.contains("give_task_input")));
    let asked = &handle["input_request"];
    assert_eq!(asked["request"]["params"]["requestedSchema"]["type"], "object");
    let (begins, ends) = (&handle["untrusted_begins"], &handle["untrusted_ends"]);
    assert!(
        begins.as_str().is_some_and(|begins| begins.starts_with(ends.as_str().expect("a mark")))
    );
    let text = session.last.clone();
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
    assert!(place("untrusted_begins") < place("input_request\\"));
    assert!(place("requestedSchema") < place("untrusted_ends"));
    // Waiting for the end is answered with the question, at once.
    let id = handle["task_id"].as_str().expect("an id");
    let read = json!({"task_id": id, "wait_s": 15}).to_string();
    let status = session.good("get_task_result", &read).await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(status["state"], "input_required");
    assert_eq!(status["input_request"], *asked);
    let listed = session.good("get_task_status", &json!({ "task_id": id }).to_string()).await;
    assert_eq!(listed["input_request"], *asked);

    let give = |key: &str, response: Value| {
        json!({"task_id": id, "key": key, "response": response}).to_string()
    };
    let wrong = session.refused("give_task_input", &give("delete-4", json!({}))).await;
    assert_eq!(wrong["code"], "invalid_params");
    assert!(wrong["message"].as_str().is_some_and(|words| words.contains("`key`")), "{wrong}");
    session.refused("give_task_input", &give("delete-3", json!("yes"))).await;
    let decline = json!({"action": "decline"});
    let given = session.good("give_task_input", &give("delete-3", decline.clone())).await;
    assert_eq!((&given["acknowledged"], &given["state"]), (&json!(true), &json!("running")));
    let again = session.good("give_task_input", &give("delete-3", json!({}))).await;
    assert_eq!(again["acknowledged"], false, "{again}");
    assert_eq!(session.end_of(id).await["result"], decline);
    let unknown = json!({"task_id": "x", "key": "k", "response": {}}).to_string();
    assert_eq!(session.refused("give_task_input", &unknown).await["code"], "not_found");
}

#[tokio::test(start_paused = true)]
async fn the_trace_of_a_call_reaches_its_work_whatever_revision_brings_it() {
    // [TRACE-1] [TRACE-2]
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let spec = ToolSpec {
        lane: "cpu_small".into(),
        ..ToolSpec::new("traced", "Says", raincheck_core::content::Json::empty_object())
    };
    let tools = Functions::new().with(spec, |_, context: TaskContext| async move {
        let fields: Vec<_> = context.trace().into_iter().flat_map(|trace| trace.fields()).collect();
        let fields = raincheck_core::content::Json::of(&fields).expect("JSON");
        Outcome::Succeeded(vec![Content::Json(fields)])
    });
    let engine = raincheck_runtime::Options::in_memory().with_tools(Arc::new(tools));
    let mut session = Session::open_with(Setup { engine: Some(engine), ..Setup::default() }).await;
    let traced = json!([["traceparent", PARENT], ["baggage", "user=7"]]);
    for (meta, expected) in [
        (json!({"traceparent": PARENT, "baggage": "user=7", "tracestate": 7}), traced.clone()),
        (json!({"traceparent": "0af7", "baggage": "user=7"}), json!([])),
        (json!({}), json!([])),
    ] {
        let call = json!({"name": "traced", "arguments": {}, "_meta": meta}).to_string();
        let answer = Answer::of(session.request("tools/call", &call).await);
        assert_eq!(answer.data, expected, "{meta}");
    }
    let submit = json!({"name": "submit_task", "arguments": {"tool_name": "traced", "inputs": {}},
        "_meta": {"traceparent": PARENT, "baggage": "user=7"}});
    let submitted = Answer::of(session.request("tools/call", &submit.to_string()).await);
    let id = submitted.data["task_id"].as_str().expect("an id").to_owned();
    assert_eq!(session.end_of(&id).await["result"], traced);
}
