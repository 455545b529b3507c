//! The tools of one bridge, and where their calls go.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::ids::{LaneId, TaskId, ToolName};
use raincheck_core::lane;
use raincheck_core::retry;
use raincheck_core::scope::Scope;
use raincheck_core::task::{Limits, Outcome, WaitReason};
use raincheck_core::tool::{Class, ToolSpec};

use crate::executor::Executor;

/// The lane of control tools that need an executor all the same; it never makes them wait for
/// others [QUEUE-4].
pub const CONTROL_LANE: &str = "control";

/// A call before anything is decided about it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The tool.
    pub tool: ToolName,
    /// Its arguments.
    pub inputs: Json,
    /// Who calls.
    pub scope: Scope,
    /// By which connection of a client, where that is known: the same for each call of one window, also
    /// when another server takes over.
    pub connection: Option<Arc<str>>,
    /// The identity of the task, should it become a new one.
    pub id: TaskId,
}

/// Where a call goes.
#[derive(Clone, Debug)]
pub enum Route {
    /// It is answered from memory and enters no lane [QUEUE-4].
    Answer(Outcome),
    /// It becomes a task.
    Task(Box<TaskPlan>),
}

/// How a call becomes a task.
#[derive(Clone, Debug)]
pub struct TaskPlan {
    /// The lane it stands in, unless the caller names another.
    pub lane: LaneId,
    /// Set while what it needs is not ready: the task starts `waiting`.
    pub waiting: Option<WaitReason>,
    /// Its time limits, before the caller's wishes.
    pub limits: Limits,
    /// When a failed attempt is followed by another.
    pub retry: retry::Policy,
    /// What the store keeps and the executor is given in the place of the inputs, where these are not for the
    /// store. An idempotency key stands for the inputs as they were given.
    pub inputs: Option<Json>,
}

impl TaskPlan {
    /// Places a call as the tool's own description says.
    #[must_use]
    pub fn from_spec(spec: &ToolSpec) -> Self {
        Self {
            lane: match spec.class {
                Class::Control => LaneId::from(CONTROL_LANE),
                Class::Lane => spec.lane.clone(),
            },
            waiting: None,
            limits: Limits {
                run_timeout: spec.run_timeout,
                grace: spec.grace,
                ..Limits::default()
            },
            retry: spec.retry.clone(),
            inputs: None,
        }
    }
}

/// Says that the tools of a set are others than before. Cloning is cheap.
///
/// ```
/// let changes = raincheck_runtime::ToolsChanged::new();
/// changes.tell();
/// ```
#[derive(Clone, Debug)]
pub struct ToolsChanged(watch::Sender<u64>);

impl ToolsChanged {
    /// Begins with the tools that the set has now.
    #[must_use]
    pub fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// Tells that [`ToolSet::specs`] answers something else from now on.
    pub fn tell(&self) {
        self.0.send_modify(|version| *version += 1);
    }

    /// Returns how often it was told.
    pub(crate) fn version(&self) -> u64 {
        *self.0.borrow()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

impl Default for ToolsChanged {
    fn default() -> Self {
        Self::new()
    }
}

/// The tools of one bridge: what they are, where their calls go, and who runs them.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use raincheck_core::content::{Content, Json};
/// use raincheck_core::error::Error;
/// use raincheck_core::task::Outcome;
/// use raincheck_core::tool::ToolSpec;
/// use raincheck_runtime::{Attempt, Call, Executor, Route, TaskContext, TaskPlan, ToolSet};
///
/// /// One tool that gives back what it is given.
/// struct Echo(ToolSpec);
///
/// #[async_trait]
/// impl ToolSet for Echo {
///     fn specs(&self) -> Vec<ToolSpec> {
///         vec![self.0.clone()]
///     }
///
///     async fn route(&self, _: &Call) -> Result<Route, Error> {
///         Ok(Route::Task(Box::new(TaskPlan::from_spec(&self.0))))
///     }
///
///     fn executor(&self) -> Arc<dyn Executor> {
///         Arc::new(Runner)
///     }
/// }
///
/// struct Runner;
///
/// #[async_trait]
/// impl Executor for Runner {
///     async fn execute(&self, attempt: Attempt, _: TaskContext) -> Outcome {
///         Outcome::Succeeded(vec![Content::Json(attempt.inputs)])
///     }
/// }
///
/// let echo = Echo(ToolSpec::new("echo", "Gives back its inputs", Json::empty_object()));
/// let (engine, service) = raincheck_runtime::start(
///     raincheck_runtime::Options::in_memory().with_tools(Arc::new(echo)),
/// );
/// # drop((engine, service));
/// ```
#[async_trait]
pub trait ToolSet: Send + Sync + 'static {
    /// Describes the tools, as they are now. Asked at the start, and after each change that was
    /// [told](Self::changes).
    fn specs(&self) -> Vec<ToolSpec>;

    /// Returns what tells that the tools changed; `None` when they never do. Asked once, at the start.
    fn changes(&self) -> Option<ToolsChanged> {
        None
    }

    /// Waits until the set knows its tools, where somebody else has to name them first.
    ///
    /// # Errors
    /// Why they are not known yet: a name that nobody knows may be one of them. Nothing was executed.
    async fn known(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Names the lanes that the tools need. Asked once, at the start.
    fn lanes(&self) -> Vec<(LaneId, lane::Config)> {
        Vec::new()
    }

    /// Decides where a call goes. The name is one of [`specs`](Self::specs).
    ///
    /// # Errors
    /// When the call cannot be taken at all; nothing was executed.
    async fn route(&self, call: &Call) -> Result<Route, Error>;

    /// Returns what runs the attempts. Asked once, at the start.
    fn executor(&self) -> Arc<dyn Executor>;

    /// Returns the folder that holds the artifacts of the set: each lies below it, at the task's id and
    /// then at [`Artifact::path`](raincheck_core::task::Artifact::path). `None` when the set leaves
    /// none.
    fn artifacts(&self) -> Option<PathBuf> {
        None
    }

    /// Lists tasks of which the bridge holds something that no server uses, such as files of an attempt
    /// that an earlier server left. Asked once after the store was opened; those of which the store has
    /// nothing are [forgotten](Self::forget).
    async fn leftovers(&self) -> Vec<TaskId> {
        Vec::new()
    }

    /// Removes what the bridge keeps of tasks that nobody can read any more [SWEEP-1], and of a call that it
    /// [routed](Self::route) to a lane and that became no task.
    async fn forget(&self, ids: &[TaskId]) {
        let _ = ids;
    }
}

impl fmt::Debug for dyn ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.specs().iter().map(|spec| &spec.name)).finish()
    }
}
