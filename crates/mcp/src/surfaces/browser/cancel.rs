//! `cancel`.

use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::{Spelling, TaskId};
use raincheck_core::lifecycle::State;
use raincheck_core::store::Filter;
use raincheck_core::task::TaskRecord;
use raincheck_core::text;
use raincheck_core::time::Timestamp;
use raincheck_core::tool::Hints;
use raincheck_runtime::{Request, Submission, View};
use serde::Serialize;
use serde_json::Value;

use super::Context;
use super::words::{self, To};
use super::{command, live, parse_id, unknown};
use crate::answer::Answer;
use crate::call::may_go_on;
use crate::caller::Caller;
use crate::surface::Definition;
use crate::wire::{Argument, Fields, Whole};

pub(super) const DEFINITION: Definition = Definition {
    title: "Cancel commands",
    description: "Asks a command to end early, or with all: true each of yours (of tab_id, if given). One \
                  in the queue is cancelled at once; a running script is stopped and its tab lives on \
                  (cancel_requested until then); one that awaits may go on, which is told: reload: true ends it. \
                  acknowledged is false when it had already ended.",
    schema: r#"{"type":"object","properties":{"correlation_id":{"type":"string"},"all":{"type":"boolean"},"tab_id":{"type":"integer"},"reload":{"type":"boolean","description":"Loads its page anew where it may go on"},"reason":{"type":"string"}},"additionalProperties":false}"#,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
};

/// What ends in its browser what a command may have left at work.
const END: &str = "end_script";

/// How long a command has to stop before it is known that it does not.
const STOPPING: Duration = Duration::from_secs(10);

/// How long its page has to be loaded anew before the answer says that it is under way.
const ENDING: Duration = Duration::from_secs(20);

/// The longest reason that is kept, in bytes.
const MAX_REASON: usize = 1000;

/// How many commands are looked through in one step of `all`.
const STEP: u32 = 200;

/// What became of the request.
#[derive(Serialize)]
struct One {
    status: &'static str,
    correlation_id: String,
    acknowledged: bool,
    message: &'static str,
}

#[derive(Serialize)]
struct All {
    commands: Vec<One>,
    /// How many were given by other connections of the owner, and go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_to_others: Option<usize>,
    acknowledged: bool,
    message: String,
}

/// `true` or `false`.
struct Flag(bool);

impl Argument for Flag {
    const EXPECTED: &'static str = "true or false";

    fn of(value: Value) -> Option<Self> {
        value.as_bool().map(Self)
    }
}

pub(super) async fn call(
    context: &Context<'_>,
    arguments: &Json,
    who: &Caller,
) -> Result<Answer, Error> {
    let mut fields =
        Fields::read(arguments, &["correlation_id", "all", "tab_id", "reload", "reason"])?;
    let reason: Option<Arc<str>> = fields
        .optional::<String>("reason")?
        .map(|words| text::escape_lines(text::clip(&words, MAX_REASON)).into());
    let id = fields.optional::<String>("correlation_id")?;
    let tab = fields.optional::<Whole>("tab_id")?.map(|Whole(tab)| tab);
    let all = fields.optional::<Flag>("all")?.is_some_and(|Flag(all)| all);
    let reload = fields.optional::<Flag>("reload")?.is_some_and(|Flag(reload)| reload);
    if reload && (all || tab.is_some()) {
        return Err(fields.wrong("reload", "goes with `correlation_id`"));
    }
    match (id, all) {
        (Some(id), false) if reload => for_good(context, who, parse_id(&id)?, reason).await,
        (Some(id), false) if tab.is_none() => one(context, who, parse_id(&id)?, reason).await,
        (Some(_), false) => {
            Err(fields.wrong("tab_id", "goes with `all`, not with `correlation_id`"))
        }
        (None, true) => every(context, who, tab, reason).await,
        (Some(_), true) => {
            Err(fields.wrong("all", "stands beside `correlation_id`; keep one of the two"))
        }
        (None, false) => Err(fields.wrong("correlation_id", "is missing; give it, or `all`: true")),
    }
}

async fn one(
    context: &Context<'_>,
    who: &Caller,
    id: TaskId,
    reason: Option<Arc<str>>,
) -> Result<Answer, Error> {
    let asked = context.desk.engine().cancel(who.scope(), id, reason).await;
    let asked = asked.map_err(|e| if e.kind == Kind::NotFound { unknown() } else { e })?;
    Ok(Answer::json(&told(&asked.record, asked.acknowledged)))
}

/// Ends a command, and what it may have left at work in its page [BROWSER-23].
async fn for_good(
    context: &Context<'_>,
    who: &Caller,
    id: TaskId,
    reason: Option<Arc<str>>,
) -> Result<Answer, Error> {
    let engine = context.desk.engine();
    let known = |error: Error| if error.kind == Kind::NotFound { unknown() } else { error };
    let asked = engine.cancel(who.scope(), id, reason).await.map_err(known)?;
    let view = engine.wait_end(who.scope(), id, who.wait(STOPPING)).await.map_err(known)?;
    if !is_left(&view) {
        return Ok(Answer::json(&told(&view.record, asked.acknowledged)));
    }
    let lane_tab = context.surface.bridge.tab_of(&view.record.task.lane);
    let tab_id = command::tab_of(&view).or(lane_tab);
    let of = id.spell(Spelling::Correlation);
    let inputs = Json::of(&Ending { what: END, of: &of, tab_id })
        .map_err(|error| Error::new(Kind::InvalidRequest, error.to_string()))?;
    let mut request = Request::new(END, inputs, who.scope().clone());
    request.tags = vec![Arc::from(END), Arc::from(of.as_str())];
    who.sign(&mut request);
    let submitted = engine.submit(request).await?;
    let Submission::Task(accepted) = submitted else { return Err(unknown()) };
    let view = engine.wait_accepted(accepted, who.wait(ENDING)).await?;
    if let Some(error) = command::failure(&view) {
        return Err(error);
    }
    let (status, message) = if view.record.state.is_terminal() {
        ("cancelled", "it has ended: its page is loaded anew, or was gone already")
    } else {
        ("cancel_requested", "its page is being loaded anew; call again to hear that it has ended")
    };
    Ok(Answer::json(&One { status, correlation_id: of, acknowledged: true, message }))
}

/// Returns when what a command had left at work was ended for good, if that was asked for and is done.
pub(super) async fn ended_for_good(
    context: &Context<'_>,
    who: &Caller,
    view: &View,
) -> Option<Timestamp> {
    if !is_left(view) {
        return None;
    }
    let filter = Filter {
        states: vec![State::Succeeded],
        tool: Some(Arc::from(END)),
        tags_any: vec![Arc::from(view.record.id().spell(Spelling::Correlation))],
        ..Filter::default()
    };
    // That it is not known is no reason not to tell the rest.
    let page = context.desk.engine().list(who.scope(), &filter, None, 1).await.ok()?;
    page.items.first()?.ended_at
}

/// Tells whether a command has ended and may have left something at work.
fn is_left(view: &View) -> bool {
    let is_unknown = |error: Error| error.guarantee() == Some(Guarantee::Unknown);
    let has_failed = [State::Failed, State::TimedOut].contains(&view.record.state);
    may_go_on(&view.record) || (has_failed && command::failure(view).is_none_or(is_unknown))
}

/// What is asked of the browser.
#[derive(Serialize)]
struct Ending<'a> {
    what: &'static str,
    of: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tab_id: Option<i64>,
}

async fn every(
    context: &Context<'_>,
    who: &Caller,
    tab: Option<i64>,
    reason: Option<Arc<str>>,
) -> Result<Answer, Error> {
    let engine = context.desk.engine();
    let filter = Filter { states: live(), ..Filter::default() };
    let bridge = &context.surface.bridge;
    let is_others =
        |id: TaskId| bridge.connection_of(id).is_some_and(|of| *of != *who.connection());
    let (mut before, mut commands, mut left_to_others) = (None, Vec::new(), 0_usize);
    loop {
        let page = engine.list(who.scope(), &filter, before, STEP).await?;
        before = page.items.last().map(|record| raincheck_core::store::Cursor(record.seq));
        for record in page
            .items
            .iter()
            .filter(|record| tab.is_none_or(|tab| bridge.tab_of(&record.task.lane) == Some(tab)))
        {
            if is_others(record.id()) {
                left_to_others += 1;
                continue;
            }
            let asked = engine.cancel(who.scope(), record.id(), reason.clone()).await?;
            commands.push(told(&asked.record, asked.acknowledged));
        }
        if !page.has_more {
            break;
        }
    }
    let mut message = match commands.len() {
        1 => "1 command was asked to end".to_owned(),
        n => format!("{n} commands were asked to end"),
    };
    if left_to_others > 0 {
        message.push_str("; what other clients gave goes on: observe pending_commands lists it, and cancel {correlation_id} ends it");
    }
    let acknowledged = !commands.is_empty();
    let left_to_others = (left_to_others > 0).then_some(left_to_others);
    Ok(Answer::json(&All { commands, left_to_others, acknowledged, message }))
}

fn told(record: &TaskRecord, acknowledged: bool) -> One {
    let state = record.state;
    let (status, message) = if state == State::Cancelled {
        ("cancelled", "it never ran, or has been stopped")
    } else if state.is_terminal() {
        (words::word(state, To::Reader), "it had already ended")
    } else {
        ("cancel_requested", "it was told to stop; observe command_result says how it ended")
    };
    One { status, correlation_id: record.id().spell(Spelling::Correlation), acknowledged, message }
}
