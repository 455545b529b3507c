//! The arguments of a call, taken by name and by form.

use std::collections::BTreeMap;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::text;
use serde_json::Value;

/// What an argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A string.
    Text,
    /// A string that is not empty, of at most 256 bytes.
    Name,
    /// The number of a tab.
    Tab,
    /// A number.
    Number,
    /// A whole number from 1 to the bound.
    Count(u32),
    /// `true` or `false`.
    Flag,
    /// An address that may be opened [SEC-7].
    Address,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// An argument that a call may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    pub(crate) is_required: bool,
}

/// Makes an argument that must be there.
pub(crate) const fn needs(name: &'static str, form: Form) -> Field {
    Field { name, form, is_required: true }
}

/// Makes an argument that may be there.
pub(crate) const fn may(name: &'static str, form: Form) -> Field {
    Field { name, form, is_required: false }
}

/// The longest text of an argument, in bytes.
const MAX_TEXT: usize = 1024 * 1024;

/// The arguments of one call.
#[derive(Debug)]
pub(crate) struct Arguments(BTreeMap<String, Value>);

impl Arguments {
    /// Reads the arguments; `null` is as good as absent.
    pub(crate) fn read(inputs: &Json) -> Result<Self, Error> {
        let read: Result<BTreeMap<String, Value>, _> = inputs.read();
        let mut members =
            read.map_err(|_| Error::new(Kind::InvalidParams, "the arguments must be an object"))?;
        members.retain(|_, value| !value.is_null());
        Ok(Self(members))
    }

    /// Returns a text argument.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// Returns a whole number.
    pub(crate) fn whole(&self, name: &str) -> Option<i64> {
        whole(self.0.get(name)?)
    }

    /// Returns a number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// Tells whether an argument is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the name of what is asked for: `action` or `what`, one of `known`.
    pub(crate) fn choice<'k, T>(
        &self,
        name: &str,
        known: &'k [T],
        name_of: impl Fn(&T) -> &'static str,
        also: &[&'static str],
    ) -> Result<&'k T, Error> {
        let names = || known.iter().map(&name_of).chain(also.iter().copied());
        let Some(value) = self.0.get(name) else {
            let words = format!("`{name}` is missing; it is one of {}", list(names()));
            return Err(Error::new(Kind::InvalidParams, words));
        };
        let word = value.as_str().unwrap_or_default();
        known.iter().find(|one| name_of(one) == word).ok_or_else(|| {
            let shown = text::escape(text::clip(word, 80)).into_owned();
            let words = format!("`{name}` is `{shown}`, which is none of {}", list(names()));
            Error::new(Kind::InvalidParams, words)
        })
    }

    /// Checks every argument against those of `what`; the name that chose it is known anyway.
    pub(crate) fn check(
        &self,
        (chooser, what): (&str, &str),
        groups: &[&[Field]],
    ) -> Result<(), Error> {
        let known = || groups.iter().flat_map(|fields| fields.iter());
        let is_known = |name: &str| name == chooser || known().any(|field| field.name == name);
        let unknown: Vec<&String> = self.0.keys().filter(|name| !is_known(name)).take(10).collect();
        if !unknown.is_empty() {
            let shown = unknown.iter().map(|name| text::escape(text::clip(name, 80)).into_owned());
            let shown: Vec<String> = shown.map(|name| format!("`{name}`")).collect();
            let names = list(known().map(|field| field.name));
            let words = format!("`{what}` does not take {}; it takes {names}", shown.join(", "));
            return Err(Error::new(Kind::InvalidParams, words));
        }
        for field in known() {
            match self.0.get(field.name) {
                None if field.is_required => {
                    let words = format!("`{}` is missing; `{what}` needs it", field.name);
                    return Err(Error::new(Kind::InvalidParams, words));
                }
                None => {}
                Some(value) => field.form.check(field.name, value)?,
            }
        }
        Ok(())
    }

    /// Checks that exactly one, or at least one, of several arguments is there.
    pub(crate) fn check_one_of(
        &self,
        what: &str,
        names: &[&'static str],
        is_exact: bool,
    ) -> Result<(), Error> {
        let n = names.iter().filter(|name| self.has(name)).count();
        if names.is_empty() || n == 1 || (n > 1 && !is_exact) {
            return Ok(());
        }
        let count = if is_exact { "exactly one" } else { "at least one" };
        let words = format!("`{what}` needs {count} of {}", list(names.iter().copied()));
        Err(Error::new(Kind::InvalidParams, words))
    }
}

fn list(names: impl Iterator<Item = &'static str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Reads a whole number, also when it is written like `7.0`.
#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and far below 2^63")]
fn whole(value: &Value) -> Option<i64> {
    let whole = |float: f64| (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(whole))
}

impl Form {
    fn check(self, name: &str, value: &Value) -> Result<(), Error> {
        let wrong = |rule: &str| Err(Error::new(Kind::InvalidParams, format!("`{name}` {rule}")));
        let is_fine = match self {
            Self::Text => match value.as_str() {
                Some(text) if text.len() > MAX_TEXT => return wrong("is longer than 1 MiB"),
                text => text.is_some(),
            },
            Self::Name => value.as_str().is_some_and(|it| !it.is_empty() && it.len() <= 256),
            Self::Tab => whole(value).is_some_and(|tab| (0..=i64::from(i32::MAX)).contains(&tab)),
            Self::Number => value.as_f64().is_some_and(f64::is_finite),
            Self::Count(most) => {
                whole(value).is_some_and(|count| (1..=i64::from(most)).contains(&count))
            }
            Self::Flag => value.is_boolean(),
            Self::Address => value.is_string(),
            Self::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        };
        if is_fine { Ok(()) } else { wrong(&self.rule()) }
    }

    fn rule(self) -> String {
        match self {
            Self::Text | Self::Address => "must be a string".to_owned(),
            Self::Name => "must be a string of 1 to 256 bytes".to_owned(),
            Self::Tab => "must be the number of a tab; observe tabs lists them".to_owned(),
            Self::Number => "must be a number".to_owned(),
            Self::Count(most) => format!("must be a whole number from 1 to {most}"),
            Self::Flag => "must be true or false".to_owned(),
            Self::OneOf(words) => format!("must be one of {}", list(words.iter().copied())),
        }
    }
}
