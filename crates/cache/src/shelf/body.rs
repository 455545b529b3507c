//! The forms of a body: as it came, in compressed blocks, and as a file of blocks.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::json::{Index, Invalid, Source, scan, scan_text};
use crate::shelf::blocks::{Block, Blocks, ROW, Reader, Stored, Table, damaged};
use crate::shelf::checksum;
use crate::shelf::entry::{BodyKind, Metadata};
use crate::shelf::folder::{Folder, read_exact_at};

/// A body as the shelf holds it; a clone is the same body.
#[derive(Clone, Debug)]
pub(super) struct Body {
    /// Absent when only the file has it.
    pub(super) memory: Option<Memory>,
    /// Bytes that its file takes; `None` when it has none.
    pub(super) file_bytes: Option<u64>,
    /// Built when it is stored, and again by its first reader after a restart.
    pub(super) index: Arc<OnceLock<Index>>,
    /// What the index takes, while it is not built.
    pub(super) index_bytes: u64,
    /// Nothing is left to do for it when it is idle.
    pub(super) is_at_rest: bool,
}

/// A body in memory.
#[derive(Clone, Debug)]
pub(super) enum Memory {
    Verbatim(Arc<Vec<u8>>),
    Compressed(Arc<Blocks>),
}

impl Memory {
    fn heap_bytes(&self) -> u64 {
        match self {
            Self::Verbatim(bytes) => bytes.capacity() as u64,
            Self::Compressed(blocks) => blocks.heap_bytes(),
        }
    }
}

impl Body {
    /// Returns what body and index take. A body in memory and in a file counts once, with the larger of the two:
    /// the budget bounds either of them.
    pub(super) fn held(&self) -> u64 {
        let memory = self.memory.as_ref().map_or(0, Memory::heap_bytes);
        let index = self.index.get().map(|index| index.heap_bytes() as u64);
        memory.max(self.file_bytes.unwrap_or(0)) + index.unwrap_or(self.index_bytes)
    }
}

/// Validates a body and builds its index.
///
/// # Errors
/// When it is not what its kind says.
pub(super) fn index_of(kind: BodyKind, body: &[u8]) -> Result<Index, Invalid> {
    match kind {
        BodyKind::Json => scan(body),
        BodyKind::Text => scan_text(body),
    }
}

const MAGIC: &[u8; 8] = b"RCBODY01";
/// Magic, handle, revision and length of the body, checksum of these and of the table.
const HEADER: usize = 8 + 16 + 8 + 8 + 8;

/// Returns the name of the file of an entry.
pub(super) fn file_name(metadata: &Metadata) -> String {
    format!("{}.{}", metadata.id, metadata.revision)
}

/// Reads a name as [`file_name`] writes it.
pub(super) fn is_file_name(name: &str) -> bool {
    let Some((id, revision)) = name.split_once('.') else { return false };
    crate::shelf::entry::parse_id(id).is_some()
        && (revision.parse::<u32>().is_ok_and(|n| n.to_string() == revision)
            || revision.strip_suffix(STAGED).is_some_and(|n| n.parse::<u64>().is_ok()))
}

/// Ends the name of a file that is being written.
pub(super) const STAGED: &str = ".new";

/// Returns what stands before the stored bytes of a body's file.
pub(super) fn file_head(metadata: &Metadata, table: &Table) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEADER + table.blocks.len() * ROW);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(metadata.id.as_bytes());
    head.extend_from_slice(&u64::from(metadata.revision).to_le_bytes());
    head.extend_from_slice(&table.len.to_le_bytes());
    let mut rows = Vec::with_capacity(table.blocks.len() * ROW);
    table.blocks.iter().for_each(|block| rows.extend_from_slice(&block.to_bytes()));
    head.extend_from_slice(&head_sum(&head, &rows).to_le_bytes());
    head.extend_from_slice(&rows);
    head
}

fn head_sum(head: &[u8], rows: &[u8]) -> u64 {
    checksum::of(head) ^ checksum::of(rows).rotate_left(1)
}

/// Returns what a body takes as a file.
pub(super) fn file_bytes(table: &Table) -> u64 {
    (HEADER + table.blocks.len() * ROW) as u64 + table.stored_len()
}

/// An open file of a body.
#[derive(Debug)]
pub(super) struct BodyFile {
    file: File,
    table: Table,
    /// Where the stored bytes begin.
    base: u64,
}

impl BodyFile {
    /// Opens the file of an entry and reads its table.
    ///
    /// # Errors
    /// When it is missing, or is not this entry's as it was written.
    pub(super) fn open(folder: &Folder, metadata: &Metadata) -> io::Result<Self> {
        let file = folder.read(&file_name(metadata))?;
        let len = file.metadata()?.len();
        let mut head = [0; HEADER];
        read_exact_at(&file, &mut head, 0)?;
        let n_blocks = Table::count(metadata.size_bytes);
        let base = (n_blocks as u64).saturating_mul(ROW as u64).saturating_add(HEADER as u64);
        if base > len {
            return Err(damaged());
        }
        let mut rows = vec![0; n_blocks * ROW];
        read_exact_at(&file, &mut rows, HEADER as u64)?;
        let (rows, _) = rows.as_chunks::<ROW>();
        let blocks = rows.iter().map(|row| Block::from_bytes(*row)).collect();
        let table = Table { len: metadata.size_bytes, blocks };
        let is_right = file_head(metadata, &table).starts_with(&head)
            && table.is_sound()
            && base + table.stored_len() == len;
        if is_right { Ok(Self { file, table, base }) } else { Err(damaged()) }
    }

    /// Returns what it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.base + self.table.stored_len()
    }

    pub(super) fn is_compressed(&self) -> bool {
        self.table.stored_len() < self.table.len
    }
}

impl Stored for File {
    fn fetch(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> io::Result<()> {
        let len = range.end.checked_sub(range.start).and_then(|len| usize::try_from(len).ok());
        buffer.resize(len.ok_or_else(damaged)?, 0);
        read_exact_at(self, buffer, range.start)
    }
}

/// Stored bytes that begin somewhere in a file.
#[derive(Debug)]
struct From<'a>(&'a File, u64);

impl Stored for From<'_> {
    fn fetch(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> io::Result<()> {
        self.0.fetch(range.start + self.1..range.end + self.1, buffer)
    }
}

/// A body for one reader.
#[derive(Debug)]
pub(super) enum Open {
    Verbatim(Arc<Vec<u8>>),
    Compressed(Arc<Blocks>, Mutex<Reader>),
    File(BodyFile, Mutex<Reader>),
}

impl Open {
    /// Opens a body for reading.
    ///
    /// # Errors
    /// When its file is missing or is not this entry's.
    pub(super) fn new(
        body: &Body,
        metadata: &Metadata,
        folder: Option<&Folder>,
    ) -> io::Result<Self> {
        let reader = Mutex::default();
        Ok(match &body.memory {
            Some(Memory::Verbatim(bytes)) => Self::Verbatim(bytes.clone()),
            Some(Memory::Compressed(blocks)) => Self::Compressed(blocks.clone(), reader),
            None => {
                let folder = folder.ok_or(io::ErrorKind::NotFound)?;
                Self::File(BodyFile::open(folder, metadata)?, reader)
            }
        })
    }

    /// Returns the whole body.
    ///
    /// # Errors
    /// When what is stored of it is damaged.
    pub(super) fn whole(&self) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        // The table says the length, and has been checked against the bytes that are there.
        whole.try_reserve_exact(self.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.read(0..self.len(), &mut whole)?;
        Ok(whole)
    }
}

impl Source for Open {
    fn len(&self) -> usize {
        match self {
            Self::Verbatim(bytes) => bytes.len(),
            Self::Compressed(blocks, _) => usize::try_from(blocks.table.len).unwrap_or(usize::MAX),
            Self::File(file, _) => usize::try_from(file.table.len).unwrap_or(usize::MAX),
        }
    }

    fn read(&self, range: Range<usize>, out: &mut Vec<u8>) -> io::Result<()> {
        if range.start > range.end || range.end > self.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let wide = range.start as u64..range.end as u64;
        let lock = |reader: &'_ Mutex<Reader>,
                    read: &mut dyn FnMut(&mut Reader) -> io::Result<()>| {
            read(&mut reader.lock().unwrap_or_else(PoisonError::into_inner))
        };
        match self {
            Self::Verbatim(bytes) => Source::read(bytes.as_slice(), range, out),
            Self::Compressed(blocks, reader) => lock(reader, &mut |reader| {
                reader.read(&blocks.table, blocks.stored.as_slice(), wide.clone(), out)
            }),
            Self::File(file, reader) => lock(reader, &mut |reader| {
                reader.read(&file.table, &From(&file.file, file.base), wide.clone(), out)
            }),
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Verbatim(bytes) => Some(bytes),
            Self::Compressed(..) | Self::File(..) => None,
        }
    }
}
