//! Running attempts: one future holds one slot of a lane and runs task after task in it.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Either, poll_immediate, select};

use raincheck_core::cancel::OnExit;
use raincheck_core::decide::Change;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::{LaneId, ToolName};
use raincheck_core::lifecycle::State;
use raincheck_core::store::{self, Claim, Claimed, Update, UpdateResult};
use raincheck_core::task::Outcome;

use super::Engine;
use crate::context::TaskContext;
use crate::executor::{Attempt, Executor, StartReport};
use crate::kernel::{Kernel, guarded};
use crate::live::Live;
use crate::stop::StopReason;
use crate::tools::Tool;
use crate::waits::Happened;

/// The pause after an attempt that did not reach its executor: at first, and at most. It doubles each
/// time, so that a peer that cannot be reached costs a few writes a minute.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How an attempt is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    Execute,
    Reattach,
}

/// An attempt among those that run here, for as long as this value lives.
struct Holding<'a> {
    kernel: &'a Kernel,
    live: Arc<Live>,
}

impl<'a> Holding<'a> {
    fn new(kernel: &'a Kernel, live: Live, attempt: &Attempt) -> Self {
        let live = Arc::new(live);
        kernel.lives.insert(Arc::clone(&live));
        kernel.inbox.beat_by(live.next_beat());
        kernel.observer.attempt_began(&attempt.record);
        Self { kernel, live }
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.kernel.lives.remove(&self.live);
        self.kernel.observer.attempt_ended();
        // Who follows the log waits for no other word, even where there is none.
        self.kernel.waits.tell(self.live.id, Happened::Reported);
    }
}

impl Engine {
    /// Runs a leased attempt, and whatever its slot gets next. When the engine ends it is given back
    /// instead: it surely was not begun. Tells whether it runs.
    pub(crate) async fn drive(self: &Arc<Self>, leased: Claimed) -> bool {
        let (id, fence) = (leased.record.id(), leased.record.fence);
        if !self.kernel.phases.is_closing() && self.spawn(Begin::Execute, leased) {
            return true;
        }
        let mut back = Update::attempt(id, fence, Change::Undeliver);
        back.releases = true;
        if let Err(error) = self.kernel.update_one(back).await {
            tracing::warn!(task = %id, %error, "an attempt that was not begun could not be given back");
        }
        false
    }

    /// Takes up an attempt that survived a restart.
    pub(crate) fn reattach(self: &Arc<Self>, leased: Claimed) {
        self.spawn(Begin::Reattach, leased);
    }

    fn spawn(self: &Arc<Self>, begin: Begin, leased: Claimed) -> bool {
        self.kernel.drivers.spawn(|| Arc::clone(self).hold_slot(begin, leased))
    }

    async fn hold_slot(self: Arc<Self>, mut begin: Begin, leased: Claimed) {
        let mut next = Some(leased);
        while let Some(leased) = next {
            let attempt = Attempt::from(leased);
            let holding = Holding::new(&self.kernel, self.live(begin, &attempt), &attempt);
            next = self.run_one(begin, attempt, &holding.live).await;
            drop(holding);
            begin = Begin::Execute;
            tokio::task::coop::consume_budget().await;
        }
    }

    fn live(&self, begin: Begin, attempt: &Attempt) -> Live {
        let tool = self.tools.find(attempt.record.task.tool.as_str());
        // What goes on without its tool here may be heard by a later server that has it.
        let on_exit = tool.map_or(OnExit::Detach, |tool| tool.spec.on_exit);
        let mut live = Live::new(&attempt.record, on_exit, self.kernel.clock.now());
        if begin == Begin::Reattach {
            live.is_reattached = true;
            live.uses_log.store(true, Ordering::Release);
            // A cancel that was asked for before the restart still counts.
            live.observe(&attempt.record);
        }
        live
    }

    /// Runs one attempt to its end and returns what its slot runs next.
    async fn run_one(
        self: &Arc<Self>,
        begin: Begin,
        attempt: Attempt,
        live: &Arc<Live>,
    ) -> Option<Claimed> {
        let (lane, tool) = (attempt.record.task.lane.clone(), attempt.record.task.tool.clone());
        let n_events = attempt.record.n_events;
        let outcome = self.outcome_of(begin, attempt, live).await;
        live.has_ended.store(true, Ordering::Release);
        if let Some(outcome) = outcome.filter(|_| !live.was_given_back()) {
            let next = self.finish(live, outcome, lane).await;
            self.tell_committed(&tool, live).await;
            return next;
        }
        if live.was_given_back() && !live.is_reattached {
            self.pause_after(n_events).await;
        }
        self.kernel.let_go(live).await;
        self.kernel.close_logs(live).await;
        self.kernel.inbox.fill(lane);
        None
    }

    /// Pauses before an attempt that did not reach its executor is tried again. Its slot is held
    /// meanwhile, so that its task is passed over and not leased again at once; the more often that
    /// happened, of which the length of its history tells, the longer.
    async fn pause_after(&self, n_events: u32) {
        let n_before = (n_events / 2).saturating_sub(1).min(16);
        let pause = FIRST_PAUSE.saturating_mul(1 << n_before).min(LONGEST_PAUSE);
        let ending = self.kernel.phases.closing();
        // At the end of the engine the slot is free at once.
        let _ = tokio::time::timeout(pause, ending).await;
    }

    /// Tells whoever took up an attempt that its outcome is kept.
    async fn tell_committed(&self, tool: &ToolName, live: &Live) {
        match self.tools.find(tool.as_str()) {
            Some(tool) => tell_committed(&*tool.executor, live).await,
            // Whoever took up an attempt of a tool that is gone is not written down.
            None => {
                for executor in self.tools.executors() {
                    tell_committed(&**executor, live).await;
                }
            }
        }
    }

    /// Runs the executor; `None` when the attempt is not the task's any more.
    async fn outcome_of(
        self: &Arc<Self>,
        begin: Begin,
        attempt: Attempt,
        live: &Arc<Live>,
    ) -> Option<Outcome> {
        let tool = match begin {
            Begin::Execute => match self.tool_of(&attempt, live).await {
                Ok(tool) => tool,
                Err(outcome) => return outcome,
            },
            Begin::Reattach => match self.tools.find(attempt.record.task.tool.as_str()) {
                Some(tool) => tool,
                None => return Some(self.reattach_without_tool(attempt, live).await),
            },
        };
        let tool = &*tool;
        let is_announced = tool.start_report != StartReport::AtFirstWait;
        if begin == Begin::Execute && is_announced && !self.may_run(tool, live).await {
            return (live.reason.get() == Some(&StopReason::Cancelled))
                .then_some(Outcome::Cancelled);
        }
        let context = TaskContext::new(Arc::clone(&self.kernel), Arc::clone(live));
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

    /// Finds the tool of an attempt that begins, once its set knows its tools. Otherwise says what becomes of
    /// the attempt: told to stop at the end of the engine, it stands in line again.
    async fn tool_of(
        &self,
        attempt: &Attempt,
        live: &Arc<Live>,
    ) -> Result<Arc<Tool>, Option<Outcome>> {
        let context = TaskContext::new(Arc::clone(&self.kernel), Arc::clone(live));
        // On behalf of a tool that has not asked for its token yet.
        let stopped = pin!(context.protocol().stopped());
        let found = pin!(self.tools.find_known(attempt.record.task.tool.as_str()));
        match select(found, stopped).await {
            Either::Left((Ok(Some(tool)), _)) => Ok(tool),
            Either::Left((Ok(None), _)) => Err(Some(Outcome::Failed(no_tool(attempt)))),
            Either::Left((Err(error), _)) => Err(Some(Outcome::Failed(error))),
            Either::Right(_) if context.stop_reason() == Some(StopReason::Shutdown) => {
                if let Err(error) = context.protocol().not_delivered().await {
                    tracing::debug!(%error, "a task that was not begun could not be given back");
                }
                Err(None)
            }
            Either::Right(_) => Err(Some(Outcome::Cancelled)),
        }
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
                let context = TaskContext::new(Arc::clone(&self.kernel), Arc::clone(live));
                if let Some(outcome) = executor.reattach(attempt.clone(), context).await {
                    return outcome;
                }
            }
            Outcome::Failed(gone_with_its_tool(&tool))
        };
        let reattached = AssertUnwindSafe(reattached).catch_unwind().await;
        reattached.unwrap_or_else(|panic| Outcome::Failed(panicked(&*panic)))
    }

    /// Says that the attempt runs where that is the engine's part, and looks whether it still may: a
    /// cancel can come between its lease and this moment.
    async fn may_run(&self, tool: &Tool, live: &Live) -> bool {
        match tool.start_report {
            StartReport::ByExecutor => self.kernel.renew(live).await,
            StartReport::BeforeHandOver | StartReport::AtFirstWait => {
                self.kernel.announce(live).await
            }
        }
    }

    /// Posts the end of an attempt, frees its slot and takes the next task of the lane, all in one
    /// transaction. While the store fails, the outcome is kept here [DUR-5].
    async fn finish(&self, live: &Arc<Live>, outcome: Outcome, lane: LaneId) -> Option<Claimed> {
        let change = if outcome == Outcome::Cancelled && live.has_stopped() {
            Change::Stop
        } else if live.was_given_up() {
            Change::GiveUp(outcome)
        } else {
            Change::Finish(outcome)
        };
        let mut update = Update::attempt(live.id, live.fence, change);
        update.report = live.take_report();
        update.releases = true;
        update.ended_at = crate::shards::lock(&live.report).ended_at;
        let once = || async {
            let then =
                self.kernel.phases.is_open().then(|| Claim { lanes: vec![lane.clone()], n: 1 });
            let posted = self
                .kernel
                .store
                .update(self.kernel.clock.now(), vec![update.clone()], then)
                .await?;
            if let (Some(UpdateResult::Moved(record)), Change::Finish(Outcome::Succeeded(result))) =
                (posted.value.0.first(), &update.change)
                && record.state == State::Succeeded
            {
                self.kernel.waits.tell_early(live.id, result);
            }
            posted.receipt.committed().await?;
            Ok::<_, store::Error>(posted.value)
        };
        let (verdicts, mut claimed) = self.kernel.until_kept(live, once).await;
        match verdicts.first() {
            // Between two attempts nobody would close it.
            Some(UpdateResult::Moved(_) | UpdateResult::Same(_)) => {
                self.kernel.close_logs(live).await;
            }
            Some(UpdateResult::Late(record) | UpdateResult::Refused(record, _)) => {
                tracing::debug!(task = %live.id, state = %record.state, "an outcome came late");
                if record.state.is_terminal() && record.fence == live.fence {
                    self.kernel.close_logs(live).await;
                }
            }
            Some(UpdateResult::Absent) | None => {
                tracing::debug!(task = %live.id, "an outcome came for a forgotten task");
                self.kernel.waits.tell(live.id, Happened::Ended);
            }
        }
        claimed.pop()
    }
}

/// Tells an executor that its outcome is kept. What it does then is not the task's any more.
async fn tell_committed(executor: &dyn Executor, live: &Live) {
    let committed = executor.on_outcome_committed(live.id, live.number);
    guarded("an executor that was told of a committed outcome", committed).await;
}

fn no_tool(attempt: &Attempt) -> Error {
    let message = format!("this server has no tool `{}` any more", attempt.record.task.tool);
    Error::new(Kind::UnknownTool, message)
}

fn nothing_left() -> Error {
    Error::new(Kind::WorkerLost, "nothing is left of what ran the attempt")
}

fn gone_with_its_tool(tool: &ToolName) -> Error {
    let message = format!(
        "nothing is left of what ran the attempt, and this server has no tool `{tool}` any more"
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
