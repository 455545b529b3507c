//! Leasing work, renewing leases, freeing slots.

use std::time::Duration;

use crate::deadline::Kind;
use crate::decide::{self, Change};
use crate::ids::{Fence, LaneId, TaskId};
use crate::store::{Claim, Heartbeat, HeartbeatReply};
use crate::task::TaskRecord;
use crate::time::Timestamp;

use super::rows::Place;
use super::{Effect, Ledger};

/// A place whose holder is heard of more often is not written more often.
const HEARD_EVERY: Duration = Duration::from_secs(1);

impl Ledger {
    /// Leases work, as much as the places of the lanes and the claim allow; returns the rows.
    pub fn claim(&mut self, now: Timestamp, claim: &Claim) -> Vec<TaskRecord> {
        let mut leased = Vec::new();
        for lane in &claim.lanes {
            while leased.len() < claim.n as usize
                && let Some(place) = self.next_in(lane)
                && let Some(record) = self.lease(now, place)
            {
                leased.push(record);
            }
        }
        leased
    }

    /// The first queued task of a lane with a free place, passing over a task whose last attempt
    /// still holds one [QUEUE-6].
    fn next_in(&self, lane: &LaneId) -> Option<Place> {
        let lane = self.lanes.get(lane)?;
        if lane.n_free() == 0 || lane.held.is_some() {
            return None;
        }
        lane.queued().find(|place| {
            self.rows.at(*place).is_some_and(|record| lane.slot(record.id()).is_none())
        })
    }

    fn lease(&mut self, now: Timestamp, place: Place) -> Option<TaskRecord> {
        let record = self.rows.at(place)?;
        let (id, until) = (record.id(), now + record.task.limits.lease);
        let lane = self.lanes.get_mut(&record.task.lane)?;
        let fence = Fence::from_raw(self.next_fence);
        let change = Change::Lease { worker: lane.next_worker(), fence };
        let decision = decide::decide(record, now, &change, None).ok()?;
        self.next_fence += 1;
        let slot = lane.take(now, id, fence, until);
        self.effects.push(Effect::Taken(slot));
        self.commit(now, place, decision);
        self.rows.at(place).cloned()
    }

    /// Renews the lease of an attempt, and of the place that it holds [LEASE-2].
    pub fn heartbeat(&mut self, now: Timestamp, beat: &Heartbeat) -> HeartbeatReply {
        let Some(place) = self.rows.place(beat.id) else { return HeartbeatReply::Lost };
        let Some(record) = self.rows.at_mut(place) else { return HeartbeatReply::Lost };
        let until = now + record.task.limits.lease;
        let is_mine = record.fence == beat.fence && record.state.is_leased();
        if is_mine {
            record.heartbeat_at = Some(now);
            record.deadlines.set(Kind::Lease, Some(until));
        }
        let is_cancelled = record.cancel.is_some() && record.task.supports_cancel;
        let (id, lane) = (record.id(), record.task.lane.clone());
        if let Some(slot) = self.lanes.get_mut(&lane).and_then(|lane| lane.slot_mut(id))
            && slot.fence == beat.fence
        {
            slot.lease = until;
            if now.since(slot.heard) >= HEARD_EVERY {
                slot.heard = now;
                self.effects.push(Effect::Heard(slot.clone()));
            }
        }
        self.arm(place);
        match (is_mine, is_cancelled) {
            (false, _) => HeartbeatReply::Lost,
            (true, true) => HeartbeatReply::Cancel,
            (true, false) => HeartbeatReply::Continue,
        }
    }

    /// Frees the place of an attempt whose executor is gone, whatever its task's state [QUEUE-6].
    pub fn release(&mut self, task: TaskId, fence: Fence) {
        let Some(place) = self.rows.place(task) else { return };
        let Some(record) = self.rows.at(place) else { return };
        if let Some(lane) = self.lanes.get_mut(&record.task.lane)
            && lane.free(task, fence)
        {
            self.effects.push(Effect::Freed { task, fence });
            self.arm(place);
        }
    }
}
