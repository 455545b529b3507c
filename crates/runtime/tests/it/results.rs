use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_core::progress::Progress;
use raincheck_core::scope::Scope;
use raincheck_core::task::{Artifact, Cause, Metrics, Outcome};
use raincheck_runtime::{Functions, Request};

use crate::world::{World, failure, request, spec, text};

#[tokio::test(start_paused = true)]
async fn a_result_is_the_same_bytes_every_time_it_is_read() {
    // [RESULT-1]
    let tools = Functions::new().with(spec("echo"), |attempt, _| async move {
        Outcome::Succeeded(vec![Content::Json(attempt.inputs)])
    });
    let world = World::new(tools);
    let inputs = Json::parse(r#"{"z":1.0,"a":[1e2,"\u00e9"]}"#).expect("JSON");
    let request = Request { inputs: inputs.clone(), ..request("echo") };
    let id = world.submit(request).await.record.id();
    for _ in 0..2 {
        let payload = world.end(id).await.payload.expect("readable");
        let expected = Outcome::Succeeded(vec![Content::Json(inputs.clone())]);
        assert_eq!(payload.outcome, Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_its_task_and_nothing_else() {
    // [LEASE-4]
    let tools = Functions::new()
        .with(spec("panics"), |_, _| async { panic!("a bug") })
        .with(spec("works"), |_, _| async { text("fine") });
    let world = World::new(tools);
    let first = world.call("panics").await;
    let second = world.call("works").await;
    let view = world.end(first).await;
    let error = failure(&view);
    assert_eq!((error.kind, error.guarantee()), (Kind::Panicked, Some(Guarantee::Unknown)));
    assert!(!error.message.contains("a bug"), "the words of a panic are for the operator");
    assert_eq!(world.end(second).await.record.state, State::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn progress_and_partial_results_are_readable_while_the_attempt_runs() {
    // [RESULT-2]
    let tools = Functions::new().with(spec("slow"), |_, context| async move {
        for percent in [10.0, 40.0, 20.0] {
            context.progress(Progress { percent: Some(percent), ..Progress::default() });
            context.set_partial_result(Json::of(&percent).expect("JSON"));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        text("done")
    });
    let world = World::new(tools);
    let id = world.call("slow").await;
    let mut watch = world.handle.watch(id);
    let mut seen = Vec::new();
    loop {
        let view = world.view(id).await;
        let percent = view.progress.and_then(|progress| progress.percent);
        let partial = view.partial.map(|partial| partial.get().to_owned());
        if let (Some(percent), Some(partial)) = (percent, partial) {
            seen.push((percent, partial));
        }
        if view.record.state.is_terminal() {
            break;
        }
        watch.changed().await;
    }
    seen.dedup();
    let expected = [(10.0, "10.0"), (40.0, "40.0"), (40.0, "20.0")];
    assert_eq!(seen, expected.map(|(percent, partial)| (percent, partial.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn artifacts_and_metrics_come_with_the_outcome() {
    // [ART-1] [DUR-2]
    let artifact = Artifact {
        id: "art_1".into(),
        name: "frame.png".into(),
        kind: "image".into(),
        size: 3,
        sha256: "00".into(),
        path: "a1/frame.png".into(),
    };
    let left = artifact.clone();
    let tools = Functions::new().with(spec("render"), move |_, context| {
        context.artifact(left.clone());
        context.metrics(Metrics { wall_ms: 12, ..Metrics::default() });
        async { text("rendered") }
    });
    let world = World::new(tools);
    let id = world.call("render").await;
    let payload = world.end(id).await.payload.expect("readable");
    assert_eq!(payload.artifacts, [artifact]);
    let metrics = payload.attempts.first().and_then(|attempt| attempt.metrics);
    assert_eq!(metrics.map(|metrics| metrics.wall_ms), Some(12));
}

#[tokio::test(start_paused = true)]
async fn the_history_of_a_task_is_read_by_its_owner() {
    // [STATE-4] [STATE-6]
    let world = World::new(Functions::new().with(spec("works"), |_, _| async { text("fine") }));
    let id = world.call("works").await;
    world.end(id).await;
    let events = world.handle.events(&Scope::local(), id).await.expect("a task");
    let last = events.last().map(|event| event.to);
    assert_eq!((events[0].cause, last), (Cause::Received, Some(State::Succeeded)));
    let foreign = world.handle.events(&Scope::new("other"), id).await.expect_err("not theirs");
    assert_eq!(foreign.kind, Kind::NotFound);
}
