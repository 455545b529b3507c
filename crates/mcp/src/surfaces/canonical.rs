//! The canonical surface: the task tools, and every tool of the engine by its name.

mod cancel;
mod direct;
mod handle;
mod input;
mod list;
mod logs;
mod practices;
mod record;
mod result;
mod status;
mod submit;
mod words;

use std::time::Duration;

use async_trait::async_trait;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::ids::TaskId;
use raincheck_core::store::Durability;
use raincheck_core::tool::{Hints, ToolSpec};

pub use self::record::{Listing, Record};

use crate::answer::{Answer, Refused};
use crate::call::Told;
use crate::caller::{Caller, SURFACE_CAP};
use crate::surface::{Call, Definition, Desk, Shown, Surface};
use crate::wire::{Fields, Whole};

/// The contract's own words. Every tool of the engine is called by its name, and seven tools
/// submit, watch, answer, cancel and read tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Canonical;

#[async_trait]
impl Surface for Canonical {
    fn tools(&self, engine: &[ToolSpec]) -> Vec<Shown> {
        let own = Tool::ALL.iter().map(|tool| tool.shown());
        own.chain(engine.iter().map(Shown::of)).collect()
    }

    fn practices(&self, durability: Durability) -> String {
        practices::text(durability)
    }

    async fn call(&self, desk: &Desk, call: Call, who: &mut Caller) -> Result<Told, Refused> {
        match Tool::find(&call.tool) {
            Some(tool) => answer(desk, tool, &call.arguments, who).await.map(Told::Said),
            None => Ok(direct::call(desk, call, who).await?),
        }
    }

    fn write(&self, desk: &Desk, told: Told, who: &Caller) -> Answer {
        direct::write(desk, told, who)
    }

    fn refuse(&self, desk: &Desk, refused: &Refused) -> Answer {
        direct::refuse(desk, refused)
    }
}

/// Who speaks inside of a fence.
const TOOL: &str = "the tool";

/// One of the task tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Begins a task.
    Submit,
    /// Shows where a task stands.
    Status,
    /// Reads a task's log.
    Logs,
    /// Finds tasks.
    List,
    /// Ends a task early.
    Cancel,
    /// Reads how a task ended.
    Result,
    /// Answers what a task asks.
    Input,
}

/// The hints of a tool that only reads what the engine knows.
const READS: Hints =
    Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

impl Tool {
    /// All of them, in the order of the list.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Submit,
        Self::Status,
        Self::Logs,
        Self::List,
        Self::Cancel,
        Self::Result,
        Self::Input,
    ];

    /// Returns the name callers use.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Submit => "submit_task",
            Self::Status => "get_task_status",
            Self::Logs => "tail_task_logs",
            Self::List => "list_tasks",
            Self::Cancel => "cancel_task",
            Self::Result => "get_task_result",
            Self::Input => input::NAME,
        }
    }

    /// Shows it in the list; the three by which work is begun, found again and read are always loaded.
    fn shown(self) -> Shown {
        let shown = self.definition().shown(self.name());
        match self {
            Self::Submit | Self::List | Self::Result => shown.always_loaded(),
            Self::Status | Self::Logs | Self::Cancel | Self::Input => shown,
        }
    }

    /// Finds the tool a name stands for.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.name() == name)
    }

    /// Returns what the list says of it.
    pub(crate) const fn definition(self) -> Definition {
        match self {
            Self::Submit => submit::DEFINITION,
            Self::Status => status::DEFINITION,
            Self::Logs => logs::DEFINITION,
            Self::List => list::DEFINITION,
            Self::Cancel => cancel::DEFINITION,
            Self::Result => result::DEFINITION,
            Self::Input => input::DEFINITION,
        }
    }
}

/// Answers a call of one of the task tools: from memory, beside all lanes [QUEUE-4].
pub(crate) async fn answer(
    desk: &Desk,
    tool: Tool,
    arguments: &Json,
    who: &mut Caller,
) -> Result<Answer, Refused> {
    if tool != Tool::Submit {
        who.begins_nothing();
    }
    let answered = match tool {
        Tool::Submit => return Ok(submit::call(desk, arguments, who).await?),
        Tool::Status => status::call(desk, arguments, who).await,
        Tool::Logs => logs::call(desk, arguments, who).await,
        Tool::List => list::call(desk, arguments, who).await,
        Tool::Cancel => {
            return cancel::call(desk, arguments, who).await.map_err(Refused::change);
        }
        Tool::Input => {
            return input::call(desk, arguments, who).await.map_err(Refused::change);
        }
        Tool::Result => result::call(desk, arguments, who).await,
    };
    answered.map_err(Refused::read)
}

/// Takes `task_id`; whatever is no id is nobody's task [ID-1, SCOPE-2].
fn task_id(fields: &mut Fields) -> Result<TaskId, Error> {
    fields.required::<String>("task_id")?.parse().map_err(|_| Error::not_found())
}

/// Takes `wait_s` and returns what is left of it within the caller's budget [CALL-2].
fn wait(fields: &mut Fields, who: &Caller) -> Result<Duration, Error> {
    let wish = fields.optional::<f64>("wait_s")?.unwrap_or(0.0);
    let wish = Duration::try_from_secs_f64(wish.min(SURFACE_CAP.as_secs_f64()))
        .map_err(|_| fields.wrong("wait_s", "must be a number of seconds, 0 or more"))?;
    Ok(who.wait(wish))
}

/// Takes `limit`, from 1 to `most`.
fn limit(fields: &mut Fields, default: u32, most: u32) -> Result<u32, Error> {
    let Some(Whole(limit)) = fields.optional::<Whole>("limit")? else {
        return Ok(default);
    };
    u32::try_from(limit)
        .ok()
        .filter(|limit| (1..=most).contains(limit))
        .ok_or_else(|| fields.wrong("limit", &format!("must be between 1 and {most}")))
}
