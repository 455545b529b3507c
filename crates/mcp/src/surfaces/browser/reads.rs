//! What `observe` tells of commands themselves.

use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use serde_json::Value;

use super::Context;
use super::words::To;
use super::{cancel, command, lists, parse_id, unknown};
use crate::answer::Answer;
use crate::call::read;
use crate::caller::Caller;
use crate::caller::SURFACE_CAP;
use crate::wire::{Fields, Whole};

/// One of the views of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// How one command stands or ended.
    Result,
    /// All commands that are readable.
    Pending,
    /// The commands that failed.
    Failed,
}

/// What each is called.
const TABLE: &[(&str, Read)] = &[
    ("command_result", Read::Result),
    ("pending_commands", Read::Pending),
    ("failed_commands", Read::Failed),
];

impl Read {
    /// Finds what a call reads; `None` for what is the bridge's to show.
    pub(super) fn of(arguments: &Json) -> Option<Self> {
        let arguments: Value = arguments.read().ok()?;
        let what = arguments.get("what")?.as_str()?;
        TABLE.iter().find(|(word, _)| *word == what).map(|(_, read)| *read)
    }

    /// Answers the call.
    pub(super) async fn call(
        self,
        context: &Context<'_>,
        arguments: &Json,
        who: &mut Caller,
    ) -> Result<Answer, Error> {
        match self {
            Self::Result => result(context, arguments, who).await,
            Self::Pending => lists::pending(context, arguments, who).await,
            Self::Failed => lists::failed(context, arguments, who).await,
        }
    }
}

async fn result(
    context: &Context<'_>,
    arguments: &Json,
    who: &mut Caller,
) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["what", "correlation_id", "wait_ms"])?;
    let wait = wait(&mut fields, who)?;
    let id = parse_id(&fields.required::<String>("correlation_id")?)?;
    let engine = context.desk.engine();
    let read = read(engine, id, wait, who).await;
    let is_unknown = |error: &Error| error.kind == raincheck_core::error::Kind::NotFound;
    let view = read.map_err(|error| if is_unknown(&error) { unknown() } else { error })?;
    context.surface.readings.note(&view);
    let over = cancel::ended_for_good(context, who, &view).await;
    let now = engine.now();
    let tab = context.surface.bridge.tab_of(&view.record.task.lane);
    let seen = command::Seen { view: &view, tab, over };
    Ok(context.desk.fence(|mark| command::answer(seen, now, To::Reader, mark)))
}

/// Takes `wait_ms` and returns what is left of it within the caller's budget [CALL-2].
fn wait(fields: &mut Fields, who: &Caller) -> Result<Duration, Error> {
    let most = i64::try_from(SURFACE_CAP.as_millis()).unwrap_or(i64::MAX);
    let Whole(wish) = fields.optional::<Whole>("wait_ms")?.unwrap_or(Whole(0));
    let wish = u64::try_from(wish).ok().filter(|_| wish <= most).ok_or_else(|| {
        fields.wrong("wait_ms", &format!("must be between 0 and {most} milliseconds"))
    })?;
    Ok(who.wait(Duration::from_millis(wish)))
}
