//! What ends early, late, or in a panic, and takes nothing else along.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::lifecycle::State;
use raincheck_core::log::{Draft, Level, Line, LogStore, Stream};
use raincheck_core::retry::Policy;
use raincheck_core::scope::Scope;
use raincheck_core::store::{self, Page};
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{
    Attempt, Call, Executor, Functions, Request, Route, StartReport, StopReason, Submission,
    TaskContext, TaskPlan, ToolSet,
};

use crate::world::{Gate, LONG, World, options, request, spec, text};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_wait_is_woken_by_the_end_of_the_engine() {
    // [CALL-4] [CANCEL-8]
    let gate = Gate::new();
    let stubborn = ToolSpec { supports_cancel: false, ..spec("gate") };
    let mut world = World::new(gate.tool(Functions::new(), stubborn));
    let id = world.call("gate").await;
    world.reaches(id, State::Running).await;
    let (handle, began) = (world.handle.clone(), world.handle.now());
    let wait = async {
        let view = handle.wait_end(&Scope::local(), id, LONG).await.expect("readable");
        (view.record.state, handle.now())
    };
    let scope = Scope::local();
    let logs = handle.logs(&scope, id, 0, 9, LONG);
    let end = async {
        tokio::task::yield_now().await;
        world.stop.cancel();
        world.service.join_next().await.expect("a service").expect("no panic");
    };
    let ((state, at), page, ()) = tokio::join!(wait, logs, end);
    assert_eq!((state, at), (State::Running, began));
    assert!(page.expect("readable").items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_task_runs_at_the_end_gets_its_id_and_no_lie() {
    // [LEASE-9] [CANCEL-8]
    let gate = Gate::new();
    let stubborn = ToolSpec { supports_cancel: false, ..spec("gate") };
    let mut world = World::new(gate.tool(Functions::new(), stubborn));
    let accepted = world.submit(Request { is_inline: true, ..request("gate") }).await;
    let id = accepted.record.id();
    world.reaches(id, State::Running).await;
    let handle = world.handle.clone();
    let end = async {
        world.stop.cancel();
        world.service.join_next().await.expect("a service").expect("no panic");
    };
    let (view, ()) = tokio::join!(handle.wait_accepted(accepted, LONG), end);
    assert_eq!(view.expect("its id").record.id(), id);
    let cancelled = handle.cancel(&Scope::local(), id, None).await.expect("how it stands");
    assert!(!cancelled.acknowledged);
}

/// A tool set whose routes are slow, and whose executor counts.
#[derive(Clone)]
struct Slow {
    routes: Arc<Semaphore>,
    n_runs: Arc<AtomicU32>,
}

#[async_trait]
impl ToolSet for Slow {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![spec("slow")]
    }

    async fn route(&self, _: &Call) -> Result<Route, Error> {
        self.routes.acquire().await.expect("open").forget();
        Ok(Route::Task(Box::new(TaskPlan::from_spec(&spec("slow")))))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Executor for Slow {
    async fn execute(&self, _: Attempt, _: TaskContext) -> Outcome {
        self.n_runs.fetch_add(1, Ordering::SeqCst);
        text("ran")
    }
}

#[tokio::test(start_paused = true)]
async fn a_submit_that_was_slow_to_find_its_way_does_not_run_after_the_end() {
    // [LEASE-9]
    let slow = Slow { routes: Arc::new(Semaphore::new(0)), n_runs: Arc::default() };
    let mut world = World::with(options(Functions::new()).with_tools(Arc::new(slow.clone())));
    world.handle.lanes().await.expect("open");
    let handle = world.handle.clone();
    let end = async {
        world.stop.cancel();
        world.service.join_next().await.expect("a service").expect("no panic");
        slow.routes.add_permits(1);
    };
    let (submitted, ()) = tokio::join!(handle.submit(request("slow")), end);
    assert_eq!(submitted.expect_err("too late").kind, Kind::StorageUnavailable);
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(slow.n_runs.load(Ordering::SeqCst), 0);
    let all = handle.list(&Scope::local(), &Default::default(), None, 9).await.expect("readable");
    assert!(all.items.is_empty(), "not_executed was the truth");
}

#[tokio::test]
async fn an_attempt_outlives_the_runtime_of_its_caller() {
    // [QUEUE-6]
    let gate = Gate::new();
    let world = World::new(gate.tool(Functions::new(), spec("gate")));
    world.handle.lanes().await.expect("open");
    let handle = world.handle.clone();
    let elsewhere = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        match runtime.block_on(handle.submit(request("gate"))).expect("accepted") {
            Submission::Task(accepted) => accepted.record.id(),
            Submission::Answer(_) => panic!("a task"),
        }
    });
    let id = elsewhere.await.expect("no panic");
    gate.begun(1).await;
    gate.open(1);
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
}

/// Logs that cannot be closed, not even by an error.
struct Brittle;

#[async_trait]
impl LogStore for Brittle {
    async fn append(&self, _: TaskId, _: Fence, lines: Vec<Draft>) -> Result<u64, store::Error> {
        assert!(lines.iter().all(|line| &*line.message != "break"), "as it was told to");
        Ok(1)
    }

    async fn limit(&self, _: TaskId, _: u64) {}

    async fn close(&self, _: TaskId) -> Result<(), store::Error> {
        panic!("the log is brittle");
    }

    async fn read(&self, _: TaskId, _: u64, _: u32) -> Result<Page<Line>, store::Error> {
        Ok(Page { items: Vec::new(), has_more: false })
    }

    async fn remove(&self, _: Vec<TaskId>) -> Result<(), store::Error> {
        Ok(())
    }

    fn folder(&self) -> Option<&Path> {
        None
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_panics_loses_neither_its_task_nor_the_next() {
    // [QUEUE-6]
    let gate = Gate::new();
    let passing = gate.clone();
    let tools = Functions::new().with(spec("wordy"), move |_, context| {
        let gate = passing.clone();
        async move {
            gate.pass().await;
            context.log(Stream::Stdout, Level::Info, "break").await;
            text("said")
        }
    });
    let world = World::with(options(tools).with_logs(Arc::new(Brittle)));
    let ids = [world.call("wordy").await, world.call("wordy").await, world.call("wordy").await];
    gate.open(3);
    for id in ids {
        let record = world.end(id).await.record;
        assert_eq!((record.state, record.attempt), (State::Succeeded, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_retried_timeout_stops_its_executor_at_once() {
    // [TIME-3] [RETRY-1]
    let gate = Gate::new();
    let keen = ToolSpec {
        run_timeout: Some(3 * SECOND),
        retry: Policy { max_attempts: 2, on: vec![Kind::RunTimeout], ..Policy::default() },
        ..spec("gate")
    };
    let world = World::new(gate.tool(Functions::new(), keen));
    let id = world.call("gate").await;
    world.reaches(id, State::Running).await;
    tokio::time::sleep(3 * SECOND + SECOND / 10).await;
    assert_eq!(gate.told(), [StopReason::Lost]);
    gate.open(2);
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
}

/// An executor that is never reached.
#[derive(Clone, Default)]
struct Deaf(Arc<AtomicU32>);

#[async_trait]
impl Executor for Deaf {
    async fn execute(&self, _: Attempt, context: TaskContext) -> Outcome {
        self.0.fetch_add(1, Ordering::SeqCst);
        context.protocol().not_delivered().await.expect("it goes back");
        Outcome::Cancelled
    }

    fn start_report(&self) -> StartReport {
        StartReport::ByExecutor
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
        Arc::new(self.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_delivered_is_tried_again_less_and_less_often() {
    // [LEASE-5]
    let deaf = Deaf::default();
    let mut world = World::with(options(Functions::new()).with_tools(Arc::new(deaf.clone())));
    let id = world.call("deaf").await;
    tokio::time::sleep(60 * SECOND).await;
    let n = deaf.0.load(Ordering::SeqCst);
    assert!((8..16).contains(&n), "{n} tries in a minute");
    let record = world.view(id).await.record;
    assert_eq!((record.state, record.attempt), (State::Queued, 0), "none is spent");
    world.stop.cancel();
    world.service.join_next().await.expect("a service").expect("no panic");
    let lanes = world.handle.lanes().await.expect("readable");
    assert!(lanes.iter().all(|lane| lane.slots.is_empty()), "its slot is given back: {lanes:?}");
}

/// A tool set that panics when it is first told what was forgotten.
#[derive(Clone, Default)]
struct Forgetful(Arc<Mutex<Vec<TaskId>>>, Arc<AtomicU32>);

#[async_trait]
impl ToolSet for Forgetful {
    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    async fn route(&self, _: &Call) -> Result<Route, Error> {
        Err(Error::not_found())
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(Deaf::default())
    }

    async fn forget(&self, ids: &[TaskId]) {
        assert!(self.1.fetch_add(1, Ordering::SeqCst) > 0, "as it was told to");
        self.0.lock().expect("a list").extend(ids);
    }
}

#[tokio::test(start_paused = true)]
async fn a_background_job_that_panics_is_begun_again() {
    // [SWEEP-1]
    let forgetful = Forgetful::default();
    let tools = Functions::new().with(spec("quick"), |_, _| async { text("done") });
    let world = World::with(options(tools).with_tools(Arc::new(forgetful.clone())));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let ttl = Some(SECOND);
        let id = world.submit(Request { ttl, ..request("quick") }).await.record.id();
        world.end(id).await;
        ids.push(id);
        tokio::time::sleep(25 * 3600 * SECOND).await;
    }
    assert_eq!(*forgetful.0.lock().expect("a list"), ids[1..], "the sweep goes on");
}

/// A tool set with one tool, which notes the calls that it is asked about, and those that it is to forget.
#[derive(Clone, Default)]
struct Noting {
    asked: Arc<Mutex<Vec<TaskId>>>,
    forgotten: Arc<Mutex<Vec<TaskId>>>,
}

#[async_trait]
impl ToolSet for Noting {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![spec("noted")]
    }

    async fn route(&self, call: &Call) -> Result<Route, Error> {
        self.asked.lock().expect("a list").push(call.id);
        Ok(Route::Task(Box::new(TaskPlan::from_spec(&spec("noted")))))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(Deaf::default())
    }

    async fn forget(&self, ids: &[TaskId]) {
        self.forgotten.lock().expect("a list").extend(ids);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_set_hears_of_each_call_that_became_no_task() {
    let noting = Noting::default();
    let world = World::with(options(Functions::new()).with_tools(Arc::new(noting.clone())));
    let keyed = |inputs: &str| Request {
        key: Some("k".into()),
        inputs: Json::parse(inputs).expect("JSON"),
        ..request("noted")
    };
    world.submit(keyed("{}")).await;
    assert!(world.submit(keyed("{}")).await.existing);
    let error = world.handle.submit(keyed(r#"{"a":1}"#)).await.expect_err("other inputs");
    assert_eq!(error.kind, Kind::IdempotencyConflict);
    let priority = Some(120);
    let error = world.handle.submit(Request { priority, ..keyed("{}") }).await.expect_err("high");
    assert_eq!(error.kind, Kind::InvalidParams);
    let asked = noting.asked.lock().expect("a list").clone();
    let forgotten = noting.forgotten.lock().expect("a list").clone();
    assert_eq!((asked.len(), &forgotten[..]), (4, &asked[1..]));
}
