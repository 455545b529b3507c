//! `list_tasks`.

use std::sync::Arc;

use serde::Serialize;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::lifecycle::State;
use raincheck_core::store::{Cursor, Filter};
use raincheck_core::time::Timestamp;

use super::status::Status;
use super::{READS, limit, words};
use crate::answer::Answer;
use crate::caller::Caller;
use crate::surface::{Definition, Desk};
use crate::wire::{Binding, Fields, list};

pub(super) const DEFINITION: Definition = Definition {
    title: "List tasks",
    description: "Lists your tasks, newest first, with their status. Filters: states (such as queued, \
                  running, succeeded, failed), tool_name, tags_any, submitted_after (RFC 3339). \
                  next_cursor is absent at the end.",
    schema: r#"{"type":"object","properties":{"states":{"type":"array","items":{"type":"string"},"minItems":1},"tool_name":{"type":"string"},"tags_any":{"type":"array","items":{"type":"string"},"minItems":1},"submitted_after":{"type":"string","format":"date-time"},"limit":{"type":"integer","minimum":1,"maximum":200,"default":50},"cursor":{"type":"string"}},"additionalProperties":false}"#,
    hints: READS,
};

const KNOWN: &[&str] = &["states", "tool_name", "tags_any", "submitted_after", "limit", "cursor"];

/// A part of a list.
#[derive(Serialize)]
struct Part<'a> {
    tasks: Vec<Status<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) async fn call(desk: &Desk, arguments: &Json, who: &Caller) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, KNOWN)?;
    let filter = filter(&mut fields)?;
    let limit = limit(&mut fields, 50, 200)?;
    let binding = Binding::Tasks(who.scope());
    let before = match fields.optional::<String>("cursor")? {
        Some(cursor) => Some(Cursor(binding.read(&cursor)?)),
        None => None,
    };
    who.leave().await?;
    let page = desk.engine().list(who.scope(), &filter, before, limit).await?;
    let last = page.items.last().filter(|_| page.has_more);
    Ok(Answer::json(&Part {
        tasks: page.items.iter().map(Status::of).collect(),
        next_cursor: last.map(|record| binding.write(record.seq)),
    }))
}

fn filter(fields: &mut Fields) -> Result<Filter, Error> {
    let mut filter = Filter {
        states: states(fields)?,
        tool: fields.optional::<String>("tool_name")?.map(Arc::from),
        ..Filter::default()
    };
    filter.tags_any = choice(fields, "tags_any")?.into_iter().map(Arc::from).collect();
    if let Some(text) = fields.optional::<String>("submitted_after")? {
        let at = Timestamp::parse(&text).ok_or_else(|| {
            fields.wrong("submitted_after", "must be a time like 2026-02-05T12:00:00Z")
        })?;
        filter.submitted_after = Some(at);
    }
    Ok(filter)
}

/// Takes a list of which one has to fit; empty when it is absent. A list that names nothing fits
/// nothing, which nobody asks for: it is refused, and never taken for "all".
fn choice(fields: &mut Fields, name: &str) -> Result<Vec<String>, Error> {
    match fields.optional::<Vec<String>>(name)? {
        Some(words) if words.is_empty() => {
            Err(fields.wrong(name, "must name at least one; leave it out for all"))
        }
        words => Ok(words.unwrap_or_default()),
    }
}

fn states(fields: &mut Fields) -> Result<Vec<State>, Error> {
    let mut states = Vec::new();
    for word in choice(fields, "states")? {
        let found = words::states(&word);
        if found.is_empty() {
            let known: Vec<&str> = words::words().collect();
            return Err(fields.wrong("states", &format!("may hold {}", list(&known))));
        }
        states.extend(found);
    }
    Ok(states)
}
