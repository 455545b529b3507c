//! An attempt in the hands of a supervisor: this side only starts it, listens, and learns its end.

mod ending;
mod start;
mod talk;

use std::io;
use std::path::Path;
use std::time::Duration;

use raincheck_core::cancel::OnExit;
use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::store::Durability;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Attempt, StopReason, TaskContext};

use super::folder::{Folder, blocking};
use super::{no_folder, order};
use crate::os::is_for_now;
use crate::patience::within;
use crate::supervisor::{Attached, Said, Supervisors, Talk, Told, Work};
use crate::tool::CommandTool;

use ending::{Left, Seen};
use start::{NotStarted, Started};
use talk::{Heard, Line};

pub(crate) use start::prepare;

/// How long a supervisor that was asked for may take to say that it is there.
const HERE: Duration = Duration::from_secs(10);

/// The pauses between two attempts at what the system refuses for a moment.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// Runs a tool once, in a process of its own.
pub(crate) async fn run(
    tool: &CommandTool,
    root: &Path,
    supervisors: &Supervisors,
    attempt: Attempt,
    context: &TaskContext,
) -> Outcome {
    let folder = Folder::of(root, context.id(), context.attempt_number());
    let line = match begin(tool, &folder, supervisors, &attempt, context).await {
        Begun::Told(line) => line,
        Begun::Not(outcome) => {
            folder.clear().await;
            return outcome;
        }
    };
    let mut seen = Seen { pid: line.pid(), ..Seen::default() };
    let listen = talk::listen(line, tool, &folder, &attempt, context);
    let heard = tokio::select! {
        heard = listen => heard,
        // A short program leaves no time for it.
        never = start::prepare_soon(root, supervisors) => match never {},
    };
    match heard {
        (is_announced, Heard::End(record, talk)) => {
            let seen = Seen { is_announced, ..seen };
            let outcome = ending::of(tool, &folder, *record, context, seen).await;
            supervisors.remember(context.id(), context.attempt_number(), talk);
            return outcome;
        }
        (is_announced, Heard::Gone(ended_by_us)) => {
            seen = Seen { is_announced, ended_by_us, ..seen };
        }
    }
    seen.is_gone = wait_until_gone(&folder, context).await;
    match ending::conclude(tool, &folder, supervisors, context, seen).await {
        Left::End(outcome) => outcome,
        Left::NeverBegan if context.stop_reason() == Some(StopReason::Cancelled) => {
            Outcome::Cancelled
        }
        Left::NeverBegan => Outcome::Failed(ending::lost_early(&tool.spec)),
        Left::Nothing => Outcome::Failed(ending::lost(&tool.spec)),
    }
}

/// How the start of an attempt went.
enum Begun {
    /// Its supervisor was told what to run.
    Told(Line),
    /// Nothing ran, and nothing will.
    Not(Outcome),
}

async fn begin(
    tool: &CommandTool,
    folder: &Folder,
    supervisors: &Supervisors,
    attempt: &Attempt,
    context: &TaskContext,
) -> Begun {
    let begun = async {
        let mut work = work(tool, folder, attempt, context)?;
        let start = start::start(supervisors, folder, work.is_synced);
        let (started, leased) = tokio::join!(start, context.protocol().leased());
        // A supervisor that is not told what to run ends by itself, and nothing ran.
        let Started { mut talk, pid, generation, are_names_synced } =
            started.map_err(|error| match error {
                NotStarted::Folder(error) => no_folder(&error),
                NotStarted::Process(error) => ending::no_supervisor(tool, &error),
            })?;
        leased?;
        if context.stop_reason() == Some(StopReason::Cancelled) {
            return Ok(None);
        }
        let told = async {
            work.are_names_synced = are_names_synced;
            talk.tell(&Told::Run(Box::new(work))).await.ok()?;
            // Until it says something nobody holds the attempt.
            talk.hear::<Said>().await
        };
        match within(HERE, told).await {
            Some(Some(first)) => {
                return Ok(Some(Line { talk, pid, first: Some(first), is_announced: false }));
            }
            Some(None) => {}
            None => supervisors.replace(generation).await,
        }
        // What is revoked never runs. What cannot be revoked may be running: it is listened to.
        let place = folder.place();
        if blocking(move || Ok(place.revoke())).await.unwrap_or(false) {
            return Err(ending::no_supervisor(tool, &io::ErrorKind::BrokenPipe.into()));
        }
        Ok(Some(Line { talk, pid, first: None, is_announced: false }))
    };
    match begun.await {
        Ok(Some(line)) => Begun::Told(line),
        Ok(None) => Begun::Not(Outcome::Cancelled),
        Err(error) => Begun::Not(Outcome::Failed(error)),
    }
}

/// Takes up an attempt that another server began; `None` when nothing is left of it.
pub(crate) async fn reattach(
    tool: &CommandTool,
    root: &Path,
    supervisors: &Supervisors,
    attempt: &Attempt,
    context: &TaskContext,
) -> Option<Outcome> {
    let folder = Folder::of(root, context.id(), context.attempt_number());
    take_up(tool, &folder, supervisors, attempt, context).await
}

/// Takes up an attempt of a tool that this server does not have; `None` when nothing is left of it,
/// or when it never was a program.
pub(crate) async fn reattach_stranger(
    root: &Path,
    supervisors: &Supervisors,
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
    let tool = CommandTool::new(spec, Vec::new(), root);
    take_up(&tool, &folder, supervisors, attempt, context).await
}

async fn take_up(
    tool: &CommandTool,
    folder: &Folder,
    supervisors: &Supervisors,
    attempt: &Attempt,
    context: &TaskContext,
) -> Option<Outcome> {
    let is_announced = attempt.record.started_at.is_some();
    let mut seen = Seen { is_announced, is_gone: true, is_reattached: true, ..Seen::default() };
    let attach = || {
        let place = folder.place();
        let attach = move || match place.attach()? {
            Attached::Live(stream, pid) => Ok(Some((stream, pid))),
            Attached::Gone => Ok(None),
            Attached::Razed => Err(io::ErrorKind::NotFound.into()),
        };
        let talk = |(stream, pid)| Talk::of(stream).map(|talk| (talk, pid));
        async move { blocking(attach).await.and_then(|live| live.map(talk).transpose()) }
    };
    match persist(context, "an attempt cannot be reattached", attach).await {
        Ok(Some((talk, pid))) => {
            let line = Line { talk, pid, first: None, is_announced };
            match talk::listen(line, tool, folder, attempt, context).await {
                (is_announced, Heard::End(record, talk)) => {
                    seen.is_announced = is_announced;
                    let outcome = ending::of(tool, folder, *record, context, seen).await;
                    supervisors.remember(context.id(), context.attempt_number(), talk);
                    return Some(outcome);
                }
                (is_announced, Heard::Gone(ended_by_us)) => {
                    seen = Seen { is_announced, ended_by_us, ..seen };
                }
            }
            seen.is_gone = wait_until_gone(folder, context).await;
        }
        Ok(None) => {}
        Err(_) => seen.is_gone = false,
    }
    match ending::conclude(tool, folder, supervisors, context, seen).await {
        Left::End(outcome) => Some(outcome),
        Left::NeverBegan => Some(give_back(&tool.spec, context).await),
        Left::Nothing => None,
    }
}

/// Waits until the supervisor is gone; tells whether that is known.
async fn wait_until_gone(folder: &Folder, context: &TaskContext) -> bool {
    let gone = || {
        let place = folder.place();
        async { blocking(move || place.gone()).await }
    };
    persist(context, "the end of a supervisor is not seen", gone).await.is_ok()
}

/// Does something that the system may refuse for a moment until it does not: what cannot be seen for
/// want of descriptors or memory is not lost. What has to stop must be reached as well to be stopped.
///
/// # Errors
/// The refusal that no time will change, or the last one when the server ends.
async fn persist<T, F: Future<Output = io::Result<T>>>(
    context: &TaskContext,
    what: &'static str,
    act: impl Fn() -> F,
) -> io::Result<T> {
    let [shortest, longest] = PAUSES;
    let mut pause = shortest;
    let mut is_told = false;
    loop {
        let error = match act().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if !std::mem::replace(&mut is_told, true) {
            tracing::warn!(task = %context.id(), %error, "{what}");
        }
        let reason = context.stop_reason();
        if !is_for_now(&error) || reason == Some(StopReason::Shutdown) {
            return Err(error);
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(longest),
            () = context.cancellation_token().cancelled(), if reason.is_none() => {
                pause = shortest;
            }
        }
    }
}

/// Puts a task back in line whose program never ran; the attempt is not spent [STATE-5].
async fn give_back(spec: &ToolSpec, context: &TaskContext) -> Outcome {
    match context.protocol().not_delivered().await {
        Ok(()) => Outcome::Cancelled,
        Err(error) => {
            tracing::warn!(task = %context.id(), %error, "a task cannot be put back in line");
            Outcome::Failed(ending::lost_early(spec))
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
        place: folder.place().path().into(),
        logs: context.protocol().log_folder().unwrap_or(folder.path()).into(),
        log_quota: tool.log_quota,
        run_timeout: attempt.record.task.limits.run_timeout,
        grace: tool.grace,
        // Where nobody could reattach it, nothing may be left behind.
        ends_with_server: tool.spec.on_exit == OnExit::Stop || !may_be_reattached(context),
        is_synced: context.durability() == Durability::Full,
        are_names_synced: false,
    })
}

fn may_be_reattached(context: &TaskContext) -> bool {
    context.durability() != Durability::None
}
