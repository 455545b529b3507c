//! `subscriptions/listen` with `taskIds`: each change of a task is told as `notifications/tasks`
//! [TASKS-7].
//!
//! The library below us knows the method, but not this filter; the request is ours to read.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::input::OpenInputs;
use raincheck_core::lifecycle::State;
use raincheck_runtime::{View, Watch};

use super::progress;
use super::task;
use crate::call::read;
use crate::caller::Caller;
use crate::surface::{Desk, Method};

/// The method; without `taskIds` it is not ours.
pub(super) const LISTEN: &str = "subscriptions/listen";

/// How many tasks one subscription may be about.
const MAX_TASKS: usize = 100;

/// The shortest time between two notifications of one subscription.
const PAUSE: Duration = Duration::from_millis(250);

/// What is subscribed to; what else a client asks for is not accepted.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    task_ids: Vec<String>,
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    subscription: &'a Json,
}

/// A task that is listened to.
struct Watched {
    id: TaskId,
    watch: Watch,
    /// What was told last.
    told: Option<Told>,
}

/// What makes a change worth telling.
#[derive(PartialEq)]
struct Told {
    state: State,
    message: Option<String>,
    asks: OpenInputs,
}

impl Told {
    fn of(desk: &Desk, view: &View, whose: &'static str) -> Self {
        Self {
            state: view.record.state,
            message: progress::message(desk, view, whose),
            asks: view.record.asks.clone(),
        }
    }
}

/// Reads what a subscription is about; `None` where it is about no tasks.
pub(super) fn task_ids(method: &Method) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Params {
        notifications: Filter,
    }

    let params = method.params.read::<Params>().ok()?;
    Some(params.notifications.task_ids)
}

/// Tells how tasks stand and each change of them, until all have ended or the request is over. Ids that are
/// not the caller's are left out of what is acknowledged, and that is all that is said of them.
pub(super) async fn listen(
    desk: &Desk,
    method: &Method,
    ids: Vec<String>,
    who: &mut Caller,
    whose: &'static str,
) -> Result<Json, Error> {
    if ids.len() > MAX_TASKS {
        let message = format!("`taskIds` may name {MAX_TASKS} tasks");
        return Err(Error::new(Kind::InvalidParams, message));
    }
    let mut watched = Vec::new();
    let mut accepted = Vec::new();
    for text in ids {
        let Ok(id) = text.parse::<TaskId>() else { continue };
        // Registered before it is read: nothing is missed.
        let watch = desk.engine().watch(id);
        let status = desk.engine().status(who.scope(), id).await;
        if status.is_ok_and(|view| view.record.state != State::Expired) {
            watched.push(Watched { id, watch, told: None });
            accepted.push(text);
        }
    }
    let meta = Meta { subscription: &method.id };
    acknowledge(who, &meta, Filter { task_ids: accepted }).await;
    let over = who.hurried();
    let mut over = pin!(over);
    let mut next: Vec<usize> = (0..watched.len()).collect();
    loop {
        for place in next.drain(..) {
            if let Some(one) = watched.get_mut(place) {
                tell(desk, one, &meta, who, whose).await?;
            }
        }
        watched.retain(|one| one.told.as_ref().is_none_or(|told| !told.state.is_terminal()));
        if watched.is_empty() {
            return Ok(ended(&meta));
        }
        let news = async {
            // What comes meanwhile is told together.
            sleep(PAUSE).await;
            changed(&mut watched).await
        };
        tokio::select! {
            biased;
            () = &mut over => return Ok(ended(&meta)),
            place = news => next.push(place),
        }
    }
}

/// Waits for the first of the tasks that changes.
async fn changed(watched: &mut [Watched]) -> usize {
    let mut waits: Vec<_> = watched.iter_mut().map(|one| Box::pin(one.watch.changed())).collect();
    poll_fn(|context| {
        for (place, wait) in waits.iter_mut().enumerate() {
            if wait.as_mut().poll(context).is_ready() {
                return Poll::Ready(place);
            }
        }
        Poll::Pending
    })
    .await
}

async fn acknowledge(who: &Caller, meta: &Meta<'_>, filter: Filter) {
    #[derive(Serialize)]
    struct Acknowledged<'a> {
        #[serde(rename = "_meta")]
        meta: &'a Meta<'a>,
        notifications: Filter,
    }

    let words = Json::of(&Acknowledged { meta, notifications: filter });
    if let (Some(peer), Ok(words)) = (who.peer(), words) {
        peer.tell("notifications/subscriptions/acknowledged", words).await;
    }
}

/// Tells how a task stands, if that is news.
async fn tell(
    desk: &Desk,
    one: &mut Watched,
    meta: &Meta<'_>,
    who: &mut Caller,
    whose: &'static str,
) -> Result<(), Error> {
    let view = match read(desk.engine(), one.id, Duration::ZERO, who).await {
        Ok(view) => view,
        // It is forgotten: nothing more comes of it.
        Err(error) if error.kind == Kind::NotFound => {
            one.told =
                Some(Told { state: State::Expired, message: None, asks: OpenInputs::default() });
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let told = Told::of(desk, &view, whose);
    if one.told.as_ref() == Some(&told) {
        return Ok(());
    }
    one.told = Some(told);
    if view.record.state == State::Expired {
        return Ok(());
    }
    let task = task::detailed(desk, view, who, whose).await?;
    if let (Some(peer), Some(words)) = (who.peer(), with_meta(&task, meta)) {
        peer.tell("notifications/tasks", words).await;
    }
    // A subscription sleeps: others make their answers.
    who.give_back();
    Ok(())
}

/// Puts the subscription into a task that is written as a result.
fn with_meta(task: &Json, meta: &Meta<'_>) -> Option<Json> {
    let rest = task.get().strip_prefix(r#"{"resultType":"complete","#)?;
    let meta = serde_json::to_string(meta).ok()?;
    Json::parse(format!(r#"{{"_meta":{meta},{rest}"#)).ok()
}

/// Answers a subscription that is over.
fn ended(meta: &Meta<'_>) -> Json {
    #[derive(Serialize)]
    struct Ended<'a> {
        #[serde(rename = "resultType")]
        result_type: &'static str,
        #[serde(rename = "_meta")]
        meta: &'a Meta<'a>,
    }
    Json::of(&Ended { result_type: "complete", meta }).unwrap_or_else(|_| Json::empty_object())
}
