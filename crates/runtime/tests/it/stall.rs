//! Time in which the engine could not run. Advancing paused time is exactly that: every timer is late.

use std::time::Duration;

use raincheck_core::error::Kind;
use raincheck_core::lifecycle::State;
use raincheck_core::retry::Policy;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Functions, Request};

use crate::world::{Gate, World, request, spec, text};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Stops the world, and lets it come to itself again.
async fn stall(span: Duration) {
    tokio::time::sleep(2 * SECOND).await;
    tokio::time::advance(span).await;
    tokio::time::sleep(2 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_stopped_engine_kills_no_healthy_work_and_runs_none_twice() {
    // [LEASE-8]
    let gate = Gate::new();
    let keen = ToolSpec {
        run_timeout: Some(60 * SECOND),
        is_idempotent: true,
        retry: Policy { max_attempts: 3, on: vec![Kind::WorkerLost], ..Policy::default() },
        ..spec("gate")
    };
    let world = World::new(gate.tool(Functions::new(), keen));
    let id = world.call("gate").await;
    world.reaches(id, State::Running).await;
    for _ in 0..3 {
        stall(HOUR).await;
        let record = world.view(id).await.record;
        assert_eq!((record.state, record.attempt), (State::Running, 1));
    }
    assert!(gate.told().is_empty(), "nobody was told to stop");
    gate.open(1);
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
    assert_eq!(gate.n_begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_limit_counts_what_could_run() {
    // [LEASE-8] [TIME-3]
    let gate = Gate::new();
    let limited = ToolSpec { run_timeout: Some(60 * SECOND), ..spec("gate") };
    let world = World::new(gate.tool(Functions::new(), limited));
    let id = world.call("gate").await;
    let began = world.handle.running_time();
    world.reaches(id, State::Running).await;
    stall(HOUR).await;
    assert_eq!(world.end(id).await.record.state, State::TimedOut);
    let ran = world.handle.running_time() - began;
    assert!(ran >= 60 * SECOND && ran < 63 * SECOND, "{ran:?}");
}

#[tokio::test(start_paused = true)]
async fn the_grace_of_a_cancel_counts_what_could_run() {
    // [LEASE-8] [CANCEL-6]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    let id = world.call("gate").await;
    world.reaches(id, State::Running).await;
    world.cancel(id).await;
    stall(HOUR).await;
    assert_eq!(world.view(id).await.record.state, State::CancelRequested, "it still has time");
    assert_eq!(world.end(id).await.record.state, State::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn the_time_in_the_queue_and_retention_are_wall_time() {
    // [LEASE-8] [TIME-5]
    let gate = Gate::new();
    let tools = Functions::new().with(spec("quick"), |_, _| async { text("done") });
    let endless = ToolSpec { run_timeout: None, lane: "one".into(), ..spec("gate") };
    let world = World::new(gate.tool(tools, endless));
    let ttl = Some(HOUR);
    let ended = world.submit(Request { ttl, ..request("quick") }).await.record.id();
    world.end(ended).await;
    let running = world.call("gate").await;
    world.reaches(running, State::Running).await;
    let queued = world.call("gate").await;
    stall(25 * HOUR).await;
    assert_eq!(world.view(running).await.record.state, State::Running);
    let late = world.view(queued).await.record;
    assert!(late.state.is_terminal() && late.attempt == 0, "its time in line is over: {late:?}");
    assert_eq!(world.view(ended).await.record.state, State::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_an_executor_keeps_itself_counts_what_could_run() {
    // [LEASE-8]
    let tools = Functions::new().with(spec("nap"), |_, context| async move {
        context.sleep(30 * SECOND).await;
        text("slept")
    });
    let world = World::new(tools);
    let (id, began) = (world.call("nap").await, world.handle.running_time());
    stall(HOUR).await;
    assert_eq!(world.view(id).await.record.state, State::Running);
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
    let slept = world.handle.running_time() - began;
    assert!(slept >= 30 * SECOND && slept < 33 * SECOND, "{slept:?}");
}
