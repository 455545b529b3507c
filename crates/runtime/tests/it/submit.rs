use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::Kind;
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::scope::Scope;
use raincheck_core::task::Resources;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Functions, Request};

use crate::world::{Gate, World, options, request, spec, text};

fn world() -> World {
    let mut limited = ToolSpec { max_run: Some(Duration::from_secs(30)), ..spec("quick") };
    limited.lane = LaneId::from("small");
    let tools = Functions::new().with(limited, |_, _| async { text("done") });
    let mut small = lane::Config::new(2, 9);
    small.cpu_milli = Some(1500);
    small.memory_mb = Some(100);
    small.max_runtime = Some(Duration::from_secs(20));
    World::with(options(tools).with_lane("small", small))
}

#[tokio::test(start_paused = true)]
async fn a_wish_beyond_the_limits_is_refused_by_the_name_of_its_field() {
    // [TIME-3]
    let world = world();
    let base = request("quick");
    let run = |seconds| Some(Duration::from_secs(seconds));
    let cpu = |milli| Resources { cpu_milli: Some(milli), ..Resources::default() };
    let memory = Resources { memory_mb: Some(101), ..Resources::default() };
    let cases = [
        (
            Request { max_runtime: run(31), ..base.clone() },
            "`resources.max_runtime_s` is 31: tool `quick` allows at most 30 s",
        ),
        (
            Request { max_runtime: run(25), ..base.clone() },
            "`resources.max_runtime_s` is 25: lane `small` allows at most 20 s",
        ),
        (
            Request { max_runtime: run(0), ..base.clone() },
            "`resources.max_runtime_s` is 0: must be above 0",
        ),
        (
            Request { resources: cpu(1600), ..base.clone() },
            "`resources.cpu` is 1.6: lane `small` allows at most 1.5",
        ),
        (
            Request { resources: memory, ..base.clone() },
            "`resources.memory_mb` is 101: lane `small` allows at most 100",
        ),
        (
            Request { priority: Some(-101), ..base.clone() },
            "`priority` is -101: must be between -100 and 100",
        ),
        (
            Request { lane: Some("gpu".into()), ..base.clone() },
            "`resources.resource_class` names no lane: `gpu`; there are `cpu_heavy`, `cpu_small`, `cpu_standard`, `one`, `small`",
        ),
    ];
    for (request, message) in cases {
        let error = world.handle.submit(request).await.expect_err(message);
        assert_eq!((error.kind, &*error.message), (Kind::InvalidParams, message));
    }
    let fine = Request { max_runtime: run(20), resources: cpu(1500), ..base };
    let accepted = world.submit(fine).await;
    assert_eq!(accepted.record.task.limits.run_timeout, run(20));
}

#[tokio::test(start_paused = true)]
async fn a_tools_own_limit_is_kept_within_the_lanes() {
    // [TIME-3]
    let limits = world().submit(request("quick")).await.record.task.limits.clone();
    assert_eq!(limits.run_timeout, Some(Duration::from_secs(20)));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_named() {
    let error = world().handle.submit(request("quikc")).await.expect_err("unknown");
    assert_eq!((error.kind, &*error.message), (Kind::UnknownTool, "no tool is named `quikc`"));
}

fn keyed(inputs: &str) -> Request {
    let inputs = Json::parse(inputs).expect("JSON");
    Request { key: Some("k".into()), inputs, ..request("gate") }
}

#[tokio::test(start_paused = true)]
async fn one_key_and_many_callers_make_one_task() {
    // [IDEM-1]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    let calls = (0..200).map(|n| {
        let text = if n % 2 == 0 { r#"{"a":1,"b":2}"# } else { r#"{ "b":2, "a":1 }"# };
        world.submit(keyed(text))
    });
    let accepted = futures_util::future::join_all(calls).await;
    let first = accepted[0].record.id();
    assert!(accepted.iter().all(|accepted| accepted.record.id() == first));
    assert_eq!(accepted.iter().filter(|accepted| !accepted.existing).count(), 1);
    gate.open(9);
    world.end(first).await;
    assert!(world.submit(keyed(r#"{"a":1,"b":2}"#)).await.existing, "also after the end");
    assert_eq!(gate.n_begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_with_other_inputs_is_a_conflict() {
    // [IDEM-1]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    let first = world.submit(keyed("{}")).await.record.id();
    let error = world.handle.submit(keyed(r#"{"a":1}"#)).await.expect_err("a conflict");
    assert_eq!(error.kind, Kind::IdempotencyConflict);
    assert!(error.message.contains(&first.to_string()), "{}", error.message);
    let odd = world.handle.submit(keyed(r#"{"a":1,"a":2}"#)).await.expect_err("doubled");
    assert_eq!(odd.kind, Kind::InvalidRequest);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_task_is_as_unknown_as_one_that_never_was() {
    // [SCOPE-2]
    let world = world();
    let id = world.call("quick").await;
    let other = Scope::new("other");
    let foreign = world.handle.view(&other, id).await.expect_err("foreign");
    let never = raincheck_core::ids::TaskId::from_parts(1, [9; 10]);
    assert_eq!(foreign, world.handle.view(&other, never).await.expect_err("never issued"));
    let logs = world.handle.logs(&other, id, 0, 10, Duration::ZERO).await;
    assert_eq!(logs.expect_err("foreign"), foreign);
    let page = world.handle.list(&other, &Default::default(), None, 10).await.expect("a list");
    assert!(page.items.is_empty());
}
