//! What an executor may say about its attempt, and what it is told.

mod input;
mod protocol;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use raincheck_core::content::Json;
use raincheck_core::ids::{ArtifactId, Fence, TaskId};
use raincheck_core::log::{Draft, Level, Stream};
use raincheck_core::progress::Progress;
use raincheck_core::store::Durability;
use raincheck_core::task::{Artifact, Metrics};
use raincheck_core::text;
use raincheck_core::time::Timestamp;
use raincheck_core::trace::TraceContext;

use crate::kernel::{Kernel, guarded};
use crate::live::Live;
use crate::running::sleep_by;
use crate::shards::lock;
use crate::stop::StopReason;
use crate::waits::Happened;

pub use self::protocol::AttemptProtocol;

/// The link between an executor and the task that it runs. Cloning is cheap.
#[derive(Clone)]
pub struct TaskContext {
    kernel: Arc<Kernel>,
    live: Arc<Live>,
}

impl TaskContext {
    pub(crate) const fn new(kernel: Arc<Kernel>, live: Arc<Live>) -> Self {
        Self { kernel, live }
    }

    /// Returns the identity of the task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.live.id
    }

    /// Returns the number of the attempt, from 1.
    #[must_use]
    pub fn attempt_number(&self) -> u32 {
        self.live.number
    }

    /// Returns the fence of the attempt [LEASE-1].
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.live.fence
    }

    /// Returns the trace that the call of the task belongs to, for calls that the work makes itself.
    #[must_use]
    pub fn trace(&self) -> Option<&TraceContext> {
        self.live.trace.as_deref()
    }

    /// Returns the protocol between the engine and an executor that hands the attempt on.
    #[must_use]
    pub const fn protocol(&self) -> AttemptProtocol<'_> {
        AttemptProtocol { context: self }
    }

    /// Returns the current instant.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.kernel.clock.now()
    }

    /// Returns how long the engine has been able to run since it was made: while its process is
    /// stopped, paused or asleep, this stands still. Limits that an executor keeps itself are spans of
    /// it; a stop shorter than a second may go unnoticed [LEASE-8].
    #[must_use]
    pub fn running_time(&self) -> Duration {
        self.kernel.running_time()
    }

    /// Sleeps for a span of [running time](Self::running_time).
    ///
    /// # Cancel safety
    /// Safe: dropping it ends the sleep.
    pub async fn sleep(&self, span: Duration) {
        sleep_by(span, || self.kernel.running_time()).await;
    }

    /// Makes the name of an artifact.
    #[must_use]
    pub fn new_artifact_id(&self) -> ArtifactId {
        self.kernel.ids.artifact()
    }

    /// Reports progress. The latest report wins and is readable at once; numbers never go back
    /// [RESULT-2].
    pub fn progress(&self, progress: Progress) {
        let mut report = lock(&self.live.report);
        let advanced = report.progress.take().unwrap_or_default().advance(progress);
        report.progress = Some(advanced);
        drop(report);
        self.kernel.waits.tell(self.live.id, Happened::Reported);
    }

    /// Reports a partial result. The latest one wins and is readable at once [RESULT-2].
    pub fn set_partial_result(&self, partial: Json) {
        lock(&self.live.report).partial = Some(partial);
        self.kernel.waits.tell(self.live.id, Happened::Reported);
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
        let append = self.kernel.logs.append(self.live.id, self.live.fence, lines);
        match guarded("writing a log", append).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::warn!(task = %self.live.id, %error, "log lines were lost");
            }
            None => tracing::warn!(task = %self.live.id, "log lines were lost"),
        }
        self.kernel.waits.tell(self.live.id, Happened::Reported);
    }

    /// Sets how many bytes of log text the task may keep [LOG-2].
    pub async fn limit_logs(&self, bytes: u64) {
        self.live.uses_log.store(true, Ordering::Release);
        self.kernel.logs.limit(self.live.id, bytes).await;
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
    /// [reattached](crate::Executor::reattach).
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.kernel.store.capabilities().durability
    }

    /// Returns the token that fires when the attempt has to stop.
    ///
    /// A tool that is a function and has asked for it is given the tool's grace to clean up; one that has
    /// not is dropped at once.
    #[must_use]
    pub fn cancellation_token(&self) -> &CancellationToken {
        self.live.notices_cancel.store(true, Ordering::Relaxed);
        &self.live.stop
    }

    /// Returns why the attempt has to stop, once it has to. To look is to
    /// [notice](Self::cancellation_token).
    #[must_use]
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.live.notices_cancel.store(true, Ordering::Relaxed);
        self.live.reason.get().copied()
    }
}

impl fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContext")
            .field("id", &self.live.id)
            .field("number", &self.live.number)
            .field("stop", &self.live.reason.get())
            .finish_non_exhaustive()
    }
}
