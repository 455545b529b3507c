//! What is said between a server and its filter process, over two pipes.
//!
//! To the process go requests: the length of a header, the header as JSON, and a body if the header says
//! so. From it come frames: a letter, a length, and what the letter says.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::limits::{LimitKind, Limits};

/// What the process says first. Whatever comes before is not of it.
pub(super) const GREETING: &[u8] = b"\0raincheck filter 1\n";

/// How long a frame or a header may be, in bytes.
const MAX_FRAME: u32 = 4 << 20;

/// Asks for one run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) filter: String,
    /// The length of the body that follows; `None` to run on the body of the request before.
    pub(super) body: Option<u64>,
    /// Whether the body is text and not JSON.
    pub(super) is_text: bool,
    pub(super) limits: Limits,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) how: How,
    /// Whether the process holds much more memory than the parsed body takes.
    pub(super) is_spent: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum How {
    Done,
    Failed(String),
    Limit(LimitKind),
    /// The process was asked for what cannot be: a fault of this program.
    Confused(String),
}

/// What the process says of a run.
#[derive(Debug)]
pub(super) enum Frame {
    /// So many outputs more, with commas between them.
    Outputs(u32, Vec<u8>),
    End(End),
}

impl Request {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        block(to, &serde_json::to_vec(self)?)
    }

    /// Reads a request without its body; `None` at the end of the pipe.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut first = [0; 1];
        if from.read(&mut first)? == 0 {
            return Ok(None);
        }
        let mut len = [first[0], 0, 0, 0];
        let (_, rest) = len.split_at_mut(1);
        from.read_exact(rest)?;
        let header = bytes_of(from, u32::from_le_bytes(len))?;
        Ok(Some(serde_json::from_slice(&header)?))
    }
}

impl Frame {
    pub(super) fn outputs(to: &mut impl Write, count: u32, bytes: &[u8]) -> io::Result<()> {
        to.write_all(b"O")?;
        to.write_all(&count.to_le_bytes())?;
        block(to, bytes)
    }

    pub(super) fn end(to: &mut impl Write, end: &End) -> io::Result<()> {
        to.write_all(b"E")?;
        block(to, &serde_json::to_vec(end)?)?;
        to.flush()
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut letter = [0];
        from.read_exact(&mut letter)?;
        match &letter {
            b"O" => {
                let count = number(from)?;
                let len = number(from)?;
                Ok(Self::Outputs(count, bytes_of(from, len)?))
            }
            b"E" => {
                let len = number(from)?;
                Ok(Self::End(serde_json::from_slice(&bytes_of(from, len)?)?))
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn number(from: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn block(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let len = u32::try_from(bytes.len()).ok().filter(|len| *len <= MAX_FRAME);
    let len = len.ok_or(io::ErrorKind::InvalidInput)?;
    to.write_all(&len.to_le_bytes())?;
    to.write_all(bytes)
}

fn bytes_of(from: &mut impl Read, len: u32) -> io::Result<Vec<u8>> {
    if len > MAX_FRAME {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    from.take(u64::from(len)).read_to_end(&mut bytes)?;
    if bytes.len() == len as usize { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// How many bytes of outputs go into one frame, at most.
pub(super) const OUTPUT_FRAME: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_frames_come_over_as_they_were() {
        let mut pipe = Vec::new();
        let request = Request {
            filter: ".".into(),
            body: Some(3),
            is_text: false,
            limits: Limits::default(),
        };
        request.write(&mut pipe).unwrap();
        let mut from = pipe.as_slice();
        let read = Request::read(&mut from).unwrap().unwrap();
        assert_eq!(
            (read.filter, read.body, read.limits),
            (request.filter, Some(3), request.limits)
        );
        assert!(Request::read(&mut from).unwrap().is_none());

        let mut pipe = Vec::new();
        Frame::outputs(&mut pipe, 2, b"1,2").unwrap();
        let end = End { how: How::Limit(LimitKind::Outputs), is_spent: true };
        Frame::end(&mut pipe, &end).unwrap();
        let mut from = pipe.as_slice();
        assert!(
            matches!(Frame::read(&mut from).unwrap(), Frame::Outputs(2, bytes) if bytes == b"1,2")
        );
        assert!(matches!(Frame::read(&mut from).unwrap(), Frame::End(read) if read == end));
        assert!(Frame::read(&mut from).is_err());
        assert!(Frame::read(&mut b"O\0\0\0\0\xff\xff\xff\xff".as_slice()).is_err());
    }
}
