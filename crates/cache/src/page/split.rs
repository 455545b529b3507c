//! Where to cut a string or a text.

use unicode_segmentation::{GraphemeCursor, GraphemeIncomplete};

use crate::json::text::{Atom, encode, first_atom, plain_len};

/// Bytes behind the room of a piece that are needed to judge its end: one character, escaped.
pub(super) const LOOKAHEAD: usize = 16;
/// How far before the end of a piece its last character is looked for first.
const TAIL: usize = 256;

/// How text stands in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// The inside of a JSON string: goes out as it is.
    Json,
    /// Plain: is made a JSON string on its way out.
    Plain,
}

/// A piece of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Its bytes in the body.
    pub(super) bytes: usize,
    /// Whether it ends inside a character, which then is longer than a piece.
    pub(super) is_inside: bool,
}

impl Writing {
    fn atom(self, raw: &[u8]) -> Option<Atom> {
        match self {
            Self::Json => first_atom(raw),
            Self::Plain if raw.first() == Some(&b'\\') => Some(Atom { character: '\\', bytes: 1 }),
            Self::Plain => first_atom(raw),
        }
    }

    /// Returns the bytes that a quote, backslash, control character or escape takes on its way out.
    fn cost(self, atom: Atom, raw: &[u8], is_escaped: bool) -> usize {
        match self {
            Self::Json => {
                let n_escapes = match raw.get(1) {
                    Some(b'"' | b'\\') => 2,
                    _ if atom.bytes == 12 => 2,
                    _ => 1,
                };
                atom.bytes + if is_escaped { n_escapes } else { 0 }
            }
            Self::Plain => match (atom.character, is_escaped) {
                ('\n' | '\r' | '\t', true) => 3,
                ('"' | '\\', true) => 4,
                ('\n' | '\r' | '\t' | '"' | '\\', false) => 2,
                (_, true) => 7,
                (_, false) => 6,
            },
        }
    }

    fn decode(self, raw: &[u8]) -> String {
        let mut text = String::new();
        let mut rest = raw;
        while let Some(atom) = self.atom(rest) {
            text.push(atom.character);
            rest = rest.get(atom.bytes..).unwrap_or(&[]);
        }
        text
    }

    /// Appends a piece as a JSON string.
    pub(super) fn write(self, raw: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Json => {
                out.push(b'"');
                out.extend_from_slice(raw);
                out.push(b'"');
            }
            Self::Plain => encode(&String::from_utf8_lossy(raw), out),
        }
    }
}

/// Returns the first piece of `raw` that takes at most `room` bytes without its quotes; `None` when
/// not even one character does.
///
/// `raw` is all that is left, or at least `room` and [`LOOKAHEAD`] bytes of it. Cuts behind a line
/// feed if one stands in the second half of the piece, else between two characters as people see
/// them, and inside one only if it is longer than the piece.
pub(super) fn cut(raw: &[u8], room: usize, writing: Writing, is_escaped: bool) -> Option<Cut> {
    let mut at = 0;
    let mut taken = 0;
    let mut line_end = None;
    // The ends of whole characters some way back: from there the last one is looked for.
    let mut anchors = [0; 2];
    loop {
        let rest = raw.get(at..)?;
        if rest.is_empty() {
            return Some(Cut { bytes: at, is_inside: false });
        }
        let [_, last] = anchors;
        if at - last >= TAIL {
            anchors = [last, at];
        }
        let run = whole_chars(rest, plain_len(rest).min(room - taken).min(TAIL));
        if run > 0 {
            at += run;
            taken += run;
            continue;
        }
        let atom = writing.atom(rest)?;
        let is_plain = rest.first().is_some_and(|byte| *byte >= 0x80);
        let cost = if is_plain { atom.bytes } else { writing.cost(atom, rest, is_escaped) };
        if taken + cost > room || is_ascii_plain(rest) {
            break;
        }
        at += atom.bytes;
        taken += cost;
        if atom.character == '\n' {
            line_end = Some((at, taken));
        }
    }
    if at == 0 {
        return None;
    }
    if let Some((end, taken)) = line_end
        && taken * 2 >= room
    {
        return Some(Cut { bytes: end, is_inside: false });
    }
    Some(between_characters(raw, at, anchors, writing))
}

fn is_ascii_plain(rest: &[u8]) -> bool {
    rest.first().is_some_and(|byte| (0x20..0x80).contains(byte) && !matches!(byte, b'"' | b'\\'))
}

/// Returns the largest length up to `limit` at which no UTF-8 sequence is cut.
fn whole_chars(bytes: &[u8], limit: usize) -> usize {
    let mut limit = limit;
    while limit > 0 && bytes.get(limit).is_some_and(|byte| byte & 0xc0 == 0x80) {
        limit -= 1;
    }
    limit
}

/// Moves a cut at `at` back to where a character begins.
fn between_characters(raw: &[u8], at: usize, anchors: [usize; 2], writing: Writing) -> Cut {
    let behind = raw.get(at..).unwrap_or(&[]);
    let next = writing.atom(behind).map_or(0, |atom| atom.bytes);
    let [anchor, _] = anchors;
    for start in [anchor, 0] {
        let text = writing.decode(raw.get(start..at).unwrap_or(&[]));
        let with_next = writing.decode(raw.get(start..at + next).unwrap_or(&[]));
        // Numbers the text as if more came before it, so that the cursor says when it needs that.
        let shift = start;
        let mut cursor = GraphemeCursor::new(shift + text.len(), shift + with_next.len(), true);
        let boundary = match cursor.is_boundary(&with_next, shift) {
            Ok(true) => Ok(Some(shift + text.len())),
            Ok(false) => cursor.prev_boundary(&with_next, shift),
            Err(incomplete) => Err(incomplete),
        };
        match boundary {
            Ok(Some(boundary)) if boundary > shift => {
                let kept = text.get(boundary - shift..).unwrap_or("").chars().count();
                return Cut { bytes: back(raw, start, at, kept, writing), is_inside: false };
            }
            Ok(_) | Err(GraphemeIncomplete::PreContext(_) | GraphemeIncomplete::PrevChunk) => {}
            Err(GraphemeIncomplete::NextChunk | GraphemeIncomplete::InvalidOffset) => break,
        }
    }
    Cut { bytes: at, is_inside: next > 0 }
}

/// Returns the offset `n_chars` characters before `at`.
fn back(raw: &[u8], start: usize, at: usize, n_chars: usize, writing: Writing) -> usize {
    if n_chars == 0 {
        return at;
    }
    let mut ends = vec![start];
    let mut end = start;
    while end < at
        && let Some(atom) = writing.atom(raw.get(end..at).unwrap_or(&[]))
    {
        end += atom.bytes;
        ends.push(end);
    }
    ends.len().checked_sub(n_chars + 1).and_then(|last| ends.get(last)).copied().unwrap_or(start)
}

#[cfg(test)]
mod tests;
