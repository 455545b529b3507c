//! The other server as the engine sees it: a tool set and an executor.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use tokio::time::{sleep, timeout};

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::task::{Limits, Outcome};
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{
    Attempt, Call, Executor, Route, StartReport, StopReason, TaskContext, TaskPlan, ToolSet,
    ToolsChanged,
};

use super::Gateway;
use super::link::{Asked, Failure};
use super::message::LOST;
use super::outcome;
use super::traced::Traced;

/// How long an answer is still taken after a cancel was sent: one that was on its way counts [CANCEL-5].
const LAST_WORD: Duration = Duration::from_millis(500);

/// How long after the gateway its engine may still tell attempts to stop.
const END_OF_ENGINE: Duration = Duration::from_secs(5);

/// The parameters of `tools/call`.
#[derive(Serialize)]
struct Params<'a> {
    name: &'a str,
    arguments: &'a Json,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    progress_token: &'a str,
    #[serde(flatten)]
    trace: Option<Traced<'a>>,
}

#[async_trait]
impl ToolSet for Gateway {
    fn specs(&self) -> Vec<ToolSpec> {
        self.0.listing().specs.clone()
    }

    fn changes(&self) -> Option<ToolsChanged> {
        Some(self.0.changes.clone())
    }

    async fn known(&self) -> Result<(), Error> {
        self.0.known().await
    }

    fn lanes(&self) -> Vec<(LaneId, lane::Config)> {
        let settings = &self.0.settings;
        vec![(settings.lane.clone(), settings.config.clone())]
    }

    async fn route(&self, call: &Call) -> Result<Route, Error> {
        let listing = self.0.listing();
        let spec = listing.specs.iter().find(|spec| spec.name == call.tool).ok_or_else(|| {
            Error::new(Kind::UnknownTool, format!("no tool is named `{}`", call.tool))
        })?;
        Ok(Route::Task(Box::new(TaskPlan::from_spec(spec))))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Executor for Gateway {
    async fn execute(&self, attempt: Attempt, context: TaskContext) -> Outcome {
        let upstream = &self.0;
        let listed = attempt.record.task.tool.as_str();
        let token = format!("{}.{}", context.id(), context.attempt_number());
        let stop = context.cancellation_token().clone();
        let mut ready = upstream.settings.ready;
        loop {
            let from = context.running_time();
            let link = tokio::select! {
                biased;
                () = stop.cancelled() => return not_begun(&context).await,
                link = upstream.up() => match link {
                    Ok(link) => link,
                    Err(error) => return not_there(error, upstream.is_over(), &context).await,
                },
                () = context.sleep(ready) => return Outcome::Failed(upstream.absent()),
            };
            // All waits of a call together have one limit.
            ready = ready.saturating_sub(context.running_time().saturating_sub(from));
            // The list may have changed while the call was in line.
            let Some(name) = upstream.listing().names.get(listed).cloned() else {
                let message = format!("the wrapped server has no tool `{listed}` any more");
                return Outcome::Failed(Error::new(Kind::UnknownTool, message));
            };
            let scope = attempt.record.task.scope.clone();
            let _entered = upstream.calls.enter(&token, context.clone(), scope);
            let trace = context.trace().map(Traced::from);
            let meta = Meta { progress_token: &token, trace };
            let params = Params { name: &name, arguments: &attempt.inputs, meta };
            let mut asked = link.ask("tools/call", params);
            tokio::select! {
                biased;
                answer = asked.answer() => match answer {
                    // Nothing of it was written: it is another connection's turn.
                    Err(Failure::Lost { is_written: false }) => {}
                    answer => return ended(answer),
                },
                () = stop.cancelled() => return cancel(asked, &context).await,
            }
        }
    }

    async fn reattach(&self, attempt: Attempt, _: TaskContext) -> Option<Outcome> {
        // A call ends with the connection that it was made on.
        (attempt.record.task.lane == self.0.settings.lane).then(|| {
            let message = "the gateway ended while the wrapped server had the call";
            Outcome::Failed(unknown(Kind::WorkerLost, message))
        })
    }

    fn start_report(&self) -> StartReport {
        StartReport::AtFirstWait
    }
}

fn ended(answer: Result<Json, Failure>) -> Outcome {
    match answer {
        Ok(result) => outcome::read(&result),
        Err(Failure::Refused(error)) if error.code != LOST => {
            Outcome::Failed(outcome::refused(&error))
        }
        Err(Failure::Refused(_) | Failure::Lost { .. }) => {
            let message = "the connection to the wrapped server ended during the call";
            Outcome::Failed(unknown(Kind::PeerLost, message))
        }
    }
}

fn unknown(kind: Kind, message: &str) -> Error {
    Error::new(kind, message).with_guarantee(Guarantee::Unknown)
}

/// Ends an attempt that found no server. At the end of the gateway the engine is about to end as well, and
/// the task is to stay in line.
async fn not_there(error: Error, is_over: bool, context: &TaskContext) -> Outcome {
    let stop = context.cancellation_token();
    if is_over && timeout(END_OF_ENGINE, stop.cancelled()).await.is_ok() {
        return not_begun(context).await;
    }
    Outcome::Failed(error)
}

/// Ends an attempt of which nothing was sent.
async fn not_begun(context: &TaskContext) -> Outcome {
    if context.stop_reason() != Some(StopReason::Shutdown) {
        return Outcome::Cancelled;
    }
    // It stands in line again; where it cannot, it is known not to have run all the same.
    if let Err(error) = context.protocol().not_delivered().await {
        tracing::debug!(%error, "a call that was not sent could not be given back");
    }
    let message = "the gateway ended before the call was sent";
    Outcome::Failed(Error::new(Kind::WorkerLost, message).with_guarantee(Guarantee::NotExecuted))
}

/// Tells the other server that a call is not wanted any more. It answers no cancelled call, so that
/// nothing says whether the work has ended [LEASE-10].
async fn cancel(mut asked: Asked, context: &TaskContext) -> Outcome {
    let reason = match context.stop_reason() {
        Some(StopReason::TimedOut) => "it takes too long",
        Some(StopReason::Shutdown) => "the gateway ends",
        Some(StopReason::Cancelled | StopReason::Lost) | None => "it was cancelled",
    };
    if !asked.cancel(reason) {
        return not_begun(context).await;
    }
    if context.stop_reason() == Some(StopReason::Shutdown) {
        let message = "the gateway ended during the call";
        return Outcome::Failed(unknown(Kind::WorkerLost, message));
    }
    tokio::select! {
        biased;
        answer = asked.answer() => match answer {
            Ok(result) => outcome::read(&result),
            // What it says to a cancelled call is that it was cancelled.
            Err(Failure::Refused(error)) if error.code != LOST => Outcome::Cancelled,
            // The end of a connection is no end of the work.
            Err(Failure::Refused(_) | Failure::Lost { .. }) => {
                context.protocol().given_up();
                Outcome::Cancelled
            }
        },
        () = sleep(LAST_WORD.min(Limits::default().grace)) => {
            context.protocol().given_up();
            Outcome::Cancelled
        }
    }
}
