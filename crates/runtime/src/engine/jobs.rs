//! The jobs of the engine's loop, as they are done.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt as _;

use raincheck_core::ids::LaneId;
use raincheck_core::store::{self, Claim};
use raincheck_core::time::Timestamp;

use super::Engine;
use super::agenda::{Done, Job, TOGETHER};
use crate::toolset::ToolSet;

/// How many deadlines fire in one transaction.
const FIRE: u32 = 256;

/// How many attempts are leased in one transaction.
const LEASE: u32 = 64;

/// How many tasks are forgotten in one transaction.
const FORGET: u32 = 200;

impl Engine {
    /// Does one job. `now` was read before the job was decided on: what passes later is not judged by
    /// it, even if this process is stopped in between.
    pub(crate) async fn perform(
        self: Arc<Self>,
        now: Timestamp,
        job: Job,
        sets: Arc<[Arc<dyn ToolSet>]>,
    ) -> Done {
        let kind = job.kind();
        let work = async {
            match job {
                Job::Extend(by) => self.extend(now, by).await.map(|()| Done::Extended(by)),
                Job::Beat { all } => self.beat(all).await.map(|()| Done::Beaten),
                Job::Fire => self.fire(now).await.map(Done::Fired),
                Job::Fill(lanes) => Ok(Done::Filled(self.fill(lanes).await)),
                Job::Sweep => self.sweep(&sets).await.map(|()| Done::Swept),
            }
        };
        match AssertUnwindSafe(work).catch_unwind().await {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => {
                tracing::error!(job = ?kind, %error, "the store failed; it is tried again");
                Done::Failed(kind)
            }
            Err(_) => {
                tracing::error!(job = ?kind, "a job of the engine panicked; it is tried again");
                Done::Failed(kind)
            }
        }
    }

    async fn extend(&self, now: Timestamp, by: Duration) -> Result<(), store::Error> {
        let posted = self.kernel.store.extend_deadlines(now, by).await?;
        posted.receipt.committed().await?;
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(ms, tasks = posted.value, "the engine could not run; limits were extended");
        Ok(())
    }

    /// Renews the leases of attempts that run here [LEASE-2].
    async fn beat(&self, all: bool) -> Result<(), store::Error> {
        let kernel = &self.kernel;
        let now = kernel.clock.now();
        let mut due = Vec::new();
        for live in kernel.lives.all() {
            if all || live.next_beat() <= now + TOGETHER {
                kernel.inbox.beat_by(live.plan_beat(now));
                due.push(live);
            } else {
                kernel.inbox.beat_by(live.next_beat());
            }
        }
        if due.is_empty() {
            return Ok(());
        }
        let beats = due.iter().map(|live| live.beat()).collect();
        let replies = kernel.store.heartbeat(now, beats).await?;
        for (live, reply) in due.iter().zip(replies) {
            live.obey(reply);
        }
        Ok(())
    }

    async fn fire(&self, now: Timestamp) -> Result<Option<Timestamp>, store::Error> {
        let kernel = &self.kernel;
        let posted = kernel.store.fire(now, FIRE).await?;
        posted.receipt.committed().await?;
        // A lapsed lease frees a slot without a record that says so.
        kernel.lane_names().into_iter().for_each(|lane| kernel.inbox.fill(lane));
        Ok(posted.value)
    }

    /// Fills lanes: a submit leases work in its own transaction, and a driver leases the next task of
    /// its lane with the end of the last one; what is left is work that comes back. Returns the lanes
    /// that could not be filled.
    async fn fill(self: &Arc<Self>, lanes: BTreeSet<LaneId>) -> BTreeSet<LaneId> {
        let mut again = BTreeSet::new();
        for lane in lanes {
            if let Err(error) = self.fill_one(&lane).await {
                tracing::error!(%lane, %error, "work could not be leased");
                again.insert(lane);
            }
        }
        again
    }

    async fn fill_one(self: &Arc<Self>, lane: &LaneId) -> Result<(), store::Error> {
        loop {
            let claim = Claim { lanes: vec![lane.clone()], n: LEASE };
            let posted = self.kernel.store.claim(self.kernel.clock.now(), claim).await?;
            posted.receipt.committed().await?;
            let is_last = posted.value.len() < LEASE as usize;
            for leased in posted.value {
                self.drive(leased).await;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Removes what nobody can read any more. Files go after their rows [SWEEP-1].
    async fn sweep(&self, sets: &[Arc<dyn ToolSet>]) -> Result<(), store::Error> {
        if !self.has_cleared.load(Ordering::Relaxed) {
            self.clear_leftovers(sets).await?;
            self.has_cleared.store(true, Ordering::Relaxed);
        }
        loop {
            let gone = self.kernel.store.sweep(self.kernel.clock.now(), FORGET).await?;
            if gone.is_empty() {
                return Ok(());
            }
            for set in sets {
                set.forget(&gone).await;
            }
            let is_last = gone.len() < FORGET as usize;
            self.kernel.logs.remove(gone).await?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Removes what is left of tasks that the store does not have: those whose submit was never
    /// committed, and those that were forgotten by a server which ended before their files were removed.
    async fn clear_leftovers(&self, sets: &[Arc<dyn ToolSet>]) -> Result<(), store::Error> {
        for set in sets {
            for ids in set.leftovers().await.chunks(FORGET as usize) {
                let gone = self.kernel.store.unknown(ids.to_vec()).await?;
                if gone.is_empty() {
                    continue;
                }
                tracing::info!(
                    tasks = gone.len(),
                    "the files of tasks that were never kept are removed"
                );
                set.forget(&gone).await;
                self.kernel.logs.remove(gone).await?;
            }
        }
        Ok(())
    }
}
