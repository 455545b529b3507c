//! The text of a filter: what it says, or where it is wrong.

use jaq_core::load::parse;

mod lex;
mod names;
mod object;
mod parser;
mod pattern;

pub(super) use names::hint_for;
pub(super) use parser::{Lines, definitions, program};

/// The syntax tree of a filter.
pub(super) type Term<'s> = parse::Term<&'s str>;
/// A definition, `def name(arguments): body;`.
pub(super) type Def<'s> = parse::Def<&'s str>;

/// What is wrong with a filter, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// Where, in bytes.
    pub(super) at: usize,
    /// What stands there; empty at the end of the text.
    pub(super) near: String,
    /// What to write instead.
    pub(super) hint: String,
}

/// How much of the text is shown.
const NEAR_CHARS: usize = 40;

impl Problem {
    pub(super) fn near(at: usize, near: &str, hint: impl Into<String>) -> Self {
        Self { at, near: near.chars().take(NEAR_CHARS).collect(), hint: hint.into() }
    }

    fn at(at: usize, near: char, hint: impl Into<String>) -> Self {
        Self { at, near: near.to_string(), hint: hint.into() }
    }
}
