//! Values on the way through a plan, and how they are written.

use std::borrow::Cow;

use crate::filter::value::{read, write};
use crate::json::Node;

/// A value of the body, or one that was made.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Node(Node),
    /// What a path finds where there is nothing.
    Null,
    Count(usize),
    /// An array or object that was made, as JSON; with the number of its items if it is an array.
    Made(Vec<u8>, Option<usize>),
}

/// Writes JSON of the body as the engine would: compact, each string with the escapes that it needs.
pub(super) fn compact(raw: &[u8], out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| !matches!(byte, b'\\' | 0x7f | 0x00..=b' ');
    if raw.iter().all(is_plain) {
        out.extend_from_slice(raw);
        return;
    }
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            b'"' => {
                let len = string_len(raw.get(at..).unwrap_or_default());
                let inside = raw.get(at + 1..(at + len).saturating_sub(1)).unwrap_or_default();
                if inside.iter().any(|byte| matches!(byte, b'\\' | 0x7f)) {
                    write::string(&decoded(inside), out);
                } else {
                    out.extend_from_slice(raw.get(at..at + len).unwrap_or_default());
                }
                at += len;
            }
            byte => {
                out.push(*byte);
                at += 1;
            }
        }
    }
}

/// The length of the string that begins here, quotes included.
fn string_len(raw: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = raw.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    raw.len()
}

/// What the inside of a string says.
pub(super) fn decoded(inside: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = inside.iter().position(|byte| *byte == b'\\') else {
        return Cow::Borrowed(inside);
    };
    let mut out = inside.get(..first).unwrap_or_default().to_vec();
    let mut at = first;
    while let Some(byte) = inside.get(at) {
        at += 1;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let (char, len) = read::escape(inside.get(at..).unwrap_or_default())
            .unwrap_or((char::REPLACEMENT_CHARACTER, 1));
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        at += len;
    }
    Cow::Owned(out)
}
