//! The validating pass, which builds the index as it goes.

mod names;
mod text;
mod token;

use std::fmt;

use self::{
    names::Names,
    token::{NumberPart, StringPart},
};
use super::{
    derived::AllDerived,
    index::{Index, Kind, Mark, Node, Record, STEP, to_u32, to_usize},
    invalid::{Invalid, Why},
};

/// Most containers inside each other that a body may have.
pub const MAX_DEPTH: usize = 512;

/// Validates the whole of a JSON body and returns its index.
///
/// # Errors
///
/// Names the first byte that RFC 8259 does not allow there. Member names must be unique, strings
/// must be characters (no lone surrogates), and containers nest at most [`MAX_DEPTH`] deep.
///
/// # Examples
///
/// ```
/// let index = raincheck_cache::scan(br#"{"items":[1,2,3]}"#)?;
/// assert_eq!(index.root().kind, raincheck_cache::Kind::Object);
/// let refused = raincheck_cache::scan(b"[1,\nNaN]").unwrap_err();
/// assert_eq!((refused.line, refused.column), (2, 1));
/// # Ok::<(), raincheck_cache::Invalid>(())
/// ```
pub fn scan(body: &[u8]) -> Result<Index, Invalid> {
    let mut scanner = Scanner::new();
    scanner.push(body)?;
    scanner.finish()
}

/// Checks that a body is UTF-8 and returns the index of its lines.
///
/// # Errors
///
/// Names the first byte that is not UTF-8.
pub fn scan_text(body: &[u8]) -> Result<Index, Invalid> {
    let mut scanner = Scanner::text();
    scanner.push(body)?;
    scanner.finish()
}

/// Validates a body that may arrive in pieces, cut anywhere.
pub struct Scanner {
    is_text: bool,
    state: State,
    /// Offset of the first byte of the piece at hand.
    base: usize,
    utf8: token::Utf8,
    line: usize,
    line_start: usize,
    frames: Vec<Frame>,
    names: Names,
    /// Marks of the containers that are open, the outermost first.
    pending: Vec<Mark>,
    records: Vec<Record>,
    marks: Vec<Mark>,
    escapes: usize,
    token: token::Token,
    root: Option<Node>,
    failed: Option<Invalid>,
}

impl fmt::Debug for Scanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scanner")
            .field("offset", &self.base)
            .field("state", &self.state)
            .field("depth", &self.frames.len())
            .finish_non_exhaustive()
    }
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A value: the root, or that of a member.
    Value,
    /// An item of an array, or its end.
    FirstItem,
    /// An item of an array.
    Item,
    /// A member, or the end of the object.
    FirstName,
    /// A member.
    Name,
    Colon,
    /// A comma, or the end of the container.
    After,
    /// White space.
    End,
    /// Inside a string.
    String(StringPart),
    /// Inside a number.
    Number(NumberPart),
    /// Inside `true`, `false` or `null`: what is still to come.
    Literal(&'static [u8]),
}

/// A container that is open.
struct Frame {
    start: usize,
    is_object: bool,
    count: u32,
    first_mark: usize,
    last_mark: usize,
    /// Bytes inside that have a record of their own, and how many such values there are.
    covered: usize,
    n_large: u32,
    names: names::Scope,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// Returns a scanner for one JSON value.
    #[must_use]
    pub fn new() -> Self {
        Self {
            is_text: false,
            state: State::Value,
            base: 0,
            utf8: token::Utf8::default(),
            line: 1,
            line_start: 0,
            frames: Vec::new(),
            names: Names::new(),
            pending: Vec::new(),
            records: Vec::new(),
            marks: Vec::new(),
            escapes: 0,
            token: token::Token::default(),
            root: None,
            failed: None,
        }
    }

    /// Returns a scanner for plain text: any UTF-8.
    #[must_use]
    pub fn text() -> Self {
        Self { is_text: true, ..Self::new() }
    }

    /// Returns the number of bytes seen.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.base
    }

    /// Returns whether no byte was seen.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.base == 0
    }

    /// Takes the next piece of the body.
    ///
    /// # Errors
    ///
    /// When the body so far cannot become valid; further pieces are then refused the same way.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), Invalid> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let outcome = self.take(piece);
        self.failed = outcome.err();
        outcome
    }

    /// Ends the body.
    ///
    /// # Errors
    ///
    /// When the body is not valid, or ends too early.
    pub fn finish(mut self) -> Result<Index, Invalid> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        if !self.utf8.is_complete() {
            return Err(self.invalid(self.base, Why::Utf8));
        }
        if self.is_text {
            return Ok(self.finish_text());
        }
        self.end_of_body()?;
        let Some(root) = self.root else {
            let why = if self.state == State::Value && self.frames.is_empty() {
                Why::Empty
            } else {
                Why::Truncated
            };
            return Err(self.invalid(self.base, why));
        };
        Ok(self.into_index(root, 0))
    }

    fn into_index(mut self, root: Node, n_lines: usize) -> Index {
        self.records.sort_unstable_by_key(|record| record.start);
        self.records.shrink_to_fit();
        self.marks.shrink_to_fit();
        Index {
            root,
            len: self.base,
            n_lines,
            records: self.records,
            marks: self.marks,
            derived: AllDerived::default(),
        }
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), Invalid> {
        let limit = to_usize(u32::MAX);
        if piece.len() >= limit || self.base >= limit - piece.len() {
            return Err(self.invalid(self.base, Why::TooLong));
        }
        let valid = self.utf8.check(piece);
        let good = piece.get(..valid.unwrap_or_else(|at| at)).unwrap_or(piece);
        if self.is_text {
            self.lines(good);
        } else {
            self.structure(good)?;
        }
        if let Err(at) = valid {
            return Err(self.invalid(self.base + at, Why::Utf8));
        }
        self.base += piece.len();
        Ok(())
    }

    pub(super) const fn invalid(&self, offset: usize, why: Why) -> Invalid {
        let column = offset.saturating_sub(self.line_start) + 1;
        Invalid { offset, line: self.line, column, why }
    }

    fn structure(&mut self, piece: &[u8]) -> Result<(), Invalid> {
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            if let Some(next) = self.whole(piece, at, byte)? {
                at = next;
                continue;
            }
            match self.state {
                State::String(part) => at = self.string(piece, at, part)?,
                State::Number(part) => at = self.number(piece, at, part)?,
                State::Literal(rest) => at = self.literal(piece, at, rest)?,
                State::Value
                | State::FirstItem
                | State::Item
                | State::FirstName
                | State::Name
                | State::Colon
                | State::After
                | State::End => {
                    match byte {
                        b' ' => {}
                        b'\n' | b'\r' | b'\t' => self.blank(byte, self.base + at),
                        _ => self.byte(byte, self.base + at)?,
                    }
                    at += 1;
                }
            }
        }
        Ok(())
    }

    const fn blank(&mut self, byte: u8, offset: usize) {
        self.escapes += 1;
        if byte == b'\n' {
            self.line += 1;
            self.line_start = offset + 1;
        }
    }

    /// Takes one byte that is neither blank nor inside a string, number or literal.
    fn byte(&mut self, byte: u8, offset: usize) -> Result<(), Invalid> {
        match (self.state, byte) {
            (State::After, b',') => {
                let is_object = self.frames.last().is_some_and(|frame| frame.is_object);
                self.state = if is_object { State::Name } else { State::Item };
                Ok(())
            }
            (State::Colon, b':') => {
                self.state = State::Value;
                Ok(())
            }
            (State::After | State::FirstItem, b']') => self.close(offset, false),
            (State::After | State::FirstName, b'}') => self.close(offset, true),
            (State::FirstName | State::Name, b'"') => {
                self.child(offset);
                self.open_string(offset, true);
                Ok(())
            }
            (State::FirstItem | State::Item, _) => {
                self.child(offset);
                self.value(byte, offset)
            }
            (State::Value, _) => self.value(byte, offset),
            (State::FirstName | State::Name, _) => Err(self.invalid(offset, Why::Name)),
            (State::Colon, _) => Err(self.invalid(offset, Why::Colon)),
            (State::End, _) => Err(self.invalid(offset, Why::Trailing)),
            (State::After | State::String(_) | State::Number(_) | State::Literal(_), _) => {
                Err(self.invalid(offset, Why::Comma))
            }
        }
    }

    fn value(&mut self, byte: u8, offset: usize) -> Result<(), Invalid> {
        match byte {
            b'"' => self.open_string(offset, false),
            b'{' => self.open(offset, true)?,
            b'[' => self.open(offset, false)?,
            b't' => self.open_literal(offset, b"rue"),
            b'f' => self.open_literal(offset, b"alse"),
            b'n' => self.open_literal(offset, b"ull"),
            b'-' | b'0'..=b'9' => self.open_number(byte, offset),
            _ => return Err(self.invalid(offset, Why::Value)),
        }
        Ok(())
    }

    /// Notes that an item or a member begins.
    fn child(&mut self, offset: usize) {
        let Some(frame) = self.frames.last_mut() else { return };
        if frame.count > 0 && offset - frame.last_mark >= STEP {
            frame.last_mark = offset;
            let escapes = to_u32(self.escapes);
            self.pending.push(Mark { ordinal: frame.count, offset: to_u32(offset), escapes });
        }
        frame.count += 1;
    }

    fn open(&mut self, offset: usize, is_object: bool) -> Result<(), Invalid> {
        if self.frames.len() >= MAX_DEPTH {
            return Err(self.invalid(offset, Why::TooDeep));
        }
        self.frames.push(Frame {
            start: offset,
            is_object,
            count: 0,
            first_mark: self.pending.len(),
            last_mark: offset,
            covered: 0,
            n_large: 0,
            names: self.names.open(),
        });
        self.state = if is_object { State::FirstName } else { State::FirstItem };
        Ok(())
    }

    fn close(&mut self, offset: usize, is_object: bool) -> Result<(), Invalid> {
        let Some(frame) = self.frames.pop_if(|frame| frame.is_object == is_object) else {
            return Err(self.invalid(offset, Why::Comma));
        };
        if let Err(twice) = self.names.close(frame.names) {
            return Err(self.invalid(twice, Why::DuplicateName));
        }
        let kind = if is_object { Kind::Object } else { Kind::Array };
        let node = Node { kind, start: frame.start, end: offset + 1 };
        if node.bytes() >= STEP {
            if frame.n_large != 1 || node.bytes() - frame.covered >= STEP {
                let marks = self.pending.drain(frame.first_mark..);
                let n_marks = to_u32(marks.len());
                let first_mark = to_u32(self.marks.len());
                self.marks.extend(marks);
                self.record(
                    node,
                    Record { count: frame.count, first_mark, n_marks, ..blank(node) },
                );
            } else {
                self.pending.truncate(frame.first_mark);
                self.cover(frame.covered);
            }
        }
        self.ended(node);
        Ok(())
    }

    fn record(&mut self, node: Node, record: Record) {
        self.records.push(record);
        self.cover(node.bytes());
    }

    fn cover(&mut self, bytes: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.covered += bytes;
            frame.n_large += 1;
        }
    }

    /// Notes that a value has ended.
    fn ended(&mut self, node: Node) {
        if self.frames.is_empty() {
            self.root = Some(node);
            self.state = State::End;
        } else {
            self.state = State::After;
        }
    }
}

/// Returns a record of `node` without children.
fn blank(node: Node) -> Record {
    Record { start: to_u32(node.start), end: to_u32(node.end), count: 0, first_mark: 0, n_marks: 0 }
}

#[cfg(test)]
mod tests;
