use std::time::Duration;

use raincheck_core::error::Kind;
use raincheck_core::lifecycle::State;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Functions, StopReason};

use crate::world::{Gate, World, polite, request, spec};

#[tokio::test(start_paused = true)]
async fn an_idle_engine_ends_at_once_and_takes_nothing_more() {
    // [CANCEL-8]
    let mut world = World::new(polite(Functions::new(), spec("polite")));
    world.handle.lanes().await.expect("open");
    let before = world.handle.now();
    world.stop.cancel();
    world.service.join_next().await.expect("a service").expect("no panic");
    assert_eq!(world.handle.now(), before);
    let error = world.handle.submit(request("polite")).await.expect_err("closed");
    assert_eq!(error.kind, Kind::StorageUnavailable);
    assert_eq!(&*error.message, "the server is shutting down");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_outlive_the_process_is_stopped_first() {
    // [CANCEL-8]
    let (told, seen) = std::sync::mpsc::channel();
    let tools = Functions::new().with(spec("polite"), move |_, context| {
        let told = told.clone();
        async move {
            context.cancellation_token().cancelled().await;
            told.send(context.stop_reason()).expect("somebody listens");
            crate::world::text("put away")
        }
    });
    let mut world = World::new(tools);
    let id = world.call("polite").await;
    world.call("polite").await;
    world.reaches(id, State::Running).await;
    world.stop.cancel();
    world.service.join_next().await.expect("a service").expect("no panic");
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        [Some(StopReason::Shutdown)],
        "and no other began"
    );
}

#[tokio::test(start_paused = true)]
async fn an_executor_that_does_not_stop_is_dropped_in_time() {
    // [CANCEL-8]
    let gate = Gate::new();
    let stubborn = ToolSpec { supports_cancel: false, ..spec("gate") };
    let mut world = World::new(gate.tool(Functions::new(), stubborn));
    let id = world.call("gate").await;
    world.reaches(id, State::Running).await;
    let before = world.handle.now();
    world.stop.cancel();
    world.service.join_next().await.expect("a service").expect("no panic");
    assert!(world.handle.now().since(before) <= Duration::from_millis(1500));
    assert_eq!(gate.told(), [StopReason::Shutdown]);
}
