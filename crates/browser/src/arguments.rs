//! The arguments of a call, taken by name and by form.

use std::collections::BTreeMap;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::text;
use serde_json::{Map, Value};

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
    /// A string, a number, `true`, `false`, or a list of strings: what a field of a page can be set to.
    Setting,
    /// A list of at least one and at most so many.
    List(&'static Self, usize),
    /// An object.
    Object(&'static Shape),
    /// An object that is checked elsewhere.
    Members,
}

/// The members of an object that is an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) fields: &'static [Field],
    /// Exactly one of these has to be there; none asks for nothing.
    pub(crate) one_of: &'static [&'static [&'static str]],
}

/// An argument that a call may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let members =
            read.map_err(|_| Error::new(Kind::InvalidParams, "the arguments must be an object"))?;
        Ok(Self::of(members))
    }

    fn of(members: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self(members.into_iter().filter(|(_, value)| !value.is_null()).collect())
    }

    /// Returns a text argument.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// Returns the texts of a list argument.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        let items = self.0.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Returns the objects of a list argument, each as arguments of their own.
    pub(crate) fn objects(&self, name: &str) -> Vec<Self> {
        let items = self.0.get(name).and_then(Value::as_array);
        let objects = items.into_iter().flatten().filter_map(Value::as_object);
        objects.cloned().map(Self::of).collect()
    }

    /// Returns an object argument, as arguments of its own.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        self.0.get(name)?.as_object().cloned().map(Self::of)
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

    /// Tells whether an argument asks for something: it is there, and not `false`.
    pub(crate) fn asks(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| *value != Value::Bool(false))
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

    /// Checks that several arguments are all there, or none of them.
    pub(crate) fn check_together(&self, what: &str, names: &[&'static str]) -> Result<(), Error> {
        let missing: Vec<&str> = names.iter().copied().filter(|name| !self.has(name)).collect();
        if missing.is_empty() || missing.len() == names.len() {
            return Ok(());
        }
        let words = format!(
            "`{what}` takes {} together, and there is no {}",
            list(names.iter().copied()),
            list(missing.into_iter())
        );
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
            Self::Setting => {
                let is_text = |it: &Value| it.is_string();
                let is_list = value.as_array().is_some_and(|items| items.iter().all(is_text));
                is_list || value.is_string() || value.is_number() || value.is_boolean()
            }
            Self::List(form, most) => match value.as_array() {
                Some(items) if (1..=most).contains(&items.len()) => {
                    return items
                        .iter()
                        .enumerate()
                        .try_for_each(|(n, item)| form.check(&format!("{name}[{n}]"), item));
                }
                _ => false,
            },
            Self::Object(shape) => match value.as_object() {
                Some(members) => return shape.check(name, members),
                None => false,
            },
            Self::Members => value.is_object(),
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
            Self::Setting => {
                "must be a string, a number, true, false, or a list of strings".to_owned()
            }
            Self::List(_, most) => format!("must be a list of 1 to {most}"),
            Self::Object(shape) => {
                format!(
                    "must be an object of {}",
                    list(shape.fields.iter().map(|field| field.name))
                )
            }
            Self::Members => "must be an object".to_owned(),
        }
    }
}

impl Shape {
    fn check(&self, name: &str, members: &Map<String, Value>) -> Result<(), Error> {
        let wrong = |words: String| Err(Error::new(Kind::InvalidParams, words));
        let find = |known: &str| self.fields.iter().find(|field| field.name == known);
        for (member, value) in members.iter().filter(|(_, value)| !value.is_null()) {
            let Some(field) = find(member) else {
                let shown = text::escape(text::clip(member, 80));
                let names = list(self.fields.iter().map(|field| field.name));
                return wrong(format!("`{name}` does not take `{shown}`; it takes {names}"));
            };
            field.form.check(&format!("{name}.{member}"), value)?;
        }
        let has = |known: &str| members.get(known).is_some_and(|value| !value.is_null());
        if let Some(field) = self.fields.iter().find(|field| field.is_required && !has(field.name))
        {
            return wrong(format!("`{name}.{}` is missing", field.name));
        }
        let is_whole = |names: &&&[&str]| names.iter().all(|known| has(known));
        if self.one_of.is_empty() || self.one_of.iter().filter(is_whole).count() == 1 {
            return Ok(());
        }
        let ways = self.one_of.iter().map(|names| list(names.iter().copied()));
        wrong(format!("`{name}` needs exactly one of {}", ways.collect::<Vec<_>>().join("; ")))
    }
}
