//! Tools that are async functions of this process.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{LaneId, ToolName};
use raincheck_core::lane;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;

use crate::context::TaskContext;
use crate::executor::{Attempt, Executor, StartReport};
use crate::toolset::{Call, Route, TaskPlan, ToolSet};

type Run = Pin<Box<dyn Future<Output = Outcome> + Send>>;
type Function = Arc<dyn Fn(Attempt, TaskContext) -> Run + Send + Sync>;

/// A tool set made of functions.
///
/// ```
/// use raincheck_core::content::{Content, Json};
/// use raincheck_core::task::Outcome;
/// use raincheck_core::tool::ToolSpec;
/// use raincheck_runtime::Functions;
///
/// let echo = ToolSpec::new("echo", "Says it again", Json::empty_object());
/// let tools = Functions::new().with(echo, |attempt, _context| async move {
///     Outcome::Succeeded(vec![Content::Json(attempt.inputs)])
/// });
/// ```
#[derive(Clone, Default)]
pub struct Functions {
    tools: HashMap<ToolName, (ToolSpec, Function)>,
    order: Vec<ToolName>,
    lanes: Vec<(LaneId, lane::Config)>,
}

impl Functions {
    /// Makes an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool, or replaces the one of the same name.
    #[must_use]
    pub fn with<F, R>(mut self, spec: ToolSpec, function: F) -> Self
    where
        F: Fn(Attempt, TaskContext) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        let name = spec.name.clone();
        let run: Function = Arc::new(move |attempt, context| Box::pin(function(attempt, context)));
        if self.tools.insert(name.clone(), (spec, run)).is_none() {
            self.order.push(name);
        }
        self
    }

    /// Adds a lane, or changes what it may do.
    #[must_use]
    pub fn with_lane(mut self, lane: impl Into<LaneId>, config: lane::Config) -> Self {
        self.lanes.push((lane.into(), config));
        self
    }
}

#[async_trait]
impl ToolSet for Functions {
    fn specs(&self) -> Vec<ToolSpec> {
        let named = |name| self.tools.get(name).map(|(spec, _)| spec.clone());
        self.order.iter().filter_map(named).collect()
    }

    fn lanes(&self) -> Vec<(LaneId, lane::Config)> {
        self.lanes.clone()
    }

    async fn route(&self, call: &Call) -> Result<Route, Error> {
        let (spec, _) = self.tools.get(&call.tool).ok_or_else(|| unknown(&call.tool))?;
        Ok(Route::Task(Box::new(TaskPlan::from_spec(spec))))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Executor for Functions {
    async fn execute(&self, attempt: Attempt, context: TaskContext) -> Outcome {
        let Some((_, function)) = self.tools.get(&attempt.record.task.tool) else {
            return Outcome::Failed(unknown(&attempt.record.task.tool));
        };
        function(attempt, context).await
    }

    fn start_report(&self) -> StartReport {
        StartReport::AtFirstWait
    }
}

fn unknown(tool: &ToolName) -> Error {
    Error::new(Kind::UnknownTool, format!("no tool is named `{tool}`"))
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Functions").field(&self.order).finish()
    }
}
