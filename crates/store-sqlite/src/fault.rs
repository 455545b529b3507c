//! What goes wrong below the store, and the words for it.

use std::io;

use rusqlite::ErrorCode;

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
    Foreign(&'static str),
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
            Self::Io(_) | Self::Foreign(_) | Self::Broken(_) => false,
        }
    }

    /// What happened, without paths and without SQL.
    fn words(&self) -> String {
        match self {
            Self::Sql(error) => sql_words(error),
            Self::Io(error) => io_words(error),
            Self::Foreign(why) => format!("the store cannot be used: {why}"),
            Self::Damaged(why) => format!("the store's file is damaged: {why}"),
            Self::Broken(why) => format!("the store holds what it should not: {why}"),
        }
    }
}

impl From<Fault> for store::Error {
    fn from(fault: Fault) -> Self {
        Self::new(fault.words())
    }
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
    match KNOWN.iter().find(|(kind, _)| *kind == error.kind()) {
        Some((_, words)) => (*words).to_owned(),
        None => format!("a file of the store failed ({})", error.kind()),
    }
}
