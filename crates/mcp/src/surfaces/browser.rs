//! The browser surface: act, look, cancel, configure.
//!
//! The first, the second and the last are the bridge's own; what is theirs here is the wait, the words
//! of the answer, and reading commands by their correlation ids.

mod cancel;
mod command;
mod lists;
mod order;
mod practices;
mod readings;
mod reads;
mod words;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use raincheck_core::cancel::OnDisconnect;
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{LaneId, Spelling, TaskId};
use raincheck_core::lifecycle::State;
use raincheck_core::store::Durability;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;

use crate::answer::{Answer, Begins, Failure, Mark, Refused};
use crate::call::{Told, cancelled, follow, respelled};
use crate::caller::Caller;
use crate::surface::{Call, Definition, Desk, Shown, Surface};

use self::order::Order;
use self::readings::Readings;

/// Who speaks inside of a fence.
const PAGE: &str = "the page";

/// What the surface must know of the bridge behind it.
#[async_trait]
pub trait Bridge: fmt::Debug + Send + Sync + 'static {
    /// Returns the tab whose commands stand in a lane; `None` for a lane that is no tab's.
    fn tab_of(&self, lane: &LaneId) -> Option<i64>;

    /// Returns by which connection a command was given, by no name where the client has one only; `None` where
    /// that is not known, as of a command of an earlier server.
    fn connection_of(&self, id: TaskId) -> Option<Arc<str>> {
        let _ = id;
        None
    }

    /// Says that the browser belongs to another process.
    fn owned_elsewhere(&self, pid: u32) -> Error;

    /// Waits until a browser is connected; at once when one is.
    ///
    /// # Cancel safety
    /// Safe: nothing is changed by it.
    async fn browser_comes(&self);
}

/// The words of a browser's users: commands with correlation ids, in four tools.
#[derive(Debug)]
pub struct Browser {
    bridge: Arc<dyn Bridge>,
    readings: Readings,
}

impl Browser {
    /// Speaks for a bridge.
    pub fn new(bridge: impl Bridge) -> Self {
        Self { bridge: Arc::new(bridge), readings: Readings::default() }
    }
}

/// What a tool of the surface works with.
#[derive(Clone, Copy)]
struct Context<'a> {
    desk: &'a Desk,
    surface: &'a Browser,
}

#[async_trait]
impl Surface for Browser {
    fn tools(&self, engine: &[ToolSpec]) -> Vec<Shown> {
        let of_bridge =
            |name: &str| engine.iter().find(|spec| spec.name.as_str() == name).map(Shown::of);
        let shown = |tool: &Tool| match tool.definition() {
            Some(definition) => Some(definition.shown(tool.name())),
            None => of_bridge(tool.name()),
        };
        // With two of them a page is worked with; the others are found from there.
        let is_entry = |name: &str| name == Tool::Interact.name() || name == Tool::Observe.name();
        let loaded = |shown: Shown| match is_entry(&shown.name) {
            true => shown.always_loaded(),
            false => shown,
        };
        Tool::ALL.iter().filter_map(shown).map(loaded).collect()
    }

    fn practices(&self, durability: Durability) -> String {
        practices::text(durability)
    }

    async fn call(&self, desk: &Desk, call: Call, who: &mut Caller) -> Result<Told, Refused> {
        let Some(tool) = Tool::find(&call.tool) else { return Err(no_tool(&call.tool).into()) };
        let (context, arguments) = (Context { desk, surface: self }, &call.arguments);
        let read = match tool {
            Tool::Interact => return Ok(self.order(desk, tool, arguments, "action", who).await?),
            Tool::Configure => return Ok(self.order(desk, tool, arguments, "what", who).await?),
            Tool::Observe => match reads::Read::of(arguments) {
                Some(read) => {
                    who.begins_nothing();
                    read.call(&context, arguments, who).await
                }
                None => return Ok(self.order(desk, tool, arguments, "what", who).await?),
            },
            Tool::Cancel => {
                who.begins_nothing();
                let asked = cancel::call(&context, arguments, who).await;
                return asked.map(Told::Said).map_err(Refused::change);
            }
        };
        read.map(Told::Said).map_err(Refused::read)
    }

    /// Marks and escapes of pages act on nobody [SEC-10].
    fn write(&self, desk: &Desk, told: Told, _who: &Caller) -> Answer {
        let answer = match told {
            Told::Live(view) | Told::Ended(view) => {
                self.readings.note(&view);
                let now = desk.engine().now();
                let tab = self.bridge.tab_of(&view.record.task.lane);
                let seen = command::Seen { view: &view, tab, over: None };
                desk.fence(|mark| command::answer(seen, now, words::To::Submitter, mark))
            }
            Told::Memory(Outcome::Succeeded(contents)) | Told::Result(contents) => {
                Answer::result(&contents)
            }
            Told::Memory(Outcome::Failed(error)) => self.refused(desk, &error.into()),
            Told::Memory(Outcome::Cancelled) => self.refused(desk, &cancelled(None).into()),
            Told::Said(answer) => answer,
        };
        answer.with_marks_escaped()
    }

    fn refuse(&self, desk: &Desk, refused: &Refused) -> Answer {
        self.refused(desk, refused).with_marks_escaped()
    }

    fn whose(&self) -> &'static str {
        PAGE
    }
}

impl Browser {
    /// Makes a command of a call, and waits for its end within the budget [CALL-1]. The command has an id:
    /// it goes on when its caller goes away [CANCEL-7].
    async fn order(
        &self,
        desk: &Desk,
        tool: Tool,
        arguments: &Json,
        chooser: &str,
        who: &mut Caller,
    ) -> Result<Told, Error> {
        let order = Order::read(arguments, chooser)?;
        let spec = desk.engine().spec(tool.name()).ok_or_else(|| no_tool(tool.name()))?;
        if let Some(most) = order.wait_before_health(tool) {
            // Nobody else has to wait for it.
            who.begins_nothing();
            let (most, gone) = (who.wait(most), who.hurried());
            tokio::select! {
                () = self.bridge.browser_comes() => {}
                () = tokio::time::sleep(most) => {}
                () = gone => {}
            }
        }
        let wait = who.wait(order.wait.unwrap_or(spec.wait));
        let request = order.request(&spec, who.scope().clone())?;
        follow(desk.engine(), request, wait, OnDisconnect::Detach, who).await
    }

    /// Answers a call that came to nothing.
    fn refused(&self, desk: &Desk, refused: &Refused) -> Answer {
        #[derive(Serialize)]
        struct Said<'a> {
            status: &'static str,
            message: String,
            error_info: Failure<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            untrusted_begins: Option<Begins<'a>>,
            error: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            untrusted_ends: Option<&'a str>,
        }
        let guarantee = refused.guarantee();
        let known = || respelled(&refused.error, Spelling::Correlation, "correlation_id");
        let error = self.owned_elsewhere(&refused.error).or_else(known);
        let error = error.unwrap_or_else(|| refused.error.clone());
        let error = command::Told::of(&error);
        let said = |mark: &Mark| {
            let fence = error.is_quoting.then_some(mark);
            Answer::json(&Said {
                status: "error",
                message: format!("{}. {}", error.own.message, words::hint(&error.own)),
                error_info: error.info(mark).told(guarantee),
                untrusted_begins: fence.map(|mark| mark.begins(PAGE)),
                error: &error.full.message,
                untrusted_ends: fence.map(Mark::ends),
            })
        };
        desk.fence(said).into_failure()
    }

    /// A store that belongs to another process means that the browser does, too.
    fn owned_elsewhere(&self, error: &Error) -> Option<Error> {
        #[derive(Deserialize)]
        struct Owner {
            owner_pid: u32,
        }
        let Owner { owner_pid } = error.details.as_ref()?.read().ok()?;
        Some(self.bridge.owned_elsewhere(owner_pid))
    }
}

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

fn no_tool(name: &str) -> Error {
    Error::new(Kind::UnknownTool, format!("this server has no tool `{name}`"))
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
