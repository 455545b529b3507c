//! The tools that the tests call.

use std::sync::Arc;
use std::time::Duration;

use raincheck_core::cancel::OnDisconnect;
use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Kind};
use raincheck_core::lane;
use raincheck_core::log::{Level, Stream};
use raincheck_core::progress::Progress;
use raincheck_core::task::{Artifact, Outcome};
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Attempt, Functions, Options, TaskContext};
use serde_json::Value;
use tokio::time::sleep;

/// How many tools there are in this file.
pub(crate) const N_TOOLS: usize = 13;

/// An engine in memory with the tools of this file.
pub(crate) fn engine() -> Options {
    Options::in_memory().with_tools(Arc::new(tools()))
}

fn tools() -> Functions {
    Functions::new()
        .with_lane("one", lane::Config { memory_mb: Some(512), ..lane::Config::new(1, 4) })
        .with(spec("echo"), |attempt, _| async move { success(attempt.inputs) })
        .with(spec("verbatim"), |attempt, _| async move {
            let inputs: Value = attempt.inputs.read().expect("an object");
            success(Json::parse(inputs["text"].as_str().expect("a text")).expect("JSON"))
        })
        .with(ToolSpec { wait: Duration::from_secs(1), ..spec("nap") }, nap)
        .with(ToolSpec { lane: "one".into(), wait: Duration::from_secs(1), ..spec("nap_one") }, nap)
        .with(ToolSpec { on_disconnect: OnDisconnect::Cancel, ..spec("held") }, nap)
        .with(ToolSpec { supports_cancel: false, ..spec("stubborn") }, nap)
        .with(
            ToolSpec {
                supports_cancel: false,
                on_disconnect: OnDisconnect::Cancel,
                ..spec("unyielding")
            },
            nap,
        )
        .with(spec("fail"), |_, _| async {
            let error = Error::new(Kind::ToolFailed, "exit code 3:\nlast \u{1b}[31mwords");
            Outcome::Failed(error.with_details(Json::parse(r#"{"exit_code":3}"#).expect("JSON")))
        })
        .with(spec("steps"), steps)
        .with(spec("chatter"), chatter)
        .with(spec("leave"), leave)
        .with(spec("picture"), |_, _| async {
            let json = Json::parse(r#"{"w":2,"h":1}"#).expect("JSON");
            let image = Content::Binary { mime: "image/png".into(), data: Arc::from(*b"png") };
            Outcome::Succeeded(vec![Content::Json(json), image])
        })
        .with(typed(), |attempt, _| async move { success(attempt.inputs) })
}

fn spec(name: &str) -> ToolSpec {
    let mut spec = ToolSpec::new(name, "A tool of the tests", object());
    spec.lane = "cpu_small".into();
    spec.wait = Duration::from_secs(15);
    spec
}

fn object() -> Json {
    Json::parse(r#"{"type":"object"}"#).expect("JSON")
}

fn typed() -> ToolSpec {
    let schema = r#"{"type":"object","properties":{"frames":{"type":"integer"},
        "token":{"type":"string","maxLength":4}},"required":["frames"]}"#;
    ToolSpec {
        input_schema: Json::parse(schema).expect("JSON"),
        sensitive: Arc::from(["/token".to_owned()]),
        ..spec("typed")
    }
}

fn success(json: Json) -> Outcome {
    Outcome::Succeeded(vec![Content::Json(json)])
}

/// Sleeps for `s` seconds, with a partial result at its start; stops when it is told.
async fn nap(attempt: Attempt, context: TaskContext) -> Outcome {
    let inputs: Value = attempt.inputs.read().expect("an object");
    let seconds = inputs["s"].as_f64().expect("a number");
    context.set_partial_result(Json::parse(r#"{"dreams":1}"#).expect("JSON"));
    context.progress(Progress { message: Some("\u{1b}[2Jz".into()), ..Progress::default() });
    tokio::select! {
        () = sleep(Duration::from_secs_f64(seconds)) => success(attempt.inputs),
        () = context.cancellation_token().cancelled() => Outcome::Cancelled,
    }
}

/// Reports the percentages in `percents`, 300 ms apart.
async fn steps(attempt: Attempt, context: TaskContext) -> Outcome {
    let inputs: Value = attempt.inputs.read().expect("an object");
    let pause = Duration::from_millis(inputs["pause_ms"].as_u64().unwrap_or(300));
    for percent in inputs["percents"].as_array().expect("numbers") {
        let percent = percent.as_f64();
        context.progress(Progress { percent, ..Progress::default() });
        sleep(pause).await;
    }
    success(object())
}

/// Leaves the artifacts in `names`.
async fn leave(attempt: Attempt, context: TaskContext) -> Outcome {
    let inputs: Value = attempt.inputs.read().expect("an object");
    for name in inputs["names"].as_array().expect("names") {
        let id = context.new_artifact_id();
        context.artifact(Artifact {
            path: format!("artifacts/{id}").into(),
            id,
            name: name.as_str().expect("a name").into(),
            kind: "file".into(),
            size: 3,
            sha256: "00".into(),
        });
    }
    success(object())
}

/// Logs `n` lines, `pause_ms` apart.
async fn chatter(attempt: Attempt, context: TaskContext) -> Outcome {
    let inputs: Value = attempt.inputs.read().expect("an object");
    let pause = Duration::from_millis(inputs["pause_ms"].as_u64().unwrap_or(0));
    for n in 0..inputs["n"].as_u64().expect("a number") {
        context.log(Stream::Stdout, Level::Info, &format!("line {n}")).await;
        if !pause.is_zero() {
            sleep(pause).await;
        }
    }
    success(object())
}
