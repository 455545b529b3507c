//! Strings, numbers and literals, which may be cut between two pieces.

use super::{Scanner, State, blank};
use crate::json::{
    index::{Kind, Node, STEP, to_u32},
    invalid::{Invalid, Why},
    text::plain_len,
};

/// Where in a string a piece ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringPart {
    Plain,
    /// Behind a backslash.
    Escape,
    /// Inside the digits of `\u`: how many came, and their value.
    Hex(u8, u16),
    /// Behind the first half of a surrogate pair.
    Pair,
    /// Behind the backslash that follows it.
    PairEscape,
}

/// Where in a number a piece ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberPart {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
}

/// The string, number or literal at hand.
#[derive(Default)]
pub(super) struct Token {
    start: usize,
    is_name: bool,
    /// What a name says so far, if it has escapes or came in pieces.
    name: Vec<u8>,
    is_split: bool,
    /// First half of a surrogate pair.
    high: Option<u16>,
}

/// A character cut between two pieces.
#[derive(Default)]
pub(super) struct Utf8 {
    held: [u8; 4],
    n_held: usize,
}

impl Utf8 {
    pub(super) const fn is_complete(&self) -> bool {
        self.n_held == 0
    }

    /// Checks a piece; says how much of it is good, and whether that is all of it.
    pub(super) fn check(&mut self, piece: &[u8]) -> Result<usize, usize> {
        let mut at = 0;
        while self.n_held > 0 {
            let Some(&byte) = piece.get(at) else { return Ok(at) };
            let Some(slot) = self.held.get_mut(self.n_held) else { return Err(at) };
            *slot = byte;
            at += 1;
            self.n_held += 1;
            match std::str::from_utf8(self.held.get(..self.n_held).unwrap_or(&[])) {
                Ok(_) => self.n_held = 0,
                Err(error) if error.error_len().is_some() => return Err(at - 1),
                Err(_) => {}
            }
        }
        let rest = piece.get(at..).unwrap_or(&[]);
        let (whole, cut) = rest.split_at_checked(cut_char(rest)).unwrap_or((rest, &[]));
        if simdutf8::basic::from_utf8(whole).is_ok() {
            self.hold(cut);
            return Ok(piece.len());
        }
        let Err(error) = std::str::from_utf8(rest) else { return Ok(piece.len()) };
        let good = error.valid_up_to();
        if error.error_len().is_some() {
            return Err(at + good);
        }
        self.hold(rest.get(good..).unwrap_or(&[]));
        Ok(piece.len())
    }

    fn hold(&mut self, tail: &[u8]) {
        for (slot, byte) in self.held.iter_mut().zip(tail) {
            *slot = *byte;
        }
        self.n_held = tail.len();
    }
}

/// Returns where the last character begins if the bytes end inside it, else their number.
fn cut_char(bytes: &[u8]) -> usize {
    for (n_behind, byte) in bytes.iter().rev().take(3).enumerate() {
        let n_bytes = match byte {
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0.. => 4,
            0x80..0xc0 => continue,
            _ => 1,
        };
        return bytes.len() - if n_bytes > n_behind + 1 { n_behind + 1 } else { 0 };
    }
    bytes.len()
}

impl Scanner {
    /// Takes a name, string or number that the piece holds as a whole, which is most of them;
    /// returns where it went on.
    #[inline]
    pub(super) fn whole(
        &mut self,
        piece: &[u8],
        at: usize,
        byte: u8,
    ) -> Result<Option<usize>, Invalid> {
        let is_item = matches!(self.state, State::Item | State::FirstItem);
        if is_item || self.state == State::Value {
            if byte == b'"' {
                return self.whole_string(piece, at, is_item).map(Some);
            }
            if byte.is_ascii_digit() || byte == b'-' {
                let Some(end) = number_end(piece, at) else { return Ok(None) };
                let start = self.base + at;
                if is_item {
                    self.child(start);
                }
                self.ended(Node { kind: Kind::Number, start, end: self.base + end });
                return Ok(Some(end));
            }
            return Ok(None);
        }
        if byte == b'"' && matches!(self.state, State::Name | State::FirstName) {
            let rest = piece.get(at + 1..).unwrap_or(&[]);
            let n_plain = plain_len(rest);
            if rest.get(n_plain) != Some(&b'"') {
                return Ok(None);
            }
            let start = self.base + at;
            self.child(start);
            self.escapes += 2;
            self.add_name(start, rest.get(..n_plain).unwrap_or(&[]))?;
            let has_colon = rest.get(n_plain + 1) == Some(&b':');
            self.state = if has_colon { State::Value } else { State::Colon };
            return Ok(Some(at + n_plain + 2 + usize::from(has_colon)));
        }
        Ok(None)
    }

    /// Takes as much of a string as needs no state: up to its end, a long escape, a fault or the
    /// end of the piece.
    fn whole_string(&mut self, piece: &[u8], from: usize, is_item: bool) -> Result<usize, Invalid> {
        let start = self.base + from;
        if is_item {
            self.child(start);
        }
        self.open_string(start, false);
        let mut at = from + 1;
        loop {
            let rest = piece.get(at..).unwrap_or(&[]);
            let n_plain = plain_len(rest);
            at += n_plain;
            match (rest.get(n_plain), rest.get(n_plain + 1)) {
                (Some(b'"'), _) => {
                    self.escapes += 1;
                    let end = self.base + at + 1;
                    self.string_ended(Node { kind: Kind::String, start, end });
                    return Ok(at + 1);
                }
                (Some(b'\\'), Some(b'"' | b'\\')) => self.escapes += 2,
                (Some(b'\\'), Some(b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => self.escapes += 1,
                _ => return Ok(at),
            }
            at += 2;
        }
    }

    #[inline]
    fn add_name(&mut self, start: usize, name: &[u8]) -> Result<(), Invalid> {
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        if self.names.add(&mut frame.names, name, to_u32(start)) {
            return Err(self.invalid(start, Why::DuplicateName));
        }
        Ok(())
    }

    #[inline]
    fn string_ended(&mut self, node: Node) {
        if node.bytes() >= STEP {
            self.record(node, blank(node));
        }
        self.ended(node);
    }

    pub(super) fn open_string(&mut self, offset: usize, is_name: bool) {
        self.token.start = offset;
        self.token.is_name = is_name;
        self.token.is_split = false;
        self.token.name.clear();
        self.escapes += 1;
        self.state = State::String(StringPart::Plain);
    }

    pub(super) const fn open_literal(&mut self, offset: usize, rest: &'static [u8]) {
        self.token.start = offset;
        self.state = State::Literal(rest);
    }

    pub(super) const fn open_number(&mut self, byte: u8, offset: usize) {
        self.token.start = offset;
        self.state = State::Number(match byte {
            b'-' => NumberPart::Minus,
            b'0' => NumberPart::Zero,
            _ => NumberPart::Whole,
        });
    }

    /// Takes what the piece has of a string from `at` on; returns where it went on.
    pub(super) fn string(
        &mut self,
        piece: &[u8],
        at: usize,
        part: StringPart,
    ) -> Result<usize, Invalid> {
        let Some(&byte) = piece.get(at) else { return Ok(at) };
        let offset = self.base + at;
        match part {
            StringPart::Plain => return self.plain(piece, at),
            StringPart::Escape => self.escape(byte, offset)?,
            StringPart::Hex(n, value) => self.hex(byte, offset, n, value)?,
            StringPart::Pair if byte == b'\\' => {
                self.escapes += 1;
                self.state = State::String(StringPart::PairEscape);
            }
            StringPart::PairEscape if byte == b'u' => {
                self.state = State::String(StringPart::Hex(0, 0));
            }
            StringPart::Pair | StringPart::PairEscape => {
                return Err(self.invalid(offset, Why::LoneSurrogate));
            }
        }
        Ok(at + 1)
    }

    fn plain(&mut self, piece: &[u8], at: usize) -> Result<usize, Invalid> {
        let rest = piece.get(at..).unwrap_or(&[]);
        let n_plain = plain_len(rest);
        let text = rest.get(..n_plain).unwrap_or(&[]);
        let Some(&byte) = rest.get(n_plain) else {
            self.keep(text);
            return Ok(piece.len());
        };
        let offset = self.base + at + n_plain;
        match byte {
            b'"' => self.close_string(text, offset)?,
            b'\\' => {
                self.keep(text);
                self.escapes += 1;
                self.state = State::String(StringPart::Escape);
            }
            _ => return Err(self.invalid(offset, Why::Control)),
        }
        Ok(at + n_plain + 1)
    }

    fn keep(&mut self, text: &[u8]) {
        if self.token.is_name {
            self.token.is_split = true;
            self.token.name.extend_from_slice(text);
        }
    }

    fn keep_char(&mut self, character: char) {
        self.keep(character.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn escape(&mut self, byte: u8, offset: usize) -> Result<(), Invalid> {
        let character = match byte {
            b'"' | b'\\' => {
                self.escapes += 1;
                char::from(byte)
            }
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.token.high = None;
                self.state = State::String(StringPart::Hex(0, 0));
                return Ok(());
            }
            _ => return Err(self.invalid(offset, Why::Escape)),
        };
        self.keep_char(character);
        self.state = State::String(StringPart::Plain);
        Ok(())
    }

    fn hex(&mut self, byte: u8, offset: usize, n: u8, value: u16) -> Result<(), Invalid> {
        let Some(digit) = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok())
        else {
            return Err(self.invalid(offset, Why::Escape));
        };
        let value = value << 4 | digit;
        if n < 3 {
            self.state = State::String(StringPart::Hex(n + 1, value));
            return Ok(());
        }
        let units = match (self.token.high.take(), value) {
            (None, 0xd800..=0xdbff) => {
                self.token.high = Some(value);
                self.state = State::String(StringPart::Pair);
                return Ok(());
            }
            (None, _) => [value, 0],
            (Some(high), _) => [high, value],
        };
        let Some(Ok(character)) = char::decode_utf16(units).next() else {
            return Err(self.invalid(offset, Why::LoneSurrogate));
        };
        self.keep_char(character);
        self.state = State::String(StringPart::Plain);
        Ok(())
    }

    /// Ends the string whose closing quote is at `offset`, with `text` before it.
    fn close_string(&mut self, text: &[u8], offset: usize) -> Result<(), Invalid> {
        self.escapes += 1;
        if self.token.is_name {
            self.state = State::Colon;
            if self.token.is_split {
                self.keep(text);
            }
            let name = if self.token.is_split { self.token.name.as_slice() } else { text };
            let Some(frame) = self.frames.last_mut() else { return Ok(()) };
            if self.names.add(&mut frame.names, name, to_u32(self.token.start)) {
                return Err(self.invalid(self.token.start, Why::DuplicateName));
            }
            return Ok(());
        }
        let start = self.token.start;
        self.string_ended(Node { kind: Kind::String, start, end: offset + 1 });
        Ok(())
    }

    pub(super) fn literal(
        &mut self,
        piece: &[u8],
        at: usize,
        rest: &'static [u8],
    ) -> Result<usize, Invalid> {
        let offset = self.base + at;
        let (Some(byte), Some((want, rest))) = (piece.get(at), rest.split_first()) else {
            return Ok(at);
        };
        if byte != want {
            return Err(self.invalid(self.token.start, Why::Value));
        }
        if rest.is_empty() {
            let kind = if *want == b'l' { Kind::Null } else { Kind::Bool };
            self.ended(Node { kind, start: self.token.start, end: offset + 1 });
        } else {
            self.state = State::Literal(rest);
        }
        Ok(at + 1)
    }

    pub(super) fn number(
        &mut self,
        piece: &[u8],
        from: usize,
        part: NumberPart,
    ) -> Result<usize, Invalid> {
        let mut part = part;
        let mut at = from;
        while let Some(&byte) = piece.get(at) {
            match part.next(byte) {
                Some(next) => part = next,
                None if part.may_end() && !byte.is_ascii_digit() => {
                    let (start, end) = (self.token.start, self.base + at);
                    self.ended(Node { kind: Kind::Number, start, end });
                    return Ok(at);
                }
                None => return Err(self.invalid(self.base + at, Why::Number)),
            }
            at += 1;
        }
        self.state = State::Number(part);
        Ok(at)
    }

    /// Ends a number that nothing follows.
    pub(super) fn end_of_body(&mut self) -> Result<(), Invalid> {
        if let State::Number(part) = self.state
            && self.frames.is_empty()
        {
            if !part.may_end() {
                return Err(self.invalid(self.base, Why::Truncated));
            }
            self.ended(Node { kind: Kind::Number, start: self.token.start, end: self.base });
        }
        Ok(())
    }
}

/// Returns the end of a number that begins at `at` and that something else follows in the piece.
fn number_end(piece: &[u8], at: usize) -> Option<usize> {
    let digits = |mut at: usize| {
        while piece.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let first = at + usize::from(piece.get(at) == Some(&b'-'));
    let mut end = digits(first);
    let has_zero = piece.get(first) == Some(&b'0');
    if end == first || has_zero && end > first + 1 {
        return None;
    }
    if piece.get(end) == Some(&b'.') {
        let fraction = end + 1;
        end = digits(fraction);
        if end == fraction {
            return None;
        }
    }
    let next = piece.get(end)?;
    matches!(next, b',' | b']' | b'}' | b'\n' | b'\r' | b' ').then_some(end)
}

impl NumberPart {
    const fn next(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus, b'1'..=b'9') | (Self::Whole, b'0'..=b'9') => Some(Self::Whole),
            (Self::Zero | Self::Whole, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::Sign),
            (Self::Exponent | Self::Sign | Self::Power, b'0'..=b'9') => Some(Self::Power),
            _ => None,
        }
    }

    const fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Fraction | Self::Power)
    }
}
