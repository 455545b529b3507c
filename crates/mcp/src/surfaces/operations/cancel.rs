//! `cancel_operation`.

use std::sync::Arc;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::Spelling;
use raincheck_core::lifecycle::State;
use raincheck_core::text;
use raincheck_core::tool::Hints;
use raincheck_runtime::Cancelled;
use serde::Serialize;

use super::{LogId, words};
use crate::answer::Answer;
use crate::caller::Caller;
use crate::surface::{Definition, Desk};
use crate::wire::Fields;

pub(super) const DEFINITION: Definition = Definition {
    title: "Cancel operation",
    description: "Asks an operation to end early. One in the queue is cancelled at once; a running one is \
                  told to stop if its tool can be (cancel_requested), and get_operation_result says how it \
                  ended. rejected: it had ended before.",
    schema: r#"{"type":"object","properties":{"log_id":{"type":"string"},"reason":{"type":"string"}},"required":["log_id"],"additionalProperties":false}"#,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
};

/// The longest reason that is kept, in bytes.
const MAX_REASON: usize = 1000;

/// What became of the request.
#[derive(Serialize)]
struct Asked {
    status: &'static str,
    log_id: String,
    state: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

pub(super) async fn call(desk: &Desk, arguments: &Json, who: &Caller) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["log_id", "reason"])?;
    let reason: Option<Arc<str>> = fields
        .optional::<String>("reason")?
        .map(|words| text::escape_lines(text::clip(&words, MAX_REASON)).into());
    let log_id = LogId::take(&mut fields)?;
    let Some(id) = log_id.id else { return Ok(log_id.unknown().into_failure()) };
    match desk.engine().cancel(who.scope(), id, reason).await {
        Ok(asked) if asked.record.state == State::Expired => Ok(log_id.unknown().into_failure()),
        Ok(asked) => Ok(Answer::json(&told(&asked))),
        Err(error) if error.kind == Kind::NotFound => Ok(log_id.unknown().into_failure()),
        Err(error) => Err(error),
    }
}

fn told(asked: &Cancelled) -> Asked {
    let record = &asked.record;
    let state = words::job(record.state);
    let (status, message) = if record.state.is_terminal() && !asked.acknowledged {
        ("rejected", format!("The operation had ended before ({state})."))
    } else if record.state.is_terminal() {
        ("cancelled", "The operation is cancelled; it never ran, or has stopped.".to_owned())
    } else if record.task.supports_cancel {
        let words = "The operation was told to stop; get_operation_result says how it ended.";
        ("cancel_requested", words.to_owned())
    } else {
        let words = format!(
            "`{}` cannot be stopped once it runs: it goes on, and get_operation_result says how it ended.",
            record.task.tool
        );
        ("cancel_requested", words)
    };
    Asked {
        status,
        log_id: record.id().spell(Spelling::Uuid),
        state,
        message,
        code: (status == "rejected").then_some("ERR_CANCEL_REJECTED"),
    }
}
