//! A body in blocks of 32 KiB, each compressed alone, so that a page reads little more than what is on it.
//!
//! Twice as long they would take some 3 % less, and a page half as long again.

use std::io;
use std::ops::Range;

use zstd::bulk::{Compressor, Decompressor};

use crate::shelf::checksum;

/// The length of a block before compression; the last one may be shorter.
const BLOCK: u64 = 32 * 1024;
const BLOCK_LEN: usize = 32 * 1024;

/// Finds nothing better than level 3 does on such texts, and faster.
const LEVEL: i32 = 1;

/// Marks a block that did not shrink and is stored as it is.
const VERBATIM: u64 = 1 << 63;

/// Where the blocks of a body are in what is stored of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Table {
    /// Length of the body.
    pub(super) len: u64,
    pub(super) blocks: Vec<Block>,
}

/// One block of a [`Table`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Block {
    /// Where it ends in what is stored, with [`VERBATIM`].
    end: u64,
    /// Checksum of what is stored.
    sum: u64,
}

/// Bytes of a block's row in a stored table.
pub(super) const ROW: usize = 16;

impl Block {
    pub(super) fn to_bytes(self) -> [u8; ROW] {
        let mut row = [0; ROW];
        let (end, sum) = row.split_at_mut(8);
        end.copy_from_slice(&self.end.to_le_bytes());
        sum.copy_from_slice(&self.sum.to_le_bytes());
        row
    }

    pub(super) fn from_bytes(row: [u8; ROW]) -> Self {
        let (words, _) = row.as_chunks::<8>();
        let word = |n: usize| words.get(n).map_or(0, |word| u64::from_le_bytes(*word));
        Self { end: word(0), sum: word(1) }
    }

    fn end(self) -> u64 {
        self.end & !VERBATIM
    }
}

impl Table {
    /// Describes a body that is stored as it is.
    pub(super) fn verbatim(body: &[u8]) -> Self {
        let mut end = 0;
        let mut blocks = Vec::with_capacity(count(body.len() as u64));
        for part in body.chunks(BLOCK_LEN) {
            end += part.len() as u64;
            blocks.push(Block { end: end | VERBATIM, sum: checksum::of(part) });
        }
        Self { len: body.len() as u64, blocks }
    }

    /// Returns the length of what is stored.
    pub(super) fn stored_len(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.end())
    }

    /// Returns how many blocks a body of a length has.
    pub(super) fn count(len: u64) -> usize {
        count(len)
    }

    /// Checks that it can be the table of its body: every block in order, and none longer than it may be.
    pub(super) fn is_sound(&self) -> bool {
        let mut from = 0;
        let is_in_order = self.blocks.iter().all(|block| {
            let length = block.end().checked_sub(from);
            from = block.end();
            length.is_some_and(|length| length <= BLOCK)
        });
        is_in_order && self.blocks.len() == count(self.len)
    }

    pub(super) fn heap_bytes(&self) -> u64 {
        (self.blocks.capacity() * size_of::<Block>()) as u64
    }

    fn stored(&self, nth: usize) -> Option<(Range<u64>, Block)> {
        let block = self.blocks.get(nth)?;
        let from = match nth.checked_sub(1) {
            Some(before) => self.blocks.get(before)?.end(),
            None => 0,
        };
        Some((from..block.end(), *block))
    }
}

fn count(len: u64) -> usize {
    usize::try_from(len.div_ceil(BLOCK)).unwrap_or(usize::MAX)
}

/// A compressed body in memory.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    pub(super) table: Table,
    pub(super) stored: Vec<u8>,
}

impl Blocks {
    /// Compresses a body.
    ///
    /// # Errors
    /// When the compressor cannot have its memory.
    pub(super) fn compress(body: &[u8]) -> io::Result<Self> {
        let mut compressor = Compressor::new(LEVEL)?;
        let mut stored = Vec::with_capacity(body.len() / 4);
        let mut blocks = Vec::with_capacity(count(body.len() as u64));
        for part in body.chunks(BLOCK_LEN) {
            let from = stored.len();
            let packed = compressor.compress(part)?;
            let is_smaller = packed.len() < part.len();
            stored.extend_from_slice(if is_smaller { &packed } else { part });
            let sum = checksum::of(stored.get(from..).unwrap_or_default());
            let end = stored.len() as u64 | if is_smaller { 0 } else { VERBATIM };
            blocks.push(Block { end, sum });
        }
        stored.shrink_to_fit();
        Ok(Self { table: Table { len: body.len() as u64, blocks }, stored })
    }

    pub(super) fn heap_bytes(&self) -> u64 {
        self.stored.capacity() as u64 + self.table.heap_bytes()
    }
}

/// Where the stored bytes of blocks come from.
pub(super) trait Stored {
    /// Replaces the buffer by a range of what is stored.
    fn fetch(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> io::Result<()>;
}

impl Stored for [u8] {
    fn fetch(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> io::Result<()> {
        let range = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let bytes = range.and_then(|(from, to)| self.get(from..to)).ok_or_else(damaged)?;
        buffer.clear();
        buffer.extend_from_slice(bytes);
        Ok(())
    }
}

/// Blocks that a reader holds unpacked: walking a value goes to and fro between a few of them.
const HELD: usize = 16;

/// Reads blocks, and holds the last ones.
#[derive(Default)]
pub(super) struct Reader {
    decompressor: Option<Decompressor<'static>>,
    /// The one used last is the last one.
    held: Vec<(usize, Vec<u8>)>,
    packed: Vec<u8>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("n_held", &self.held.len()).finish_non_exhaustive()
    }
}

impl Reader {
    /// Appends a range of the body.
    ///
    /// # Errors
    /// When what is stored cannot be read, is damaged, or has no such range. Nothing is appended then.
    pub(super) fn read<S: Stored + ?Sized>(
        &mut self,
        table: &Table,
        stored: &S,
        range: Range<u64>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        if range.start > range.end || range.end > table.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let before = out.len();
        let mut at = range.start;
        while at < range.end {
            let nth = usize::try_from(at / BLOCK).map_err(|_| damaged())?;
            let block_start = at - at % BLOCK;
            let end = range.end.min(block_start + BLOCK);
            let part = within(at - block_start, end - block_start);
            let block = self.block(table, stored, nth);
            let bytes =
                block.and_then(|block| part.and_then(|part| block.get(part)).ok_or_else(damaged));
            match bytes {
                Ok(bytes) => out.extend_from_slice(bytes),
                Err(error) => {
                    out.truncate(before);
                    return Err(error);
                }
            }
            at = end;
        }
        Ok(())
    }

    /// Returns a block, unpacked.
    fn block<S: Stored + ?Sized>(
        &mut self,
        table: &Table,
        stored: &S,
        nth: usize,
    ) -> io::Result<&[u8]> {
        match self.held.iter().position(|(held, _)| *held == nth) {
            Some(at) => self.held.get_mut(at..).unwrap_or_default().rotate_left(1),
            None => {
                let buffer = if self.held.len() < HELD {
                    Vec::with_capacity(BLOCK_LEN)
                } else {
                    self.held.remove(0).1
                };
                let plain = self.unpack(table, stored, nth, buffer)?;
                self.held.push((nth, plain));
            }
        }
        self.held.last().map(|(_, plain)| plain.as_slice()).ok_or_else(damaged)
    }

    fn unpack<S: Stored + ?Sized>(
        &mut self,
        table: &Table,
        stored: &S,
        nth: usize,
        mut plain: Vec<u8>,
    ) -> io::Result<Vec<u8>> {
        let (range, block) = table.stored(nth).ok_or_else(damaged)?;
        stored.fetch(range, &mut self.packed)?;
        if checksum::of(&self.packed) != block.sum {
            return Err(damaged());
        }
        plain.clear();
        if block.end & VERBATIM == 0 {
            let decompressor = match &mut self.decompressor {
                Some(decompressor) => decompressor,
                none => none.insert(Decompressor::new()?),
            };
            plain.reserve_exact(BLOCK_LEN);
            decompressor.decompress_to_buffer(&self.packed, &mut plain)?;
        } else {
            plain.extend_from_slice(&self.packed);
        }
        Ok(plain)
    }
}

fn within(from: u64, to: u64) -> Option<Range<usize>> {
    Some(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
}

pub(super) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the stored bytes are damaged")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(len: usize) -> Vec<u8> {
        let mut state = 7_u64;
        let mut body = Vec::with_capacity(len);
        while body.len() < len {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Stretches that shrink, and stretches that do not.
            let is_dull = body.len() / 50_000 % 2 == 0;
            body.push(if is_dull { b'x' } else { state.to_be_bytes()[0] });
        }
        body
    }

    #[test]
    fn any_range_gives_its_bytes_back_in_either_form() {
        let body = body(200_000);
        let packed = Blocks::compress(&body).expect("compressed");
        assert!(packed.table.is_sound());
        assert!(packed.stored.len() < body.len());
        let plain = Table::verbatim(&body);
        assert!(plain.is_sound());
        let ends = [0_u32, 1, 32_767, 32_768, 32_769, 65_536, 199_999, 200_000];
        for (from, to) in ends.iter().flat_map(|from| ends.map(|to| (*from, to))) {
            for (table, stored) in [(&packed.table, &packed.stored), (&plain, &body)] {
                let mut out = b"before".to_vec();
                let read = Reader::default().read(
                    table,
                    stored.as_slice(),
                    from.into()..to.into(),
                    &mut out,
                );
                if from <= to {
                    read.expect("read");
                    assert_eq!(
                        out[6..],
                        body[usize::try_from(from).expect("small")
                            ..usize::try_from(to).expect("small")]
                    );
                } else {
                    read.expect_err("no such range");
                    assert_eq!(out, b"before");
                }
            }
        }
    }

    #[test]
    fn a_range_beyond_the_end_is_refused() {
        let packed = Blocks::compress(b"abc").expect("compressed");
        let mut out = Vec::new();
        Reader::default()
            .read(&packed.table, packed.stored.as_slice(), 0..4, &mut out)
            .expect_err("beyond the end");
        assert!(out.is_empty());
    }

    #[test]
    fn a_changed_byte_is_found_and_what_was_read_before_is_taken_back() {
        let body = body(200_000);
        let mut packed = Blocks::compress(&body).expect("compressed");
        let last = packed.stored.len() - 1;
        packed.stored[last] ^= 1;
        let mut reader = Reader::default();
        let mut out = Vec::new();
        let whole = reader.read(&packed.table, packed.stored.as_slice(), 0..200_000, &mut out);
        assert_eq!(whole.expect_err("damaged").kind(), io::ErrorKind::InvalidData);
        assert!(out.is_empty());
        reader
            .read(&packed.table, packed.stored.as_slice(), 0..32_768, &mut out)
            .expect("the first block is whole");
        assert_eq!(out, body[..32_768]);
    }

    #[test]
    fn an_empty_body_has_no_blocks() {
        let packed = Blocks::compress(b"").expect("compressed");
        assert_eq!(packed.table, Table::default());
        Reader::default()
            .read(&packed.table, packed.stored.as_slice(), 0..0, &mut Vec::new())
            .expect("nothing to read");
    }

    proptest! {
        #[test]
        fn a_row_of_a_table_reads_back(end in any::<u64>(), sum in any::<u64>()) {
            let block = Block { end, sum };
            prop_assert_eq!(Block::from_bytes(block.to_bytes()), block);
        }

        #[test]
        fn neighbouring_reads_through_one_reader_agree(
            len in 0_usize..300_000,
            cuts in proptest::collection::vec(any::<u64>(), 0..8),
        ) {
            let body = body(len);
            let packed = Blocks::compress(&body).expect("compressed");
            let mut cuts: Vec<u64> = cuts.iter().map(|cut| cut % (len as u64 + 1)).collect();
            cuts.extend([0, len as u64]);
            cuts.sort_unstable();
            let mut reader = Reader::default();
            let mut out = Vec::new();
            for pair in cuts.windows(2) {
                reader
                    .read(&packed.table, packed.stored.as_slice(), pair[0]..pair[1], &mut out)
                    .expect("read");
            }
            prop_assert_eq!(out, body);
        }
    }
}
