//! Finding text in a body.

use std::io;
use std::time::{Duration, Instant};

use regex::{Regex, RegexBuilder};
use serde::Serialize;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::{
    json::{Event, Events, Kind, Node, View, text},
    page::Budget,
};

/// Hits in one answer at most.
pub const MAX_HITS: usize = 100;
/// Longest query in bytes.
const LONGEST_QUERY: usize = 1000;
/// Memory that a compiled text may take.
const LITERAL_BYTES: usize = 1 << 20;
/// Memory that a compiled expression may take: matching takes time in proportion to it.
const REGEX_BYTES: usize = 64 << 10;
/// Bytes that are looked at between two looks at the clock, and the most of a line at once.
const WINDOW: usize = 16 << 10;
/// Bytes of a window that are looked at again with the next one.
const OVERLAP: usize = 1 << 10;
/// How long a search may take.
const MOST: Duration = Duration::from_secs(2);
/// What looking at a line takes beside its bytes, counted in bytes.
const LINE: usize = 64;
/// Characters shown before and behind what was found.
const AROUND: usize = 60;

/// What to look for.
#[derive(Clone, Debug)]
pub struct Query {
    regex: Regex,
    /// Whether what it matches in a line it matches in a text that has the line, too.
    has_no_anchors: bool,
}

/// Why a query cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuery {
    /// Empty, or longer than 1,000 bytes.
    #[error("a query has 1 to 1000 bytes")]
    Length,
    /// Not a regular expression, or one that is too large.
    #[error("not a regular expression: {0}")]
    Regex(String),
}

impl Query {
    /// Returns a query for a text as it is, in upper or lower case.
    ///
    /// # Errors
    ///
    /// When it is empty or too long.
    pub fn literal(text: &str) -> Result<Self, InvalidQuery> {
        Self::compile(text, &regex::escape(text))
    }

    /// Returns a query for a regular expression, in the case in which it is written; `(?i)` ignores
    /// case. In a line of more than 16 KiB, what is longer than 1 KiB may be missed.
    ///
    /// # Errors
    ///
    /// When it is empty, too long, not an expression, or too large.
    pub fn regex(pattern: &str) -> Result<Self, InvalidQuery> {
        Self::check(pattern)?;
        Self::build(pattern, false, REGEX_BYTES)
    }

    fn compile(text: &str, pattern: &str) -> Result<Self, InvalidQuery> {
        Self::check(text)?;
        Self::build(pattern, true, LITERAL_BYTES)
    }

    const fn check(text: &str) -> Result<(), InvalidQuery> {
        if text.is_empty() || text.len() > LONGEST_QUERY {
            return Err(InvalidQuery::Length);
        }
        Ok(())
    }

    fn build(pattern: &str, ignores_case: bool, bytes: usize) -> Result<Self, InvalidQuery> {
        let regex = RegexBuilder::new(pattern)
            .case_insensitive(ignores_case)
            .size_limit(bytes)
            .dfa_size_limit(LITERAL_BYTES)
            .nest_limit(64)
            .build()
            .map_err(|error| InvalidQuery::Regex(error.to_string()))?;
        Ok(Self { regex, has_no_anchors: ignores_case })
    }
}

/// One place where the query was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// The value, as a JSON pointer; of a name that was found, the member. Empty for a text.
    pub path: String,
    /// Position in the innermost array around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// What was found, with what is around it in its line.
    pub snippet: String,
    /// Line inside the string or text, from 1.
    pub line: usize,
    /// Whether a member's name was found and not a value.
    #[serde(skip_serializing_if = "is_false")]
    pub is_name: bool,
    /// Whether `path` is too long to be told whole.
    #[serde(skip_serializing_if = "is_false")]
    pub is_cut: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hits {
    /// In the order of the body, one for each line of a value.
    pub hits: Vec<Hit>,
    /// How many came before these.
    pub skipped: usize,
    /// How many to skip to see more; absent when there are no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_skip: Option<usize>,
}

impl Hits {
    /// Leaves out the last hits until what they cost is within `room`. The first one is cut where it does
    /// not fit alone.
    pub fn fit(&mut self, room: usize, cost: impl Fn(&Hit) -> usize) {
        let mut left = room;
        if let Some(first) = self.hits.first_mut() {
            first.cut(room, &cost);
        }
        let fits = |hit: &&Hit| {
            let rest = left.checked_sub(cost(hit));
            left = rest.unwrap_or(0);
            rest.is_some()
        };
        let n = self.hits.iter().take_while(fits).count().max(1);
        if n < self.hits.len() {
            self.hits.truncate(n);
            self.next_skip = Some(self.skipped + n);
        }
    }
}

impl Hit {
    /// Cuts what is longest in it until it costs no more than `room`: one hit is always told, and what is
    /// told has to fit.
    fn cut(&mut self, room: usize, cost: impl Fn(&Self) -> usize) {
        while cost(self) > room && !(self.path.is_empty() && self.snippet.is_empty()) {
            let is_path = self.path.len() >= self.snippet.len();
            let longest = if is_path { &mut self.path } else { &mut self.snippet };
            longest.truncate(longest.floor_char_boundary(longest.len() / 2));
            self.is_cut |= is_path;
        }
    }
}

impl View<'_> {
    /// Looks for a query in names, strings, numbers and literals, from the hit numbered `skip` on,
    /// as far as the budget and [`MAX_HITS`] allow; at least one hit is returned if there is one.
    ///
    /// # Errors
    ///
    /// When the body cannot be read; [`io::ErrorKind::TimedOut`] when it takes longer than two seconds.
    ///
    /// # Examples
    ///
    /// ```
    /// use raincheck_cache::{Budget, Query, View, scan};
    ///
    /// let body = br#"{"log":[{"text":"started"},{"text":"Object is null\nat Update"}]}"#.as_slice();
    /// let index = scan(body)?;
    /// let found = View::new(&body, &index).search(&Query::literal("NULL")?, 0, Budget::default())?;
    /// assert_eq!(found.hits[0].path, "/log/1/text");
    /// assert_eq!((found.hits[0].index, found.hits[0].line), (Some(1), 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn search(&self, query: &Query, skip: usize, budget: Budget) -> io::Result<Hits> {
        let mut found = Found::new(query, skip, budget);
        if self.root().kind == Kind::Text {
            self.search_text(&mut found)?;
        } else {
            let mut events = Events::new(*self);
            while !found.is_full
                && let Some(event) = events.next_event()?
            {
                let (node, is_name) = match event {
                    Event::Name(node) => (node, true),
                    Event::Scalar(node) => (node, false),
                    Event::Open(_) | Event::Close(_) => continue,
                };
                found.look(&events, node, is_name)?;
            }
        }
        Ok(found.hits)
    }

    /// Looks through a text in parts that end at line ends, so that it need not be held at once.
    fn search_text(&self, found: &mut Found<'_>) -> io::Result<()> {
        const PART: usize = 64 * 1024;
        let total = self.index().body_bytes();
        let mut line = 1;
        let mut start = 0;
        let mut held = Vec::new();
        while start < total && !found.is_full {
            let end = total.min(start + PART);
            held.extend_from_slice(&self.bytes(start, end)?);
            start = end;
            let n_whole = match memchr::memrchr(b'\n', &held) {
                _ if end == total => held.len(),
                Some(last) => last + 1,
                None => continue,
            };
            let rest = held.split_off(n_whole);
            for text in String::from_utf8_lossy(&held).lines() {
                if let Some((from, to)) = found.in_line(text)? {
                    found.add(String::new(), None, snippet(text, from, to), line, false);
                }
                line += 1;
            }
            held = rest;
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "an expression is stopped by the clock of the machine"
)]
fn now() -> Instant {
    Instant::now()
}

struct Found<'q> {
    query: &'q Query,
    /// Bytes that were looked at since the clock was.
    n_looked: usize,
    n_before: usize,
    skip: usize,
    room: usize,
    is_escaped: bool,
    is_full: bool,
    until: Option<Instant>,
    hits: Hits,
}

impl<'q> Found<'q> {
    fn new(query: &'q Query, skip: usize, budget: Budget) -> Self {
        /// `{"hits":[],"skipped":…,"next_skip":…}`, escaped.
        const AROUND_HITS: usize = 96;
        let bytes = budget.bytes.unwrap_or(crate::page::DEFAULT_PAGE_BYTES);
        Self {
            query,
            n_looked: 0,
            n_before: 0,
            skip,
            room: bytes.saturating_sub(budget.overhead + AROUND_HITS),
            is_escaped: budget.is_escaped,
            is_full: false,
            until: now().checked_add(MOST),
            hits: Hits { hits: Vec::new(), skipped: skip, next_skip: None },
        }
    }

    /// Looks through a line in parts, so that no expression holds its caller for long.
    fn in_line(&mut self, line: &str) -> io::Result<Option<(usize, usize)>> {
        let (mut from, mut to) = (0, WINDOW);
        loop {
            let end = line.floor_char_boundary(to);
            self.spend(end - from + LINE)?;
            let found = self.query.regex.find_at(upto(line, end), from);
            match found {
                // What ends with the part may go on behind it.
                Some(found) if found.end() < end || end == line.len() => {
                    return Ok(Some((found.start(), found.end())));
                }
                Some(found) if found.end() - found.start() > OVERLAP => {
                    return Ok(Some((found.start(), found.end())));
                }
                _ if end == line.len() => return Ok(None),
                _ => {}
            }
            from = line.floor_char_boundary(end.saturating_sub(OVERLAP).max(from + 4));
            to = end + WINDOW;
        }
    }

    /// Counts bytes that are looked at next, and looks at the clock now and then.
    fn spend(&mut self, bytes: usize) -> io::Result<()> {
        self.n_looked += bytes;
        if self.n_looked >= WINDOW {
            self.n_looked = 0;
            if self.until.is_some_and(|until| now() >= until) {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the search takes too long"));
            }
        }
        Ok(())
    }

    /// Tells whether a short text can hold what is looked for: most do not, and are looked at once.
    fn may_be_in(&mut self, text: &str) -> io::Result<bool> {
        let is_one = || memchr::memchr(b'\n', text.as_bytes()).is_none();
        if text.len() > WINDOW || !(self.query.has_no_anchors || is_one()) {
            return Ok(true);
        }
        self.spend(text.len() + LINE)?;
        Ok(self.query.regex.is_match(text))
    }

    fn look(&mut self, events: &Events<'_>, node: Node, is_name: bool) -> io::Result<()> {
        let text = events.text(node)?;
        if !self.may_be_in(&text)? {
            return Ok(());
        }
        for (position, line) in text.lines().enumerate() {
            if self.is_full {
                break;
            }
            if let Some((from, to)) = self.in_line(line)? {
                if self.n_before < self.skip {
                    self.n_before += 1;
                    continue;
                }
                let path = events.path()?.as_str().to_owned();
                let index = events.item();
                self.add(path, index, snippet(line, from, to), position + 1, is_name);
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        path: String,
        index: Option<usize>,
        snippet: String,
        line: usize,
        is_name: bool,
    ) {
        self.n_before += 1;
        if self.n_before <= self.skip {
            return;
        }
        let mut hit = Hit { path, index, snippet, line, is_name, is_cut: false };
        let is_escaped = self.is_escaped;
        let cost = |hit: &Hit| {
            let json = serde_json::to_vec(hit).unwrap_or_default();
            json.len() + 1 + if is_escaped { text::n_escapes(&json) } else { 0 }
        };
        let is_first = self.hits.hits.is_empty();
        if is_first {
            hit.cut(self.room, cost);
        }
        let cost = cost(&hit);
        if !is_first && cost > self.room || self.hits.hits.len() == MAX_HITS {
            self.is_full = true;
            self.hits.next_skip = Some(self.n_before - 1);
            return;
        }
        self.room = self.room.saturating_sub(cost);
        self.hits.hits.push(hit);
    }
}

/// Returns what was found with some characters around it; `…` stands for what is left out.
fn snippet(line: &str, from: usize, to: usize) -> String {
    let (before, rest) = line.split_at_checked(from).unwrap_or((line, ""));
    let (found, after) = rest.split_at_checked(to.saturating_sub(from)).unwrap_or((rest, ""));
    let start = before.grapheme_indices(true).rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    let start = before.ceil_char_boundary(start.max(before.len().saturating_sub(AROUND * 32)));
    let shown = |text: &str, n_chars: usize| -> (usize, bool) {
        let end = text.grapheme_indices(true).nth(n_chars).map_or(text.len(), |(at, _)| at);
        (end.min(n_chars * 8), end < text.len())
    };
    let (found_end, is_cut) = shown(found, 2 * AROUND);
    let (after_end, is_more) = if is_cut { (0, true) } else { shown(after, AROUND) };
    let mut out = String::new();
    if start > 0 {
        out.push('…');
    }
    out.push_str(before.get(start..).unwrap_or(""));
    out.push_str(upto(found, found_end));
    out.push_str(upto(after, after_end));
    if is_more {
        out.push('…');
    }
    out
}

/// Returns the beginning of `text`, at most `end` bytes of it.
fn upto(text: &str, end: usize) -> &str {
    text.get(..text.floor_char_boundary(end)).unwrap_or(text)
}

#[cfg(test)]
mod tests;
