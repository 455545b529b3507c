//! One table of the file against its list of keys.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::Kind;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::form::{Form, Value};
use crate::config::keys::Key;
use crate::config::limits::Limits;
use crate::config::problem::Problems;
use crate::config::{Env, TokenFrom};
use crate::suggest;

/// The checked values of one table, with where they stand.
#[derive(Debug)]
pub(super) struct Section {
    path: String,
    values: BTreeMap<&'static str, (Value, Range<usize>)>,
}

impl Section {
    /// Checks a table against lists of keys; what is wrong is reported and left out.
    pub(super) fn read(
        value: &Spanned<DeValue<'_>>,
        path: &str,
        keys: &[&'static [Key]],
        problems: &mut Problems,
    ) -> Self {
        let known = || keys.iter().flat_map(|keys| keys.iter());
        let mut values = BTreeMap::new();
        for (name, value) in entries(value, path, problems) {
            let Some(key) = known().find(|key| key.name == name.get_ref()) else {
                let place = format!("[{path}]");
                unknown(name, "key", &place, known().map(|key| key.name), problems);
                continue;
            };
            let shown = format!("{path}.{}", key.name);
            if let Some(checked) = check(key.form, value, &shown, problems) {
                values.insert(key.name, (checked, value.span()));
            }
        }
        Self { path: path.to_owned(), values }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn span_of(&self, key: &str) -> Option<Range<usize>> {
        self.values.get(key).map(|(_, span)| span.clone())
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        let Value::Text(text) = self.get(key)? else { return None };
        Some(text)
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        let Value::Flag(flag) = self.get(key)? else { return None };
        Some(*flag)
    }

    pub(super) fn whole(&self, key: &str) -> Option<u64> {
        let Value::Whole(number) = self.get(key)? else { return None };
        Some(*number)
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        let Value::Number(number) = self.get(key)? else { return None };
        Some(*number)
    }

    pub(super) fn seconds(&self, key: &str) -> Option<Duration> {
        let Value::Span(span) = self.get(key)? else { return None };
        Some(*span)
    }

    pub(super) fn list(&self, key: &str) -> Option<&[String]> {
        let Value::List(items) = self.get(key)? else { return None };
        Some(items)
    }

    pub(super) fn kinds(&self, key: &str) -> Option<&[Kind]> {
        let Value::Kinds(kinds) = self.get(key)? else { return None };
        Some(kinds)
    }

    pub(super) fn env(&self, key: &str) -> Option<&Env> {
        let Value::Env(env) = self.get(key)? else { return None };
        Some(env)
    }

    pub(super) fn tokens(&self, key: &str) -> Option<&[(String, TokenFrom)]> {
        let Value::Tokens(tokens) = self.get(key)? else { return None };
        Some(tokens)
    }

    pub(super) fn json(&self, key: &str) -> Option<&Json> {
        let Value::Json(json) = self.get(key)? else { return None };
        Some(json)
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key).map(|(value, _)| value)
    }
}

impl From<Section> for Limits {
    fn from(section: Section) -> Self {
        section.values.into_iter().map(|(name, (value, _))| (name, value)).collect()
    }
}

/// Checks one value of one key.
pub(super) fn check(
    form: Form,
    value: &Spanned<DeValue<'_>>,
    path: &str,
    problems: &mut Problems,
) -> Option<Value> {
    form.check(value, path, problems)
}

/// Returns the table that a section must be.
pub(super) fn table<'d, 'i>(
    value: &'d Spanned<DeValue<'i>>,
    path: &str,
    problems: &mut Problems,
) -> Option<&'d DeTable<'i>> {
    let table = value.get_ref().as_table();
    if table.is_none() {
        let help = format!("write it as a table: [{path}]");
        problems.add(value.span(), format!("`{path}` is no table"), help);
    }
    table
}

/// Returns the entries of the table that a section must be, in the order of the file.
pub(super) fn entries<'d, 'i>(
    value: &'d Spanned<DeValue<'i>>,
    path: &str,
    problems: &mut Problems,
) -> Vec<(&'d Spanned<Cow<'i, str>>, &'d Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table(value, path, problems).into_iter().flatten().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

/// Reports a name that nobody knows, with the nearest that somebody does.
pub(super) fn unknown<'a>(
    name: &Spanned<Cow<'_, str>>,
    noun: &str,
    place: &str,
    known: impl Iterator<Item = &'a str> + Clone,
    problems: &mut Problems,
) {
    let word = name.get_ref();
    let all = known.clone().collect::<Vec<_>>().join(", ");
    let help = match suggest::nearest(word, known) {
        Some(near) => format!("did you mean `{near}`? known here: {all}"),
        None => format!("known here: {all}"),
    };
    problems.add(name.span(), format!("unknown {noun} `{word}` in {place}"), help);
}
