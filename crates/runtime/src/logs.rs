//! Log lines in plain files, one for each task [LOG-1, LOG-2].
//!
//! `<root>/<task id>/log` holds one JSON object a line, so that any program can read it. A line
//! reaches the file before its `append` returns; nothing is buffered in memory but a sparse index.
//! A file has one writer at a time, which may be another process; readers follow it.

mod file;
mod record;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, TryLockError};

use async_trait::async_trait;

use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::log::{DEFAULT_QUOTA, Draft, Line, LogStore};
use raincheck_core::store::{Error, Page};

use crate::shards::lock;
use file::LogFile;

/// How many logs are kept open before closed ones are let go; they are opened again when read.
const N_OPEN: usize = 1024;

type Shared = Arc<Mutex<LogFile>>;

/// Keeps log lines below one directory.
///
/// Blocking work runs on tokio's blocking threads. Lines beyond a task's quota are counted without
/// touching the file, so that a tool that writes without end costs a little processor time only.
pub struct FileLogs {
    root: PathBuf,
    open: Mutex<HashMap<TaskId, Shared>>,
}

impl FileLogs {
    /// Keeps logs below `root`, which is created with the first line.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), open: Mutex::default() }
    }

    /// Returns the log of a task, known or not.
    fn of(&self, id: TaskId) -> Shared {
        let mut open = lock(&self.open);
        if open.len() >= N_OPEN && !open.contains_key(&id) {
            // Whoever holds a log at this moment keeps it.
            open.retain(|_, log| {
                Arc::strong_count(log) > 1 || !log.try_lock().is_ok_and(|log| log.is_closed())
            });
        }
        let log = open.entry(id).or_insert_with(|| {
            let folder = self.root.join(id.to_string());
            Arc::new(Mutex::new(LogFile::new(folder, DEFAULT_QUOTA)))
        });
        Arc::clone(log)
    }

    /// Works on a log where blocking is allowed.
    async fn blocking<T: Send + 'static>(
        &self,
        id: TaskId,
        doing: &'static str,
        work: impl FnOnce(&mut LogFile) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let log = self.of(id);
        let done = tokio::task::spawn_blocking(move || work(&mut lock(&log))).await;
        match done {
            Ok(result) => result.map_err(|error| failed(doing, &error)),
            Err(error) => Err(failed(doing, &error)),
        }
    }
}

/// Words for a failure, without any path.
fn failed(doing: &str, error: &dyn fmt::Display) -> Error {
    Error::new(format!("the log of the task cannot be {doing}: {error}"))
}

#[async_trait]
impl LogStore for FileLogs {
    async fn append(&self, id: TaskId, fence: Fence, lines: Vec<Draft>) -> Result<u64, Error> {
        let log = self.of(id);
        let dropped = match log.try_lock() {
            Ok(mut log) => log.drop_beyond_quota(fence, &lines),
            Err(TryLockError::Poisoned(log)) => log.into_inner().drop_beyond_quota(fence, &lines),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(last) = dropped {
            return Ok(last);
        }
        drop(log);
        self.blocking(id, "written", move |log| log.append(fence, &lines)).await
    }

    async fn limit(&self, id: TaskId, bytes: u64) {
        let set = self.blocking(id, "limited", move |log| {
            log.limit(bytes);
            Ok(())
        });
        if let Err(error) = set.await {
            tracing::warn!(task = %id, %error, "a log quota was not set");
        }
    }

    async fn close(&self, id: TaskId) -> Result<(), Error> {
        self.blocking(id, "closed", LogFile::close).await
    }

    async fn read(&self, id: TaskId, after: u64, limit: u32) -> Result<Page<Line>, Error> {
        self.blocking(id, "read", move |log| log.read(after, limit)).await
    }

    async fn remove(&self, ids: Vec<TaskId>) -> Result<(), Error> {
        let mut all = Ok(());
        for id in ids {
            let removed = self.blocking(id, "removed", LogFile::remove).await;
            lock(&self.open).remove(&id);
            // One that cannot be removed keeps no other.
            all = all.and(removed);
        }
        all
    }

    fn folder(&self) -> Option<&Path> {
        Some(&self.root)
    }
}

impl fmt::Debug for FileLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileLogs").field("root", &self.root).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
