//! Where the lines of a session come from.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncRead;
use tokio::sync::mpsc;

use super::line::{Lines, Read};
use crate::caller::RequestKey;

/// The lines of a session, and by what a request is known again.
#[derive(Debug)]
pub(crate) enum Source<R> {
    /// A stream of lines.
    Stream(Lines<R>),
    /// The stream of an attached process: its requests stand behind their number there, such as
    /// `7 {"jsonrpc":…}`.
    Numbered {
        /// The lines.
        lines: Lines<R>,
        /// Which process that is.
        process: Arc<str>,
    },
    /// Somebody who hands lines on, and perhaps the stream itself in the end.
    Fed(mpsc::Receiver<Fed<R>>),
}

/// What is handed on.
#[derive(Debug)]
pub(crate) enum Fed<R> {
    /// A line.
    Line(Vec<u8>, Option<RequestKey>),
    /// A line that was too long.
    TooLong,
    /// The stream: what follows is read from it.
    Stream(Lines<R>),
}

impl<R: AsyncRead + Unpin> Source<R> {
    /// Reads the next line.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> io::Result<(Read, Option<RequestKey>)> {
        loop {
            match self {
                Self::Stream(lines) => return Ok((lines.next().await?, None)),
                Self::Numbered { lines, process } => {
                    let read = lines.next().await?;
                    return Ok(match read {
                        Read::Line(line) => numbered(line, process),
                        Read::TooLong | Read::End => (read, None),
                    });
                }
                Self::Fed(feed) => match feed.recv().await {
                    Some(Fed::Line(line, key)) => return Ok((Read::Line(line), key)),
                    Some(Fed::TooLong) => return Ok((Read::TooLong, None)),
                    Some(Fed::Stream(lines)) => *self = Self::Stream(lines),
                    None => return Ok((Read::End, None)),
                },
            }
        }
    }
}

/// What stands behind the number of a request that was asked of another owner before.
const REPEAT: u8 = b'!';

/// Writes a request behind its number.
pub(crate) fn number(line: &[u8], number: u64, is_repeat: bool) -> Vec<u8> {
    let mut out = number.to_string().into_bytes();
    out.extend(is_repeat.then_some(REPEAT));
    out.push(b' ');
    out.extend_from_slice(line);
    out
}

/// Takes the number off a request.
fn numbered(mut line: Vec<u8>, process: &str) -> (Read, Option<RequestKey>) {
    let n_digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number =
        line.get(..n_digits).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    let is_repeat = line.get(n_digits) == Some(&REPEAT);
    let space = n_digits + usize::from(is_repeat);
    let Some(number) = number.filter(|_| line.get(space) == Some(&b' ')) else {
        return (Read::Line(line), None);
    };
    line.drain(..=space);
    (Read::Line(line), Some(RequestKey::new(process, number, is_repeat)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_taken_off_and_the_bytes_behind_it_stay() {
        // [ATTACH-6]
        let line = br#"{ "jsonrpc":"2.0" , "id":1e0}  "#;
        for (seq, is_repeat) in [(0, false), (42, true), (u64::MAX, false)] {
            let (read, key) = numbered(number(line, seq, is_repeat), "window");
            assert_eq!(read, Read::Line(line.to_vec()));
            assert_eq!(key, Some(RequestKey::new("window", seq, is_repeat)));
        }
    }

    #[test]
    fn what_has_no_number_is_a_line_as_it_is() {
        for line in [&b"{}"[..], b"7", b"7{}", b"-1 {}", b"99999999999999999999 {}", b" 7 {}"] {
            assert_eq!(numbered(line.to_vec(), "w"), (Read::Line(line.to_vec()), None));
        }
    }
}
