//! An engine that runs beside a test, and tools whose behaviour the test decides.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{
    Accepted, Functions, Handle, Options, Request, StopReason, Submission, View, start,
};

/// Longer than anything that is waited for; paused time makes it cheap.
pub(crate) const LONG: Duration = Duration::from_secs(7 * 24 * 3600);

/// A running engine. It is dropped with the test.
pub(crate) struct World {
    pub(crate) handle: Handle,
    pub(crate) stop: CancellationToken,
    pub(crate) service: JoinSet<()>,
}

impl World {
    pub(crate) fn with(options: Options) -> Self {
        let (handle, service) = start(options);
        let stop = CancellationToken::new();
        let mut set = JoinSet::new();
        set.spawn(service.run(stop.clone()));
        Self { handle, stop, service: set }
    }

    /// An engine with the tools and one lane `one` of concurrency 1.
    pub(crate) fn new(tools: Functions) -> Self {
        Self::with(options(tools))
    }

    pub(crate) async fn submit(&self, request: Request) -> Accepted {
        match self.handle.submit(request).await.expect("accepted") {
            Submission::Task(accepted) => accepted,
            Submission::Answer(_) => panic!("every tool of these tests is a task"),
        }
    }

    pub(crate) async fn call(&self, tool: &str) -> TaskId {
        self.submit(request(tool)).await.record.id()
    }

    pub(crate) async fn view(&self, id: TaskId) -> View {
        self.handle.view(&Scope::local(), id).await.expect("a task")
    }

    pub(crate) async fn end(&self, id: TaskId) -> View {
        self.handle.wait_end(&Scope::local(), id, LONG).await.expect("a task")
    }

    pub(crate) async fn cancel(&self, id: TaskId) -> (State, bool) {
        let cancelled =
            self.handle.cancel(&Scope::local(), id, Some("enough".into())).await.expect("a task");
        (cancelled.record.state, cancelled.acknowledged)
    }

    /// Waits until a task is in a state, by its events.
    pub(crate) async fn reaches(&self, id: TaskId, state: State) -> View {
        let mut watch = self.handle.watch(id);
        loop {
            let view = self.view(id).await;
            if view.record.state == state {
                return view;
            }
            assert!(!view.record.state.is_terminal(), "{id} ended as {}", view.record.state);
            watch.changed().await;
        }
    }
}

pub(crate) fn options(tools: Functions) -> Options {
    let one = lane::Config::new(1, 4);
    Options::in_memory().with_lane("one", one).with_tools(Arc::new(tools))
}

pub(crate) fn request(tool: &str) -> Request {
    Request::new(tool, Json::empty_object(), Scope::local())
}

/// A tool in the lane of concurrency 1.
pub(crate) fn spec(name: &str) -> ToolSpec {
    let mut spec = ToolSpec::new(name, "a tool of a test", Json::empty_object());
    spec.lane = LaneId::from("one");
    spec
}

pub(crate) fn text(words: &str) -> Outcome {
    Outcome::Succeeded(vec![Content::Text(words.into())])
}

pub(crate) fn failed() -> Outcome {
    Outcome::Failed(Error::new(Kind::ToolFailed, "as it was told to"))
}

pub(crate) fn failure(view: &View) -> Error {
    let payload = view.payload.as_ref().expect("a readable task");
    match payload.outcome.clone().expect("an outcome") {
        Outcome::Failed(error) => error,
        outcome => panic!("not a failure: {outcome:?}"),
    }
}

/// A tool that runs until the test lets it go, and cares for nothing else.
#[derive(Clone)]
pub(crate) struct Gate {
    permits: Arc<Semaphore>,
    begun: watch::Sender<Vec<TaskId>>,
    pub(crate) told: Arc<Mutex<Vec<StopReason>>>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(0)),
            begun: watch::Sender::default(),
            told: Arc::default(),
        }
    }

    /// Lets some runs end.
    pub(crate) fn open(&self, n: usize) {
        self.permits.add_permits(n);
    }

    /// Returns the tasks that were begun, in order, once there are `n`.
    pub(crate) async fn begun(&self, n: usize) -> Vec<TaskId> {
        let mut begun = self.begun.subscribe();
        begun.wait_for(|begun| begun.len() >= n).await.expect("the gate itself").clone()
    }

    pub(crate) fn n_begun(&self) -> usize {
        self.begun.borrow().len()
    }

    pub(crate) fn told(&self) -> Vec<StopReason> {
        self.told.lock().expect("a list").clone()
    }

    /// Notes that a task was begun.
    pub(crate) fn note(&self, id: TaskId) {
        self.begun.send_modify(|begun| begun.push(id));
    }

    /// Waits to be let go.
    pub(crate) async fn pass(&self) {
        self.permits.acquire().await.expect("an open semaphore").forget();
    }

    /// A tool that notes when it is told to stop but goes on until the gate opens.
    pub(crate) fn tool(&self, tools: Functions, spec: ToolSpec) -> Functions {
        let gate = self.clone();
        tools.with(spec, move |_, context| {
            let gate = gate.clone();
            async move {
                gate.note(context.id());
                let permit = tokio::select! {
                    permit = gate.permits.acquire() => permit,
                    () = context.cancellation_token().cancelled() => {
                        gate.told.lock().expect("a list").extend(context.stop_reason());
                        gate.permits.acquire().await
                    }
                };
                permit.expect("an open semaphore").forget();
                text("through the gate")
            }
        })
    }
}

/// A tool that ends as soon as it is told to stop.
pub(crate) fn polite(tools: Functions, spec: ToolSpec) -> Functions {
    tools.with(spec, |_, context| async move {
        context.cancellation_token().cancelled().await;
        context.protocol().committed_to_end().await;
        Outcome::Cancelled
    })
}
