//! What is wrong with a file, shown with its line.

use std::fmt::Write as _;
use std::ops::Range;

use crate::redact::credentials;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it stands, in bytes of the text.
    pub span: Range<usize>,
    /// What is wrong, naming the key.
    pub message: String,
    /// What would be right.
    pub help: String,
}

/// Everything that is wrong with one file; never empty where it is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Adds one.
    pub(super) fn add(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.0.push(Problem { span, message: message.into(), help: help.into() });
    }

    /// Returns them in the order of the file.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.0.sort_by_key(|problem| problem.span.start);
        self
    }

    /// Tells whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates over them.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// Writes all of them for a person, each with its line of the file.
    #[must_use]
    pub fn render(&self, name: &str, text: &str) -> String {
        let n = self.len();
        let mut out = format!("{n} problem{} in {name}\n", if n == 1 { "" } else { "s" });
        for problem in &self.0 {
            let place = Place::of(text, &problem.span);
            let number = place.line.to_string();
            let margin = " ".repeat(number.len());
            let _ = writeln!(out, "\n{name}:{}:{}: {}", place.line, place.column, problem.message);
            let _ = writeln!(out, " {margin} |");
            let _ = writeln!(out, " {number} | {}", credentials(place.text));
            let marks = "^".repeat(place.width);
            let _ = writeln!(out, " {margin} | {}{marks}", " ".repeat(place.indent));
            let _ = writeln!(out, " {margin} = {}", problem.help);
        }
        out
    }
}

/// Where a span stands for a person; line and column count from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) line: usize,
    pub(crate) column: usize,
    text: &'a str,
    /// How many characters of the shown line stand before the span, and how many are the span's.
    indent: usize,
    width: usize,
}

impl<'a> Place<'a> {
    pub(crate) fn of(text: &'a str, span: &Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start);
        let (before, after) = text.split_at(start);
        let head = before.rfind('\n').map_or(before, |at| before.get(at + 1..).unwrap_or_default());
        let tail = after.lines().next().unwrap_or_default();
        let line_start = start - head.len();
        let line = text.get(line_start..start + tail.len()).unwrap_or_default();
        let marked = tail.get(..tail.floor_char_boundary(span.len())).unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: head.chars().count() + 1,
            text: line.trim_end(),
            indent: credentials(head).chars().count(),
            width: credentials(marked).chars().count().max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_characters_and_not_bytes() {
        let text = "a = 1\nü = \"ß\"\n";
        let start = text.find('"').expect("a quote");
        let place = Place::of(text, &(start..start + 4));
        assert_eq!((place.line, place.column, place.width), (2, 5, 3));
        assert_eq!(place.text, "ü = \"ß\"");
    }

    #[test]
    fn the_end_of_a_file_is_a_place() {
        assert_eq!(Place::of("", &(0..0)).line, 1);
        let place = Place::of("a =", &(3..3));
        assert_eq!((place.line, place.column, place.text), (1, 4, "a ="));
        assert_eq!(Place::of("é", &(1..9)).column, 1);
    }
}
