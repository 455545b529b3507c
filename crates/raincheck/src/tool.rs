//! A function of this process as a tool.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::{Content, Json, NotJson};
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::LaneId;
use raincheck_core::retry;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Attempt, Functions, TaskContext};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::tool_error::ToolError;

type Run = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// An async function with a name, a description and the limits of its runs.
///
/// When the task is cancelled or its time is over, a function that has asked for its
/// [cancellation token](TaskContext::cancellation_token) goes on for the [grace](Self::grace) to clean up;
/// any other is dropped at its next `.await`, so that what must be put in order then belongs in a `Drop`.
/// A panic fails the task as `panicked`; the server goes on.
///
/// ```
/// use std::time::Duration;
///
/// use raincheck::{TaskContext, Tool, ToolError};
///
/// async fn double(n: u64, _: TaskContext) -> Result<u64, ToolError> {
///     n.checked_mul(2).ok_or_else(|| ToolError::new("too large to double"))
/// }
///
/// let tool = Tool::new("double", "Doubles a number", double)
///     .wait(Duration::from_secs(2))
///     .run_timeout(Duration::from_secs(60))
///     .idempotent();
/// ```
#[derive(Clone)]
pub struct Tool {
    spec: ToolSpec,
    run: Arc<dyn Fn(Attempt, TaskContext, Telling) -> Run + Send + Sync>,
}

/// How much is told of inputs that do not fit.
#[derive(Clone, Copy, Debug)]
enum Telling {
    /// What is wrong with which value.
    Values,
    /// Where something is wrong: a value may be sensitive.
    Places,
}

impl Tool {
    /// Makes a tool whose inputs are any JSON object that `I` can be read from.
    ///
    /// Inputs that `I` cannot be read from fail the task with `invalid_params`; give a
    /// [`schema`](Self::schema) and they are refused before it is accepted.
    pub fn new<I, O, F, R>(name: &str, description: &str, function: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + Send + 'static,
        F: Fn(I, TaskContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        let any = Json::parse(r#"{"type":"object"}"#).unwrap_or_else(|_| Json::empty_object());
        let run = move |attempt: Attempt, context: TaskContext, telling: Telling| -> Run {
            let inputs = match attempt.inputs.read::<I>() {
                Ok(inputs) => inputs,
                Err(error) => {
                    let what = match telling {
                        Telling::Values => error.to_string(),
                        Telling::Places => {
                            format!("see line {} column {}", error.line(), error.column())
                        }
                    };
                    return Box::pin(std::future::ready(unreadable(&what)));
                }
            };
            let work = function(inputs, context.clone());
            let grace = attempt.record.task.limits.grace;
            Box::pin(async move {
                let mut work = pin!(async { outcome(work.await) });
                tokio::select! {
                    biased;
                    ended = &mut work => match context.protocol().is_stopped() {
                        // It noticed at the same moment.
                        true => interrupted(ended),
                        false => ended,
                    },
                    () = context.protocol().stopped() => wind_down(work, &context, grace).await,
                }
            })
        };
        Self { spec: ToolSpec::new(name, description, any), run: Arc::new(run) }
    }

    /// Makes a tool whose input schema is derived from `I`. What does not fit it is refused with
    /// `invalid_params` before a task is made.
    ///
    /// ```
    /// use raincheck::{TaskContext, Tool, ToolError};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Scene {
    ///     frames: u64,
    /// }
    ///
    /// async fn render(scene: Scene, _: TaskContext) -> Result<u64, ToolError> {
    ///     Ok(scene.frames)
    /// }
    ///
    /// let tool = Tool::derived("render", "Renders a scene", render);
    /// ```
    #[cfg(feature = "schemars")]
    pub fn derived<I, O, F, R>(name: &str, description: &str, function: F) -> Self
    where
        I: DeserializeOwned + schemars::JsonSchema + Send + 'static,
        O: Serialize + Send + 'static,
        F: Fn(I, TaskContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        let tool = Self::new(name, description, function);
        match Json::of(&schemars::schema_for!(I)) {
            Ok(schema) => tool.with(|spec| spec.input_schema = schema),
            Err(_) => tool,
        }
    }

    /// Sets the JSON Schema of the inputs, an object schema. Inputs that do not fit are refused with
    /// `invalid_params`, which names up to five faults, before a task is made.
    ///
    /// ```
    /// # use raincheck::{TaskContext, Tool, ToolError};
    /// # async fn render(_: serde_json::Value, _: TaskContext) -> Result<u64, ToolError> { Ok(1) }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let schema = r#"{"type":"object","properties":{"frames":{"type":"integer"}}}"#;
    /// let tool = Tool::new("render", "Renders a scene", render).schema(schema)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the text is no JSON.
    pub fn schema(self, schema: &str) -> Result<Self, NotJson> {
        let schema = Json::parse(schema)?;
        Ok(self.with(|spec| spec.input_schema = schema))
    }

    /// Sets how long a direct call waits before it answers with a task id. What the client itself waits
    /// for is the limit of it; the end of the wait never touches the task.
    #[must_use]
    pub fn wait(self, wait: Duration) -> Self {
        self.with(|spec| spec.wait = wait)
    }

    /// Sets how long an attempt may run, beginning with its start; the lane's limit holds as well. When
    /// the time is over the function gets its [grace](Self::grace), and the task ends as `run_timeout`.
    #[must_use]
    pub fn run_timeout(self, limit: Duration) -> Self {
        self.with(|spec| spec.run_timeout = Some(limit))
    }

    /// Says that running it twice is the same as running it once: a lost attempt may be followed by
    /// another, as often as its [retry policy](Self::retry) allows, twice unless that says more
    /// [LEASE-3].
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.with(|spec| {
            spec.is_idempotent = true;
            spec.hints.idempotent = true;
            spec.retry.max_attempts = spec.retry.max_attempts.max(2);
        })
    }

    /// Sets when a failed attempt is followed by another.
    ///
    /// ```
    /// use raincheck::core::error::Kind;
    /// use raincheck::core::retry::Policy;
    /// # use raincheck::{TaskContext, Tool, ToolError};
    /// # async fn fetch(url: String, _: TaskContext) -> Result<String, ToolError> { Ok(url) }
    ///
    /// let tool = Tool::new("fetch", "Fetches a page", fetch)
    ///     .idempotent()
    ///     .retry(Policy { max_attempts: 5, on: vec![Kind::ToolFailed], ..Policy::default() });
    /// ```
    #[must_use]
    pub fn retry(self, policy: retry::Policy) -> Self {
        self.with(|spec| spec.retry = policy)
    }

    /// Says that it cannot be stopped once it runs: a cancel is recorded, and its outcome stands
    /// [CANCEL-3].
    #[must_use]
    pub fn not_cancellable(self) -> Self {
        self.with(|spec| spec.supports_cancel = false)
    }

    /// Sets how long it has to clean up when it is cancelled or its time is over; 5 s by default.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        self.with(|spec| spec.grace = grace)
    }

    /// Sets the priority of calls that name none, -100 to 100: higher runs first.
    #[must_use]
    pub fn priority(self, priority: i8) -> Self {
        self.with(|spec| spec.priority = priority)
    }

    /// Sets the lane it runs in, one of the built-in ones or of
    /// [`Builder::lane`](crate::Builder::lane).
    #[must_use]
    pub fn lane(self, lane: impl Into<LaneId>) -> Self {
        let lane = lane.into();
        self.with(|spec| spec.lane = lane)
    }

    /// Changes anything else that the engine knows of the tool.
    ///
    /// ```
    /// # use raincheck::{TaskContext, Tool, ToolError};
    /// # async fn login(_: serde_json::Value, _: TaskContext) -> Result<(), ToolError> { Ok(()) }
    /// let tool = Tool::new("login", "Signs in", login)
    ///     .with(|spec| spec.sensitive = ["/password".to_owned()].into());
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut ToolSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// Adds the tool to a set of functions.
    pub(crate) fn add_to(self, functions: Functions) -> Functions {
        let Self { spec, run } = self;
        let telling = if spec.sensitive.is_empty() { Telling::Values } else { Telling::Places };
        functions.with(spec, move |attempt, context| run(attempt, context, telling))
    }
}

/// Ends a function that has to stop: one that notices gets the grace to clean up. What it still brings
/// is kept beside the end [CANCEL-5].
async fn wind_down(
    work: impl Future<Output = Outcome>,
    context: &TaskContext,
    grace: Duration,
) -> Outcome {
    let protocol = context.protocol();
    if !protocol.is_noticed() {
        protocol.committed_to_end().await;
        return Outcome::Cancelled;
    }
    let work = async {
        tokio::select! {
            biased;
            ended = work => Some(ended),
            () = context.sleep(grace) => None,
        }
    };
    let (ended, ()) = tokio::join!(work, protocol.committed_to_end());
    ended.map_or(Outcome::Cancelled, interrupted)
}

/// Returns how a function ended that had to stop.
fn interrupted(ended: Outcome) -> Outcome {
    match ended {
        succeeded @ Outcome::Succeeded(_) => succeeded,
        // That it was interrupted is no failure of the tool.
        Outcome::Failed(_) | Outcome::Cancelled => Outcome::Cancelled,
    }
}

fn outcome<O: Serialize>(result: Result<O, ToolError>) -> Outcome {
    match result.map(|value| Json::of(&value)) {
        Ok(Ok(json)) => Outcome::Succeeded(vec![Content::Json(json)]),
        Ok(Err(error)) => Outcome::Failed(Error::new(
            Kind::InvalidResponse,
            format!("the result cannot be written as JSON: {error}"),
        )),
        Err(fault) => Outcome::Failed(fault.into_error()),
    }
}

fn unreadable(what: &str) -> Outcome {
    let error = Error::new(Kind::InvalidParams, format!("the inputs do not fit: {what}"));
    Outcome::Failed(error.with_guarantee(Guarantee::NotExecuted))
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("spec", &self.spec).finish_non_exhaustive()
    }
}
