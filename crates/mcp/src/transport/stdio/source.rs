//! Where the lines of a session come from.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncRead;
use tokio::sync::mpsc;

use raincheck_core::time::Timestamp;
use raincheck_runtime::AskedBefore;

use super::line::{Lines, NUMBER, Read};
use crate::caller::{Repeat, RequestKey};

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

/// What stands behind the number of a request that was asked of another owner before. When that was and
/// of which store follow, unless it may be done a second time: `7!1764403200000/3f0c… {"jsonrpc":…}`.
const REPEAT: char = '!';

/// Writes a request behind its number.
pub(crate) fn number(line: &[u8], number: u64, repeat: Option<&Repeat>) -> Vec<u8> {
    let head = match repeat {
        None => format!("{number} "),
        Some(Repeat::Free) => format!("{number}{REPEAT} "),
        Some(Repeat::Of(AskedBefore { store, at })) => {
            format!("{number}{REPEAT}{}/{store} ", at.as_millis())
        }
    };
    [head.as_bytes(), line].concat()
}

/// Reads a number, and what stands behind it.
fn head(head: &str) -> Option<(u64, Option<Repeat>)> {
    let Some((number, before)) = head.split_once(REPEAT) else {
        return Some((digits(head)?, None));
    };
    let repeat = if before.is_empty() {
        Repeat::Free
    } else {
        let (at, store) = before.split_once('/')?;
        let at = Timestamp::from_millis(digits(at)?.try_into().ok()?);
        Repeat::Of(AskedBefore { store: store.into(), at })
    };
    Some((digits(number)?, Some(repeat)))
}

fn digits(text: &str) -> Option<u64> {
    text.starts_with(|first: char| first.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Takes the number off a request.
fn numbered(mut line: Vec<u8>, process: &str) -> (Read, Option<RequestKey>) {
    let space = line.iter().take(NUMBER).position(|byte| *byte == b' ');
    let read = space.and_then(|at| head(std::str::from_utf8(line.get(..at)?).ok()?));
    let (Some(space), Some((number, repeat))) = (space, read) else {
        return (Read::Line(line), None);
    };
    line.drain(..=space);
    (Read::Line(line), Some(RequestKey::new(process, number, repeat)))
}

#[cfg(test)]
mod tests {
    use raincheck_core::mac::MacKey;

    use super::*;

    #[test]
    fn a_number_is_taken_off_and_the_bytes_behind_it_stay() {
        // [ATTACH-6]
        let line = br#"{ "jsonrpc":"2.0" , "id":1e0}  "#;
        let name = MacKey::from_bytes([7; 32]).name();
        let at = Timestamp::from_millis(i64::MAX);
        let of = Repeat::Of(AskedBefore { store: name, at });
        for (seq, repeat) in [(0, None), (42, Some(Repeat::Free)), (u64::MAX, Some(of)), (7, None)]
        {
            let sent = number(line, seq, repeat.as_ref());
            assert!(sent.len() <= line.len() + NUMBER, "{}", sent.len());
            let (read, key) = numbered(sent, "window");
            assert_eq!(read, Read::Line(line.to_vec()));
            assert_eq!(key, Some(RequestKey::new("window", seq, repeat)));
        }
    }

    #[test]
    fn what_has_no_number_is_a_line_as_it_is() {
        let lines = [
            &b"{}"[..],
            b"7",
            b"7{}",
            b"-1 {}",
            b"99999999999999999999 {}",
            b" 7 {}",
            b"7!x/y {}",
            b"7!5 {}",
        ];
        for line in lines {
            assert_eq!(numbered(line.to_vec(), "w"), (Read::Line(line.to_vec()), None));
        }
    }
}
