//! What a peer says about an attempt that no executor here holds.

use raincheck_core::decide::{Change, Refusal};
use raincheck_core::error::Error;
use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::store::{Update, UpdateResult};
use raincheck_core::task::{Outcome, TaskRecord};

use super::Handle;
use crate::kernel::Need;

/// What became of an outcome that a peer brought, or where its task stands.
#[derive(Clone, Debug)]
pub enum Told {
    /// It is the task's outcome.
    Counted(TaskRecord),
    /// The task had ended: it was kept beside the outcome, if it was the first [LEASE-7].
    Ended(TaskRecord),
    /// It speaks for an attempt that is not the task's any more, or is no longer under way [LEASE-1].
    Stale(TaskRecord),
    /// Nobody has such a task.
    Unknown,
}

impl Handle {
    /// Records what a peer brings for an attempt that no executor here holds, such as a result that
    /// comes after the end. Without an outcome it only looks. A missing fence is that of the last
    /// attempt.
    ///
    /// No scope is asked for: a peer serves the owners of all tasks.
    ///
    /// # Errors
    /// `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll loses nothing.
    pub async fn tell(
        &self,
        id: TaskId,
        fence: Option<Fence>,
        outcome: Option<Outcome>,
    ) -> Result<Told, Error> {
        self.engine.kernel.admit(Need::Command).await?;
        // Nobody's fence moves nothing, and shows the row.
        let record = match self.update(id, Fence::NONE, Change::Start).await? {
            UpdateResult::Moved(record)
            | UpdateResult::Same(record)
            | UpdateResult::Late(record)
            | UpdateResult::Refused(record, _) => record,
            UpdateResult::Absent => return Ok(Told::Unknown),
        };
        let fence = fence.unwrap_or(record.fence);
        if fence != record.fence {
            return Ok(Told::Stale(record));
        }
        let Some(outcome) = outcome else {
            return Ok(if record.state.is_terminal() {
                Told::Ended(record)
            } else {
                Told::Stale(record)
            });
        };
        Ok(match self.update(id, fence, Change::Finish(outcome)).await? {
            UpdateResult::Moved(record) | UpdateResult::Same(record) => Told::Counted(record),
            UpdateResult::Late(record) => Told::Ended(record),
            UpdateResult::Refused(record, Refusal::State(_)) if record.state.is_terminal() => {
                Told::Ended(record)
            }
            UpdateResult::Refused(record, _) => Told::Stale(record),
            UpdateResult::Absent => Told::Unknown,
        })
    }

    async fn update(
        &self,
        id: TaskId,
        fence: Fence,
        change: Change,
    ) -> Result<UpdateResult, Error> {
        let kernel = std::sync::Arc::clone(&self.engine.kernel);
        let update = Update::attempt(id, fence, change);
        self.engine.kernel.drivers.detached(async move { kernel.update_one(update).await }).await
    }
}
