//! Arguments that stand for what the cache holds: `{"$cache": id, "path"?: pointer}` [CACHE-6].
//!
//! Everything around them stays as it was written, byte for byte.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::text;

use crate::wire::read_strictly;

/// The member that makes an object a reference.
const MEMBER: &str = "$cache";

/// How many references one call may hold.
const MAX_REFERENCES: usize = 64;

/// How large arguments may be with what they refer to: half of what a connection may have asked at once, so
/// that there comes a time when there is room for them.
const MAX_BYTES: usize = 32 << 20;

/// A value that the cache holds, as an argument names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// The handle, as it was written.
    pub(super) id: String,
    /// Where in the entry the value is; empty for the whole.
    pub(super) path: String,
    /// Where in the arguments the reference stands, as a JSON Pointer.
    pub(super) place: String,
    /// Its bytes in the text of the arguments.
    span: std::ops::Range<usize>,
}

/// Tells whether arguments may hold a reference; almost none do.
pub(super) fn may_refer(arguments: &Json) -> bool {
    let text = arguments.get();
    text.contains(MEMBER) || (text.contains("\\u") && text.contains("cache"))
}

/// Finds the references in arguments, in the order in which they stand. Arguments that are not sound hold
/// none: their surface says what is wrong with them.
///
/// # Errors
/// `invalid_params` that names the place of a reference that is none.
pub(super) fn references(arguments: &Json) -> Result<Vec<Reference>, Error> {
    let mut found = Vec::new();
    if read_strictly(arguments, "the arguments").is_ok() {
        let text = arguments.get();
        walk(text, arguments.raw(), &mut String::new(), &mut found)?;
    }
    Ok(found)
}

/// Writes arguments with each reference replaced by what `value` reads for it, which may have so many bytes.
///
/// # Errors
/// What `value` says; `too_large` when the whole is.
pub(super) fn replaced(
    arguments: &Json,
    references: &[Reference],
    mut value: impl FnMut(&Reference, usize) -> Result<String, Error>,
) -> Result<Json, Error> {
    let text = arguments.get();
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for reference in references {
        out.push_str(text.get(at..reference.span.start).unwrap_or_default());
        let room = MAX_BYTES.saturating_sub(out.len());
        let value = value(reference, room)?;
        if value.len() > room {
            return Err(too_large(&reference.place));
        }
        out.push_str(&value);
        at = reference.span.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    Json::parse(out).map_err(|error| {
        let message = format!("the arguments cannot hold what they refer to: {error}");
        Error::new(Kind::InvalidParams, message)
    })
}

pub(super) fn too_large(place: &str) -> Error {
    let message = format!(
        "what `{}` refers to makes the arguments larger than {} MiB",
        text::escape(text::clip(place, 200)),
        MAX_BYTES >> 20
    );
    Error::new(Kind::TooLarge, message)
        .with_guarantee(Guarantee::NotExecuted)
        .with_hint("name a part of it with `path`")
}

/// Looks for references in a value. The nesting was bounded by whoever read the arguments strictly.
fn walk(
    text: &str,
    value: &RawValue,
    place: &mut String,
    found: &mut Vec<Reference>,
) -> Result<(), Error> {
    let raw = value.get();
    let length = place.len();
    match raw.as_bytes().first() {
        Some(b'{') => {
            let Ok(Members(members)) = serde_json::from_str(raw) else { return Ok(()) };
            if members.iter().any(|(name, _)| name == MEMBER) {
                let start = raw.as_ptr().addr().saturating_sub(text.as_ptr().addr());
                let span = start..start + raw.len();
                if found.len() == MAX_REFERENCES {
                    return Err(wrong(place, &format!("is one of more than {MAX_REFERENCES}")));
                }
                found.push(reference(members, place, span)?);
                return Ok(());
            }
            for (name, member) in members {
                place.push('/');
                place.push_str(&name.replace('~', "~0").replace('/', "~1"));
                walk(text, member, place, found)?;
                place.truncate(length);
            }
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
            for (n, item) in items.into_iter().enumerate() {
                place.push_str(&format!("/{n}"));
                walk(text, item, place, found)?;
                place.truncate(length);
            }
        }
        _ => {}
    }
    Ok(())
}

fn reference(
    members: Vec<(String, &RawValue)>,
    place: &str,
    span: std::ops::Range<usize>,
) -> Result<Reference, Error> {
    let (mut id, mut path) = (None, None);
    for (name, value) in members {
        let slot = match name.as_str() {
            MEMBER => &mut id,
            "path" => &mut path,
            other => {
                let other = text::escape(text::clip(other, 80)).into_owned();
                return Err(wrong(place, &format!("may not have `{other}` beside it")));
            }
        };
        let Ok(text) = serde_json::from_str::<String>(value.get()) else {
            return Err(wrong(place, &format!("must have a string as its `{name}`")));
        };
        *slot = Some(text);
    }
    let (id, path) = (id.unwrap_or_default(), path.unwrap_or_default());
    Ok(Reference { id, path, place: place.to_owned(), span })
}

/// Refuses a reference by its place.
fn wrong(place: &str, rule: &str) -> Error {
    let place = text::escape(text::clip(place, 200)).into_owned();
    let message = format!("the reference to a cached response at `{place}` {rule}");
    Error::new(Kind::InvalidParams, message).with_hint(
        r#"write {"$cache": "<cache_id>", "path": "/a/json/pointer"}; `path` may be left out"#,
    )
}

/// The members of an object in their order, their values as they are written.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = access.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).expect("JSON")
    }

    fn taken(text: &str) -> Result<String, Error> {
        let arguments = json(text);
        let found = references(&arguments)?;
        let value = |one: &Reference| Ok(format!("<{}{}>", one.id, one.path));
        let taken =
            replaced(&arguments, &found, |one, _| value(one).map(|text| format!("{text:?}")))?;
        Ok(taken.get().to_owned())
    }

    #[test]
    fn references_are_replaced_wherever_they_stand_and_the_rest_stays_as_written() {
        // [CACHE-6]
        let text = r#"{"a": 1.0,"v":{"$cache":"x","path":"/i/3"}, "d":[{"z":[ {"\u0024cache":"y"} ]}],"e":"\u00e9"}"#;
        let want = r#"{"a": 1.0,"v":"<x/i/3>", "d":[{"z":[ "<y>" ]}],"e":"\u00e9"}"#;
        assert!(may_refer(&json(text)));
        assert_eq!(taken(text).expect("taken"), want);
        assert_eq!(taken(r#"{"$cache":"x"}"#).expect("taken"), r#""<x>""#);
        assert!(!may_refer(&json(r#"{"v":"cache"}"#)));
    }

    #[test]
    fn what_is_no_reference_is_refused_by_its_place() {
        // [CACHE-6]
        for (text, says) in [
            (r#"{"a":[{"$cache":5}]}"#, "at `/a/0` must have a string as its `$cache`"),
            (r#"{"a/b":{"$cache":"x","path":1}}"#, "at `/a~1b` must have a string as its `path`"),
            (r#"{"a":{"$cache":"x","other":1}}"#, "at `/a` may not have `other` beside it"),
        ] {
            let error = taken(text).expect_err("refused");
            assert_eq!(error.kind, Kind::InvalidParams);
            assert!(error.message.contains(says), "{}", error.message);
        }
        let many = vec![r#"{"$cache":"x"}"#; MAX_REFERENCES + 1].join(",");
        assert!(taken(&format!(r#"{{"a":[{many}]}}"#)).is_err());
    }

    #[test]
    fn arguments_that_are_not_sound_are_left_to_their_surface() {
        let doubled = json(r#"{"a":1,"a":{"$cache":"x"}}"#);
        assert_eq!(references(&doubled), Ok(Vec::new()));
    }

    #[test]
    fn what_makes_the_arguments_too_large_is_not_taken() {
        // [CACHE-6]
        let arguments = json(r#"{"a":{"$cache":"x"}}"#);
        let found = references(&arguments).expect("references");
        let error = replaced(&arguments, &found, |_, room| Ok("1".repeat(room + 1)));
        let error = error.expect_err("too large");
        assert_eq!((error.kind, error.guarantee()), (Kind::TooLarge, Some(Guarantee::NotExecuted)));
    }
}
