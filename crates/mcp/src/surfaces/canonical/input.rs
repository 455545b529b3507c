//! `give_task_input`, and what a task asks as answers show it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::input::Input;
use raincheck_core::tool::Hints;
use raincheck_runtime::Given;

use super::{task_id, words};
use crate::answer::Answer;
use crate::caller::Caller;
use crate::surface::{Definition, Desk};
use crate::wire::Fields;

/// The name of the tool.
pub(super) const NAME: &str = "give_task_input";

pub(super) const DEFINITION: Definition = Definition {
    title: "Give task input",
    description: "Answers a task that is input_required. key is the one of its input_request; response is what \
                  the request asks for, such as {\"action\":\"accept\",\"content\":{…}} or {\"action\":\"decline\"} \
                  for a question to a person: ask the user first. acknowledged is false when it was answered \
                  before.",
    schema: r#"{"type":"object","properties":{"task_id":{"type":"string"},"key":{"type":"string"},"response":{"type":"object"}},"required":["task_id","key","response"],"additionalProperties":false}"#,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
};

/// What a task asks. The words in it are the tool's: it stands inside of a mark.
#[derive(Debug, Serialize)]
pub(super) struct Asked<'a> {
    key: &'a str,
    request: &'a RawValue,
}

impl<'a> Asked<'a> {
    pub(super) fn of(input: &'a Input) -> Self {
        Self { key: &input.key, request: input.request.raw() }
    }
}

/// Takes the answer with its bytes.
fn as_written(arguments: &Json) -> Result<Json, Error> {
    #[derive(Deserialize)]
    struct Raw {
        response: Json,
    }

    let raw: Raw = arguments
        .read()
        .map_err(|error| Error::new(Kind::InvalidRequest, format!("the arguments: {error}")))?;
    Ok(raw.response)
}

/// What became of the answer.
#[derive(Serialize)]
struct Told {
    task_id: TaskId,
    state: &'static str,
    acknowledged: bool,
}

pub(super) async fn call(desk: &Desk, arguments: &Json, who: &Caller) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["task_id", "key", "response"])?;
    let key: String = fields.required("key")?;
    if !fields.value("response")?.is_object() {
        return Err(fields.wrong("response", "must be an object"));
    }
    let response = as_written(arguments)?;
    let id = task_id(&mut fields)?;
    let (record, acknowledged) =
        match desk.engine().give_input(who.scope(), id, &key, response).await? {
            Given::Taken(record) => (record, true),
            Given::Before(record) => (record, false),
            Given::NotAsked(record) => {
                let state = words::word(record.state);
                let message = format!("`key` names nothing that the task asks for; it is {state}");
                let hint = "call get_task_status and answer its input_request, if it has one";
                return Err(Error::new(Kind::InvalidParams, message).with_hint(hint));
            }
        };
    let state = words::word(record.state);
    Ok(Answer::json(&Told { task_id: record.id(), state, acknowledged }))
}
