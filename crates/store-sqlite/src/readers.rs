//! Reading beside the writer, on threads that may block.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::task::spawn_blocking;

use raincheck_core::store::Error;

use crate::database;
use crate::fault::Fault;
use crate::files::Files;

/// Connections that stay open between two reads.
const N_IDLE: usize = 4;

/// Connections that only read, made as they are needed. Where no further one can be made, because the
/// process has no file descriptor left, those that there are serve one read after the other.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    files: Arc<Files>,
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<Connection>,
    /// How many are in use.
    n_lent: usize,
}

/// Counts a connection as in use.
struct Lent<'a>(&'a Readers);

impl Readers {
    pub(crate) fn new(path: PathBuf, files: Arc<Files>) -> Self {
        Self { path, files, pool: Mutex::default(), returned: Condvar::new() }
    }

    /// Opens the first connection, so that reading rows needs no further file descriptor.
    pub(crate) fn open(&self) -> Result<(), Fault> {
        let first = database::reader(&self.path)?;
        self.pool().idle.push(first);
        Ok(())
    }

    /// Reads, off the threads that must not block.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Connection, &Files) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let own = Arc::clone(self);
        blocking(move || {
            // A connection that failed is closed before the next read is let on.
            let (lent, connection) = own.take()?;
            let read = work(&connection, &own.files)?;
            lent.give_back(connection);
            Ok(read)
        })
        .await
    }

    /// Takes a connection that is idle, makes one, or waits for one where none can be made.
    fn take(&self) -> Result<(Lent<'_>, Connection), Fault> {
        let mut pool = self.pool();
        if let Some(idle) = pool.idle.pop() {
            return Ok(self.lend(&mut pool, idle));
        }
        drop(pool);
        match database::reader(&self.path) {
            Ok(made) => Ok(self.lend(&mut self.pool(), made)),
            Err(fault) => self.awaited().ok_or(fault),
        }
    }

    /// Waits for a connection that is in use; `None` when there is none to wait for.
    fn awaited(&self) -> Option<(Lent<'_>, Connection)> {
        let is_awaited = |pool: &mut Pool| pool.idle.is_empty() && pool.n_lent > 0;
        let pool = self.returned.wait_while(self.pool(), is_awaited);
        let mut pool = pool.unwrap_or_else(PoisonError::into_inner);
        let idle = pool.idle.pop()?;
        Some(self.lend(&mut pool, idle))
    }

    fn lend(&self, pool: &mut Pool, connection: Connection) -> (Lent<'_>, Connection) {
        pool.n_lent += 1;
        (Lent(self), connection)
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lent<'_> {
    fn give_back(self, connection: Connection) {
        let mut pool = self.0.pool();
        if pool.idle.len() < N_IDLE {
            pool.idle.push(connection);
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.pool().n_lent -= 1;
        self.0.returned.notify_all();
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn a_read_that_can_open_no_file_waits_for_the_one_before() {
        let dir = tempfile::tempdir().expect("a folder");
        // No further connection can be made here.
        let path = dir.path().join("gone").join("store.db");
        let readers = Readers::new(path.clone(), Arc::new(Files::new(&path)));
        assert!(readers.take().is_err(), "there is none to wait for");
        let connection = Connection::open_in_memory().expect("a database");
        let (lent, connection) = readers.lend(&mut readers.pool(), connection);
        let both = Barrier::new(2);
        thread::scope(|scope| {
            let second = scope.spawn(|| {
                both.wait();
                readers.take().is_ok()
            });
            both.wait();
            thread::yield_now();
            lent.give_back(connection);
            assert!(second.join().expect("no panic"), "it has the connection of the first");
        });
        assert_eq!(readers.pool().n_lent, 0);
    }
}
