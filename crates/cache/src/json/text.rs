//! Text as JSON writes it, and back.

use std::borrow::Cow;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Returns how many bytes stand before the first quote, backslash or control character.
pub(crate) fn plain_len(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut at = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let hits = (control | zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5c))) & HIGHS;
        if hits != 0 {
            return at + usize::try_from(hits.trailing_zeros() / 8).unwrap_or(0);
        }
        at += 8;
    }
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    at + rest.iter().position(is_special).unwrap_or(rest.len())
}

const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word
}

/// Returns how many bytes of some JSON need one more byte inside a JSON string.
pub(crate) fn n_escapes(json: &[u8]) -> usize {
    json.chunks(255)
        .map(|part| {
            let is_escaped = |byte: u8| byte == b'"' || byte == b'\\' || byte < 0x20;
            usize::from(part.iter().map(|byte| u8::from(is_escaped(*byte))).sum::<u8>())
        })
        .sum()
}

/// One character of a string as JSON writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Atom {
    pub(crate) character: char,
    /// Bytes of the body that say it.
    pub(crate) bytes: usize,
}

/// Returns the first character of `raw`, the inside of a valid JSON string.
pub(crate) fn first_atom(raw: &[u8]) -> Option<Atom> {
    let (&first, rest) = raw.split_first()?;
    if first != b'\\' {
        let bytes = match first {
            0..0x80 => return Some(Atom { character: char::from(first), bytes: 1 }),
            0x80..0xe0 => 2,
            0xe0..0xf0 => 3,
            _ => 4,
        };
        let character = std::str::from_utf8(raw.get(..bytes)?).ok()?.chars().next()?;
        return Some(Atom { character, bytes });
    }
    let character = match rest.first()? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return long_escape(raw),
        &other => char::from(other),
    };
    Some(Atom { character, bytes: 2 })
}

fn long_escape(raw: &[u8]) -> Option<Atom> {
    let unit = |digits: Option<&[u8]>| -> Option<u16> {
        u16::from_str_radix(std::str::from_utf8(digits?).ok()?, 16).ok()
    };
    let first = unit(raw.get(2..6))?;
    if !(0xd800..0xe000).contains(&first) {
        return Some(Atom { character: char::from_u32(u32::from(first))?, bytes: 6 });
    }
    let second = unit(raw.get(8..12))?;
    let character = char::decode_utf16([first, second]).next()?.ok()?;
    Some(Atom { character, bytes: 12 })
}

/// Returns what `raw`, the inside of a valid JSON string, says.
pub(crate) fn decode(raw: &[u8]) -> Cow<'_, str> {
    if !raw.contains(&b'\\') {
        return String::from_utf8_lossy(raw);
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while !rest.is_empty() {
        let n_plain = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        let (plain, from_escape) = rest.split_at(n_plain);
        text.push_str(&String::from_utf8_lossy(plain));
        let Some(atom) = first_atom(from_escape) else { break };
        text.push(atom.character);
        rest = from_escape.get(atom.bytes..).unwrap_or(&[]);
    }
    Cow::Owned(text)
}

/// Appends `text` as a JSON string, quotes included.
pub(crate) fn encode(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let n_plain = plain_len(rest);
        out.extend_from_slice(rest.get(..n_plain).unwrap_or(&[]));
        let Some(&byte) = rest.get(n_plain) else { break };
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.extend_from_slice(&[b'\\', byte]),
        }
        rest = rest.get(n_plain + 1..).unwrap_or(&[]);
    }
    out.push(b'"');
}
