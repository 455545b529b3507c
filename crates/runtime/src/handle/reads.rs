//! Looking at tasks, waiting for them, and ending them early.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use raincheck_core::decide::Change;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{ArtifactId, LaneId, TaskId};
use raincheck_core::input::Input;
use raincheck_core::lane;
use raincheck_core::lifecycle::State;
use raincheck_core::log::{Line, may_grow};
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    Cursor, Filter, Found, LaneView, Page, TaskStatus, Update, UpdateResult,
};
use raincheck_core::task::{TaskDetails, TaskEvent, TaskRecord, WaitReason};

use super::{Accepted, Cancelled, Handle, Kept, View, Waited};
use crate::kernel::Need;
use crate::waits::Watch;

impl Handle {
    /// Reads a task. One whose retention is over has no payload any more [TIME-5].
    ///
    /// # Errors
    /// `not_found` for an id that is not the scope's [SCOPE-2]; `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn view(&self, scope: &Scope, id: TaskId) -> Result<View, Error> {
        self.engine.kernel.admit(Need::Read).await?;
        match self.engine.kernel.store.find(scope, id).await? {
            Found::Task(record, payload) => self.show(record, payload).await,
            Found::Tombstone(record) => Ok(tombstone(record)),
            Found::Absent => Err(Error::not_found()),
        }
    }

    /// Adds to a committed task what only the engine knows.
    async fn show(&self, record: TaskRecord, payload: Arc<TaskDetails>) -> Result<View, Error> {
        let position = self.engine.kernel.position(&record).await?;
        let (progress, partial) = self.engine.kernel.report(&record);
        Ok(View {
            inputs: open_inputs(&record, &payload),
            progress: progress.or_else(|| payload.progress.clone()),
            partial: partial.or_else(|| payload.partial.clone()),
            payload: Some(payload),
            record,
            position,
            is_committed: true,
        })
    }

    /// Reads where a task stands, without what it was given and what came of it: however large these
    /// are, nothing of them is read [DUR-8].
    ///
    /// # Errors
    /// `not_found` for an id that is not the scope's [SCOPE-2]; `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn status(&self, scope: &Scope, id: TaskId) -> Result<View, Error> {
        self.engine.kernel.admit(Need::Read).await?;
        let status =
            self.engine.kernel.store.status(scope, id).await?.ok_or_else(Error::not_found)?;
        let TaskStatus { record, progress, partial } = status;
        // What it asks is not read with its status: only then it is read as a whole.
        let inputs = match record.asks.is_empty() {
            false => match self.engine.kernel.store.find(scope, id).await? {
                Found::Task(record, payload) => open_inputs(&record, &payload),
                Found::Tombstone(_) | Found::Absent => Vec::new(),
            },
            true => Vec::new(),
        };
        let position = self.engine.kernel.position(&record).await?;
        let (newer, newer_partial) = self.engine.kernel.report(&record);
        Ok(View {
            progress: newer.or(progress),
            partial: newer_partial.or(partial),
            payload: None,
            record,
            inputs,
            position,
            is_committed: true,
        })
    }

    /// Reads a task once it has ended, or its [status](Self::status) when the wait is over [TIME-1]
    /// or the engine ends.
    ///
    /// # Errors
    /// `not_found` for an id that is not the scope's; `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn wait_end(&self, scope: &Scope, id: TaskId, wait: Duration) -> Result<View, Error> {
        self.wait_until(scope, id, wait, |record| record.state.is_terminal()).await
    }

    /// Waits until a task is where its caller waits for it to be.
    async fn wait_until(
        &self,
        scope: &Scope,
        id: TaskId,
        wait: Duration,
        is_there: impl Fn(&TaskRecord) -> bool + Send + Sync,
    ) -> Result<View, Error> {
        self.engine.kernel.admit(Need::Read).await?;
        // No timer for no time: the shortest one lasts a millisecond.
        let deadline = (!wait.is_zero()).then(|| Instant::now() + wait.min(FOREVER));
        let mut watch = self.watch(id);
        loop {
            let record =
                self.engine.kernel.store.record(scope, id).await?.ok_or_else(Error::not_found)?;
            if is_there(&record) {
                return self.view(scope, id).await;
            }
            let is_over = match deadline {
                _ if self.engine.kernel.phases.is_closing() => true,
                Some(deadline) => timeout_at(deadline, watch.ended()).await.is_err(),
                None => true,
            };
            if is_over {
                return self.status(scope, id).await;
            }
        }
    }

    /// Reads a task that was just accepted once it has ended, or as it is when the wait is over
    /// [TIME-1] or it asks its caller something [TASKS-6]. For an [inline](super::Request::is_inline) request it looks at the store only then.
    ///
    /// # Errors
    /// `storage_unavailable`; `worker_lost` when the store lost the task before its commit.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn wait_accepted(&self, accepted: Accepted, wait: Duration) -> Result<View, Error> {
        let Accepted { record, watch, .. } = accepted;
        if let Some(mut watch) = watch {
            self.until_ended(&mut watch, wait).await;
            return self.accepted_view(record).await;
        }
        self.wait_until(&record.task.scope, record.id(), wait, waits_for_caller).await
    }

    /// Waits until the task ended, the wait is over, or nothing runs any more. What ends while the
    /// engine puts its attempts away is waited for.
    async fn until_ended(&self, watch: &mut Watch, wait: Duration) {
        let phases = &self.engine.kernel.phases;
        let over = async {
            // The watch began before the task: its end cannot have come unheard.
            watch.ended().await;
            if phases.is_closing() && !phases.is_closed() {
                watch.ended().await;
            }
        };
        let _late = timeout(wait.min(FOREVER), over).await;
    }

    /// Reads a task that was accepted.
    async fn accepted_view(&self, record: TaskRecord) -> Result<View, Error> {
        let read = self.view(&record.task.scope, record.id()).await;
        self.of_accepted(&record, read)
    }

    /// Makes of a failed read of a task that was accepted what its caller can act on. While the store
    /// cannot be read the task is shown as it was when it was accepted, with its id, and nothing says
    /// that it did not run [LEASE-9]. A read that did not fail is returned as it is.
    ///
    /// # Errors
    /// `worker_lost`, with the guarantee `unknown`, when the store lost the task before its commit.
    pub fn of_accepted(
        &self,
        accepted: &TaskRecord,
        read: Result<View, Error>,
    ) -> Result<View, Error> {
        match read {
            Err(error) if error.kind == Kind::NotFound => Err(lost()),
            Err(error) => {
                let record = accepted.clone();
                tracing::warn!(task = %record.id(), %error, "a task that was accepted cannot be read");
                let (progress, partial) = self.engine.kernel.report(&record);
                let (payload, inputs, position, is_committed) = (None, Vec::new(), None, false);
                Ok(View { record, payload, progress, partial, inputs, position, is_committed })
            }
            view => view,
        }
    }

    /// Waits for the result of a call as [`wait_accepted`](Self::wait_accepted) does. That of an inline
    /// request without a key is returned before its commit: nobody has a handle of it, and this answer
    /// is all that is ever known of it by its caller [DUR-1].
    ///
    /// # Errors
    /// As of [`wait_accepted`](Self::wait_accepted).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn wait_result(&self, accepted: Accepted, wait: Duration) -> Result<Waited, Error> {
        let Accepted { record, watch, .. } = accepted;
        let view = if let Some(mut watch) = watch {
            self.until_ended(&mut watch, wait).await;
            if let Some(result) = watch.take_early() {
                return Ok(Waited::Result(result));
            }
            self.accepted_view(record).await?
        } else {
            self.wait_until(&record.task.scope, record.id(), wait, waits_for_caller).await?
        };
        Ok(Waited::View(Box::new(view)))
    }

    /// Begins to watch a task. Register first, then read, then wait: nothing is missed [CALL-4].
    ///
    /// The id is not checked; an id that nobody has never wakes the watch.
    #[must_use]
    pub fn watch(&self, id: TaskId) -> Watch {
        self.engine.kernel.waits.watch(id)
    }

    /// Asks to end a task early [CANCEL-1..4].
    ///
    /// # Errors
    /// `not_found` for an id that is not the scope's; `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll loses nothing: the request counts.
    pub async fn cancel(
        &self,
        scope: &Scope,
        id: TaskId,
        reason: Option<Arc<str>>,
    ) -> Result<Cancelled, Error> {
        let kernel = &self.engine.kernel;
        if let Err(error) = kernel.admit(Need::Command).await {
            // Too late for a request; how the task stands can still be said.
            let Ok(()) = kernel.admit(Need::Read).await else { return Err(error) };
            return self.as_it_stands(scope, id).await;
        }
        let update = Update {
            id,
            scope: Some(scope.clone()),
            fence: None,
            change: Change::RequestCancel { reason },
            report: None,
            releases: false,
            ended_at: None,
        };
        let kernel = Arc::clone(&self.engine.kernel);
        let verdict = self
            .engine
            .kernel
            .drivers
            .detached(async move { kernel.update_one(update).await })
            .await?;
        match verdict {
            UpdateResult::Moved(record) | UpdateResult::Same(record) => {
                Ok(Cancelled { record, acknowledged: true })
            }
            UpdateResult::Late(record) | UpdateResult::Refused(record, _) => {
                Ok(Cancelled { record, acknowledged: false })
            }
            UpdateResult::Absent => self.as_it_stands(scope, id).await,
        }
    }

    async fn as_it_stands(&self, scope: &Scope, id: TaskId) -> Result<Cancelled, Error> {
        match self.engine.kernel.store.record(scope, id).await? {
            Some(record) => Ok(Cancelled { record, acknowledged: false }),
            None => Err(Error::not_found()),
        }
    }

    /// Lists the tasks of a scope, newest first.
    ///
    /// # Errors
    /// `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        before: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<TaskRecord>, Error> {
        self.engine.kernel.admit(Need::Read).await?;
        Ok(self.engine.kernel.store.list(scope, filter, before, limit).await?)
    }

    /// Reads the log of a task after line number `after`; waits for the first new line while the
    /// task can still write any [LOG-1].
    ///
    /// # Errors
    /// `not_found` for an id that is not the scope's, `expired` once its retention is over;
    /// `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn logs(
        &self,
        scope: &Scope,
        id: TaskId,
        after: u64,
        limit: u32,
        wait: Duration,
    ) -> Result<Page<Line>, Error> {
        self.engine.kernel.admit(Need::Read).await?;
        let deadline = Instant::now() + wait.min(FOREVER);
        let mut watch = self.watch(id);
        let mut is_over = wait.is_zero();
        loop {
            let record =
                self.engine.kernel.store.record(scope, id).await?.ok_or_else(Error::not_found)?;
            if record.state == State::Expired {
                return Err(Error::new(Kind::Expired, "the retention of the task is over"));
            }
            // An executor that is still being stopped may write on after the end of its task.
            let has_writer = may_grow(record.state) || self.engine.kernel.has_executor(id);
            let page = self.engine.kernel.logs.read(id, after, limit).await?;
            if is_over || !has_writer || !page.items.is_empty() || limit == 0 {
                return Ok(page);
            }
            // At the end of the engine it looks once more.
            let late = timeout_at(deadline, watch.changed()).await.is_err();
            is_over = late || self.engine.kernel.phases.is_closing();
        }
    }

    /// Finds an artifact of a task that can still be read by its name alone; `None` when there is none
    /// [ART-2].
    ///
    /// No scope is asked for: the name comes from a link that was signed for the task's owner.
    ///
    /// # Errors
    /// `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn artifact(&self, id: &ArtifactId) -> Result<Option<Kept>, Error> {
        self.engine.kernel.admit(Need::Read).await?;
        let found = self.engine.kernel.store.artifact(id).await?;
        Ok(found.map(|(task, artifact)| Kept {
            path: Path::new(&task.to_string()).join(&*artifact.path),
            artifact,
            folders: self.engine.tools.folders.to_vec(),
        }))
    }

    /// Reads the history of a task, the oldest entry first; empty once its retention is over
    /// [STATE-4].
    ///
    /// # Errors
    /// `not_found` for an id that is not the scope's; `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn events(&self, scope: &Scope, id: TaskId) -> Result<Vec<TaskEvent>, Error> {
        self.engine.kernel.admit(Need::Read).await?;
        self.engine.kernel.store.events(scope, id).await?.ok_or_else(Error::not_found)
    }

    /// Shows the lanes, their queues and the places that are taken [QUEUE-7].
    ///
    /// # Errors
    /// `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn lanes(&self) -> Result<Vec<LaneView>, Error> {
        self.engine.kernel.admit(Need::Read).await?;
        Ok(self.engine.kernel.store.lanes().await?)
    }

    /// Adds a lane, or changes what it may do.
    ///
    /// # Errors
    /// `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll loses nothing.
    pub async fn set_lane(&self, lane: LaneId, config: lane::Config) -> Result<(), Error> {
        self.engine.kernel.admit(Need::Command).await?;
        let kernel = Arc::clone(&self.engine.kernel);
        self.engine
            .kernel
            .drivers
            .detached(async move { kernel.set_lane(lane, config).await })
            .await
    }

    /// Removes a lane in which no task stands and no place is taken, and tells whether it is gone. What is
    /// submitted to it afterwards is refused until the lane is [added](Self::set_lane) again.
    ///
    /// # Errors
    /// `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll loses nothing.
    pub async fn remove_lane(&self, lane: LaneId) -> Result<bool, Error> {
        self.engine.kernel.admit(Need::Command).await?;
        let kernel = Arc::clone(&self.engine.kernel);
        self.engine.kernel.drivers.detached(async move { kernel.remove_lane(&lane).await }).await
    }

    /// Holds a lane while its peer is not ready, or lets it go on with `None`; returns how many
    /// tasks moved [QUEUE-5].
    ///
    /// # Errors
    /// `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll loses nothing.
    pub async fn hold(&self, lane: LaneId, hold: Option<WaitReason>) -> Result<u32, Error> {
        self.engine.kernel.admit(Need::Command).await?;
        let kernel = Arc::clone(&self.engine.kernel);
        self.engine.kernel.drivers.detached(async move { kernel.hold(lane, hold).await }).await
    }
}

/// The answer about a task whose beginning did not wait for its commit, when that failed.
fn lost() -> Error {
    Error::new(Kind::WorkerLost, "the store lost the task before it was committed")
}

const fn tombstone(record: TaskRecord) -> View {
    View {
        record,
        payload: None,
        progress: None,
        partial: None,
        inputs: Vec::new(),
        position: None,
        is_committed: true,
    }
}

/// Tells whether a task goes no further before its caller is told.
fn waits_for_caller(record: &TaskRecord) -> bool {
    record.state.is_terminal() || record.state == State::InputRequired
}

/// Returns what a task asks its caller just now.
fn open_inputs(record: &TaskRecord, payload: &TaskDetails) -> Vec<Input> {
    payload.open(&record.asks).cloned().collect()
}

/// A wait that outlives every process, short enough to be added to an instant.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
