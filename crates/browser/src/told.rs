//! Answers that are made here, of values.

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Kind};
use raincheck_core::task::Outcome;
use serde::Serialize;

/// Makes an answer from memory of a value.
pub(crate) fn told(value: &impl Serialize) -> Result<Outcome, Error> {
    let json = Json::of(value);
    json.map(|json| Outcome::Succeeded(vec![Content::Json(json)]))
        .map_err(|error| Error::new(Kind::InvalidResponse, error.to_string()))
}
