//! The server's end of the conversation with a supervisor.

use std::convert::Infallible;
use std::time::Duration;

use raincheck_runtime::{Attempt, StopReason, TaskContext};
use tokio::sync::Notify;

use super::may_be_reattached;
use crate::attempt::SHUTDOWN_GRACE;
use crate::attempt::folder::Folder;
use crate::os::end_stranger;
use crate::patience::pass;
use crate::supervisor::{Halt, Record, Said, Talk, Told};
use crate::tool::CommandTool;

/// How long a supervisor that has to end its program may take beyond the grace before it is killed
/// itself: it is stopped, or stuck.
const STUCK: Duration = Duration::from_secs(4);

/// What was heard last.
pub(super) enum Heard {
    /// How the program ended, from a supervisor that waits to hear that this is kept.
    End(Box<Record>, Talk),
    /// Nothing more: the supervisor is gone, or about to be. It was killed from here if it kept a
    /// program beyond the time it had to end it in.
    Gone(Option<StopReason>),
}

/// The line to a supervisor.
pub(super) struct Line {
    pub(super) talk: Talk,
    /// The number of its process, once it was told.
    pub(super) pid: Option<i32>,
    /// What it said already.
    pub(super) first: Option<Said>,
    /// It is on record that its program runs.
    pub(super) is_announced: bool,
}

impl Line {
    /// Returns the number of its process, once it was told.
    pub(super) fn pid(&self) -> Option<i32> {
        match self.first {
            Some(Said::Here { pid }) => i32::try_from(pid).ok(),
            Some(_) | None => self.pid,
        }
    }
}

/// Passes on what the supervisor says, and what it is to do, until its last word; tells whether it is
/// on record that the program runs.
pub(super) async fn listen(
    line: Line,
    tool: &CommandTool,
    folder: &Folder,
    attempt: &Attempt,
    context: &TaskContext,
) -> (bool, Heard) {
    let Line { talk, pid, first, mut is_announced } = line;
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
    let limit = attempt.record.task.limits.run_timeout;
    let heard = tokio::select! {
        heard = Conversation { talk, pid, tool, folder, context, begun: &begun }.hold(first, limit) => heard,
        never = announce => match never {},
    };
    (is_announced, heard)
}

struct Conversation<'a> {
    talk: Talk,
    pid: Option<i32>,
    tool: &'a CommandTool,
    folder: &'a Folder,
    context: &'a TaskContext,
    begun: &'a Notify,
}

impl Conversation<'_> {
    async fn hold(mut self, mut first: Option<Said>, run_timeout: Option<Duration>) -> Heard {
        let (mut is_told, mut ended_by_us) = (false, None);
        // The supervisor keeps the limit; this is for one that cannot.
        let run_timeout = run_timeout.map(|limit| limit + self.tool.grace + STUCK);
        let mut watch = std::pin::pin!(Watch::over(run_timeout));
        loop {
            let said = tokio::select! {
                said = async { match first.take() { None => self.talk.hear().await, said => said } } => said,
                () = self.context.cancellation_token().cancelled(), if !is_told => {
                    is_told = true;
                    if let Some(stop) = self.context.stop_reason() {
                        let grace = self.grace(stop);
                        if stop != StopReason::Shutdown {
                            watch.set(Watch::over(Some(grace + STUCK)));
                        }
                        let halt = Halt { reason: stop.into(), grace };
                        // One that is gone is heard of next; one that does not read is watched.
                        let _ = self.talk.tell(&Told::Stop(halt)).await;
                    }
                    continue;
                }
                () = watch.as_mut() => {
                    watch.set(Watch::over(None));
                    ended_by_us = self.end_supervisor();
                    continue;
                }
            };
            match said {
                Some(Said::Here { pid }) => self.pid = i32::try_from(pid).ok(),
                Some(Said::Begun) => self.begun.notify_one(),
                Some(Said::Progress(progress)) => self.context.progress(progress),
                Some(Said::Partial(partial)) => self.context.set_partial_result(partial),
                Some(Said::LogGrew) => self.context.protocol().logs_grew(),
                Some(Said::Stopping) => {
                    self.context.protocol().committed_to_end().await;
                    let _ = self.talk.tell(&Told::Go).await;
                }
                // Its program has ended: what is left to do takes as long as it takes.
                Some(Said::Collecting) => watch.set(Watch::over(None)),
                Some(Said::Ended(record)) if record.fence == self.context.fence().raw() => {
                    return Heard::End(record, self.talk);
                }
                Some(Said::Ended(_)) => {}
                None => return Heard::Gone(ended_by_us),
            }
        }
    }

    /// Kills a supervisor that does not end its program. What it leaves is ended when it is gone.
    fn end_supervisor(&self) -> Option<StopReason> {
        let id = self.context.id();
        let ended = self.pid.map(|pid| end_stranger(pid, self.folder.place().path()));
        match ended {
            Some(Ok(())) => {
                tracing::warn!(task = %id, "a supervisor that did not answer was killed");
                Some(self.context.stop_reason().unwrap_or(StopReason::TimedOut))
            }
            Some(Err(error)) => {
                tracing::warn!(task = %id, %error, "a supervisor that does not answer remains");
                None
            }
            None => None,
        }
    }

    /// Returns how long a program has that was asked to end.
    fn grace(&self, stop: StopReason) -> Duration {
        match stop {
            // Its supervisor goes on where there is somebody to hear of it later.
            StopReason::Shutdown if !may_be_reattached(self.context) => {
                self.tool.grace.min(SHUTDOWN_GRACE)
            }
            StopReason::Cancelled
            | StopReason::TimedOut
            | StopReason::Lost
            | StopReason::Shutdown => self.tool.grace,
        }
    }
}

/// Waits for a span of time in which this process could run; for ever without one.
struct Watch;

impl Watch {
    async fn over(span: Option<Duration>) {
        match span {
            Some(span) => pass(span).await,
            None => std::future::pending().await,
        }
    }
}
