//! Moving over the values of a body without taking them apart.

use std::io;

use super::{
    index::{Index, Kind, Node, to_usize},
    source::Source,
    text::plain_len,
};

/// Bytes read at once where the source is not in memory; a block of a compressed body.
const WINDOW: usize = 32 * 1024;

/// The part of a source that is at hand.
pub(crate) struct Window<'a> {
    source: &'a dyn Source,
    whole: Option<&'a [u8]>,
    held: Vec<u8>,
    start: usize,
}

impl<'a> Window<'a> {
    pub(crate) fn new(source: &'a dyn Source) -> Self {
        Self { source, whole: source.bytes(), held: Vec::new(), start: 0 }
    }

    /// Returns the bytes from `at` on, as many as are at hand; none at the end.
    pub(crate) fn from(&mut self, at: usize) -> io::Result<&[u8]> {
        if let Some(whole) = self.whole {
            return Ok(whole.get(at..).unwrap_or(&[]));
        }
        if at < self.start || at >= self.start + self.held.len() {
            self.held.clear();
            self.start = at - at % WINDOW;
            let end = self.source.len().min(self.start + WINDOW);
            if at >= end {
                return Ok(&[]);
            }
            self.source.read(self.start..end, &mut self.held)?;
        }
        Ok(self.held.get(at - self.start..).unwrap_or(&[]))
    }
}

/// What an index says and its body does not: the bytes have changed or are cut short.
pub(crate) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the body does not match its index")
}

/// Finds the ends of values.
pub(crate) struct Walker<'a> {
    pub(crate) index: &'a Index,
    pub(crate) window: Window<'a>,
    /// Position of the record that was met last; most moves go forward by little.
    record: usize,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(source: &'a dyn Source, index: &'a Index) -> Self {
        Self { index, window: Window::new(source), record: 0 }
    }

    fn byte(&mut self, at: usize) -> io::Result<u8> {
        self.window.from(at)?.first().copied().ok_or_else(damaged)
    }

    /// Returns the first byte at or behind `at` that is not white space, and where it is.
    pub(crate) fn skip_blank(&mut self, mut at: usize) -> io::Result<(usize, u8)> {
        loop {
            let byte = self.byte(at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok((at, byte));
            }
            at += 1;
        }
    }

    /// Returns the value that begins at `at`.
    pub(crate) fn value(&mut self, at: usize) -> io::Result<Node> {
        let first = self.byte(at)?;
        let kind = match first {
            b'"' => Kind::String,
            b'[' => Kind::Array,
            b'{' => Kind::Object,
            b't' | b'f' => Kind::Bool,
            b'n' => Kind::Null,
            _ => Kind::Number,
        };
        let end = match kind {
            Kind::Array | Kind::Object => self.container_end(at)?,
            Kind::String => match self.known_end(at) {
                Some(end) => end,
                None => self.string_end(at)?,
            },
            Kind::Null => at + 4,
            Kind::Bool => at + if first == b't' { 4 } else { 5 },
            Kind::Number | Kind::Text => self.number_end(at)?,
        };
        Ok(Node { kind, start: at, end })
    }

    /// Returns the end of the value at `at`, if it has a record.
    fn known_end(&mut self, at: usize) -> Option<usize> {
        let records = &self.index.records;
        let start_of = |position: usize| records.get(position).map(|record| to_usize(record.start));
        if self.record > 0 && start_of(self.record - 1).is_some_and(|start| start >= at) {
            self.record = self.index.record_from(at);
        }
        let mut n_steps = 0;
        while start_of(self.record).is_some_and(|start| start < at) {
            if n_steps == 8 {
                self.record = self.index.record_from(at);
                break;
            }
            n_steps += 1;
            self.record += 1;
        }
        let record = records.get(self.record)?;
        (to_usize(record.start) == at).then(|| to_usize(record.end))
    }

    /// Returns the offset behind the string whose opening quote is at `at`.
    pub(crate) fn string_end(&mut self, at: usize) -> io::Result<usize> {
        let mut at = at + 1;
        loop {
            let rest = self.window.from(at)?;
            let n_plain = plain_len(rest);
            match rest.get(n_plain) {
                Some(b'"') => return Ok(at + n_plain + 1),
                Some(b'\\') => at += n_plain + 2,
                Some(_) => return Err(damaged()),
                None if n_plain == 0 => return Err(damaged()),
                None => at += n_plain,
            }
        }
    }

    fn number_end(&mut self, mut at: usize) -> io::Result<usize> {
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        loop {
            let rest = self.window.from(at)?;
            if rest.is_empty() {
                return Ok(at);
            }
            let n_digits = rest.iter().take_while(|byte| is_part(byte)).count();
            let is_over = n_digits < rest.len();
            at += n_digits;
            if is_over {
                return Ok(at);
            }
        }
    }

    /// Returns the offset behind the container at `at`, passing over what has a record.
    fn container_end(&mut self, at: usize) -> io::Result<usize> {
        if let Some(end) = self.known_end(at) {
            return Ok(end);
        }
        let mut depth = 1_usize;
        let mut at = at + 1;
        while depth > 0 {
            let rest = self.window.from(at)?;
            let is_special = |byte: &u8| matches!(byte, b'"' | b'[' | b']' | b'{' | b'}');
            let Some(n_plain) = rest.iter().position(is_special) else {
                if rest.is_empty() {
                    return Err(damaged());
                }
                at += rest.len();
                continue;
            };
            let byte = rest.get(n_plain).copied().unwrap_or_default();
            at += n_plain;
            match byte {
                b'"' => {
                    at = match self.known_end(at) {
                        Some(end) => end,
                        None => self.string_end(at)?,
                    }
                }
                b'[' | b'{' => match self.known_end(at) {
                    Some(end) => at = end,
                    None => {
                        depth += 1;
                        at += 1;
                    }
                },
                _ => {
                    depth -= 1;
                    at += 1;
                }
            }
        }
        Ok(at)
    }
}

/// One child of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// Position among its siblings, from 0.
    pub ordinal: usize,
    /// The member's name as a string node, quotes included; `None` for an item.
    pub name: Option<Node>,
    /// The item, or the member's value.
    pub value: Node,
}

impl Child {
    /// Returns where the child begins: a member begins with its name.
    #[must_use]
    pub const fn start(&self) -> usize {
        match self.name {
            Some(name) => name.start,
            None => self.value.start,
        }
    }
}

/// The children of a container, one after the other.
///
/// Each item is a result, since the body may have to be read.
pub struct Children<'a> {
    walker: Walker<'a>,
    is_object: bool,
    /// Where the next child begins, if there is one.
    at: Option<usize>,
    ordinal: usize,
}

impl std::fmt::Debug for Children<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Children").field("ordinal", &self.ordinal).finish_non_exhaustive()
    }
}

impl<'a> Children<'a> {
    /// Starts at the child numbered `ordinal` or, if there are fewer, at the end.
    pub(crate) fn new(walker: Walker<'a>, parent: Node, ordinal: usize) -> io::Result<Self> {
        let is_object = parent.kind == Kind::Object;
        let mut children = Self { walker, is_object, at: None, ordinal: 0 };
        if !parent.kind.is_container() {
            return Ok(children);
        }
        children.rewind(parent, ordinal)?;
        Ok(children)
    }

    /// Moves to the child numbered `ordinal` of `parent`.
    pub(crate) fn rewind(&mut self, parent: Node, ordinal: usize) -> io::Result<()> {
        let marks = self.walker.index.marks_of(parent);
        let n_before = marks.partition_point(|mark| to_usize(mark.ordinal) <= ordinal);
        if let Some(mark) = n_before.checked_sub(1).and_then(|last| marks.get(last)) {
            self.ordinal = to_usize(mark.ordinal);
            self.at = Some(to_usize(mark.offset));
        } else {
            let (at, byte) = self.walker.skip_blank(parent.start + 1)?;
            self.ordinal = 0;
            self.at = (!matches!(byte, b']' | b'}')).then_some(at);
        }
        while self.ordinal < ordinal && self.next_child()?.is_some() {}
        Ok(())
    }

    /// Moves to a child that is known to begin at `at`.
    pub(crate) const fn seek(&mut self, ordinal: usize, at: usize) {
        self.ordinal = ordinal;
        self.at = Some(at);
    }

    /// Returns the number of the next child and where it begins, if there is one.
    pub(crate) fn position(&self) -> Option<(usize, usize)> {
        Some((self.ordinal, self.at?))
    }

    /// Returns the next child.
    ///
    /// # Errors
    ///
    /// When the body cannot be read.
    pub fn next_child(&mut self) -> io::Result<Option<Child>> {
        let Some(at) = self.at else { return Ok(None) };
        let walker = &mut self.walker;
        let (name, value) = if self.is_object {
            let end = walker.string_end(at)?;
            let (colon, _) = walker.skip_blank(end)?;
            let (value, _) = walker.skip_blank(colon + 1)?;
            (Some(Node { kind: Kind::String, start: at, end }), walker.value(value)?)
        } else {
            (None, walker.value(at)?)
        };
        let (next, byte) = walker.skip_blank(value.end)?;
        self.at = if byte == b',' { Some(walker.skip_blank(next + 1)?.0) } else { None };
        let child = Child { ordinal: self.ordinal, name, value };
        self.ordinal += 1;
        Ok(Some(child))
    }
}

impl Iterator for Children<'_> {
    type Item = io::Result<Child>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_child().transpose()
    }
}
