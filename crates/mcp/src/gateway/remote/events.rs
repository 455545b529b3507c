//! A stream of server-sent events.

use raincheck_https::{Answer, Failed};

/// One event that carries data.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// What to name to go on after it.
    pub(super) id: Option<Vec<u8>>,
    /// Its data; lines of it are joined.
    pub(super) data: Vec<u8>,
}

/// Reads events from the body of an answer.
pub(super) struct Events {
    answer: Answer,
    parser: Parser,
}

impl Events {
    pub(super) fn new(answer: Answer, most: usize) -> Self {
        Self { answer, parser: Parser::new(most) }
    }

    /// Reads the next event with data; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, Failed> {
        loop {
            if let Some(event) = self.parser.next() {
                return Ok(Some(event));
            }
            match self.answer.part().await? {
                Some(part) => self.parser.take(&part)?,
                None => return Ok(None),
            }
        }
    }
}

/// Bytes in, events out.
#[derive(Debug)]
struct Parser {
    most: usize,
    bytes: Vec<u8>,
    /// How many of them hold no line end.
    n_seen: usize,
    id: Option<Vec<u8>>,
    data: Option<Vec<u8>>,
}

impl Parser {
    const fn new(most: usize) -> Self {
        Self { most, bytes: Vec::new(), n_seen: 0, id: None, data: None }
    }

    fn take(&mut self, part: &[u8]) -> Result<(), Failed> {
        let n_held = self.bytes.len() + self.data.as_ref().map_or(0, Vec::len);
        if n_held + part.len() > self.most {
            return Err(Failed::new("an event is larger than 64 MiB".to_owned()));
        }
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    fn next(&mut self) -> Option<Event> {
        while let Some(end) = self.bytes.iter().skip(self.n_seen).position(|byte| *byte == b'\n') {
            let end = std::mem::take(&mut self.n_seen) + end;
            let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if line.is_empty() {
                if let Some(data) = self.data.take() {
                    return Some(Event { id: self.id.clone(), data });
                }
                continue;
            }
            let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            let (name, value) = line.split_at(colon);
            let value = value.strip_prefix(b":").unwrap_or(value);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match name {
                b"data" => match &mut self.data {
                    Some(data) => {
                        data.push(b'\n');
                        data.extend_from_slice(value);
                    }
                    None => self.data = Some(value.to_vec()),
                },
                b"id" if !value.contains(&0) => self.id = Some(value.to_vec()),
                // Comments, names of events and pauses change nothing here.
                _ => {}
            }
        }
        self.n_seen = self.bytes.len();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_wherever_the_bytes_are_cut() {
        // [GATE-13]
        let text = b": hi\r\nid: 7\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nretry: 5\n\ndata:x\n\n";
        let expected = [
            Event { id: Some(b"7".to_vec()), data: b"{\"a\":\n1}".to_vec() },
            Event { id: Some(b"7".to_vec()), data: b"x".to_vec() },
        ];
        for size in [1, 3, 1000] {
            let mut parser = Parser::new(1 << 20);
            let mut events = Vec::new();
            for part in text.chunks(size) {
                parser.take(part).expect("small");
                events.extend(std::iter::from_fn(|| parser.next()));
            }
            assert_eq!(events, expected, "in parts of {size}");
        }
        assert!(Parser::new(4).take(b"too long").is_err());
    }
}
