//! The last words of a stream.

use raincheck_core::text::{escape, escape_lines};

use super::lines::shown;

/// How many bytes of a stream are kept for results and errors.
const BYTES: usize = 4 << 10;

/// How many lines of them an error shows.
const LINES: usize = 20;

/// Keeps the last bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    /// Takes more bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes
            .extend_from_slice(bytes.get(bytes.len().saturating_sub(BYTES)..).unwrap_or(bytes));
        let excess = self.bytes.len().saturating_sub(BYTES);
        self.is_cut |= excess > 0 || bytes.len() > BYTES;
        self.bytes.drain(..excess);
    }

    /// Returns the last words with their line ends, safe to show.
    pub(crate) fn text(&self) -> String {
        let text = self.decoded();
        let lines = text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
            Some(line) => format!("{}\n", shown(line)),
            None => shown(line).to_owned(),
        });
        escape_lines(&lines.collect::<String>()).into_owned()
    }

    /// Returns the last lines, safe to show.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = self.decoded();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(LINES);
        lines.into_iter().skip(from).map(|line| escape(shown(line)).into_owned()).collect()
    }

    fn decoded(&self) -> String {
        let mut bytes = &*self.bytes;
        if self.is_cut {
            // The first character may have lost its beginning.
            while let [0x80..=0xBF, rest @ ..] = bytes {
                bytes = rest;
            }
        }
        String::from_utf8_lossy(bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_words_are_kept() {
        let mut tail = Tail::default();
        tail.push("é".repeat(5000).as_bytes());
        tail.push(b"\r\nx\x1b\nlast words\n");
        let text = tail.text();
        assert!(text.len() <= BYTES + 20 && text.starts_with('é'), "{} bytes", text.len());
        assert!(text.ends_with("é\nx\\x1b\nlast words\n"));
    }

    #[test]
    fn a_line_that_was_drawn_again_is_told_as_it_was_at_last() {
        let mut tail = Tail::default();
        tail.push(b"\r 10%\r100%\r\nno\rboom");
        assert_eq!(tail.text(), "100%\nboom");
        assert_eq!(tail.lines(), ["100%", "boom"]);
    }

    #[test]
    fn an_error_shows_twenty_lines() {
        let mut tail = Tail::default();
        for n in 0..30 {
            tail.push(format!("complaint {n}\n").as_bytes());
        }
        let lines = tail.lines();
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (20, Some("complaint 29")));
    }
}
