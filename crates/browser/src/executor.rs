//! Runs commands: puts each into the outbox and waits for what its browser says.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_core::task::Outcome;
use raincheck_core::text;
use raincheck_runtime::{Attempt, Executor, StartReport, StopReason, TaskContext};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::bridge::{Browser, blocking};
use crate::choices::Caller;
use crate::files;
use crate::order::{self, Order};
use crate::outbox::{Command, Move, Report, Stage};
use crate::revisions::Need;
use crate::saving::SaveTo;
use crate::typed::Typed;
use crate::undone::is_turned_away;
use crate::verdict::Verdict;
use crate::wire;

/// The pause before a store that failed is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a browser that came back has to speak of a command that it should have.
const SETTLING: Duration = Duration::from_secs(5);

/// How long after the first browser another one may still be about to come.
const SOON: Duration = Duration::from_secs(5);

/// Further away than any limit.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

#[async_trait]
impl Executor for Browser {
    async fn execute(&self, attempt: Attempt, context: TaskContext) -> Outcome {
        let caller = self.caller_of(&attempt.record.task.scope, context.id());
        match self.order_of(&attempt, &caller, context.id()).await {
            Ok(order) => Run::new(self, &attempt, order, context, Stage::Posted).run().await,
            Err(error) => {
                self.choices().refuse(&caller, context.id());
                Outcome::Failed(error)
            }
        }
    }

    /// Takes up a command of an earlier server. One that was never confirmed surely did not begin; any
    /// other is finished by the browser that comes back [LEASE-5, LEASE-6].
    async fn reattach(&self, attempt: Attempt, context: TaskContext) -> Option<Outcome> {
        let has_begun =
            attempt.record.started_at.is_some() || attempt.record.state == State::Running;
        if !has_begun {
            return give_back(&context).await;
        }
        Some(match Order::read(&attempt) {
            Ok(order) => Run::new(self, &attempt, order, context, Stage::Accepted).run().await,
            Err(error) => Outcome::Failed(error),
        })
    }

    async fn on_outcome_committed(&self, id: TaskId, _number: u32) {
        self.let_go(id);
        if self.typed().has(id) {
            self.typed_moved();
        }
    }

    fn start_report(&self) -> StartReport {
        StartReport::ByExecutor
    }
}

impl Browser {
    /// Makes what a browser is asked of a leased task, and looks whether one may be.
    async fn order_of(
        &self,
        attempt: &Attempt,
        caller: &Caller,
        id: TaskId,
    ) -> Result<Order, Error> {
        let mut order = self.whole(attempt, id)?;
        order.take_tab(self.choices().of_call(caller, id));
        if order.what == "request" && self.settings().shows.credentials {
            order.show_credentials();
        }
        order.ask_for_raw(self.settings().max_body);
        order.put_values();
        self.find_browser(&mut order, attempt.record.task.limits.ready)?;
        self.check_saving(&order).await?;
        Ok(order)
    }

    /// Reads what a leased task asks of the browser, with what it types.
    fn whole(&self, attempt: &Attempt, id: TaskId) -> Result<Order, Error> {
        let order = Order::read(attempt)?;
        if !Typed::concerns(&order.what) {
            return Ok(order);
        }
        let task = &attempt.record.task;
        let inputs = self.typed().whole(id, &order.what, &attempt.inputs)?;
        Order::of(task.tool.as_str(), &task.lane, &inputs)
    }

    /// Finds the browser of a command that names a tab only, and refuses one that names a browser which
    /// nobody knows, unless its caller `waits` for it longer than for any [BROWSER-7].
    fn find_browser(&self, order: &mut Order, waits: Duration) -> Result<(), Error> {
        let not_executed = |error: Error| error.with_guarantee(Guarantee::NotExecuted);
        if order.browser.is_none()
            && let Some(tab_id) = order.tab_id
        {
            order.browser = self.tabs().browser_of(tab_id).map_err(not_executed)?;
        }
        let (linger, accept) = {
            let settings = self.settings();
            (settings.linger, settings.accept)
        };
        let Some(browser) = order.browser.as_ref().filter(|_| waits <= accept) else {
            return Ok(());
        };
        match self.outbox().instead_of((self.clock().now(), linger, SOON), browser) {
            Some(there) => Err(not_executed(unknown_browser(browser, &there))),
            None => Ok(()),
        }
    }

    /// Refuses, before anything is done, output that could not be saved.
    async fn check_saving(&self, order: &Order) -> Result<(), Error> {
        let Some(SaveTo { name, .. }) = order.save_to.clone() else { return Ok(()) };
        let root = self.settings().files_dir.clone();
        blocking(move || files::check_new("save_to", root.as_deref(), &name)).await?
    }
}

/// Says that a browser is not there, and which ones are.
fn unknown_browser(name: &str, there: &[Arc<str>]) -> Error {
    let name = text::escape(text::clip(name, 80));
    let there: Vec<String> = there.iter().take(20).map(|name| format!("`{name}`")).collect();
    let words =
        format!("`browser_id` is `{name}`, which has not come; connected: {}", there.join(", "));
    Error::new(Kind::InvalidParams, words)
        .with_hint("pass one of those that are connected; observe {what: \"health\"} lists them")
}

/// Puts a command of an earlier server back in line. While the store fails nobody may begin with it.
async fn give_back(context: &TaskContext) -> Option<Outcome> {
    loop {
        match context.protocol().not_delivered().await {
            Ok(()) => return None,
            Err(error) if error.kind == Kind::StorageUnavailable => {}
            // It has ended meanwhile.
            Err(_) => return Some(Outcome::Cancelled),
        }
        tokio::select! {
            () = context.cancellation_token().cancelled() => return Some(Outcome::Cancelled),
            () = sleep(PAUSE) => {}
        }
    }
}

/// What the wait for a command comes to.
enum Step {
    On,
    End(Outcome),
}

/// One command under way. Dropping it takes the command out of the outbox, unless it ended.
struct Run<'a> {
    bridge: &'a Browser,
    context: TaskContext,
    reports: UnboundedReceiver<Report>,
    is_accepted: bool,
    has_ended: bool,
    need: Need,
    /// Who gave it, where its tab is that one's from then on.
    chooser: Option<Caller>,
    /// This and the instants below are of the bridge's clock, which stands still while the server is
    /// stopped [LEASE-8].
    begun: Instant,
    /// When a command that was told to stop is given up.
    give_up: Option<Instant>,
    /// What a command of an earlier server has left of its limit; `None` for one of this server, and
    /// once its browser was heard of it.
    unheard: Option<Duration>,
    /// When a command is lost unless its browser, which is there, speaks of it.
    doubt: Option<Instant>,
}

impl<'a> Run<'a> {
    fn new(
        bridge: &'a Browser,
        attempt: &Attempt,
        mut order: Order,
        context: TaskContext,
        stage: Stage,
    ) -> Self {
        let (sender, reports) = mpsc::unbounded_channel();
        let limits = &attempt.record.task.limits;
        let caller = bridge.caller_of(&attempt.record.task.scope, context.id());
        let chooses = order::works_in_a_tab(&order.what) || order.what == "tab_new";
        let is_anew = order.take_tab(bridge.choices().of_call(&caller, context.id()));
        let now = bridge.clock().now().awake;
        let others = if order.tab_id.is_none() {
            bridge.choices().of_others(&caller, now)
        } else {
            Vec::new()
        };
        let need = Need::of(&order.what, &order.params);
        let command = Command {
            fence: attempt.record.fence,
            attempt: attempt.record.attempt,
            stage,
            what: order.what.into(),
            save_to: order.save_to,
            target: order.browser,
            tab_id: order.tab_id,
            caller: caller.clone(),
            is_anew,
            others,
            server: bridge.process(),
            params: order.params,
            revision: need.revision,
            accept: limits.accept,
            run: limits.run_timeout.unwrap_or(NEVER),
            reports: sender,
            recorded: CancellationToken::new(),
        };
        bridge.put(context.id(), command);
        let started_at = attempt.record.started_at.filter(|_| stage == Stage::Accepted);
        let unheard = started_at.map(|at| {
            let limit = limits.run_timeout.unwrap_or(NEVER);
            limit.saturating_sub(context.now().since(at))
        });
        Self {
            bridge,
            context,
            reports,
            is_accepted: stage == Stage::Accepted,
            has_ended: false,
            need,
            chooser: chooses.then_some(caller),
            begun: bridge.clock().now().awake,
            give_up: None,
            unheard,
            doubt: None,
        }
    }

    async fn run(mut self) -> Outcome {
        let stop = self.context.cancellation_token().clone();
        loop {
            let next_look = self.next_look();
            let step = tokio::select! {
                biased;
                Some(report) = self.reports.recv() => self.hear(report).await,
                () = stop.cancelled(), if self.give_up.is_none() => self.wind_down(),
                () = self.bridge.until(next_look) => self.look(),
            };
            if let Step::End(outcome) = step {
                return outcome;
            }
        }
    }

    async fn hear(&mut self, report: Report) -> Step {
        if !matches!(report, Report::Doubted | Report::GivenBack) {
            (self.unheard, self.doubt) = (None, None);
        }
        match report {
            Report::Accepted(answer) => {
                let verdict = self.accept().await;
                // The browser asks again when the answer did not reach it.
                let _ = answer.send(verdict);
                Step::On
            }
            Report::Progress(progress, partial) => {
                if self.accept().await == Verdict::Accepted {
                    progress.into_iter().for_each(|it| self.context.progress(it));
                    partial.into_iter().for_each(|it| self.context.set_partial_result(it));
                }
                Step::On
            }
            Report::Ended(outcome, tab) => {
                // Any word about a command says that it was taken on.
                self.accept().await;
                self.has_ended = true;
                if let Some(caller) = &self.chooser {
                    let tab = tab.filter(|_| !is_turned_away(&outcome));
                    self.bridge.ended_in(caller, self.context.id(), tab, &outcome);
                }
                Step::End(outcome)
            }
            Report::GivenBack => self.give_back().await,
            Report::TooOld => {
                self.did_nothing();
                Step::End(Outcome::Failed(self.need.is_not_met()))
            }
            Report::Doubted => {
                // One of an earlier server has until its limit: another browser may come and have it.
                let left = self.unheard.unwrap_or_default();
                self.doubt = Some(self.now() + left.max(SETTLING));
                Step::On
            }
        }
    }

    /// Commits that the command runs, and only then lets its browser begin [LEASE-5].
    async fn accept(&mut self) -> Verdict {
        if self.is_accepted {
            return Verdict::Accepted;
        }
        match self.context.protocol().started().await {
            Ok(()) => {
                self.is_accepted = true;
                self.bridge.step(self.context.id(), Move::Accept);
                Verdict::Accepted
            }
            Err(error) if error.kind == Kind::StorageUnavailable => Verdict::Unavailable,
            Err(_) => Verdict::AlreadyTerminal,
        }
    }

    /// Puts a command back in line that its browser surely did not begin with.
    async fn give_back(&mut self) -> Step {
        if self.is_accepted {
            return Step::On;
        }
        match self.context.protocol().not_delivered().await {
            Ok(()) => Step::End(Outcome::Cancelled),
            // It has ended, or the store fails: the deadline says how it ends.
            Err(_) => Step::On,
        }
    }

    /// Stops a command that has to end: one that may have begun in its browser, any other at once.
    fn wind_down(&mut self) -> Step {
        let reason = self.context.stop_reason();
        if !self.is_accepted {
            self.did_nothing();
        }
        if !self.is_accepted || matches!(reason, Some(StopReason::Lost | StopReason::Shutdown)) {
            return Step::End(Outcome::Cancelled);
        }
        self.bridge.stop(self.context.id());
        self.give_up = Some(self.now() + self.bridge.settings().grace);
        Step::On
    }

    /// Notes that no browser began with it.
    fn did_nothing(&self) {
        if let Some(caller) = &self.chooser {
            self.bridge.choices().refuse(caller, self.context.id());
        }
    }

    fn now(&self) -> Instant {
        self.bridge.clock().now().awake
    }

    fn next_look(&self) -> Option<Instant> {
        let grace = self.bridge.settings().reconnect_grace;
        let silence = self.is_accepted.then(|| self.last_word() + grace);
        self.give_up.or_else(|| silence.into_iter().chain(self.doubt).min())
    }

    /// When the browser that runs it was last heard of.
    fn last_word(&self) -> Instant {
        let heard = self.bridge.last_word(self.context.id());
        // That some browser is there says nothing of a command which none has spoken of.
        heard.filter(|_| self.unheard.is_none()).unwrap_or(self.begun)
    }

    fn look(&mut self) -> Step {
        if self.give_up.is_some() {
            self.context.protocol().given_up();
            return Step::End(Outcome::Failed(not_stopped()));
        }
        let (now, grace) = (self.now(), self.bridge.settings().reconnect_grace);
        let is_doubted = self.doubt.is_some_and(|at| at <= now);
        if !is_doubted && now < self.last_word() + grace {
            return Step::On;
        }
        self.context.protocol().given_up();
        let words = if is_doubted {
            "the browser was started again while it ran, and knows nothing of it any more"
                .to_owned()
        } else {
            format!("the browser that ran it was silent for {} s", grace.as_secs())
        };
        Step::End(Outcome::Failed(Error::new(Kind::PeerLost, words)))
    }
}

/// The failure of a command that was to stop and of which the browser does not say that it has [LEASE-10].
fn not_stopped() -> Error {
    let words = "it was asked to stop, and the browser has not said that it did: it may still go on in its page";
    Error::new(Kind::PeerLost, words).with_guarantee(Guarantee::Unknown).with_hint(wire::END_IT)
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.bridge.withdraw(self.context.id(), self.context.fence());
        }
    }
}

impl Order {
    /// Reads what a leased task asks of the browser.
    fn read(attempt: &Attempt) -> Result<Self, Error> {
        let task = &attempt.record.task;
        Self::of(task.tool.as_str(), &task.lane, &attempt.inputs)
    }
}
