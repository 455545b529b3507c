//! From a stream of bytes to log messages, whatever the bytes are.

use std::sync::Arc;

use raincheck_core::log::MAX_LINE;
use raincheck_core::text::{clip, escape};

/// Cuts bytes into lines at `\n`, and lines that are too long into pieces at a character's border.
///
/// It keeps at most one piece in memory, so that no line, however long, stops its reader.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    held: Vec<u8>,
    /// A piece of the current line was already given out.
    is_continued: bool,
}

impl Splitter {
    /// Takes more bytes and gives out the messages they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut emit: impl FnMut(Arc<str>)) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(at);
            self.extend(line, &mut emit);
            self.end_line(&mut emit);
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.extend(bytes, &mut emit);
    }

    /// Gives out what is left when no more bytes will come.
    pub(crate) fn finish(&mut self, mut emit: impl FnMut(Arc<str>)) {
        if !self.held.is_empty() {
            self.end_line(&mut emit);
        }
    }

    fn extend(&mut self, mut bytes: &[u8], emit: &mut impl FnMut(Arc<str>)) {
        while self.held.len() + bytes.len() > MAX_LINE {
            let (now, later) = bytes.split_at(MAX_LINE.saturating_sub(self.held.len()));
            self.held.extend_from_slice(now);
            bytes = later;
            let border = border(&self.held);
            let rest = self.held.split_off(border);
            say(&self.held, emit);
            self.held = rest;
            self.is_continued = true;
        }
        self.held.extend_from_slice(bytes);
    }

    fn end_line(&mut self, emit: &mut impl FnMut(Arc<str>)) {
        let line = self.held.strip_suffix(b"\r").unwrap_or(&self.held);
        if !(line.is_empty() && self.is_continued) {
            say(line, emit);
        }
        self.held.clear();
        self.is_continued = false;
    }
}

/// Returns where a full piece may be cut: not inside a character, nor before a `\r` that may belong
/// to the line's end.
fn border(bytes: &[u8]) -> usize {
    let whole = match bytes.last() {
        Some(b'\r') => bytes.len() - 1,
        _ => bytes.len() - incomplete_tail(bytes),
    };
    if whole == 0 { bytes.len() } else { whole }
}

/// Returns how many bytes at the end begin a UTF-8 sequence that is not complete yet.
fn incomplete_tail(bytes: &[u8]) -> usize {
    for (back, byte) in bytes.iter().rev().take(4).enumerate() {
        let needs = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => return 0,
        };
        return if back + 1 < needs { back + 1 } else { 0 };
    }
    0
}

/// Gives out a message: what is not UTF-8 replaced, what would act on a terminal escaped.
fn say(line: &[u8], emit: &mut impl FnMut(Arc<str>)) {
    let text = String::from_utf8_lossy(line);
    messages(&text, emit);
}

/// Gives out a text as one message, or as several when its escaped form is too long for one.
pub(crate) fn messages(text: &str, emit: &mut impl FnMut(Arc<str>)) {
    let safe = escape(text);
    let mut rest = &*safe;
    while rest.len() > MAX_LINE {
        let piece = clip(rest, MAX_LINE);
        emit(piece.into());
        rest = rest.get(piece.len()..).unwrap_or_default();
    }
    emit(rest.into());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<String> {
        let (mut splitter, mut lines) = (Splitter::default(), Vec::new());
        for chunk in chunks {
            splitter.push(chunk, |line| lines.push(line.to_string()));
        }
        splitter.finish(|line| lines.push(line.to_string()));
        lines
    }

    #[test]
    fn a_character_cut_by_a_read_is_put_together() {
        assert_eq!(split(&[b"price \xe2\x82", b"\xac 5\n"]), ["price €  5".replace("  ", " ")]);
        assert_eq!(split(&[b"pad \xf0\x9f", b"\x8e\xae end\r\n"]), ["pad 🎮 end"]);
    }

    #[test]
    fn bytes_that_are_not_utf_8_become_a_visible_sign() {
        assert_eq!(
            split(&[b"fa\xe7ade\n", b"\xff\xfeh\x00i\x00\n\x00"]),
            ["fa\u{fffd}ade", "\u{fffd}\u{fffd}h\\x00i\\x00", "\\x00",]
        );
    }

    #[test]
    fn the_last_words_need_no_line_end() {
        assert_eq!(split(&[b"one\n\ntwo"]), ["one", "", "two"]);
        assert_eq!(split(&[b"one\n"]), ["one"]);
    }

    #[test]
    fn a_long_line_comes_in_pieces_without_an_empty_one_behind() {
        let long = "0123456789abcdef".repeat(MAX_LINE / 8);
        let text = format!("start\n{long}\r\nafter\n");
        let lines = split(&[text.as_bytes()]);
        assert_eq!(lines.first().map(String::as_str), Some("start"));
        assert_eq!(lines.last().map(String::as_str), Some("after"));
        assert_eq!(lines[1..lines.len() - 1].concat(), long);
        assert!(lines.iter().all(|line| line.len() <= MAX_LINE && !line.is_empty()));
    }

    #[test]
    fn a_message_is_bounded_also_when_escaping_makes_it_longer() {
        let lines = split(&[&b"\x1b".repeat(MAX_LINE)]);
        assert!(lines.iter().all(|line| line.len() <= MAX_LINE));
        assert_eq!(lines.concat(), "\\x1b".repeat(MAX_LINE));
    }

    proptest! {
        #[test]
        fn the_cuts_of_the_reads_never_show(
            bytes in proptest::collection::vec(any::<u8>(), 0..2000),
            size in 1_usize..50,
        ) {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(split(&chunks), split(&[&bytes]));
        }

        #[test]
        fn every_character_of_a_long_line_survives(
            unit in "[a-z€🎮é]{1,5}",
            n in 1_usize..(3 * MAX_LINE / 4),
            size in 1000_usize..100_000,
        ) {
            let text = unit.repeat(n);
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            prop_assert_eq!(split(&chunks).concat(), text);
        }
    }
}
