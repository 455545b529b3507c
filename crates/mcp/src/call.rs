//! The budgeted call: the result when it comes in time, a handle when it does not [CALL-1].

mod handle;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use raincheck_core::cancel::OnDisconnect;
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::scope::Scope;
use raincheck_core::task::{Outcome, TaskRecord};
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Accepted, Request, Submission, View, Waited};

use crate::answer::{Answer, shown};
use crate::budget::Budget;
use crate::dialect::canonical;
use crate::progress::Listener;
use crate::server::Facade;
use crate::strict;

/// How much longer an open call may take once its connection is over.
const LAST_WAIT: Duration = Duration::from_millis(300);

/// Who makes a call, and how long it can be made to wait.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Who owns what the call makes.
    pub(crate) scope: Scope,
    /// How long it can be held.
    pub(crate) budget: Budget,
    /// Who asked for its progress.
    pub(crate) listener: Option<Listener>,
    /// Fires when the caller no longer wants the answer.
    pub(crate) cancelled: CancellationToken,
    /// Fires when the connection is over.
    pub(crate) closing: CancellationToken,
}

/// Runs a tool for a caller that waits.
pub(crate) async fn run(facade: &Facade, spec: &ToolSpec, inputs: Json, caller: Caller) -> Answer {
    match attempt(facade, spec, inputs, caller).await {
        Ok(answer) => answer,
        Err(error) => Answer::error(&error),
    }
}

async fn attempt(
    facade: &Facade,
    spec: &ToolSpec,
    inputs: Json,
    mut caller: Caller,
) -> Result<Answer, Error> {
    let value = strict::read(&inputs, "the arguments")?;
    facade.validators().check(spec, &value)?;
    drop(value);
    let wait = caller.budget.left(spec.wait, Instant::now());
    let mut request = Request::new(spec.name.clone(), inputs, caller.scope.clone());
    request.is_inline = !wait.is_zero();
    let accepted = match facade.engine().submit(request).await? {
        Submission::Task(accepted) => accepted,
        Submission::Answer(outcome) => return Ok(ended(None, &outcome)),
    };
    let id = accepted.record.id();
    match follow_inline(facade, accepted, wait, &mut caller).await {
        Some(waited) => match waited? {
            Waited::Result(contents) => Ok(Answer::result(&contents)),
            Waited::View(view) => Ok(answer(facade, &caller, &view)),
        },
        None => abandon(facade, spec, id, &caller).await,
    }
}

/// Waits for the end of a task that its caller knows by an id, so for its commit, within the budget;
/// `None` when the caller went away before.
pub(crate) async fn follow(
    facade: &Facade,
    accepted: Accepted,
    wait: Duration,
    caller: &mut Caller,
) -> Option<Result<View, Error>> {
    let gone = gone(caller, wait);
    let end = async {
        match caller.listener {
            Some(_) => end_of(facade, accepted.record.id(), wait, caller).await,
            None => facade.engine().wait_accepted(accepted, wait).await,
        }
    };
    unless(gone, end).await
}

/// The same for a task that its caller has no handle of: its result may come before its commit.
async fn follow_inline(
    facade: &Facade,
    accepted: Accepted,
    wait: Duration,
    caller: &mut Caller,
) -> Option<Result<Waited, Error>> {
    if caller.listener.is_some() {
        let view = follow(facade, accepted, wait, caller).await?;
        return Some(view.map(|view| Waited::View(Box::new(view))));
    }
    unless(gone(caller, wait), facade.engine().wait_result(accepted, wait)).await
}

/// Ends when the caller no longer wants an answer, or can hardly get one any more.
fn gone(caller: &Caller, wait: Duration) -> impl Future<Output = ()> + use<> {
    let (cancelled, closing) = (caller.cancelled.clone(), caller.closing.clone());
    async move {
        let last_moment = async {
            closing.cancelled_owned().await;
            sleep(LAST_WAIT.min(wait)).await;
        };
        tokio::select! {
            () = cancelled.cancelled_owned() => {}
            () = last_moment => {}
        }
    }
}

async fn unless<T>(gone: impl Future<Output = ()>, end: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        end = end => Some(end),
        () = gone => None,
    }
}

/// Waits for the end of a task, and tells its progress meanwhile to who asked for it.
pub(crate) async fn end_of(
    facade: &Facade,
    id: TaskId,
    wait: Duration,
    caller: &mut Caller,
) -> Result<View, Error> {
    let engine = facade.engine();
    let Some(listener) = &mut caller.listener else {
        return engine.wait_end(&caller.scope, id, wait).await;
    };
    let deadline = Instant::now() + wait;
    let mut watch = engine.watch(id);
    loop {
        let view = engine.status(&caller.scope, id).await?;
        if let Some(progress) = &view.progress {
            listener.tell(progress, Instant::now()).await;
        }
        if view.record.state.is_terminal() {
            return engine.view(&caller.scope, id).await;
        }
        if Instant::now() >= deadline {
            return Ok(view);
        }
        // Whether the next report, the pause between two, or the end comes first: the loop looks.
        if timeout_at(deadline, watch.changed()).await.is_ok() {
            let next_at = listener.next_at().min(deadline);
            let _ended = timeout_at(next_at, watch.ended()).await;
        }
    }
}

/// Answers with the result of an ended task, or with the handle of a live one.
fn answer(facade: &Facade, caller: &Caller, view: &View) -> Answer {
    let record = &view.record;
    if !record.state.is_terminal() {
        return handle::answer(view, &caller.budget, facade.engine().now());
    }
    let outcome = view.payload.as_ref().and_then(|payload| payload.outcome.as_ref());
    match outcome {
        Some(outcome) => ended(Some(record), outcome),
        None => {
            Answer::error(&Error::new(Kind::Expired, "the task ended and is already forgotten"))
        }
    }
}

/// Answers with how a task ended; there is no row where a tool answered without a task.
fn ended(record: Option<&TaskRecord>, outcome: &Outcome) -> Answer {
    /// A call that ended without a result.
    #[derive(Serialize)]
    struct Failure {
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        task_id: Option<TaskId>,
        error: Error,
    }

    let (word, error) = match outcome {
        Outcome::Succeeded(contents) => return Answer::result(contents),
        Outcome::Failed(error) => ("failed", shown(error)),
        Outcome::Cancelled => ("cancelled", cancelled(record)),
    };
    let status = record.map_or(word, |record| canonical::word(record.state));
    Answer::json(&Failure { status, task_id: record.map(TaskRecord::id), error }).into_failure()
}

/// Says why a task was cancelled, and how sure it is that it did nothing [LEASE-4].
pub(crate) fn cancelled(record: Option<&TaskRecord>) -> Error {
    let reason = record.and_then(|record| record.cancel.as_ref()?.reason.as_deref());
    let words = reason.map_or_else(
        || "the task was cancelled".to_owned(),
        |reason| format!("the task was cancelled: {reason}"),
    );
    let never_ran = record.is_some_and(|record| record.attempt == 0);
    let guarantee = if never_ran { Guarantee::NotExecuted } else { Guarantee::Unknown };
    shown(&Error::new(Kind::Cancelled, words).with_guarantee(guarantee))
}

/// Ends a call whose caller went away before it had a handle, as its tool says [CANCEL-7]. The
/// answer is for a connection that is closing; a cancelled request gets none.
async fn abandon(
    facade: &Facade,
    spec: &ToolSpec,
    id: TaskId,
    caller: &Caller,
) -> Result<Answer, Error> {
    let engine = facade.engine();
    match spec.on_disconnect {
        OnDisconnect::Cancel => {
            let reason: Arc<str> = "its caller went away".into();
            let asked = engine.cancel(&caller.scope, id, Some(reason)).await?;
            Ok(Answer::error(&cancelled(Some(&asked.record))))
        }
        OnDisconnect::Detach => {
            let view = engine.view(&caller.scope, id).await?;
            Ok(answer(facade, caller, &view))
        }
    }
}
