//! `get_operation_result` and `get_operation_status`.

use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::lifecycle::State;
use raincheck_runtime::View;

use super::operation::{self, To};
use super::{Context, LogId, READS, order};
use crate::answer::Answer;
use crate::call::read;
use crate::caller::Caller;
use crate::surface::Definition;
use crate::wire::Fields;

pub(super) const RESULT: Definition = Definition {
    title: "Operation result",
    description: "Reads how an operation ended, by the log_id of its call: result or error, or where it \
                  stands with partial_result. wait: true sleeps until the end, at most timeout seconds. \
                  Reading again gives the same answer until expires_at.",
    schema: r#"{"type":"object","properties":{"log_id":{"type":"string"},"wait":{"type":"boolean","default":false},"timeout":{"type":"number","minimum":0,"default":5,"description":"Seconds to wait if wait is true, at most 60"}},"required":["log_id"],"additionalProperties":false}"#,
    hints: READS,
};

pub(super) const STATUS: Definition = Definition {
    title: "Operation status",
    description: "Tells where an operation stands, with its progress and partial_result; never its result. \
                  Returns at once.",
    schema: r#"{"type":"object","properties":{"log_id":{"type":"string"}},"required":["log_id"],"additionalProperties":false}"#,
    hints: READS,
};

/// How long a read that waits does so by default.
const WAIT: Duration = Duration::from_secs(5);

pub(super) async fn result(
    context: &Context<'_>,
    arguments: &Json,
    who: &mut Caller,
) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["log_id", "wait", "timeout"])?;
    let timeout = match fields.optional::<f64>(order::TIMEOUT)? {
        Some(seconds) => order::seconds(&seconds.into())?,
        None => WAIT,
    };
    let is_waiting = fields.optional::<bool>("wait")?.unwrap_or(false);
    let log_id = LogId::take(&mut fields)?;
    let Some(id) = log_id.id else { return Ok(log_id.unknown()) };
    let wish = if is_waiting { timeout } else { Duration::ZERO };
    let wait = who.asked_to_wait(wish);
    let waited = who.effective_wait().filter(|_| is_waiting);
    let found = read(context.desk.engine(), id, wait, who).await;
    told(context, found, &log_id, To::Reader(waited), who)
}

pub(super) async fn status(
    context: &Context<'_>,
    arguments: &Json,
    who: &mut Caller,
) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["log_id"])?;
    let log_id = LogId::take(&mut fields)?;
    let Some(id) = log_id.id else { return Ok(log_id.unknown()) };
    who.leave().await?;
    let engine = context.desk.engine();
    let mut found = engine.status(who.scope(), id).await;
    // The words of a failure are short, and stand with what is large.
    if found.as_ref().is_ok_and(|view| matches!(view.record.state, State::Failed | State::TimedOut))
    {
        found = engine.view(who.scope(), id).await;
    }
    told(context, found, &log_id, To::Glancer, who)
}

fn told(
    context: &Context<'_>,
    found: Result<View, Error>,
    log_id: &LogId,
    to: To,
    who: &Caller,
) -> Result<Answer, Error> {
    match found {
        Ok(view) => Ok(operation::answer(context, &view, to, who)),
        Err(error) if error.kind == Kind::NotFound => Ok(log_id.unknown()),
        Err(error) => Err(error),
    }
}
