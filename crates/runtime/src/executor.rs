//! What runs attempts.

use async_trait::async_trait;

use raincheck_core::content::Json;
use raincheck_core::ids::TaskId;
use raincheck_core::store::Claimed;
use raincheck_core::task::{Outcome, TaskRecord};

use crate::context::TaskContext;

/// One run of a task, as its executor gets it.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The task as it was leased: its limits, resources, attempt number and fence.
    pub record: TaskRecord,
    /// What the tool is given.
    pub inputs: Json,
}

impl From<Claimed> for Attempt {
    fn from(claimed: Claimed) -> Self {
        Self { record: claimed.record, inputs: claimed.inputs }
    }
}

/// Runs attempts: an async fn, a child process, an editor, another server.
#[async_trait]
pub trait Executor: Send + Sync + 'static {
    /// Runs one attempt to its end.
    ///
    /// Must return soon after [`TaskContext::cancellation_token`] fires, whatever the reason: the task's slot is
    /// held until it returns. A panic ends the task as `failed{panicked}`.
    ///
    /// # Cancel safety
    /// The future is dropped when the serving process ends and the time to stop is over; whatever
    /// it holds must be let go by its destructors.
    async fn execute(&self, attempt: Attempt, context: TaskContext) -> Outcome;

    /// Takes up an attempt that survived a restart; `None` when nothing of it is left.
    ///
    /// An attempt whose tool no tool set has any more is offered to every executor in turn.
    async fn reattach(&self, attempt: Attempt, context: TaskContext) -> Option<Outcome> {
        let _ = (attempt, context);
        None
    }

    /// Hears that the outcome of an attempt is recorded: what was kept to tell it again may go.
    async fn on_outcome_committed(&self, id: TaskId, number: u32) {
        let _ = (id, number);
    }

    /// Tells who says that an attempt runs, and when.
    fn start_report(&self) -> StartReport {
        StartReport::BeforeHandOver
    }
}

/// Who says that an attempt runs, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartReport {
    /// The engine, before it hands the attempt over: a cancel that came after the lease is seen, and
    /// the attempt is surely not executed.
    BeforeHandOver,
    /// The engine, once the attempt waits for the first time. One that ends without waiting goes from
    /// `scheduled` to its end, at the price of one write less.
    AtFirstWait,
    /// The executor, by [`accepted`](crate::AttemptProtocol::accepted) and
    /// [`started`](crate::AttemptProtocol::started).
    ByExecutor,
}
