//! `get`: the whole of an entry, or of a value in it, where a client takes that.

use serde::Serialize;
use serde_json::value::RawValue;

use raincheck_cache::BodyKind;
use raincheck_core::error::{Error, Guarantee, Kind};

use crate::answer::Answer;

use super::super::stub::OVERHEAD;
use super::super::words::{self, Done, Nothing, fence, fenced, raw};
use super::super::{entry, refusals};
use super::Reading;

#[derive(Serialize)]
struct Whole<'a> {
    data: &'a RawValue,
}

pub(super) fn answer(reading: &Reading<'_>) -> Result<Answer, Error> {
    let view = reading.entry.view();
    let path = entry::pointer(reading.request.path.as_deref())?.unwrap_or_default();
    let node = view.resolve(&path).map_err(|error| refusals::not_found(&error))?;
    if node.bytes() + OVERHEAD > reading.bounds.limit {
        return Err(too_large(node.bytes()));
    }
    let bytes = view.raw(node).map_err(|error| refusals::unreadable(&error))?;
    let bytes = match reading.entry.metadata().kind {
        BodyKind::Json => bytes.into_owned(),
        BodyKind::Text => serde_json::to_vec(&String::from_utf8_lossy(&bytes)).unwrap_or_default(),
    };
    let data = words::shown(reading.whose, raw(bytes));
    if data.get().len() + OVERHEAD > reading.bounds.limit {
        return Err(too_large(data.get().len()));
    }
    Ok(fence(reading.desk, |mark| {
        let data = fenced(mark, reading.whose, Nothing {}, Whole { data: &data });
        Answer::json(&Done { success: true, message: None, data })
    }))
}

fn too_large(bytes: usize) -> Error {
    Error::new(Kind::TooLarge, format!("{bytes} bytes are too many for one answer"))
        .with_guarantee(Guarantee::NotExecuted)
        .with_hint("read it with get_page, or narrow it with filter, search or path")
}
