//! Lines of bytes, bounded, read without losing a partial line when the read is dropped.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// The longest line that is taken in, in bytes.
pub(crate) const MAX_LINE: usize = 16 << 20;

/// The most bytes before a line of an attached process: its number, and of whom it was asked before.
pub(crate) const NUMBER: usize = 80;

const READ_SIZE: usize = 64 << 10;
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// What one read gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// A line without its end; never blank.
    Line(Vec<u8>),
    /// A line longer than the limit; it is skipped up to its end.
    TooLong,
    /// Nothing will follow.
    End,
}

/// A reader of lines that end in LF or CR LF. One byte order mark at the very start is dropped.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    limit: usize,
    is_skipping: bool,
    is_first: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads from `reader`, up to `limit` bytes a line.
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        let reader = BufReader::with_capacity(READ_SIZE, reader);
        Self { reader, line: Vec::new(), limit, is_skipping: false, is_first: true }
    }

    /// Reads the next line that is not blank. A last line needs no line end.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped: a partial line is kept for the next call.
    pub(crate) async fn next(&mut self) -> io::Result<Read> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(self.take().map_or(Read::End, Read::Line));
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let (part, used) = match end.and_then(|end| available.split_at_checked(end)) {
                Some((part, _)) => (part, part.len() + 1),
                None => (available, available.len()),
            };
            let is_over = !self.is_skipping && self.line.len() + part.len() > self.limit;
            if !self.is_skipping && !is_over {
                self.line.extend_from_slice(part);
            }
            self.reader.consume(used);
            if is_over {
                self.line = Vec::new();
                self.is_first = false;
                self.is_skipping = end.is_none();
                return Ok(Read::TooLong);
            }
            if end.is_some() {
                if std::mem::take(&mut self.is_skipping) {
                    continue;
                }
                if let Some(line) = self.take() {
                    return Ok(Read::Line(line));
                }
            }
        }
    }

    /// Takes the collected line; `None` when it is blank.
    fn take(&mut self) -> Option<Vec<u8>> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_first) && line.starts_with(MARK) {
            line.drain(..MARK.len());
        }
        (!line.trim_ascii().is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8], limit: usize) -> Vec<Read> {
        let mut lines = Lines::new(bytes, limit);
        let mut reads = Vec::new();
        loop {
            match lines.next().await.expect("a slice never fails") {
                Read::End => return reads,
                read @ (Read::Line(_) | Read::TooLong) => reads.push(read),
            }
        }
    }

    fn line(text: &str) -> Read {
        Read::Line(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn a_mark_is_dropped_once_and_blank_lines_are_passed_over() {
        let reads = all(b"\xEF\xBB\xBFone\r\n\r\n \r\n\n\xEF\xBB\xBFtwo  \r\nthree", 100).await;
        assert_eq!(reads, [line("one\r"), line("\u{feff}two  \r"), line("three")]);
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_skipped_and_the_next_one_is_read() {
        let text = format!("{}\nshort\n{}\nlast\n", "x".repeat(200_000), "y".repeat(11));
        let reads = all(text.as_bytes(), 10).await;
        assert_eq!(reads, [Read::TooLong, line("short"), Read::TooLong, line("last")]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_read_keeps_its_partial_line() {
        let (mut ours, theirs) = tokio::io::duplex(64);
        let mut lines = Lines::new(theirs, 100);
        tokio::io::AsyncWriteExt::write_all(&mut ours, b"half").await.expect("room");
        let dropped = tokio::time::timeout(std::time::Duration::from_millis(1), lines.next()).await;
        assert!(dropped.is_err(), "no line end yet");
        tokio::io::AsyncWriteExt::write_all(&mut ours, b" whole\n").await.expect("room");
        assert_eq!(lines.next().await.expect("a line"), line("half whole"));
    }
}
