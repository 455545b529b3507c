//! A tool set of your own: tools that are not known at compile time, and what runs them.

use std::sync::Arc;

use async_trait::async_trait;
use raincheck::Raincheck;
use raincheck::core::content::{Content, Json};
use raincheck::core::error::{Error, Kind};
use raincheck::core::ids::LaneId;
use raincheck::core::lane;
use raincheck::core::task::Outcome;
use raincheck::core::tool::ToolSpec;
use raincheck::runtime::{Attempt, Call, Executor, Route, TaskContext, TaskPlan, ToolSet};

/// A machine somewhere else, by the names of what it can do.
struct Machine {
    jobs: Vec<&'static str>,
}

impl Machine {
    fn find(&self, name: &str) -> Option<ToolSpec> {
        self.specs().into_iter().find(|spec| spec.name.as_str() == name)
    }
}

#[async_trait]
impl ToolSet for Machine {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |job: &&str| ToolSpec {
            lane: LaneId::from("machine"),
            ..ToolSpec::new(*job, "Runs on the machine", Json::empty_object())
        };
        self.jobs.iter().map(spec).collect()
    }

    fn lanes(&self) -> Vec<(LaneId, lane::Config)> {
        // One at a time, and up to ten that wait.
        vec![(LaneId::from("machine"), lane::Config::new(1, 10))]
    }

    async fn route(&self, call: &Call) -> Result<Route, Error> {
        let unknown = || Error::new(Kind::UnknownTool, format!("no job is named `{}`", call.tool));
        let spec = self.find(call.tool.as_str()).ok_or_else(unknown)?;
        Ok(Route::Task(Box::new(TaskPlan::from_spec(&spec))))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(Remote)
    }
}

/// Hands attempts to the machine.
struct Remote;

#[async_trait]
impl Executor for Remote {
    async fn execute(&self, attempt: Attempt, context: TaskContext) -> Outcome {
        // Here the inputs would go over the network.
        tokio::select! {
            () = tokio::time::sleep(std::time::Duration::from_secs(5)) => {
                Outcome::Succeeded(vec![Content::Json(attempt.inputs)])
            }
            () = context.cancellation_token().cancelled() => Outcome::Cancelled,
        }
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    Raincheck::builder().tools(Machine { jobs: vec!["weave", "dye"] }).serve_stdio().await
}
