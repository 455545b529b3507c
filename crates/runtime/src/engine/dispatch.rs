//! Filling free places of lanes that no submit and no driver fills.
//!
//! A submit leases work in its own transaction, and a driver leases the next task of its lane with
//! the end of the last one. What is left is work that comes back: a pause between attempts that is
//! over, a hold that was lifted, a slot whose lease lapsed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use raincheck_core::ids::LaneId;
use raincheck_core::store::{self, Claim};

use super::Shared;
use crate::shards::lock;

/// How many attempts are leased in one transaction.
const BATCH: u32 = 64;

/// The lanes that may have work and a free place for it.
pub(super) struct Unfilled {
    lanes: Mutex<BTreeSet<LaneId>>,
    marked: Notify,
}

impl Unfilled {
    pub(super) fn new() -> Self {
        Self { lanes: Mutex::default(), marked: Notify::new() }
    }

    pub(super) fn mark(&self, lane: LaneId) {
        lock(&self.lanes).insert(lane);
        self.marked.notify_one();
    }

    fn take(&self) -> Vec<LaneId> {
        std::mem::take(&mut *lock(&self.lanes)).into_iter().collect()
    }
}

impl Shared {
    pub(super) fn mark_all_lanes(&self) {
        for lane in self.lane_names() {
            self.unfilled.mark(lane);
        }
    }

    /// Fills marked lanes until it is dropped.
    pub(super) async fn dispatch(self: Arc<Self>) {
        loop {
            self.unfilled.marked.notified().await;
            for lane in self.unfilled.take() {
                if let Err(error) = self.fill(&lane).await {
                    tracing::error!(%lane, %error, "work could not be leased");
                    self.look_again();
                }
            }
        }
    }

    async fn fill(self: &Arc<Self>, lane: &LaneId) -> Result<(), store::Error> {
        loop {
            let claim = Claim { lanes: vec![lane.clone()], n: BATCH };
            let posted = self.store.claim(self.clock.now(), claim).await?;
            posted.receipt.committed().await?;
            let is_last = posted.value.len() < BATCH as usize;
            for leased in posted.value {
                Self::drive(self, leased);
            }
            if is_last {
                return Ok(());
            }
        }
    }
}
