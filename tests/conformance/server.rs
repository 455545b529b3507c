//! The server that the conformance suites of the protocol call: their tools, over the engine, at an HTTP
//! address that is printed on standard output.

#![expect(clippy::print_stdout, reason = "whoever started it reads the address there")]
#![expect(clippy::indexing_slicing, reason = "a member that JSON does not have is null")]

use std::time::Duration;

use async_trait::async_trait;
use raincheck::core::content::{Content, Json};
use raincheck::core::error::{Error, Kind};
use raincheck::core::input::InputRequest;
use raincheck::core::lane;
use raincheck::core::progress::Progress;
use raincheck::core::task::Outcome;
use raincheck::core::tool::{Hints, Needs, ToolSpec};
use raincheck::loopback::endpoint;
use raincheck::mcp::{Answer, Call, Caller, Desk, Layer, Method, Refused, Shown};
use raincheck::runtime::{Attempt, Functions, TaskContext};
use raincheck::{HttpConfig, LoopbackConfig, Raincheck};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// A red dot.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// Silence.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    // The suites call from a page of the same address, too.
    let address = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
    let origin = format!("http://{address}");
    let http = HttpConfig::new(address).anonymous().origin(&origin);
    let server = Raincheck::builder()
        .server_info("conformance", "1.0.0")
        .tools(tools())
        // A call that asks something and is not gone on with has its place until its time to answer is over, and
        // some scenarios leave theirs so.
        .lane("cpu_standard", lane::Config::new(64, 64))
        .layer(Fixtures)
        .listening(LoopbackConfig::new().announced_in(folder.path()));
    let stop = CancellationToken::new();
    let place = folder.path().to_owned();
    let telling = async move {
        loop {
            if let Some(endpoint) = endpoint::all(&place).pop() {
                println!("{}/mcp", endpoint.url);
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let (served, ()) = tokio::join!(server.serve_http(http, stop), telling);
    Ok(served?)
}

/// Reads JSON that is written here.
fn json_of(value: &Value) -> Json {
    Json::of(value).unwrap_or_else(|_| Json::empty_object())
}

fn spec(name: &str, properties: &Value, required: &[&str]) -> ToolSpec {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let spec = ToolSpec::new(name, "A tool of the conformance suites", json_of(&schema));
    ToolSpec { wait: Duration::from_secs(10), ..spec }
}

fn block(value: &Value) -> Content {
    Content::Verbatim(json_of(value))
}

fn text(text: &str) -> Content {
    block(&json!({"type": "text", "text": text}))
}

fn image() -> Content {
    block(&json!({"type": "image", "data": PNG, "mimeType": "image/png"}))
}

fn resource(uri: &str, form: &str, text: &str) -> Content {
    block(&json!({"type": "resource", "resource": {"uri": uri, "mimeType": form, "text": text}}))
}

fn tools() -> Functions {
    let none = json!({});
    let says = |name: &str, contents: Vec<Content>| {
        (spec(name, &json!({}), &[]), move |_: Attempt, _: TaskContext| {
            let contents = contents.clone();
            async move { Outcome::Succeeded(contents) }
        })
    };
    let mut tools = Functions::new();
    let mixed = resource(
        "test://mixed-content-resource",
        "application/json",
        r#"{"test":"data","value":123}"#,
    );
    let embedded =
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.");
    let audio = block(&json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"}));
    for (spec, function) in [
        says("test_simple_text", vec![text("This is a simple text response for testing.")]),
        says("test_image_content", vec![image()]),
        says("test_audio_content", vec![audio]),
        says("test_embedded_resource", vec![embedded]),
        says(
            "test_multiple_content_types",
            vec![text("Multiple content types test:"), image(), mixed],
        ),
        says("test_tool_with_logging", vec![text("done")]),
        says("test_logging_tool", vec![text("done")]),
    ] {
        tools = tools.with(spec, function);
    }
    asking(tools)
        .with(spec("test_error_handling", &none, &[]), |_, _| async {
            let words = "This tool intentionally returns an error for testing";
            Outcome::Failed(Error::new(Kind::ToolFailed, words))
        })
        .with(spec("test_tool_with_progress", &none, &[]), progress)
        .with(custom_headers("test_custom_headers"), |attempt, _| async move { echo(&attempt) })
        .with(schema_2020(), |attempt, _| async move { echo(&attempt) })
        .with(spec("greet", &json!({"name": {"type": "string"}}), &[]), |attempt, _| async move {
            let inputs: Value = attempt.inputs.read().unwrap_or_default();
            let name = inputs["name"].as_str().unwrap_or("world").to_owned();
            Outcome::Succeeded(vec![text(&format!("Hello, {name}!"))])
        })
        .with(long("slow_compute", &json!({"seconds": {"type": "number"}})), slow_compute)
        .with(
            long("confirm_delete", &json!({"filename": {"type": "string"}})),
            |_, context| async move { answered(ask(&context, "confirm").await) },
        )
        .with(long("multi_input", &none), |_, context| async move {
            let both = tokio::try_join!(ask(&context, "first"), ask(&context, "second"));
            answered(both.map(|(first, second)| format!("{first} {second}")))
        })
        .with(ToolSpec { needs: TASKS, ..long("failing_job", &none) }, |_, _| async {
            sleep(Duration::from_millis(300)).await;
            Outcome::Failed(Error::new(Kind::ToolFailed, "the job failed"))
        })
        .with(long("protocol_error_job", &none), |_, _| async {
            sleep(Duration::from_millis(300)).await;
            Outcome::Failed(Error::new(Kind::WorkerLost, "the worker is gone"))
        })
}

/// What a tool needs whose result its client has to come back for.
const TASKS: Needs = Needs { tasks: true, elicitation: false, sampling: false, roots: false };

/// Tools that ask their client something in the course of the call.
fn asking(tools: Functions) -> Functions {
    let none = json!({});
    let asks = |name: &str| spec(&format!("test_input_required_result_{name}"), &none, &[]);
    let sampling = Needs { sampling: true, ..Needs::default() };
    // Its client waits less than it takes after the answer.
    let wait = Duration::from_secs(3);
    let with_task = ToolSpec { wait, needs: TASKS, ..spec("test_tool_with_task", &none, &[]) };
    tools
        .with(with_task, |_, context| async move {
            let said = rounds(&context, &[&[form("user_name", "name", "string")]]).await;
            sleep(Duration::from_secs(8)).await;
            said
        })
        .with(
            ToolSpec { needs: sampling, ..spec("test_missing_capability", &none, &[]) },
            |_, _| async { Outcome::Succeeded(vec![text("done")]) },
        )
        .with(spec("test_streaming_elicitation", &none, &[]), |_, context| async move {
            rounds(&context, &[&[form("answer", "answer", "string")]]).await
        })
        .with(asks("elicitation"), |_, context| async move {
            rounds(&context, &[&[form("user_name", "name", "string")]]).await
        })
        .with(asks("sampling"), |_, context| async move {
            rounds(&context, &[&[sample("capital_question")]]).await
        })
        .with(asks("list_roots"), |_, context| async move {
            rounds(&context, &[&[roots("client_roots")]]).await
        })
        .with(asks("request_state"), |_, context| async move {
            match rounds(&context, &[&[form("confirm", "ok", "boolean")]]).await {
                Outcome::Succeeded(_) => Outcome::Succeeded(vec![text("state-ok")]),
                failed @ (Outcome::Failed(_) | Outcome::Cancelled) => failed,
            }
        })
        .with(asks("tampered_state"), |_, context| async move {
            rounds(&context, &[&[form("confirm", "ok", "boolean")]]).await
        })
        .with(asks("multiple_inputs"), |_, context| async move {
            let all =
                [form("user_name", "name", "string"), sample("greeting"), roots("client_roots")];
            rounds(&context, &[&all]).await
        })
        .with(asks("multi_round"), |_, context| async move {
            let steps = [form("step1", "name", "string"), form("step2", "color", "string")];
            rounds(&context, &steps.each_ref().map(std::slice::from_ref)).await
        })
        .with(asks("capabilities"), |_, context| async move {
            rounds(&context, &[&[form("name", "name", "string"), sample("greeting")]]).await
        })
}

/// A question: its key, its method, and its parameters.
type Question = (&'static str, &'static str, Value);

fn form(key: &'static str, property: &str, form: &str) -> Question {
    let schema = json!({"type": "object", "properties": { property: {"type": form} },
        "required": [property]});
    let params = json!({"mode": "form", "message": "Please answer", "requestedSchema": schema});
    (key, "elicitation/create", params)
}

fn sample(key: &'static str) -> Question {
    let content = json!({"type": "text", "text": "What is the capital of France?"});
    let messages = json!([{"role": "user", "content": content}]);
    (key, "sampling/createMessage", json!({"messages": messages, "maxTokens": 100}))
}

fn roots(key: &'static str) -> Question {
    (key, "roots/list", json!({}))
}

/// Asks what stands in a round at once, and the rounds one after the other; answers with all that was said.
async fn rounds(context: &TaskContext, rounds: &[&[Question]]) -> Outcome {
    let mut said = Vec::new();
    for round in rounds {
        let questions =
            round.iter().map(|(key, method, params)| InputRequest::new(*key, method, params));
        let questions: Result<_, _> = questions.collect();
        let answered = match questions {
            Ok(questions) => context.request_inputs(questions).await,
            Err(why) => Err(Error::new(Kind::ToolFailed, why.to_string())),
        };
        match answered {
            Ok(answers) => said.extend(answers.iter().map(|answer| answer.get().to_owned())),
            Err(error) => return Outcome::Failed(error),
        }
    }
    Outcome::Succeeded(vec![text(&said.join(" "))])
}

/// A tool that takes longer than its caller waits.
fn long(name: &str, properties: &Value) -> ToolSpec {
    ToolSpec { wait: Duration::ZERO, ..spec(name, properties, &[]) }
}

fn custom_headers(name: &str) -> ToolSpec {
    let header = |form: &str, header: &str| json!({"type": form, "x-mcp-header": header});
    let properties = json!({
        "region": header("string", "Region"),
        "priority": header("integer", "Priority"),
        "verbose": header("boolean", "Verbose"),
        "debug": header("boolean", "Debug"),
        "query": {"type": "string"},
    });
    spec(name, &properties, &[])
}

/// A schema that keeps every keyword.
fn schema_2020() -> ToolSpec {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}, true]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    });
    ToolSpec::new("json_schema_2020_12_tool", "Has a schema of 2020-12", json_of(&schema))
}

fn echo(attempt: &Attempt) -> Outcome {
    Outcome::Succeeded(vec![text(attempt.inputs.get())])
}

async fn progress(_: Attempt, context: TaskContext) -> Outcome {
    for percent in [0.0, 50.0, 100.0] {
        context.progress(Progress { percent: Some(percent), ..Progress::default() });
        // At most four a second reach a client.
        sleep(Duration::from_millis(300)).await;
    }
    Outcome::Succeeded(vec![text("done")])
}

/// Asks its caller one thing.
async fn ask(context: &TaskContext, key: &'static str) -> Result<String, Error> {
    let schema = json!({"type": "object", "properties":
        {"confirm": {"type": "boolean"}, "name": {"type": "string"}}});
    let question = InputRequest::elicitation(key, "Please confirm", &schema);
    let question = question.map_err(|why| Error::new(Kind::ToolFailed, why.to_string()))?;
    Ok(context.request_input(question).await?.get().to_owned())
}

/// Answers with what the caller said.
fn answered(said: Result<String, Error>) -> Outcome {
    said.map_or_else(Outcome::Failed, |said| Outcome::Succeeded(vec![text(&said)]))
}

async fn slow_compute(attempt: Attempt, context: TaskContext) -> Outcome {
    let inputs: Value = attempt.inputs.read().unwrap_or_default();
    let seconds = inputs["seconds"].as_f64().unwrap_or(1.0).clamp(0.0, 60.0);
    tokio::select! {
        () = sleep(Duration::from_secs_f64(seconds)) => {
            Outcome::Succeeded(vec![text(&format!("computed for {seconds} s"))])
        }
        () = context.cancellation_token().cancelled() => Outcome::Cancelled,
    }
}

/// Resources, and tools that ask their client something.
#[derive(Debug)]
struct Fixtures;

const QUESTIONS: [&str; 4] = [
    "test_elicitation",
    "test_sampling",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
];

#[async_trait]
impl Layer for Fixtures {
    fn has_resources(&self) -> bool {
        true
    }

    fn tools(&self) -> Vec<Shown> {
        let hints =
            Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
        let properties = json!({"message": {"type": "string"}, "prompt": {"type": "string"}});
        let schema = json_of(&json!({"type": "object", "properties": properties}));
        let shown = |name: &str| Shown {
            meta: None,
            name: name.into(),
            title: name.into(),
            description: "Asks its client something".into(),
            schema: schema.clone(),
            hints,
        };
        QUESTIONS.into_iter().map(shown).collect()
    }

    async fn call(&self, _: &Desk, call: Call, who: &mut Caller) -> Result<Answer, Refused> {
        let arguments: Value = call.arguments.read().unwrap_or_default();
        let (method, params) = question(&call.tool, &arguments);
        let Some(peer) = who.peer() else {
            return Err(Error::new(Kind::ToolFailed, "nobody can be asked").into());
        };
        let said = peer.ask(method, json_of(&params)).await;
        let said = said.map_err(|error| Error::new(Kind::ToolFailed, error.to_string()))?;
        let said: Value = said.read().unwrap_or_default();
        let words = match call.tool.as_str() {
            "test_sampling" => {
                format!("LLM response: {}", said["content"]["text"].as_str().unwrap_or_default())
            }
            "test_elicitation" => format!("User response: {said}"),
            _ => format!(
                "Elicitation completed: action={}, content={}",
                said["action"].as_str().unwrap_or_default(),
                said["content"]
            ),
        };
        Ok(Answer::result(&[text(&words)]))
    }

    async fn method(
        &self,
        _: &Desk,
        method: &Method,
        _: &mut Caller,
    ) -> Option<Result<Json, Error>> {
        let params: Value = method.params.read().unwrap_or_default();
        let (answer, is_known) = match method.name.as_str() {
            "resources/list" => (
                json!({"resources": [
                    listed("test://static-text", "text/plain"),
                    listed("test://static-binary", "image/png"),
                ]}),
                true,
            ),
            "resources/templates/list" => (
                json!({"resourceTemplates": [{
                    "uriTemplate": "test://template/{id}/data", "name": "template",
                    "description": "Data of an id", "mimeType": "application/json",
                }]}),
                true,
            ),
            "resources/read" => read(params["uri"].as_str().unwrap_or_default()),
            _ => return None,
        };
        if !is_known {
            let details = json_of(&json!({"uri": params["uri"]}));
            let error = Error::new(Kind::InvalidParams, "Resource not found");
            return Some(Err(error.with_details(details)));
        }
        Some(Ok(json_of(&answer)))
    }
}

fn listed(uri: &str, form: &str) -> Value {
    json!({"uri": uri, "name": uri, "description": "A resource of the suites", "mimeType": form})
}

/// Reads a resource; `false` when there is none of that name.
fn read(uri: &str) -> (Value, bool) {
    let one = |content: Value| (json!({"contents": [content]}), true);
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    match (uri, id) {
        ("test://static-text", _) => one(json!({"uri": uri, "mimeType": "text/plain",
            "text": "This is the content of the static text resource."})),
        ("test://static-binary", _) => {
            one(json!({"uri": uri, "mimeType": "image/png", "blob": PNG}))
        }
        (_, Some(id)) => {
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            one(json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()}))
        }
        (_, None) => (Value::Null, false),
    }
}

/// Returns what a tool asks its client.
fn question(tool: &str, arguments: &Value) -> (&'static str, Value) {
    let form = |message: &str, properties: Value, required: &[&str]| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        ("elicitation/create", json!({"message": message, "requestedSchema": schema}))
    };
    let titled = |values: [(&str, &str); 3]| -> Vec<Value> {
        values.iter().map(|(value, title)| json!({"const": value, "title": title})).collect()
    };
    match tool {
        "test_sampling" => {
            let content = json!({"type": "text", "text": arguments["prompt"]});
            let messages = json!([{"role": "user", "content": content}]);
            ("sampling/createMessage", json!({"messages": messages, "maxTokens": 100}))
        }
        "test_elicitation_sep1034_defaults" => form(
            "Please review",
            json!({
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            }),
            &[],
        ),
        "test_elicitation_sep1330_enums" => {
            let firsts = titled([
                ("value1", "First Option"),
                ("value2", "Second Option"),
                ("value3", "Third Option"),
            ]);
            let choices = titled([
                ("value1", "First Choice"),
                ("value2", "Second Choice"),
                ("value3", "Third Choice"),
            ]);
            form(
                "Please choose",
                json!({
                    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                    "titledSingle": {"type": "string", "oneOf": firsts},
                    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"]},
                    "untitledMulti": {"type": "array", "items": {"type": "string",
                        "enum": ["option1", "option2", "option3"]}},
                    "titledMulti": {"type": "array", "items": {"anyOf": choices}},
                }),
                &[],
            )
        }
        _ => form(
            arguments["message"].as_str().unwrap_or("Please answer"),
            json!({
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            }),
            &["username", "email"],
        ),
    }
}
