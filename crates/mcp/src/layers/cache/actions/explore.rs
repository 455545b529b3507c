//! `outline`, `search` and `sample`: what is in an entry, before any of it is read.

use serde::Serialize;
use serde_json::value::RawValue;

use raincheck_cache::{Hit, InvalidQuery, Query};
use raincheck_core::error::{Error, Kind};
use raincheck_core::text;

use crate::answer::Answer;

use super::super::stub::{OUTLINE_BYTES, OVERHEAD, budget};
use super::super::words::{self, Done, Nothing, fence, fenced, raw};
use super::super::{entry, refusals};
use super::Reading;

/// How many items a sample has when nobody says.
const SAMPLED: usize = 5;

/// Bytes of an answer of `search` that are no hits.
const AROUND_HITS: usize = OVERHEAD + 96;

pub(super) fn outline(reading: &Reading<'_>) -> Result<Answer, Error> {
    #[derive(Serialize)]
    struct Theirs<'a> {
        outline: &'a RawValue,
    }
    let outline = reading.entry.view().outline(OUTLINE_BYTES);
    let outline = raw(outline.map_err(|error| refusals::unreadable(&error))?);
    Ok(fence(reading.desk, |mark| {
        let data = fenced(mark, reading.whose, Nothing {}, Theirs { outline: &outline });
        Answer::json(&Done { success: true, message: None, data })
    }))
}

pub(super) fn search(reading: &Reading<'_>) -> Result<Answer, Error> {
    #[derive(Serialize)]
    struct Ours {
        count: usize,
        skipped: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }

    #[derive(Serialize)]
    struct Theirs {
        hits: Vec<Hit>,
    }
    let text = reading.request.query.as_deref().unwrap_or_default();
    let query = if reading.request.is_regex { Query::regex(text) } else { Query::literal(text) };
    let query = query.map_err(|invalid| no_query(&invalid))?;
    let skip = match reading.request.cursor.as_deref() {
        None => 0,
        Some(cursor) => cursor
            .parse()
            .map_err(|_| Error::new(Kind::BadCursor, "the cursor is not one of this search"))?,
    };
    let found = reading.entry.view().search(&query, skip, budget(Some(reading.bytes())));
    let mut found = found.map_err(|error| refusals::unreadable(&error))?;
    let room = reading.bytes().saturating_sub(AROUND_HITS);
    found.fit(room, |hit| words::written_len(reading.whose, hit) + 1);
    let ours = Ours {
        count: found.hits.len(),
        skipped: found.skipped,
        next_cursor: found.next_skip.map(|skip| skip.to_string()),
    };
    Ok(fence(reading.desk, |mark| {
        let data = fenced(mark, reading.whose, ours, Theirs { hits: found.hits });
        Answer::json(&Done { success: true, message: None, data })
    }))
}

fn no_query(invalid: &InvalidQuery) -> Error {
    let said = text::escape(text::clip(&invalid.to_string(), 500)).into_owned();
    Error::new(Kind::InvalidParams, format!("`query` cannot be used: {said}"))
}

pub(super) fn sample(reading: &Reading<'_>) -> Result<Answer, Error> {
    #[derive(Serialize)]
    struct Ours {
        total_items: usize,
    }

    #[derive(Serialize)]
    struct Theirs<'a> {
        path: &'a str,
        items: &'a RawValue,
    }
    let path = entry::pointer(reading.request.path.as_deref())?;
    let n = reading.request.n.unwrap_or(SAMPLED);
    let sample = reading.entry.view().sample(path.as_ref(), n, budget(Some(reading.bytes())));
    let sample = sample.map_err(|error| refusals::page(&error))?;
    let items = raw(sample.data);
    Ok(fence(reading.desk, |mark| {
        let theirs = Theirs { path: sample.path.as_str(), items: &items };
        let ours = Ours { total_items: sample.total_items };
        let data = fenced(mark, reading.whose, ours, theirs);
        Answer::json(&Done { success: true, message: None, data })
    }))
}
