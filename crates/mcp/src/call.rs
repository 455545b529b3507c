//! The budgeted call: the result when it comes in time, a task that goes on when it does not [CALL-1].
//!
//! Submit, wait, cancel, abandon; nothing here knows a word of any surface.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout_at};

use raincheck_core::cancel::OnDisconnect;
use raincheck_core::content::{Content, Json};
use raincheck_core::decide::KILL_MARGIN;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::{Spelling, TaskId, ToolName};
use raincheck_core::lifecycle::State;
use raincheck_core::log::Line;
use raincheck_core::store::Page;
use raincheck_core::task::{Outcome, TaskRecord};
use raincheck_core::time::Timestamp;
use raincheck_runtime::{Accepted, Handle, Request, Submission, View, Waited};

use crate::answer::{Answer, Mark, own};
use crate::caller::{Caller, PassOn, RequestKey, SURFACE_CAP, unwanted};

/// What became of a call.
#[derive(Debug)]
pub enum Told {
    /// The result of a task that its caller has no id of.
    Result(Vec<Content>),
    /// The task of the call has ended.
    Ended(Box<View>),
    /// The task of the call goes on.
    Live(Box<View>),
    /// The tool set answered at once, and there is no task.
    Memory(Outcome),
    /// The surface's own tool answered, in the surface's own words.
    Said(Answer),
}

impl Told {
    fn of(view: Box<View>) -> Self {
        // One that has ended and was not read with what it left is given out by its id.
        let state = view.record.state;
        let is_whole = view.payload.is_some() || state == State::Expired;
        if state.is_terminal() && is_whole { Self::Ended(view) } else { Self::Live(view) }
    }

    /// Tells whether the answer is short, whatever the task left.
    pub(crate) fn is_short(&self) -> bool {
        match self {
            Self::Live(view) => {
                view.partial.as_ref().is_none_or(|partial| partial.get().len() < SHORT)
            }
            Self::Said(answer) => answer.text_len() < SHORT,
            Self::Result(_) | Self::Ended(_) | Self::Memory(_) => false,
        }
    }
}

/// Answers below this many bytes are made at the end of a connection also where there is no room left
/// for others: they hold the ids of tasks.
const SHORT: usize = 4096;

/// Submits a request when it is its turn: requests of one connection are accepted in the order of their
/// lines [CALL-7].
///
/// # Errors
/// As of [`Handle::submit`], or when the caller went away before; nothing was executed.
pub(crate) async fn submit(
    engine: &Handle,
    mut request: Request,
    who: &Caller,
) -> Result<Submission, Error> {
    who.sign(&mut request);
    let turn = who.turn().await?;
    submit_in_turn(engine, request, turn, who).await
}

/// Submits a request whose turn it is. One that is asked again finds what it made before [ATTACH-6].
async fn submit_in_turn(
    engine: &Handle,
    mut request: Request,
    turn: PassOn,
    who: &Caller,
) -> Result<Submission, Error> {
    let is_marked = who.key().is_some_and(|key| key.mark(&mut request));
    let mut submission = engine.submit_holding(request, turn).await?;
    if is_marked {
        RequestKey::own(&mut submission);
    }
    Ok(submission)
}

/// Waits until the tools are known that others have to name first, within what the caller waits for [CALL-2].
///
/// # Errors
/// Why they are not: a name that nobody knows may be one of them.
pub(crate) async fn known(engine: &Handle, who: &Caller) -> Result<(), Error> {
    let wait = who.wait(SURFACE_CAP);
    tokio::select! {
        biased;
        known = engine.specs_known() => known,
        () = who.gone(wait) => Err(unwanted()),
        () = sleep(wait) => {
            let message = "the tools of the server behind this one are not known yet: it is still starting";
            Err(Error::new(Kind::PeerNotReady, message))
        }
    }
}

/// As [`known`], for a tool by its name: with one that is known there is nothing to wait for. Calls after this
/// one do not wait for it [CALL-7].
///
/// # Errors
/// As of [`known`], where the tool is none of those that are known.
pub(crate) async fn known_tool(engine: &Handle, tool: &str, who: &Caller) -> Result<(), Error> {
    if engine.spec(tool).is_some() {
        return Ok(());
    }
    who.begins_nothing();
    let known = known(engine, who).await;
    if engine.spec(tool).is_some() { Ok(()) } else { known }
}

/// Runs a tool for a caller that has no id of its task; a caller that goes away meanwhile ends it as
/// the tool says [CANCEL-7].
pub(crate) async fn run(
    engine: &Handle,
    mut request: Request,
    wait: Duration,
    on_disconnect: OnDisconnect,
    who: &mut Caller,
) -> Result<Told, Error> {
    request.is_inline = !wait.is_zero();
    who.waits(wait);
    let accepted = match submit(engine, request, who).await? {
        Submission::Task(accepted) => accepted,
        Submission::Answer(outcome) => return Ok(Told::Memory(outcome)),
    };
    let subject = Subject::accepted(engine, &accepted.record);
    let gone = who.gone(wait);
    let waited = if who.listener().is_some() {
        let view = subject.look(wait, who, pin!(gone)).await?;
        view.map(|view| Waited::View(Box::new(view)))
    } else {
        unless(gone, engine.wait_result(accepted, wait)).await.transpose()?
    };
    match waited {
        None => subject.abandon(on_disconnect, who).await,
        Some(Waited::Result(contents)) if who.leave_now() => Ok(Told::Result(contents)),
        Some(Waited::View(view)) if is_told(&view) && who.leave_now() => Ok(Told::of(view)),
        Some(waited) => {
            // It is read again when there is room for it.
            drop(waited);
            Ok(Told::of(Box::new(subject.see(who).await?)))
        }
    }
}

/// Runs a tool and answers with its task, which can be read again by its id. A caller that goes away
/// before it was told that id ends the task as `on_disconnect` says [CANCEL-7], unless the task was there
/// before the call [IDEM-1].
pub(crate) async fn follow(
    engine: &Handle,
    mut request: Request,
    wait: Duration,
    on_disconnect: OnDisconnect,
    who: &mut Caller,
) -> Result<Told, Error> {
    who.sign(&mut request);
    // The turn before the leave: who waits for a turn may not keep the one before from its leave.
    let turn = who.turn().await?;
    // What the tool set answers at once cannot be read again later.
    who.leave().await?;
    let accepted = match submit_in_turn(engine, request, turn, who).await? {
        Submission::Task(accepted) => accepted,
        Submission::Answer(outcome) => return Ok(Told::Memory(outcome)),
    };
    who.give_back();
    let on_disconnect = if accepted.existing { OnDisconnect::Detach } else { on_disconnect };
    until_told(engine, accepted, wait, on_disconnect, who).await
}

/// Finds what a request became that was asked of another owner before, among the tasks of some tools, and
/// waits for its end as the call does [ATTACH-6].
pub(crate) async fn find_again(
    engine: &Handle,
    tools: impl IntoIterator<Item = ToolName>,
    key: &RequestKey,
    who: &mut Caller,
) -> Result<Option<Told>, Error> {
    who.begins_nothing();
    for tool in tools {
        let spec = engine.spec(tool.as_str());
        if let Some(accepted) = engine.find_request(who.scope(), tool, key.text()).await? {
            let (wish, on_disconnect) = spec.map_or((SURFACE_CAP, OnDisconnect::Detach), |spec| {
                (spec.wait, spec.on_disconnect)
            });
            let wait = who.wait(who.effective_wait().unwrap_or(wish));
            return until_told(engine, accepted, wait, on_disconnect, who).await.map(Some);
        }
    }
    Ok(None)
}

/// Waits for the end of a task that was accepted.
async fn until_told(
    engine: &Handle,
    accepted: Accepted,
    wait: Duration,
    on_disconnect: OnDisconnect,
    who: &mut Caller,
) -> Result<Told, Error> {
    who.waits(wait);
    let subject = Subject::accepted(engine, &accepted.record);
    let gone = who.gone(wait);
    let view = if who.listener().is_some() {
        subject.look(wait, who, pin!(gone)).await?
    } else {
        unless(gone, engine.wait_accepted(accepted, wait)).await.transpose()?
    };
    match view {
        None => subject.abandon(on_disconnect, who).await,
        Some(view) if is_told(&view) && who.leave_now() => Ok(Told::of(Box::new(view))),
        Some(view) => {
            drop(view);
            Ok(Told::of(Box::new(subject.see(who).await?)))
        }
    }
}

/// Goes on with a call whose task asked its caller something, as [`run`] does with one that begins: waits until
/// the task has ended, asks something else, or the wait is over. A question that is open is told at once.
pub(crate) async fn go_on(engine: &Handle, id: TaskId, who: &mut Caller) -> Result<Told, Error> {
    who.begins_nothing();
    let subject = Subject { engine, id, accepted: None };
    let record = subject.status(who).await?.record;
    if record.state == State::Expired {
        return Err(Error::new(Kind::Expired, "the retention of the task is over"));
    }
    let spec = engine.spec(record.task.tool.as_str());
    let (wish, on_disconnect) =
        spec.map_or((SURFACE_CAP, OnDisconnect::Detach), |spec| (spec.wait, spec.on_disconnect));
    let wait = who.wait(who.effective_wait().unwrap_or(wish));
    who.waits(wait);
    let gone = who.gone(wait);
    match subject.look(wait, who, pin!(gone)).await? {
        None => subject.abandon(on_disconnect, who).await,
        Some(view) if is_told(&view) && who.leave_now() => Ok(Told::of(Box::new(view))),
        Some(view) => {
            drop(view);
            Ok(Told::of(Box::new(subject.see(who).await?)))
        }
    }
}

/// Tells whether a view says all that there is: a task that ended with the end of the wait may have been
/// read without what it left.
fn is_told(view: &View) -> bool {
    let state = view.record.state;
    !state.is_terminal() || view.payload.is_some() || state == State::Expired
}

/// Reads a task once it has ended, or as it is when the wait, the request or the connection is over.
///
/// # Errors
/// As of [`Handle::view`].
pub(crate) async fn read(
    engine: &Handle,
    id: TaskId,
    wait: Duration,
    who: &mut Caller,
) -> Result<View, Error> {
    who.begins_nothing();
    let hurried = who.hurried();
    let subject = Subject { engine, id, accepted: None };
    if let Some(view) = subject.look(wait, who, pin!(hurried)).await? {
        return Ok(view);
    }
    subject.see(who).await
}

/// Which lines of a log are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// Those after this one.
    pub(crate) after: u64,
    /// How many at the most.
    pub(crate) limit: u32,
}

/// Reads lines of a log; waits for the first of them until the wait, the request or the connection is
/// over.
pub(crate) async fn read_log(
    engine: &Handle,
    id: TaskId,
    Lines { after, limit }: Lines,
    wait: Duration,
    who: &Caller,
) -> Result<Page<Line>, Error> {
    who.begins_nothing();
    if !wait.is_zero() {
        // One line says that there are lines.
        let first = engine.logs(who.scope(), id, after, limit.min(1), wait);
        unless(who.hurried(), first).await.transpose()?;
    }
    who.leave().await?;
    engine.logs(who.scope(), id, after, limit, Duration::ZERO).await
}

/// A task that a call looks at.
struct Subject<'a> {
    engine: &'a Handle,
    id: TaskId,
    /// How it stood when this call made it.
    accepted: Option<TaskRecord>,
}

impl<'a> Subject<'a> {
    fn accepted(engine: &'a Handle, record: &TaskRecord) -> Self {
        Self { engine, id: record.id(), accepted: Some(record.clone()) }
    }

    /// Looks at the task until it has ended or the wait is over, and tells its progress meanwhile to
    /// who asked for it; `None` once `gone` has fired. What it left is read only at its end.
    async fn look(
        &self,
        wait: Duration,
        who: &mut Caller,
        mut gone: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<View>, Error> {
        let deadline = Instant::now() + wait;
        let mut watch = self.engine.watch(self.id);
        loop {
            let now = async {
                let view = self.status(who).await?;
                if let (Some(listener), Some(progress)) = (who.listener(), &view.progress) {
                    // Nobody reads a notification again: its mark is drawn.
                    let fence =
                        |words: &str| Mark::of(self.engine.nonce()).around("the tool", words);
                    listener.tell(progress, Instant::now(), fence).await;
                }
                Ok::<_, Error>(view)
            };
            // A client that reads no progress holds up nobody who waits for the end.
            let Some(view) = unless(&mut gone, now).await.transpose()? else { return Ok(None) };
            if view.record.state.is_terminal() {
                return self.see(who).await.map(Some);
            }
            // One that asks its caller something goes no further before that is answered [TASKS-6].
            if Instant::now() >= deadline || !view.inputs.is_empty() {
                return Ok(Some(view));
            }
            let news = async {
                let Some(listener) = who.listener() else {
                    return timeout_at(deadline, watch.ended()).await.unwrap_or_default();
                };
                // Whether the next report, the pause between two, or the end comes first: the loop looks.
                if timeout_at(deadline, watch.changed()).await.is_ok() {
                    let next_at = listener.next_at().min(deadline);
                    timeout_at(next_at, watch.ended()).await.unwrap_or_default();
                }
            };
            if unless(&mut gone, news).await.is_none() {
                return Ok(None);
            }
        }
    }

    /// Reads where the task stands, without what it left.
    async fn status(&self, who: &Caller) -> Result<View, Error> {
        let read = self.engine.status(who.scope(), self.id).await;
        self.as_accepted(read)
    }

    /// Reads the task as it is, with what it left, once there is room for that. At the end of its
    /// connection a caller without room gets the id of the task that its call made.
    async fn see(&self, who: &Caller) -> Result<View, Error> {
        if let Err(error) = who.leave().await {
            let is_last_word = self.accepted.is_some() && !who.is_cancelled();
            return if is_last_word { self.status(who).await } else { Err(error) };
        }
        let read = self.engine.view(who.scope(), self.id).await;
        self.as_accepted(read)
    }

    /// Nothing that fails after a task was accepted says that it did not run [LEASE-9].
    fn as_accepted(&self, read: Result<View, Error>) -> Result<View, Error> {
        match &self.accepted {
            Some(record) => self.engine.of_accepted(record, read),
            None => read,
        }
    }

    /// Ends a call whose caller went away before it had an id, as its tool says [CANCEL-7]. The answer
    /// is for a connection that is closing; a cancelled request gets none.
    async fn abandon(&self, on_disconnect: OnDisconnect, who: &Caller) -> Result<Told, Error> {
        if who.is_handed_over() {
            return Err(unwanted());
        }
        if on_disconnect == OnDisconnect::Cancel {
            let reason: Arc<str> = "its caller went away".into();
            match self.engine.cancel(who.scope(), self.id, Some(reason)).await {
                Ok(asked) if asked.record.state == State::Cancelled => {
                    return Err(cancelled(Some(&asked.record)));
                }
                // It ends later, has ended otherwise, or cannot be ended: its id is what is left.
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(task = %self.id, %error, "a task that nobody waits for could not be cancelled");
                }
            }
        }
        Ok(Told::of(Box::new(self.see(who).await?)))
    }
}

async fn unless<T>(gone: impl Future<Output = ()>, end: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        end = end => Some(end),
        () = gone => None,
    }
}

/// Says why a task was cancelled, and how sure it is that it did nothing [LEASE-4].
pub(crate) fn cancelled(record: Option<&TaskRecord>) -> Error {
    let reason = record.and_then(|record| record.cancel.as_ref()?.reason.as_deref());
    let mut words = reason.map_or_else(
        || "the task was cancelled".to_owned(),
        |reason| format!("the task was cancelled: {reason}"),
    );
    if record.is_some_and(may_go_on) {
        words.push_str("; nothing has said that it ended, so it may still run");
    }
    let never_ran = record.is_some_and(|record| record.attempt == 0);
    let guarantee = if never_ran { Guarantee::NotExecuted } else { Guarantee::Unknown };
    own(&Error::new(Kind::Cancelled, words).with_guarantee(guarantee))
}

/// Tells whether a cancelled task was closed without a word of its executor: it was known to run, or had
/// all the time of its grace to say that it does not [CANCEL-6].
pub(crate) fn may_go_on(record: &TaskRecord) -> bool {
    let is_overdue = || {
        let asked_at = record.cancel.as_ref().map(|cancel| cancel.at);
        let limit = record.task.limits.grace + KILL_MARGIN;
        asked_at.zip(record.ended_at).is_some_and(|(asked, ended)| ended.since(asked) >= limit)
    };
    let has_begun = record.attempt > 0 && (record.started_at.is_some() || is_overdue());
    record.state == State::Cancelled && !record.has_stopped && has_begun
}

/// Says of a key that is taken which task has it, by the id that the callers of a surface know; `member` is what
/// they call it. `None` for any other failure.
pub(crate) fn respelled(error: &Error, spelling: Spelling, member: &str) -> Option<Error> {
    #[derive(Deserialize)]
    struct First {
        task_id: String,
    }
    if error.kind != Kind::IdempotencyConflict {
        return None;
    }
    let First { task_id } = error.details.as_ref()?.read().ok()?;
    let known = task_id.parse::<TaskId>().ok()?.spell(spelling);
    let message = error.message.replace(&task_id, &known).into();
    let details = Json::of(&BTreeMap::from([(member, known)])).ok();
    Some(Error { message, details, ..error.clone() })
}

/// Returns when to look again: the older the task, the later, from 500 to 5000 ms.
pub(crate) fn poll_after_ms(record: &TaskRecord, now: Timestamp) -> u64 {
    let age = now.since(record.task.submitted_at).as_millis();
    u64::try_from(age / 10).unwrap_or(u64::MAX).clamp(500, 5000)
}

#[cfg(test)]
mod tests {
    use raincheck_core::decide::Change;
    use raincheck_core::lane;
    use raincheck_core::ledger::Ledger;
    use raincheck_core::scope::Scope;
    use raincheck_core::store::{Claim, Update};
    use raincheck_core::task::{Limits, Resources, Task};

    use super::*;

    const MAY_GO_ON: &str = "may still run";

    /// Cancels a task that was leased, and lets `then` say what its executor does.
    fn message(has_started: bool, then: Option<Change>) -> String {
        let now = Timestamp::from_millis(1_000);
        let id = TaskId::from_parts(1, [0; 10]);
        let task = Task {
            id,
            scope: Scope::local(),
            tool: "tool".into(),
            lane: "lane".into(),
            priority: 0,
            tags: Vec::new(),
            key: None,
            inputs_hash: 0,
            limits: Limits::default(),
            resources: Resources::default(),
            supports_cancel: true,
            is_idempotent: false,
            retry: raincheck_core::retry::Policy::default(),
            trace: None,
            submitted_at: now,
        };
        let mut ledger = Ledger::new(1);
        ledger.set_lane("lane".into(), lane::Config::new(1, 1));
        ledger.submit(now, task, None);
        let leased = ledger.claim(now, &Claim { lanes: vec!["lane".into()], n: 1 });
        let fence = leased.first().expect("a lease").fence;
        if has_started {
            ledger.update(now, Update::attempt(id, fence, Change::Start));
        }
        let reason = Some("enough".into());
        let asked = Update::attempt(id, fence, Change::RequestCancel { reason });
        ledger.update(now, Update { fence: None, ..asked });
        match then {
            Some(change) => {
                ledger.update(now, Update::attempt(id, fence, change));
            }
            None => {
                ledger.fire(now + Limits::default().grace + KILL_MARGIN, 10);
            }
        }
        let record = ledger.get(id).expect("its record");
        assert_eq!(record.state, State::Cancelled);
        cancelled(Some(record)).message.to_string()
    }

    #[test]
    fn a_cancel_that_its_executor_did_not_confirm_says_so() {
        // [CANCEL-2] [CANCEL-6]
        assert_eq!(message(true, Some(Change::Finish(Outcome::Cancelled))), CONFIRMED);
        assert_eq!(message(true, Some(Change::Stop)), CONFIRMED, "a result may still come");
        assert_eq!(message(false, Some(Change::Undeliver)), CONFIRMED, "it never began");
        let given_up = message(true, Some(Change::GiveUp(Outcome::Cancelled)));
        assert!(given_up.contains(MAY_GO_ON), "{given_up}");
        for has_started in [true, false] {
            let message = message(has_started, None);
            assert!(message.starts_with(CONFIRMED) && message.contains(MAY_GO_ON), "{message}");
        }
    }

    const CONFIRMED: &str = "the task was cancelled: enough";
}
