//! What an answer says about the page that it holds.

use serde::Serialize;

use super::cursor;

/// Where a page is among the pages; serialises to `_pagination`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pagination {
    /// The value that is paged, as a JSON pointer.
    pub path: String,
    /// The member of `data` that the slice is, when `data` also holds what is around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What is counted: `array` (items), `object` (members), `string` and `raw` (bytes), `text`
    /// (lines), or `value` for a value that is not divided.
    pub kind: &'static str,
    /// Number of this page, from 1.
    pub page: u64,
    /// Number of pages in this size.
    pub total_pages: usize,
    /// First of what is counted on this page, from 0.
    pub start_index: usize,
    /// Behind the last of what is counted on this page.
    pub end_index: usize,
    /// How many there are in the whole value.
    pub total_items: usize,
    /// Bytes of `data`.
    pub page_bytes: usize,
    /// Bytes of the value.
    pub total_bytes: usize,
    /// How many values on this page are a `$ref` to pages of their own.
    pub refs: usize,
    /// Whether the page ends inside a character that is longer than a page.
    #[serde(skip_serializing_if = "is_false")]
    pub cuts_character: bool,
    /// Whether there is a page after this one.
    pub has_next: bool,
    /// Whether there is a page before this one.
    pub has_previous: bool,
    /// How to ask for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// On the first page, when no path was asked for: other arrays, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
}

/// Another array that can be paged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alternative {
    /// Where it is.
    pub path: String,
    /// How many items it has.
    pub items: usize,
    /// Bytes that it takes.
    pub bytes: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Pagination {
    /// Returns the bytes that this takes at most, on any page, as part of an answer.
    pub(super) fn largest(&self, is_escaped: bool) -> usize {
        let number = largest_number(self.total_bytes);
        let largest = Self {
            // Of a page that does not exist, so that only an empty page has such a number.
            page: u64::try_from(number).unwrap_or(u64::MAX),
            total_pages: number,
            start_index: number,
            end_index: number,
            total_items: number,
            page_bytes: number,
            total_bytes: number,
            refs: number,
            cuts_character: true,
            has_next: false,
            has_previous: false,
            next_cursor: Some("A".repeat(cursor::LENGTH)),
            ..self.clone()
        };
        let json = serde_json::to_vec(&largest).unwrap_or_default();
        let n_escapes = if is_escaped { crate::json::text::n_escapes(&json) } else { 0 };
        json.len() + n_escapes + growth(&json)
    }
}

/// Returns by how much names in a JSON text may grow when whoever sends it escapes what would act on a
/// reader: no character takes more than a `\uXXXX` for each of its units.
fn growth(json: &[u8]) -> usize {
    let text = String::from_utf8_lossy(json);
    let grows = |c: char| if c.is_ascii() { 0 } else { 6 * c.len_utf16() - c.len_utf8() };
    text.chars().map(grows).sum()
}

/// Returns the largest number with as many digits as any count in a body of this size can have.
fn largest_number(bytes: usize) -> usize {
    let n_digits = (bytes * 2 + 1000).to_string().len();
    "9".repeat(n_digits).parse().unwrap_or(usize::MAX)
}
