//! One line of a log file.

use std::borrow::Cow;
use std::io;

use serde::Deserialize;

use raincheck_core::log::{Draft, Level, Line, Stream};
use raincheck_core::time::Timestamp;

/// How the record begins that stands for everything that was dropped.
const MARK: &str = "truncated: ";

/// A record as it stands in the file.
#[derive(Deserialize)]
struct Record<'a> {
    seq: u64,
    ts: Timestamp,
    #[serde(borrow)]
    stream: Cow<'a, str>,
    #[serde(borrow)]
    level: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
}

/// What was dropped beyond the quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

impl Dropped {
    /// Adds the lines of a batch.
    pub(super) fn count(&mut self, lines: &[Draft]) {
        self.lines += lines.len() as u64;
        self.bytes += lines.iter().map(|line| line.message.len() as u64).sum::<u64>();
    }

    /// Makes the record that tells it [LOG-2].
    pub(super) fn record(self, seq: u64, ts: Timestamp, quota: u64) -> Line {
        let message = format!(
            "{MARK}{} lines ({} bytes) beyond the quota of {} were dropped",
            grouped(self.lines),
            grouped(self.bytes),
            size(quota),
        );
        Line { seq, ts, stream: Stream::System, level: Level::Warn, message: message.into() }
    }

    /// Reads the counts back from a record; `None` when it is an ordinary line.
    pub(super) fn of(line: &Line) -> Option<Self> {
        let is_ours = matches!(line.stream, Stream::System);
        let told = line.message.strip_prefix(MARK).filter(|_| is_ours)?;
        let mut numbers =
            told.split([' ', '(']).filter_map(|word| word.replace(',', "").parse().ok());
        Some(Self { lines: numbers.next()?, bytes: numbers.next()? })
    }
}

/// Writes a record at the end of a buffer.
pub(super) fn write(buffer: &mut Vec<u8>, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *buffer, line)?;
    buffer.push(b'\n');
    Ok(())
}

/// Reads a record; `None` when the bytes are none, such as after a power loss.
pub(super) fn parse(bytes: &[u8]) -> Option<Line> {
    let record: Record<'_> = serde_json::from_slice(bytes).ok()?;
    let stream = match &*record.stream {
        "stdout" => Stream::Stdout,
        "stderr" => Stream::Stderr,
        "control" => Stream::Control,
        "system" => Stream::System,
        _ => return None,
    };
    let level = Level::from_word(&record.level);
    Some(Line { seq: record.seq, ts: record.ts, stream, level, message: record.message.into() })
}

/// Writes a count with separators, for people.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{} bytes", grouped(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_is_told_in_words_and_read_back() {
        // [LOG-2]
        let dropped = Dropped { lines: 12_345, bytes: 67_890_123 };
        let line = dropped.record(7, Timestamp::from_millis(1), 64 << 20);
        let told =
            "truncated: 12,345 lines (67,890,123 bytes) beyond the quota of 64 MiB were dropped";
        assert_eq!(&*line.message, told);
        assert_eq!(Dropped::of(&line), Some(dropped));
        let forged = Line { stream: Stream::Stdout, ..line };
        assert_eq!(Dropped::of(&forged), None);
    }

    #[test]
    fn a_record_is_one_line_that_any_program_can_read() {
        let line = Line {
            seq: 1,
            ts: Timestamp::from_millis(0),
            stream: Stream::Stderr,
            level: Level::Error,
            message: "a \"b\"\tc".into(),
        };
        let mut bytes = Vec::new();
        write(&mut bytes, &line).expect("a buffer takes it");
        let text = String::from_utf8(bytes).expect("UTF-8");
        expect_test::expect![[r#"
            {"seq":1,"ts":"1970-01-01T00:00:00.000Z","stream":"stderr","level":"error","message":"a \"b\"\tc"}
        "#]]
        .assert_eq(&text);
        assert_eq!(parse(text.trim_end().as_bytes()), Some(line));
    }
}
