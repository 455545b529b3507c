//! One attempt of a command tool: from its folder to its outcome.

#[cfg(unix)]
mod apart;
mod environment;
mod folder;
mod outcome;
mod program;
mod result;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::log::Draft;
use raincheck_core::progress::Progress;
use raincheck_core::task::{Metrics, Outcome, TaskRecord};
use raincheck_core::time::Timestamp;
use raincheck_runtime::{Attempt, StopReason, TaskContext};

use crate::artifacts::{self, Collected};
use crate::order::{Limits, Order};
use crate::os::place_fault;
use crate::patience::pass;
use crate::supervise::{Ended, Listener, note, supervise};
use crate::tool::CommandTool;

use folder::Folder;

pub(crate) use folder::blocking;

#[cfg(unix)]
pub(crate) use apart::{prepare, reattach, reattach_stranger, run as run_apart};

/// The grace when the server itself ends, which gives its attempts half a second.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(250);

/// Removes what was kept of an attempt to tell its end again.
pub(crate) async fn let_go(root: &Path, id: TaskId, number: u32) {
    Folder::of(root, id, number).clear().await;
}

/// Returns when an attempt ended that no server has recorded yet; `None` when it has not, or nobody can
/// tell.
#[cfg(unix)]
pub(crate) fn unrecorded_end(root: &Path, id: TaskId, number: u32) -> Option<Timestamp> {
    Folder::of(root, id, number).place().read_end().ok()??.ended_at
}

/// Tells whether an attempt below the folder of a task has a supervisor that lives, or may have one.
pub(crate) fn is_held(task: &Path, number: u32) -> bool {
    #[cfg(unix)]
    {
        Folder::below(task, number).place().is_held()
    }
    #[cfg(not(unix))]
    {
        let _ = (task, number);
        false
    }
}

/// Runs a tool once, in this process.
pub(crate) async fn run(
    tool: &CommandTool,
    root: &Path,
    attempt: Attempt,
    context: &TaskContext,
) -> Outcome {
    let folder = Folder::of(root, context.id(), context.attempt_number());
    let fresh = folder.clone();
    if let Err(error) = blocking(move || fresh.create()).await {
        return Outcome::Failed(no_folder(&error));
    }
    let outcome = match order(tool, &folder, &attempt.record, context) {
        Ok(order) => run_in(tool, &folder, order, &attempt, context).await,
        Err(error) => Outcome::Failed(error),
    };
    folder.clear().await;
    outcome
}

fn order(
    tool: &CommandTool,
    folder: &Folder,
    record: &TaskRecord,
    context: &TaskContext,
) -> Result<Order, Error> {
    let path = environment::path_for(&tool.environment);
    let program = program::find(tool, path.as_deref())?;
    if let Some(fault) = place_fault() {
        return Err(program::wrong_place(tool, fault));
    }
    let mark = environment::mark(context.id());
    let environment = environment::of(tool, folder, context);
    let arguments = tool.argv.iter().skip(1).cloned().collect();
    let (program, start_in) = (program.into(), tool.folder.clone().into());
    let asked = &record.task.resources;
    let limits = Limits::new(asked.memory_mb, asked.scratch_mb, &folder.out());
    Ok(Order { program, arguments, folder: start_in, environment, mark, limits })
}

async fn run_in(
    tool: &CommandTool,
    folder: &Folder,
    order: Order,
    attempt: &Attempt,
    context: &TaskContext,
) -> Outcome {
    context.limit_logs(tool.log_quota).await;
    let listener = Heard(context);
    let is_overdue = AtomicBool::new(false);
    let stop = async {
        tokio::select! {
            () = context.cancellation_token().cancelled() => {}
            () = overdue(attempt.record.task.limits.run_timeout) => is_overdue.store(true, Ordering::Relaxed),
        }
        match context.stop_reason() {
            Some(StopReason::Shutdown) => tool.grace.min(SHUTDOWN_GRACE),
            Some(StopReason::Cancelled | StopReason::TimedOut | StopReason::Lost) | None => {
                tool.grace
            }
        }
    };
    let ended = supervise(order, attempt.inputs.get().as_bytes(), &listener, stop).await;
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => return Outcome::Failed(program::not_started(tool, &error)),
    };
    context.metrics(metrics(&ended));
    if ended.is_stopped && ended.survivors.is_empty() && is_overdue.into_inner() {
        return outcome::timed_out(Some(ended.wall));
    }
    if keep_artifacts(folder, &ended, &listener).await {
        return outcome::cut(context.stop_reason());
    }
    let result = folder.read_result().await;
    outcome::of(tool, &ended, result, context.stop_reason())
}

/// Waits until a run limit is used up; for ever without one.
async fn overdue(limit: Option<Duration>) {
    match limit {
        Some(limit) => pass(limit).await,
        None => std::future::pending().await,
    }
}

fn metrics(ended: &Ended) -> Metrics {
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Metrics {
        wall_ms: millis(ended.wall),
        cpu_ms: ended.usage.cpu.map(millis),
        peak_memory_bytes: ended.usage.peak_memory,
    }
}

/// Records what the attempt left, unless the task is over or not this attempt's any more. A request to
/// end that comes meanwhile cuts it short; tells whether it did.
async fn keep_artifacts(folder: &Folder, ended: &Ended, listener: &Heard<'_>) -> bool {
    let context = listener.0;
    let reason = context.stop_reason();
    if matches!(reason, Some(StopReason::TimedOut | StopReason::Lost | StopReason::Shutdown)) {
        return false;
    }
    let (shelf, claims) = (folder.shelf(), ended.claims.clone());
    let (ids, is_cut) = (context.clone(), Arc::new(AtomicBool::new(false)));
    let cut = Arc::clone(&is_cut);
    let collect = move || artifacts::collect(&shelf, &claims, &cut, || ids.new_artifact_id());
    let mut collecting = tokio::task::spawn_blocking(collect);
    let collected = tokio::select! {
        collected = &mut collecting => collected,
        () = context.cancellation_token().cancelled(), if reason.is_none() => {
            is_cut.store(true, Ordering::Relaxed);
            collecting.await
        }
    };
    let collected = match collected {
        Ok(Ok(collected)) => collected,
        Ok(Err(error)) => Collected::failed(error.kind()),
        Err(_) => return false,
    };
    collected.artifacts.into_iter().for_each(|artifact| context.artifact(artifact));
    let notes = collected.notes.into_iter().map(|text| note(listener, text)).collect();
    context.logs(notes).await;
    is_cut.load(Ordering::Relaxed)
}

/// What the system says of a folder that cannot be made, without the path.
fn no_folder(error: &std::io::Error) -> Error {
    let message = format!("the folder of the attempt cannot be made: {}", error.kind());
    Error::new(Kind::StorageUnavailable, message).with_guarantee(Guarantee::NotExecuted)
}

/// A program's words on their way to its task.
struct Heard<'a>(&'a TaskContext);

#[async_trait]
impl Listener for Heard<'_> {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn begun(&self) {
        // It was announced before it was started: nobody could prove afterwards that it was not.
    }

    fn progress(&self, progress: Progress) {
        self.0.progress(progress);
    }

    fn partial(&self, partial: Json) {
        self.0.set_partial_result(partial);
    }

    async fn logs(&self, lines: Vec<Draft>) {
        self.0.logs(lines).await;
    }

    async fn stopping(&self) {
        // A task that has ended by its deadline has nothing left to commit to: the signal is due.
        if self.0.stop_reason() == Some(StopReason::Cancelled) {
            self.0.protocol().committed_to_end().await;
        }
    }
}
