use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use raincheck_core::decide::KILL_MARGIN;
use raincheck_core::error::{Error, Kind};
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{
    Attempt, Call, Executor, Functions, Route, StartReport, StopReason, TaskContext, TaskPlan,
    ToolSet,
};

use crate::world::{Gate, World, polite, request, spec, text};

#[tokio::test(start_paused = true)]
async fn a_task_that_is_cancelled_in_line_never_runs() {
    // [CANCEL-1]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    world.call("gate").await;
    let second = world.call("gate").await;
    assert_eq!(world.cancel(second).await, (State::Cancelled, true));
    gate.open(9);
    let third = world.call("gate").await;
    world.end(third).await;
    assert!(!gate.begun(2).await.contains(&second));
}

#[tokio::test(start_paused = true)]
async fn a_running_task_is_told_at_once_and_ends_by_its_own_event() {
    // [CANCEL-2]
    let world = World::new(polite(Functions::new(), spec("polite")));
    let id = world.call("polite").await;
    world.reaches(id, State::Running).await;
    let before = world.handle.now();
    assert_eq!(world.cancel(id).await, (State::CancelRequested, true));
    let view = world.end(id).await;
    assert_eq!(view.record.state, State::Cancelled);
    assert_eq!(view.record.ended_at, Some(before), "nothing waited");
    let reason = view.record.cancel.and_then(|cancel| cancel.reason);
    assert_eq!(reason.as_deref(), Some("enough"));
}

#[tokio::test(start_paused = true)]
async fn a_running_task_that_cannot_be_cancelled_still_reports_its_result() {
    // [CANCEL-3]
    let gate = Gate::new();
    let stubborn = ToolSpec { supports_cancel: false, ..spec("gate") };
    let world = World::new(gate.tool(Functions::new(), stubborn));
    let id = world.call("gate").await;
    world.reaches(id, State::Running).await;
    assert_eq!(world.cancel(id).await, (State::CancelRequested, true));
    assert_eq!(world.cancel(id).await, (State::CancelRequested, true));
    tokio::time::sleep(Duration::from_secs(60)).await;
    gate.open(1);
    let view = world.end(id).await;
    assert_eq!(view.record.state, State::Succeeded);
    assert!(view.record.cancel.is_some() && gate.told().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_the_end_is_a_normal_answer() {
    // [CANCEL-4]
    let world = World::new(Functions::new().with(spec("quick"), |_, _| async { text("done") }));
    let id = world.call("quick").await;
    world.end(id).await;
    assert_eq!(world.cancel(id).await, (State::Succeeded, false));
    let foreign = world.handle.cancel(&Scope::new("other"), id, None).await.expect_err("hidden");
    assert_eq!(foreign, Error::not_found());
}

#[tokio::test(start_paused = true)]
async fn an_outcome_from_before_the_cancel_was_seen_wins() {
    // [CANCEL-5]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    let id = world.call("gate").await;
    world.reaches(id, State::Running).await;
    world.cancel(id).await;
    gate.open(1);
    let view = world.end(id).await;
    assert_eq!((view.record.state, view.record.cancel.is_some()), (State::Succeeded, true));
}

#[tokio::test(start_paused = true)]
async fn after_the_commitment_to_end_only_cancelled_is_left() {
    // [CANCEL-5]
    let tools = Functions::new().with(spec("late"), |_, context| async move {
        context.cancellation_token().cancelled().await;
        context.protocol().committed_to_end().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        text("finished all the same")
    });
    let world = World::new(tools);
    let id = world.call("late").await;
    world.reaches(id, State::Running).await;
    world.cancel(id).await;
    world.reaches(id, State::Cancelling).await;
    assert_eq!(world.end(id).await.record.state, State::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn past_the_grace_the_task_ends_but_its_place_waits_for_the_executor() {
    // [CANCEL-6] [QUEUE-6] [LEASE-7]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    let id = world.call("gate").await;
    world.reaches(id, State::Running).await;
    let before = world.handle.now();
    world.cancel(id).await;
    let next = world.call("gate").await;
    let view = world.end(id).await;
    assert_eq!(view.record.state, State::Cancelled);
    let grace = view.record.task.limits.grace + KILL_MARGIN;
    assert_eq!(view.record.ended_at, Some(before + grace));
    assert_eq!(gate.told(), [StopReason::Cancelled]);
    assert_eq!(world.view(next).await.record.state, State::Queued);
    gate.open(2);
    assert_eq!(world.end(next).await.record.state, State::Succeeded);
    let late = world.view(id).await.payload.expect("readable").late.clone();
    assert_eq!(late, Some(text("through the gate")));
}

/// An executor that reports its start itself, late, and counts whether it was ever called.
struct Late(Arc<AtomicBool>);

#[async_trait]
impl Executor for Late {
    async fn execute(&self, _: Attempt, context: TaskContext) -> Outcome {
        self.0.store(true, Ordering::SeqCst);
        tokio::select! {
            () = context.cancellation_token().cancelled() => {}
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
        match context.protocol().accepted().await.and(context.protocol().started().await) {
            Ok(()) if context.stop_reason().is_none() => text("ran"),
            Ok(()) => Outcome::Cancelled,
            Err(error) => Outcome::Failed(error),
        }
    }

    fn start_report(&self) -> StartReport {
        StartReport::ByExecutor
    }
}

#[async_trait]
impl ToolSet for Late {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![ToolSpec::new("late", "starts late", raincheck_core::content::Json::empty_object())]
    }

    async fn route(&self, _: &Call) -> Result<Route, Error> {
        Ok(Route::Task(Box::new(TaskPlan::from_spec(&self.specs()[0]))))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(Self(Arc::clone(&self.0)))
    }
}

fn late() -> (World, Arc<AtomicBool>) {
    let was_called = Arc::new(AtomicBool::new(false));
    let set = Late(Arc::clone(&was_called));
    let options = raincheck_runtime::Options::in_memory().with_tools(Arc::new(set));
    (World::with(options), was_called)
}

#[tokio::test(start_paused = true)]
async fn an_executor_that_reports_its_start_is_scheduled_until_then() {
    // [TIME-3] [LEASE-5]
    let (world, _) = late();
    let id = world.call("late").await;
    assert_eq!(world.view(id).await.record.state, State::Scheduled);
    assert_eq!(world.view(id).await.record.timeout_at(), None);
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_between_the_lease_and_the_start_is_seen() {
    // [CANCEL-2]
    let (world, was_called) = late();
    let accepted = world.submit(request("late")).await;
    // Nothing has run since the submit: the driver is spawned but was not polled.
    assert_eq!(accepted.record.state, State::Scheduled);
    assert_eq!(world.cancel(accepted.record.id()).await, (State::CancelRequested, true));
    assert_eq!(world.end(accepted.record.id()).await.record.state, State::Cancelled);
    assert!(!was_called.load(Ordering::SeqCst), "it was cancelled before it could run");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_task_cannot_be_cancelled() {
    // [CANCEL-4] [SCOPE-2]
    let (world, _) = late();
    let id = raincheck_core::ids::TaskId::from_parts(1, [1; 10]);
    let error = world.handle.cancel(&Scope::local(), id, None).await.expect_err("unknown");
    assert_eq!(error.kind, Kind::NotFound);
}
