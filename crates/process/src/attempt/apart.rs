//! An attempt in the hands of a supervisor: this side only starts it, listens, and reads its end.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Duration;

use raincheck_core::cancel::OnExit;
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::store::Durability;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Attempt, StopReason, TaskContext};
use tokio::process::Child;
use tokio::sync::Notify;

use super::folder::{Folder, blocking};
use super::{SHUTDOWN_GRACE, environment, metrics, no_folder, order, outcome, program};
use crate::os::{end_marked, spawn_apart};
use crate::supervisor::{Attached, End, Halt, Reason, Record, Said, Supervisor, Talk, Told, Work};
use crate::tool::CommandTool;

/// What an attempt came to whose supervisor is gone.
enum Left {
    /// How it ended.
    End(Outcome),
    /// The proof that its program never ran.
    NeverBegan,
    /// Nothing: nobody can say how far the program came.
    Nothing,
}

/// Runs a tool once, in a process of its own.
pub(crate) async fn run(
    tool: &CommandTool,
    root: &Path,
    supervisor: &Supervisor,
    attempt: Attempt,
    context: &TaskContext,
) -> Outcome {
    let folder = match Folder::create(root, context.id(), context.attempt_number()).await {
        Ok(folder) => folder,
        Err(error) => return Outcome::Failed(no_folder(&error)),
    };
    let begun = async {
        let work = Told::Run(Box::new(work(tool, &folder, &attempt, context)?));
        let (begun, kept, leased) = tokio::join!(
            start(supervisor, &folder),
            keep(&folder, context),
            context.protocol().leased()
        );
        // A supervisor that is not told what to run ends by itself, and nothing ran.
        let (mut talk, child) = begun.map_err(|error| no_supervisor(tool, &error))?;
        kept.map_err(|error| no_folder(&error))?;
        leased?;
        if context.stop_reason() == Some(StopReason::Cancelled) {
            return Ok(None);
        }
        let told = talk.tell(&work).await;
        told.map_err(|error| no_supervisor(tool, &error))?;
        Ok(Some((talk, child)))
    };
    let (talk, mut supervisor) = match begun.await {
        Ok(Some(begun)) => begun,
        Ok(None) => {
            folder.clear().await;
            return Outcome::Cancelled;
        }
        Err(error) => {
            folder.clear().await;
            return Outcome::Failed(error);
        }
    };
    let is_announced = listen(talk, tool, context, false).await;
    let is_gone = match supervisor.wait().await {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(%error, "the end of a supervisor cannot be read");
            false
        }
    };
    match conclude(tool, &folder, context, Seen { is_announced, is_gone }).await {
        Left::End(outcome) => outcome,
        Left::NeverBegan if context.stop_reason() == Some(StopReason::Cancelled) => {
            Outcome::Cancelled
        }
        Left::NeverBegan => Outcome::Failed(lost_early(&tool.spec)),
        Left::Nothing => Outcome::Failed(lost(&tool.spec)),
    }
}

/// Takes up an attempt that another server began; `None` when nothing is left of it.
pub(crate) async fn reattach(
    tool: &CommandTool,
    root: &Path,
    attempt: &Attempt,
    context: &TaskContext,
) -> Option<Outcome> {
    let folder = Folder::of(root, context.id(), context.attempt_number());
    take_up(tool, &folder, attempt, context).await
}

/// Takes up an attempt of a tool that this server does not have; `None` when nothing is left of it,
/// or when it never was a program.
pub(crate) async fn reattach_stranger(
    root: &Path,
    attempt: &Attempt,
    context: &TaskContext,
) -> Option<Outcome> {
    let folder = Folder::of(root, context.id(), context.attempt_number());
    if !folder.exists() {
        return None;
    }
    let name = &attempt.record.task.tool;
    tracing::warn!(task = %context.id(), tool = %name, "the tool of a running program is gone");
    let spec = ToolSpec::new(name.as_str(), "", Json::empty_object());
    take_up(&CommandTool::new(spec, Vec::new(), root), &folder, attempt, context).await
}

async fn take_up(
    tool: &CommandTool,
    folder: &Folder,
    attempt: &Attempt,
    context: &TaskContext,
) -> Option<Outcome> {
    let mut seen = Seen { is_announced: attempt.record.started_at.is_some(), is_gone: true };
    let place = folder.place();
    let attached = blocking(move || place.attach()).await.and_then(|attached| match attached {
        Attached::Live(stream) => Talk::of(stream).map(Some),
        Attached::Gone => Ok(None),
    });
    match attached {
        Ok(Some(talk)) => {
            seen.is_announced = listen(talk, tool, context, seen.is_announced).await;
            let place = folder.place();
            if let Err(error) = blocking(move || place.gone()).await {
                tracing::warn!(task = %context.id(), %error, "the end of a supervisor is not seen");
                seen.is_gone = false;
            }
        }
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(task = %context.id(), %error, "an attempt cannot be reattached");
            seen.is_gone = false;
        }
    }
    match conclude(tool, folder, context, seen).await {
        Left::End(outcome) => Some(outcome),
        Left::NeverBegan => Some(give_back(&tool.spec, context).await),
        Left::Nothing => None,
    }
}

/// Puts a task back in line whose program never ran; the attempt is not spent [STATE-5].
async fn give_back(spec: &ToolSpec, context: &TaskContext) -> Outcome {
    match context.protocol().not_delivered().await {
        Ok(()) => Outcome::Cancelled,
        Err(error) => {
            tracing::warn!(task = %context.id(), %error, "a task cannot be put back in line");
            Outcome::Failed(lost_early(spec))
        }
    }
}

fn work(
    tool: &CommandTool,
    folder: &Folder,
    attempt: &Attempt,
    context: &TaskContext,
) -> Result<Work, Error> {
    Ok(Work {
        id: context.id().to_string(),
        fence: context.fence().raw(),
        order: order(tool, folder, &attempt.record, context)?,
        inputs: attempt.inputs.get().to_owned(),
        folder: folder.path().into(),
        logs: context.protocol().log_folder().unwrap_or(folder.path()).into(),
        log_quota: tool.log_quota,
        run_timeout: attempt.record.task.limits.run_timeout,
        grace: tool.grace,
        // Where nobody could reattach it, nothing may be left behind.
        ends_with_server: tool.spec.on_exit == OnExit::Stop || !may_be_reattached(context),
        is_synced: context.durability() == Durability::Full,
    })
}

/// Makes the folder of an attempt last where the store does [DUR-7].
async fn keep(folder: &Folder, context: &TaskContext) -> io::Result<()> {
    if context.durability() != Durability::Full {
        return Ok(());
    }
    let place = folder.place();
    blocking(move || place.keep_names()).await
}

/// Starts a supervisor, which does not know yet what to run.
async fn start(supervisor: &Supervisor, folder: &Folder) -> io::Result<(Talk, Child)> {
    let place = folder.place();
    let seat = blocking(move || place.seat()).await?;
    let child = spawn_apart(
        &supervisor.program,
        &supervisor.arguments,
        folder.path(),
        seat.listener.into(),
        seat.lock,
    )?;
    Ok((Talk::of(seat.stream)?, child))
}

/// Passes on what the supervisor says, and what it is to do, until it is gone; tells whether it is on
/// record that the program runs.
async fn listen(
    talk: Talk,
    tool: &CommandTool,
    context: &TaskContext,
    mut is_announced: bool,
) -> bool {
    let begun = Notify::new();
    // A store that is slow holds up nothing else that is said.
    let announce = async {
        begun.notified().await;
        if !is_announced {
            if let Err(error) = context.protocol().runs().await {
                tracing::debug!(task = %context.id(), %error, "a start came too late");
            }
            is_announced = true;
        }
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        () = converse(talk, tool, context, &begun) => {}
        never = announce => match never {},
    }
    is_announced
}

async fn converse(mut talk: Talk, tool: &CommandTool, context: &TaskContext, begun: &Notify) {
    let mut is_told = false;
    loop {
        let said = tokio::select! {
            said = talk.hear() => said,
            () = context.cancellation_token().cancelled(), if !is_told => {
                is_told = true;
                if let Some(stop) = context.stop_reason() {
                    let halt = Halt { reason: stop.into(), grace: grace(tool, stop, context) };
                    // One that is gone is heard of next.
                    let _ = talk.tell(&Told::Stop(halt)).await;
                }
                continue;
            }
        };
        match said {
            Some(Said::Begun) => begun.notify_one(),
            Some(Said::Progress(progress)) => context.progress(progress),
            Some(Said::Partial(partial)) => context.set_partial_result(partial),
            Some(Said::LogGrew) => context.protocol().logs_grew(),
            Some(Said::Stopping) => {
                context.protocol().committed_to_end().await;
                let _ = talk.tell(&Told::Go).await;
            }
            None => return,
        }
    }
}

/// Returns how long a program has that was asked to end.
fn grace(tool: &CommandTool, stop: StopReason, context: &TaskContext) -> Duration {
    match stop {
        // Its supervisor goes on where there is somebody to hear of it later.
        StopReason::Shutdown if !may_be_reattached(context) => tool.grace.min(SHUTDOWN_GRACE),
        StopReason::Cancelled | StopReason::TimedOut | StopReason::Lost | StopReason::Shutdown => {
            tool.grace
        }
    }
}

fn may_be_reattached(context: &TaskContext) -> bool {
    context.durability() != Durability::None
}

/// What is known of an attempt before its files are read.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// It is on record that its program runs.
    is_announced: bool,
    /// Its supervisor is gone for sure, so that nothing in its folder changes any more.
    is_gone: bool,
}

/// Reads what an attempt came to. Where its supervisor was lost, nothing of its program is left when
/// this returns.
async fn conclude(tool: &CommandTool, folder: &Folder, context: &TaskContext, seen: Seen) -> Left {
    let place = folder.place();
    let record = blocking(move || place.read_end()).await;
    match record {
        Ok(Some(record)) if record.fence == context.fence().raw() => {
            if !seen.is_announced && matches!(record.end, End::Ended(_)) {
                context.protocol().ran().await;
            }
            return Left::End(ending(tool, folder, record, context).await);
        }
        Ok(None) if seen.is_gone && !seen.is_announced => {
            let place = folder.place();
            if matches!(blocking(move || Ok(place.has_begun())).await, Ok(false)) {
                return Left::NeverBegan;
            }
        }
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(task = %context.id(), %error, "the end of an attempt cannot be read");
        }
    }
    let place = folder.place();
    let words = blocking(move || Ok(place.last_words())).await.unwrap_or_default();
    tracing::warn!(task = %context.id(), words, "the supervisor of an attempt was lost");
    end_marked(environment::mark(context.id())).await;
    Left::Nothing
}

async fn ending(
    tool: &CommandTool,
    folder: &Folder,
    record: Record,
    context: &TaskContext,
) -> Outcome {
    let Record { end, reason, progress, partial, artifacts, fence: _ } = record;
    if let Some(progress) = progress {
        context.progress(progress);
    }
    if let Some(partial) = partial {
        context.set_partial_result(partial);
    }
    artifacts.into_iter().for_each(|kept| context.artifact(kept.into()));
    context.protocol().logs_grew();
    let ended = match end {
        End::Ended(ended) => ended,
        End::NotStarted { code, text } => {
            let error = code.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error);
            return Outcome::Failed(program::not_started(tool, &error));
        }
    };
    context.metrics(metrics(&ended));
    let told = context.stop_reason();
    match reason {
        Some(Reason::TimedOut) if ended.is_stopped && told.is_none() => {
            outcome::timed_out(ended.wall)
        }
        Some(Reason::Told) if ended.is_stopped => Outcome::Failed(lost(&tool.spec)),
        reason => {
            let result = folder.read_result().await;
            outcome::of(tool, &ended, result, told.or(reason.and_then(Reason::stop)))
        }
    }
}

fn no_supervisor(tool: &CommandTool, error: &io::Error) -> Error {
    let name = &tool.spec.name;
    Error::new(Kind::WorkerLost, format!("tool `{name}` got no supervisor: {error}"))
        .with_guarantee(Guarantee::NotExecuted)
        .with_hint("look at the limits and the disk of the machine, then run it again")
}

fn lost_early(spec: &ToolSpec) -> Error {
    let message = format!("the supervisor of tool `{}` was lost before the tool began", spec.name);
    Error::new(Kind::WorkerLost, message)
        .with_guarantee(Guarantee::NotExecuted)
        .with_hint("run it again")
}

fn lost(spec: &ToolSpec) -> Error {
    let message = format!("the supervisor of tool `{}` was lost before the tool ended", spec.name);
    Error::new(Kind::WorkerLost, message).with_guarantee(Guarantee::Unknown)
}
