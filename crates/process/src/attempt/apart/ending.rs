//! What an attempt came to: by its supervisor's last word, or by what it left.

use std::io;
use std::time::Duration;

use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{StopReason, TaskContext};

use super::persist;
use crate::attempt::folder::{Folder, blocking};
use crate::attempt::{environment, metrics, outcome, program};
use crate::os::end_marked;
use crate::supervisor::{End, Reason, Record, Supervisors};
use crate::tool::CommandTool;

/// How long ago an attempt of this server has to have ended for that to be told: what is recorded at
/// once ended when it was recorded.
const AGO: Duration = Duration::from_secs(1);

/// What an attempt came to whose supervisor is gone.
pub(super) enum Left {
    /// How it ended.
    End(Outcome),
    /// The proof that its program never ran.
    NeverBegan,
    /// Nothing: nobody can say how far the program came.
    Nothing,
}

/// What is known of an attempt before its end is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// The number of its supervisor, when that was started by this server.
    pub(super) pid: Option<i32>,
    /// It is on record that its program runs.
    pub(super) is_announced: bool,
    /// Its supervisor is gone for sure, so that nothing in its folder changes any more.
    pub(super) is_gone: bool,
    /// It was begun by another server.
    pub(super) is_reattached: bool,
    /// Its supervisor was killed from here, since it did not do what it was told.
    pub(super) ended_by_us: Option<StopReason>,
}

/// Reads what an attempt came to. Where its supervisor was lost, nothing of its program is left when
/// this returns.
pub(super) async fn conclude(
    tool: &CommandTool,
    folder: &Folder,
    supervisors: &Supervisors,
    context: &TaskContext,
    seen: Seen,
) -> Left {
    let read = || {
        let place = folder.place();
        async { blocking(move || place.read_end()).await }
    };
    let record = persist(context, "the end of an attempt cannot be read", read).await;
    match record {
        Ok(Some(record)) if record.fence == context.fence().raw() => {
            return Left::End(of(tool, folder, record, context, seen).await);
        }
        Ok(None) if seen.is_gone && !seen.is_announced => {
            let place = folder.place();
            if matches!(blocking(move || Ok(place.has_begun())).await, Ok(false)) {
                return Left::NeverBegan;
            }
        }
        Ok(_) | Err(_) => {}
    }
    let (place, server) = (folder.place(), supervisors.server());
    let words = blocking(move || {
        server.tidy(seen.pid);
        Ok(place.last_words())
    });
    let words = words.await.unwrap_or_default();
    tracing::warn!(task = %context.id(), words, "the supervisor of an attempt was lost");
    end_marked(environment::mark(context.id())).await;
    match seen.ended_by_us {
        Some(StopReason::Cancelled) => Left::End(Outcome::Cancelled),
        Some(StopReason::TimedOut) => Left::End(outcome::timed_out(None)),
        Some(StopReason::Lost | StopReason::Shutdown) | None => Left::Nothing,
    }
}

/// Makes an outcome of how a program ended.
pub(super) async fn of(
    tool: &CommandTool,
    folder: &Folder,
    record: Record,
    context: &TaskContext,
    seen: Seen,
) -> Outcome {
    let Record { end, ended_at, reason, progress, partial, artifacts, .. } = record;
    let Record { has_no_result, is_cut, .. } = record;
    if !seen.is_announced && matches!(end, End::Ended(_)) {
        context.protocol().ran().await;
    }
    if let Some(at) = ended_at.filter(|at| seen.is_reattached || context.now().since(*at) > AGO) {
        context.protocol().ended_at(at);
    }
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
        End::NotNoted { text } => return Outcome::Failed(not_noted(&tool.spec, &text)),
        End::NotStarted { code, text } => {
            let error = code.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error);
            return Outcome::Failed(program::not_started(tool, &error));
        }
    };
    context.metrics(metrics(&ended));
    let told = context.stop_reason();
    match reason {
        reason if is_cut => outcome::cut(told.or(reason.and_then(Reason::stop))),
        Some(Reason::TimedOut) if is_stopped_whole(&ended) && told.is_none() => {
            outcome::timed_out(Some(ended.wall))
        }
        Some(Reason::Told) if is_stopped_whole(&ended) => Outcome::Failed(lost(&tool.spec)),
        reason => {
            let result = if has_no_result { Ok(None) } else { folder.read_result().await };
            outcome::of(tool, &ended, result, told.or(reason.and_then(Reason::stop)))
        }
    }
}

fn is_stopped_whole(ended: &crate::supervise::Ended) -> bool {
    ended.is_stopped && ended.survivors.is_empty()
}

pub(super) fn no_supervisor(tool: &CommandTool, error: &io::Error) -> Error {
    let name = &tool.spec.name;
    Error::new(Kind::WorkerLost, format!("tool `{name}` got no supervisor: {error}"))
        .with_guarantee(Guarantee::NotExecuted)
        .with_hint("look at the limits and the disk of the machine, then run it again")
}

fn not_noted(spec: &ToolSpec, text: &str) -> Error {
    let message = format!("that tool `{}` starts cannot be noted on disk: {text}", spec.name);
    Error::new(Kind::StorageUnavailable, message)
        .with_guarantee(Guarantee::NotExecuted)
        .with_hint("look at the disk of the state folder, then run it again")
}

pub(super) fn lost_early(spec: &ToolSpec) -> Error {
    let message = format!("the supervisor of tool `{}` was lost before the tool began", spec.name);
    Error::new(Kind::WorkerLost, message)
        .with_guarantee(Guarantee::NotExecuted)
        .with_hint("run it again")
}

pub(super) fn lost(spec: &ToolSpec) -> Error {
    let message = format!("the supervisor of tool `{}` was lost before the tool ended", spec.name);
    Error::new(Kind::WorkerLost, message).with_guarantee(Guarantee::Unknown)
}

#[cfg(test)]
mod tests {
    use raincheck_core::content::Json;

    use super::*;

    // [LEASE-3]
    #[test]
    fn a_start_that_was_not_noted_is_a_fault_of_the_disk_and_nothing_ran() {
        let spec = ToolSpec::new("render", "Renders", Json::empty_object());
        let error = not_noted(&spec, "No space left on device");
        let told = (error.kind, error.guarantee());
        assert_eq!(told, (Kind::StorageUnavailable, Some(Guarantee::NotExecuted)));
    }
}
