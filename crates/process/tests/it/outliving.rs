//! A store that outlives the servers of a test.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::ids::{Fence, LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::mac::MacKey;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    Capabilities, ChangeSink, Claim, Claimed, Cursor, Durability, Error, Filter, Found, Heartbeat,
    HeartbeatReply, LaneView, MemoryStore, Page, Receipt, Submit, Submitted, TaskStore, Update,
    UpdateResult, Write,
};
use raincheck_core::task::{TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;

/// Memory that says of itself that it survives the process, as far as the process is one runtime of
/// this test program.
#[derive(Default)]
pub(crate) struct Outliving(pub(crate) MemoryStore);

#[async_trait]
impl TaskStore for Outliving {
    fn capabilities(&self) -> Capabilities {
        Capabilities { durability: Durability::Full }
    }

    async fn open(
        &self,
        now: Timestamp,
        lanes: Vec<(LaneId, lane::Config)>,
        reattach: Duration,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Vec<Claimed>, Error> {
        self.0.close();
        self.0.open(now, lanes, reattach, sink).await
    }

    fn mac_key(&self) -> Option<MacKey> {
        self.0.mac_key()
    }

    async fn set_lane(&self, lane: LaneId, config: lane::Config) -> Result<(), Error> {
        self.0.set_lane(lane, config).await
    }

    async fn remove_lane(&self, lane: &LaneId) -> Result<bool, Error> {
        self.0.remove_lane(lane).await
    }

    async fn submit(
        &self,
        now: Timestamp,
        batch: Vec<Submit>,
        then: Option<Claim>,
    ) -> Result<Write<(Vec<Submitted>, Vec<Claimed>)>, Error> {
        self.0.submit(now, batch, then).await
    }

    async fn claim(&self, now: Timestamp, claim: Claim) -> Result<Write<Vec<Claimed>>, Error> {
        self.0.claim(now, claim).await
    }

    async fn update(
        &self,
        now: Timestamp,
        batch: Vec<Update>,
        then: Option<Claim>,
    ) -> Result<Write<(Vec<UpdateResult>, Vec<Claimed>)>, Error> {
        self.0.update(now, batch, then).await
    }

    async fn heartbeat(
        &self,
        now: Timestamp,
        beats: Vec<Heartbeat>,
    ) -> Result<Vec<HeartbeatReply>, Error> {
        self.0.heartbeat(now, beats).await
    }

    async fn release(
        &self,
        now: Timestamp,
        slots: Vec<(TaskId, Fence)>,
    ) -> Result<Write<()>, Error> {
        self.0.release(now, slots).await
    }

    async fn hold(
        &self,
        now: Timestamp,
        lane: LaneId,
        hold: Option<WaitReason>,
    ) -> Result<Write<u32>, Error> {
        self.0.hold(now, lane, hold).await
    }

    async fn extend_deadlines(&self, now: Timestamp, by: Duration) -> Result<Write<u32>, Error> {
        self.0.extend_deadlines(now, by).await
    }

    async fn fire(&self, now: Timestamp, limit: u32) -> Result<Write<Option<Timestamp>>, Error> {
        self.0.fire(now, limit).await
    }

    async fn unknown(&self, ids: Vec<TaskId>) -> Result<Vec<TaskId>, Error> {
        self.0.unknown(ids).await
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
    ) -> Result<Page<TaskRecord>, Error> {
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
