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
    answer.as_text().is_some_and(|text| is_longer(text, limit))
}

/// Tells whether a text has more UTF-16 units than this. The characters are counted first, which is quick; how many
/// of them have two units is counted only where that decides.
fn is_longer(text: &str, limit: usize) -> bool {
    let n_bytes = text.len();
    // A character of three bytes has one unit.
    if n_bytes <= limit || n_bytes / 3 > limit {
        return n_bytes > limit;
    }
    let n_chars = text.chars().count();
    // A character of two units has four bytes.
    let most = n_chars + (n_bytes - n_chars) / 3;
    if n_chars > limit || most <= limit {
        return n_chars > limit;
    }
    n_chars + n_of_four(text.as_bytes()) > limit
}

/// Counts the characters of four bytes, by the first byte of each: it alone has its four highest bits set. Eight
/// bytes at a time, since what ships is built for size and not for such loops.
fn n_of_four(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    let in_rest = rest.iter().filter(|byte| **byte >= 0xF0).count();
    // A byte of the sum holds no more than 255.
    let in_words = words.chunks(255).map(|some| {
        let firsts = |word: &[u8; 8]| {
            let bits = u64::from_le_bytes(*word);
            ((bits & bits << 1 & bits << 2 & bits << 3) >> 7) & 0x0101_0101_0101_0101
        };
        let sums: u64 = some.iter().map(firsts).sum();
        sums.to_le_bytes().into_iter().map(usize::from).sum::<usize>()
    });
    in_rest + in_words.sum::<usize>()
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
    let Some(spec) = engine.spec(tool) else { return text.to_owned() };
    let pointers = || spec.sensitive.iter().chain(spec.unshown.iter());
    if pointers().next().is_none() {
        return text.to_owned();
    }
    let Ok(mut value) = arguments.read::<Value>() else { return empty() };
    for pointer in pointers() {
        if let Some(secret) = value.pointer_mut(pointer) {
            *secret = Value::from("[redacted]");
        }
    }
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_long_as_its_utf_16_units() {
        // [CACHE-3]
        for text in ["a", "é", "漢", "😀", "a😀", "漢😀", "éa漢😀", "😀漢漢漢", ""]
        {
            for n_times in [1, 7, 30] {
                let text = text.repeat(n_times);
                let n_units = text.encode_utf16().count();
                for limit in 0..=text.len() + 1 {
                    assert_eq!(is_longer(&text, limit), n_units > limit, "{text} and {limit}");
                }
            }
            // More than one sum of words.
            let text = text.repeat(9001);
            let n_units = text.encode_utf16().count();
            for limit in n_units.saturating_sub(2)..n_units + 2 {
                assert_eq!(is_longer(&text, limit), n_units > limit, "{} and {limit}", text.len());
            }
        }
    }
}
