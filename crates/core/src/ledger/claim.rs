//! Leasing work, renewing leases, freeing slots.

use std::time::Duration;

use crate::deadline::Kind;
use crate::decide::{self, Change};
use crate::ids::{Fence, LaneId, TaskId};
use crate::store::{Beat, Claim, Directive};
use crate::task::Row;
use crate::time::Timestamp;

use super::rows::Place;
use super::{Ledger, Record};

/// A place whose holder is heard of more often is not written more often.
const HEARD_EVERY: Duration = Duration::from_secs(1);

impl Ledger {
    pub(super) fn claim(&mut self, now: Timestamp, claim: &Claim) -> Vec<Row> {
        let mut leased = Vec::new();
        for lane in &claim.lanes {
            while leased.len() < claim.n as usize
                && let Some(place) = self.next_in(lane)
                && let Some(row) = self.lease(now, place)
            {
                leased.push(row);
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
        lane.queued()
            .find(|place| self.rows.at(*place).is_some_and(|row| lane.slot(row.id()).is_none()))
    }

    fn lease(&mut self, now: Timestamp, place: Place) -> Option<Row> {
        let row = self.rows.at(place)?;
        let (id, until) = (row.id(), now + row.task.limits.lease);
        let lane = self.lanes.get_mut(&row.task.lane)?;
        let fence = Fence::from_raw(self.next_fence);
        let change = Change::Lease { worker: lane.next_worker(), fence };
        let decision = decide::decide(row, now, &change, None).ok()?;
        self.next_fence += 1;
        let slot = lane.take(now, id, fence, until);
        self.records.push(Record::Taken(slot));
        self.commit(now, place, decision);
        self.rows.at(place).cloned()
    }

    pub(super) fn heartbeat(&mut self, now: Timestamp, beat: &Beat) -> Directive {
        let Some(place) = self.rows.place(beat.id) else { return Directive::Lost };
        let Some(row) = self.rows.at_mut(place) else { return Directive::Lost };
        let until = now + row.task.limits.lease;
        let is_mine = row.fence == beat.fence && row.state.is_leased();
        if is_mine {
            row.heartbeat_at = Some(now);
            row.deadlines.set(Kind::Lease, Some(until));
        }
        let is_cancelled = row.cancel.is_some() && row.task.supports_cancel;
        let (id, lane) = (row.id(), row.task.lane.clone());
        if let Some(slot) = self.lanes.get_mut(&lane).and_then(|lane| lane.slot_mut(id))
            && slot.fence == beat.fence
        {
            slot.lease = until;
            if now.since(slot.heard) >= HEARD_EVERY {
                slot.heard = now;
                self.records.push(Record::Heard(slot.clone()));
            }
        }
        self.arm(place);
        match (is_mine, is_cancelled) {
            (false, _) => Directive::Lost,
            (true, true) => Directive::Cancel,
            (true, false) => Directive::Continue,
        }
    }

    pub(super) fn release(&mut self, task: TaskId, fence: Fence) {
        let Some(place) = self.rows.place(task) else { return };
        let Some(row) = self.rows.at(place) else { return };
        if let Some(lane) = self.lanes.get_mut(&row.task.lane)
            && lane.free(task, fence)
        {
            self.records.push(Record::Freed { task, fence });
            self.arm(place);
        }
    }
}
