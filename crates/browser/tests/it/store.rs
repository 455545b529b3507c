//! A store that outlives its server and fails when it is told to: the memory store, wrapped.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::sleep;

use raincheck_core::ids::{Fence, LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    Capabilities, Claim, Claimed, Committed, Durability, Error, Found, Heartbeat, HeartbeatReply,
    MemoryLimits, MemoryStore, Receipt, StoreLayer, Submit, Submitted, TaskStatus, TaskStore,
    Update, UpdateResult, Write,
};
use raincheck_core::task::{TaskEvent, TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;

use raincheck_testkit::dice::Dice;

use crate::sim::Fault;

/// A memory store whose commits and submits can be held back, or fail, and that the next server opens again.
pub(crate) struct Store {
    inner: MemoryStore,
    is_committing: watch::Sender<bool>,
    is_taking: watch::Sender<bool>,
    fails: AtomicBool,
    /// Says how late commits are.
    pace: OnceLock<Mutex<Dice>>,
    fault: OnceLock<Fault>,
    /// What the first read of a task showed.
    first: Mutex<HashMap<TaskId, Found>>,
}

struct Commit(watch::Receiver<bool>, Duration);

#[async_trait]
impl Committed for Commit {
    async fn wait(mut self: Box<Self>) -> Result<(), Error> {
        if !self.1.is_zero() {
            sleep(self.1).await;
        }
        let committed = self.0.wait_for(|is_committing| *is_committing).await;
        committed.map(|_| ()).map_err(|_| Error::new("the store is gone"))
    }
}

impl Store {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::new(MemoryLimits::default()),
            is_committing: watch::Sender::new(true),
            is_taking: watch::Sender::new(true),
            fails: AtomicBool::new(false),
            pace: OnceLock::new(),
            fault: OnceLock::new(),
            first: Mutex::default(),
        })
    }

    /// Makes one commit in three late.
    pub(crate) fn slow_down(&self, dice: Dice) {
        assert!(self.pace.set(Mutex::new(dice)).is_ok(), "it has a pace");
    }

    /// Plants a fault.
    pub(crate) fn plant(&self, fault: Option<Fault>) {
        if let Some(fault) = fault {
            assert!(self.fault.set(fault).is_ok(), "it has a fault");
        }
    }

    fn is_planted(&self, fault: Fault) -> bool {
        self.fault.get() == Some(&fault)
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

    /// Lets submits wait before they are in it.
    pub(crate) fn hold_submits(&self) {
        self.is_taking.send_replace(false);
    }

    pub(crate) fn take_submits(&self) {
        self.is_taking.send_replace(true);
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

    fn commit_of(&self) -> Receipt {
        let lag = self.pace.get().map_or(Duration::ZERO, |dice| {
            let mut dice = dice.lock().expect("dice");
            let is_late = dice.one_in(3);
            Duration::from_millis(if is_late { dice.between(1, 250) } else { 0 })
        });
        Receipt::Pending(Box::new(Commit(self.is_committing.subscribe(), lag)))
    }

    fn later<T>(&self, posted: Write<T>) -> Write<T> {
        Write { value: posted.value, receipt: self.commit_of() }
    }
}

#[async_trait]
impl StoreLayer for Store {
    fn inner(&self) -> &dyn TaskStore {
        &self.inner
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { durability: Durability::Process }
    }

    async fn set_lane(&self, lane: LaneId, config: lane::Config) -> Result<(), Error> {
        if self.is_planted(Fault::TwoInATab) && lane.as_str().starts_with("tab:") {
            return self.inner.set_lane(lane, lane::Config::new(2, 32)).await;
        }
        self.inner.set_lane(lane, config).await
    }

    async fn submit(
        &self,
        now: Timestamp,
        batch: Vec<Submit>,
        then: Option<Claim>,
    ) -> Result<Write<(Vec<Submitted>, Vec<Claimed>)>, Error> {
        self.check()?;
        let taking = self.is_taking.subscribe().wait_for(|is_taking| *is_taking).await.map(|_| ());
        taking.map_err(|_| Error::new("the store is gone"))?;
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
        Ok(self.later(self.inner.update(now, batch, then).await?))
    }

    async fn heartbeat(
        &self,
        now: Timestamp,
        beats: Vec<Heartbeat>,
    ) -> Result<Vec<HeartbeatReply>, Error> {
        self.check()?;
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

    async fn hold(
        &self,
        now: Timestamp,
        lane: LaneId,
        hold: Option<WaitReason>,
    ) -> Result<Write<u32>, Error> {
        self.check()?;
        self.inner.hold(now, lane, hold).await
    }

    async fn extend_deadlines(&self, now: Timestamp, by: Duration) -> Result<Write<u32>, Error> {
        self.check()?;
        self.inner.extend_deadlines(now, by).await
    }

    async fn fire(&self, now: Timestamp, limit: u32) -> Result<Write<Option<Timestamp>>, Error> {
        self.check()?;
        if self.is_planted(Fault::DeadlinesSleep) {
            return Ok(Write { value: None, receipt: Receipt::Ready });
        }
        self.inner.fire(now, limit).await
    }

    async fn find(&self, scope: &Scope, id: TaskId) -> Result<Found, Error> {
        let found = self.inner.find(scope, id).await?;
        if self.is_planted(Fault::ShowsThePast) {
            let is_late = self.pace.get().is_some_and(|dice| dice.lock().expect("dice").one_in(9));
            let first =
                self.first.lock().expect("a map").entry(id).or_insert(found.clone()).clone();
            return Ok(if is_late { first } else { found });
        }
        Ok(found)
    }

    fn barrier(&self) -> Receipt {
        self.commit_of()
    }

    async fn status(&self, scope: &Scope, id: TaskId) -> Result<Option<TaskStatus>, Error> {
        Ok(StoreLayer::find(self, scope, id).await?.into_status())
    }

    async fn record(&self, scope: &Scope, id: TaskId) -> Result<Option<TaskRecord>, Error> {
        Ok(StoreLayer::find(self, scope, id).await?.into_record())
    }

    async fn events(&self, scope: &Scope, id: TaskId) -> Result<Option<Vec<TaskEvent>>, Error> {
        Ok(StoreLayer::find(self, scope, id).await?.into_events())
    }
}
