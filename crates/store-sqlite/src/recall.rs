//! Bringing back what has ended before something is done that depends on it [DUR-8].

use std::sync::Arc;

use raincheck_core::ids::TaskId;
use raincheck_core::ledger::TOMBSTONE;
use raincheck_core::store::{Error, Receipt};
use raincheck_core::time::Timestamp;

use crate::front::{Front, Shared};
use crate::rows;
use crate::settled::{self, Key};
use crate::store::SqliteStore;
use crate::wanted::Wanted;

/// Keeps tasks in memory, and those that have some keys, until it is dropped.
pub(crate) struct Pins {
    shared: Arc<Shared>,
    ids: Vec<TaskId>,
    keys: Vec<Key>,
}

impl Pins {
    fn new(shared: &Arc<Shared>, ids: Vec<TaskId>, keys: Vec<Key>) -> Self {
        shared.with(|front| front.settled.pin(&ids, &keys));
        Self { shared: Arc::clone(shared), ids, keys }
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        self.shared.with(|front| front.settled.unpin(&self.ids, &self.keys));
    }
}

impl SqliteStore {
    /// Runs one transaction, on memory that holds what it wants.
    pub(crate) async fn transact<T: Send>(
        &self,
        now: Timestamp,
        wanted: Wanted,
        work: impl FnOnce(&mut Front) -> T + Send,
    ) -> Result<(T, Receipt), Error> {
        let mut work = Some(work);
        let (done, receipt) = self.shared.transact(now, |front| {
            if wanted.is_away(front) {
                return None;
            }
            work.take().map(|work| work(front))
        })?;
        if let Some(done) = done {
            return Ok((done, receipt));
        }
        let _pins = self.recall(wanted).await?;
        let (done, receipt) =
            self.shared.transact(now, |front| work.take().map(|work| work(front)))?;
        let done = done.ok_or_else(|| Error::new("the store lost a command"))?;
        Ok((done, receipt))
    }

    /// Brings back up to `limit` tasks whose retention is over by now.
    pub(crate) async fn recall_due(&self, now: Timestamp, limit: u32) -> Result<Vec<Pins>, Error> {
        if !self.shared.with(|front| front.settled.begin_look(now)) {
            return Ok(Vec::new());
        }
        let read = self.readers.read(move |connection, _| settled::due(connection, now, limit));
        let (ids, next) = read.await?;
        let pins = self.recall(Wanted::tasks(ids)).await?;
        self.shared.with(|front| front.settled.end_look(next));
        Ok(pins)
    }

    /// Brings back up to `limit` tombstones that may be forgotten by now.
    pub(crate) async fn recall_tombstones(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Pins>, Error> {
        let kept = i64::try_from(TOMBSTONE.as_millis()).unwrap_or(i64::MAX);
        let before = Timestamp::from_millis(now.as_millis().saturating_sub(kept));
        // Those whose attempt goes on are found, too, and stay.
        let n_places = self.shared.read(|front| {
            front.ledger.lanes().iter().map(|lane| lane.slots.len()).sum::<usize>()
        })?;
        let limit = limit.saturating_add(u32::try_from(n_places).unwrap_or(u32::MAX));
        let read =
            self.readers.read(move |connection, _| settled::tombstones(connection, before, limit));
        self.recall(Wanted::tasks(read.await?)).await
    }

    /// Brings tasks back from the disk, and keeps them in memory as long as the pins are held.
    ///
    /// The pins come first: from then on a row that comes to memory stays there, so that one that was
    /// read before it was changed never takes its place.
    pub(crate) async fn recall(&self, wanted: Wanted) -> Result<Vec<Pins>, Error> {
        let Wanted { ids, keys } = wanted;
        let pinned_keys = keys.iter().map(|(key, ..)| *key).collect();
        let mut pins = vec![Pins::new(&self.shared, ids.clone(), pinned_keys)];
        let mut ids = ids;
        if !keys.is_empty() {
            let find = self.readers.read(move |connection, _| {
                let find = |(_, scope, tool, key): &(_, _, _, Arc<str>)| {
                    settled::keyed(connection, scope, tool, key)
                };
                keys.iter().map(find).collect::<Result<Vec<_>, _>>()
            });
            let keyed: Vec<_> = find.await?.into_iter().flatten().collect();
            pins.push(Pins::new(&self.shared, keyed.clone(), Vec::new()));
            ids.extend(keyed);
        }
        self.shared.with(|front| ids.retain(|id| front.ledger.get(*id).is_none()));
        let read = self.readers.read(move |connection, _| {
            let mut rows = Vec::with_capacity(ids.len());
            for id in ids {
                if let Some(row) = rows::by_id(connection, id).transpose() {
                    rows.extend(rows::known(row)?);
                }
            }
            Ok(rows)
        });
        let rows = read.await?;
        self.shared.with(|front| rows.into_iter().for_each(|row| front.recall(row)));
        Ok(pins)
    }
}
