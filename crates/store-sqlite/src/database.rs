//! Opening the file: who may, whether it is sound, and what is in it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};

use raincheck_core::ids::{Fence, LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::ledger::{Ledger, Snapshot};
use raincheck_core::mac::MacKey;
use raincheck_core::shortage::is_out_of_files;
use raincheck_core::slot::Slot;
use raincheck_core::store::{self, Durability};
use raincheck_core::task::{TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;

use crate::fault::Fault;
use crate::files::{self, Files};
use crate::log;
use crate::rows::{self, Statements};
use crate::schema::{self, beside};
use crate::settled::Settled;

/// How long another program, such as a shell that looks at the file, may hold it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same while the store is opened: a call waits for that.
const OPENING: Duration = Duration::from_secs(1);

/// Files of up to so many bytes are checked whole before they are used.
const CHECKED_AT_ONCE: u64 = 64 << 20;

/// Statements that stay prepared on a connection.
const N_STATEMENTS: usize = 48;

pub(crate) const IS_NAMED: &str = "SELECT EXISTS (SELECT 1 FROM tasks t \
    LEFT JOIN inputs i ON i.seq = t.seq LEFT JOIN results r ON r.seq = t.seq \
    WHERE t.id = ?1 AND (i.file = ?2 OR r.outcome_file = ?2 OR r.late_file = ?2))";

/// A lane, what it may do, and why it is held.
pub(crate) type Lane = (LaneId, lane::Config, Option<WaitReason>);

/// Opens the file for the writer: makes it, checks it, and brings it to this version.
///
/// A damaged file is kept aside, so that the next opening begins with an empty store [DUR-5]. A large
/// one is used at once and checked [meanwhile](check_later).
pub(crate) fn open(
    path: &Path,
    durability: Durability,
    now: Timestamp,
) -> Result<Connection, store::Error> {
    let opened = create(path).and_then(|()| {
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // The call that has the store opened does not wait for long.
        connection.busy_timeout(OPENING)?;
        match make_ready(&mut connection, path, durability) {
            Ok(()) => Ok(connection),
            Err(fault) => {
                if fault.is_damage() {
                    close_damaged(connection);
                }
                Err(fault)
            }
        }
    });
    opened.map_err(|fault| if fault.is_damage() { keep_aside(path, now) } else { fault.into() })
}

fn make_ready(
    connection: &mut Connection,
    path: &Path,
    durability: Durability,
) -> Result<(), Fault> {
    set_up(connection, durability)?;
    if !is_checked_later(path) {
        check(connection)?;
        fs::remove_file(suspicion(path)).or_else(ignore_missing)?;
    }
    schema::migrate(connection, path)
}

fn ignore_missing(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Whether checking the file would make its opening slow; a file that is under suspicion is checked
/// whatever it takes.
pub(crate) fn is_checked_later(path: &Path) -> bool {
    let is_large = fs::metadata(path).is_ok_and(|data| data.len() > CHECKED_AT_ONCE);
    is_large && !suspicion(path).exists()
}

/// Checks a file that is in use. What is found is logged, and the next opening keeps the file aside.
pub(crate) fn check_later(path: &Path, connection: &Connection) {
    match check(connection) {
        Ok(()) => {}
        Err(fault) if fault.is_damage() => suspect(path, &fault),
        Err(fault) => tracing::warn!(error = ?fault, "the store's file could not be checked"),
    }
}

/// Lets the next opening check the whole file before it is used.
pub(crate) fn suspect(path: &Path, fault: &Fault) {
    tracing::error!(
        error = ?fault,
        "the store's file is damaged: end the server that runs, if one does; the next one to start keeps the file aside"
    );
    if let Err(error) = files::open_private(&suspicion(path)) {
        tracing::error!(%error, "the damage could not be noted beside the file");
    }
}

fn suspicion(path: &Path) -> PathBuf {
    beside(path, ".suspect")
}

/// Makes an empty file for its owner alone, and sees to it that its name lasts: whoever made it may
/// have ended before that.
fn create(path: &Path) -> Result<(), Fault> {
    if !path.try_exists()? {
        drop(files::open_private(path)?);
    }
    if let Some(folder) = path.parent() {
        files::sync_folders_above(folder)?;
    }
    Ok(())
}

/// Moves contents to the database that earlier versions kept beside a link to it.
pub(crate) fn fetch_contents(named: &Path, path: &Path) -> Result<(), Fault> {
    let (there, here) = (files::folder_of(named), files::folder_of(path));
    if named != path && there.is_dir() && !here.exists() {
        fs::rename(there, here)?;
    }
    Ok(())
}

/// Makes the names of all files beside the database last.
pub(crate) fn keep_names(path: &Path) -> Result<(), Fault> {
    Ok(path.parent().map_or(Ok(()), files::sync_folder)?)
}

/// Opens a further connection that only reads, and what it reads from.
pub(crate) fn reader(path: &Path) -> Result<Connection, Fault> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    // The log and its index are opened at the first read.
    connection.query_row("SELECT count(*) FROM sqlite_schema WHERE 0", [], |_| Ok(()))?;
    Ok(connection)
}

/// Opens a further connection that writes back what the log holds.
pub(crate) fn checkpointer(path: &Path, durability: Durability) -> Result<Connection, Fault> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    synchronous(&connection, durability)?;
    Ok(connection)
}

fn connect(path: &Path, mode: OpenFlags) -> Result<Connection, Fault> {
    let opened = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let connection = opened.map_err(|error| {
        // The database does not say why it opens no file. To open that one here would cost its locks.
        let why = path.parent().and_then(|folder| File::open(folder).err());
        why.filter(is_out_of_files).map_or(Fault::Sql(error), Fault::Io)
    })?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(N_STATEMENTS);
    Ok(connection)
}

fn set_up(connection: &Connection, durability: Durability) -> Result<(), Fault> {
    if begin_log(connection)? != "wal" {
        return Err(Fault::Foreign(
            "the file system of the state folder cannot share memory".into(),
        ));
    }
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", log::FORCED.cast_signed())?;
    connection.pragma_update(None, "temp_store", "memory")?;
    synchronous(connection, durability)
}

/// Closes a damaged file. Its log stays beside it: closing it in order would write the log into the
/// damage.
pub(crate) fn close_damaged(connection: Connection) {
    let quiet = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    if let Err(error) = quiet {
        tracing::warn!(%error, "the log of a damaged store is written back");
    }
    drop(connection);
}

/// Lets the writer wait for other programs from now on.
pub(crate) fn begin_use(connection: &Connection) -> Result<(), Fault> {
    Ok(connection.busy_timeout(PATIENCE)?)
}

/// Asks for a log and returns the mode that the file is in then.
fn begin_log(connection: &Connection) -> Result<String, Fault> {
    let mut statement = connection.prepare("PRAGMA journal_mode = wal")?;
    let mut rows = statement.query([])?;
    let mode = rows.next()?.map_or(Ok(String::new()), |row| row.get(0))?;
    // The mode is told first and written after that; the writing can fail.
    while rows.next()?.is_some() {}
    Ok(mode)
}

/// `full` waits for the disk with every commit, `process` leaves that to the system [DUR-7].
fn synchronous(connection: &Connection, durability: Durability) -> Result<(), Fault> {
    let (mode, barrier) = match durability {
        Durability::Full => ("full", 1),
        Durability::Process | Durability::None => ("normal", 0),
    };
    connection.pragma_update(None, "synchronous", mode)?;
    connection.pragma_update(None, "fullfsync", barrier)?;
    connection.pragma_update(None, "checkpoint_fullfsync", barrier)?;
    Ok(())
}

fn check(connection: &Connection) -> Result<(), Fault> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(Fault::Damaged("its pages do not fit together")) }
}

/// Renames everything of a damaged store, and says so.
pub(crate) fn keep_aside(path: &Path, now: Timestamp) -> store::Error {
    let suffix = format!(".damaged-{}", now.as_millis());
    let aside = beside(path, &suffix);
    // The log has the name by which SQLite looks for it, or its rows would seem lost.
    let parts = [
        (path.to_owned(), aside.clone()),
        (beside(path, "-wal"), beside(&aside, "-wal")),
        (files::folder_of(path), files::folder_of(&aside)),
    ];
    let moved: Result<Vec<()>, _> = parts
        .iter()
        .filter(|(from, _)| from.exists())
        .map(|(from, to)| fs::rename(from, to))
        .collect();
    // The index of the log is made anew from the log, and the next file is under no suspicion.
    let _ = fs::remove_file(beside(path, "-shm"));
    let _ = fs::remove_file(suspicion(path));
    let name = aside.file_name().map_or_else(PathBuf::new, PathBuf::from);
    match moved {
        Ok(_) => store::Error::new(format!(
            "the store's file is damaged and was kept aside as `{}`",
            name.display()
        ))
        .with_hint("call again: that begins with an empty store"),
        Err(error) => {
            tracing::error!(%error, "the damaged store could not be renamed");
            store::Error::new("the store's file is damaged and could not be renamed")
                .with_hint("move it out of the state folder, then call again")
        }
    }
}

/// Reads the ledger, as the beginning of a new epoch that is committed before this returns [LEASE-1].
pub(crate) fn take_over(
    connection: &Connection,
    statements: &Statements,
    lanes: Vec<Lane>,
) -> Result<(Ledger, Settled, u32), Fault> {
    let (mut ledger, settled) = read_back(connection, statements, lanes)?;
    let epoch = ledger.begin_epoch();
    connection.execute("UPDATE store SET epoch = ? WHERE one = 1", [epoch])?;
    Ok((ledger, settled, epoch))
}

/// Reads the key that goes with the file; the first opening draws it.
pub(crate) fn mac_key(connection: &Connection) -> Result<MacKey, Fault> {
    let kept: Option<Vec<u8>> =
        connection.query_row("SELECT mac_key FROM store WHERE one = 1", [], |row| row.get(0))?;
    if let Some(bytes) = kept.and_then(|kept| <[u8; 32]>::try_from(kept).ok()) {
        return Ok(MacKey::from_bytes(bytes));
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::from)?;
    connection.execute("UPDATE store SET mac_key = ? WHERE one = 1", [&bytes[..]])?;
    Ok(MacKey::from_bytes(bytes))
}

/// Writes as little as can be written, to see whether that is possible: an epoch is left out.
pub(crate) fn try_write(connection: &Connection) -> Result<(), Fault> {
    connection.execute("UPDATE store SET epoch = epoch + 1 WHERE one = 1", [])?;
    Ok(())
}

/// Reads the ledger as it was when it was last committed, without what has ended.
pub(crate) fn read_back(
    connection: &Connection,
    statements: &Statements,
    lanes: Vec<Lane>,
) -> Result<(Ledger, Settled), Fault> {
    let (epoch, next_seq): (u32, i64) =
        connection.query_row("SELECT epoch, next_seq FROM store", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let path = connection.path().map(PathBuf::from);
    let rows = rows::live(connection, statements, || {
        reader(&path.ok_or(Fault::Damaged("a database without a file"))?)
    })?;
    let last: Option<i64> =
        connection.query_row("SELECT max(seq) FROM tasks", [], |row| row.get(0))?;
    let after = last.map_or(1, |seq| seq.cast_unsigned() + 1);
    let slots = slots(connection, &rows)?;
    let settled = Settled::read(connection)?;
    let ledger = Ledger::restore(Snapshot {
        next_fence: Fence::new(epoch, 1).raw(),
        next_seq: next_seq.cast_unsigned().max(after),
        lanes,
        rows,
        slots,
    });
    Ok((ledger, settled))
}

/// Reads the places that are taken, but for those whose task is gone.
fn slots(connection: &Connection, rows: &[TaskRecord]) -> Result<Vec<Slot>, Fault> {
    let mut statement = connection
        .prepare("SELECT task, lane, fence, worker, lease, heard FROM slots ORDER BY lane, task")?;
    let mut found = statement.query([])?;
    let mut slots = Vec::new();
    while let Some(row) = found.next()? {
        let slot = Slot {
            task: rows::task_id(row.get(0)?)?,
            lane: row.get::<_, String>(1)?.into(),
            fence: Fence::from_raw(row.get::<_, i64>(2)?.cast_unsigned()),
            worker: row.get::<_, String>(3)?.into(),
            lease: Timestamp::from_millis(row.get(4)?),
            heard: Timestamp::from_millis(row.get(5)?),
        };
        slots.push(slot);
    }
    let taken: BTreeSet<_> = slots.iter().map(|slot| slot.task).collect();
    let known = rows.iter().map(TaskRecord::id).filter(|id| taken.contains(id));
    let known: BTreeSet<_> = known.collect();
    slots.retain(|slot| known.contains(&slot.task));
    Ok(slots)
}

/// Puts the log on the disk, where commits do not. No file may go before that in which its row went,
/// or a loss of power brings back a row without its file.
pub(crate) fn keep_log(path: &Path, durability: Durability) -> Result<(), Fault> {
    if durability == Durability::Full {
        return Ok(());
    }
    match File::open(beside(path, "-wal")) {
        Ok(log) => Ok(log.sync_data()?),
        // It was written back, after which the database is on the disk.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes the contents that no task names: a crash came between them and their row.
pub(crate) fn sweep(connection: &Connection, files: &Files) -> Result<(), Fault> {
    let mut strays = Vec::new();
    for name in files.names()? {
        if !is_named(connection, &name)? {
            strays.push(name);
        }
    }
    if !strays.is_empty() {
        tracing::info!(n_strays = strays.len(), "contents that no task names are removed");
        files.remove(&strays);
    }
    Ok(())
}

/// Whether a file is the content of the task whose identity its name begins with.
fn is_named(connection: &Connection, file: &str) -> Result<bool, Fault> {
    let id = file.split('-').next().and_then(|id| id.parse::<TaskId>().ok());
    let Some(id) = id else { return Ok(false) };
    let mut statement = connection.prepare_cached(IS_NAMED)?;
    Ok(statement.query_row(params![id.bits().to_be_bytes(), file], |row| row.get(0))?)
}

#[cfg(test)]
mod tests;
