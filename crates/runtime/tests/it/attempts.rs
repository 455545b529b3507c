use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;

use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_core::retry;
use raincheck_core::scope::Scope;
use raincheck_core::store::{MemoryStore, TaskStore as _};
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{
    Attempt, Call, Executor, Functions, Route, StartReport, StopReason, TaskContext, TaskPlan,
    ToolSet, View,
};

use crate::gated::Gated;
use crate::world::{Gate, LONG, World, failed, failure, options, spec, text};

fn retrying(name: &str) -> ToolSpec {
    let backoff = Duration::from_secs(8);
    let on = vec![Kind::ToolFailed];
    ToolSpec { retry: retry::Policy { max_attempts: 3, backoff, on }, ..spec(name) }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_worth_it_is_tried_again_after_growing_pauses() {
    // [RETRY-1]
    let tools = Functions::new().with(retrying("flaky"), |_, context| async move {
        if context.attempt_number() < 3 { failed() } else { text("third time") }
    });
    let world = World::new(tools);
    let before = world.handle.now();
    let id = world.call("flaky").await;
    let view = world.end(id).await;
    assert_eq!((view.record.state, view.record.attempt), (State::Succeeded, 3));
    let payload = view.payload.expect("readable");
    let ends: Vec<_> = payload.attempts.iter().map(|attempt| attempt.ended).collect();
    assert_eq!(ends, ["retried", "retried", "succeeded"]);
    let took = view.record.ended_at.expect("ended").since(before).as_secs();
    assert!((18..=24).contains(&took), "6..8 s and 12..16 s, not {took} s");
}

#[tokio::test(start_paused = true)]
async fn the_last_failure_stands_and_the_lane_goes_on_meanwhile() {
    // [RETRY-1] [QUEUE-6]
    let tools = Functions::new()
        .with(retrying("broken"), |_, _| async { failed() })
        .with(spec("fine"), |_, _| async { text("fine") });
    let world = World::new(tools);
    let broken = world.call("broken").await;
    let fine = world.call("fine").await;
    let ended_at = world.end(fine).await.record.ended_at.expect("ended");
    let view = world.end(broken).await;
    assert!(view.record.ended_at > Some(ended_at), "the pause does not hold the place");
    assert_eq!((failure(&view).kind, view.record.attempt), (Kind::ToolFailed, 3));
}

#[tokio::test(start_paused = true)]
async fn a_task_can_be_cancelled_in_the_pause_between_attempts() {
    // [CANCEL-1] [RETRY-1]
    let world = World::new(Functions::new().with(retrying("broken"), |_, _| async { failed() }));
    let id = world.call("broken").await;
    world.reaches(id, State::Waiting).await;
    assert_eq!(world.cancel(id).await, (State::Cancelled, true));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.view(id).await.record.attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_attempt_keeps_its_lease_by_heartbeats() {
    // [LEASE-2]
    let gate = Gate::new();
    let endless = ToolSpec { run_timeout: None, ..spec("gate") };
    let world = World::new(gate.tool(Functions::new(), endless));
    let id = world.call("gate").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let view = world.view(id).await;
    assert_eq!(view.record.state, State::Running);
    let silent = world.handle.now().since(view.record.heartbeat_at.expect("a heartbeat"));
    assert!(silent <= Duration::from_secs(10), "a third of the lease, not {silent:?}");
    gate.open(1);
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
}

/// An executor whose peer is not there the first time.
struct Shy {
    tries: AtomicU32,
    has_started: bool,
}

#[async_trait]
impl Executor for Shy {
    async fn execute(&self, _: Attempt, context: TaskContext) -> Outcome {
        if self.tries.fetch_add(1, Ordering::SeqCst) > 0 {
            return text("delivered");
        }
        if self.has_started {
            context.protocol().started().await.expect("it is the task's");
        }
        match context.protocol().not_delivered().await {
            Ok(()) => text("this is ignored"),
            Err(error) => Outcome::Failed(error),
        }
    }

    fn start_report(&self) -> StartReport {
        StartReport::ByExecutor
    }
}

struct ShySet(Arc<Shy>);

#[async_trait]
impl ToolSet for ShySet {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![spec("shy")]
    }

    async fn route(&self, _: &Call) -> Result<Route, Error> {
        Ok(Route::Task(Box::new(TaskPlan::from_spec(&spec("shy")))))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        self.0.clone()
    }
}

async fn end_of_shy(has_started: bool) -> View {
    let shy = Arc::new(Shy { tries: AtomicU32::new(0), has_started });
    let world = World::with(options(Functions::new()).with_tools(Arc::new(ShySet(shy))));
    let id = world.call("shy").await;
    world.end(id).await
}

#[tokio::test(start_paused = true)]
async fn what_was_not_delivered_goes_back_to_the_queue_unspent() {
    // [LEASE-5]
    let view = end_of_shy(false).await;
    assert_eq!((view.record.state, view.record.attempt), (State::Succeeded, 1));
    let payload = view.payload.expect("readable");
    assert_eq!(payload.outcome, Some(text("delivered")));
}

#[tokio::test(start_paused = true)]
async fn what_was_started_cannot_be_called_undelivered() {
    // [LEASE-5] [STATE-3]
    let view = end_of_shy(true).await;
    assert_eq!((view.record.state, view.record.attempt), (State::Failed, 1));
}

/// An executor that says itself when its attempt runs.
#[derive(Clone)]
struct Announcing(Gate);

#[async_trait]
impl Executor for Announcing {
    async fn execute(&self, _: Attempt, context: TaskContext) -> Outcome {
        self.0.note(context.id());
        self.0.pass().await;
        if let Err(error) = context.protocol().leased().await {
            return Outcome::Failed(error);
        }
        self.0.note(context.id());
        self.0.pass().await;
        match context.protocol().runs().await {
            Ok(()) => text("ran"),
            Err(error) => Outcome::Failed(error),
        }
    }

    fn start_report(&self) -> StartReport {
        StartReport::ByExecutor
    }
}

#[async_trait]
impl ToolSet for Announcing {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![spec("announcing")]
    }

    async fn route(&self, _: &Call) -> Result<Route, Error> {
        Ok(Route::Task(Box::new(TaskPlan::from_spec(&spec("announcing")))))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(self.clone())
    }
}

/// A task whose executor was given it and has not said that it runs.
async fn unannounced() -> (Gate, Arc<Gated>, World, TaskId) {
    let (gate, store) = (Gate::new(), Gated::new());
    let tools = Arc::new(Announcing(gate.clone()));
    let options = options(Functions::new()).with_tools(tools).with_store(store.clone());
    let world = World::with(options);
    let id = world.call("announcing").await;
    gate.begun(1).await;
    assert_eq!(world.view(id).await.record.state, State::Scheduled);
    (gate, store, world, id)
}

#[tokio::test(start_paused = true)]
async fn an_executor_can_wait_for_the_commit_of_its_lease() {
    // [DUR-6]
    let (gate, store, world, id) = unannounced().await;
    store.hold_commits();
    gate.open(2);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(gate.n_begun(), 1, "it went on before its lease was committed");
    store.commit();
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn an_executor_whose_lease_was_lost_does_not_go_on() {
    // [DUR-6] [LEASE-1]
    let (gate, store, world, _) = unannounced().await;
    store.lose();
    gate.open(1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(gate.n_begun(), 1);
    drop(world);
}

#[tokio::test(start_paused = true)]
async fn a_start_is_told_until_the_store_keeps_it() {
    // [DUR-5] [STATE-4]
    let (gate, store, world, id) = unannounced().await;
    gate.open(1);
    gate.begun(2).await;
    store.break_down();
    gate.open(1);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mended = world.handle.now();
    store.mend();
    let record = world.end(id).await.record;
    assert_eq!((record.state, record.started_at >= Some(mended)), (State::Succeeded, true));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_store_forgot_it_is_told_that_it_is_lost() {
    // [LEASE-2] [LEASE-3]
    let gate = Gate::new();
    let options = options(gate.tool(Functions::new(), spec("gate")));
    let store = Arc::clone(&options.store);
    let world = World::with(options);
    let id = world.call("gate").await;
    let record = world.reaches(id, State::Running).await.record;
    // Another life of the store has taken the lease away.
    let lapsed = record.deadlines.get(raincheck_core::deadline::Kind::Lease).expect("a lease");
    store.fire(lapsed, 10).await.expect("fired");
    let view = world.end(id).await;
    assert_eq!((failure(&view).kind, view.record.state), (Kind::WorkerLost, State::Failed));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(gate.told(), [StopReason::Lost]);
    gate.open(1);
}

#[tokio::test(start_paused = true)]
async fn a_function_that_computes_for_long_is_not_called_unaccepted() {
    // [STATE-5] [LEASE-4]
    let store = Arc::new(MemoryStore::default());
    let timers = Arc::clone(&store);
    let tools = Functions::new().with(spec("busy"), move |_, context| {
        let timers = Arc::clone(&timers);
        async move {
            // What another thread does while this one computes.
            let later = context.now() + Duration::from_secs(6);
            timers.fire(later, 10).now_or_never().expect("in memory").expect("fired");
            text("computed")
        }
    });
    let world = World::with(options(tools).with_store(store));
    let id = world.call("busy").await;
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
}

/// An executor that is clumsy, or slow, when it hears that an outcome is recorded.
struct Deaf {
    panics: bool,
}

#[async_trait]
impl Executor for Deaf {
    async fn execute(&self, _: Attempt, _: TaskContext) -> Outcome {
        tokio::time::sleep(Duration::from_secs(1)).await;
        text("fine")
    }

    async fn on_outcome_committed(&self, _: TaskId, _: u32) {
        assert!(!self.panics, "a bug of the executor");
        tokio::time::sleep(Duration::from_secs(3600)).await;
    }
}

#[async_trait]
impl ToolSet for Deaf {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![spec("deaf")]
    }

    async fn route(&self, _: &Call) -> Result<Route, Error> {
        Ok(Route::Task(Box::new(TaskPlan::from_spec(&spec("deaf")))))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(Self { panics: self.panics })
    }
}

#[tokio::test(start_paused = true)]
async fn an_executor_that_panics_after_its_attempt_takes_no_other_task_with_it() {
    // [QUEUE-6]
    let world = World::with(options(Functions::new()).with_tools(Arc::new(Deaf { panics: true })));
    let (first, second) = (world.call("deaf").await, world.call("deaf").await);
    for id in [first, second] {
        assert_eq!(world.end(id).await.record.state, State::Succeeded);
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_of_a_log_is_not_kept_by_an_executor_that_tidies_up() {
    // [CALL-4] [LOG-1]
    let world = World::with(options(Functions::new()).with_tools(Arc::new(Deaf { panics: false })));
    let (id, before) = (world.call("deaf").await, world.handle.now());
    let page = world.handle.logs(&Scope::local(), id, 0, 10, LONG).await.expect("a page");
    assert!(page.items.is_empty());
    let waited = world.handle.now().since(before);
    assert!(waited < Duration::from_secs(2), "it ended after a second, not {waited:?}");
}
