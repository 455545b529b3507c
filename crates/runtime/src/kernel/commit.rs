//! Saying something about an attempt, and waiting until the store has it.

use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::sleep;

use raincheck_core::decide::Change;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::store::{HeartbeatReply, Update, UpdateResult};

use super::Kernel;
use crate::live::Live;
use crate::stop::StopReason;
use crate::waits::Happened;

/// The pause before a store that failed is asked again.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

impl Kernel {
    /// Posts one event and waits for its commit.
    pub(crate) async fn update_one(&self, update: Update) -> Result<UpdateResult, Error> {
        let posted = self.store.update(self.clock.now(), vec![update], None).await?;
        posted.receipt.committed().await?;
        let (mut results, _) = posted.value;
        results.pop().ok_or_else(|| {
            Error::new(Kind::StorageUnavailable, "the store gave no answer to an event")
                .with_guarantee(Guarantee::Unknown)
        })
    }

    /// Says that an attempt runs, and looks whether it still may; tells whether it does.
    pub(crate) async fn announce(&self, live: &Live) -> bool {
        let start = || self.update_one(Update::attempt(live.id, live.fence, Change::Start));
        match self.until_kept(live, start).await {
            UpdateResult::Moved(record) | UpdateResult::Same(record) => live.observe(&record),
            UpdateResult::Late(record) | UpdateResult::Refused(record, _) => {
                live.observe(&record);
                live.stop(StopReason::Lost);
            }
            UpdateResult::Absent => live.stop(StopReason::Lost),
        }
        live.reason.get().is_none()
    }

    /// Renews the lease of an attempt, and looks whether it may go on; tells whether it may.
    pub(crate) async fn renew(&self, live: &Live) -> bool {
        let beat = || self.store.heartbeat(self.clock.now(), vec![live.beat()]);
        match self.until_kept(live, beat).await.as_slice() {
            [reply] => live.obey(*reply),
            _ => live.stop(StopReason::Lost),
        }
        live.reason.get().is_none()
    }

    /// Waits until the lease of an attempt is committed; tells whether it is still the task's.
    pub(crate) async fn lease_kept(&self, live: &Live) -> bool {
        loop {
            let is_committed = self.store.barrier().committed().await.is_ok();
            // A commit that failed may have been another's: the store shows only what is kept then.
            let beat = || self.store.heartbeat(self.clock.now(), vec![live.beat()]);
            match self.until_kept(live, beat).await.as_slice() {
                [reply] if *reply != HeartbeatReply::Lost => live.obey(*reply),
                _ => {
                    live.stop(StopReason::Lost);
                    return false;
                }
            }
            if is_committed {
                return true;
            }
        }
    }

    /// Frees the slot of an attempt that is over without an outcome.
    pub(crate) async fn let_go(&self, live: &Live) {
        let once = || async {
            let slots = vec![(live.id, live.fence)];
            self.store.release(self.clock.now(), slots).await?.receipt.committed().await
        };
        self.until_kept(live, once).await;
    }

    /// Says something about an attempt until the store keeps it: a full disk is no reason to lose
    /// an outcome or a slot, nor is a store that panics. The end of the engine ends it.
    pub(crate) async fn until_kept<T, E, F>(&self, live: &Live, say: impl Fn() -> F) -> T
    where
        E: Display,
        F: Future<Output = Result<T, E>>,
    {
        let mut is_first = true;
        loop {
            match AssertUnwindSafe(async { say().await }).catch_unwind().await {
                Ok(Ok(kept)) => return kept,
                Ok(Err(error)) if is_first => {
                    tracing::error!(task = %live.id, attempt = live.number, %error, "the store failed");
                }
                Err(_) if is_first => {
                    tracing::error!(task = %live.id, attempt = live.number, "the store panicked");
                }
                Ok(Err(_)) | Err(_) => {}
            }
            if is_first {
                // Who waits looks again: the task itself may be what was lost.
                self.waits.tell(live.id, Happened::Ended);
            }
            is_first = false;
            sleep(PAUSE).await;
        }
    }

    /// Closes the log of an attempt that wrote one.
    pub(crate) async fn close_logs(&self, live: &Live) {
        if !live.uses_log() {
            return;
        }
        let closed = guarded("closing a log", self.logs.close(live.id)).await;
        if let Some(Err(error)) = closed {
            tracing::warn!(task = %live.id, %error, "the log could not be closed");
        }
    }
}

/// Runs code of others that must not take the engine's own along; `None` when it panicked, which is
/// reported.
pub(crate) async fn guarded<T>(doing: &'static str, work: impl Future<Output = T>) -> Option<T> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    if done.is_err() {
        tracing::error!(doing, "something panicked");
    }
    done.ok()
}
