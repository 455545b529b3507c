//! The lines of a plain text.

use memchr::memchr_iter;

use super::{Scanner, blank};
use crate::json::index::{Index, Kind, Mark, Node, Record, STEP, to_u32, to_usize};

impl Scanner {
    /// Marks the beginnings of lines. `line` counts from 1, a mark's ordinal from 0.
    pub(super) fn lines(&mut self, piece: &[u8]) {
        for at in memchr_iter(b'\n', piece) {
            self.line_start = self.base + at + 1;
            let last = self.marks.last().map_or(0, |mark| to_usize(mark.offset));
            if self.line_start - last >= STEP {
                let offset = to_u32(self.line_start);
                self.marks.push(Mark { ordinal: to_u32(self.line), offset, escapes: 0 });
            }
            self.line += 1;
        }
    }

    pub(super) fn finish_text(mut self) -> Index {
        let root = Node { kind: Kind::Text, start: 0, end: self.base };
        // What follows the last line feed is a line only if there is something.
        let n_lines = self.line - usize::from(self.line_start == self.base);
        let n_marks = to_u32(self.marks.len());
        let count = to_u32(n_lines);
        self.records.push(Record { count, n_marks, ..blank(root) });
        self.into_index(root, n_lines)
    }
}
