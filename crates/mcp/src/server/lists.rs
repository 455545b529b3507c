//! Lists that several layers have a part of: each part follows the one before.
//!
//! A cursor says whose part it is and, after a point, where in it.

use std::sync::Arc;

use serde_json::{Map, Value};

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};

use crate::caller::Caller;
use crate::surface::{Desk, Layer, Method};
use crate::wire::Members;

/// Where a page says how the list goes on.
const NEXT: &str = "nextCursor";

/// Returns the layers that have a part of a list; empty for what is no such list.
pub(super) fn parts(method: &str, layers: &[Arc<dyn Layer>]) -> Vec<Arc<dyn Layer>> {
    let has_part: fn(&dyn Layer) -> bool = match method {
        "resources/list" | "resources/templates/list" => |layer| layer.has_resources(),
        "prompts/list" => |layer| layer.has_prompts(),
        _ => return Vec::new(),
    };
    layers.iter().filter(|layer| has_part(&***layer)).cloned().collect()
}

/// Answers with a page of one part. A part that cannot be had now is passed over.
pub(super) async fn answer(
    parts: &[Arc<dyn Layer>],
    desk: &Desk,
    method: &Method,
    who: &mut Caller,
) -> Result<Json, Error> {
    let mut params: Map<String, Value> = method.params.read().unwrap_or_default();
    let mut place = match params.remove("cursor") {
        None => 0,
        Some(cursor) => {
            let (place, rest) = read(&cursor, parts.len())?;
            if let Some(rest) = rest {
                params.insert("cursor".to_owned(), rest.into());
            }
            place
        }
    };
    let mut failed = None;
    while let Some(part) = parts.get(place) {
        let asked = Method { params: json(&params)?, ..method.clone() };
        match part.method(desk, &asked, who).await {
            Some(Ok(page)) => return followed(&page, place, parts.len()),
            Some(Err(error)) if params.contains_key("cursor") => return Err(error),
            Some(Err(error)) => {
                tracing::debug!(%error, method = method.name, "a part of a list is passed over");
                failed = Some(error);
            }
            None => {}
        }
        params.remove("cursor");
        place += 1;
    }
    Err(failed.unwrap_or_else(bad_cursor))
}

/// Says in a page where the list goes on. The rest of the page stays the bytes that it is.
fn followed(page: &Json, place: usize, n_parts: usize) -> Result<Json, Error> {
    let Some(mut members) = Members::read(page) else {
        return Err(Error::new(Kind::InvalidResponse, "a page of a list is no object"));
    };
    let given = members.get(NEXT).and_then(|text| serde_json::from_str::<String>(text).ok());
    let next = match given {
        Some(cursor) => Some(format!("{place}.{cursor}")),
        None => (place + 1 < n_parts).then(|| format!("{}.", place + 1)),
    };
    members.remove(NEXT);
    match next {
        Some(next) => {
            let next = Json::of(&next);
            let next =
                next.map_err(|error| Error::new(Kind::InvalidResponse, error.to_string()))?;
            Ok(members.with(&[(NEXT, &next)]))
        }
        None => Ok(members.with(&[])),
    }
}

fn read(cursor: &Value, n_parts: usize) -> Result<(usize, Option<String>), Error> {
    let read = || {
        let (place, rest) = cursor.as_str()?.split_once('.')?;
        let place: usize = place.parse().ok().filter(|place| *place < n_parts)?;
        Some((place, (!rest.is_empty()).then(|| rest.to_owned())))
    };
    read().ok_or_else(bad_cursor)
}

fn bad_cursor() -> Error {
    Error::new(Kind::BadCursor, "`cursor` is not one that this server gave out")
}

fn json(members: &Map<String, Value>) -> Result<Json, Error> {
    Json::of(members).map_err(|error| Error::new(Kind::InvalidResponse, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_goes_on_where_the_one_before_ended_and_odd_cursors_are_refused() {
        // [GATE-10]
        let page = |text: &str| Json::parse(text).expect("JSON");
        let next = |text, place| {
            let page = followed(&page(text), place, 2).expect("an object");
            page.read::<Value>().expect("JSON")["nextCursor"].clone()
        };
        assert_eq!(next(r#"{"resources":[],"nextCursor":"a.b"}"#, 0), "0.a.b");
        assert_eq!(next(r#"{"resources":[]}"#, 0), "1.");
        assert_eq!(next(r#"{"resources":[]}"#, 1), Value::Null);
        let odd = page(r#"{"z":[{"size":1e2,"a":123456789012345678901234567890}],"b":1.0}"#);
        assert_eq!(
            followed(&odd, 0, 2).expect("an object").get(),
            r#"{"z":[{"size":1e2,"a":123456789012345678901234567890}],"b":1.0,"nextCursor":"1."}"#
        );
        assert_eq!(read(&"0.a.b".into(), 2), Ok((0, Some("a.b".to_owned()))));
        assert_eq!(read(&"1.".into(), 2), Ok((1, None)));
        for odd in [Value::from("2."), "x".into(), "".into(), 7.into(), "-1.a".into()] {
            assert_eq!(read(&odd, 2).expect_err("odd").kind, Kind::BadCursor, "{odd}");
        }
    }
}
