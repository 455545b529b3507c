//! The folder as the shelf writes it: one file per body, and the index file.
//!
//! A file is written beside its place and renamed, and the record of an entry comes after its body, so
//! that a process that ends at any instruction leaves each handle with its body, or without a record.
//! Nothing is flushed to the device on the way: a loss of power can take what the system had not
//! written yet. A handle is then unknown or lost; checksums see to it that it never has another body.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::shelf::blocks::Table;
use crate::shelf::body::{self, STAGED};
use crate::shelf::entry::Metadata;
use crate::shelf::folder::{self, Folder};
use crate::shelf::journal::{MAGIC, Record};

const INDEX: &str = "index";
const INDEX_BESIDE: &str = "index.new";
const LOCK: &str = "lock";

/// A longer index file is not read: nothing writes one.
const MAX_INDEX: u64 = 1024 * 1024 * 1024;

/// Growth that is not worth a rewrite.
const SLACK: u64 = 256 * 1024;

/// The lock and the index file. Who has it is the only process that writes the folder.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) folder: Arc<Folder>,
    journal: File,
    /// Bytes of whole records.
    len: u64,
    /// Bytes right after the last rewrite.
    rewritten: u64,
    /// Why nothing is written any more.
    pub(super) broken: Option<String>,
    /// Released when it is closed.
    _lock: File,
}

/// A body's file before it has its name.
#[derive(Debug)]
pub(super) struct Staged {
    name: String,
    pub(super) bytes: u64,
}

/// Opens the folder for one process alone, and returns it with the bytes of its index file.
///
/// # Errors
/// When it cannot be used, or another process has it ([`io::ErrorKind::WouldBlock`]).
pub(super) fn lock(folder: &Folder) -> io::Result<File> {
    let lock = folder.append(LOCK)?;
    lock.try_lock()?;
    Ok(lock)
}

/// Reads the index file; an absent one is empty.
///
/// # Errors
/// When it is there and cannot be read.
pub(super) fn read_index(folder: &Folder) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match folder.read(INDEX) {
        Ok(file) => file.take(MAX_INDEX).read_to_end(&mut bytes).map(|_| bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(bytes),
        Err(error) => Err(error),
    }
}

/// Returns whether a file is one that a shelf writes while it works, and that is of no use at the next start.
pub(super) fn is_leftover(name: &str) -> bool {
    name == INDEX_BESIDE || body::is_file_name(name)
}

impl Disk {
    /// Writes an index file of these records, and goes on from there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn start(folder: Arc<Folder>, lock: File, records: &[u8]) -> io::Result<Self> {
        let (journal, len) = rewrite(&folder, records)?;
        Ok(Self { folder, journal, len, rewritten: len, broken: None, _lock: lock })
    }

    /// Appends records in one write.
    ///
    /// # Errors
    /// When they cannot be written. None of them is there then, or nothing is written any more.
    pub(super) fn append(&mut self, records: &[u8]) -> io::Result<()> {
        if let Some(why) = &self.broken {
            return Err(io::Error::other(why.clone()));
        }
        let Err(error) = folder::write(&self.journal, records) else {
            self.len += records.len() as u64;
            return Ok(());
        };
        if let Err(error) = folder::truncate(&self.journal, self.len) {
            // What is written behind a part of a record would not be read.
            self.broken = Some(format!("the index file cannot be written: {error}"));
        }
        Err(error)
    }

    /// Returns whether the index file is mostly about the past.
    pub(super) fn is_stale(&self) -> bool {
        self.len > self.rewritten.saturating_mul(2).saturating_add(SLACK)
    }

    /// Returns whether that can wait no longer, because nobody ticks.
    pub(super) fn is_overgrown(&self) -> bool {
        self.len > self.rewritten.saturating_mul(8).saturating_add(16 * SLACK)
    }

    /// Replaces the index file by one of these records.
    ///
    /// # Errors
    /// When it cannot be written; the one before stays.
    pub(super) fn rewrite(&mut self, records: &[u8]) -> io::Result<()> {
        (self.journal, self.len) = rewrite(&self.folder, records)?;
        self.rewritten = self.len;
        Ok(())
    }
}

fn rewrite(folder: &Folder, records: &[u8]) -> io::Result<(File, u64)> {
    match folder.remove(INDEX_BESIDE) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = folder.create(INDEX_BESIDE, &[MAGIC, records])?;
    folder.rename(INDEX_BESIDE, INDEX)?;
    Ok((file, (MAGIC.len() + records.len()) as u64))
}

/// Writes a body's file beside its place.
///
/// # Errors
/// When it cannot be written; nothing is left then.
pub(super) fn stage(
    folder: &Folder,
    metadata: &Metadata,
    table: &Table,
    stored: &[u8],
) -> io::Result<Staged> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let turn = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}.{turn}{STAGED}", metadata.id);
    folder.create(&name, &[&body::file_head(metadata, table), stored])?;
    Ok(Staged { name, bytes: body::file_bytes(table) })
}

impl Staged {
    /// Gives the file its name.
    ///
    /// # Errors
    /// When it cannot; nothing is left then.
    pub(super) fn commit(self, folder: &Folder, metadata: &Metadata) -> io::Result<()> {
        let done = folder.rename(&self.name, &body::file_name(metadata));
        if done.is_err() {
            self.discard(folder);
        }
        done
    }

    /// Removes the file.
    pub(super) fn discard(self, folder: &Folder) {
        // A leftover is swept at the next opening.
        folder.remove(&self.name).ok();
    }
}

/// Removes the file of an entry.
pub(super) fn remove_body(folder: &Folder, metadata: &Metadata) {
    // A leftover is swept at the next opening: no record names it.
    folder.remove(&body::file_name(metadata)).ok();
}

/// Encodes records one after another.
pub(super) fn encode(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    records.iter().for_each(|record| record.encode(&mut bytes));
    bytes
}
