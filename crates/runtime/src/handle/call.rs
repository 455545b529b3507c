//! A call of an embedder: the outcome when it comes in time, a handle when it does not [CALL-1].

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{TaskId, ToolName};
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;

use super::{Cancelled, Handle, Request, Submission, View, Waited};

impl Handle {
    /// Calls a tool and waits for its outcome as long as the tool's description says; a call that takes
    /// longer goes on, and is answered with a handle.
    ///
    /// ```no_run
    /// # async fn calls(engine: raincheck_runtime::Handle) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use raincheck_runtime::Called;
    ///
    /// let called = engine.call("render", [3, 4]).wait(Duration::from_secs(2)).await?;
    /// let outcome = match called {
    ///     Called::Outcome(outcome) => outcome,
    ///     Called::Task(task) => {
    ///         println!("{} takes longer", task.id());
    ///         task.outcome().await?
    ///     }
    /// };
    /// # let _ = outcome;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// `inputs` is anything that can be written as JSON.
    pub fn call(&self, tool: impl Into<ToolName>, inputs: impl Serialize) -> ToolCall {
        let request = Json::of(&inputs).map(|inputs| Request::new(tool, inputs, Scope::local()));
        let request = request.map_err(|error| {
            Error::new(
                Kind::InvalidParams,
                format!("the inputs cannot be written as JSON: {error}"),
            )
        });
        ToolCall { engine: self.clone(), request, wait: None }
    }
}

/// A call in the making; it begins when it is awaited.
#[must_use = "a call does nothing until it is awaited"]
pub struct ToolCall {
    engine: Handle,
    request: Result<Request, Error>,
    wait: Option<Duration>,
}

impl ToolCall {
    /// Sets how long to wait for the outcome, instead of the tool's own wait.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Sets the idempotency key: the same key with the same inputs is the same task [IDEM-1].
    pub fn key(self, key: impl Into<Arc<str>>) -> Self {
        let key = key.into();
        self.with(|request| request.key = Some(key))
    }

    /// Sets who owns the task; `local` by default.
    pub fn scope(self, scope: Scope) -> Self {
        self.with(|request| request.scope = scope)
    }

    /// Changes anything else of the request.
    pub fn with(mut self, change: impl FnOnce(&mut Request)) -> Self {
        if let Ok(request) = &mut self.request {
            change(request);
        }
        self
    }

    async fn make(self) -> Result<Called, Error> {
        let Self { engine, request, wait } = self;
        let mut request = request?;
        let of_tool = engine.spec(request.tool.as_str()).map_or(Duration::ZERO, |spec| spec.wait);
        let wait = wait.unwrap_or(of_tool);
        request.is_inline = !wait.is_zero();
        let scope = request.scope.clone();
        let accepted = match engine.submit(request).await? {
            Submission::Answer(outcome) => return Ok(Called::Outcome(outcome)),
            Submission::Task(accepted) => accepted,
        };
        let task = TaskHandle { engine: engine.clone(), scope, id: accepted.record.id() };
        Ok(match engine.wait_result(accepted, wait).await? {
            Waited::Result(result) => Called::Outcome(Outcome::Succeeded(result)),
            Waited::View(view) => match outcome_of(&view) {
                Some(outcome) => Called::Outcome(outcome),
                None => Called::Task(task),
            },
        })
    }
}

/// # Errors
/// As of [`Handle::submit`] and [`Handle::wait_accepted`].
///
/// # Cancel safety
/// Dropping it after its first poll loses nothing but the answer: a task that was accepted goes on.
impl IntoFuture for ToolCall {
    type Output = Result<Called, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.make())
    }
}

/// What became of a call.
#[derive(Clone, Debug)]
pub enum Called {
    /// It has ended.
    Outcome(Outcome),
    /// It goes on.
    Task(TaskHandle),
}

/// A task that goes on. Dropping it changes nothing about the task.
#[derive(Clone)]
pub struct TaskHandle {
    engine: Handle,
    scope: Scope,
    id: TaskId,
}

impl TaskHandle {
    /// Returns the identity of the task.
    #[must_use]
    pub const fn id(&self) -> TaskId {
        self.id
    }

    /// Reads the task.
    ///
    /// # Errors
    /// As of [`Handle::view`].
    pub async fn view(&self) -> Result<View, Error> {
        self.engine.view(&self.scope, self.id).await
    }

    /// Waits for the end; `None` when it has not come in time, or the engine has ended before it.
    ///
    /// # Errors
    /// As of [`Handle::wait_end`].
    pub async fn wait(&self, wait: Duration) -> Result<Option<Outcome>, Error> {
        Ok(outcome_of(&self.engine.wait_end(&self.scope, self.id, wait).await?))
    }

    /// Waits for the end, however long it takes.
    ///
    /// # Errors
    /// As of [`Handle::wait_end`]; `worker_lost` with the guarantee `unknown` when the engine ends
    /// before the task does.
    pub async fn outcome(&self) -> Result<Outcome, Error> {
        let ended = self.wait(Duration::MAX).await?;
        ended.ok_or_else(|| Error::new(Kind::WorkerLost, "the engine ended before the task did"))
    }

    /// Asks to end the task early.
    ///
    /// # Errors
    /// As of [`Handle::cancel`].
    pub async fn cancel(&self) -> Result<Cancelled, Error> {
        self.engine.cancel(&self.scope, self.id, None).await
    }
}

fn outcome_of(view: &View) -> Option<Outcome> {
    view.payload.as_ref().and_then(|payload| payload.outcome.clone())
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("request", &self.request)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle").field("id", &self.id).finish_non_exhaustive()
    }
}
