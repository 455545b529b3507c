//! What an executor may say about its attempt, and what it is told.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use raincheck_core::content::Json;
use raincheck_core::decide::{Change, Refusal};
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::{ArtifactId, Fence, TaskId};
use raincheck_core::lifecycle::State;
use raincheck_core::log::{Draft, Level, Stream};
use raincheck_core::progress::Progress;
use raincheck_core::store::{Durability, Post, Verdict};
use raincheck_core::task::{Artifact, Metrics, Row};
use raincheck_core::text;
use raincheck_core::time::Timestamp;

use crate::engine::Shared;
use crate::live::Live;
use crate::shards::lock;
use crate::waits::Happened;

/// Why an attempt has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Somebody asked to end the task.
    Cancelled,
    /// Its run deadline passed; the task has ended already.
    TimedOut,
    /// The attempt is not the task's any more.
    Lost,
    /// The serving process ends.
    Shutdown,
}

/// The link between an executor and the task that it runs. Cloning is cheap.
#[derive(Clone)]
pub struct TaskContext {
    shared: Arc<Shared>,
    live: Arc<Live>,
}

impl TaskContext {
    pub(crate) const fn new(shared: Arc<Shared>, live: Arc<Live>) -> Self {
        Self { shared, live }
    }

    /// Returns the identity of the task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.live.id
    }

    /// Returns the number of the attempt, from 1.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.live.number
    }

    /// Returns the fence of the attempt [LEASE-1].
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.live.fence
    }

    /// Returns the current instant.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Makes the name of an artifact.
    #[must_use]
    pub fn new_artifact_id(&self) -> ArtifactId {
        self.shared.ids.artifact()
    }

    /// Says that the attempt was taken on: the run deadline begins [TIME-3].
    ///
    /// Returns once that is committed, so that a peer may be told to go ahead [LEASE-5].
    ///
    /// # Errors
    /// When the attempt is not the task's any more, or the store failed: do not execute.
    pub async fn accepted(&self) -> Result<(), Error> {
        self.say(Change::Accept).await
    }

    /// Waits until the lease of the attempt is committed, which that of an inline call need not be
    /// when it is handed over [DUR-6]. What outlives this process must not begin before.
    ///
    /// # Errors
    /// When the attempt is not the task's any more: do not execute.
    pub async fn leased(&self) -> Result<(), Error> {
        if self.shared.lease_kept(&self.live).await {
            return Ok(());
        }
        let error = Error::new(Kind::WorkerLost, "the lease of the attempt was lost");
        Err(error.with_guarantee(Guarantee::NotExecuted))
    }

    /// Says that the attempt is known to run.
    ///
    /// # Errors
    /// When the attempt is not the task's any more, or the store failed.
    pub async fn started(&self) -> Result<(), Error> {
        self.say(Change::Start).await
    }

    /// Says that the attempt is known to run, until the store keeps it: what runs already is not to be
    /// held back while the store fails.
    ///
    /// # Errors
    /// When the attempt is not the task's any more.
    pub async fn runs(&self) -> Result<(), Error> {
        let start = || {
            let start = Post::attempt(self.live.id, self.live.fence, Change::Start);
            self.shared.post_one(start)
        };
        let verdict = self.shared.until_kept(&self.live, start).await;
        self.heed(verdict)
    }

    /// Says that the attempt ran, where its end follows at once: this is committed with it, if the
    /// store keeps it at all.
    pub async fn ran(&self) {
        let start = Post::attempt(self.live.id, self.live.fence, Change::Start);
        if let Err(error) = self.shared.store.post(self.now(), vec![start], None).await {
            tracing::debug!(task = %self.live.id, %error, "a start was not recorded");
        }
    }

    /// Says that the attempt surely never reached its executor: the task goes back to the queue and
    /// the attempt is not spent. Whatever `execute` returns afterwards is ignored.
    ///
    /// # Errors
    /// When the attempt was started, is not the task's any more, or the store failed: the outcome
    /// of `execute` counts.
    pub async fn not_delivered(&self) -> Result<(), Error> {
        self.say(Change::Undeliver).await?;
        self.live.was_given_back.store(true, Ordering::Release);
        Ok(())
    }

    /// Says that what `execute` returns is not what the peer said, of which nothing is heard any more:
    /// a result that it brings later is kept beside the outcome [LEASE-7].
    pub fn given_up(&self) {
        self.live.was_given_up.store(true, Ordering::Release);
    }

    /// Says that the executor has committed to end the task as asked: only `cancelled` is left
    /// [CANCEL-5]. Changes nothing when no cancel was asked for.
    pub async fn committed_to_end(&self) {
        if let Err(error) = self.say(Change::CommitCancel).await {
            tracing::debug!(task = %self.live.id, %error, "a commitment to end was not recorded");
        }
    }

    async fn say(&self, change: Change) -> Result<(), Error> {
        let mut post = Post::attempt(self.live.id, self.live.fence, change);
        // Nothing is left of an adopted attempt that never came to its executor: its place goes in
        // the same commit, or a server that is killed before another one leaves it taken.
        post.releases = self.live.is_adopted && matches!(post.change, Change::Undeliver);
        let verdict = self.shared.post_one(post).await?;
        self.heed(verdict)
    }

    fn heed(&self, verdict: Verdict) -> Result<(), Error> {
        match verdict {
            Verdict::Moved(row) | Verdict::Same(row) => {
                self.live.observe(&row);
                Ok(())
            }
            Verdict::Late(row) => {
                self.live.observe(&row);
                Err(gone(&row))
            }
            Verdict::Refused(row, refusal) => {
                self.live.observe(&row);
                Err(refused(&row, refusal))
            }
            Verdict::Absent => Err(Error::not_found()),
        }
    }

    /// Reports progress. The latest report wins and is readable at once; numbers never go back
    /// [RESULT-2].
    pub fn progress(&self, progress: Progress) {
        let mut report = lock(&self.live.report);
        let advanced = report.progress.take().unwrap_or_default().advance(progress);
        report.progress = Some(advanced);
        drop(report);
        self.shared.waits.tell(self.live.id, Happened::Reported);
    }

    /// Reports a partial result. The latest one wins and is readable at once [RESULT-2].
    pub fn partial(&self, partial: Json) {
        lock(&self.live.report).partial = Some(partial);
        self.shared.waits.tell(self.live.id, Happened::Reported);
    }

    /// Appends one message to the task's log, made safe to show; one line for each of its lines.
    pub async fn log(&self, stream: Stream, level: Level, message: &str) {
        let ts = self.now();
        let draft = |line| Draft { ts, stream, level, message: text::escape(line).into() };
        self.logs(message.lines().map(draft).collect()).await;
    }

    /// Appends lines to the task's log. Their text must be [escaped](text::escape) already.
    ///
    /// A store that fails is reported to the operator, not to the tool.
    pub async fn logs(&self, lines: Vec<Draft>) {
        if lines.is_empty() {
            return;
        }
        self.live.uses_log.store(true, Ordering::Release);
        if let Err(error) = self.shared.logs.append(self.live.id, self.live.fence, lines).await {
            tracing::warn!(task = %self.live.id, %error, "log lines were lost");
        }
        self.shared.waits.tell(self.live.id, Happened::Reported);
    }

    /// Sets how many bytes of log text the task may keep [LOG-2].
    pub async fn limit_logs(&self, bytes: u64) {
        self.live.uses_log.store(true, Ordering::Release);
        self.shared.logs.limit(self.live.id, bytes).await;
    }

    /// Returns the folder of log files where another process may write the task's lines; `None`
    /// when the log is kept in another way, so that every line has to be [given](Self::logs) to it.
    #[must_use]
    pub fn log_folder(&self) -> Option<&Path> {
        self.shared.logs.folder()
    }

    /// Says that another process wrote lines into the task's log.
    pub fn logs_grew(&self) {
        self.live.uses_log.store(true, Ordering::Release);
        self.shared.waits.tell(self.live.id, Happened::Reported);
    }

    /// Leaves an artifact, recorded in the same commit as the outcome [DUR-2].
    pub fn artifact(&self, artifact: Artifact) {
        lock(&self.live.report).artifacts.push(artifact);
    }

    /// Says what the attempt used, recorded in the same commit as the outcome [RESULT-1].
    pub fn metrics(&self, metrics: Metrics) {
        lock(&self.live.report).metrics = Some(metrics);
    }

    /// Returns what the task survives. What does not survive this process can never be
    /// [adopted](crate::Executor::adopt).
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.shared.store.traits().durability
    }

    /// Returns the token that fires when the attempt has to stop.
    #[must_use]
    pub fn stop(&self) -> &CancellationToken {
        &self.live.stop
    }

    /// Returns why the attempt has to stop, once it has to.
    #[must_use]
    pub fn stop_reason(&self) -> Option<Stop> {
        self.live.reason.get().copied()
    }
}

/// The answer to an executor that speaks for a task which has ended.
fn gone(row: &Row) -> Error {
    let kind = match row.state {
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
        | State::Expired => row.failure.unwrap_or(Kind::WorkerLost),
    };
    Error::new(kind, format!("the task is `{}` already", row.state))
}

fn refused(row: &Row, refusal: Refusal) -> Error {
    if row.state.is_terminal() {
        gone(row)
    } else {
        Error::new(Kind::WorkerLost, refusal.to_string())
    }
}

impl fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContext")
            .field("id", &self.live.id)
            .field("number", &self.live.number)
            .field("stop", &self.stop_reason())
            .finish_non_exhaustive()
    }
}
