//! A store that outlives the servers of a test.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::ids::{Fence, LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    Beat, ChangeSink, Claim, Claimed, Cursor, Directive, Durability, Error, Filter, Found,
    LaneView, MemoryStore, Page, Post, Posted, Receipt, Submit, Submitted, TaskStore, Traits,
    Verdict,
};
use raincheck_core::task::{Row, WaitReason};
use raincheck_core::time::Timestamp;

/// Memory that says of itself that it survives the process, as far as the process is one runtime of
/// this test program.
#[derive(Default)]
pub(crate) struct Outliving(pub(crate) MemoryStore);

#[async_trait]
impl TaskStore for Outliving {
    fn traits(&self) -> Traits {
        Traits { durability: Durability::Process, ..self.0.traits() }
    }

    async fn open(
        &self,
        now: Timestamp,
        lanes: Vec<(LaneId, lane::Config)>,
        adopt: Duration,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Vec<Claimed>, Error> {
        self.0.close();
        self.0.open(now, lanes, adopt, sink).await
    }

    async fn set_lane(&self, lane: LaneId, config: lane::Config) -> Result<(), Error> {
        self.0.set_lane(lane, config).await
    }

    async fn submit(
        &self,
        now: Timestamp,
        batch: Vec<Submit>,
        then: Option<Claim>,
    ) -> Result<Posted<(Vec<Submitted>, Vec<Claimed>)>, Error> {
        self.0.submit(now, batch, then).await
    }

    async fn claim(&self, now: Timestamp, claim: Claim) -> Result<Posted<Vec<Claimed>>, Error> {
        self.0.claim(now, claim).await
    }

    async fn post(
        &self,
        now: Timestamp,
        batch: Vec<Post>,
        then: Option<Claim>,
    ) -> Result<Posted<(Vec<Verdict>, Vec<Claimed>)>, Error> {
        self.0.post(now, batch, then).await
    }

    async fn heartbeat(&self, now: Timestamp, beats: Vec<Beat>) -> Result<Vec<Directive>, Error> {
        self.0.heartbeat(now, beats).await
    }

    async fn release(
        &self,
        now: Timestamp,
        slots: Vec<(TaskId, Fence)>,
    ) -> Result<Posted<()>, Error> {
        self.0.release(now, slots).await
    }

    async fn hold(
        &self,
        now: Timestamp,
        lane: LaneId,
        hold: Option<WaitReason>,
    ) -> Result<Posted<u32>, Error> {
        self.0.hold(now, lane, hold).await
    }

    async fn fire(&self, now: Timestamp, limit: u32) -> Result<Posted<Option<Timestamp>>, Error> {
        self.0.fire(now, limit).await
    }

    async fn find(&self, scope: &Scope, id: TaskId) -> Result<Found, Error> {
        self.0.find(scope, id).await
    }

    async fn position(&self, id: TaskId) -> Result<Option<u32>, Error> {
        self.0.position(id).await
    }

    async fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        before: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<Row>, Error> {
        self.0.list(scope, filter, before, limit).await
    }

    async fn lanes(&self) -> Result<Vec<LaneView>, Error> {
        self.0.lanes().await
    }

    async fn sweep(&self, now: Timestamp, limit: u32) -> Result<Vec<TaskId>, Error> {
        self.0.sweep(now, limit).await
    }

    fn barrier(&self) -> Receipt {
        self.0.barrier()
    }
}
