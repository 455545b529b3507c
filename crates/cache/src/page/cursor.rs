//! Where to go on, as a word that only this entry understands.

use super::Position;
use crate::json::View;

const VERSION: u8 = 1;
const N_BYTES: usize = 30;
/// Characters of a cursor, always the same.
pub(super) const LENGTH: usize = N_BYTES / 3 * 4;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Why a cursor cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCursor {
    /// It is not one, is damaged, or belongs to another entry or to an earlier body of this one.
    #[error("not a cursor of this entry")]
    Damaged,
    /// It belongs to another path.
    #[error("the cursor belongs to another path; leave `path` out or start at page 1")]
    OtherPath,
    /// It belongs to another page size.
    #[error("the cursor belongs to another page size; leave the size out or start at page 1")]
    OtherSize,
}

/// What a cursor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) start: usize,
    pub(super) is_auto: bool,
    pub(super) bytes: usize,
    pub(super) position: Position,
}

impl Cursor {
    /// Returns the cursor as text: version, fields and a checksum over them and the binding, in
    /// URL-safe Base64.
    pub(super) fn encode(&self, binding: u128, view: &View<'_>) -> String {
        let mut bytes = Vec::with_capacity(N_BYTES);
        bytes.push(VERSION);
        bytes.push(u8::from(self.is_auto));
        for field in [
            self.start,
            self.bytes,
            self.position.ordinal,
            self.position.offset,
            self.position.within,
        ] {
            bytes.extend_from_slice(&u32::try_from(field).unwrap_or(u32::MAX).to_be_bytes());
        }
        let sum = checksum(&bytes, binding, view.index().body_bytes());
        bytes.extend_from_slice(&sum.to_be_bytes());
        write(&bytes)
    }

    pub(super) fn decode(text: &str, binding: u128, view: &View<'_>) -> Result<Self, BadCursor> {
        let bytes = read(text).ok_or(BadCursor::Damaged)?;
        let (fields, sum) = bytes.split_last_chunk::<8>().ok_or(BadCursor::Damaged)?;
        if checksum(fields, binding, view.index().body_bytes()) != u64::from_be_bytes(*sum) {
            return Err(BadCursor::Damaged);
        }
        let [VERSION, is_auto, numbers @ ..] = fields else { return Err(BadCursor::Damaged) };
        let mut numbers = numbers
            .as_chunks::<4>()
            .0
            .iter()
            .map(|four| usize::try_from(u32::from_be_bytes(*four)).unwrap_or(usize::MAX));
        let mut next = || numbers.next().ok_or(BadCursor::Damaged);
        Ok(Self {
            start: next()?,
            is_auto: *is_auto == 1,
            bytes: next()?,
            position: Position { ordinal: next()?, offset: next()?, within: next()? },
        })
    }
}

/// FNV-1a: tells a cursor of another entry or a mistyped one; it is not a seal.
fn checksum(fields: &[u8], binding: u128, body_bytes: usize) -> u64 {
    let body_bytes = u64::try_from(body_bytes).unwrap_or(u64::MAX);
    fields
        .iter()
        .chain(&binding.to_be_bytes())
        .chain(&body_bytes.to_be_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

fn write(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(LENGTH);
    for three in bytes.as_chunks::<3>().0 {
        let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        for shift in [18, 12, 6, 0] {
            let letter = ALPHABET.get(bits >> shift & 63).copied().unwrap_or(b'-');
            text.push(char::from(letter));
        }
    }
    text
}

fn read(text: &str) -> Option<[u8; N_BYTES]> {
    if text.len() != LENGTH {
        return None;
    }
    let mut out = [0; N_BYTES];
    for (four, three) in text.as_bytes().as_chunks::<4>().0.iter().zip(out.as_chunks_mut::<3>().0) {
        let mut bits = 0_u32;
        for letter in four {
            let value = ALPHABET.iter().position(|other| other == letter)?;
            bits = bits << 6 | u32::try_from(value).ok()?;
        }
        let [_, a, b, c] = bits.to_be_bytes();
        *three = [a, b, c];
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::scan;

    #[test]
    fn a_cursor_is_good_for_its_entry_alone_and_for_no_other_text() {
        let body = b"[1,2,3]".as_slice();
        let index = scan(body).unwrap();
        let view = View::new(&body, &index);
        let position = Position { ordinal: 2, offset: 5, within: 0 };
        let cursor = Cursor { start: 0, is_auto: true, bytes: 32768, position };
        let text = cursor.encode(5, &view);
        assert_eq!(text.len(), LENGTH);
        assert_eq!(Cursor::decode(&text, 5, &view), Ok(cursor));
        assert_eq!(Cursor::decode(&text, 6, &view), Err(BadCursor::Damaged));
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            assert_eq!(Cursor::decode(&other, 5, &view), Err(BadCursor::Damaged), "{other}");
        }
        for other in ["", "garbage", &text[1..], &format!("{text}A"), &"é".repeat(20)] {
            assert_eq!(Cursor::decode(other, 5, &view), Err(BadCursor::Damaged), "{other}");
        }
    }
}
