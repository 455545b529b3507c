//! Events of tasks, and what holds a lane.

use crate::decide::{self, Change, Decision, Refusal};
use crate::ids::LaneId;
use crate::lifecycle::State;
use crate::store::{Update, UpdateResult};
use crate::task::{Cause, Outcome, TaskEvent, TaskRecord, WaitReason};
use crate::time::Timestamp;

use super::rows::Place;
use super::{Effect, Ledger};

impl Ledger {
    /// Applies one event to one task.
    pub fn update(&mut self, now: Timestamp, update: Update) -> UpdateResult {
        let place = self.rows.place(update.id);
        let Some((place, record)) = place.and_then(|place| Some((place, self.rows.at(place)?)))
        else {
            return UpdateResult::Absent;
        };
        if update.scope.as_ref().is_some_and(|scope| *scope != record.task.scope) {
            return UpdateResult::Absent;
        }
        let verdict = match decide::decide(record, now, &update.change, update.fence) {
            Ok(mut decision) => {
                if let Some(at) = update.ended_at {
                    decision.ended_before(at);
                }
                let moved = decision.event.is_some();
                self.commit(now, place, decision);
                match self.rows.at(place) {
                    Some(record) if moved => UpdateResult::Moved(record.clone()),
                    Some(record) => UpdateResult::Same(record.clone()),
                    None => UpdateResult::Absent,
                }
            }
            Err(refusal) => self.refuse(now, place, update.change, refusal),
        };
        if update.releases
            && let Some(fence) = update.fence
        {
            self.release(update.id, fence);
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
    ) -> UpdateResult {
        let Some(record) = self.rows.at_mut(place) else { return UpdateResult::Absent };
        let has_ended = record.state.is_terminal() && record.state != State::Expired;
        let is_late = has_ended && !record.has_reported;
        match (change, refusal) {
            (Change::Finish(outcome), Refusal::State(_))
                if is_late && outcome != Outcome::Cancelled =>
            {
                record.has_reported = true;
                record.n_events += 1;
                record.updated_at = now;
                let event = TaskEvent {
                    seq: record.n_events,
                    at: now,
                    attempt: record.attempt,
                    fence: record.fence,
                    from: Some(record.state),
                    to: record.state,
                    cause: Cause::LateResult,
                    note: None,
                };
                let record = record.clone();
                self.effects.push(Effect::Late { record: record.clone(), event, outcome });
                UpdateResult::Late(record)
            }
            (_, refusal) => UpdateResult::Refused(record.clone(), refusal),
        }
    }

    /// Puts a decision in place and brings every index along.
    pub(super) fn commit(&mut self, now: Timestamp, place: Place, decision: Decision) {
        let Decision { record: after, event, outcome, retried, late, input } = decision;
        let Some(before) = self.rows.replace(place, after.clone()) else { return };
        self.reindex(place, &before, &after);
        let is_queued = after.state == State::Queued;
        self.effects.push(Effect::Moved { record: after, event, outcome, retried, late, input });
        self.arm(place);
        if is_queued {
            self.hold_if_held(now, place);
        }
    }

    fn reindex(&mut self, place: Place, before: &TaskRecord, after: &TaskRecord) {
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
            if after.held_key().is_none() {
                self.forget_key(before);
            }
            self.timers.bury(after);
        }
    }

    /// A task that comes back to a held lane waits like the others.
    fn hold_if_held(&mut self, now: Timestamp, place: Place) {
        let Some(record) = self.rows.at(place) else { return };
        let held = self.lanes.get(&record.task.lane).and_then(|lane| lane.held.clone());
        if let Some(reason) = held
            && let Ok(decision) = decide::decide(record, now, &Change::Hold(reason), None)
        {
            self.commit(now, place, decision);
        }
    }

    /// Holds a lane, or lets it go on; returns how many tasks moved [QUEUE-5].
    pub fn hold(&mut self, now: Timestamp, lane: &LaneId, hold: Option<WaitReason>) -> u32 {
        let Some(entry) = self.lanes.get_mut(lane) else { return 0 };
        let places: Vec<Place> = match hold {
            Some(_) => entry.queued().chain(entry.waiters()).collect(),
            None => entry.waiters().collect(),
        };
        entry.held.clone_from(&hold);
        let change = hold.map_or(Change::Resume, Change::Hold);
        let mut n_moved = 0;
        for place in places {
            let Some(record) = self.rows.at(place) else { continue };
            if record.waiting == Some(WaitReason::RETRY_BACKOFF) {
                continue;
            }
            if let Ok(decision) = decide::decide(record, now, &change, None) {
                n_moved += u32::from(decision.event.is_some());
                self.commit(now, place, decision);
            }
        }
        n_moved
    }
}
