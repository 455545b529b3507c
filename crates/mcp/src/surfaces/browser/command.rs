//! A command as it is told: where it stands, or how it ended.

use std::borrow::Cow;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::Spelling;
use raincheck_core::lifecycle::State;
use raincheck_core::progress::Progress;
use raincheck_core::reply::Reply;
use raincheck_core::task::{Outcome, TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;
use raincheck_runtime::View;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::PAGE;
use super::words::{self, To};
use crate::answer::{Answer, Begins, Block, Failure, Mark, Parts, own, shown, shown_progress};
use crate::call::{cancelled, poll_after_ms};

/// A command. What came from a page stands between two marks that no page can know.
#[derive(Serialize)]
struct Command<'a> {
    status: &'static str,
    correlation_id: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancel_requested: bool,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expired_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reload_ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_info: Option<Failure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tab_id: Option<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_tab_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_origin: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted_begins: Option<Begins<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_result: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    late_result: Option<Late<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted_ends: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Next>,
}

/// What came after the end [LEASE-7].
#[derive(Serialize)]
struct Late<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The call to make next.
#[derive(Serialize)]
struct Next {
    tool: &'static str,
    arguments: Arguments,
}

#[derive(Serialize)]
struct Arguments {
    what: &'static str,
    correlation_id: String,
    wait_ms: u64,
}

/// A command as it is seen now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) view: &'a View,
    /// The tab that its lane is for.
    pub(super) tab: Option<i64>,
    /// When what it left at work was ended for good.
    pub(super) over: Option<Timestamp>,
}

/// Answers with where a command stands. Reading one that failed is no failure.
pub(super) fn answer(seen: Seen<'_>, now: Timestamp, to: To, mark: &Mark) -> Answer {
    let Seen { view, tab: lane_tab, over } = seen;
    let record = &view.record;
    let error = failure(view);
    let error = error.map(|error| if over.is_some() { error.with_hint(LOOK) } else { error });
    let place = error.as_ref().map(Place::of).unwrap_or_default();
    let error = error.map(|error| Told::of(&error));
    let (reply, blocks) = reply(view.payload.as_ref().and_then(|it| it.outcome.as_ref()));
    let late = view.payload.as_ref().and_then(|payload| payload.late.as_ref());
    let late = late.map(|late| shown_late(late, record));
    let is_live = !record.state.is_terminal();
    // What was done of one that did not come to its end is all that there is of it.
    let is_unfinished = record.state != State::Succeeded;
    let progress = view.progress.as_ref().filter(|_| is_live).map(shown_progress);
    let has_content = reply.result.is_some()
        || reply.title.is_some()
        || late.is_some()
        || progress.is_some()
        || (is_unfinished && view.partial.is_some())
        || error.as_ref().is_some_and(|error| error.is_quoting);
    let (fence, mark) = (mark, has_content.then_some(mark));
    let ended = |states: &[State]| record.ended_at.filter(|_| states.contains(&record.state));
    let correlation_id = record.id().spell(Spelling::Correlation);
    let tab = reply.target.or(place.tab_id);
    let found = tab.filter(|_| reply.is_found || place.is_found);
    let command = Command {
        status: words::word(record.state, to),
        message: message(seen, error.as_ref().map(|error| &error.own), found),
        waiting_reason: record.waiting.as_ref().map(WaitReason::as_str),
        position: view.position,
        cancel_requested: record.cancel.is_some(),
        created_at: record.task.submitted_at,
        completed_at: ended(&[State::Succeeded, State::Cancelled]),
        failed_at: ended(&[State::Failed, State::TimedOut]),
        expired_at: (record.state == State::Expired).then_some(record.updated_at),
        reload_ended_at: over,
        duration_ms: duration_ms(record),
        error_info: error.as_ref().map(|error| error.info(fence)),
        engine: reply.engine.as_deref(),
        tab_id: tab.or(lane_tab),
        truncated: reply.truncated,
        origin: reply.origin.clone().or_else(|| place.origin.map(Cow::Owned)),
        opened_tab_id: reply.opened.as_ref().map(|opened| opened.target),
        opened_origin: reply.opened.as_ref().and_then(|opened| opened.origin.as_deref()),
        untrusted_begins: mark.map(|mark| mark.begins(PAGE)),
        title: reply.title.as_deref(),
        error: error.as_ref().map(|error| &*error.full.message),
        progress,
        result: reply.result,
        partial_result: view.partial.as_ref().filter(|_| is_unfinished),
        late_result: late,
        untrusted_ends: mark.map(Mark::ends),
        timeout_ms: record.task.limits.run_timeout.filter(|_| is_live).map(millis),
        timeout_at: record.timeout_at(),
        expires_at: record.expires_at(),
        poll_after_ms: is_live.then(|| poll_after_ms(record, now)),
        next: is_live.then(|| Next {
            tool: "observe",
            arguments: Arguments {
                what: "command_result",
                correlation_id: correlation_id.clone(),
                wait_ms: 10_000,
            },
        }),
        correlation_id,
    };
    let answer = Answer::json(&command).with_beside(blocks).of_task(record, Spelling::Correlation);
    let is_failure = to == To::Submitter && error.is_some() && record.state != State::Expired;
    if is_failure { answer.into_failure() } else { answer }
}

/// What is said first of a command that a reload ended after it was told that it may go on.
const OVER: &str = "It has come to its end since: cancel with reload loaded its page anew, or found it gone. \
                    When the command ended that was not so: ";

/// What is left to do then.
const LOOK: &str = "look at the page for what it did before you run it again";

/// Where a failure came about, as the bridge says in its details.
#[derive(Debug, Default, Deserialize)]
struct Place {
    tab_id: Option<i64>,
    origin: Option<String>,
    #[serde(default)]
    is_found: bool,
}

impl Place {
    fn of(error: &Error) -> Self {
        error.details.as_ref().and_then(|details| details.read().ok()).unwrap_or_default()
    }
}

/// Returns the tab that a command was done in, as far as its end says.
pub(super) fn tab_of(view: &View) -> Option<i64> {
    let (reply, _) = reply(view.payload.as_ref().and_then(|it| it.outcome.as_ref()));
    reply.target.or_else(|| Place::of(&failure(view)?).tab_id)
}

/// Returns what a command failed with, if it did.
pub(super) fn failure(view: &View) -> Option<Error> {
    let record = &view.record;
    let outcome = view.payload.as_ref().and_then(|payload| payload.outcome.as_ref());
    match (record.state, outcome) {
        (State::Expired, _) => {
            let kept = record.task.limits.retention.as_secs();
            Some(Error::new(Kind::Expired, format!("its result was kept for {kept} s and is gone")))
        }
        (_, Some(Outcome::Failed(error))) => Some(error.clone()),
        (State::Cancelled, _) => Some(cancelled(Some(record))),
        _ => None,
    }
}

/// An error as it is told: safe to show, and with a next step for the users of browsers.
pub(super) struct Told {
    /// In our own words alone.
    pub(super) own: Error,
    /// With what the page said about it, for inside of a fence.
    pub(super) full: Error,
    /// Whether the two differ.
    pub(super) is_quoting: bool,
}

impl Told {
    pub(super) fn of(error: &Error) -> Self {
        let is_quoting = error.quoted.is_some();
        let error = error.clone().with_hint(words::hint(error));
        Self { own: own(&error), full: shown(&error), is_quoting }
    }

    /// Returns the error object; the page's words stand inside a fence of their own.
    pub(super) fn info<'a>(&'a self, mark: &'a Mark) -> Failure<'a> {
        let failure = if self.is_quoting {
            Failure::of_tool(&self.full, mark, PAGE)
        } else {
            Failure::ours(&self.own)
        };
        failure.spelled(words::code(self.own.kind))
    }
}

/// Reads the reply of a browser from a result, and the blocks that go beside it.
fn reply(outcome: Option<&Outcome>) -> (Reply<'_>, Vec<Block>) {
    let Some(Outcome::Succeeded(contents)) = outcome else { return Default::default() };
    let json = contents.iter().find_map(|content| match content {
        Content::Json(json) => Some(json),
        Content::Text(_) | Content::Binary { .. } | Content::Verbatim(_) => None,
    });
    let reply = json.and_then(|json| json.read().ok()).unwrap_or_default();
    (reply, Parts::of(contents).take_blocks())
}

fn shown_late<'a>(late: &'a Outcome, record: &TaskRecord) -> Late<'a> {
    let (status, error) = match late {
        Outcome::Succeeded(_) => (State::Succeeded, None),
        Outcome::Failed(error) if error.kind == Kind::RunTimeout => {
            (State::TimedOut, Some(error.clone()))
        }
        Outcome::Failed(error) => (State::Failed, Some(error.clone())),
        Outcome::Cancelled => (State::Cancelled, Some(cancelled(Some(record)))),
    };
    Late {
        status: words::word(status, To::Reader),
        result: reply(Some(late)).0.result,
        error: error.map(|error| shown(&error).message.to_string()),
    }
}

fn duration_ms(record: &TaskRecord) -> Option<u64> {
    let ended = record.ended_at?;
    Some(millis(ended.since(record.started_at.unwrap_or(record.task.submitted_at))))
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Says in words where a command stands and what to do next.
fn message(seen: Seen<'_>, error: Option<&Error>, found: Option<i64>) -> String {
    let mut said = words_of(seen.view, error);
    if seen.over.is_some() {
        said.insert_str(0, OVER);
    }
    let Some(tab) = found else { return said };
    format!(
        "{said} It was given no tab and had none yet: it took the one in front, tab {tab}, and what comes \
         without tab_id goes there from now on."
    )
}

fn words_of(view: &View, error: Option<&Error>) -> String {
    let record = &view.record;
    let next = "Keep the correlation_id and go on; read the end with observe command_result \
                (wait_ms sleeps until it comes).";
    match (record.state, error) {
        (State::Waiting, _) if record.waiting == Some(words::WAITING_FOR_BROWSER) => {
            let limit = record.task.limits.ready.as_millis();
            format!(
                "No browser is connected (waiting_for_browser): the command fails unless one comes within \
                 {limit} ms of its submit; observe health says what to do. {next}"
            )
        }
        (State::Waiting, _) => {
            let why = record.waiting.as_ref().map_or("not ready", WaitReason::as_str);
            format!("The command waits: {why}. {next}")
        }
        (State::Queued, _) => {
            let line = match view.position.unwrap_or_default() {
                0 => "it is next in its tab".to_owned(),
                1 => "1 runs before it in its tab".to_owned(),
                n => format!("{n} run before it in its tab"),
            };
            format!("The command is in line; {line}. {next}")
        }
        (State::Scheduled, _) => format!("The command goes to the extension next. {next}"),
        (State::CancelRequested | State::Cancelling, _) => {
            format!("The command was asked to stop and has not ended yet. {next}")
        }
        (State::Running | State::InputRequired, _) => {
            format!("The command still runs in the browser. {next}")
        }
        (State::Succeeded, _) => "The command is complete.".to_owned(),
        (_, Some(error)) => format!("{}. {}", error.message, words::hint(error)),
        (_, None) => "The command has ended.".to_owned(),
    }
}
