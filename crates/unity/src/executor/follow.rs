//! One caller's wait for a call that an editor has, or may have.

use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::progress::Progress;
use raincheck_core::task::Outcome;
use raincheck_runtime::{StopReason, TaskContext};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{give_back, lost, not_ready, request_of};
use crate::backend::Ask;
use crate::bridge::Unity;
use crate::desk::run::Report;
use crate::desk::stage::{Move, Stage};
use crate::desk::{Whereabouts, grace_of};
use crate::wire::RequestId;

/// How long a call that was taken on is let run before that is recorded: the end of a short one is
/// recorded with it.
const SHORT: Duration = Duration::from_millis(25);

const GONE: &str = "the editor that had the call went away and did not come back";

const UNHEARD: &str = "no editor that had the call came back after the server was started again";

/// A caller that waits. Dropping it takes the caller out of the call.
pub(super) struct Following<'a> {
    bridge: &'a Unity,
    context: TaskContext,
    request: RequestId,
    seen: watch::Receiver<Report>,
    /// That the call runs was recorded.
    is_said: bool,
    /// When that is to be recorded.
    start_due: Option<Instant>,
    is_committed: bool,
    is_stopped: bool,
    shown: (Option<Progress>, Option<Json>),
}

impl<'a> Following<'a> {
    pub(super) const fn new(
        bridge: &'a Unity,
        context: TaskContext,
        request: RequestId,
        seen: watch::Receiver<Report>,
    ) -> Self {
        Self {
            bridge,
            context,
            request,
            seen,
            is_said: false,
            start_due: None,
            is_committed: false,
            is_stopped: false,
            shown: (None, None),
        }
    }

    pub(super) async fn run(mut self) -> Outcome {
        let stop = self.context.cancellation_token().clone();
        loop {
            let report = self.seen.borrow_and_update().clone();
            if let Some(outcome) = self.weigh(report).await {
                return outcome;
            }
            let due = self.due();
            let clock = self.bridge.clock();
            let end = tokio::select! {
                // The sender is dropped with the call, which is not removed before its callers are gone.
                _ = self.seen.changed() => None,
                () = stop.cancelled(), if !self.is_stopped => self.stop(),
                () = async {
                    match due {
                        Some(due) => clock.sleep_until(due).await,
                        None => std::future::pending().await,
                    }
                } => self.look().await,
            };
            if let Some(outcome) = end {
                return outcome;
            }
        }
    }

    fn is_joined(&self) -> bool {
        self.request != request_of(&self.context)
    }

    /// Takes in how the call stands; an outcome when that is the end.
    async fn weigh(&mut self, report: Report) -> Option<Outcome> {
        let Report { stage, progress, partial, is_cancelling, outcome } = report;
        self.show(progress, partial);
        if is_cancelling && self.is_stopped && !self.is_committed {
            self.is_committed = true;
            self.context.protocol().committed_to_end().await;
        }
        match stage {
            Stage::Posted | Stage::Sent => None,
            Stage::Accepted | Stage::Started => {
                let is_due = !self.is_said && self.start_due.is_none();
                self.start_due = self.start_due.or(is_due.then(|| self.bridge.now() + SHORT));
                None
            }
            Stage::Unsent => {
                let why =
                    not_ready("disconnected", "the editor went away before it was sent the call");
                Some(self.back(why).await)
            }
            Stage::Disowned => {
                let words = "the editor went away before it had the call, and came back without it";
                let why = not_ready("disconnected", words);
                if self.is_stopped {
                    return Some(Outcome::Cancelled);
                }
                // Sent once more, it is another attempt: the editor must not take it for the first.
                Some(if self.is_joined() { self.back(why).await } else { Outcome::Failed(why) })
            }
            Stage::Forgotten => {
                self.context.protocol().given_up();
                let words =
                    "the editor that had the call came back without it, or did not come back";
                Some(Outcome::Failed(lost(words)))
            }
            Stage::Ended => Some(self.ended(outcome.unwrap_or(Outcome::Cancelled)).await),
        }
    }

    async fn back(&self, why: Error) -> Outcome {
        if self.is_stopped {
            return Outcome::Cancelled;
        }
        give_back(&self.context, why).await
    }

    async fn ended(&self, outcome: Outcome) -> Outcome {
        let has_run = match &outcome {
            Outcome::Failed(error) => error.guarantee() != Some(Guarantee::NotExecuted),
            Outcome::Succeeded(_) | Outcome::Cancelled => true,
        };
        if has_run && !self.is_said {
            self.context.protocol().ran().await;
        }
        if outcome == Outcome::Cancelled {
            // A result that comes all the same is kept beside it [LEASE-7].
            self.context.protocol().confirmed_end();
        }
        outcome
    }

    fn show(&mut self, progress: Option<Progress>, partial: Option<Json>) {
        if progress != self.shown.0 {
            self.shown.0.clone_from(&progress);
            progress.into_iter().for_each(|it| self.context.progress(it));
        }
        if partial != self.shown.1 {
            self.shown.1.clone_from(&partial);
            partial.into_iter().for_each(|it| self.context.set_partial_result(it));
        }
    }

    /// Has to end early: the last of those who asked for the call has it stopped.
    fn stop(&mut self) -> Option<Outcome> {
        match self.context.stop_reason() {
            Some(StopReason::Lost | StopReason::Shutdown) | None => {
                return Some(Outcome::Cancelled);
            }
            Some(StopReason::Cancelled | StopReason::TimedOut) => {}
        }
        let mut desk = self.bridge.desk();
        let Some(run) = desk.runs.get_mut(&self.request) else { return Some(Outcome::Cancelled) };
        if run.members.len() > 1 {
            // Its end is not this caller's any more.
            self.context.protocol().given_up();
            return Some(Outcome::Cancelled);
        }
        self.is_stopped = true;
        run.is_stopping = true;
        let editor = run.editor.clone();
        if let (Some(key), Some(ask)) = (editor, run.stop_again(self.request)) {
            desk.ask(&key, ask);
        }
        None
    }

    /// When to look whether the call is lost.
    fn due(&self) -> Option<Instant> {
        self.lapse().map(|(at, _)| at).into_iter().chain(self.start_due).min()
    }

    /// When the call is given up unless something comes, and as what.
    fn lapse(&self) -> Option<(Instant, Error)> {
        let settings = self.bridge.settings();
        let desk = self.bridge.desk();
        let run = desk.runs.get(&self.request)?;
        let lapse = match desk.whereabouts(settings, self.request) {
            Whereabouts::Here if run.stage == Stage::Sent => {
                let words = format!(
                    "the editor did not say within {} s that it has the call",
                    settings.accept.as_secs()
                );
                let error =
                    Error::new(Kind::AcceptTimeout, words).with_guarantee(Guarantee::Unknown);
                (run.since + settings.accept, error)
            }
            Whereabouts::Here => {
                let words = "the editor that had the call does not know of it any more";
                // A result that was on its way is here by then.
                (run.unknown_since? + settings.accept, lost(words))
            }
            Whereabouts::Away(until) => (until, lost(GONE)),
            Whereabouts::Unheard => {
                // What its editor did when the earlier server ended is not known.
                let until = run.since + grace_of(settings, run.is_unheard);
                (until, lost(if run.is_unheard { UNHEARD } else { GONE }))
            }
        };
        Some(lapse)
    }

    async fn look(&mut self) -> Option<Outcome> {
        let now = self.bridge.now();
        if self.start_due.is_some_and(|due| due <= now) {
            self.start_due = None;
            self.is_said = true;
            // One that is not the task's any more is told to stop.
            if let Err(error) = self.context.protocol().runs().await {
                tracing::debug!(task = %self.context.id(), %error, "a start was not recorded");
            }
        }
        let (at, error) = self.lapse()?;
        if now < at {
            return None;
        }
        let mut desk = self.bridge.desk();
        if error.kind == Kind::AcceptTimeout
            && let Some(key) = desk.runs.get(&self.request).and_then(|run| run.editor.clone())
        {
            // One that takes it on after all need not run it to its end.
            desk.ask(&key, Ask::Cancel { request: self.request, job_id: None });
            if let Some(editor) = desk.editors.get_mut(&key) {
                editor.is_mute = true;
            }
        }
        desk.step(self.request, Move::Abandon);
        drop(desk);
        self.bridge.moved();
        self.context.protocol().given_up();
        Some(Outcome::Failed(error))
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        let member = request_of(&self.context);
        self.bridge.desk().leave(self.request, member);
    }
}
