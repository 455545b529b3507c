use std::time::Duration;

use raincheck_core::error::Kind;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Functions, Request, StopReason};

use crate::world::{Gate, World, failure, polite, request, spec, text};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_end_of_a_wait_does_not_touch_the_task() {
    // [TIME-1]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    let id = world.call("gate").await;
    let before = world.handle.now();
    let view = world.handle.wait_end(&Scope::local(), id, SECOND).await.expect("a task");
    assert_eq!(view.record.state, State::Running);
    assert_eq!(world.handle.now().since(before), SECOND);
    gate.open(1);
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_run_past_its_limit_ends_as_timed_out_and_is_told_to_stop() {
    // [TIME-3] [STATE-2]
    let gate = Gate::new();
    let limited = ToolSpec { run_timeout: Some(3 * SECOND), ..spec("gate") };
    let world = World::new(gate.tool(Functions::new(), limited));
    let id = world.call("gate").await;
    let next = world.call("gate").await;
    let began = world.reaches(id, State::Running).await.record.started_at.expect("started");
    let view = world.end(id).await;
    assert_eq!((view.record.state, failure(&view).kind), (State::TimedOut, Kind::RunTimeout));
    assert_eq!(view.record.ended_at, Some(began + 3 * SECOND));
    tokio::time::sleep(SECOND).await;
    assert_eq!(gate.told(), [StopReason::TimedOut]);
    assert_eq!(world.view(next).await.record.state, State::Queued, "the place is still held");
    gate.open(2);
    assert_eq!(world.end(next).await.record.state, State::Succeeded);
    assert_eq!(world.view(id).await.record.state, State::TimedOut, "a late result changes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_caller_may_ask_for_another_run_limit() {
    // [TIME-3]
    let world = World::new(polite(Functions::new(), spec("polite")));
    let max_runtime = Some(Duration::from_millis(1500));
    let id = world.submit(Request { max_runtime, ..request("polite") }).await.record.id();
    let view = world.end(id).await;
    assert_eq!(view.record.state, State::TimedOut);
    assert!(failure(&view).message.contains("1500 ms"), "{}", failure(&view).message);
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_its_time_in_line_only_by_running() {
    // [STATE-5]
    let gate = Gate::new();
    let endless = ToolSpec { run_timeout: None, ..spec("gate") };
    let world = World::new(gate.tool(Functions::new(), endless));
    let first = world.call("gate").await;
    let second = world.call("gate").await;
    let view = world.end(second).await;
    assert_eq!((view.record.state, view.record.failure), (State::Failed, Some(Kind::QueueTimeout)));
    assert_eq!(view.record.updated_at.since(view.record.task.submitted_at).as_secs(), 24 * 3600);
    assert_eq!(world.view(first).await.record.state, State::Running);
}

#[tokio::test(start_paused = true)]
async fn an_ended_task_stays_as_long_as_it_was_asked_to_and_leaves_a_tombstone() {
    // [TIME-5] [SWEEP-1]
    let world = World::new(Functions::new().with(spec("quick"), |_, _| async { text("done") }));
    let ttl = Some(60 * SECOND);
    let id = world.submit(Request { ttl, ..request("quick") }).await.record.id();
    world.end(id).await;
    tokio::time::sleep(59 * SECOND).await;
    assert!(world.view(id).await.payload.is_some());
    tokio::time::sleep(2 * SECOND).await;
    let view = world.view(id).await;
    assert_eq!(view.record.state, State::Expired);
    assert!(view.payload.is_none());
    let page = world.handle.logs(&Scope::local(), id, 0, 10, Duration::ZERO).await;
    assert_eq!(page.expect_err("its log went with it").kind, Kind::Expired);
    tokio::time::sleep(25 * 3600 * SECOND).await;
    let gone = world.handle.view(&Scope::local(), id).await.expect_err("forgotten");
    assert_eq!(gone.kind, Kind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn many_deadlines_fire_each_at_its_own_instant() {
    // [STATE-5] [TIME-6]
    let mut tools = Functions::new();
    for n in 1..=20_u32 {
        let mut limited = ToolSpec { run_timeout: Some(n * 7 * SECOND), ..spec(&format!("t{n}")) };
        limited.lane = format!("lane{}", n % 4).into();
        tools = tools.with(limited, |_, context| async move {
            context.cancellation_token().cancelled().await;
            Outcome::Cancelled
        });
    }
    for n in 0..4 {
        let config = raincheck_core::lane::Config::new(9, 99);
        tools = tools.with_lane(format!("lane{n}"), config);
    }
    let world = World::new(tools);
    let mut ids = Vec::new();
    for n in (1..=20).rev() {
        ids.push((n, world.call(&format!("t{n}")).await));
    }
    for (n, id) in ids {
        let record = world.end(id).await.record;
        let ran = record.ended_at.expect("ended").since(record.started_at.expect("started"));
        assert_eq!((record.state, ran), (State::TimedOut, n * 7 * SECOND));
    }
}
