//! From a stream of bytes to log messages, whatever the bytes are.

use std::sync::Arc;

use raincheck_core::log::MAX_LINE;
use raincheck_core::text::{clip, escape};

/// What comes out of a stream of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A line of the log, or a part of a long one.
    Line(Arc<str>),
    /// What the current line shows now: it was drawn over what it showed before, as progress bars do.
    Redraw(Arc<str>),
}

/// Cuts bytes into lines at `\n`, and lines that are too long into pieces at a character's border.
///
/// What follows a `\r` is drawn over the line, as on a terminal: the line of the log is what it shows
/// at its end. It keeps at most one piece in memory, so that no line, however long, stops its reader.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    held: Vec<u8>,
    /// A piece of the current line was already given out.
    is_continued: bool,
    /// The next character is drawn over the line, unless it ends the line.
    is_back: bool,
    /// The current line was drawn over.
    is_redrawn: bool,
}

impl Splitter {
    /// Takes more bytes and gives out what they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut emit: impl FnMut(Piece)) {
        while let Some(at) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (part, rest) = bytes.split_at(at);
            self.extend(part, &mut emit);
            if rest.first() == Some(&b'\r') {
                self.is_back = true;
            } else {
                self.end_line(&mut emit);
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.extend(bytes, &mut emit);
        if self.is_redrawn && !self.held.is_empty() {
            say(&self.held, &mut |text| emit(Piece::Redraw(text)));
        }
    }

    /// Gives out what is left when no more bytes will come.
    pub(crate) fn finish(&mut self, mut emit: impl FnMut(Piece)) {
        if !self.held.is_empty() {
            self.end_line(&mut emit);
        }
    }

    fn extend(&mut self, mut bytes: &[u8], emit: &mut impl FnMut(Piece)) {
        if bytes.is_empty() {
            return;
        }
        if std::mem::take(&mut self.is_back) {
            self.is_redrawn = true;
            self.held.clear();
        }
        while self.held.len() + bytes.len() > MAX_LINE {
            let (now, later) = bytes.split_at(MAX_LINE.saturating_sub(self.held.len()));
            self.held.extend_from_slice(now);
            bytes = later;
            let border = border(&self.held);
            let rest = self.held.split_off(border);
            say(&self.held, &mut |text| emit(Piece::Line(text)));
            self.held = rest;
            self.is_continued = true;
        }
        self.held.extend_from_slice(bytes);
    }

    fn end_line(&mut self, emit: &mut impl FnMut(Piece)) {
        if self.is_redrawn && !self.held.is_empty() {
            say(&self.held, &mut |text| emit(Piece::Redraw(text)));
        }
        if !(self.held.is_empty() && self.is_continued) {
            say(&self.held, &mut |text| emit(Piece::Line(text)));
        }
        self.held.clear();
        (self.is_continued, self.is_back, self.is_redrawn) = (false, false, false);
    }
}

/// Returns what a whole line shows at its end.
pub(crate) fn shown(line: &str) -> &str {
    line.trim_end_matches('\r').rsplit('\r').next().unwrap_or(line)
}

/// Returns where a full piece may be cut: not inside a character.
fn border(bytes: &[u8]) -> usize {
    let whole = bytes.len() - incomplete_tail(bytes);
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

    fn pieces(chunks: &[&[u8]]) -> Vec<Piece> {
        let (mut splitter, mut pieces) = (Splitter::default(), Vec::new());
        for chunk in chunks {
            splitter.push(chunk, |piece| pieces.push(piece));
        }
        splitter.finish(|piece| pieces.push(piece));
        pieces
    }

    fn split(chunks: &[&[u8]]) -> Vec<String> {
        let line = |piece| match piece {
            Piece::Line(line) => Some(line.to_string()),
            Piece::Redraw(_) => None,
        };
        pieces(chunks).into_iter().filter_map(line).collect()
    }

    // [CMD-2]
    #[test]
    fn a_line_that_is_drawn_again_and_again_is_one_line_and_shows_how_it_changes() {
        let bar: [&[u8]; 4] = [b"start\n\r 10", b"%\r 50%", b"\r 70%\r 80%\r", b"100%\nend\r\n"];
        let line = |text: &str| Piece::Line(text.into());
        let redraw = |text: &str| Piece::Redraw(text.into());
        assert_eq!(
            pieces(&bar),
            [
                line("start"),
                redraw(" 10"),
                redraw(" 50%"),
                redraw(" 80%"),
                redraw("100%"),
                line("100%"),
                line("end")
            ]
        );
        // A line end that comes in two parts draws nothing either.
        let mut splitter = Splitter::default();
        for part in [&b"whole\r"[..], b"\n"] {
            splitter.push(part, |piece| assert_eq!(piece, Piece::Line("whole".into())));
        }
        // The end of a line may be written as `\r\r\n`, and a last `\r` draws nothing.
        assert_eq!(split(&[b"kept\r", b"\r", b"\nlast\r"]), ["kept", "last"]);
        assert_eq!([shown("a\rb\r\r"), shown("a\r"), shown("a")], ["b", "a", "a"]);
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
