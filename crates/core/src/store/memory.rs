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
use crate::ledger::{Command, Ledger, Reply};
use crate::lifecycle::State;
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
    fn apply(&mut self, now: Timestamp, command: Command, changed: &mut Vec<TaskRecord>) -> Reply {
        let reply = self.ledger.run(now, command);
        for record in self.ledger.drain_effects() {
            self.shelf.keep(record, changed);
        }
        reply
    }

    /// Expires the oldest ended tasks, and forgets the oldest tombstones, that are over the limits.
    fn trim(&mut self, now: Timestamp, changed: &mut Vec<TaskRecord>) {
        while let Some(id) = self.shelf.next_to_expire(self.limits) {
            self.apply(now, Command::Expire(vec![id]), changed);
        }
        while let Some(id) = self.shelf.next_to_forget(self.limits) {
            self.apply(now, Command::Forget(vec![id]), changed);
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
        if let Reply::Forgotten(ids) = self.apply(now, Command::Sweep { limit: rest }, changed) {
            gone.extend(ids);
        }
        gone
    }

    fn claim(
        &mut self,
        now: Timestamp,
        claim: Option<Claim>,
        changed: &mut Vec<TaskRecord>,
    ) -> Vec<Claimed> {
        let Some(claim) = claim else { return Vec::new() };
        let Reply::Rows(rows) = self.apply(now, Command::Claim(claim), changed) else {
            return Vec::new();
        };
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
        batch: Vec<Submit>,
        changed: &mut Vec<TaskRecord>,
    ) -> Vec<Submitted> {
        let mut all_inputs = Vec::with_capacity(batch.len());
        let mut tasks = Vec::with_capacity(batch.len());
        for submit in batch {
            all_inputs.push(submit.inputs);
            tasks.push((submit.task, submit.waiting));
        }
        let reply = self.apply(now, Command::Submit(tasks), changed);
        let Reply::Submitted(submitted) = reply else { return Vec::new() };
        for (one, inputs) in submitted.iter().zip(all_inputs) {
            if let Submitted::Inserted { record, .. } = one {
                self.shelf.give(record.id(), inputs);
            }
        }
        submitted
    }

    fn update(
        &mut self,
        now: Timestamp,
        batch: Vec<Update>,
        changed: &mut Vec<TaskRecord>,
    ) -> Vec<UpdateResult> {
        if batch.len() > 1 {
            // Each is decided on what those before it left.
            let mut verdicts = Vec::with_capacity(batch.len());
            for update in batch {
                verdicts.extend(self.update(now, vec![update], changed));
            }
            return verdicts;
        }
        let mut batch = batch;
        for update in &mut batch {
            if let (Some(report), Some(fence)) = (update.report.take(), update.fence) {
                let record = self.ledger.get(update.id);
                if let Some(record) = record.filter(|record| record.takes_report(fence)) {
                    self.shelf.keep_report(record, *report);
                }
            }
        }
        match self.apply(now, Command::Update(batch), changed) {
            Reply::UpdateResults(verdicts) => verdicts,
            Reply::Done
            | Reply::Submitted(_)
            | Reply::Rows(_)
            | Reply::HeartbeatReplies(_)
            | Reply::Moved(_)
            | Reply::Forgotten(_) => Vec::new(),
        }
    }
}

const fn ready<T>(value: T) -> Write<T> {
    Write { value, receipt: Receipt::Ready }
}

#[async_trait]
impl TaskStore for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            durability: Durability::None,
            shared: false,
            own_clock: false,
            exact_caps: true,
            exact_fifo: true,
            full_retention: false,
        }
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
            inner.apply(now, Command::SetLane(lane, config), &mut changed);
        }
        let reply = inner.apply(now, Command::Reattach(reattach), &mut changed);
        let Reply::Rows(rows) = reply else { return Ok(Vec::new()) };
        Ok(inner.with_inputs(rows))
    }

    async fn set_lane(&self, lane: LaneId, config: lane::Config) -> Result<(), Error> {
        self.transact(|inner, changed| {
            inner.apply(Timestamp::MIN, Command::SetLane(lane, config), changed);
        });
        Ok(())
    }

    async fn submit(
        &self,
        now: Timestamp,
        batch: Vec<Submit>,
        then: Option<Claim>,
    ) -> Result<Write<(Vec<Submitted>, Vec<Claimed>)>, Error> {
        Ok(ready(self.transact(|inner, changed| {
            let submitted = inner.submit(now, batch, changed);
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
            let verdicts = inner.update(now, batch, changed);
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
            for beat in &beats {
                let record = inner.ledger.get(beat.id);
                if record
                    .is_some_and(|record| record.fence == beat.fence && record.state.is_leased())
                {
                    inner.shelf.keep_beat(beat);
                }
            }
            match inner.apply(now, Command::Heartbeat(beats), changed) {
                Reply::HeartbeatReplies(directives) => directives,
                Reply::Done
                | Reply::Submitted(_)
                | Reply::Rows(_)
                | Reply::UpdateResults(_)
                | Reply::Moved(_)
                | Reply::Forgotten(_) => Vec::new(),
            }
        }))
    }

    async fn release(
        &self,
        now: Timestamp,
        slots: Vec<(TaskId, Fence)>,
    ) -> Result<Write<()>, Error> {
        self.transact(|inner, changed| inner.apply(now, Command::Release(slots), changed));
        Ok(ready(()))
    }

    async fn hold(
        &self,
        now: Timestamp,
        lane: LaneId,
        hold: Option<WaitReason>,
    ) -> Result<Write<u32>, Error> {
        let reply =
            self.transact(|inner, changed| inner.apply(now, Command::Hold(lane, hold), changed));
        Ok(ready(if let Reply::Moved(n) = reply { n } else { 0 }))
    }

    async fn fire(&self, now: Timestamp, limit: u32) -> Result<Write<Option<Timestamp>>, Error> {
        Ok(ready(self.transact(|inner, changed| {
            inner.apply(now, Command::Fire { limit }, changed);
            inner.trim(now, changed);
            inner.ledger.next_deadline()
        })))
    }

    async fn extend_deadlines(&self, now: Timestamp, by: Duration) -> Result<Write<u32>, Error> {
        let reply = self.transact(|inner, changed| inner.apply(now, Command::Extend(by), changed));
        Ok(ready(if let Reply::Moved(n) = reply { n } else { 0 }))
    }

    async fn find(&self, scope: &Scope, id: TaskId) -> Result<Found, Error> {
        let inner = self.lock();
        let Some(record) = inner.ledger.find(scope, id) else { return Ok(Found::Absent) };
        Ok(match inner.shelf.payload(id) {
            Some(payload) if record.state != State::Expired => Found::Task(record.clone(), payload),
            _ => Found::Tombstone(record.clone()),
        })
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
