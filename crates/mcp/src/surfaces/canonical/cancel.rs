//! `cancel_task`.

use std::sync::Arc;

use serde::Serialize;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::ids::TaskId;
use raincheck_core::text;
use raincheck_core::tool::Hints;

use super::{task_id, words};
use crate::answer::Answer;
use crate::caller::Caller;
use crate::surface::{Definition, Desk};
use crate::wire::Fields;

pub(super) const DEFINITION: Definition = Definition {
    title: "Cancel task",
    description: "Asks a task to end early. A queued task is cancelled at once; a running one is told \
                  to stop (cancel_requested) and ends by itself or is killed after a grace. \
                  acknowledged is false when it had already ended.",
    schema: r#"{"type":"object","properties":{"task_id":{"type":"string"},"reason":{"type":"string"}},"required":["task_id"],"additionalProperties":false}"#,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
};

/// The longest reason that is kept, in bytes.
const MAX_REASON: usize = 1000;

/// What became of the request.
#[derive(Serialize)]
struct Cancelled {
    task_id: TaskId,
    state: &'static str,
    acknowledged: bool,
}

pub(super) async fn call(desk: &Desk, arguments: &Json, who: &Caller) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["task_id", "reason"])?;
    let reason: Option<Arc<str>> = fields
        .optional::<String>("reason")?
        .map(|words| text::escape_lines(text::clip(&words, MAX_REASON)).into());
    let id = task_id(&mut fields)?;
    let cancelled = desk.engine().cancel(who.scope(), id, reason).await?;
    Ok(Answer::json(&Cancelled {
        task_id: cancelled.record.id(),
        state: words::word(cancelled.record.state),
        acknowledged: cancelled.acknowledged,
    }))
}
