//! Reading beside the writer, on threads that may block.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::task::spawn_blocking;

use raincheck_core::store::Error;

use crate::database;
use crate::fault::Fault;
use crate::files::Files;

/// Connections that stay open between two reads.
const N_IDLE: usize = 4;

/// Connections that only read, made as they are needed.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    files: Arc<Files>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(crate) const fn new(path: PathBuf, files: Arc<Files>) -> Self {
        Self { path, files, idle: Mutex::new(Vec::new()) }
    }

    /// Reads, off the threads that must not block.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Connection, &Files) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let own = Arc::clone(self);
        blocking(move || {
            let connection = match own.take() {
                Some(connection) => connection,
                None => database::reader(&own.path)?,
            };
            let read = work(&connection, &own.files)?;
            own.give_back(connection);
            Ok(read)
        })
        .await
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < N_IDLE {
            idle.push(connection);
        }
    }
}

/// Runs what may block on a thread for that.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Error> {
    match spawn_blocking(work).await {
        Ok(done) => done.map_err(|fault| {
            tracing::error!(error = ?fault, "the store could not be read");
            fault.into()
        }),
        Err(_) => Err(Error::new("the process is ending")),
    }
}
