//! `info`, `list` and `delete`: what is known of entries, without a word of what they hold.

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use raincheck_cache::{BodyKind, Cache, Metadata, Millis};
use raincheck_core::error::Error;
use raincheck_core::text;
use raincheck_core::time::Timestamp;

use crate::answer::Answer;

use super::super::home::timestamp;
use super::super::miss;
use super::super::stub::{kib, mime_type, tokens};
use super::super::words::done;
use super::{Bounds, page};

/// What is known of an entry.
#[derive(Serialize)]
struct Info<'a> {
    metadata: Told<'a>,
}

#[derive(Serialize)]
struct Told<'a> {
    cache_id: &'a Uuid,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Box<RawValue>>,
    /// How long those are that are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    params_bytes: Option<usize>,
    mime_type: &'static str,
    size_bytes: u64,
    estimated_tokens: u64,
    total_pages: usize,
    created_at: Timestamp,
    expires_at: Timestamp,
    access_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_cache_id: Option<&'a Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jq_filter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filtered_from: Option<&'a str>,
    #[serde(skip_serializing_if = "is_zero")]
    refreshed: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// The bytes that the rest of what is known of an entry takes at the most, beside the name of its tool.
const ABOUT: usize = 700;

/// Describes an entry, within what a client takes; that is no read of it, so its life does not slide.
pub(super) fn info(
    cache: &Cache,
    now: Millis,
    scope: &str,
    id: Uuid,
    Bounds { limit, page: page_bytes, .. }: Bounds,
) -> Result<Answer, Error> {
    let entry = cache.pin(now, scope, id).map_err(|gone| miss::error(&gone))?;
    let metadata = entry.metadata();
    let is_filtered = metadata.parent.is_some();
    // The filter before the arguments: these are with the entry that it was run on.
    let mut left = limit.max(page_bytes).saturating_sub(ABOUT + 2 * metadata.tool.len());
    let jq_filter = metadata.jq_filter.as_deref().map(|filter| fitting(filter, left));
    left = left.saturating_sub(jq_filter.map_or(0, written_len));
    let fits = metadata.params.len() <= left;
    let params = fits.then(|| RawValue::from_string(metadata.params.to_string()));
    Ok(done(
        None,
        Info {
            metadata: Told {
                cache_id: &metadata.id,
                tool: &metadata.tool,
                params: params.map(|params| params.unwrap_or_else(|_| RawValue::NULL.to_owned())),
                params_bytes: (!fits).then_some(metadata.params.len()),
                mime_type: mime_type(metadata.kind),
                size_bytes: metadata.size_bytes,
                estimated_tokens: tokens(metadata.size_bytes),
                total_pages: page::total(&entry, page_bytes)?,
                created_at: timestamp(metadata.created_at),
                expires_at: timestamp(metadata.expires_at),
                access_count: metadata.access_count,
                source_cache_id: metadata.parent.as_ref(),
                jq_filter,
                filtered_from: is_filtered.then_some(&*metadata.tool),
                refreshed: metadata.revision,
            },
        },
    ))
}

/// Returns the beginning of a text that takes so many bytes as JSON; all of it where that fits.
fn fitting(text: &str, bytes: usize) -> &str {
    let mut text = text;
    while !text.is_empty() && written_len(text) > bytes {
        text = text::clip(text, text.len() / 2);
    }
    text
}

/// Returns how many bytes a text takes as JSON.
fn written_len(text: &str) -> usize {
    serde_json::to_string(text).map_or(usize::MAX, |json| json.len())
}

/// The entries of a scope.
#[derive(Serialize)]
struct List {
    count: usize,
    total_size_mb: f64,
    items: Vec<Row>,
    /// How many older ones did not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
}

#[derive(Serialize)]
struct Row {
    cache_id: Uuid,
    tool: String,
    mime_type: &'static str,
    size_kb: f64,
    estimated_tokens: u64,
    created_at: Timestamp,
    expires_at: Timestamp,
    access_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_cache_id: Option<Uuid>,
}

impl Row {
    fn of(metadata: &Metadata) -> Self {
        let kind: BodyKind = metadata.kind;
        Self {
            cache_id: metadata.id,
            tool: metadata.tool.to_string(),
            mime_type: mime_type(kind),
            size_kb: kib(metadata.size_bytes),
            estimated_tokens: tokens(metadata.size_bytes),
            created_at: timestamp(metadata.created_at),
            expires_at: timestamp(metadata.expires_at),
            access_count: metadata.access_count,
            source_cache_id: metadata.parent,
        }
    }
}

/// The bytes that one row takes at the most, beside the name of its tool.
const ROW: usize = 360;

/// Lists the entries of a scope, the one used last first, as many as a client takes.
pub(super) fn list(cache: &Cache, now: Millis, scope: &str, limit: usize) -> Answer {
    let all = cache.list(now, scope);
    let mut left = limit.saturating_sub(ROW);
    let items: Vec<Row> = all
        .iter()
        .take_while(|metadata| {
            let takes = ROW + metadata.tool.len();
            let fits = takes <= left;
            left = left.saturating_sub(takes);
            fits
        })
        .map(Row::of)
        .collect();
    let left_out = all.len() - items.len();
    let bytes = cache.usage(now, scope).bytes;
    let list = List {
        count: items.len(),
        total_size_mb: (kib(bytes) / 10.24).round() / 100.0,
        items,
        left_out: (left_out > 0).then_some(left_out),
    };
    done(None, list)
}

/// Ends an entry.
pub(super) fn delete(cache: &Cache, now: Millis, scope: &str, id: Uuid) -> Result<Answer, Error> {
    #[derive(Serialize)]
    struct Deleted {
        cache_id: Uuid,
        deleted: bool,
    }
    cache.delete(now, scope, id).map_err(|gone| miss::error(&gone))?;
    Ok(done(Some("The cached response is deleted."), Deleted { cache_id: id, deleted: true }))
}
