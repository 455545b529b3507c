use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use raincheck_core::content::Json;
use raincheck_core::decide::Change;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::{Fence, LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Claim, MemoryLimits, MemoryStore, Submit, TaskStore, Update};
use raincheck_core::task::{Limits, Outcome, Resources, Task};
use raincheck_core::time::Timestamp;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{
    Attempt, Call, Executor, Functions, Ids as _, OsIds, Route, TaskContext, TaskPlan, ToolSet,
};

use crate::world::{World, failure, options, spec, text};

/// A store in which an attempt of `tool` was under way when its last server ended.
async fn survivor(tool: &str, now: Timestamp) -> (Arc<dyn TaskStore>, TaskId) {
    let store = MemoryStore::new(MemoryLimits::default());
    let lane = LaneId::from("one");
    store.set_lane(lane.clone(), lane::Config::new(1, 4)).await.expect("a lane");
    let task = Task {
        id: OsIds.task(now),
        scope: Scope::local(),
        tool: tool.into(),
        lane: lane.clone(),
        priority: 0,
        tags: Vec::new(),
        key: None,
        inputs_hash: 0,
        limits: Limits::default(),
        resources: Resources::default(),
        supports_cancel: true,
        is_idempotent: false,
        retry: Default::default(),
        trace: None,
        submitted_at: now,
    };
    let id = task.id;
    let submit = Submit {
        task,
        inputs: Json::empty_object(),
        waiting: None,
        is_inline: false,
        is_known: false,
    };
    let claim = Claim { lanes: vec![lane], n: 1 };
    let posted = store.submit(now, vec![submit], Some(claim)).await.expect("accepted");
    assert_eq!(posted.value.1.len(), 1, "leased");
    (Arc::new(store), id)
}

#[tokio::test(start_paused = true)]
async fn an_attempt_of_which_nothing_is_left_is_lost_and_never_run_again() {
    // [DUR-3] [LEASE-3]
    let tools = Functions::new().with(spec("gone"), |_, _| async { text("ran again") });
    let mut options = options(tools);
    let id;
    (options.store, id) = survivor("gone", options.clock.now()).await;
    let world = World::with(options);
    let view = world.end(id).await;
    let error = failure(&view);
    assert_eq!((error.kind, error.guarantee()), (Kind::WorkerLost, Some(Guarantee::Unknown)));
    let next = world.call("gone").await;
    assert_eq!(world.end(next).await.record.state, State::Succeeded, "its place is free");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_gone_ends_its_tasks() {
    // [LEASE-3] [LEASE-4]
    let mut options = options(Functions::new());
    let id;
    (options.store, id) = survivor("removed", options.clock.now()).await;
    let world = World::with(options);
    let error = failure(&world.end(id).await);
    // Whether it ran before the restart is known to nobody.
    assert_eq!((error.kind, error.guarantee()), (Kind::WorkerLost, Some(Guarantee::Unknown)));
    assert!(error.message.contains("no tool `removed`"), "{}", error.message);
}

/// An executor whose attempts survive.
#[derive(Clone, Default)]
struct Surviving {
    recorded: watch::Sender<Option<(TaskId, u32)>>,
}

#[async_trait]
impl Executor for Surviving {
    async fn execute(&self, _: Attempt, _: TaskContext) -> Outcome {
        panic!("it runs already")
    }

    async fn reattach(&self, attempt: Attempt, context: TaskContext) -> Option<Outcome> {
        assert_eq!(attempt.record.fence, context.fence());
        context.protocol().started().await.ok()?;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(600)) => Some(text("survived")),
            () = context.cancellation_token().cancelled() => Some(Outcome::Cancelled),
        }
    }

    async fn on_outcome_committed(&self, id: TaskId, number: u32) {
        self.recorded.send_replace(Some((id, number)));
    }
}

#[async_trait]
impl ToolSet for Surviving {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![ToolSpec { run_timeout: None, ..spec("tough") }]
    }

    async fn route(&self, _: &Call) -> Result<Route, Error> {
        Ok(Route::Task(Box::new(TaskPlan::from_spec(&spec("tough")))))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(self.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_survived_goes_on_as_the_same_attempt() {
    // [DUR-3] [QUEUE-6]
    let tools = Surviving::default();
    let mut recorded = tools.recorded.subscribe();
    let mut options = options(Functions::new()).with_tools(Arc::new(tools));
    let id;
    (options.store, id) = survivor("tough", options.clock.now()).await;
    let world = World::with(options);
    let view = world.handle.wait_end(&Scope::local(), id, Duration::from_secs(300)).await;
    assert_eq!(view.expect("a task").record.state, State::Running);
    let view = world.end(id).await;
    assert!(view.record.attempt == 1, "no attempt was spent");
    // [LEASE-6] What was kept to tell the outcome again may go.
    let heard = recorded.wait_for(Option::is_some).await.expect("the executor");
    assert_eq!(*heard, Some((id, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_was_asked_for_before_the_restart_still_counts() {
    // [CANCEL-2] [DUR-3]
    let mut options = options(Functions::new()).with_tools(Arc::new(Surviving::default()));
    let now = options.clock.now();
    let id;
    (options.store, id) = survivor("tough", now).await;
    let update = Update { fence: None, ..Update::attempt(id, Fence::NONE, cancel()) };
    options.store.update(now, vec![update], None).await.expect("posted");
    let world = World::with(options);
    let wait = Duration::from_secs(1);
    let view = world.handle.wait_end(&Scope::local(), id, wait).await.expect("a task");
    assert_eq!(view.record.state, State::Cancelled);
}

fn cancel() -> Change {
    Change::RequestCancel { reason: None }
}

/// An executor to which an attempt never came, and which stops in the middle of saying so.
#[derive(Clone)]
struct Unreached;

#[async_trait]
impl Executor for Unreached {
    async fn execute(&self, _: Attempt, _: TaskContext) -> Outcome {
        text("ran at last")
    }

    async fn reattach(&self, _: Attempt, context: TaskContext) -> Option<Outcome> {
        context.protocol().not_delivered().await.expect("it goes back");
        std::future::pending().await
    }
}

#[async_trait]
impl ToolSet for Unreached {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![spec("unreached")]
    }

    async fn route(&self, _: &Call) -> Result<Route, Error> {
        Ok(Route::Task(Box::new(TaskPlan::from_spec(&spec("unreached")))))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(self.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_goes_back_after_a_restart_takes_its_place_along() {
    // [DUR-2] [QUEUE-6]: a server that is killed right after that leaves no place taken.
    let mut options = options(Functions::new()).with_tools(Arc::new(Unreached));
    let id;
    (options.store, id) = survivor("unreached", options.clock.now()).await;
    let world = World::with(options);
    let view = world.handle.wait_end(&Scope::local(), id, Duration::from_secs(5)).await;
    let record = view.expect("a task").record;
    assert_eq!((record.state, record.attempt), (State::Succeeded, 1));
}
