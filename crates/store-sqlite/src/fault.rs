//! What goes wrong below the store, and the words for it.

use std::io;

use rusqlite::ErrorCode;

use raincheck_core::shortage::is_out_of_files;
use raincheck_core::store;

/// A failure of the database, of a file beside it, or of what is written in them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// SQLite says so.
    #[error("the database failed")]
    Sql(#[from] rusqlite::Error),
    /// The file system says so.
    #[error("a file failed")]
    Io(#[from] io::Error),
    /// The file is a sound one, but not for this version.
    #[error("{0}")]
    Foreign(std::borrow::Cow<'static, str>),
    /// The file system locks no files.
    #[error("the file system refuses locks")]
    NoLocks,
    /// The file does not fit together.
    #[error("{0}")]
    Damaged(&'static str),
    /// A value is not what this version writes: damage of one task, or the word of a newer version.
    #[error("{0}")]
    Broken(&'static str),
}

impl Fault {
    /// Tells whether the file itself cannot be trusted any more.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Sql(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
            ),
            Self::Damaged(_) => true,
            Self::Io(_) | Self::Foreign(_) | Self::NoLocks | Self::Broken(_) => false,
        }
    }

    /// Tells whether it is about one task and no other: a content that is gone, or a value that this
    /// version does not know.
    pub(crate) fn is_of_one_task(&self) -> bool {
        match self {
            Self::Io(error) => error.kind() == io::ErrorKind::NotFound,
            Self::Broken(_) => true,
            Self::Sql(_) | Self::Foreign(_) | Self::Damaged(_) | Self::NoLocks => false,
        }
    }

    /// What happened, without paths and without SQL.
    fn words(&self) -> String {
        match self {
            Self::Sql(error) => sql_words(error),
            Self::Io(error) => io_words(error),
            Self::Foreign(why) => format!("the store cannot be used: {why}"),
            Self::NoLocks => {
                "the file system of the store's folder refuses locks, as some network \
                              folders do"
                    .to_owned()
            }
            Self::Damaged(why) => format!("the store's file is damaged: {why}"),
            Self::Broken(why) => format!("the store holds what it should not: {why}"),
        }
    }
}

impl From<Fault> for store::Error {
    fn from(fault: Fault) -> Self {
        Self::new(fault.words()).with_hint(fault.hint())
    }
}

const FREE_SPACE: &str = "free space on the disk of the state folder, then call again";
const ELSEWHERE: &str =
    "give yourself write access to the state folder, or name another with --state-dir DIR";
const LOCAL_DISK: &str = "keep the store on a local disk: --state-dir DIR, or --store FILE";
const CLOSE_OTHERS: &str = "close the program that has the store's file open, such as a shell or a \
    backup, then call again; if there is none, the folder may refuse locks, as some network folders \
    do: keep the store on a local disk (--state-dir DIR)";
const MORE_FILES: &str =
    "let the server open more files (`ulimit -n`, or LimitNOFILE of its service), then call again";
const LOOK: &str = "run `doctor`; the server's log says more";

impl Fault {
    /// What to do about it.
    fn hint(&self) -> &'static str {
        match self {
            Self::Sql(error) => sql_hint(error),
            Self::Io(error) => io_hint(error),
            Self::NoLocks => LOCAL_DISK,
            Self::Foreign(_) => {
                "start the version that wrote it, or name another folder with --state-dir DIR"
            }
            Self::Damaged(_) => {
                "end the server that runs, if one does; the next one to start sets the file aside"
            }
            Self::Broken(_) => {
                "start the version that wrote it; `doctor` names what cannot be read"
            }
        }
    }
}

fn sql_hint(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => FREE_SPACE,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            ELSEWHERE
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "end the server that runs, if one does; the next one to start sets the file aside"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => CLOSE_OTHERS,
        Some(ErrorCode::FileLockingProtocolFailed) => LOCAL_DISK,
        _ => LOOK,
    }
}

fn io_hint(error: &io::Error) -> &'static str {
    const KNOWN: [(io::ErrorKind, &str); 6] = [
        (io::ErrorKind::StorageFull, FREE_SPACE),
        (io::ErrorKind::QuotaExceeded, FREE_SPACE),
        (io::ErrorKind::PermissionDenied, ELSEWHERE),
        (io::ErrorKind::ReadOnlyFilesystem, ELSEWHERE),
        (io::ErrorKind::NotFound, ELSEWHERE),
        (io::ErrorKind::NotADirectory, ELSEWHERE),
    ];
    if is_out_of_files(error) {
        return MORE_FILES;
    }
    let known = KNOWN.iter().find(|(kind, _)| *kind == error.kind());
    known.map_or(LOOK, |(_, hint)| hint)
}

fn sql_words(error: &rusqlite::Error) -> String {
    let words = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full",
        Some(ErrorCode::ReadOnly) => "the store's file may not be written",
        Some(ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            "the store's file may not be opened"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "the store's file is damaged",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds the store's file"
        }
        Some(ErrorCode::SystemIoFailure) => "the disk failed to read or write the store's file",
        Some(code) => return format!("the database refused ({code:?})"),
        None => "a value in the store's file is of the wrong type",
    };
    words.to_owned()
}

fn io_words(error: &io::Error) -> String {
    const KNOWN: [(io::ErrorKind, &str); 5] = [
        (io::ErrorKind::StorageFull, "the disk is full"),
        (io::ErrorKind::QuotaExceeded, "the disk is full"),
        (io::ErrorKind::PermissionDenied, "the state folder may not be written"),
        (io::ErrorKind::ReadOnlyFilesystem, "the state folder is read-only"),
        (io::ErrorKind::NotFound, "a file or folder of the store is missing"),
    ];
    if is_out_of_files(error) {
        return "the process may open no further file".to_owned();
    }
    match KNOWN.iter().find(|(kind, _)| *kind == error.kind()) {
        Some((_, words)) => (*words).to_owned(),
        None => format!("a file of the store failed ({})", error.kind()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_own_next_step() {
        // [DUR-5]
        let io = |kind: io::ErrorKind| store::Error::from(Fault::Io(kind.into()));
        let hint = |error: store::Error| error.hint.expect("a next step").to_string();
        assert!(hint(io(io::ErrorKind::StorageFull)).contains("free space"));
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            let hint = hint(io(kind));
            assert!(hint.contains("--state-dir") && !hint.contains("free space"), "{hint}");
        }
        let sql = |code| {
            let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            hint(Fault::Sql(error).into())
        };
        assert!(sql(rusqlite::ffi::SQLITE_FULL).contains("free space"));
        assert!(sql(rusqlite::ffi::SQLITE_BUSY).contains("close the program"));
        assert!(sql(rusqlite::ffi::SQLITE_READONLY).contains("--state-dir"));
        assert!(hint(Fault::NoLocks.into()).contains("local disk"));
        #[cfg(unix)]
        assert!(hint(Fault::Io(io::Error::from_raw_os_error(24)).into()).contains("ulimit"));
        let words = store::Error::from(Fault::NoLocks).message.to_string();
        assert!(words.contains("locks") && words.contains("network"), "{words}");
    }
}
