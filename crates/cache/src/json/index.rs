//! Where the large parts of a body begin and end.

use std::sync::Arc;

use super::derived::{AllDerived, Derived};

/// Spans below this are found by reading on; from here on they have a record.
pub(crate) const STEP: usize = 2048;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number, as it is written.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
    /// The whole of a body that is plain text.
    Text,
}

impl Kind {
    /// Returns the name that outlines and pages use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
            Self::Text => "text",
        }
    }

    /// Returns whether values of this kind have children.
    #[must_use]
    pub const fn is_container(self) -> bool {
        matches!(self, Self::Array | Self::Object)
    }
}

/// One value: its kind and its span in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset behind its last byte.
    pub end: usize,
}

impl Node {
    /// Returns the number of bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.end.saturating_sub(self.start)
    }
}

/// A container or string large enough to be worth a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) count: u32,
    pub(crate) first_mark: u32,
    pub(crate) n_marks: u32,
}

/// Where a child of a large container begins (for a member: its name), at least [`STEP`] bytes
/// behind the mark before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) ordinal: u32,
    pub(crate) offset: u32,
    /// Bytes of the body before `offset` that a JSON string has to escape.
    pub(crate) escapes: u32,
}

/// Byte index of a validated body.
///
/// Holds the span of containers and strings of 2 KiB and more, and a mark for about every 2 KiB of
/// their children: some 1 % of the body. Whatever is smaller is found by reading less than a few
/// KiB. A container that adds less than 2 KiB to its only large child has no record of its own, so
/// that deep nesting cannot make the index larger than the body.
#[derive(Debug)]
pub struct Index {
    pub(crate) root: Node,
    pub(crate) len: usize,
    pub(crate) n_lines: usize,
    /// In the order of `start`.
    pub(crate) records: Vec<Record>,
    pub(crate) marks: Vec<Mark>,
    pub(super) derived: AllDerived,
}

impl Index {
    /// Returns the root value.
    #[must_use]
    pub const fn root(&self) -> Node {
        self.root
    }

    /// Returns the number of bytes of the body.
    #[must_use]
    pub const fn body_bytes(&self) -> usize {
        self.len
    }

    /// Returns the number of bytes that this index holds on the heap, with what was worked out of
    /// the body: page tables and outlines.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Record>()
            + self.marks.capacity() * size_of::<Mark>()
            + self.derived.heap_bytes()
    }

    /// Returns what another room has worked out of this body.
    pub(crate) fn derived<T: Derived + Default>(&self) -> Arc<T> {
        self.derived.get()
    }

    /// Returns the position of the first record at or behind `offset`.
    pub(crate) fn record_from(&self, offset: usize) -> usize {
        self.records.partition_point(|record| to_usize(record.start) < offset)
    }

    /// Returns the record of the value that begins at `offset`.
    pub(crate) fn record_at(&self, offset: usize) -> Option<&Record> {
        let record = self.records.get(self.record_from(offset))?;
        (to_usize(record.start) == offset).then_some(record)
    }

    /// Returns the marks of the container or text that begins at `offset`.
    pub(crate) fn marks_of(&self, node: Node) -> &[Mark] {
        let Some(record) = self.record_at(node.start) else { return &[] };
        let first = to_usize(record.first_mark);
        self.marks.get(first..first + to_usize(record.n_marks)).unwrap_or(&[])
    }
}

/// Returns the mark at which the child that begins at `offset` stands, and the one after it.
pub(crate) fn mark_at(index: &Index, node: Node, offset: usize) -> Option<[Mark; 2]> {
    let marks = index.marks_of(node);
    let position = marks.partition_point(|mark| to_usize(mark.offset) < offset);
    let [here, next] = *marks.get(position..)?.first_chunk::<2>()?;
    (to_usize(here.offset) == offset).then_some([here, next])
}

/// Widens an offset of the index.
pub(crate) fn to_usize(offset: u32) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// Narrows an offset; the scanner refuses bodies in which this would saturate.
pub(crate) fn to_u32(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
