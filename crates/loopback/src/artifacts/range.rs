//! A part of a file, as `Range` asks for it. One part at a time; what is no such range is the whole.

use http::HeaderValue;

/// Consecutive bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) length: u64,
}

impl Span {
    /// Writes the span as `Content-Range`.
    pub(super) fn content_range(self, size: u64) -> String {
        let last = self.start + self.length.saturating_sub(1);
        format!("bytes {}-{last}/{size}", self.start)
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// Everything.
    Whole,
    /// A part, never empty.
    Part(Span),
    /// Nothing that there is.
    Outside,
}

/// Reads the header against the size of the file.
pub(super) fn parse(header: Option<&HeaderValue>, size: u64) -> Range {
    header.and_then(|value| read(value.to_str().ok()?, size)).unwrap_or(Range::Whole)
}

fn read(text: &str, size: u64) -> Option<Range> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (start, end) = if first.is_empty() {
        (size.saturating_sub(number(last)?), size)
    } else {
        let start = number(first)?;
        let end = if last.is_empty() { size } else { number(last)?.saturating_add(1) };
        if end <= start && !last.is_empty() {
            return None;
        }
        (start, end.min(size))
    };
    let length = end.saturating_sub(start);
    Some(if length == 0 { Range::Outside } else { Range::Part(Span { start, length }) })
}

fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_against_the_size() {
        let part = |start, length| Range::Part(Span { start, length });
        let cases = [
            ("bytes=0-0", part(0, 1)),
            ("bytes=2-4", part(2, 3)),
            ("bytes=2-", part(2, 8)),
            ("bytes=2-99", part(2, 8)),
            ("bytes=-3", part(7, 3)),
            ("bytes=-99", part(0, 10)),
            ("bytes=10-", Range::Outside),
            ("bytes=10-12", Range::Outside),
            ("bytes=-0", Range::Outside),
            ("bytes=0-18446744073709551615", part(0, 10)),
            ("bytes=4-2", Range::Whole),
            ("bytes=-", Range::Whole),
            ("bytes=+1-2", Range::Whole),
            ("bytes=0-1,3-4", Range::Whole),
            ("lines=1-2", Range::Whole),
            ("bytes=99999999999999999999-", Range::Whole),
        ];
        for (text, range) in cases {
            assert_eq!(parse(Some(&HeaderValue::from_static(text)), 10), range, "{text}");
        }
        assert_eq!(parse(None, 10), Range::Whole);
        assert_eq!(parse(Some(&HeaderValue::from_static("bytes=0-")), 0), Range::Outside);
    }

    #[test]
    fn a_span_says_its_first_and_last_byte() {
        assert_eq!(Span { start: 2, length: 3 }.content_range(10), "bytes 2-4/10");
    }
}
