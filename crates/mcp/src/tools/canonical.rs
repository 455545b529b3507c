//! The six canonical tools: submit, look, read logs, list, cancel, read the result.

mod cancel;
mod list;
mod logs;
mod record;
mod result;
mod status;
mod submit;

use std::time::Duration;

use tokio::time::Instant;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::ids::TaskId;
use raincheck_core::progress::Progress;
use raincheck_core::task::TaskRecord;
use raincheck_core::text;
use raincheck_core::time::Timestamp;
use raincheck_core::tool::Hints;

pub use self::record::{Listing, Record};

use crate::answer::Answer;
use crate::arguments::Fields;
use crate::budget::SURFACE_CAP;
use crate::call::Caller;
use crate::server::Facade;

/// One of the six.
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
}

/// What `tools/list` says of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Definition {
    /// A title for people.
    pub(crate) title: &'static str,
    /// What it does, in under 400 characters.
    pub(crate) description: &'static str,
    /// The JSON Schema of its arguments.
    pub(crate) schema: &'static str,
    /// What a client may assume.
    pub(crate) hints: Hints,
}

/// The hints of a tool that only reads what the engine knows.
const READS: Hints =
    Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

impl Tool {
    /// All of them, in the order of the list.
    pub(crate) const ALL: &'static [Self] =
        &[Self::Submit, Self::Status, Self::Logs, Self::List, Self::Cancel, Self::Result];

    /// Returns the name callers use.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Submit => "submit_task",
            Self::Status => "get_task_status",
            Self::Logs => "tail_task_logs",
            Self::List => "list_tasks",
            Self::Cancel => "cancel_task",
            Self::Result => "get_task_result",
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
        }
    }
}

/// Answers a call of one of the six: from memory, beside all lanes [QUEUE-4].
pub(crate) async fn call(
    facade: &Facade,
    tool: Tool,
    arguments: &Json,
    caller: &mut Caller,
) -> Answer {
    answer(facade, tool, arguments, caller).await.unwrap_or_else(|error| Answer::error(&error))
}

/// As [`call`], with a failure as what it is.
pub(crate) async fn answer(
    facade: &Facade,
    tool: Tool,
    arguments: &Json,
    caller: &mut Caller,
) -> Result<Answer, Error> {
    match tool {
        Tool::Submit => submit::call(facade, arguments, caller).await,
        Tool::Status => status::call(facade, arguments, caller).await,
        Tool::Logs => logs::call(facade, arguments, caller).await,
        Tool::List => list::call(facade, arguments, caller).await,
        Tool::Cancel => cancel::call(facade, arguments, caller).await,
        Tool::Result => result::call(facade, arguments, caller).await,
    }
}

/// Takes `task_id`; whatever is no id is nobody's task [ID-1, SCOPE-2].
fn task_id(fields: &mut Fields) -> Result<TaskId, Error> {
    fields.required::<String>("task_id")?.parse().map_err(|_| Error::not_found())
}

/// Takes `wait_s` and returns what is left of it within the caller's budget [CALL-2].
fn wait(fields: &mut Fields, caller: &Caller) -> Result<Duration, Error> {
    let wish = fields.optional::<f64>("wait_s")?.unwrap_or(0.0);
    let wish = Duration::try_from_secs_f64(wish.min(SURFACE_CAP.as_secs_f64()))
        .map_err(|_| fields.wrong("wait_s", "must be a number of seconds, 0 or more"))?;
    Ok(caller.budget.left(wish, Instant::now()))
}

/// Takes `limit`, from 1 to `most`.
fn limit(fields: &mut Fields, default: u32, most: u32) -> Result<u32, Error> {
    use crate::arguments::Whole;

    let Some(Whole(limit)) = fields.optional::<Whole>("limit")? else {
        return Ok(default);
    };
    u32::try_from(limit)
        .ok()
        .filter(|limit| (1..=most).contains(limit))
        .ok_or_else(|| fields.wrong("limit", &format!("must be between 1 and {most}")))
}

/// Returns when to look again: the older the task, the later, from 500 to 5000 ms.
pub(crate) fn poll_after_ms(record: &TaskRecord, now: Timestamp) -> u64 {
    let age = now.since(record.task.submitted_at).as_millis();
    u64::try_from(age / 10).unwrap_or(u64::MAX).clamp(500, 5000)
}

/// Makes a report fit to be shown: what a tool said in it acts on no terminal.
pub(crate) fn shown_progress(progress: &Progress) -> Progress {
    let safe = |words: &Option<String>| words.as_deref().map(|w| text::escape(w).into_owned());
    Progress { phase: safe(&progress.phase), message: safe(&progress.message), ..progress.clone() }
}
