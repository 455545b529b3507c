//! Keeping the leases of the attempts that run here [LEASE-2].

use std::sync::Arc;
use std::time::Duration;

use raincheck_core::store::HeartbeatReply;

use super::Shared;
use crate::context::StopReason;
use crate::live::Live;

/// Beats that are due within this span go in one transaction.
const TOGETHER: Duration = Duration::from_millis(500);

impl Shared {
    /// Sends heartbeats as they are due, until it is dropped.
    pub(super) async fn beat(self: Arc<Self>) {
        loop {
            self.beats.rings(&*self.clock).await;
            self.beats.disarm();
            let now = self.clock.now();
            let mut due = Vec::new();
            for live in self.lives.all() {
                if live.next_beat() <= now + TOGETHER {
                    self.beats.arm(live.plan_beat(now));
                    due.push(live);
                } else {
                    self.beats.arm(live.next_beat());
                }
            }
            self.beat_all(&due).await;
        }
    }

    async fn beat_all(&self, due: &[Arc<Live>]) {
        if due.is_empty() {
            return;
        }
        let beats = due.iter().map(|live| live.beat()).collect();
        match self.store.heartbeat(self.clock.now(), beats).await {
            Ok(directives) => {
                for (live, directive) in due.iter().zip(directives) {
                    live.obey(directive);
                }
            }
            Err(error) => tracing::error!(%error, "heartbeats were not kept"),
        }
    }
}

impl Live {
    pub(super) fn obey(&self, directive: HeartbeatReply) {
        match directive {
            HeartbeatReply::Cancel if self.supports_cancel => self.stop(StopReason::Cancelled),
            HeartbeatReply::Continue | HeartbeatReply::Cancel => {}
            HeartbeatReply::Lost => self.stop(StopReason::Lost),
        }
    }
}
