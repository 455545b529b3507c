//! The arguments of our own tools: known by name, each of its type, `null` as good as absent.

use std::collections::BTreeMap;

use serde_json::Value;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::text;

use super::strict;

/// How many unknown arguments one answer names.
const MAX_UNKNOWN: usize = 10;

/// The members of an argument object.
#[derive(Debug)]
pub(crate) struct Fields {
    within: &'static str,
    members: BTreeMap<String, Value>,
}

impl Fields {
    /// Reads the arguments of a tool that knows only the names in `known`.
    ///
    /// # Errors
    /// `invalid_request` when the text is not sound, `invalid_params` when it is no object or names
    /// something unknown.
    pub(crate) fn read(arguments: &Json, known: &[&str]) -> Result<Self, Error> {
        Self::of(strict::read(arguments, "the arguments")?, "", known)
    }

    fn of(value: Value, within: &'static str, known: &[&str]) -> Result<Self, Error> {
        let Value::Object(members) = value else {
            let what = if within.is_empty() { "arguments" } else { within.trim_end_matches('.') };
            return Err(wrong(what, "must be an object"));
        };
        let members: BTreeMap<String, Value> =
            members.into_iter().filter(|(_, value)| !value.is_null()).collect();
        let unknown: Vec<String> = members
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
            .map(|name| format!("`{within}{}`", text::escape(text::clip(name, 80))))
            .collect();
        if unknown.is_empty() {
            return Ok(Self { within, members });
        }
        let shown = unknown.get(..MAX_UNKNOWN).unwrap_or(&unknown).join(", ");
        let be = match unknown.len() {
            1 => "is".to_owned(),
            n if n <= MAX_UNKNOWN => "are".to_owned(),
            n => format!("and {} more are", n - MAX_UNKNOWN),
        };
        let message = format!("{shown} {be} unknown; known are {}", list(known));
        Err(Error::new(Kind::InvalidParams, message))
    }

    /// Takes an argument that must be there.
    pub(crate) fn required<T: Argument>(&mut self, name: &str) -> Result<T, Error> {
        self.optional(name)?.ok_or_else(|| self.wrong(name, "is missing"))
    }

    /// Takes an argument that may be absent.
    pub(crate) fn optional<T: Argument>(&mut self, name: &str) -> Result<Option<T>, Error> {
        let Some(value) = self.members.remove(name) else {
            return Ok(None);
        };
        T::of(value).map(Some).ok_or_else(|| self.wrong(name, &format!("must be {}", T::EXPECTED)))
    }

    /// Takes an argument of any type as it was read; the rule of its type is the caller's.
    pub(crate) fn value(&mut self, name: &str) -> Result<Value, Error> {
        self.members.remove(name).ok_or_else(|| self.wrong(name, "is missing"))
    }

    /// Takes a group of arguments, such as `resources`; an absent one is empty.
    pub(crate) fn group(
        &mut self,
        name: &str,
        within: &'static str,
        known: &[&str],
    ) -> Result<Self, Error> {
        let value =
            self.members.remove(name).unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        Self::of(value, within, known)
    }

    /// Makes the refusal of one argument.
    pub(crate) fn wrong(&self, name: &str, rule: &str) -> Error {
        wrong(&format!("{}{name}", self.within), rule)
    }
}

/// Makes the refusal of an argument: its name, and what it must be.
pub(crate) fn wrong(name: &str, rule: &str) -> Error {
    Error::new(Kind::InvalidParams, format!("`{name}` {rule}"))
}

/// Writes names as a list.
pub(crate) fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A type that an argument can have.
pub(crate) trait Argument: Sized {
    /// What it must be, in words.
    const EXPECTED: &'static str;

    /// Reads it; `None` when it is something else.
    fn of(value: Value) -> Option<Self>;
}

impl Argument for String {
    const EXPECTED: &'static str = "a string";

    fn of(value: Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(text),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        }
    }
}

/// A whole number, also when it is written like `20.0`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole(pub(crate) i64);

impl Argument for Whole {
    const EXPECTED: &'static str = "an integer";

    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and far below 2^63")]
    fn of(value: Value) -> Option<Self> {
        let number = value.as_number()?;
        let whole =
            |float: f64| (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64);
        number.as_i64().or_else(|| number.as_f64().and_then(whole)).map(Self)
    }
}

impl Argument for f64 {
    const EXPECTED: &'static str = "a number";

    fn of(value: Value) -> Option<Self> {
        value.as_f64().filter(|number| number.is_finite())
    }
}

impl Argument for bool {
    const EXPECTED: &'static str = "true or false";

    fn of(value: Value) -> Option<Self> {
        value.as_bool()
    }
}

impl Argument for Vec<String> {
    const EXPECTED: &'static str = "an array of strings";

    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Array(items) => items.into_iter().map(String::of).collect(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Result<Fields, Error> {
        Fields::read(&Json::parse(text).expect("JSON"), &["a", "b", "n"])
    }

    #[test]
    fn an_argument_is_refused_by_its_name() {
        let unknown = fields(r#"{"a":"x","surprise":1}"#).expect_err("unknown");
        assert_eq!(&*unknown.message, "`surprise` is unknown; known are `a`, `b`, `n`");
        let several = fields(r#"{"zig":1,"a":"x","ox":{},"none":null}"#).expect_err("unknown");
        assert_eq!(&*several.message, "`ox`, `zig` are unknown; known are `a`, `b`, `n`");
        let many: Vec<String> = (10..99).map(|n| format!("\"x{n}\":{n}")).collect();
        let many = fields(&format!("{{{}}}", many.join(","))).expect_err("unknown").message;
        assert!(
            many.contains("`x10`, `x11`") && many.contains("and 79 more are unknown"),
            "{many}"
        );
        let mut known = fields(r#"{"a":7,"n":1.5}"#).expect("known");
        let typed = known.required::<String>("a").expect_err("typed");
        assert_eq!(&*typed.message, "`a` must be a string");
        let missing = known.required::<String>("b").expect_err("missing");
        assert_eq!(&*missing.message, "`b` is missing");
        assert_eq!(
            &*known.optional::<Whole>("n").expect_err("whole").message,
            "`n` must be an integer"
        );
        assert_eq!(fields("[]").expect_err("array").kind, Kind::InvalidParams);
    }

    #[test]
    fn null_is_absent_and_a_whole_float_is_an_integer() {
        let mut known = fields(r#"{"a":null,"n":20.0,"zzz":null}"#).expect("known");
        assert_eq!(known.optional::<String>("a").expect("absent"), None);
        assert_eq!(known.optional::<Whole>("n").expect("whole").map(|n| n.0), Some(20));
    }
}
