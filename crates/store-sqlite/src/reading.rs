//! Reading: what lives from memory once it is committed, what has ended from the disk, and nothing that
//! was not asked for.

use std::sync::Arc;

use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Error, Found, Receipt, TaskStatus};
use raincheck_core::task::{TaskEvent, TaskRecord};

use crate::fault::Fault;
use crate::front::Front;
use crate::payload;
use crate::rows;
use crate::store::SqliteStore;

/// How often a read starts again because its task moved meanwhile.
const MAX_READS: u32 = 100;

impl SqliteStore {
    /// Reads what is committed; what a failed commit took is read again without it.
    pub(crate) async fn committed<T: Send>(
        &self,
        read: impl Fn(&Front) -> (T, Receipt) + Send + Sync,
    ) -> Result<T, Error> {
        let mut last = None;
        for _ in 0..MAX_READS {
            let (value, receipt) = self.shared.read(&read)?;
            match receipt.committed().await {
                Ok(()) => return Ok(value),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::new("the store failed again and again")))
    }

    /// Reads the committed row of a task that is in memory.
    async fn record_here(&self, scope: &Scope, id: TaskId) -> Result<Option<TaskRecord>, Error> {
        self.committed(|front| {
            let record = front.ledger.find(scope, id).cloned();
            let upto = record.as_ref().map_or(0, |_| front.touched(id));
            (record, front.receipt(upto))
        })
        .await
    }

    /// Reads from the disk what is not in memory. A caller that never got a handle is told why its task
    /// is not there.
    async fn on_disk<T: Send + 'static>(
        &self,
        scope: &Scope,
        id: TaskId,
        read: impl FnOnce(&rusqlite::Connection, &crate::files::Files) -> Result<Option<T>, Fault>
        + Send
        + 'static,
    ) -> Result<Option<T>, Error> {
        match self.readers.read(read).await? {
            Some(found) => Ok(Some(found)),
            None => match self.shared.read(|front| front.loss(scope, id))? {
                Some(loss) => Err(loss),
                None => Ok(None),
            },
        }
    }

    pub(crate) async fn read_record(
        &self,
        scope: &Scope,
        id: TaskId,
    ) -> Result<Option<TaskRecord>, Error> {
        if let Some(record) = self.record_here(scope, id).await? {
            return Ok(Some(record));
        }
        let owner = scope.clone();
        self.on_disk(scope, id, move |connection, _| rows::find(connection, &owner, id)).await
    }

    pub(crate) async fn read_status(
        &self,
        scope: &Scope,
        id: TaskId,
    ) -> Result<Option<TaskStatus>, Error> {
        let Some(record) = self.record_here(scope, id).await? else {
            let owner = scope.clone();
            let read = move |connection: &_, _: &_| {
                let Some(record) = rows::find(connection, &owner, id)? else { return Ok(None) };
                payload::status(connection, record).map(Some)
            };
            return self.on_disk(scope, id, read).await;
        };
        let status = self.readers.read(move |connection, _| payload::status(connection, record));
        status.await.map(Some)
    }

    pub(crate) async fn read_task(&self, scope: &Scope, id: TaskId) -> Result<Found, Error> {
        for _ in 0..MAX_READS {
            let Some(record) = self.record_here(scope, id).await? else {
                let owner = scope.clone();
                let read =
                    move |connection: &_, files: &_| payload::find(connection, files, &owner, id);
                return Ok(self.on_disk(scope, id, read).await?.unwrap_or(Found::Absent));
            };
            if record.state == State::Expired {
                return Ok(Found::Tombstone(record));
            }
            let seq = record.seq;
            let details = self
                .readers
                .read(move |connection, files| payload::payload(connection, files, seq));
            // What is read may be newer than the row that was seen; then both are read again.
            let is_of = |events: &[TaskEvent]| {
                events.last().is_some_and(|event| event.seq == record.n_events)
            };
            if let Some(details) = details.await?.filter(|details| is_of(&details.events)) {
                return Ok(Found::Task(record, Arc::new(details)));
            }
        }
        Err(Fault::Broken("a task whose history does not fit its row").into())
    }

    pub(crate) async fn read_events(
        &self,
        scope: &Scope,
        id: TaskId,
    ) -> Result<Option<Vec<TaskEvent>>, Error> {
        let Some(record) = self.read_record(scope, id).await? else { return Ok(None) };
        let read = self.readers.read(move |connection, _| payload::events(connection, record.seq));
        read.await.map(Some)
    }
}
