//! What a peer says about an attempt that no executor here holds.

use raincheck_core::decide::{Change, Refusal};
use raincheck_core::error::Error;
use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::store::{Post, Verdict};
use raincheck_core::task::{Outcome, Row};

use super::Handle;

/// What became of an outcome that a peer brought, or where its task stands.
#[derive(Clone, Debug)]
pub enum Told {
    /// It is the task's outcome.
    Counted(Row),
    /// The task had ended: it was kept beside the outcome, if it was the first [LEASE-7].
    Ended(Row),
    /// It speaks for an attempt that is not the task's any more, or is no longer under way [LEASE-1].
    Stale(Row),
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
        self.shared.ready().await?;
        // Nobody's fence moves nothing, and shows the row.
        let row = match self.post(id, Fence::NONE, Change::Start).await? {
            Verdict::Moved(row)
            | Verdict::Same(row)
            | Verdict::Late(row)
            | Verdict::Refused(row, _) => row,
            Verdict::Absent => return Ok(Told::Unknown),
        };
        let fence = fence.unwrap_or(row.fence);
        if fence != row.fence {
            return Ok(Told::Stale(row));
        }
        let Some(outcome) = outcome else {
            return Ok(if row.state.is_terminal() { Told::Ended(row) } else { Told::Stale(row) });
        };
        Ok(match self.post(id, fence, Change::Finish(outcome)).await? {
            Verdict::Moved(row) | Verdict::Same(row) => Told::Counted(row),
            Verdict::Late(row) => Told::Ended(row),
            Verdict::Refused(row, Refusal::State(_)) if row.state.is_terminal() => Told::Ended(row),
            Verdict::Refused(row, _) => Told::Stale(row),
            Verdict::Absent => Told::Unknown,
        })
    }

    async fn post(&self, id: TaskId, fence: Fence, change: Change) -> Result<Verdict, Error> {
        let shared = std::sync::Arc::clone(&self.shared);
        let post = Post::attempt(id, fence, change);
        self.shared.detached(async move { shared.post_one(post).await }).await
    }
}
