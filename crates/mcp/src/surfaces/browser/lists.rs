//! `observe pending_commands` and `observe failed_commands`.

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::Spelling;
use raincheck_core::lifecycle::State;
use raincheck_core::store::{Cursor, Filter, Page};
use raincheck_core::task::{TaskRecord, WaitReason};
use raincheck_core::text;
use raincheck_core::time::Timestamp;
use serde::Serialize;

use super::Context;
use super::PAGE;
use super::words::{self, To};
use crate::answer::{self, Answer, Begins, Mark};
use crate::caller::Caller;
use crate::wire::{Binding, Fields, Whole};

/// How many failures are shown at the most.
const MOST_FAILED: usize = 100;

/// How many rows one step of a search reads.
const STEP: u32 = 200;

/// How many steps a search takes at the most.
const STEPS: u32 = 25;

const ENDED: &[State] = &[State::Succeeded, State::Failed, State::TimedOut, State::Cancelled];

const FAILED: &[State] = &[State::Failed, State::TimedOut, State::Expired];

/// All commands of a caller.
#[derive(Serialize)]
struct Commands<'a> {
    pending: Vec<Pending<'a>>,
    completed: Vec<Completed<'a>>,
    failed: Vec<Failed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize)]
struct Pending<'a> {
    correlation_id: String,
    created_at: Timestamp,
    command: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_reason: Option<&'a str>,
}

#[derive(Serialize)]
struct Completed<'a> {
    correlation_id: String,
    completed_at: Option<Timestamp>,
    duration_ms: u64,
    command: &'a str,
}

#[derive(Serialize)]
struct Failed<'a> {
    correlation_id: String,
    error: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expired_at: Option<Timestamp>,
    hint: String,
    command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted_begins: Option<Begins<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted_ends: Option<&'a str>,
}

pub(super) async fn pending(
    context: &Context<'_>,
    arguments: &Json,
    who: &Caller,
) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["what", "filter", "cursor", "limit"])?;
    let filter = fields.optional::<String>("filter")?;
    let limit = limit(&mut fields)?;
    let binding = Binding::Tasks(who.scope());
    let before = match fields.optional::<String>("cursor")? {
        Some(cursor) => Some(Cursor(binding.read(&cursor)?)),
        None => None,
    };
    who.leave().await?;
    let live = match before {
        // Whatever still runs stands on the first page.
        None => all(context, who, &super::live()).await?,
        Some(_) => Vec::new(),
    };
    let wanted = Filter { states: ENDED.to_vec(), ..Filter::default() };
    let page: Page<TaskRecord> =
        context.desk.engine().list(who.scope(), &wanted, before, limit).await?;
    let next_cursor =
        page.items.last().filter(|_| page.has_more).map(|record| binding.write(record.seq));
    let fits = |record: &&TaskRecord| filter.as_deref().is_none_or(|needle| has(record, needle));
    let ended = || page.items.iter().filter(fits);
    Ok(Answer::json(&Commands {
        pending: live.iter().filter(fits).map(shown_pending).collect(),
        completed: ended()
            .filter(|record| record.state == State::Succeeded)
            .map(shown_completed)
            .collect(),
        failed: ended()
            .filter(|record| record.state != State::Succeeded)
            .map(shown_failed)
            .collect(),
        next_cursor,
    }))
}

/// Lists what failed, what was not read in time and what never ran in time, the newest first.
pub(super) async fn failed(
    context: &Context<'_>,
    arguments: &Json,
    who: &Caller,
) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, &["what", "filter", "limit"])?;
    let filter = fields.optional::<String>("filter")?;
    let limit = usize::try_from(limit(&mut fields)?).unwrap_or(MOST_FAILED).min(MOST_FAILED);
    who.leave().await?;
    let mut rows = all(context, who, FAILED).await?;
    rows.retain(|record| record.state != State::Expired || was_missed(context, record));
    rows.retain(|record| filter.as_deref().is_none_or(|needle| has(record, needle)));
    rows.sort_by_key(|record| std::cmp::Reverse((instant(record), record.seq)));
    rows.truncate(limit);
    let mut words = Vec::with_capacity(rows.len());
    for record in &rows {
        // One that was forgotten meanwhile has no words any more.
        let view = context.desk.engine().view(who.scope(), record.id()).await.ok();
        let error = view.as_ref().and_then(super::command::failure);
        words.push(error.as_ref().map(Words::of));
    }
    let each = || rows.iter().zip(&words);
    let write = |mark: &Mark| {
        let failed: Vec<_> = each().map(|(row, words)| told(row, words.as_ref(), mark)).collect();
        Answer::json(&failed).listed_as("failed")
    };
    Ok(context.desk.fence(write))
}

/// Tells whether a result expired unread. A failure was listed until it expired.
fn was_missed(context: &Context<'_>, record: &TaskRecord) -> bool {
    let had_result = record.failure.is_none() && record.cancel.is_none();
    had_result && !context.surface.readings.has(record.id())
}

fn instant(record: &TaskRecord) -> Timestamp {
    if record.state == State::Expired {
        record.updated_at
    } else {
        record.ended_at.unwrap_or(record.updated_at)
    }
}

async fn all(
    context: &Context<'_>,
    who: &Caller,
    states: &[State],
) -> Result<Vec<TaskRecord>, Error> {
    let filter = Filter { states: states.to_vec(), ..Filter::default() };
    let (mut rows, mut before) = (Vec::new(), None);
    for _ in 0..STEPS {
        let page = context.desk.engine().list(who.scope(), &filter, before, STEP).await?;
        before = page.items.last().map(|record| Cursor(record.seq));
        rows.extend(page.items);
        if !page.has_more {
            break;
        }
    }
    Ok(rows)
}

fn limit(fields: &mut Fields) -> Result<u32, Error> {
    let Some(Whole(limit)) = fields.optional::<Whole>("limit")? else { return Ok(100) };
    u32::try_from(limit)
        .ok()
        .filter(|limit| (1..=200).contains(limit))
        .ok_or_else(|| fields.wrong("limit", "must be between 1 and 200"))
}

fn has(record: &TaskRecord, needle: &str) -> bool {
    let needle = needle.to_lowercase();
    command(record).contains(&needle) || id(record).contains(&needle)
}

fn id(record: &TaskRecord) -> String {
    record.id().spell(Spelling::Correlation)
}

/// What a command does: it is noted when it is made.
fn command(record: &TaskRecord) -> &str {
    record.task.tags.first().map_or(record.task.tool.as_str(), |tag| tag)
}

fn shown_pending(record: &TaskRecord) -> Pending<'_> {
    Pending {
        correlation_id: id(record),
        created_at: record.task.submitted_at,
        command: command(record),
        status: words::word(record.state, To::Submitter),
        waiting_reason: record.waiting.as_ref().map(WaitReason::as_str),
    }
}

fn shown_completed(record: &TaskRecord) -> Completed<'_> {
    let ended = record.ended_at.unwrap_or(record.updated_at);
    let span = ended.since(record.started_at.unwrap_or(record.task.submitted_at));
    Completed {
        correlation_id: id(record),
        completed_at: record.ended_at,
        duration_ms: u64::try_from(span.as_millis()).unwrap_or(u64::MAX),
        command: command(record),
    }
}

/// What was said about a failure.
struct Words {
    message: String,
    is_quoting: bool,
}

impl Words {
    fn of(error: &Error) -> Self {
        let message = text::clip(&answer::shown(error).message, 500).to_owned();
        Self { message, is_quoting: error.quoted.is_some() }
    }
}

/// Shows a failure with what was said about it; the page's words stand inside a fence.
fn told<'a>(record: &'a TaskRecord, words: Option<&'a Words>, mark: &'a Mark) -> Failed<'a> {
    let mut shown = shown_failed(record);
    if let Some(words) = words {
        if words.is_quoting {
            shown.untrusted_begins = Some(mark.begins(PAGE));
            shown.untrusted_ends = Some(mark.ends());
        }
        shown.message = Some(&words.message);
    }
    shown
}

fn shown_failed(record: &TaskRecord) -> Failed<'_> {
    let is_expired = record.state == State::Expired;
    let kind = if is_expired { Kind::Expired } else { record.failure.unwrap_or(Kind::Cancelled) };
    let hint = if is_expired {
        let kept = record.task.limits.retention.as_secs();
        format!("its result was not read within {kept} s; run it again if you still need it")
    } else {
        words::hint(&Error::new(kind, ""))
    };
    Failed {
        correlation_id: id(record),
        error: words::code(kind),
        failed_at: record.ended_at.filter(|_| !is_expired),
        expired_at: is_expired.then_some(record.updated_at),
        hint,
        command: command(record),
        untrusted_begins: None,
        message: None,
        untrusted_ends: None,
    }
}
