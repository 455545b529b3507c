//! Limits that stand in a section of the file and on the command line alike.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

use clap::builder::{StringValueParser, TypedValueParser as _};
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

use super::form::Value;
use super::keys::{self, Key};

/// Limits by their names; what is not named keeps its default.
#[derive(Clone, Debug, Default)]
pub struct Limits(BTreeMap<&'static str, Value>);

impl Limits {
    /// Puts these before others.
    #[must_use]
    pub fn over(self, others: &Self) -> Self {
        let mut all = others.clone();
        all.0.extend(self.0);
        all
    }

    /// Returns a duration.
    #[must_use]
    pub fn span(&self, name: &str) -> Option<Duration> {
        let Value::Span(span) = self.0.get(name)? else { return None };
        Some(*span)
    }

    /// Returns a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let Value::Text(text) = self.0.get(name)? else { return None };
        Some(text)
    }

    /// Tells whether something is allowed; what is not named is not.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        matches!(self.0.get(name), Some(Value::Flag(true)))
    }

    /// Returns a whole number.
    #[must_use]
    pub fn whole(&self, name: &str) -> Option<u64> {
        let Value::Whole(number) = self.0.get(name)? else { return None };
        Some(*number)
    }
}

impl FromIterator<(&'static str, Value)> for Limits {
    fn from_iter<I: IntoIterator<Item = (&'static str, Value)>>(limits: I) -> Self {
        Self(limits.into_iter().collect())
    }
}

/// A section whose limits are flags.
pub trait Of: 'static {
    /// What stands above the flags.
    const HEADING: &'static str;

    /// Returns the section's limits as flags, and as variables of their names.
    fn flags() -> Vec<Arg>;

    /// Reads the limits that a command line names.
    fn given(matches: &ArgMatches) -> Limits;
}

/// `[browser]`.
#[derive(Clone, Copy, Debug)]
pub struct OfBrowser;

/// `[unity]`.
#[derive(Clone, Copy, Debug)]
pub struct OfUnity;

impl Of for OfBrowser {
    const HEADING: &'static str = "Limits (also keys of [browser] in the file)";

    fn flags() -> Vec<Arg> {
        keys::BROWSER.iter().map(flag).collect()
    }

    fn given(matches: &ArgMatches) -> Limits {
        given(keys::BROWSER, matches)
    }
}

impl Of for OfUnity {
    const HEADING: &'static str = "Limits (also keys of [unity] in the file)";

    fn flags() -> Vec<Arg> {
        keys::UNITY.iter().map(flag).collect()
    }

    fn given(matches: &ArgMatches) -> Limits {
        given(keys::UNITY, matches)
    }
}

/// Every limit of a section as a flag, and as a variable of its name.
#[derive(Clone, Debug)]
pub struct LimitFlags<O>(pub Limits, PhantomData<O>);

impl<O: Of> Args for LimitFlags<O> {
    fn augment_args(command: Command) -> Command {
        command.next_help_heading(O::HEADING).args(O::flags()).next_help_heading(None::<&str>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<O: Of> FromArgMatches for LimitFlags<O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(O::given(matches), PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn given(keys: &[Key], matches: &ArgMatches) -> Limits {
    let given = |key: &Key| Some((key.name, matches.get_one::<Value>(key.name)?.clone()));
    keys.iter().filter_map(given).collect()
}

fn flag(key: &Key) -> Arg {
    let form = key.form;
    Arg::new(key.name)
        .long(key.name.replace('_', "-"))
        .env(format!("RAINCHECK_{}", key.name.to_uppercase()))
        .help(key.about.trim_end_matches('.'))
        .value_name(form.value_name())
        .value_parser(StringValueParser::new().try_map(move |text| form.read_argument(&text)))
        .allow_hyphen_values(true)
        .hide_env(true)
        .global(true)
}
