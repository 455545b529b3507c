//! A store whose commits wait for the test: the memory store behind receipts of the test's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use raincheck_core::ids::{Fence, LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    ChangeSink, Claim, Claimed, Committed, Error, Found, Heartbeat, HeartbeatReply, MemoryLimits,
    MemoryStore, Receipt, StoreLayer, Submit, Submitted, TaskStatus, TaskStore, Update,
    UpdateResult, Write,
};
use raincheck_core::task::{TaskEvent, TaskRecord};
use raincheck_core::time::Timestamp;

/// A memory store whose commits can be held back, or fail.
pub(crate) struct Gated {
    inner: MemoryStore,
    is_committing: watch::Sender<bool>,
    fails: AtomicBool,
    reads_fail: AtomicBool,
    is_lost: AtomicBool,
}

struct Commit(watch::Receiver<bool>);

#[async_trait]
impl Committed for Commit {
    async fn wait(mut self: Box<Self>) -> Result<(), Error> {
        let committed = self.0.wait_for(|is_committing| *is_committing).await;
        committed.map(|_| ()).map_err(|_| Error::new("the store is gone"))
    }
}

impl Gated {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::new(MemoryLimits::default()),
            is_committing: watch::Sender::new(true),
            fails: AtomicBool::new(false),
            reads_fail: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
        })
    }

    pub(crate) fn hold_commits(&self) {
        self.is_committing.send_replace(false);
    }

    pub(crate) fn commit(&self) {
        self.is_committing.send_replace(true);
    }

    pub(crate) fn break_down(&self) {
        self.fails.store(true, Ordering::SeqCst);
    }

    /// Lets nothing be read any more.
    pub(crate) fn refuse_reads(&self) {
        self.reads_fail.store(true, Ordering::SeqCst);
    }

    pub(crate) fn mend(&self) {
        self.fails.store(false, Ordering::SeqCst);
    }

    /// Loses every task, as after a commit that failed behind a receipt that was ready at once.
    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }

    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    fn check(&self) -> Result<(), Error> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(Error::new("no space left on the device"));
        }
        Ok(())
    }

    fn later<T>(&self, posted: Write<T>) -> Write<T> {
        let commit = Commit(self.is_committing.subscribe());
        Write { value: posted.value, receipt: Receipt::Pending(Box::new(commit)) }
    }
}

#[async_trait]
impl StoreLayer for Gated {
    fn inner(&self) -> &dyn TaskStore {
        &self.inner
    }

    async fn open(
        &self,
        now: Timestamp,
        lanes: Vec<(LaneId, lane::Config)>,
        reattach: Duration,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Vec<Claimed>, Error> {
        self.check()?;
        self.inner.open(now, lanes, reattach, sink).await
    }

    async fn submit(
        &self,
        now: Timestamp,
        batch: Vec<Submit>,
        then: Option<Claim>,
    ) -> Result<Write<(Vec<Submitted>, Vec<Claimed>)>, Error> {
        self.check()?;
        Ok(self.later(self.inner.submit(now, batch, then).await?))
    }

    async fn claim(&self, now: Timestamp, claim: Claim) -> Result<Write<Vec<Claimed>>, Error> {
        self.check()?;
        Ok(self.later(self.inner.claim(now, claim).await?))
    }

    async fn update(
        &self,
        now: Timestamp,
        batch: Vec<Update>,
        then: Option<Claim>,
    ) -> Result<Write<(Vec<UpdateResult>, Vec<Claimed>)>, Error> {
        self.check()?;
        if self.is_lost() {
            let verdicts = batch.iter().map(|_| UpdateResult::Absent).collect();
            return Ok(self.later(Write { value: (verdicts, Vec::new()), receipt: Receipt::Ready }));
        }
        Ok(self.later(self.inner.update(now, batch, then).await?))
    }

    async fn heartbeat(
        &self,
        now: Timestamp,
        beats: Vec<Heartbeat>,
    ) -> Result<Vec<HeartbeatReply>, Error> {
        self.check()?;
        if self.is_lost() {
            return Ok(beats.iter().map(|_| HeartbeatReply::Lost).collect());
        }
        self.inner.heartbeat(now, beats).await
    }

    async fn release(
        &self,
        now: Timestamp,
        slots: Vec<(TaskId, Fence)>,
    ) -> Result<Write<()>, Error> {
        self.check()?;
        Ok(self.later(self.inner.release(now, slots).await?))
    }

    async fn extend_deadlines(&self, now: Timestamp, by: Duration) -> Result<Write<u32>, Error> {
        self.check()?;
        self.inner.extend_deadlines(now, by).await
    }

    async fn fire(&self, now: Timestamp, limit: u32) -> Result<Write<Option<Timestamp>>, Error> {
        self.check()?;
        self.inner.fire(now, limit).await
    }

    async fn find(&self, scope: &Scope, id: TaskId) -> Result<Found, Error> {
        if self.reads_fail.load(Ordering::SeqCst) {
            return Err(Error::new("the disk cannot be read"));
        }
        if self.is_lost() { Ok(Found::Absent) } else { self.inner.find(scope, id).await }
    }

    fn barrier(&self) -> Receipt {
        Receipt::Pending(Box::new(Commit(self.is_committing.subscribe())))
    }

    async fn status(&self, scope: &Scope, id: TaskId) -> Result<Option<TaskStatus>, Error> {
        Ok(StoreLayer::find(self, scope, id).await?.into_status())
    }

    async fn record(&self, scope: &Scope, id: TaskId) -> Result<Option<TaskRecord>, Error> {
        if self.reads_fail.load(Ordering::SeqCst) {
            return Err(Error::new("the disk cannot be read"));
        }
        Ok(StoreLayer::find(self, scope, id).await?.into_record())
    }

    async fn events(&self, scope: &Scope, id: TaskId) -> Result<Option<Vec<TaskEvent>>, Error> {
        Ok(StoreLayer::find(self, scope, id).await?.into_events())
    }
}
