//! What stands for an answer that is too large: the handle, an outline and the first page.

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use raincheck_cache::{At, BodyKind, Budget, Metadata, Page, PageRequest, Pagination, Pinned};
use raincheck_core::error::Error;
use raincheck_core::time::Timestamp;

use crate::answer::{Answer, Block};
use crate::surface::Desk;

use super::home::timestamp;
use super::refusals;
use super::request::NAME;
use super::words::{Done, fence, fenced, link, of, raw};

/// How large an outline is at the most, in bytes.
pub(super) const OUTLINE_BYTES: usize = 2 << 10;

/// Bytes of a page's answer that are neither its data nor its `_pagination`.
pub(super) const OVERHEAD: usize = 256;

/// The size of a page when nobody asks for another, in bytes.
const PAGE_BYTES: usize = 32 << 10;

/// The smallest size of a page that nobody asked for, in bytes.
const LEAST_BYTES: usize = 2 << 10;

/// Returns the size of a page for a client that takes so many characters when it asks for none: the same
/// for the first page, beside the handle, and for those that follow.
pub(super) const fn page_bytes(limit: usize) -> usize {
    let most = limit & !1023;
    if most < LEAST_BYTES {
        LEAST_BYTES
    } else if most < PAGE_BYTES {
        most
    } else {
        PAGE_BYTES
    }
}

/// Returns the size of an answer of so many bytes.
pub(super) const fn budget(bytes: Option<usize>) -> Budget {
    Budget { bytes, overhead: OVERHEAD, is_escaped: false }
}

/// Returns the estimate of tokens that clients plan with.
pub(super) const fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(3)
}

/// Returns a size in KiB with one digit after the point.
pub(super) fn kib(bytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 53 bits")]
    let bytes = bytes as f64;
    (bytes / 102.4).round() / 10.0
}

/// An entry as it is announced.
#[derive(Debug)]
pub(super) struct Stub {
    id: Uuid,
    size: u64,
    kind: BodyKind,
    expires_at: Timestamp,
    outline: Box<RawValue>,
    page: Option<(Box<RawValue>, Pagination)>,
}

/// Ours.
#[derive(Serialize)]
struct Ours<'a> {
    success: bool,
    cached: bool,
    cache_id: &'a Uuid,
    message: &'a str,
    data: Data<'a>,
    expires_at: Timestamp,
}

#[derive(Serialize)]
struct Data<'a> {
    cache_id: &'a Uuid,
    size_kb: f64,
    estimated_tokens: u64,
    usage_hint: String,
}

/// Ours, of what a filter made.
#[derive(Serialize)]
struct Filtered<'a> {
    cached: bool,
    cache_id: &'a Uuid,
    count: usize,
    source_cache_id: &'a Uuid,
    size_kb: f64,
    estimated_tokens: u64,
    expires_at: Timestamp,
}

/// The entry's.
#[derive(Serialize)]
struct Theirs<'a> {
    outline: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'a RawValue>,
    #[serde(rename = "_pagination", skip_serializing_if = "Option::is_none")]
    pagination: Option<&'a Pagination>,
}

impl Stub {
    /// Looks at an entry that was just stored.
    pub(super) fn of(entry: &Pinned, limit: usize) -> Result<Self, Error> {
        let Metadata { id, size_bytes, kind, expires_at, .. } = *entry.metadata();
        let view = entry.view();
        let outline = view.outline(OUTLINE_BYTES).map_err(|error| refusals::unreadable(&error))?;
        let request = PageRequest {
            path: None,
            at: At::Page(1),
            budget: budget(Some(page_bytes(limit))),
            binding: entry.binding(),
        };
        // One that does not fit is asked for later.
        let page = view.page(request).ok();
        Ok(Self {
            id,
            size: size_bytes,
            kind,
            expires_at: timestamp(expires_at),
            outline: raw(outline),
            page: page.map(|Page { data, pagination }| (raw(data), pagination)),
        })
    }

    /// Writes the answer. The first page is in it where both together are within the limit.
    pub(super) fn answer(
        &self,
        desk: &Desk,
        whose: &'static str,
        is_error: bool,
        limit: usize,
    ) -> Answer {
        let whole = self.written(desk, whose, is_error, self.page.is_some());
        if whole.text_len() <= limit || self.page.is_none() {
            return whole;
        }
        self.written(desk, whose, is_error, false)
    }

    fn written(&self, desk: &Desk, whose: &'static str, is_error: bool, has_page: bool) -> Answer {
        let message = match has_page {
            true => {
                "The answer is too large to send whole. It is cached; here are its outline and its first page."
            }
            false => "The answer is too large to send whole. It is cached; here is its outline.",
        };
        let ours = || Ours {
            success: !is_error,
            cached: true,
            cache_id: &self.id,
            message,
            data: Data {
                cache_id: &self.id,
                size_kb: kib(self.size),
                estimated_tokens: tokens(self.size),
                usage_hint: format!(
                    "Call {NAME} with this cache_id: action filter (jq_filter) or search (query) for \
                     what you need, get_page (page, or cursor = next_cursor) to read on."
                ),
            },
            expires_at: self.expires_at,
        };
        let page = self.page.as_ref().filter(|_| has_page);
        // Measured as it goes out: names in an outline may grow.
        fence(desk, |mark| of(whose, Answer::json(&fenced(mark, whose, ours(), self.theirs(page)))))
    }

    /// Writes the answer for what a filter made.
    pub(super) fn filtered(
        &self,
        desk: &Desk,
        whose: &'static str,
        count: usize,
        source: &Uuid,
        limit: usize,
    ) -> Answer {
        let write = |has_page: bool| {
            let page = self.page.as_ref().filter(|_| has_page);
            fence(desk, |mark| {
                let ours = Filtered {
                    cached: true,
                    cache_id: &self.id,
                    count,
                    source_cache_id: source,
                    size_kb: kib(self.size),
                    estimated_tokens: tokens(self.size),
                    expires_at: self.expires_at,
                };
                let data = fenced(mark, whose, ours, self.theirs(page));
                let message =
                    Some("What the filter made is large. It is cached under a handle of its own.");
                of(whose, Answer::json(&Done { success: true, message, data }))
            })
        };
        let whole = write(true);
        if whole.text_len() <= limit { whole } else { write(false) }
    }

    fn theirs<'a>(&'a self, page: Option<&'a (Box<RawValue>, Pagination)>) -> Theirs<'a> {
        Theirs {
            outline: &self.outline,
            page: page.map(|(data, _)| &**data),
            pagination: page.map(|(_, pagination)| pagination),
        }
    }

    /// Names the entry as a resource.
    pub(super) fn link(&self) -> Block {
        #[derive(Serialize)]
        struct Link {
            r#type: &'static str,
            uri: String,
            name: String,
            #[serde(rename = "mimeType")]
            mime_type: &'static str,
            size: u64,
        }
        link(&Link {
            r#type: "resource_link",
            uri: uri(&self.id),
            name: format!("cached response {}", self.id),
            mime_type: mime_type(self.kind),
            size: self.size,
        })
    }
}

/// The address of an entry.
pub(super) fn uri(id: &Uuid) -> String {
    format!("response://{id}")
}

/// The media type of a body.
pub(super) const fn mime_type(kind: BodyKind) -> &'static str {
    match kind {
        BodyKind::Json => "application/json",
        BodyKind::Text => "text/plain",
    }
}
