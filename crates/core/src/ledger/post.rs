//! Events of tasks, and what holds a lane.

use crate::decide::{self, Change, Decision, Refusal};
use crate::ids::LaneId;
use crate::lifecycle::State;
use crate::store::{Post, Verdict};
use crate::task::{Cause, Outcome, Row, TaskEvent, WaitReason};
use crate::time::Timestamp;

use super::rows::Place;
use super::{Ledger, Record};

impl Ledger {
    pub(super) fn post(&mut self, now: Timestamp, post: Post) -> Verdict {
        let place = self.rows.place(post.id);
        let Some((place, row)) = place.and_then(|place| Some((place, self.rows.at(place)?))) else {
            return Verdict::Absent;
        };
        if post.scope.as_ref().is_some_and(|scope| *scope != row.task.scope) {
            return Verdict::Absent;
        }
        let verdict = match decide::decide(row, now, &post.change, post.fence) {
            Ok(decision) => {
                let moved = decision.event.is_some();
                self.commit(now, place, decision);
                match self.rows.at(place) {
                    Some(row) if moved => Verdict::Moved(row.clone()),
                    Some(row) => Verdict::Same(row.clone()),
                    None => Verdict::Absent,
                }
            }
            Err(refusal) => self.refuse(now, place, post.change, refusal),
        };
        if post.releases
            && let Some(fence) = post.fence
        {
            self.release(post.id, fence);
        }
        verdict
    }

    /// Keeps the outcome of an attempt that its task did not wait for, once [LEASE-6, LEASE-7]; anything
    /// else is only refused.
    fn refuse(
        &mut self,
        now: Timestamp,
        place: Place,
        change: Change,
        refusal: Refusal,
    ) -> Verdict {
        let Some(row) = self.rows.at_mut(place) else { return Verdict::Absent };
        let has_ended = row.state.is_terminal() && row.state != State::Expired;
        let is_late = has_ended && !row.has_reported;
        match (change, refusal) {
            (Change::Finish(outcome), Refusal::State(_))
                if is_late && outcome != Outcome::Cancelled =>
            {
                row.has_reported = true;
                row.n_events += 1;
                row.updated_at = now;
                let event = TaskEvent {
                    seq: row.n_events,
                    at: now,
                    attempt: row.attempt,
                    fence: row.fence,
                    from: Some(row.state),
                    to: row.state,
                    cause: Cause::LateResult,
                    note: None,
                };
                let row = row.clone();
                self.records.push(Record::Late { row: row.clone(), event, outcome });
                Verdict::Late(row)
            }
            (_, refusal) => Verdict::Refused(row.clone(), refusal),
        }
    }

    /// Puts a decision in place and brings every index along.
    pub(super) fn commit(&mut self, now: Timestamp, place: Place, decision: Decision) {
        let Decision { row: after, event, outcome, retried, late } = decision;
        let Some(before) = self.rows.replace(place, after.clone()) else { return };
        self.reindex(place, &before, &after);
        let is_queued = after.state == State::Queued;
        self.records.push(Record::Moved { row: after, event, outcome, retried, late });
        self.arm(place);
        if is_queued {
            self.hold_if_held(now, place);
        }
    }

    fn reindex(&mut self, place: Place, before: &Row, after: &Row) {
        if before.state == after.state {
            return;
        }
        if let Some(lane) = self.lanes.get_mut(&after.task.lane) {
            lane.leave(before, place);
            lane.enter(after, place);
            if let (true, Some(started)) = (after.state.is_terminal(), after.started_at)
                && before.state.is_leased()
            {
                lane.learn(after.updated_at.since(started));
            }
        }
        if after.state == State::Expired {
            self.forget_key(after);
            self.timers.bury(after);
        }
    }

    /// A task that comes back to a held lane waits like the others.
    fn hold_if_held(&mut self, now: Timestamp, place: Place) {
        let Some(row) = self.rows.at(place) else { return };
        let held = self.lanes.get(&row.task.lane).and_then(|lane| lane.held);
        if let Some(reason) = held
            && let Ok(decision) = decide::decide(row, now, &Change::Hold(reason), None)
        {
            self.commit(now, place, decision);
        }
    }

    pub(super) fn hold(&mut self, now: Timestamp, lane: &LaneId, hold: Option<WaitReason>) -> u32 {
        let Some(entry) = self.lanes.get_mut(lane) else { return 0 };
        entry.held = hold;
        let change = hold.map_or(Change::Resume, Change::Hold);
        let places: Vec<Place> = match hold {
            Some(_) => entry.queued().chain(entry.waiters()).collect(),
            None => entry.waiters().collect(),
        };
        let mut n_moved = 0;
        for place in places {
            let Some(row) = self.rows.at(place) else { continue };
            if row.waiting == Some(WaitReason::RetryBackoff) {
                continue;
            }
            if let Ok(decision) = decide::decide(row, now, &change, None) {
                n_moved += u32::from(decision.event.is_some());
                self.commit(now, place, decision);
            }
        }
        n_moved
    }
}
