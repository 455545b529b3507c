//! The methods of the extension.

use std::time::Duration;

use serde::Deserialize;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_core::task::TaskRecord;

use super::task;
use crate::call::read;
use crate::caller::Caller;
use crate::surface::{Desk, Method};
use crate::wire::read_responses;

const GET: &str = "tasks/get";
const UPDATE: &str = "tasks/update";
const CANCEL: &str = "tasks/cancel";

/// All of them. `tasks/list` and `tasks/result` were of another revision and are methods no more.
pub(super) const ALL: &[&str] = &[GET, UPDATE, CANCEL];

/// Answers one of them; `None` for any other method.
pub(super) async fn answer(
    desk: &Desk,
    method: &Method,
    who: &mut Caller,
    whose: &'static str,
) -> Option<Result<Json, Error>> {
    match method.name.as_str() {
        GET => Some(get(desk, method, who, whose).await),
        UPDATE => Some(update(desk, method, who).await),
        CANCEL => Some(cancel(desk, method, who).await),
        _ => None,
    }
}

/// Reads which task a request is about; whatever is no id is nobody's task [ID-1, SCOPE-2].
fn task_id(method: &Method) -> Result<TaskId, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        task_id: String,
    }

    let params: Params = method.params.read().map_err(|_| {
        Error::new(Kind::InvalidParams, "`taskId` is missing, or is no string")
            .with_hint("send the taskId of the answer that made the task")
    })?;
    params.task_id.parse().map_err(|_| Error::not_found())
}

async fn get(
    desk: &Desk,
    method: &Method,
    who: &mut Caller,
    whose: &'static str,
) -> Result<Json, Error> {
    let view = read(desk.engine(), task_id(method)?, Duration::ZERO, who).await?;
    task::detailed(desk, view, who, whose).await
}

/// Gives a task what it asked for. What it did not ask for, or was given before, is passed over: a client may
/// repeat itself.
async fn update(desk: &Desk, method: &Method, who: &Caller) -> Result<Json, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        input_responses: Json,
    }

    let id = task_id(method)?;
    let params: Params = method.params.read().map_err(|_| {
        Error::new(Kind::InvalidParams, "`inputResponses` is missing")
            .with_hint("send the answers by the keys of inputRequests")
    })?;
    let responses = read_responses(&params.input_responses)?;
    if responses.is_empty() {
        let view = desk.engine().status(who.scope(), id).await?;
        is_there(&view.record)?;
    }
    for (key, response) in responses {
        let given = desk.engine().give_input(who.scope(), id, &key, response).await;
        if given.as_ref().is_err_and(|error| error.kind == Kind::Expired) {
            return Err(Error::not_found());
        }
        given?;
    }
    Ok(acknowledged())
}

/// A task whose retention is over is as unknown as one that never was [TASKS-5].
fn is_there(record: &TaskRecord) -> Result<(), Error> {
    if record.state == State::Expired { Err(Error::not_found()) } else { Ok(()) }
}

/// Asks a task to end. What becomes of it is seen by `tasks/get`: a task that had ended before is as it
/// was [CANCEL-4].
async fn cancel(desk: &Desk, method: &Method, who: &Caller) -> Result<Json, Error> {
    let asked = desk.engine().cancel(who.scope(), task_id(method)?, None).await?;
    is_there(&asked.record)?;
    Ok(acknowledged())
}

fn acknowledged() -> Json {
    Json::parse(r#"{"resultType":"complete"}"#).unwrap_or_else(|_| Json::empty_object())
}
