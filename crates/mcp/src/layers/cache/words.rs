//! How answers of the cache are written: ours outside of the mark, everybody else's inside [CALL-8].

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use raincheck_core::content::Json;
use raincheck_core::text;

use crate::answer::{Answer, Begins, Block, Mark};
use crate::surface::Desk;

/// Who speaks in an entry of a page.
const PAGE: &str = "the page";

/// Who speaks in every other entry.
pub(super) const TOOL: &str = "the tool";

/// Returns who speaks in an entry, by the label that it has.
pub(super) fn whose(label: Option<&str>) -> &'static str {
    if label == Some(PAGE) { PAGE } else { TOOL }
}

/// Writes an answer in which somebody else speaks.
pub(super) fn fence(desk: &Desk, write: impl FnOnce(&Mark) -> Answer) -> Answer {
    desk.fence(write)
}

/// Makes what a page said act on no terminal and no reader [SEC-10]; what a tool said stays as it is.
pub(super) fn of(whose: &'static str, answer: Answer) -> Answer {
    if whose == PAGE { answer.with_marks_escaped() } else { answer }
}

/// The same of a JSON text that goes into an answer or an entry.
pub(super) fn safe(whose: &'static str, json: String) -> String {
    match text::escape_json(&json) {
        Cow::Owned(safe) if whose == PAGE => safe,
        Cow::Owned(_) | Cow::Borrowed(_) => json,
    }
}

/// Returns how many bytes a value takes in an answer in which somebody speaks.
pub(super) fn written_len(whose: &'static str, value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |json| safe(whose, json).len())
}

/// The same of JSON that was read.
pub(super) fn shown(whose: &'static str, json: Box<RawValue>) -> Box<RawValue> {
    let safe = match text::escape_json(json.get()) {
        Cow::Owned(safe) if whose == PAGE => safe,
        Cow::Owned(_) | Cow::Borrowed(_) => return json,
    };
    RawValue::from_string(safe).unwrap_or(json)
}

/// An answer of one action: ours alone.
#[derive(Serialize)]
pub(super) struct Done<'a, T> {
    pub(super) success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<&'a str>,
    pub(super) data: T,
}

/// Writes an answer of ours.
pub(super) fn done<T: Serialize>(message: Option<&str>, data: T) -> Answer {
    Answer::json(&Done { success: true, message, data })
}

/// What of an entry stands inside of the mark, with what of ours goes before it.
#[derive(Serialize)]
pub(super) struct Fenced<'a, O, T> {
    #[serde(flatten)]
    ours: O,
    untrusted_begins: Begins<'a>,
    #[serde(flatten)]
    theirs: T,
    untrusted_ends: &'a str,
}

/// Puts what is theirs between the marks.
pub(super) fn fenced<'a, O, T>(
    mark: &'a Mark,
    whose: &'static str,
    ours: O,
    theirs: T,
) -> Fenced<'a, O, T> {
    Fenced { ours, untrusted_begins: mark.begins(whose), theirs, untrusted_ends: mark.ends() }
}

/// Nothing of ours.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Nothing {}

/// Reads bytes that are known to be JSON; `null` when they are not.
pub(super) fn raw(bytes: Vec<u8>) -> Box<RawValue> {
    let text = String::from_utf8(bytes).unwrap_or_default();
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A block beside the text that names a resource.
pub(super) fn link(json: &impl Serialize) -> Block {
    Block::Verbatim(Json::of(json).unwrap_or_else(|_| Json::null()))
}
