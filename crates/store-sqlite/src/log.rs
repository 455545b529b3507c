//! The write-ahead log: how much of it is in use, when it is written back, and its room on the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use raincheck_core::store::Durability;

use crate::fault::Fault;
use crate::schema::beside;

/// After so many bytes the log is written back while commits go on.
const PASSIVE: u64 = 4 << 20;

/// From this size on a commit waits until the log is written back, so that it cannot outrun that; the
/// file is cut to this size when it begins anew.
pub(crate) const FORCED: u64 = 64 << 20;

/// What stands in the file before its first page, and before each.
const HEAD: u64 = 32;
const PAGE_HEAD: u64 = 24;

/// So much room a commit finds; a larger one makes its own.
const ROOM: u64 = 64 << 10;

/// The file grows by about what it holds, within these bounds.
const LEAST_GROWTH: u64 = 128 << 10;
const MOST_GROWTH: u64 = 4 << 20;
const PIECE: [u8; 4096] = [0; 4096];

/// What is to be done with the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    /// Write it back while commits go on.
    WriteBack,
    /// Write it back before the next commit.
    WriteBackNow,
}

/// What the writer knows of its log.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    page: u64,
    /// How many pages are in use, as the last commit left it.
    n_pages: Arc<AtomicU64>,
    /// How many bytes were in use when it was last to be written back.
    asked_at: u64,
    /// The size of the file, as far as it is known.
    room: u64,
    makes_room: bool,
}

impl Log {
    /// Follows the log that a connection writes.
    pub(crate) fn of(
        connection: &mut Connection,
        store: &Path,
        durability: Durability,
    ) -> Result<Self, Fault> {
        let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let n_pages = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&n_pages);
        connection.wal_hook(Some(move |_: &mut _, n: i32| {
            told.store(u64::try_from(n).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            path: beside(store, "-wal"),
            page: page.into(),
            n_pages,
            asked_at: 0,
            room: 0,
            makes_room: durability == Durability::Full,
        })
    }

    fn used(&self) -> u64 {
        HEAD + self.n_pages.load(Ordering::Relaxed) * (PAGE_HEAD + self.page)
    }

    /// Tells what is to be done after a commit; what it asks for, it does not ask for again soon.
    pub(crate) fn need(&mut self) -> Need {
        let used = self.used();
        if used < self.asked_at {
            // It began anew.
            self.asked_at = 0;
        }
        if used - self.asked_at < PASSIVE {
            return Need::Nothing;
        }
        self.asked_at = used;
        if used < FORCED { Need::WriteBack } else { Need::WriteBackNow }
    }

    /// Sees to it that the next commit does not make the file longer, which takes the disk several
    /// times as long as writing what is there. Only while nobody else may write to the log.
    ///
    /// What is added is no part of the log: it ends at the first page whose sums do not fit. A disk
    /// without so much room may still have enough for the commit.
    pub(crate) fn make_room(&mut self) {
        if !self.makes_room || self.used() + ROOM <= self.room {
            return;
        }
        if let Err(error) = self.lengthen() {
            tracing::debug!(%error, "the log of the store has no room ahead");
        }
    }

    fn lengthen(&mut self) -> io::Result<()> {
        let used = self.used();
        self.room = fs::metadata(&self.path)?.len();
        if used + ROOM <= self.room {
            return Ok(());
        }
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        let end = file.seek(SeekFrom::End(0))?;
        let more = used.clamp(LEAST_GROWTH, MOST_GROWTH);
        let filled = fill(&mut file, more);
        if filled.is_err() {
            file.set_len(end)?;
        }
        self.room = fs::metadata(&self.path)?.len();
        filled
    }
}

/// Writes zeros, a page at a time: the system caches what is written in the pieces in which it came,
/// and every later write inside a piece costs as much as the whole of it.
fn fill(file: &mut File, n_bytes: u64) -> io::Result<()> {
    for _ in 0..n_bytes / PIECE.len() as u64 {
        file.write_all(&PIECE)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(n_pages: &Arc<AtomicU64>) -> Log {
        Log {
            path: PathBuf::new(),
            page: 4096,
            n_pages: Arc::clone(n_pages),
            asked_at: 0,
            room: 0,
            makes_room: false,
        }
    }

    #[test]
    fn a_log_is_written_back_when_it_grew_and_not_with_every_commit() {
        // [DUR-1]
        let n_pages = Arc::new(AtomicU64::new(0));
        let mut log = log(&n_pages);
        let mut needs = |n| {
            n_pages.store(n, Ordering::Relaxed);
            log.need()
        };
        assert_eq!(needs(1000), Need::Nothing);
        assert_eq!(needs(1020), Need::WriteBack);
        assert_eq!(needs(1030), Need::Nothing);
        assert_eq!(needs(2040), Need::WriteBack);
        assert_eq!(needs(16_400), Need::WriteBackNow);
        assert_eq!(needs(16_410), Need::Nothing);
        // It began anew.
        assert_eq!(needs(10), Need::Nothing);
        assert_eq!(needs(1020), Need::WriteBack);
    }

    #[test]
    fn a_commit_finds_room_and_the_room_is_no_part_of_the_log() {
        // [DUR-1]
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.db");
        let mut connection = Connection::open(&path).expect("a database");
        connection
            .execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (n INTEGER PRIMARY KEY)")
            .expect("a table");
        let mut log = Log::of(&mut connection, &path, Durability::Full).expect("a log");
        let mut n_longer = 0;
        for n in 0..200 {
            let writing = connection.transaction().expect("a transaction");
            log.make_room();
            writing.execute("INSERT INTO t VALUES (?)", [n]).expect("a row");
            let before = fs::metadata(&log.path).expect("a log").len();
            writing.commit().expect("a commit");
            let after = fs::metadata(&log.path).expect("a log").len();
            n_longer += usize::from(before != after);
            assert!(log.used() <= after, "{} of {after}", log.used());
        }
        assert_eq!(n_longer, 0, "commits made the file longer");
        // As a crash leaves them.
        let copy = folder.path().join("b.db");
        fs::copy(&path, &copy).expect("a copy");
        fs::copy(&log.path, beside(&copy, "-wal")).expect("a copy");
        let count = "SELECT count(*) FROM t";
        let again = Connection::open(&copy).expect("a database");
        let n: i64 = again.query_row(count, [], |row| row.get(0)).expect("a count");
        assert_eq!(n, 200);
    }
}
