//! `list_operations`.

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::ids::Spelling;
use raincheck_core::lifecycle::State;
use raincheck_core::store::{Cursor, Filter};
use raincheck_core::task::TaskRecord;
use raincheck_core::time::Timestamp;
use serde::Serialize;

use super::operation::Queue;
use super::{READS, words};
use crate::answer::Answer;
use crate::caller::Caller;
use crate::surface::{Definition, Desk};
use crate::wire::{Binding, Fields, Whole, list};

pub(super) const DEFINITION: Definition = Definition {
    title: "List operations",
    description: "Lists your operations, the newest first, with their status and log_id. states filters by \
                  words such as running, completed, error, queued, timeout, cancelled. next_cursor is absent \
                  at the end.",
    schema: r#"{"type":"object","properties":{"states":{"type":"array","items":{"type":"string"},"minItems":1},"limit":{"type":"integer","minimum":1,"maximum":200,"default":50},"cursor":{"type":"string"}},"additionalProperties":false}"#,
    hints: READS,
};

const DEFAULT: u32 = 50;

const MOST: u32 = 200;

/// A part of a list.
#[derive(Serialize)]
struct Part<'a> {
    operations: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize)]
struct Row<'a> {
    log_id: String,
    tool_name: &'a str,
    status: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<Queue<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancel_requested: bool,
    submitted_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

pub(super) async fn call(desk: &Desk, arguments: &Json, who: &Caller) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["states", "limit", "cursor"])?;
    let filter = Filter { states: states(&mut fields)?, ..Filter::default() };
    let limit = limit(&mut fields)?;
    let binding = Binding::Tasks(who.scope());
    let before = match fields.optional::<String>("cursor")? {
        Some(cursor) => Some(Cursor(binding.read(&cursor)?)),
        None => None,
    };
    who.leave().await?;
    let page = desk.engine().list(who.scope(), &filter, before, limit).await?;
    let last = page.items.last().filter(|_| page.has_more);
    Ok(Answer::json(&Part {
        operations: page.items.iter().map(row).collect(),
        next_cursor: last.map(|record| binding.write(record.seq)),
    }))
}

/// Takes the states to list; none named lists all, and an empty list is refused.
fn states(fields: &mut Fields) -> Result<Vec<State>, Error> {
    let Some(named) = fields.optional::<Vec<String>>("states")? else { return Ok(Vec::new()) };
    if named.is_empty() {
        return Err(fields.wrong("states", "must name at least one; leave it out for all"));
    }
    let mut states = Vec::new();
    for word in &named {
        let found = words::states(word);
        if found.is_empty() {
            return Err(fields.wrong("states", &format!("may hold {}", list(words::FILTERS))));
        }
        states.extend(found);
    }
    Ok(states)
}

fn limit(fields: &mut Fields) -> Result<u32, Error> {
    let Some(Whole(limit)) = fields.optional::<Whole>("limit")? else { return Ok(DEFAULT) };
    u32::try_from(limit)
        .ok()
        .filter(|limit| (1..=MOST).contains(limit))
        .ok_or_else(|| fields.wrong("limit", &format!("must be between 1 and {MOST}")))
}

fn row(record: &TaskRecord) -> Row<'_> {
    Row {
        log_id: record.id().spell(Spelling::Uuid),
        tool_name: record.task.tool.as_str(),
        status: words::status(record.state),
        state: words::job(record.state),
        code: record.failure.map(|kind| words::code(&Error::new(kind, ""))),
        queue: Queue::of(record, None),
        cancel_requested: record.cancel.is_some(),
        submitted_at: record.task.submitted_at,
        started_at: record.started_at,
        completed_at: record.ended_at,
        expires_at: record.expires_at(),
    }
}
