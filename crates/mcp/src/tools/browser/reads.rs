//! What `observe` tells of commands themselves.

use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use serde_json::Value;
use tokio::time::Instant;

use super::{command, lists, parse_id, unknown};
use crate::answer::Answer;
use crate::arguments::{Fields, Whole};
use crate::budget::SURFACE_CAP;
use crate::call::{Caller, end_of};
use crate::dialect::browser::To;
use crate::server::Facade;

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
        facade: &Facade,
        arguments: &Json,
        caller: &mut Caller,
    ) -> Result<Answer, Error> {
        match self {
            Self::Result => result(facade, arguments, caller).await,
            Self::Pending => lists::pending(facade, arguments, caller).await,
            Self::Failed => lists::failed(facade, arguments, caller).await,
        }
    }
}

async fn result(facade: &Facade, arguments: &Json, caller: &mut Caller) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["what", "correlation_id", "wait_ms"])?;
    let wait = wait(&mut fields, caller)?;
    let id = parse_id(&fields.required::<String>("correlation_id")?)?;
    let engine = facade.engine();
    let closing = caller.closing.clone();
    let read = tokio::select! {
        biased;
        view = end_of(facade, id, wait, caller) => view,
        () = closing.cancelled_owned() => {
            engine.wait_end(&caller.scope, id, Duration::ZERO).await
        }
    };
    let is_unknown = |error: &Error| error.kind == raincheck_core::error::Kind::NotFound;
    let view = read.map_err(|error| if is_unknown(&error) { unknown() } else { error })?;
    facade.readings().note(&view);
    Ok(command::answer(&view, engine.now(), To::Reader))
}

/// Takes `wait_ms` and returns what is left of it within the caller's budget [CALL-2].
fn wait(fields: &mut Fields, caller: &Caller) -> Result<Duration, Error> {
    let most = i64::try_from(SURFACE_CAP.as_millis()).unwrap_or(i64::MAX);
    let Whole(wish) = fields.optional::<Whole>("wait_ms")?.unwrap_or(Whole(0));
    let wish = u64::try_from(wish).ok().filter(|_| wish <= most).ok_or_else(|| {
        fields.wrong("wait_ms", &format!("must be between 0 and {most} milliseconds"))
    })?;
    Ok(caller.budget.left(Duration::from_millis(wish), Instant::now()))
}
