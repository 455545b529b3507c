//! The store that keeps everything in this process: a mutex over the ledger, and a shelf of payloads.

mod shelf;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};

use super::{
    Capabilities, ChangeSink, Claim, Claimed, Cursor, Durability, Error, Filter, Found, Heartbeat,
    HeartbeatReply, LaneView, NoSink, Page, Receipt, Submit, Submitted, TaskStore, Update,
    UpdateResult, Write,
};
use crate::ids::{ArtifactId, Fence, LaneId, TaskId};
use crate::lane;
use crate::ledger::Ledger;
use crate::lifecycle::State;
use crate::mac::MacKey;
use crate::scope::Scope;
use crate::task::{Artifact, TaskRecord, WaitReason};
use crate::time::Timestamp;

use shelf::Shelf;

/// How much of what has ended a [`MemoryStore`] keeps; beyond it the oldest expire early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Ended tasks that stay readable.
    pub settled: usize,
    /// Bytes of inputs and results of ended tasks that stay readable.
    pub settled_bytes: usize,
    /// Tombstones of expired tasks.
    pub tombstones: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { settled: 100_000, settled_bytes: 256 << 20, tombstones: 100_000 }
    }
}

/// Keeps tasks in memory: nothing survives the process, and what has ended is bounded.
#[derive(Debug)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
    sink: Mutex<Arc<dyn ChangeSink>>,
}

impl std::fmt::Debug for dyn ChangeSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChangeSink")
    }
}

#[derive(Debug)]
struct Inner {
    ledger: Ledger,
    shelf: Shelf,
    limits: MemoryLimits,
    /// Tasks that were forgotten for want of room, until the sweep is told.
    forgotten: VecDeque<TaskId>,
    is_open: bool,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(MemoryLimits::default())
    }
}

impl MemoryStore {
    /// Makes an empty store.
    #[must_use]
    pub fn new(limits: MemoryLimits) -> Self {
        Self {
            inner: Mutex::new(Inner {
                ledger: Ledger::new(1),
                shelf: Shelf::default(),
                limits,
                forgotten: VecDeque::new(),
                is_open: false,
            }),
            sink: Mutex::new(Arc::new(NoSink)),
        }
    }

    /// Lets the store be opened again, as after the end of the server that opened it.
    pub fn close(&self) {
        self.lock().is_open = false;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    fn sink(&self) -> Arc<dyn ChangeSink> {
        Arc::clone(&self.sink.lock())
    }

    /// Runs one transaction and tells the sink what it changed, after the lock is free.
    fn transact<T>(&self, work: impl FnOnce(&mut Inner, &mut Vec<TaskRecord>) -> T) -> T {
        let mut changed = Vec::with_capacity(4);
        let value = work(&mut self.lock(), &mut changed);
        if !changed.is_empty() {
            self.sink().changed(&changed);
        }
        value
    }
}

impl Inner {
    /// Does something with the ledger, and keeps what it changed.
    fn apply<T>(
        &mut self,
        changed: &mut Vec<TaskRecord>,
        work: impl FnOnce(&mut Ledger) -> T,
    ) -> T {
        let value = work(&mut self.ledger);
        for effect in self.ledger.drain_effects() {
            self.shelf.keep(effect, changed);
        }
        value
    }

    /// Expires the oldest ended tasks, and forgets the oldest tombstones, that are over the limits.
    fn trim(&mut self, now: Timestamp, changed: &mut Vec<TaskRecord>) {
        while let Some(id) = self.shelf.next_to_expire(self.limits) {
            self.apply(changed, |ledger| ledger.expire(now, &[id]));
        }
        while let Some(id) = self.shelf.next_to_forget(self.limits) {
            self.apply(changed, |ledger| ledger.forget(vec![id]));
            if self.ledger.get(id).is_some() {
                // Its executor goes on: another time.
                self.shelf.put_off(id);
                break;
            }
            self.forgotten.push_back(id);
        }
    }

    /// Forgets up to `limit` tasks; those that had to go before come first.
    fn sweep(&mut self, now: Timestamp, limit: u32, changed: &mut Vec<TaskRecord>) -> Vec<TaskId> {
        let n_before = self.forgotten.len().min(limit as usize);
        let mut gone: Vec<_> = self.forgotten.drain(..n_before).collect();
        let rest = limit.saturating_sub(u32::try_from(n_before).unwrap_or(limit));
        gone.extend(self.apply(changed, |ledger| ledger.sweep(now, rest)));
        gone
    }

    fn claim(
        &mut self,
        now: Timestamp,
        claim: Option<Claim>,
        changed: &mut Vec<TaskRecord>,
    ) -> Vec<Claimed> {
        let Some(claim) = claim else { return Vec::new() };
        let rows = self.apply(changed, |ledger| ledger.claim(now, &claim));
        self.with_inputs(rows)
    }

    fn with_inputs(&self, rows: Vec<TaskRecord>) -> Vec<Claimed> {
        rows.into_iter()
            .map(|record| Claimed { inputs: self.shelf.inputs(record.id()), record })
            .collect()
    }

    fn submit(
        &mut self,
        now: Timestamp,
        submit: Submit,
        changed: &mut Vec<TaskRecord>,
    ) -> Submitted {
        let Submit { task, inputs, waiting, is_inline: _, is_known } = submit;
        if is_known {
            return self.ledger.known(&task).unwrap_or(Submitted::Unknown);
        }
        let submitted = self.apply(changed, |ledger| ledger.submit(now, task, waiting));
        if let Submitted::Inserted { record, .. } = &submitted {
            self.shelf.give(record.id(), inputs);
        }
        submitted
    }

    fn update(
        &mut self,
        now: Timestamp,
        mut update: Update,
        changed: &mut Vec<TaskRecord>,
    ) -> UpdateResult {
        if let (Some(report), Some(fence)) = (update.report.take(), update.fence) {
            let record = self.ledger.get(update.id);
            if let Some(record) = record.filter(|record| record.takes_report(fence)) {
                self.shelf.keep_report(record, *report);
            }
        }
        self.apply(changed, |ledger| ledger.update(now, update))
    }

    fn heartbeat(
        &mut self,
        now: Timestamp,
        beat: &Heartbeat,
        changed: &mut Vec<TaskRecord>,
    ) -> HeartbeatReply {
        let record = self.ledger.get(beat.id);
        if record.is_some_and(|record| record.fence == beat.fence && record.state.is_leased()) {
            self.shelf.keep_beat(beat);
        }
        self.apply(changed, |ledger| ledger.heartbeat(now, beat))
    }
}

const fn ready<T>(value: T) -> Write<T> {
    Write { value, receipt: Receipt::Ready }
}

#[async_trait]
impl TaskStore for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { durability: Durability::None }
    }

    async fn open(
        &self,
        now: Timestamp,
        lanes: Vec<(LaneId, lane::Config)>,
        reattach: Duration,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Vec<Claimed>, Error> {
        let mut inner = self.lock();
        if std::mem::replace(&mut inner.is_open, true) {
            return Err(Error::new("the store is open already"));
        }
        *self.sink.lock() = sink;
        inner.ledger.begin_epoch();
        let mut changed = Vec::new();
        for (lane, config) in lanes {
            inner.ledger.set_lane(lane, config);
        }
        let rows = inner.apply(&mut changed, |ledger| ledger.reattach(now, reattach));
        Ok(inner.with_inputs(rows))
    }

    fn mac_key(&self) -> Option<MacKey> {
        None
    }

    async fn set_lane(&self, lane: LaneId, config: lane::Config) -> Result<(), Error> {
        self.lock().ledger.set_lane(lane, config);
        Ok(())
    }

    async fn remove_lane(&self, lane: &LaneId) -> Result<bool, Error> {
        Ok(self.lock().ledger.remove_lane(lane))
    }

    async fn submit(
        &self,
        now: Timestamp,
        batch: Vec<Submit>,
        then: Option<Claim>,
    ) -> Result<Write<(Vec<Submitted>, Vec<Claimed>)>, Error> {
        Ok(ready(self.transact(|inner, changed| {
            let submit = |one| inner.submit(now, one, changed);
            let submitted = batch.into_iter().map(submit).collect();
            (submitted, inner.claim(now, then, changed))
        })))
    }

    async fn claim(&self, now: Timestamp, claim: Claim) -> Result<Write<Vec<Claimed>>, Error> {
        Ok(ready(self.transact(|inner, changed| inner.claim(now, Some(claim), changed))))
    }

    async fn update(
        &self,
        now: Timestamp,
        batch: Vec<Update>,
        then: Option<Claim>,
    ) -> Result<Write<(Vec<UpdateResult>, Vec<Claimed>)>, Error> {
        Ok(ready(self.transact(|inner, changed| {
            let update = |one| inner.update(now, one, changed);
            let verdicts = batch.into_iter().map(update).collect();
            let claimed = inner.claim(now, then, changed);
            inner.trim(now, changed);
            (verdicts, claimed)
        })))
    }

    async fn heartbeat(
        &self,
        now: Timestamp,
        beats: Vec<Heartbeat>,
    ) -> Result<Vec<HeartbeatReply>, Error> {
        Ok(self.transact(|inner, changed| {
            beats.iter().map(|beat| inner.heartbeat(now, beat, changed)).collect()
        }))
    }

    async fn release(
        &self,
        _now: Timestamp,
        slots: Vec<(TaskId, Fence)>,
    ) -> Result<Write<()>, Error> {
        self.transact(|inner, changed| {
            for (task, fence) in slots {
                inner.apply(changed, |ledger| ledger.release(task, fence));
            }
        });
        Ok(ready(()))
    }

    async fn hold(
        &self,
        now: Timestamp,
        lane: LaneId,
        hold: Option<WaitReason>,
    ) -> Result<Write<u32>, Error> {
        let hold = |ledger: &mut Ledger| ledger.hold(now, &lane, hold);
        Ok(ready(self.transact(|inner, changed| inner.apply(changed, hold))))
    }

    async fn fire(&self, now: Timestamp, limit: u32) -> Result<Write<Option<Timestamp>>, Error> {
        Ok(ready(self.transact(|inner, changed| {
            inner.apply(changed, |ledger| ledger.fire(now, limit));
            inner.trim(now, changed);
            inner.ledger.next_deadline()
        })))
    }

    async fn extend_deadlines(&self, _now: Timestamp, by: Duration) -> Result<Write<u32>, Error> {
        let extend = |ledger: &mut Ledger| ledger.extend(by);
        Ok(ready(self.transact(|inner, changed| inner.apply(changed, extend))))
    }

    async fn find(&self, scope: &Scope, id: TaskId) -> Result<Found, Error> {
        let inner = self.lock();
        let Some(record) = inner.ledger.find(scope, id) else { return Ok(Found::Absent) };
        Ok(match inner.shelf.payload(id) {
            Some(payload) if record.state != State::Expired => Found::Task(record.clone(), payload),
            _ => Found::Tombstone(record.clone()),
        })
    }

    async fn unknown(&self, mut ids: Vec<TaskId>) -> Result<Vec<TaskId>, Error> {
        let inner = self.lock();
        ids.retain(|id| inner.ledger.get(*id).is_none());
        Ok(ids)
    }

    async fn artifact(&self, id: &ArtifactId) -> Result<Option<(TaskId, Artifact)>, Error> {
        Ok(self.lock().shelf.artifact(id))
    }

    async fn position(&self, id: TaskId) -> Result<Option<u32>, Error> {
        Ok(self.lock().ledger.position(id))
    }

    async fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        before: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<TaskRecord>, Error> {
        Ok(self.lock().ledger.list(scope, filter, before, limit))
    }

    async fn lanes(&self) -> Result<Vec<LaneView>, Error> {
        Ok(self.lock().ledger.lanes())
    }

    async fn sweep(&self, now: Timestamp, limit: u32) -> Result<Vec<TaskId>, Error> {
        Ok(self.transact(|inner, changed| inner.sweep(now, limit, changed)))
    }

    fn barrier(&self) -> Receipt {
        Receipt::Ready
    }
}

#[cfg(test)]
mod tests;
