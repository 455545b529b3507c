//! From an answer that is too large to a handle, or to an honest refusal [CACHE-1, CACHE-2].

use serde::Serialize;
use serde_json::Value;

use raincheck_cache::{BodyKind, New, scan, scan_text};
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee};
use raincheck_core::text;
use raincheck_runtime::Handle;

use crate::answer::{Answer, Shows};
use crate::caller::Caller;
use crate::surface::{Answered, Desk};

use super::{CacheLayer, refusals, stub};

/// The longest arguments that are told with an entry, in bytes.
const MAX_PARAMS: usize = 16 << 10;

/// How much of an answer that is not kept is shown, in bytes.
const FIRST_PART: usize = 4 << 10;

/// Tells whether a text is longer than a client takes, in UTF-16 units: so count most clients, which are
/// written in JavaScript. What is short in bytes is not counted.
pub(super) fn is_oversize(answer: &Answer, limit: usize) -> bool {
    answer.as_text().is_some_and(|text| text.len() > limit && text.encode_utf16().count() > limit)
}

/// Stores an answer and makes the one that stands for it. What stands beside the text stays there.
pub(super) async fn replace(
    layer: &CacheLayer,
    desk: &Desk,
    answer: Answer,
    Answered { call, surface }: Answered<'_>,
    who: &Caller,
    limit: usize,
) -> Answer {
    let is_sensitive = is_sensitive(desk, &call.tool, answer.task());
    let params = params(desk.engine(), &call.tool, &call.arguments);
    let whose = surface.whose();
    let (is_error, task) = (answer.is_error(), answer.task().cloned());
    let (text, mut beside, _) = answer.into_parts();
    let text = text.unwrap_or_default();
    let first = text::clip(&text, FIRST_PART).to_owned();
    let (tool, scope) = (call.tool.clone(), who.scope().clone());
    let made = layer.home().work(desk.engine(), move |cache, now| {
        let (kind, index) = match scan(text.as_bytes()) {
            Ok(index) => (BodyKind::Json, Some(index)),
            Err(_) => (BodyKind::Text, scan_text(text.as_bytes()).ok()),
        };
        let mut new = New::answer(tool, params, text, kind);
        (new.index, new.is_sensitive, new.mark) = (index, is_sensitive, Some(whose.to_owned()));
        let receipt =
            cache.insert(now, scope.as_str(), new).map_err(|error| refusals::store(&error))?;
        stub::Stub::of(&receipt.entry, limit)
    });
    let answer = match made.await {
        Ok(stub) => {
            beside.push(stub.link());
            stub.answer(desk, whose, is_error, limit)
        }
        Err(error) => surface.refuse(desk, &unkept(error, &first, task.as_ref()).into()),
    };
    let answer = if is_error { answer.into_failure() } else { answer };
    answer.with_beside(beside)
}

/// Says why an answer is not kept, where it can still be read, and how it begins.
fn unkept(error: Error, first: &str, task: Option<&Shows>) -> Error {
    #[derive(Serialize)]
    struct Task<'a> {
        task_id: &'a str,
    }

    #[derive(Serialize)]
    struct First<'a> {
        first_part: &'a str,
    }

    let hint = match task {
        Some(_) => {
            "its task keeps it: have the tool write an artifact, or ask it for a smaller part"
        }
        None => "ask the tool for a smaller part, or have it write an artifact",
    };
    let mut error = error.with_guarantee(Guarantee::Executed).with_hint(hint);
    if let Some(Shows { id, .. }) = task {
        error = refusals::with(error, &Task { task_id: id });
    }
    let said = "`details.first_part` is how it begins".to_owned();
    refusals::quoting(error, said, &First { first_part: first })
}

/// Tells whether an answer holds what a tool with sensitive inputs made; where several tools may speak in
/// it, any of them counts.
fn is_sensitive(desk: &Desk, called: &str, task: Option<&Shows>) -> bool {
    let specs = desk.engine().specs();
    let name = task.map_or(called, |task| task.tool.as_str());
    match specs.iter().find(|spec| spec.name.as_str() == name) {
        Some(spec) => !spec.sensitive.is_empty(),
        None => specs.iter().any(|spec| !spec.sensitive.is_empty()),
    }
}

/// Returns the arguments of a call as they may be told: without what is sensitive, and not too long.
pub(super) fn params(engine: &Handle, tool: &str, arguments: &Json) -> String {
    let empty = || "{}".to_owned();
    let text = arguments.get();
    if text.len() > MAX_PARAMS {
        return empty();
    }
    let pointers = engine.spec(tool).map(|spec| spec.sensitive).unwrap_or_default();
    if pointers.is_empty() {
        return text.to_owned();
    }
    let Ok(mut value) = arguments.read::<Value>() else { return empty() };
    for pointer in pointers.iter() {
        if let Some(secret) = value.pointer_mut(pointer) {
            *secret = Value::from("[redacted]");
        }
    }
    value.to_string()
}
