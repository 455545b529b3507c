//! The operations surface: every tool of a bridge by its name, each call an operation with a log id.
//!
//! A call waits for `timeout` seconds; what is not done by then goes on and is read by its log id. The
//! tools are the bridge's own; the four that read, cancel and list operations are of this surface.

mod cancel;
mod list;
mod manner;
mod operation;
mod order;
mod plain;
mod practices;
mod reads;
mod words;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use raincheck_core::cancel::OnDisconnect;
use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{LaneId, Spelling, TaskId};
use raincheck_core::store::Durability;
use raincheck_core::task::Outcome;
use raincheck_core::text;
use raincheck_core::tool::{Hints, ToolSpec};

use crate::answer::{Answer, Begins, Failure, Mark, Refused};
use crate::call::{Told, cancelled, follow, respelled};
use crate::caller::Caller;
use crate::surface::{Call, Definition, Desk, Shown, Surface};
use crate::wire::Fields;

use self::operation::To;
use self::order::Order;

pub use self::manner::{Manner, Mode};

/// What the surface must know of the bridge behind it.
pub trait Bridge: fmt::Debug + Send + Sync + 'static {
    /// Names who speaks in results, progress and failures, such as `the editor`.
    fn whose(&self) -> &'static str;

    /// Says how a tool runs, for clients that plan ahead.
    fn manner(&self, tool: &str) -> Manner;

    /// Returns other names that tools are called by, each with the tool's own. They are not listed.
    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Names the one to three tools that a model is to know from the beginning.
    fn entries(&self) -> &'static [&'static str] {
        &[]
    }

    /// Says in a sentence why an operation waits, and what to do about it, for a reason of the bridge's.
    fn waiting(&self, reason: &str) -> Option<String>;

    /// Says what to do after an operation that had not begun in time, for a reason of the bridge's.
    fn not_ready(&self, _reason: &str) -> Option<String> {
        None
    }

    /// Says what must not be overlooked in the result of an operation that succeeded.
    fn remark(&self, _tool: &str, _result: &[Content]) -> Option<HeldUp> {
        None
    }

    /// Returns the tool that a call of another one comes to, and the arguments it has there: it is checked as
    /// that tool is.
    fn other_door<'a>(&self, _tool: &str, _inputs: &'a Value) -> Option<(&'a str, Value)> {
        None
    }

    /// Says what holds the operations of a lane up just now, where the other end says so.
    fn held_up(&self, _lane: &LaneId) -> Option<HeldUp> {
        None
    }

    /// Says that what the bridge leads to belongs to another process.
    fn owned_elsewhere(&self, pid: u32) -> Error;
}

/// What holds operations up, or is to be said of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldUp {
    /// What it is and what to do about it, in a sentence of ours that ends where the other end speaks.
    pub words: &'static str,
    /// What the other end says about it, such as the title of a dialog.
    pub said: String,
}

impl HeldUp {
    /// Writes it, with a mark around what the other end says.
    fn quoted(&self, bridge: &dyn Bridge, mark: &Mark) -> String {
        let said = mark.around(bridge.whose(), &text::escape(&self.said));
        format!("{}\n{said}", self.words)
    }
}

/// Calls as operations with log ids, which answer within their `timeout`.
#[derive(Debug)]
pub struct Operations {
    bridge: Arc<dyn Bridge>,
}

impl Operations {
    /// Speaks for a bridge.
    pub fn new(bridge: impl Bridge) -> Self {
        Self { bridge: Arc::new(bridge) }
    }

    /// Returns the name of the tool that is called by a name.
    fn own_name<'a>(&self, name: &'a str) -> &'a str {
        let aliases = self.bridge.aliases().iter();
        aliases.copied().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own)
    }

    /// Makes an operation of a call, and waits for its end within the budget [CALL-1].
    async fn order(
        &self,
        desk: &Desk,
        tool: &str,
        arguments: &Json,
        who: &mut Caller,
    ) -> Result<Told, Error> {
        let spec = desk.engine().spec(tool).ok_or_else(|| no_tool(tool))?;
        let order = Order::read(arguments, &spec)?;
        desk.check(&spec, &order.value)?;
        if let Some((own, inputs)) = self.bridge.other_door(tool, &order.value)
            && let Some(spec) = desk.engine().spec(own)
        {
            desk.check(&spec, &inputs)?;
        }
        let wait = who.asked_to_wait(order.wait.unwrap_or(spec.wait));
        // Whoever has a key finds the operation again with it [CANCEL-7].
        let has_key = order.key.is_some();
        let on_disconnect = if has_key { OnDisconnect::Detach } else { spec.on_disconnect };
        let request = order.request(&spec, who.scope().clone());
        follow(desk.engine(), request, wait, on_disconnect, who).await
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
        let known = || respelled(&refused.error, Spelling::Uuid, "log_id");
        let error = self.owned_elsewhere(&refused.error).or_else(known);
        let error = error.unwrap_or_else(|| refused.error.clone());
        let error = operation::Failed::of(&words::of_bridge(error, &*self.bridge));
        let said = |mark: &Mark| {
            let fence = error.is_quoting.then_some(mark);
            Answer::json(&Said {
                status: "error",
                message: error.message(),
                error_info: error.info(mark, self.bridge.whose()).told(guarantee),
                untrusted_begins: fence.map(|mark| mark.begins(self.bridge.whose())),
                error: &error.full.message,
                untrusted_ends: fence.map(Mark::ends),
            })
        };
        desk.fence(said).into_failure()
    }

    /// A store that belongs to another process means that what the bridge leads to does, too.
    fn owned_elsewhere(&self, error: &Error) -> Option<Error> {
        #[derive(Deserialize)]
        struct Owner {
            owner_pid: u32,
        }
        let Owner { owner_pid } = error.details.as_ref()?.read().ok()?;
        Some(self.bridge.owned_elsewhere(owner_pid))
    }
}

/// What a tool of the surface works with.
#[derive(Clone, Copy)]
struct Context<'a> {
    desk: &'a Desk,
    bridge: &'a dyn Bridge,
}

#[async_trait]
impl Surface for Operations {
    fn tools(&self, engine: &[ToolSpec]) -> Vec<Shown> {
        let of_bridge = engine.iter().map(|spec| {
            let meta = manner::described(spec, self.bridge.manner(spec.name.as_str()));
            Shown { schema: order::schema(spec), meta, ..Shown::of(spec) }
        });
        let own = Tool::ALL.iter().map(|tool| tool.definition().shown(tool.name()));
        let is_entry =
            |name: &str| name == Tool::Result.name() || self.bridge.entries().contains(&name);
        let loaded = |shown: Shown| match is_entry(&shown.name) {
            true => shown.always_loaded(),
            false => shown,
        };
        own.chain(of_bridge).map(loaded).collect()
    }

    fn aliases(&self) -> Vec<&'static str> {
        self.bridge.aliases().iter().map(|(alias, _)| *alias).collect()
    }

    fn practices(&self, durability: Durability) -> String {
        practices::text(durability, self.bridge.whose())
    }

    async fn call(&self, desk: &Desk, call: Call, who: &mut Caller) -> Result<Told, Refused> {
        let Some(tool) = Tool::find(&call.tool) else {
            let tool = self.own_name(&call.tool);
            return Ok(self.order(desk, tool, &call.arguments, who).await?);
        };
        who.begins_nothing();
        let context = Context { desk, bridge: &*self.bridge };
        let arguments = &call.arguments;
        let read = match tool {
            Tool::Result => reads::result(&context, arguments, who).await,
            Tool::Status => reads::status(&context, arguments, who).await,
            Tool::List => list::call(desk, arguments, who).await,
            Tool::Cancel => {
                let asked = cancel::call(desk, arguments, who).await;
                return asked.map(Told::Said).map_err(Refused::change);
            }
        };
        read.map(Told::Said).map_err(Refused::read)
    }

    /// Marks and escapes of others act on nobody [SEC-10].
    fn write(&self, desk: &Desk, told: Told, who: &Caller) -> Answer {
        let bridge = &*self.bridge;
        let waited = who.effective_wait();
        let answer = match told {
            Told::Live(view) | Told::Ended(view) => {
                let context = Context { desk, bridge };
                operation::answer(&context, &view, To::Submitter(waited.unwrap_or_default()), who)
            }
            Told::Memory(Outcome::Succeeded(contents)) | Told::Result(contents) => {
                desk.fence(|mark| operation::of_memory(&contents, waited, mark, bridge.whose()))
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
        self.bridge.whose()
    }
}

/// One of the four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    /// Reads how an operation ended.
    Result,
    /// Tells where one stands.
    Status,
    /// Ends one early.
    Cancel,
    /// Finds operations.
    List,
}

/// The hints of a tool that only reads what the engine knows.
const READS: Hints =
    Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

impl Tool {
    /// All of them, in the order of the list.
    const ALL: &'static [Self] = &[Self::Result, Self::Status, Self::Cancel, Self::List];

    /// Returns the name callers use.
    const fn name(self) -> &'static str {
        match self {
            Self::Result => "get_operation_result",
            Self::Status => "get_operation_status",
            Self::Cancel => "cancel_operation",
            Self::List => "list_operations",
        }
    }

    /// Finds the tool a name stands for.
    fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.name() == name)
    }

    /// Returns what the list says of it.
    const fn definition(self) -> Definition {
        match self {
            Self::Result => reads::RESULT,
            Self::Status => reads::STATUS,
            Self::Cancel => cancel::DEFINITION,
            Self::List => list::DEFINITION,
        }
    }
}

fn no_tool(name: &str) -> Error {
    let name = text::escape(text::clip(name, 100)).into_owned();
    Error::new(Kind::UnknownTool, format!("this server has no tool `{name}`"))
}

/// An id as its caller wrote it, and the operation that it may stand for.
struct LogId {
    written: String,
    id: Option<TaskId>,
}

impl LogId {
    /// Takes `log_id` in any spelling; whatever is no id is nobody's operation [ID-1, SCOPE-2].
    fn take(fields: &mut Fields) -> Result<Self, Error> {
        let text = fields.required::<String>("log_id")?;
        let written = text::clip(&text, 100).to_owned();
        Ok(Self { written, id: text.parse().ok() })
    }

    /// Answers that nothing of the caller's has this id.
    fn unknown(&self) -> Answer {
        let error = Error::new(Kind::NotFound, "no operation of yours has this log_id");
        operation::absent(&self.written, &error, None)
    }
}
