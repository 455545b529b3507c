//! JSON taken at its word: no doubled member, no half character, not nested without end.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::text;

/// Reads a value to look at it; the text itself is what is passed on.
///
/// # Errors
/// `invalid_request` when a member name is doubled, a string holds a lone surrogate, or it nests
/// too deep.
pub(crate) fn read(json: &Json, what: &str) -> Result<Value, Error> {
    json.read::<Strict>().map(|strict| strict.0).map_err(|error| {
        Error::new(Kind::InvalidRequest, format!("{what} cannot be taken: {error}"))
    })
}

/// A value whose objects name each member once.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Seed.deserialize(deserializer).map(Self)
    }
}

struct Seed;

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            if members.contains_key(&name) {
                let name = text::escape(text::clip(&name, 80));
                return Err(A::Error::custom(format!("member `{name}` is doubled")));
            }
            members.insert(name, access.next_value_seed(Self)?);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        let json = Json::parse(text).expect("JSON");
        read(&json, "`inputs`").map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_two_readers_would_read_differently_is_refused() {
        let doubled = check(r#"{"a":{"b":1,"b":2}}"#).expect_err("doubled");
        assert!(doubled.contains("invalid_request") && doubled.contains("`b` is doubled"));
        let name = format!("\\u001b[2J{}", "x".repeat(100_000));
        let long = check(&format!("{{\"{name}\":1,\"{name}\":2}}")).expect_err("doubled");
        assert!(long.len() < 500 && !long.contains('\u{1b}'), "{} bytes", long.len());
        assert!(check(r#"{"a":"\ud800"}"#).is_err(), "half a character");
        assert!(check(&format!("{}1{}", "[".repeat(128), "]".repeat(128))).is_err(), "too deep");
    }

    #[test]
    fn any_valid_string_is_taken() {
        assert_eq!(check(r#"{"a":"\u0000\ud83d\ude00","b":"\u0000"}"#), Ok(()));
        assert_eq!(check(r#"{"big":123456789012345678901234567890,"a":{"a":1}}"#), Ok(()));
    }
}
