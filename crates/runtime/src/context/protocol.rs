//! What an executor says about the hand-over of its attempt, where a program outside does the work.

use std::path::Path;
use std::sync::atomic::Ordering;

use raincheck_core::decide::{Change, Refusal};
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_core::store::{Update, UpdateResult};
use raincheck_core::task::TaskRecord;
use raincheck_core::time::Timestamp;

use super::TaskContext;
use crate::shards::lock;
use crate::waits::Happened;

/// The hand-over of one attempt to what runs it, from the lease to the end.
///
/// A tool that is a function needs none of it: the engine reports its start. It is for executors that
/// answer [`StartReport::ByExecutor`](crate::StartReport::ByExecutor) and for those whose work may
/// outlive this process.
#[derive(Clone, Copy, Debug)]
pub struct AttemptProtocol<'a> {
    pub(super) context: &'a TaskContext,
}

impl<'a> AttemptProtocol<'a> {
    /// Says that the attempt was taken on: the run deadline begins [TIME-3].
    ///
    /// Returns once that is committed, so that a peer may be told to go ahead [LEASE-5].
    ///
    /// # Errors
    /// When the attempt is not the task's any more, or the store failed: do not execute.
    pub async fn accepted(self) -> Result<(), Error> {
        self.say(Change::Accept).await
    }

    /// Waits until the lease of the attempt is committed, which that of an inline call need not be
    /// when it is handed over [DUR-6]. What outlives this process must not begin before.
    ///
    /// # Errors
    /// When the attempt is not the task's any more: do not execute.
    pub async fn leased(self) -> Result<(), Error> {
        if self.context.kernel.lease_kept(&self.context.live).await {
            return Ok(());
        }
        let error = Error::new(Kind::WorkerLost, "the lease of the attempt was lost");
        Err(error.with_guarantee(Guarantee::NotExecuted))
    }

    /// Says that the attempt is known to run.
    ///
    /// # Errors
    /// When the attempt is not the task's any more, or the store failed.
    pub async fn started(self) -> Result<(), Error> {
        self.say(Change::Start).await
    }

    /// Says that the attempt is known to run, until the store keeps it: what runs already is not to be
    /// held back while the store fails.
    ///
    /// # Errors
    /// When the attempt is not the task's any more.
    pub async fn runs(self) -> Result<(), Error> {
        let start = || {
            let start =
                Update::attempt(self.context.live.id, self.context.live.fence, Change::Start);
            self.context.kernel.update_one(start)
        };
        let verdict = self.context.kernel.until_kept(&self.context.live, start).await;
        self.heed(verdict)
    }

    /// Says that the attempt ran, where its end follows at once: this is committed with it, if the
    /// store keeps it at all.
    pub async fn ran(self) {
        let start = Update::attempt(self.context.live.id, self.context.live.fence, Change::Start);
        if let Err(error) =
            self.context.kernel.store.update(self.context.now(), vec![start], None).await
        {
            tracing::debug!(task = %self.context.live.id, %error, "a start was not recorded");
        }
    }

    /// Says that the attempt surely never reached its executor: the task goes back to the queue and
    /// the attempt is not spent. Whatever `execute` returns afterwards is ignored.
    ///
    /// # Errors
    /// When the attempt was started, is not the task's any more, or the store failed: the outcome
    /// of `execute` counts.
    pub async fn not_delivered(self) -> Result<(), Error> {
        self.say(Change::Undeliver).await?;
        self.context.live.was_given_back.store(true, Ordering::Release);
        Ok(())
    }

    /// Says that what `execute` returns is not what the peer said, of which nothing is heard any more:
    /// a result that it brings later is kept beside the outcome [LEASE-7].
    pub fn given_up(self) {
        self.context.live.was_given_up.store(true, Ordering::Release);
    }

    /// Says that the peer has stopped what it ran, as it was asked to, when `execute` returns
    /// [`Outcome::Cancelled`](raincheck_core::task::Outcome::Cancelled): a result that the peer brings all the
    /// same is kept beside it [LEASE-7].
    pub fn confirmed_end(self) {
        self.context.live.has_stopped.store(true, Ordering::Release);
    }

    /// Says when the attempt ended, where that was before this process could hear of it, such as while
    /// no server ran: the record of the task says so too.
    pub fn ended_at(self, at: Timestamp) {
        lock(&self.context.live.report).ended_at = Some(at);
    }

    /// Says that the executor has committed to end the task as asked: only `cancelled` is left
    /// [CANCEL-5]. Changes nothing when no cancel was asked for.
    pub async fn committed_to_end(self) {
        if let Err(error) = self.say(Change::CommitCancel).await {
            tracing::debug!(task = %self.context.live.id, %error, "a commitment to end was not recorded");
        }
    }

    /// Waits until the attempt has to stop, on behalf of a tool that may not look itself.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn stopped(self) {
        self.context.live.stop.cancelled().await;
    }

    /// Tells whether the attempt has to stop, without having the tool notice it.
    #[must_use]
    pub fn is_stopped(self) -> bool {
        self.context.live.stop.is_cancelled()
    }

    /// Tells whether the tool itself has asked for its
    /// [cancellation token](TaskContext::cancellation_token) or the reason to stop, so that it can be
    /// expected to clean up and return.
    #[must_use]
    pub fn is_noticed(self) -> bool {
        self.context.live.notices_cancel.load(Ordering::Relaxed)
    }

    /// Returns the folder of log files where another process may write the task's lines; `None`
    /// when the log is kept in another way, so that every line has to be [given](TaskContext::logs) to it.
    #[must_use]
    pub fn log_folder(self) -> Option<&'a Path> {
        self.context.kernel.logs.folder()
    }

    /// Says that another process wrote lines into the task's log.
    pub fn logs_grew(self) {
        self.context.live.uses_log.store(true, Ordering::Release);
        self.context.kernel.waits.tell(self.context.live.id, Happened::Reported);
    }

    async fn say(self, change: Change) -> Result<(), Error> {
        let mut update = Update::attempt(self.context.live.id, self.context.live.fence, change);
        // Nothing is left of an reattached attempt that never came to its executor: its place goes in
        // the same commit, or a server that is killed before another one leaves it taken.
        update.releases =
            self.context.live.is_reattached && matches!(update.change, Change::Undeliver);
        let verdict = self.context.kernel.update_one(update).await?;
        self.heed(verdict)
    }

    fn heed(self, verdict: UpdateResult) -> Result<(), Error> {
        match verdict {
            UpdateResult::Moved(record) | UpdateResult::Same(record) => {
                self.context.live.observe(&record);
                Ok(())
            }
            UpdateResult::Late(record) => {
                self.context.live.observe(&record);
                Err(gone(&record))
            }
            UpdateResult::Refused(record, refusal) => {
                self.context.live.observe(&record);
                Err(refused(&record, refusal))
            }
            UpdateResult::Absent => Err(Error::not_found()),
        }
    }
}

/// The answer to an executor that speaks for a task which has ended.
fn gone(record: &TaskRecord) -> Error {
    let kind = match record.state {
        State::TimedOut => Kind::RunTimeout,
        State::Cancelled => Kind::Cancelled,
        State::Waiting
        | State::Queued
        | State::Scheduled
        | State::Running
        | State::InputRequired
        | State::CancelRequested
        | State::Cancelling
        | State::Succeeded
        | State::Failed
        | State::Expired => record.failure.unwrap_or(Kind::WorkerLost),
    };
    Error::new(kind, format!("the task is `{}` already", record.state))
}

fn refused(record: &TaskRecord, refusal: Refusal) -> Error {
    if record.state.is_terminal() {
        gone(record)
    } else {
        Error::new(Kind::WorkerLost, refusal.to_string())
    }
}
