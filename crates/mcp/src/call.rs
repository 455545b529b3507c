//! The budgeted call: the result when it comes in time, a task that goes on when it does not [CALL-1].
//!
//! Submit, wait, cancel, abandon; nothing here knows a word of any surface.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use raincheck_core::cancel::OnDisconnect;
use raincheck_core::content::Content;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::log::Line;
use raincheck_core::store::Page;
use raincheck_core::task::{Outcome, TaskRecord};
use raincheck_core::time::Timestamp;
use raincheck_runtime::{Handle, Request, Submission, View, Waited};

use crate::answer::{Answer, own};
use crate::caller::Caller;

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
        if view.record.state.is_terminal() { Self::Ended(view) } else { Self::Live(view) }
    }
}

/// Submits a request when it is its turn: requests of one connection are accepted in the order of their
/// lines [CALL-7].
///
/// # Errors
/// As of [`Handle::submit`], or when the caller went away before; nothing was executed.
pub(crate) async fn submit(
    engine: &Handle,
    request: Request,
    who: &Caller,
) -> Result<Submission, Error> {
    let turn = who.turn().await?;
    engine.submit_holding(request, turn).await
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
    let accepted = match submit(engine, request, who).await? {
        Submission::Task(accepted) => accepted,
        Submission::Answer(outcome) => return Ok(Told::Memory(outcome)),
    };
    let id = accepted.record.id();
    let gone = who.gone(wait);
    let waited = if who.listener().is_some() {
        let view = look(engine, id, wait, who, pin!(gone)).await?;
        view.map(|view| Waited::View(Box::new(view)))
    } else {
        unless(gone, engine.wait_result(accepted, wait)).await.transpose()?
    };
    match waited {
        None => abandon(engine, id, on_disconnect, who).await,
        Some(Waited::Result(contents)) if who.leave_now() => Ok(Told::Result(contents)),
        Some(Waited::View(view)) if who.leave_now() => Ok(Told::of(view)),
        Some(waited) => {
            // It is read again when there is room for it.
            drop(waited);
            Ok(Told::of(Box::new(see(engine, id, who).await?)))
        }
    }
}

/// Runs a tool whose task its caller knows by an id, so that it goes on when the caller goes away.
pub(crate) async fn follow(
    engine: &Handle,
    request: Request,
    wait: Duration,
    who: &mut Caller,
) -> Result<Told, Error> {
    // The turn before the leave: who waits for a turn may not keep the one before from its leave.
    let turn = who.turn().await?;
    // What the tool set answers at once cannot be read again later.
    who.leave().await?;
    let accepted = match engine.submit_holding(request, turn).await? {
        Submission::Task(accepted) => accepted,
        Submission::Answer(outcome) => return Ok(Told::Memory(outcome)),
    };
    who.give_back();
    let id = accepted.record.id();
    let gone = who.gone(wait);
    let view = if who.listener().is_some() {
        look(engine, id, wait, who, pin!(gone)).await?
    } else {
        unless(gone, engine.wait_accepted(accepted, wait)).await.transpose()?
    };
    match view {
        Some(view) if who.leave_now() => Ok(Told::of(Box::new(view))),
        view => {
            drop(view);
            Ok(Told::of(Box::new(see(engine, id, who).await?)))
        }
    }
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
    if let Some(view) = look(engine, id, wait, who, pin!(hurried)).await? {
        return Ok(view);
    }
    see(engine, id, who).await
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

/// Looks at a task until it has ended or the wait is over, and tells its progress meanwhile to who
/// asked for it; `None` once `gone` has fired. What it left is read only at its end.
async fn look(
    engine: &Handle,
    id: TaskId,
    wait: Duration,
    who: &mut Caller,
    mut gone: Pin<&mut impl Future<Output = ()>>,
) -> Result<Option<View>, Error> {
    let deadline = Instant::now() + wait;
    let mut watch = engine.watch(id);
    loop {
        let view = engine.status(who.scope(), id).await?;
        if let (Some(listener), Some(progress)) = (who.listener(), &view.progress) {
            listener.tell(progress, Instant::now()).await;
        }
        if view.record.state.is_terminal() {
            return see(engine, id, who).await.map(Some);
        }
        if Instant::now() >= deadline {
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
        tokio::select! {
            biased;
            () = news => {}
            () = &mut gone => return Ok(None),
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

/// Reads a task as it is, with what it left, once there is room for that.
async fn see(engine: &Handle, id: TaskId, who: &Caller) -> Result<View, Error> {
    who.leave().await?;
    engine.view(who.scope(), id).await
}

/// Ends a call whose caller went away before it had an id, as its tool says [CANCEL-7]. The answer is
/// for a connection that is closing; a cancelled request gets none.
async fn abandon(
    engine: &Handle,
    id: TaskId,
    on_disconnect: OnDisconnect,
    who: &Caller,
) -> Result<Told, Error> {
    match on_disconnect {
        OnDisconnect::Cancel => {
            let reason: Arc<str> = "its caller went away".into();
            let asked = engine.cancel(who.scope(), id, Some(reason)).await?;
            Err(cancelled(Some(&asked.record)))
        }
        OnDisconnect::Detach => Ok(Told::of(Box::new(see(engine, id, who).await?))),
    }
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
    own(&Error::new(Kind::Cancelled, words).with_guarantee(guarantee))
}

/// Returns when to look again: the older the task, the later, from 500 to 5000 ms.
pub(crate) fn poll_after_ms(record: &TaskRecord, now: Timestamp) -> u64 {
    let age = now.since(record.task.submitted_at).as_millis();
    u64::try_from(age / 10).unwrap_or(u64::MAX).clamp(500, 5000)
}
