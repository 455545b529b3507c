//! Calls that ask their client something in the course of the call, and what a tool needs of its client
//! [TASKS-8] [TASKS-9].

use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Kind};
use raincheck_core::input::InputRequest;
use raincheck_core::task::Outcome;
use raincheck_core::tool::{Needs, ToolSpec};
use raincheck_mcp::Options;
use raincheck_mcp::layers::native::NativeTasks;
use raincheck_runtime::{Functions, TaskContext};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::native::EXTENSION;
use crate::session::{Answer, Session, Setup};

/// How long calls of the tools wait.
const WAIT: Duration = Duration::from_secs(5);

fn question(key: &str, method: &str) -> InputRequest {
    InputRequest::new(key, method, &json!({"message": key})).expect("JSON")
}

/// Asks some things at once, one after the other where they stand in several rows, and gives back the answers.
async fn ask(context: TaskContext, rounds: &[&[(&str, &str)]]) -> Outcome {
    let mut said = Vec::new();
    for round in rounds {
        let questions = round.iter().map(|(key, method)| question(key, method)).collect();
        match context.request_inputs(questions).await {
            Ok(answers) => said.extend(answers.into_iter().map(Content::Json)),
            Err(error) if error.kind == Kind::Cancelled => return Outcome::Cancelled,
            Err(error) => return Outcome::Failed(error),
        }
    }
    Outcome::Succeeded(said)
}

const ELICITATION: &str = "elicitation/create";
const SAMPLING: &str = "sampling/createMessage";

fn engine() -> raincheck_runtime::Options {
    let spec = |name: &str| ToolSpec {
        lane: "cpu_small".into(),
        wait: WAIT,
        ..ToolSpec::new(name, "Asks", Json::empty_object())
    };
    let needs = |name: &str, needs| ToolSpec { needs, ..spec(name) };
    let tools = Functions::new()
        .with(spec("one"), |_, context| ask(context, &[&[("sure", ELICITATION)]]))
        .with(spec("other"), |_, context| ask(context, &[&[("sure", ELICITATION)]]))
        .with(spec("two"), |_, context| {
            ask(context, &[&[("first", ELICITATION)], &[("second", ELICITATION)]])
        })
        .with(spec("mixed"), |_, context| {
            ask(context, &[&[("person", ELICITATION), ("model", SAMPLING)]])
        })
        .with(ToolSpec { wait: Duration::ZERO, ..spec("at_once") }, |_, context| {
            ask(context, &[&[("sure", ELICITATION)]])
        })
        .with(spec("long"), |_, context: TaskContext| async move {
            let answered = ask(context, &[&[("sure", ELICITATION)]]).await;
            sleep(3 * WAIT).await;
            answered
        })
        .with(spec("fails"), |_, context: TaskContext| async move {
            ask(context, &[&[("sure", ELICITATION)]]).await;
            Outcome::Failed(Error::new(Kind::ToolFailed, "it did not work"))
        })
        .with(needs("for_tasks", Needs { tasks: true, ..Needs::default() }), |_, _| async {
            Outcome::Succeeded(Vec::new())
        })
        .with(
            needs("for_people", Needs { elicitation: true, sampling: true, ..Needs::default() }),
            |_, _| async { Outcome::Succeeded(Vec::new()) },
        );
    raincheck_runtime::Options::in_memory().with_tools(Arc::new(tools))
}

fn options() -> Options {
    Options::new("0.0.0").wrap(NativeTasks::default())
}

fn setup() -> Setup {
    Setup { engine: Some(engine()), options: options(), ..Setup::default() }
}

/// A client that can ask a person.
fn person() -> Value {
    json!({"elicitation": {}})
}

/// One that follows native tasks, too.
fn person_with_tasks() -> Value {
    json!({"elicitation": {}, "extensions": { EXTENSION: {} }})
}

impl Session {
    /// Calls a tool with further members of the parameters, as a client with such capabilities.
    pub(crate) async fn ask_as(&mut self, capabilities: &Value, tool: &str, more: Value) -> Value {
        let mut params = json!({"name": tool, "arguments": {"a": 1, "b": 2.5}});
        for (name, value) in more.as_object().expect("members") {
            params[name] = value.clone();
        }
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "case", "version": "0"}});
        self.request("tools/call", &params.to_string()).await
    }

    /// How many tasks there are.
    async fn n_tasks(&mut self) -> usize {
        let listed = self.ask_as(&person(), "list_tasks", json!({"arguments": {}})).await;
        Answer::of(listed).data["tasks"].as_array().expect("tasks").len()
    }
}

/// Returns the state of an answer that asks just these questions.
fn asks(answer: &Value, keys: &[&str]) -> Value {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let asked = result["inputRequests"].as_object().expect("questions");
    assert_eq!(asked.keys().collect::<Vec<_>>(), keys, "{answer}");
    for request in asked.values() {
        assert!(request["method"].is_string() && request["params"].is_object(), "{request}");
    }
    assert!(result.get("taskId").is_none() && result.get("content").is_none(), "{answer}");
    assert!(result["requestState"].is_string(), "{answer}");
    result["requestState"].clone()
}

fn accept(n: u32) -> Value {
    json!({"action": "accept", "content": {"n": n}})
}

#[tokio::test(start_paused = true)]
async fn a_call_asks_its_client_and_goes_on_with_the_answer_however_often_it_is_repeated() {
    // [TASKS-9]
    for client in [person(), person_with_tasks()] {
        let mut session = Session::raw_with(setup());
        let state = asks(&session.ask_as(&client, "one", json!({})).await, &["sure"]);
        let retry = json!({"requestState": state, "inputResponses":
            {"sure": accept(1), "not_asked": {"action": "decline"}}});
        let first = session.ask_as(&client, "one", retry).await;
        assert_eq!(first["result"]["resultType"], "complete", "{first}");
        assert_eq!(Answer::of(first.clone()).data, accept(1));
        // The answer got lost on its way: the client says the same again, or something else.
        for again in [accept(1), accept(2)] {
            let retry = json!({"requestState": state, "inputResponses": {"sure": again}});
            let again = session.ask_as(&client, "one", retry).await;
            assert_eq!(again["result"], first["result"], "the first answer stays");
        }
        assert_eq!(session.n_tasks().await, 1, "nothing ran twice");
    }
}

#[tokio::test(start_paused = true)]
async fn each_round_has_its_questions_and_a_state_of_its_own() {
    // [TASKS-9]
    let mut session = Session::raw_with(setup());
    let one = asks(&session.ask_as(&person(), "two", json!({})).await, &["first"]);
    // Nothing, or nothing of use, is brought: the same is asked again.
    for responses in [json!(null), json!({}), json!({"second": accept(2)})] {
        let mut retry = json!({ "requestState": one });
        if !responses.is_null() {
            retry["inputResponses"] = responses;
        }
        assert_eq!(asks(&session.ask_as(&person(), "two", retry).await, &["first"]), one);
    }
    let retry = json!({"requestState": one, "inputResponses": {"first": accept(1)}});
    let two = asks(&session.ask_as(&person(), "two", retry.clone()).await, &["second"]);
    assert_ne!(one, two);
    // A repetition of the round before is told where the call stands.
    assert_eq!(asks(&session.ask_as(&person(), "two", retry).await, &["second"]), two);
    let retry = json!({"requestState": two, "inputResponses": {"second": accept(2)}});
    let end = Answer::of(session.ask_as(&person(), "two", retry).await);
    assert_eq!(end.data, json!([accept(1), accept(2)]), "{}", end.text);
    assert_eq!(session.n_tasks().await, 1);
}

#[tokio::test(start_paused = true)]
async fn answers_that_come_with_a_call_are_given_when_it_asks_for_them() {
    // [TASKS-9]
    let mut session = Session::raw_with(setup());
    let brought = json!({"inputResponses": {"first": accept(1), "other": accept(3)}});
    let state = asks(&session.ask_as(&person(), "two", brought).await, &["second"]);
    let both = json!({"inputResponses": {"first": accept(1), "second": accept(2)}});
    let end = Answer::of(session.ask_as(&person(), "two", both).await);
    assert_eq!(end.data, json!([accept(1), accept(2)]));
    let retry = json!({"requestState": state, "inputResponses": {"second": accept(4)}});
    let end = Answer::of(session.ask_as(&person(), "two", retry).await);
    assert_eq!(end.data, json!([accept(1), accept(4)]), "another call has other answers");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_not_of_this_call_of_this_owner_is_refused_and_nothing_is_lost() {
    // [TASKS-9] [SCOPE-2] [SEC-1]
    let mut session = Session::raw_with(setup());
    let state = asks(&session.ask_as(&person(), "one", json!({})).await, &["sure"]);
    let theirs = asks(&session.ask_as(&person(), "other", json!({})).await, &["sure"]);
    let text = state.as_str().expect("a text").to_owned();
    let (id, code) = text.split_once('.').expect("two parts");
    let other_id = theirs.as_str().and_then(|text| text.split('.').next()).expect("an id");
    let odd = [
        json!(format!("{text}-TAMPERED")),
        json!(text.to_uppercase()),
        json!(text.replace('.', "")),
        json!(format!("{other_id}.{code}")),
        json!(id),
        json!(""),
        json!(7),
        json!(null),
        theirs,
    ];
    let refused = |answer: Value| {
        let error = &answer["error"];
        assert_eq!(error["code"], -32602, "{answer}");
        assert!(error["message"].as_str().is_some_and(|words| words.contains("requestState")));
        assert!(error["data"]["hint"].is_string(), "{answer}");
        assert_eq!(error["data"]["guarantee"], "unknown", "[LEASE-9] {answer}");
    };
    for odd in odd {
        let retry = json!({"requestState": odd, "inputResponses": {"sure": accept(9)}});
        refused(session.ask_as(&person(), "one", retry).await);
    }
    let retry = json!({"requestState": state, "inputResponses": {"sure": accept(9)}});
    let mut other_arguments = retry.clone();
    other_arguments["arguments"] = json!({"a": 2, "b": 2.5});
    refused(session.ask_as(&person(), "one", other_arguments).await);
    refused(session.ask_as(&person(), "other", retry.clone()).await);
    refused(session.ask_as(&person(), "get_task_result", retry.clone()).await);
    let mut stranger = session.of_scope_with("other", options());
    refused(stranger.ask_as(&person(), "one", retry).await);

    // The same arguments in another order are the same.
    let retry = json!({"requestState": state, "inputResponses": {"sure": accept(1)},
        "arguments": {"b": 2.5, "a": 1}});
    let end = Answer::of(session.ask_as(&person(), "one", retry).await);
    assert_eq!(end.data, accept(1), "it still asked: {}", end.text);
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_none_are_refused_before_anything_begins() {
    // [TASKS-9]
    let mut session = Session::raw_with(setup());
    for odd in [json!(null), json!([]), json!("yes"), json!({"sure": 12345}), json!({"sure": null})]
    {
        let answer = session.ask_as(&person(), "one", json!({"inputResponses": odd})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let words = answer["error"]["message"].as_str().expect("words");
        assert!(words.contains("inputResponses"), "{answer}");
    }
    assert_eq!(session.n_tasks().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_is_asked_what_it_says_it_answers_and_reads_the_rest_as_before() {
    // [TASKS-9] [TASKS-6]
    let mut session = Session::raw_with(setup());
    // Of two questions one is for it; the other waits for whoever reads the task.
    let sampling = json!({"sampling": {}});
    let state = asks(&session.ask_as(&sampling, "mixed", json!({})).await, &["model"]);
    let text = json!({"type": "text", "text": "yes"});
    let said = json!({"role": "assistant", "content": text, "model": "m"});
    let retry = json!({"requestState": state, "inputResponses": {"model": said}});
    let handle = Answer::of(session.ask_as(&sampling, "mixed", retry).await).data;
    assert_eq!(handle["state"], "input_required", "{handle}");
    assert_eq!(handle["next"]["arguments"]["key"], "person");
    let both = json!({"elicitation": {}, "sampling": {}});
    asks(&session.ask_as(&both, "mixed", json!({})).await, &["model", "person"]);

    // Nobody to ask, or no wait in which to ask.
    let handle = Answer::of(session.ask_as(&json!({}), "one", json!({})).await).data;
    assert_eq!(handle["next"]["tool"], "give_task_input", "{handle}");
    let tasks = json!({"extensions": { EXTENSION: {} }});
    for (client, tool) in [(tasks, "one"), (person_with_tasks(), "at_once")] {
        let made = session.ask_as(&client, tool, json!({})).await["result"].clone();
        assert_eq!(made["resultType"], "task", "{made}");
        assert!(made.get("requestState").is_none(), "{made}");
    }

    // A session of an older revision has no such words, whatever its calls bring.
    let mut old = Session::open_with(setup()).await;
    let call = json!({"name": "one", "arguments": {}, "requestState": 7, "inputResponses": 7});
    let handle = Answer::of(old.request("tools/call", &call.to_string()).await).data;
    assert_eq!(handle["next"]["tool"], "give_task_input", "{handle}");
    let answer = old.ask_as(&person(), "one", json!({})).await;
    assert_eq!(Answer::of(answer).data["next"]["tool"], "give_task_input");
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_after_the_answers_is_a_task_with_what_was_said() {
    // [TASKS-9] [TASKS-2]
    let mut session = Session::raw_with(setup());
    let client = person_with_tasks();
    let state = asks(&session.ask_as(&client, "long", json!({})).await, &["sure"]);
    let retry = json!({"requestState": state, "inputResponses": {"sure": accept(1)}});
    let made = session.ask_as(&client, "long", retry.clone()).await["result"].clone();
    assert_eq!((&made["resultType"], &made["status"]), (&json!("task"), &json!("working")));
    assert!(made.get("requestState").is_none() && made.get("inputRequests").is_none(), "{made}");
    let again = session.ask_as(&client, "long", retry.clone()).await["result"].clone();
    assert_eq!(again["taskId"], made["taskId"], "the same task");
    let ended = session.native_end(&made["taskId"]).await;
    assert_eq!(Answer::of(ended.clone()).data, accept(1), "{ended}");
    let read = session.ask_as(&client, "long", retry).await["result"].clone();
    assert_eq!(read, ended["result"], "a retry that comes late is answered with the result");

    // Without native tasks it goes on in the words of the task tools.
    let state = asks(&session.ask_as(&person(), "long", json!({})).await, &["sure"]);
    let retry = json!({"requestState": state, "inputResponses": {"sure": accept(2)}});
    let handle = Answer::of(session.ask_as(&person(), "long", retry.clone()).await).data;
    assert_eq!((&handle["status"], &handle["state"]), (&json!("running"), &json!("running")));
    sleep(3 * WAIT).await;
    let read = json!({"arguments": {"task_id": handle["task_id"]}});
    let read = Answer::of(session.ask_as(&person(), "get_task_result", read).await).data;
    assert_eq!(read["result"], accept(2), "{read}");
    let end = Answer::of(session.ask_as(&person(), "long", retry).await);
    assert_eq!(end.data, accept(2));
}

#[tokio::test(start_paused = true)]
async fn a_failure_after_the_answer_is_the_tools_own() {
    // [TASKS-9] [CALL-5]
    let mut session = Session::raw_with(setup());
    let state = asks(&session.ask_as(&person(), "fails", json!({})).await, &["sure"]);
    let retry = json!({"requestState": state, "inputResponses": {"sure": accept(1)}});
    let failed = Answer::of(session.ask_as(&person(), "fails", retry).await);
    assert_eq!((failed.is_error, &failed.data["error"]["code"]), (true, &json!("tool_failed")));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_come_back_leaves_a_task_that_ends_by_itself() {
    // [TASKS-9] [TASKS-6] [TIME-5]
    let mut session = Session::raw_with(setup());
    let state = asks(&session.ask_as(&person(), "one", json!({})).await, &["sure"]);
    sleep(Duration::from_secs(3700)).await;
    let retry = json!({"requestState": state, "inputResponses": {"sure": accept(1)}});
    let late = Answer::of(session.ask_as(&person(), "one", retry.clone()).await);
    assert_eq!((late.is_error, &late.data["error"]["code"]), (true, &json!("run_timeout")));
    let words = late.data["error"]["message"].as_str().expect("words");
    assert!(words.contains("was not given in time"), "{words}");
    sleep(Duration::from_secs(25 * 3600)).await;
    let gone = session.ask_as(&person(), "one", retry).await;
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
    let words = gone["error"]["message"].as_str().expect("words");
    assert!(words.contains("no longer kept"), "{gone}");
    assert_eq!(gone["error"]["data"]["guarantee"], "unknown", "[LEASE-9] {gone}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_needs_something_of_its_client_refuses_who_does_not_say_that_it_has_it() {
    // [TASKS-8]
    let mut session = Session::raw_with(setup());
    let cases = [
        ("for_tasks", person(), json!({"extensions": { EXTENSION: {} }})),
        ("for_people", person(), json!({"sampling": {}})),
        ("for_people", json!({}), json!({"elicitation": {}, "sampling": {}})),
    ];
    for (tool, client, missing) in cases {
        let refused = session.ask_as(&client, tool, json!({})).await;
        assert_eq!(refused["error"]["code"], -32021, "{refused}");
        assert_eq!(refused["error"]["data"], json!({ "requiredCapabilities": missing }));
    }
    assert_eq!(session.n_tasks().await, 0, "nothing was accepted");
    let whole = json!({"elicitation": {}, "sampling": {}, "extensions": { EXTENSION: {} }});
    for tool in ["for_tasks", "for_people"] {
        let answered = session.ask_as(&whole, tool, json!({})).await;
        assert_eq!(answered["result"]["resultType"], "complete", "{answered}");
    }
    // Whoever asks for a task by name gets one.
    let submit = json!({"arguments": {"tool_name": "for_tasks", "inputs": {}}});
    let submitted = Answer::of(session.ask_as(&person(), "submit_task", submit).await);
    assert!(submitted.data["task_id"].is_string(), "{}", submitted.text);

    // An older revision has no word for it, and a server without native tasks can ask for none.
    let mut old = Session::open_with(setup()).await;
    for tool in ["for_tasks", "for_people"] {
        old.good(tool, "{}").await;
    }
    let setup = Setup { options: Options::new("0.0.0"), ..setup() };
    let mut without = Session::raw_with(setup);
    let answered = without.ask_as(&json!({}), "for_tasks", json!({})).await;
    assert_eq!(answered["result"]["resultType"], "complete", "{answered}");
}
