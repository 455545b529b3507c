//! `get_page`: a part of an entry within a size.

use serde::Serialize;
use serde_json::value::RawValue;

use raincheck_cache::{At, Page, PageRequest, Pagination, Pinned};
use raincheck_core::error::Error;

use crate::answer::{Answer, Mark};

use super::super::stub::budget;
use super::super::words::{Done, Nothing, fence, fenced, raw};
use super::super::{entry, refusals};
use super::{Reading, would_be_cut};

/// A page as it is told.
#[derive(Serialize)]
pub(super) struct Told<'a> {
    data: &'a RawValue,
    #[serde(rename = "_pagination")]
    pagination: &'a Pagination,
}

pub(super) fn answer(reading: &Reading<'_>) -> Result<Answer, Error> {
    let request = reading.request;
    let path = entry::pointer(request.path.as_deref())?;
    let (at, bytes) = match &request.cursor {
        Some(cursor) => {
            let bytes = cursor_bytes(reading, cursor)?;
            if bytes > reading.bounds.most {
                return Err(would_be_cut(
                    "the pages of this cursor have",
                    bytes,
                    reading.bounds.most,
                ));
            }
            (At::Cursor(cursor), request.page_bytes)
        }
        None => {
            let bytes = request.page_bytes.unwrap_or(reading.bounds.page);
            (At::Page(request.page.unwrap_or(1)), Some(bytes))
        }
    };
    let page = PageRequest {
        path: path.as_ref(),
        at,
        budget: budget(bytes),
        binding: reading.entry.binding(),
    };
    let page = reading.entry.view().page(page).map_err(|error| refusals::page(&error))?;
    let Page { data, pagination } = page;
    let data = raw(data);
    Ok(fence(reading.desk, |mark| written(mark, reading.whose, &data, &pagination)))
}

/// Returns the size of the pages that a cursor goes on with.
fn cursor_bytes(reading: &Reading<'_>, cursor: &str) -> Result<usize, Error> {
    let bytes = reading.entry.view().cursor_bytes(cursor, reading.entry.binding());
    bytes.map_err(|bad| refusals::page(&bad.into()))
}

fn written(mark: &Mark, whose: &'static str, data: &RawValue, pagination: &Pagination) -> Answer {
    let data = fenced(mark, whose, Nothing {}, Told { data, pagination });
    Answer::json(&Done { success: true, message: None, data })
}

/// Counts the pages of an entry in a size.
pub(super) fn total(entry: &Pinned, bytes: usize) -> Result<usize, Error> {
    let request = PageRequest {
        path: None,
        at: At::Page(1),
        budget: budget(Some(bytes)),
        binding: entry.binding(),
    };
    let page = entry.view().page(request).map_err(|error| refusals::page(&error))?;
    Ok(page.pagination.total_pages)
}
