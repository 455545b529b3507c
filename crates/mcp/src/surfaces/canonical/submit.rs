//! `submit_task`.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{LaneId, TaskId};
use raincheck_core::task::Resources;
use raincheck_core::time::Timestamp;
use raincheck_core::tool::Hints;
use raincheck_runtime::{Accepted, Request, Submission};

use super::words;
use crate::answer::Answer;
use crate::call::{known_tool, poll_after_ms, submit};
use crate::caller::Caller;
use crate::surface::{Definition, Desk};
use crate::wire::{Fields, Whole};

pub(super) const DEFINITION: Definition = Definition {
    title: "Submit task",
    description: "Starts a tool in the background and returns a task_id at once. inputs are the tool's \
                  own arguments. Give an idempotency_key to make repeating the call safe: same key and \
                  inputs return the first task. Read the end with get_task_result.",
    schema: r#"{"type":"object","properties":{"tool_name":{"type":"string"},"inputs":{"type":"object"},"resources":{"type":"object","properties":{"resource_class":{"type":"string","description":"lane, such as cpu_small"},"max_runtime_s":{"type":"number","exclusiveMinimum":0},"cpu":{"type":"number","exclusiveMinimum":0},"memory_mb":{"type":"integer","minimum":1},"scratch_mb":{"type":"integer","minimum":1}},"additionalProperties":false},"ttl_s":{"type":"number","exclusiveMinimum":0,"description":"how long the result is kept after the end"},"idempotency_key":{"type":"string","minLength":1,"maxLength":256},"priority":{"type":"integer","minimum":-100,"maximum":100,"default":0},"tags":{"type":"array","items":{"type":"string"},"maxItems":32}},"required":["tool_name","inputs"],"additionalProperties":false}"#,
    hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: true },
};

const KNOWN: &[&str] =
    &["tool_name", "inputs", "resources", "ttl_s", "idempotency_key", "priority", "tags"];

const RESOURCES: &[&str] = &["resource_class", "max_runtime_s", "cpu", "memory_mb", "scratch_mb"];

/// The longest time a caller may ask for, in seconds: a year.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

const MAX_KEY: usize = 256;
const MAX_TAGS: usize = 32;
const MAX_TAG: usize = 256;

/// What was accepted.
#[derive(Serialize)]
struct Submitted<'a> {
    task_id: TaskId,
    state: &'static str,
    queue: &'a LaneId,
    position: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_delay_ms: Option<u64>,
    submitted_at: Timestamp,
    poll_after_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing: Option<bool>,
}

pub(super) async fn call(desk: &Desk, arguments: &Json, who: &Caller) -> Result<Answer, Error> {
    let mut fields = Fields::read(arguments, KNOWN)?;
    let tool = fields.required::<String>("tool_name")?;
    let inputs = fields.value("inputs")?;
    if !inputs.is_object() {
        return Err(fields.wrong("inputs", "must be an object"));
    }
    let mut request = Request::new(tool, raw_inputs(arguments)?, who.scope().clone());
    read_wishes(&mut fields, &mut request)?;
    let engine = desk.engine();
    known_tool(engine, request.tool.as_str(), who).await?;
    if let Some(spec) = engine.spec(request.tool.as_str()) {
        desk.check(&spec, &inputs)?;
    }
    let tool = request.tool.clone();
    match submit(engine, request, who).await? {
        Submission::Task(accepted) => Ok(answer(&accepted, engine.now())),
        Submission::Answer(_) => {
            let message = format!("`{tool}` answers at once and makes no task");
            let hint = format!("call `{tool}` by its own name");
            Err(Error::new(Kind::InvalidParams, message).with_hint(hint))
        }
    }
}

/// Takes the inputs as they were written.
fn raw_inputs(arguments: &Json) -> Result<Json, Error> {
    /// The one member that is passed on as it is.
    #[derive(Deserialize)]
    struct Raw {
        inputs: Json,
    }

    let raw = arguments.read::<Raw>();
    raw.map(|raw| raw.inputs).map_err(|error| Error::new(Kind::InvalidRequest, error.to_string()))
}

/// Reads everything that may be left out.
fn read_wishes(fields: &mut Fields, request: &mut Request) -> Result<(), Error> {
    if let Some(Whole(priority)) = fields.optional::<Whole>("priority")? {
        let within = i8::try_from(priority).ok().filter(|p| (-100..=100).contains(p));
        request.priority =
            Some(within.ok_or_else(|| fields.wrong("priority", "must be between -100 and 100"))?);
    }
    request.ttl = seconds(fields, "ttl_s")?;
    if let Some(key) = fields.optional::<String>("idempotency_key")? {
        if key.is_empty() || key.len() > MAX_KEY {
            let rule = format!("must have between 1 and {MAX_KEY} bytes");
            return Err(fields.wrong("idempotency_key", &rule));
        }
        request.key = Some(key.into());
    }
    let tags = fields.optional::<Vec<String>>("tags")?.unwrap_or_default();
    if tags.len() > MAX_TAGS || tags.iter().any(|tag| tag.is_empty() || tag.len() > MAX_TAG) {
        let rule = format!("may hold {MAX_TAGS} strings of 1 to {MAX_TAG} bytes");
        return Err(fields.wrong("tags", &rule));
    }
    request.tags = tags.into_iter().map(Arc::from).collect();
    let mut wishes = fields.group("resources", "resources.", RESOURCES)?;
    request.lane = wishes.optional::<String>("resource_class")?.map(LaneId::from);
    request.max_runtime = seconds(&mut wishes, "max_runtime_s")?;
    request.resources = Resources {
        cpu_milli: wishes.optional::<f64>("cpu")?.map(|cpu| milli(&wishes, cpu)).transpose()?,
        memory_mb: mib(&mut wishes, "memory_mb")?,
        scratch_mb: mib(&mut wishes, "scratch_mb")?,
    };
    Ok(())
}

fn seconds(fields: &mut Fields, name: &str) -> Result<Option<Duration>, Error> {
    let Some(seconds) = fields.optional::<f64>(name)? else {
        return Ok(None);
    };
    if seconds <= 0.0 || seconds > MAX_SECONDS {
        let rule = format!("must be above 0 and at most {MAX_SECONDS} seconds");
        return Err(fields.wrong(name, &rule));
    }
    Ok(Some(Duration::from_secs_f64(seconds)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to lie between 0 and a million"
)]
fn milli(fields: &Fields, cpu: f64) -> Result<u32, Error> {
    let milli = (cpu * 1000.0).ceil();
    if (1.0..=1e6).contains(&milli) {
        Ok(milli as u32)
    } else {
        Err(fields.wrong("cpu", "must be above 0 and at most 1000 processors"))
    }
}

fn mib(fields: &mut Fields, name: &str) -> Result<Option<u64>, Error> {
    let Some(Whole(mib)) = fields.optional::<Whole>(name)? else {
        return Ok(None);
    };
    let above = u64::try_from(mib).ok().filter(|mib| *mib > 0);
    above.map(Some).ok_or_else(|| fields.wrong(name, "must be 1 or more"))
}

fn answer(accepted: &Accepted, now: Timestamp) -> Answer {
    let record = &accepted.record;
    // A task that began at once stood in no line: nothing runs before it.
    let position = accepted.position.or((!record.state.is_terminal()).then_some(0));
    Answer::json(&Submitted {
        task_id: record.id(),
        state: words::word(record.state),
        queue: &record.task.lane,
        position,
        estimated_delay_ms: accepted.delay.and_then(|delay| u64::try_from(delay.as_millis()).ok()),
        submitted_at: record.task.submitted_at,
        poll_after_ms: poll_after_ms(record, now),
        existing: accepted.existing.then_some(true),
    })
}
