//! Filters that follow paths, run on the bytes of a body and its index.
//!
//! A plan yields what the engine would, byte for byte. Where a filter would fail, or does what no plan
//! can, the plan gives up and the engine runs it from the start.

use jaq_core::load::parse::BinaryOp;
use jaq_core::path::{Opt, Part, Path};

use super::Outputs;
use super::deadline::Deadline;
use super::failure::FilterFailure;
use super::limits::{LimitKind, Limits};
use super::syntax::Term;
use crate::json::{Kind, View};

mod condition;
mod item;
mod run;
#[cfg(test)]
mod tests;

use condition::Condition;
use run::{GaveUp, Run};

/// How a filter is run on bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// `.`
    Whole,
    /// `.name`, where `true` says that a failure yields nothing.
    Member(String, bool),
    /// `[3]`
    Item(i64, bool),
    /// `[1:3]`
    Slice(Option<i64>, Option<i64>, bool),
    /// `[]`
    Each(bool),
    /// `a | b`
    Then(Box<Self>, Box<Self>),
    /// `a, b`
    Both(Box<Self>, Box<Self>),
    /// `[a]`
    Array(Box<Self>),
    /// `{name: a}`, each with one output
    Object(Vec<(String, Self)>),
    Select(Box<Condition>),
    Length,
    Keys,
}

impl Plan {
    /// Returns the plan of a filter, if it has one.
    pub(super) fn of(term: &Term<'_>) -> Option<Self> {
        Some(match term {
            Term::Id => Self::Whole,
            Term::Path(base, Path(parts)) => {
                let mut plan = Self::of(base)?;
                for (part, opt) in parts {
                    plan = plan.then(Self::part(part, matches!(opt, Opt::Optional))?);
                }
                plan
            }
            Term::BinOp(left, BinaryOp::Pipe(None), right) => {
                Self::of(left)?.then(Self::of(right)?)
            }
            Term::BinOp(left, BinaryOp::Comma, right) => {
                Self::Both(Box::new(Self::of(left)?), Box::new(Self::of(right)?))
            }
            Term::Arr(Some(inner)) => Self::Array(Box::new(Self::of(inner)?)),
            Term::Obj(entries) => Self::object(entries)?,
            Term::Call("length", arguments) if arguments.is_empty() => Self::Length,
            Term::Call("keys", arguments) if arguments.is_empty() => Self::Keys,
            Term::Call("map", arguments) => match arguments.as_slice() {
                [inner] => Self::Array(Box::new(Self::Each(false).then(Self::of(inner)?))),
                _ => return None,
            },
            Term::Call("select", arguments) => match arguments.as_slice() {
                [condition] => Self::Select(Box::new(Condition::of(condition)?)),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn then(self, next: Self) -> Self {
        match (self, next) {
            (Self::Whole, other) | (other, Self::Whole) => other,
            (first, next) => Self::Then(Box::new(first), Box::new(next)),
        }
    }

    fn part(part: &Part<Term<'_>>, is_optional: bool) -> Option<Self> {
        let bound = |bound: &Option<Term<'_>>| match bound {
            None => Some(None),
            Some(term) => integer(term).map(Some),
        };
        Some(match part {
            Part::Range(None, None) => Self::Each(is_optional),
            Part::Range(from, to) => Self::Slice(bound(from)?, bound(to)?, is_optional),
            Part::Index(index) => match plain(index) {
                Some(name) => Self::Member(name, is_optional),
                None => Self::Item(integer(index)?, is_optional),
            },
        })
    }

    fn object(entries: &[(Term<'_>, Option<Term<'_>>)]) -> Option<Self> {
        let mut members: Vec<(String, Self)> = Vec::new();
        for (name, value) in entries {
            let name = plain(name)?;
            let value = match value {
                None => Self::Member(name.clone(), false),
                Some(value) => Self::of(value)?,
            };
            if !value.has_one_output() || members.iter().any(|(other, _)| *other == name) {
                return None;
            }
            members.push((name, value));
        }
        Some(Self::Object(members))
    }

    /// Whether there is exactly one output, unless the plan gives up.
    fn has_one_output(&self) -> bool {
        match self {
            Self::Whole | Self::Array(_) | Self::Object(_) | Self::Length | Self::Keys => true,
            Self::Member(_, is_optional)
            | Self::Item(_, is_optional)
            | Self::Slice(_, _, is_optional) => !is_optional,
            Self::Each(_) | Self::Both(..) | Self::Select(_) => false,
            Self::Then(first, next) => first.has_one_output() && next.has_one_output(),
        }
    }
}

/// Returns a string without anything to be evaluated.
fn plain(term: &Term<'_>) -> Option<String> {
    use jaq_core::load::lex::StrPart;
    let Term::Str(None, parts) = term else { return None };
    let mut text = String::new();
    for part in parts {
        match part {
            StrPart::Str(piece) => text.push_str(piece),
            StrPart::Char(char) => text.push(*char),
            StrPart::Term(_) => return None,
        }
    }
    Some(text)
}

fn integer(term: &Term<'_>) -> Option<i64> {
    match term {
        Term::Num(text) => text.parse().ok(),
        Term::Neg(inner) => match &**inner {
            Term::Num(text) => text.parse::<i64>().ok().map(|number| -number),
            _ => None,
        },
        _ => None,
    }
}

/// Runs a plan; `None` where the engine has to.
pub(super) fn run(
    plan: &Plan,
    view: &View<'_>,
    limits: &Limits,
    deadline: &Deadline,
) -> Result<Option<Outputs>, FilterFailure> {
    if view.root().kind == Kind::Text {
        return Ok(None);
    }
    let mut run = Run::new(view, limits, deadline);
    match run.outputs(plan) {
        Ok(outputs) => Ok(Some(outputs)),
        Err(GaveUp::ForEngine) => Ok(None),
        Err(GaveUp::Body(error)) => Err(FilterFailure::Body(error)),
        Err(GaveUp::Limit(kind)) => Err(FilterFailure::limit(limits, kind)),
    }
}

impl From<LimitKind> for GaveUp {
    fn from(kind: LimitKind) -> Self {
        Self::Limit(kind)
    }
}
