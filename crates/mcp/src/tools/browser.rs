//! The four browser tools: act, look, cancel, configure.
//!
//! The first, the second and the last are the bridge's own; what is theirs here is the wait, the words
//! of the answer, and reading commands by their correlation ids.

mod cancel;
mod command;
mod lists;
mod order;
mod readings;
mod reads;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_core::text;
use raincheck_runtime::Submission;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

pub(crate) use self::readings::Readings;

use crate::answer::Answer;
use crate::call::{Caller, follow};
use crate::dialect::browser as words;
use crate::server::Facade;
use crate::tools::canonical::Definition;

use self::order::Order;

/// One of the four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Does something in the browser.
    Interact,
    /// Shows something.
    Observe,
    /// Ends commands early.
    Cancel,
    /// Sets something.
    Configure,
}

impl Tool {
    /// All of them, in the order of the list.
    pub(crate) const ALL: &'static [Self] =
        &[Self::Interact, Self::Observe, Self::Cancel, Self::Configure];

    /// Returns the name callers use.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Interact => "interact",
            Self::Observe => "observe",
            Self::Cancel => "cancel",
            Self::Configure => "configure",
        }
    }

    /// Finds the tool a name stands for.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.name() == name)
    }

    /// Returns what the list says of it; `None` where the bridge says it.
    pub(crate) const fn definition(self) -> Option<Definition> {
        match self {
            Self::Cancel => Some(cancel::DEFINITION),
            Self::Interact | Self::Observe | Self::Configure => None,
        }
    }
}

/// Answers a call of one of the four. Marks and escapes of pages act on nobody [SEC-10].
pub(crate) async fn call(
    facade: &Facade,
    tool: Tool,
    arguments: &Json,
    caller: &mut Caller,
) -> Answer {
    let answered = match tool {
        Tool::Interact => order(facade, tool, Order::read(arguments, "action"), caller).await,
        Tool::Observe => match reads::Read::of(arguments) {
            Some(read) => read.call(facade, arguments, caller).await,
            None => order(facade, tool, Order::read(arguments, "what"), caller).await,
        },
        Tool::Cancel => cancel::call(facade, arguments, caller).await,
        Tool::Configure => order(facade, tool, Order::read(arguments, "what"), caller).await,
    };
    answered.unwrap_or_else(|error| refused(&error)).with_marks_escaped()
}

/// Makes a command of a call, and waits for its end within the budget [CALL-1].
async fn order(
    facade: &Facade,
    tool: Tool,
    order: Result<Order, Error>,
    caller: &mut Caller,
) -> Result<Answer, Error> {
    let (order, engine) = (order?, facade.engine());
    let Some(spec) = engine.spec(tool.name()) else {
        let message = format!("this server has no tool `{}`", tool.name());
        return Err(Error::new(Kind::UnknownTool, message));
    };
    let wait = caller.budget.left(order.wait.unwrap_or(spec.wait), Instant::now());
    let request = order.request(&spec, caller.scope.clone())?;
    let accepted = match engine.submit(request).await? {
        Submission::Task(accepted) => accepted,
        Submission::Answer(outcome) => return Ok(command::from_memory(&outcome)),
    };
    let id = accepted.record.id();
    let view = match follow(facade, accepted, wait, caller).await {
        Some(view) => view?,
        // The caller went away; the command has an id and goes on [CANCEL-7].
        None => engine.view(&caller.scope, id).await?,
    };
    facade.readings().note(&view);
    Ok(command::answer(&view, engine.now(), words::To::Submitter))
}

/// Returns the states of commands that have not ended, as the table has them.
fn live() -> Vec<State> {
    State::ALL.iter().copied().filter(|state| !state.is_terminal()).collect()
}

/// Takes an id in any spelling; whatever is no id is nobody's command [ID-1, SCOPE-2].
fn parse_id(text: &str) -> Result<TaskId, Error> {
    text.parse().map_err(|_| unknown())
}

/// The answer for an id that is nobody's.
fn unknown() -> Error {
    Error::new(Kind::NotFound, "unknown command")
}

/// Answers a call that came to nothing.
fn refused(error: &Error) -> Answer {
    #[derive(Serialize)]
    struct Refused<'a> {
        status: &'static str,
        error: &'a str,
        error_info: raincheck_core::error::Spelled<'a>,
        message: String,
    }
    let error = command::told(&owned_elsewhere(error).unwrap_or_else(|| error.clone()));
    let answer = Answer::json(&Refused {
        status: "error",
        error: &error.message,
        error_info: error.spelled(words::code(error.kind)),
        message: format!("{}. {}", text::escape_lines(&error.message), words::hint(&error)),
    });
    answer.into_failure()
}

/// A store that belongs to another process means that the browser does, too.
fn owned_elsewhere(error: &Error) -> Option<Error> {
    #[derive(Deserialize)]
    struct Owner {
        owner_pid: u32,
    }
    #[derive(Serialize)]
    struct Owned {
        reason: &'static str,
        pid: u32,
    }
    let Owner { owner_pid: pid } = error.details.as_ref()?.read().ok()?;
    let details = Json::of(&Owned { reason: "owned_elsewhere", pid }).ok()?;
    let words =
        format!("the browser belongs to another browser-mcp: process {pid} (owned_elsewhere)");
    let hint = "use that server's client, or end that server and call again";
    Some(Error::new(Kind::PeerNotReady, words).with_details(details).with_hint(hint))
}
