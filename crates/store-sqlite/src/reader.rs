//! Looking into a store without owning it.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_core::progress::Progress;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Cursor, Error, Filter, Found, Page};
use raincheck_core::task::TaskRecord;
use raincheck_core::time::Timestamp;
use raincheck_core::worker::{Activity, Worker};

use crate::database;
use crate::fault::Fault;
use crate::files::{self, Files};
use crate::list;
use crate::owner;
use crate::payload;
use crate::rows;
use crate::schema;

const WORKERS: &str =
    "SELECT id, lane, last_heartbeat, current_task FROM workers ORDER BY lane, id";
const CONTENTS: &str = "SELECT t.id, i.file FROM inputs i JOIN tasks t ON t.seq = i.seq \
    WHERE i.file IS NOT NULL \
    UNION ALL SELECT t.id, r.outcome_file FROM results r JOIN tasks t ON t.seq = r.seq \
    WHERE r.outcome_file IS NOT NULL \
    UNION ALL SELECT t.id, r.late_file FROM results r JOIN tasks t ON t.seq = r.seq \
    WHERE r.late_file IS NOT NULL";
const POSITION: &str = "SELECT count(*) FROM tasks WHERE state = 'queued' AND lane = ?1 \
    AND (priority > ?2 OR (priority = ?2 AND seq < ?3))";

/// Shows what is committed to a store, whoever owns it. It changes no task and takes no lock that a
/// server would miss. Every call blocks its thread.
pub struct Reader {
    path: PathBuf,
    connection: Connection,
    files: Files,
}

impl Reader {
    /// Opens a store to look into it; `None` when there is no file.
    ///
    /// # Errors
    /// [`Error`] when the file cannot be read, or not by this version.
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        Ok(Self::try_open(path)?)
    }

    fn try_open(path: &Path) -> Result<Option<Self>, Fault> {
        let path = &files::behind_links(path);
        if !path.try_exists()? {
            return Ok(None);
        }
        let connection = database::reader(path)?;
        schema::check_version(&connection)?;
        Ok(Some(Self { path: path.to_owned(), connection, files: Files::new(path) }))
    }

    pub(crate) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns the process that took the store last. It may have ended since.
    #[must_use]
    pub fn last_owner(&self) -> Option<u32> {
        owner::last_owner(&self.path)
    }

    /// Finds one task of a scope, as [`TaskStore::find`](raincheck_core::store::TaskStore::find).
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    pub fn find(&self, scope: &Scope, id: TaskId) -> Result<Found, Error> {
        Ok(self.try_find(scope, id)?)
    }

    fn try_find(&self, scope: &Scope, id: TaskId) -> Result<Found, Fault> {
        let found = payload::find(&self.connection, &self.files, scope, id)?;
        Ok(found.unwrap_or(Found::Absent))
    }

    /// Lists the tasks of a scope, newest first, as
    /// [`TaskStore::list`](raincheck_core::store::TaskStore::list).
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    pub fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        before: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<TaskRecord>, Error> {
        Ok(list::list(&self.connection, scope, filter, before, limit)?)
    }

    /// Returns how many tasks run before one that is in line.
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    pub fn position(&self, row: &TaskRecord) -> Result<Option<u32>, Error> {
        if !matches!(row.state, State::Queued | State::Waiting) {
            return Ok(None);
        }
        let place = params![row.task.lane.as_str(), row.task.priority, row.seq.cast_signed()];
        let n = self.connection.query_row(POSITION, place, |row| row.get(0));
        Ok(Some(n.map_err(Fault::from)?))
    }

    /// Lists tasks of which a content's file is missing, of all scopes and at most `limit`; `None` when
    /// the store cannot be read. A server may forget a task meanwhile, which takes its files with it.
    #[must_use]
    pub fn missing_contents_of(path: &Path, limit: usize) -> Option<Vec<TaskId>> {
        match Self::open(path).ok()? {
            Some(reader) => reader.try_missing_contents(limit).ok(),
            None => Some(Vec::new()),
        }
    }

    fn try_missing_contents(&self, limit: usize) -> Result<Vec<TaskId>, Fault> {
        let mut statement = self.connection.prepare(CONTENTS)?;
        let mut found = statement.query([])?;
        let mut missing = Vec::new();
        while let Some(row) = found.next()? {
            let (id, name) = (rows::task_id(row.get(0)?)?, row.get::<_, String>(1)?);
            if missing.len() < limit && !missing.contains(&id) && !self.files.has(&name) {
                missing.push(id);
            }
        }
        Ok(missing)
    }

    /// Lists the [workers](Self::workers) of a file that have a task; `None` when it cannot be read.
    #[must_use]
    pub fn workers_of(path: &Path) -> Option<Vec<Worker>> {
        match Self::open(path).ok()? {
            Some(reader) => reader.workers().ok(),
            None => Some(Vec::new()),
        }
    }

    /// Lists the workers that have a task, of all scopes [QUEUE-7].
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    pub fn workers(&self) -> Result<Vec<Worker>, Error> {
        Ok(self.try_workers()?)
    }

    fn try_workers(&self) -> Result<Vec<Worker>, Fault> {
        let mut statement = self.connection.prepare_cached(WORKERS)?;
        let mut found = statement.query([])?;
        let mut workers = Vec::new();
        while let Some(row) = found.next()? {
            workers.push(Worker {
                id: row.get::<_, String>(0)?.into(),
                lane: row.get::<_, String>(1)?.into(),
                state: Activity::Busy,
                last_heartbeat: Some(Timestamp::from_millis(row.get(2)?)),
                current_task: Some(rows::task_id(row.get(3)?)?),
            });
        }
        Ok(workers)
    }

    /// Returns the last progress of a task that is committed; the server may know a later one.
    ///
    /// # Errors
    /// [`Error`] when nothing can be read.
    pub fn progress(&self, row: &TaskRecord) -> Result<Option<Progress>, Error> {
        Ok(payload::progress_of(&self.connection, row.seq)?)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("path", &self.path).finish_non_exhaustive()
    }
}
