//! A store that outlives its server and fails when it is told to: the memory store, wrapped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use raincheck_core::ids::{Fence, LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    Beat, ChangeSink, Claim, Claimed, Committed, Cursor, Directive, Durability, Error, Filter,
    Found, LaneView, MemoryLimits, MemoryStore, Page, Post, Posted, Receipt, Submit, Submitted,
    TaskStore, Traits, Verdict,
};
use raincheck_core::task::{Row, WaitReason};
use raincheck_core::time::Timestamp;

/// A memory store whose commits can be held back, or fail, and that the next server opens again.
pub(crate) struct Store {
    inner: MemoryStore,
    is_committing: watch::Sender<bool>,
    fails: AtomicBool,
}

struct Commit(watch::Receiver<bool>);

#[async_trait]
impl Committed for Commit {
    async fn wait(mut self: Box<Self>) -> Result<(), Error> {
        let committed = self.0.wait_for(|is_committing| *is_committing).await;
        committed.map(|_| ()).map_err(|_| Error::new("the store is gone"))
    }
}

impl Store {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::new(MemoryLimits::default()),
            is_committing: watch::Sender::new(true),
            fails: AtomicBool::new(false),
        })
    }

    /// Lets the next server open it.
    pub(crate) fn close(&self) {
        self.inner.close();
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

    pub(crate) fn mend(&self) {
        self.fails.store(false, Ordering::SeqCst);
    }

    fn check(&self) -> Result<(), Error> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(Error::new("no space left on the device"));
        }
        Ok(())
    }

    fn later<T>(&self, posted: Posted<T>) -> Posted<T> {
        let commit = Commit(self.is_committing.subscribe());
        Posted { value: posted.value, receipt: Receipt::Pending(Box::new(commit)) }
    }
}

#[async_trait]
impl TaskStore for Store {
    fn traits(&self) -> Traits {
        Traits { durability: Durability::Process, ..self.inner.traits() }
    }

    async fn open(
        &self,
        now: Timestamp,
        lanes: Vec<(LaneId, lane::Config)>,
        adopt: Duration,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Vec<Claimed>, Error> {
        self.inner.open(now, lanes, adopt, sink).await
    }

    async fn set_lane(&self, lane: LaneId, config: lane::Config) -> Result<(), Error> {
        self.inner.set_lane(lane, config).await
    }

    async fn submit(
        &self,
        now: Timestamp,
        batch: Vec<Submit>,
        then: Option<Claim>,
    ) -> Result<Posted<(Vec<Submitted>, Vec<Claimed>)>, Error> {
        self.check()?;
        Ok(self.later(self.inner.submit(now, batch, then).await?))
    }

    async fn claim(&self, now: Timestamp, claim: Claim) -> Result<Posted<Vec<Claimed>>, Error> {
        self.check()?;
        Ok(self.later(self.inner.claim(now, claim).await?))
    }

    async fn post(
        &self,
        now: Timestamp,
        batch: Vec<Post>,
        then: Option<Claim>,
    ) -> Result<Posted<(Vec<Verdict>, Vec<Claimed>)>, Error> {
        self.check()?;
        Ok(self.later(self.inner.post(now, batch, then).await?))
    }

    async fn heartbeat(&self, now: Timestamp, beats: Vec<Beat>) -> Result<Vec<Directive>, Error> {
        self.check()?;
        self.inner.heartbeat(now, beats).await
    }

    async fn release(
        &self,
        now: Timestamp,
        slots: Vec<(TaskId, Fence)>,
    ) -> Result<Posted<()>, Error> {
        self.check()?;
        Ok(self.later(self.inner.release(now, slots).await?))
    }

    async fn hold(
        &self,
        now: Timestamp,
        lane: LaneId,
        hold: Option<WaitReason>,
    ) -> Result<Posted<u32>, Error> {
        self.check()?;
        self.inner.hold(now, lane, hold).await
    }

    async fn fire(&self, now: Timestamp, limit: u32) -> Result<Posted<Option<Timestamp>>, Error> {
        self.check()?;
        self.inner.fire(now, limit).await
    }

    async fn find(&self, scope: &Scope, id: TaskId) -> Result<Found, Error> {
        self.inner.find(scope, id).await
    }

    async fn position(&self, id: TaskId) -> Result<Option<u32>, Error> {
        self.inner.position(id).await
    }

    async fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        before: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<Row>, Error> {
        self.inner.list(scope, filter, before, limit).await
    }

    async fn lanes(&self) -> Result<Vec<LaneView>, Error> {
        self.inner.lanes().await
    }

    async fn sweep(&self, now: Timestamp, limit: u32) -> Result<Vec<TaskId>, Error> {
        self.inner.sweep(now, limit).await
    }

    fn barrier(&self) -> Receipt {
        Receipt::Pending(Box::new(Commit(self.is_committing.subscribe())))
    }
}
