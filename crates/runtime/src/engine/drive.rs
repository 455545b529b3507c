//! Running attempts: one future holds one place of a lane and runs task after task in it.

use std::any::Any;
use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use futures_util::future::{Either, poll_immediate, select};
use tokio::time::sleep;

use raincheck_core::cancel::OnExit;
use raincheck_core::decide::Change;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::{LaneId, ToolName};
use raincheck_core::lifecycle::State;
use raincheck_core::store::{self, Claim, Claimed, HeartbeatReply, Update, UpdateResult};
use raincheck_core::task::Outcome;

use super::Shared;
use super::timers::PAUSE;
use super::tools::Tool;
use crate::context::{StopReason, TaskContext};
use crate::executor::{Attempt, Executor, StartReport};
use crate::live::Live;
use crate::shards::lock;
use crate::waits::Happened;

/// How an attempt is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    Execute,
    Reattach,
}

impl Shared {
    /// Runs a leased attempt, and whatever its place in the lane gets next.
    pub(crate) fn drive(shared: &Arc<Self>, leased: Claimed) {
        shared.spawn(Begin::Execute, leased);
    }

    /// Takes up an attempt that survived a restart.
    pub(super) fn reattach(shared: &Arc<Self>, leased: Claimed) {
        shared.spawn(Begin::Reattach, leased);
    }

    fn spawn(self: &Arc<Self>, begin: Begin, leased: Claimed) {
        let mut drivers = lock(&self.drivers);
        while drivers.try_join_next().is_some() {}
        drivers.spawn(Arc::clone(self).hold_place(begin, leased));
    }

    async fn hold_place(self: Arc<Self>, mut begin: Begin, leased: Claimed) {
        let mut next = Some(leased);
        while let Some(leased) = next {
            let attempt = Attempt::from(leased);
            let mut live = self.live(&attempt);
            live.is_reattached = begin == Begin::Reattach;
            let live = Arc::new(live);
            if live.is_reattached {
                live.uses_log.store(true, Ordering::Release);
                // A cancel that was asked for before the restart still counts.
                live.observe(&attempt.record);
            }
            self.lives.insert(Arc::clone(&live));
            self.beats.arm(live.next_beat());
            self.observer.attempt_began(&attempt.record);
            next = self.run_one(begin, attempt, &live).await;
            self.observer.attempt_ended();
            begin = Begin::Execute;
            tokio::task::coop::consume_budget().await;
        }
    }

    fn live(&self, attempt: &Attempt) -> Live {
        let tool = self.tools.find(attempt.record.task.tool.as_str());
        // What goes on without its tool here may be heard by a later server that has it.
        let on_exit = tool.map_or(OnExit::Detach, |tool| tool.spec.on_exit);
        Live::new(&attempt.record, on_exit, self.clock.now())
    }

    /// Runs one attempt to its end and returns what its place runs next.
    async fn run_one(
        self: &Arc<Self>,
        begin: Begin,
        attempt: Attempt,
        live: &Arc<Live>,
    ) -> Option<Claimed> {
        let (lane, tool) = (attempt.record.task.lane.clone(), attempt.record.task.tool.clone());
        let outcome = self.outcome_of(begin, attempt, live).await;
        live.has_ended.store(true, Ordering::Release);
        let given_back = live.was_given_back.load(Ordering::Acquire);
        let next = match outcome.filter(|_| !given_back) {
            Some(outcome) => {
                let next = self.finish(live, outcome, lane).await;
                match self.tools.find(tool.as_str()) {
                    Some(tool) => tell_committed(&*tool.executor, live).await,
                    // Whoever took up an attempt of a tool that is gone is not written down.
                    None => {
                        for executor in self.tools.executors() {
                            tell_committed(&**executor, live).await;
                        }
                    }
                }
                next
            }
            None => {
                self.let_go(live).await;
                self.close_logs(live).await;
                self.unfilled.mark(lane);
                None
            }
        };
        self.lives.remove(live);
        // Who follows the log waits for no other word, even where there is none.
        self.waits.tell(live.id, Happened::Reported);
        next
    }

    /// Runs the executor; `None` when the attempt is not the task's any more.
    async fn outcome_of(
        self: &Arc<Self>,
        begin: Begin,
        attempt: Attempt,
        live: &Arc<Live>,
    ) -> Option<Outcome> {
        let Some(tool) = self.tools.find(attempt.record.task.tool.as_str()) else {
            return Some(match begin {
                Begin::Execute => Outcome::Failed(no_tool(&attempt)),
                Begin::Reattach => self.reattach_without_tool(attempt, live).await,
            });
        };
        let is_announced = tool.start_report != StartReport::AtFirstWait;
        if begin == Begin::Execute && is_announced && !self.may_run(tool, live).await {
            return (live.reason.get() == Some(&StopReason::Cancelled))
                .then_some(Outcome::Cancelled);
        }
        let context = TaskContext::new(Arc::clone(self), Arc::clone(live));
        let run = async {
            match begin {
                Begin::Execute => tool.executor.execute(attempt, context).await,
                Begin::Reattach => {
                    let reattached = tool.executor.reattach(attempt, context).await;
                    reattached.unwrap_or_else(|| Outcome::Failed(nothing_left()))
                }
            }
        };
        let mut run = pin!(AssertUnwindSafe(run).catch_unwind());
        let outcome = match poll_immediate(run.as_mut()).await {
            Some(outcome) => outcome,
            None if begin == Begin::Execute && !is_announced => {
                let announced = pin!(self.may_run(tool, live));
                // A cancel that came since the lease is in the attempt's own hands now, and a store
                // that fails does not hold it up.
                match select(run, announced).await {
                    Either::Left((outcome, _)) => outcome,
                    Either::Right((_, run)) => run.await,
                }
            }
            None => run.await,
        };
        Some(outcome.unwrap_or_else(|panic| Outcome::Failed(panicked(&*panic))))
    }

    /// Takes up an attempt whose tool this server does not have: it may run on all the same, and then
    /// its outcome counts.
    async fn reattach_without_tool(
        self: &Arc<Self>,
        attempt: Attempt,
        live: &Arc<Live>,
    ) -> Outcome {
        let tool = attempt.record.task.tool.clone();
        let reattached = async {
            for executor in self.tools.executors() {
                let context = TaskContext::new(Arc::clone(self), Arc::clone(live));
                if let Some(outcome) = executor.reattach(attempt.clone(), context).await {
                    return outcome;
                }
            }
            Outcome::Failed(gone_with_its_tool(&tool))
        };
        let reattached = AssertUnwindSafe(reattached).catch_unwind().await;
        reattached.unwrap_or_else(|panic| Outcome::Failed(panicked(&*panic)))
    }

    /// Says that the attempt runs, and looks whether it still may: a cancel can come between its
    /// lease and this moment.
    async fn may_run(&self, tool: &Tool, live: &Live) -> bool {
        if tool.start_report == StartReport::ByExecutor {
            let beat = || self.store.heartbeat(self.clock.now(), vec![live.beat()]);
            match self.until_kept(live, beat).await.as_slice() {
                [HeartbeatReply::Cancel] if live.supports_cancel => {
                    live.stop(StopReason::Cancelled);
                }
                [HeartbeatReply::Continue | HeartbeatReply::Cancel] => {}
                _ => live.stop(StopReason::Lost),
            }
        } else {
            let start = || self.update_one(Update::attempt(live.id, live.fence, Change::Start));
            match self.until_kept(live, start).await {
                UpdateResult::Moved(record) | UpdateResult::Same(record) => live.observe(&record),
                UpdateResult::Late(record) | UpdateResult::Refused(record, _) => {
                    live.observe(&record);
                    live.stop(StopReason::Lost);
                }
                UpdateResult::Absent => live.stop(StopReason::Lost),
            }
        }
        live.reason.get().is_none()
    }

    /// Waits until the lease of an attempt is committed; tells whether it is still the task's.
    pub(crate) async fn lease_kept(&self, live: &Live) -> bool {
        loop {
            let is_committed = self.store.barrier().committed().await.is_ok();
            // A commit that failed may have been another's: the store shows only what is kept then.
            let beat = || self.store.heartbeat(self.clock.now(), vec![live.beat()]);
            match self.until_kept(live, beat).await.as_slice() {
                [directive] if *directive != HeartbeatReply::Lost => live.obey(*directive),
                _ => {
                    live.stop(StopReason::Lost);
                    return false;
                }
            }
            if is_committed {
                return true;
            }
        }
    }

    /// Posts the end of an attempt, frees its place and takes the next task of the lane, all in one
    /// transaction. While the store fails, the outcome is kept here [DUR-5].
    async fn finish(&self, live: &Arc<Live>, outcome: Outcome, lane: LaneId) -> Option<Claimed> {
        let change = match live.was_given_up.load(Ordering::Acquire) {
            true => Change::GiveUp(outcome),
            false => Change::Finish(outcome),
        };
        let mut update = Update::attempt(live.id, live.fence, change);
        update.report = live.take_report();
        update.releases = true;
        let once = || async {
            let then = self.is_open().then(|| Claim { lanes: vec![lane.clone()], n: 1 });
            let posted = self.store.update(self.clock.now(), vec![update.clone()], then).await?;
            if let (Some(UpdateResult::Moved(record)), Change::Finish(Outcome::Succeeded(result))) =
                (posted.value.0.first(), &update.change)
                && record.state == State::Succeeded
            {
                self.waits.tell_early(live.id, result);
            }
            posted.receipt.committed().await?;
            Ok::<_, store::Error>(posted.value)
        };
        let (verdicts, mut claimed) = self.until_kept(live, once).await;
        match verdicts.first() {
            // Between two attempts nobody would close it.
            Some(UpdateResult::Moved(_) | UpdateResult::Same(_)) => self.close_logs(live).await,
            Some(UpdateResult::Late(record) | UpdateResult::Refused(record, _)) => {
                tracing::debug!(task = %live.id, state = %record.state, "an outcome came late");
                if record.state.is_terminal() && record.fence == live.fence {
                    self.close_logs(live).await;
                }
            }
            Some(UpdateResult::Absent) | None => {
                tracing::debug!(task = %live.id, "an outcome came for a forgotten task");
                self.waits.tell(live.id, Happened::Ended);
            }
        }
        claimed.pop()
    }

    async fn close_logs(&self, live: &Live) {
        if live.uses_log.load(Ordering::Acquire)
            && let Err(error) = self.logs.close(live.id).await
        {
            tracing::warn!(task = %live.id, %error, "the log could not be closed");
        }
    }

    /// Frees the place of an attempt that is over without an outcome.
    async fn let_go(&self, live: &Live) {
        let once = || async {
            let slots = vec![(live.id, live.fence)];
            self.store.release(self.clock.now(), slots).await?.receipt.committed().await
        };
        self.until_kept(live, once).await;
    }

    /// Says something about an attempt until the store keeps it: a full disk is no reason to lose
    /// an outcome or a place. The end of the engine ends it.
    pub(crate) async fn until_kept<T, E, F>(&self, live: &Live, say: impl Fn() -> F) -> T
    where
        E: Display,
        F: Future<Output = Result<T, E>>,
    {
        let mut n_failures: u32 = 0;
        loop {
            let error = match say().await {
                Ok(kept) => return kept,
                Err(error) => error,
            };
            if n_failures == 0 {
                tracing::error!(task = %live.id, attempt = live.number, %error, "the store failed");
                // Who waits looks again: the task itself may be what was lost.
                self.waits.tell(live.id, Happened::Ended);
            }
            n_failures += 1;
            sleep(PAUSE).await;
        }
    }
}

/// Tells an executor that its outcome is kept. What it does then is not the task's any more.
async fn tell_committed(executor: &dyn Executor, live: &Live) {
    let recorded =
        AssertUnwindSafe(executor.on_outcome_committed(live.id, live.number)).catch_unwind();
    if recorded.await.is_err() {
        tracing::error!(task = %live.id, "an executor panicked");
    }
}

fn no_tool(attempt: &Attempt) -> Error {
    let message = format!("this server has no tool `{}` any more", attempt.record.task.tool);
    Error::new(Kind::UnknownTool, message)
}

fn nothing_left() -> Error {
    Error::new(Kind::WorkerLost, "nothing of the attempt was left after the restart")
}

fn gone_with_its_tool(tool: &ToolName) -> Error {
    let message = format!(
        "nothing of the attempt was left after the restart, and this server has no tool `{tool}` any more"
    );
    Error::new(Kind::WorkerLost, message).with_guarantee(Guarantee::Unknown)
}

/// The failure of an executor that panicked; its words are for the operator only.
fn panicked(panic: &(dyn Any + Send)) -> Error {
    let words = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no words");
    tracing::error!(words, "an executor panicked");
    Error::new(Kind::Panicked, "the tool panicked").with_guarantee(Guarantee::Unknown)
}
