//! What need not be done before an acknowledgement: writing the log back, removing files, and checking
//! a file that was too large to be checked before its use.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use raincheck_core::store::Durability;

use crate::database;
use crate::fault::Fault;
use crate::files::Files;

/// Something to do.
#[derive(Debug)]
pub(crate) enum Chore {
    /// Write the log back as far as nobody needs it.
    WriteBack,
    /// Remove files of contents.
    Remove(Vec<String>),
    /// Check the whole file.
    Check,
}

/// A thread with a connection of its own.
#[derive(Debug)]
pub(crate) struct Housekeeper {
    chores: Option<Sender<Chore>>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeper {
    pub(crate) fn start(
        path: &Path,
        durability: Durability,
        files: Arc<Files>,
    ) -> Result<Self, Fault> {
        let connection = database::checkpointer(path, durability)?;
        let path = path.to_owned();
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("raincheck-house".to_owned())
            .spawn(move || work(&receiver, &connection, &path, durability, &files))?;
        Ok(Self { chores: Some(sender), thread: Some(thread) })
    }

    /// Returns a way to give it chores.
    pub(crate) fn chores(&self) -> Option<Sender<Chore>> {
        self.chores.clone()
    }

    pub(crate) fn give(&self, chore: Chore) {
        if let Some(chores) = &self.chores {
            // It ends only with its sender; what it does not get any more, the next opening does.
            let _ = chores.send(chore);
        }
    }
}

impl Drop for Housekeeper {
    fn drop(&mut self) {
        self.chores = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the housekeeper of the store panicked");
        }
    }
}

fn work(
    chores: &Receiver<Chore>,
    connection: &Connection,
    path: &Path,
    durability: Durability,
    files: &Files,
) {
    while let Ok(chore) = chores.recv() {
        match chore {
            Chore::WriteBack => {
                if let Err(error) = write_back(connection) {
                    tracing::warn!(%error, "the log of the store was not written back");
                }
            }
            Chore::Remove(names) => match database::keep_log(path, durability) {
                Ok(()) => files.remove(&names),
                // They are swept at the next opening.
                Err(error) => tracing::warn!(%error, "contents that nobody needs were kept"),
            },
            Chore::Check => database::check_later(path, connection),
        }
    }
}

/// Writes the log back as far as no reader needs it; waits for nobody.
pub(crate) fn write_back(connection: &Connection) -> Result<(), Fault> {
    checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)")
}

/// Writes the log back and empties it, unless another program reads.
pub(crate) fn write_back_all(connection: &Connection) -> Result<(), Fault> {
    connection.busy_timeout(Duration::ZERO)?;
    checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
}

fn checkpoint(connection: &Connection, sql: &str) -> Result<(), Fault> {
    connection.prepare_cached(sql)?.query_row([], |_| Ok(()))?;
    Ok(())
}
