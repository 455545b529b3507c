//! From a value to JSON that every reader takes: no NaN, no infinity, valid UTF-8.

use jaq_json::{Num, Val};

use super::number;
use crate::filter::limits::Stop;

/// How deep a value may nest that is turned into text.
pub(in crate::filter) const DEPTH: usize = 10_000;

/// How long a value in a message may be, in bytes.
pub(super) const MESSAGE: usize = 1024;

/// How long a value in an error of jq's form may be.
const BRIEF: usize = 30;

/// Why writing ended too soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) enum TooMuch {
    Bytes,
    Depth,
}

/// Writes a value, up to so many bytes and so deep.
pub(in crate::filter) fn json(
    value: &Val,
    out: &mut Vec<u8>,
    max_len: usize,
    depth: usize,
) -> Result<(), TooMuch> {
    if out.len() > max_len {
        return Err(TooMuch::Bytes);
    }
    let inner = depth.checked_sub(1);
    match value {
        Val::Null => out.extend_from_slice(b"null"),
        Val::Bool(true) => out.extend_from_slice(b"true"),
        Val::Bool(false) => out.extend_from_slice(b"false"),
        Val::Num(Num::Float(float)) => number::print(*float, out),
        Val::Num(Num::Dec(text)) => out.extend_from_slice(text.as_bytes()),
        Val::Num(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Val::TStr(text) | Val::BStr(text) => string(text, out),
        Val::Arr(items) => {
            let inner = inner.ok_or(TooMuch::Depth)?;
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                json(item, out, max_len, inner)?;
            }
            out.push(b']');
        }
        Val::Obj(entries) => {
            let inner = inner.ok_or(TooMuch::Depth)?;
            out.push(b'{');
            for (at, (key, item)) in entries.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                json(key, out, max_len, inner)?;
                out.push(b':');
                json(item, out, max_len, inner)?;
            }
            out.push(b'}');
        }
    }
    if out.len() > max_len { Err(TooMuch::Bytes) } else { Ok(()) }
}

/// Writes a string with its quotes and the escapes that jq writes.
pub(in crate::filter) fn string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut plain = 0;
    for (at, byte) in text.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\t' => b"\\t",
            b'\r' => b"\\r",
            0x08 => b"\\b",
            0x0c => b"\\f",
            0x00..=0x1f | 0x7f => b"",
            _ => continue,
        };
        out.extend_from_slice(text.get(plain..at).unwrap_or_default());
        plain = at + 1;
        if escape.is_empty() {
            out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
        } else {
            out.extend_from_slice(escape);
        }
    }
    out.extend_from_slice(text.get(plain..).unwrap_or_default());
    out.push(b'"');
}

/// Writes a value that a filter goes on to use; stops the run where it would be too large.
pub(in crate::filter) fn grown(value: &Val) -> Vec<u8> {
    let mut out = Vec::new();
    match json(value, &mut out, super::GROWTH, DEPTH) {
        Ok(()) => out,
        Err(TooMuch::Bytes) => Stop::Memory.now(),
        Err(TooMuch::Depth) => Stop::Depth.now(),
    }
}

/// Writes what a filter failed with: a string as it reads, anything else as JSON.
pub(in crate::filter) fn message(value: &Val) -> String {
    match value {
        Val::TStr(text) => cut(&String::from_utf8_lossy(text), MESSAGE),
        _ => bounded(value, MESSAGE),
    }
}

fn cut(text: &str, len: usize) -> String {
    if text.len() <= len {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(len.saturating_sub(3));
    format!("{}...", text.get(..end).unwrap_or_default())
}

/// Writes a value for a message, cut where it gets too long.
pub(in crate::filter) fn bounded(value: &Val, len: usize) -> String {
    let mut out = Vec::new();
    let written = json(value, &mut out, len, DEPTH);
    let text = String::from_utf8_lossy(&out);
    if written.is_err() && text.len() <= len {
        return format!("{text}...");
    }
    cut(&text, len)
}

/// Writes the first characters of a value.
pub(super) fn brief(value: &Val) -> String {
    bounded(value, BRIEF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_escaped_as_jq_does() {
        let mut out = Vec::new();
        string("a\"\\\n\u{1}\u{7f}é/".as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), r#""a\"\\\n\u0001\u007fé/""#);
    }

    #[test]
    fn a_long_value_is_cut_in_a_message() {
        let value = Val::from("é".repeat(100));
        let text = bounded(&value, 30);
        assert!(text.len() <= 32 && text.ends_with("..."), "{text}");
    }
}
