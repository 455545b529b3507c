//! Surfaces and layers that a server is put together of.

use std::sync::Mutex;

use async_trait::async_trait;
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::store::Durability;
use raincheck_core::tool::{Hints, ToolSpec};
use raincheck_mcp::{
    Answer, Answered, Call, Caller, Desk, Layer, Method, Options, Refused, Server, Shown, Surface,
    Told,
};
use raincheck_runtime::{View, start};
use serde_json::{Value, json};

use crate::session::{Session, Setup};
use crate::tools;

fn shown(name: &str) -> Shown {
    let hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    Shown {
        meta: None,
        name: name.into(),
        title: name.into(),
        description: "A tool of the tests".into(),
        schema: Json::empty_object(),
        hints,
    }
}

/// A vocabulary of one tool, which asks its client something and repeats the answer.
#[derive(Debug)]
struct Parrot;

#[async_trait]
impl Surface for Parrot {
    fn tools(&self, _engine: &[ToolSpec]) -> Vec<Shown> {
        vec![shown("parrot")]
    }

    fn practices(&self, _durability: Durability) -> String {
        "A parrot repeats.".into()
    }

    async fn call(&self, _desk: &Desk, call: Call, who: &mut Caller) -> Result<Told, Refused> {
        let peer = who.peer().expect("a client");
        match peer.ask("parrot/ask", call.arguments).await {
            Ok(answer) => Ok(Told::Said(Answer::json(&answer))),
            Err(error) => Err(Error::new(Kind::ToolFailed, error.to_string()).into()),
        }
    }

    fn write(&self, _desk: &Desk, told: Told, _who: &Caller) -> Answer {
        let Told::Said(answer) = told else { panic!("{told:?}") };
        answer
    }

    fn refuse(&self, _desk: &Desk, refused: &Refused) -> Answer {
        Answer::refused(refused)
    }
}

/// Does all that a layer can.
#[derive(Debug, Default)]
struct Wrapping {
    seen: Mutex<Vec<String>>,
}

#[async_trait]
impl Layer for Wrapping {
    fn tools(&self) -> Vec<Shown> {
        vec![shown("seen")]
    }

    async fn call(&self, _desk: &Desk, _call: Call, _who: &mut Caller) -> Result<Answer, Refused> {
        Ok(Answer::json(&*self.seen.lock().expect("sound")))
    }

    async fn take(&self, _desk: &Desk, arguments: Json, _who: &Caller) -> Result<Json, Error> {
        let value: Value = arguments.read().expect("JSON");
        match value.get("$instead") {
            Some(Value::Null) => Err(Error::new(Kind::CacheMiss, "nothing is there")),
            Some(other) => Ok(Json::of(other).expect("JSON")),
            None => Ok(arguments),
        }
    }

    fn ticket(&self, _desk: &Desk, live: &View, _who: &Caller) -> Option<Json> {
        self.seen.lock().expect("sound").push(live.record.task.tool.to_string());
        None
    }

    async fn finish(&self, _: &Desk, answer: Answer, _: Answered<'_>, _: &Caller) -> Answer {
        match answer.as_text() {
            Some(text) if text.len() > 100 && !answer.is_error() => {
                Answer::json(&json!({"cut": text.len()}))
            }
            _ => answer,
        }
    }

    async fn method(
        &self,
        desk: &Desk,
        method: &Method,
        _who: &mut Caller,
    ) -> Option<Result<Json, Error>> {
        let known = method.name.strip_prefix("wrapping/")?;
        Some(match known {
            "tools" => Ok(Json::of(&desk.engine().specs().len()).expect("JSON")),
            "same" => Ok(method.params.clone()),
            _ => Err(Error::new(Kind::NotFound, "nothing is there")),
        })
    }
}

async fn wrapped() -> Session {
    let options = Options::new("0.0.0").wrap(Wrapping::default());
    Session::open_with(Setup { options, ..Setup::default() }).await
}

#[tokio::test(start_paused = true)]
async fn a_layer_changes_arguments_and_answers_of_any_surface() {
    let mut session = wrapped().await;
    assert_eq!(session.good("echo", r#"{"$instead":{"a":1}}"#).await, json!({"a": 1}));
    let error = session.refused("echo", r#"{"$instead":null}"#).await;
    assert_eq!(
        (&error["code"], &error["guarantee"]),
        (&json!("cache_miss"), &json!("not_executed"))
    );
    let long = json!({"v": "v".repeat(200)}).to_string();
    assert_eq!(session.good("echo", &long).await, json!({"cut": long.len()}));
}

#[tokio::test(start_paused = true)]
async fn a_layer_has_tools_methods_and_a_word_about_what_goes_on() {
    let mut session = wrapped().await;
    session.good("nap", r#"{"s":9}"#).await;
    assert_eq!(session.good("seen", "{}").await, json!(["nap"]));
    assert_eq!(session.request("wrapping/tools", "{}").await["result"], json!(tools::N_TOOLS));
    let same = session.request("wrapping/same", r#"{"z":1,"a":2}"#).await;
    assert_eq!(same["result"], json!({"z": 1, "a": 2}));
    assert_eq!(session.request("wrapping/x", "{}").await["error"]["data"]["code"], "not_found");
    assert_eq!(session.request("other/x", "{}").await["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn two_tools_of_one_name_fail_at_the_start() {
    let (handle, _service) = start(tools::engine());
    let options = Options::new("0.0.0").offer(Parrot).offer(Parrot);
    let clash = Server::new(handle.clone(), options, Box::new(|| ())).expect_err("a clash");
    assert_eq!(clash.to_string(), "two tools are named `parrot`; rename one of them");
    let options = Options::new("0.0.0").offer(Parrot).wrap(Wrapping::default());
    assert!(Server::new(handle, options, Box::new(|| ())).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_surface_stands_alone_and_may_ask_its_client() {
    let options = Options::new("0.0.0").offer(Parrot);
    let mut session = Session::open_with(Setup { options, ..Setup::default() }).await;
    let listed = session.request("tools/list", "{}").await;
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(1), "{listed}");
    for (outcome, text) in [
        (r#""result":{"yes":true}"#, r#"{"yes":true}"#),
        (r#""error":{"code":-1,"message":"no"}"#, "the client refused: no"),
    ] {
        let call = session.begin_call("parrot", r#"{"q":"who?"}"#).await;
        let asked: Value =
            serde_json::from_str(&session.line().await.expect("a question")).expect("JSON");
        assert_eq!(
            (&asked["method"], &asked["params"]["q"]),
            (&json!("parrot/ask"), &json!("who?"))
        );
        session.send(&format!(r#"{{"jsonrpc":"2.0","id":{},{outcome}}}"#, asked["id"])).await;
        let answer = session.answer(&call).await;
        let said = answer["result"]["content"][0]["text"].as_str().expect("a text");
        assert!(said.contains(text), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_call_answers_that_call_and_the_server_goes_on() {
    // [CALL-3]
    #[derive(Debug)]
    struct Broken;

    #[async_trait]
    impl Layer for Broken {
        async fn take(&self, _desk: &Desk, arguments: Json, _who: &Caller) -> Result<Json, Error> {
            assert!(arguments.get() != r#"{"a":1}"#, "a fault of the server");
            Ok(arguments)
        }
    }

    let options = Options::new("0.0.0").wrap(Broken);
    let mut session = Session::open_with(Setup { options, ..Setup::default() }).await;
    let call = session.begin_call("echo", r#"{"a":1}"#).await;
    let answer = session.answer(&call).await;
    let data = &answer["error"]["data"];
    assert_eq!((&data["code"], &data["guarantee"]), (&json!("panicked"), &json!("unknown")));
    assert_eq!(session.good("echo", r#"{"a":2}"#).await, json!({"a": 2}));
}
