use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use raincheck_core::error::Kind;
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::lifecycle::State;
use raincheck_core::task::WaitReason;
use raincheck_core::tool::Class;
use raincheck_runtime::{Functions, Request};

use crate::world::{Gate, World, failure, options, request, spec, text};

#[tokio::test(start_paused = true)]
async fn a_lane_runs_by_priority_and_then_in_order() {
    // [QUEUE-1]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    let first = world.call("gate").await;
    let mut ids = Vec::new();
    for priority in [0, 5, 0, 100] {
        ids.push(
            world.submit(Request { priority: Some(priority), ..request("gate") }).await.record.id(),
        );
    }
    gate.open(5);
    for id in &ids {
        world.end(*id).await;
    }
    let order = gate.begun(5).await;
    assert_eq!(order, [first, ids[3], ids[1], ids[0], ids[2]]);
}

#[tokio::test(start_paused = true)]
async fn never_more_attempts_run_than_the_lane_has_places() {
    // [QUEUE-6]
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let mut three = spec("work");
    three.lane = LaneId::from("three");
    let tools = Functions::new().with(three, move |_, _| {
        let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            text("done")
        }
    });
    let world = World::with(options(tools).with_lane("three", lane::Config::new(3, 100)));
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(world.call("work").await);
    }
    for id in ids {
        assert_eq!(world.end(id).await.record.state, State::Succeeded);
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_full_lane_refuses_and_says_when_to_come_back() {
    // [QUEUE-2] [QUEUE-3]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    let first = world.submit(request("gate")).await;
    assert_eq!(first.position, None);
    for place in 0..4 {
        assert_eq!(world.submit(request("gate")).await.position, Some(place));
    }
    let error = world.handle.submit(request("gate")).await.expect_err("full");
    assert_eq!(error.kind, Kind::QueueFull);
    assert!(error.retry_after.is_some() && error.message.contains("`one`"), "{error:?}");
    gate.open(1);
    world.end(first.record.id()).await;
    assert_eq!(world.submit(request("gate")).await.position, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_control_tool_does_not_wait_for_a_lane() {
    // [QUEUE-4]
    let gate = Gate::new();
    let mut control = spec("state");
    control.class = Class::Control;
    let tools = gate
        .tool(Functions::new(), spec("gate"))
        .with(control, |_, _| async { text("from memory") });
    let world = World::new(tools);
    world.call("gate").await;
    world.call("gate").await;
    let id = world.call("state").await;
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
    assert_eq!(gate.n_begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_held_lane_waits_and_goes_on_in_order() {
    // [QUEUE-5]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    gate.open(9);
    let lane = LaneId::from("one");
    let hold = Some(WaitReason::new("compiling"));
    world.handle.hold(lane.clone(), hold.clone()).await.expect("held");
    let ids = [world.call("gate").await, world.call("gate").await];
    assert_eq!(world.view(ids[0]).await.record.waiting, hold);
    assert_eq!(world.handle.hold(lane, None).await.expect("lifted"), 2);
    for id in ids {
        assert_eq!(world.end(id).await.record.state, State::Succeeded);
    }
    assert_eq!(gate.begun(2).await, ids);
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_peer_does_not_come_fails_without_having_run() {
    // [QUEUE-5] [STATE-5]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    let lane = LaneId::from("one");
    world.handle.hold(lane, Some(WaitReason::new("disconnected"))).await.expect("held");
    let id = world.call("gate").await;
    let began = world.handle.now();
    let view = world.end(id).await;
    assert_eq!(failure(&view).kind, Kind::PeerNotReady);
    assert_eq!(view.record.ended_at.map(|at| at.since(began).as_secs()), Some(45));
    assert_eq!(gate.n_begun(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_places_of_a_lane_are_shown_with_their_tasks() {
    // [QUEUE-7]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    let id = world.call("gate").await;
    world.call("gate").await;
    let lanes = world.handle.lanes().await.expect("lanes");
    let one = lanes.iter().find(|lane| lane.lane.as_str() == "one").expect("the lane");
    assert_eq!((one.queued, one.slots.len()), (1, 1));
    assert_eq!(one.slots[0].task, id);
    let names: Vec<_> = lanes.iter().map(|lane| lane.lane.as_str()).collect();
    assert_eq!(names, ["cpu_heavy", "cpu_small", "cpu_standard", "one"]);
}
