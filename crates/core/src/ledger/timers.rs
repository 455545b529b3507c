//! Deadlines: one heap, lazily extended.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use crate::deadline::Kind;
use crate::decide::{self, Change};
use crate::ids::TaskId;
use crate::lifecycle::State;
use crate::task::TaskRecord;
use crate::time::Timestamp;

use super::rows::{Place, Rows};
use super::{Ledger, TOMBSTONE};

/// When to look at which row. An entry counts only while its row is armed for that very instant, so
/// that a deadline that moves later costs nothing until the earlier look.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Timestamp, u64, Place)>>,
    n_armed: usize,
    /// Tombstones by the instant at which they may be forgotten.
    tombstones: BTreeMap<(Timestamp, u64), TaskId>,
}

impl Timers {
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.heap.peek().filter(|_| self.n_armed > 0).map(|Reverse((at, _, _))| *at)
    }

    pub(super) fn bury(&mut self, record: &TaskRecord) {
        self.tombstones.insert((record.updated_at + TOMBSTONE, record.seq), record.id());
    }

    pub(super) fn unbury(&mut self, record: &TaskRecord) {
        self.tombstones.remove(&(record.updated_at + TOMBSTONE, record.seq));
    }
}

/// The least time after a start in which an attempt that outlived it can say how it ended.
const FIRST_WORD: Duration = Duration::from_secs(5);

/// When a limit of an attempt ends that was armed before a restart: one that passed while no server
/// ran after the whole grace, any other when it would have, or as soon as the attempt could speak.
fn heard_before(at: Timestamp, now: Timestamp, grace: Duration) -> Timestamp {
    if at <= now { now + grace } else { at.max(now + grace.min(FIRST_WORD)) }
}

impl Ledger {
    /// Arms what a row says now.
    pub(super) fn arm(&mut self, place: Place) {
        let Some(record) = self.rows.at(place) else { return };
        let at = self.due(record);
        let (seq, armed) = (record.seq, self.rows.armed(place));
        match at {
            Some(at) if armed.is_none_or(|armed| at < armed) => {
                self.timers.n_armed += usize::from(armed.is_none());
                self.timers.heap.push(Reverse((at, seq, place)));
                self.rows.set_armed(place, Some(at));
            }
            Some(_) => {}
            None => self.disarm(place),
        }
        self.compact();
    }

    /// The instant at which a row, or the place that it holds, is to be looked at.
    fn due(&self, record: &TaskRecord) -> Option<Timestamp> {
        let slot = self.lanes.get(&record.task.lane).and_then(|lane| lane.slot(record.id()));
        match (record.deadlines.earliest(), slot.map(|slot| slot.lease)) {
            (Some(record), Some(slot)) => Some(record.min(slot)),
            (record, slot) => record.or(slot),
        }
    }

    /// Arms every row of a ledger in which none is.
    pub(super) fn arm_all(&mut self) {
        let due =
            |(place, record): (Place, &TaskRecord)| Some((self.due(record)?, record.seq, place));
        let entries: Vec<_> = self.rows.unordered().filter_map(due).map(Reverse).collect();
        for Reverse((at, _, place)) in &entries {
            self.rows.set_armed(*place, Some(*at));
        }
        self.timers.n_armed = entries.len();
        self.timers.heap = entries.into();
    }

    pub(super) fn disarm(&mut self, place: Place) {
        self.timers.n_armed -= usize::from(self.rows.armed(place).is_some());
        self.rows.set_armed(place, None);
    }

    /// Whether an entry of the heap is the one that its row is armed for.
    fn is_live(rows: &Rows, (at, seq, place): (Timestamp, u64, Place)) -> bool {
        rows.armed(place) == Some(at) && rows.at(place).is_some_and(|record| record.seq == seq)
    }

    /// Drops dead entries once they are most of the heap.
    fn compact(&mut self) {
        if self.timers.heap.len() > 64 && self.timers.heap.len() / 4 > self.timers.n_armed {
            let rows = &self.rows;
            self.timers.heap.retain(|Reverse(entry)| Self::is_live(rows, *entry));
        }
    }

    /// Takes the next row whose look is due.
    fn pop(&mut self, now: Timestamp) -> Option<Place> {
        while let Some(Reverse(entry)) = self.timers.heap.peek().copied() {
            let is_live = Self::is_live(&self.rows, entry);
            if is_live && entry.0 > now {
                return None;
            }
            self.timers.heap.pop();
            if is_live {
                self.disarm(entry.2);
                return Some(entry.2);
            }
        }
        None
    }

    /// Fires deadlines that passed, of up to `limit` tasks; returns how many tasks moved.
    pub fn fire(&mut self, now: Timestamp, limit: u32) -> u32 {
        let mut n_moved = 0;
        for _ in 0..limit {
            let Some(place) = self.pop(now) else { break };
            n_moved += u32::from(self.fire_one(now, place));
            self.arm(place);
        }
        n_moved
    }

    fn fire_one(&mut self, now: Timestamp, place: Place) -> bool {
        let mut moved = false;
        while let Some((at, kind)) = self.rows.at(place).and_then(|record| record.deadlines.next())
        {
            if at > now {
                break;
            }
            moved |= self.pass(now, place, kind);
        }
        self.lapse(now, place);
        moved
    }

    /// Lets one deadline pass. A deadline that the state refuses is disarmed, so that it cannot spin.
    fn pass(&mut self, now: Timestamp, place: Place, kind: Kind) -> bool {
        let Some(record) = self.rows.at(place) else { return false };
        match decide::decide(record, now, &Change::Due(kind), None) {
            Ok(decision) => {
                let moved = decision.event.is_some();
                self.commit(now, place, decision);
                moved
            }
            Err(_) => {
                if let Some(record) = self.rows.at_mut(place) {
                    record.deadlines.set(kind, None);
                }
                false
            }
        }
    }

    /// Frees a slot whose holder was not heard in time.
    fn lapse(&mut self, now: Timestamp, place: Place) {
        let Some(record) = self.rows.at(place) else { return };
        let (id, lane) = (record.id(), record.task.lane.clone());
        let slot = self.lanes.get(&lane).and_then(|lane| lane.slot(id));
        if let Some(fence) = slot.filter(|slot| slot.lease <= now).map(|slot| slot.fence) {
            self.release(id, fence);
        }
    }

    /// Ends the retention of tasks, before its time or at it; returns how many moved.
    pub fn expire(&mut self, now: Timestamp, ids: &[TaskId]) -> u32 {
        let mut n_moved = 0;
        for id in ids {
            if let Some(place) = self.rows.place(*id) {
                n_moved += u32::from(self.pass(now, place, Kind::Retention));
                self.arm(place);
            }
        }
        n_moved
    }

    /// Forgets up to `limit` tombstones whose time is over and whose attempt holds no place any more;
    /// returns them [SWEEP-1].
    pub fn sweep(&mut self, now: Timestamp, limit: u32) -> Vec<TaskId> {
        let due = self.timers.tombstones.range(..(now, 0)).map(|(_, id)| *id);
        let due = due.filter(|id| self.may_go(*id)).take(limit as usize).collect();
        self.forget(due)
    }

    /// Whether nothing refers to a task any more: an executor that goes on keeps its place by it.
    fn may_go(&self, id: TaskId) -> bool {
        let Some(record) = self.rows.find(id) else { return false };
        record.state == State::Expired && !self.holds_place(record)
    }

    /// Forgets tombstones whatever their time, but for those whose attempt still holds its place;
    /// returns them.
    pub fn forget(&mut self, ids: Vec<TaskId>) -> Vec<TaskId> {
        let ids: Vec<_> = ids.into_iter().filter(|id| self.may_go(*id)).collect();
        for id in &ids {
            if let Some(place) = self.rows.place(*id) {
                self.disarm(place);
            }
            if let Some(record) = self.rows.remove(*id) {
                self.timers.unbury(&record);
                self.forget_key(&record);
                self.effects.push(super::Effect::Forgotten(*id));
            }
        }
        ids
    }

    /// Lets attempts that outlived a restart speak first, and peers come back [DUR-3, TIME-6].
    ///
    /// Each has its lease extended to `now + grace`; returns the rows whose attempts may still run.
    pub fn reattach(&mut self, now: Timestamp, grace: Duration) -> Vec<TaskRecord> {
        let until = now + grace;
        self.renew_places(until);
        self.renew_waits(now, until);
        let leased = self.rows.unordered().filter(|(_, record)| record.state.is_leased());
        let mut leased: Vec<_> = leased.map(|(place, record)| (record.id(), place)).collect();
        leased.sort_unstable();
        for (_, place) in &leased {
            let Some(record) = self.rows.at_mut(*place) else { continue };
            record.deadlines.set(Kind::Lease, Some(until));
            for kind in [Kind::Accept, Kind::Run, Kind::Grace, Kind::Input] {
                let at = record.deadlines.get(kind);
                record.deadlines.set(kind, at.map(|at| heard_before(at, now, grace)));
            }
            self.arm(*place);
        }
        leased.iter().filter_map(|(_, place)| self.rows.at(*place).cloned()).collect()
    }

    /// Holds every place that is taken, whatever became of its task: its executor may be there still.
    fn renew_places(&mut self, until: Timestamp) {
        let mut holders = Vec::new();
        for slot in self.lanes.values_mut().flat_map(super::lanes::Lane::slots_mut) {
            slot.lease = until;
            holders.push(slot.task);
        }
        for id in holders {
            if let Some(place) = self.rows.place(id) {
                self.arm(place);
            }
        }
    }

    /// A peer cannot come while no server runs: a ready limit that passed meanwhile ends later.
    fn renew_waits(&mut self, now: Timestamp, until: Timestamp) {
        let is_over =
            |record: &TaskRecord| record.deadlines.get(Kind::Ready).is_some_and(|at| at <= now);
        let over: Vec<_> = self
            .rows
            .unordered()
            .filter(|(_, record)| is_over(record))
            .map(|(place, _)| place)
            .collect();
        for place in over {
            if let Some(record) = self.rows.at_mut(place) {
                record.deadlines.set(Kind::Ready, Some(until));
            }
            self.arm(place);
        }
    }
}
