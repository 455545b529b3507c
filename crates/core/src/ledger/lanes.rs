//! One lane: its order, who waits, and its places.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::ids::{Fence, LaneId, TaskId, WorkerId};
use crate::lane::Config;
use crate::lifecycle::State;
use crate::slot::Slot;
use crate::task::{TaskRecord, WaitReason};
use crate::time::Timestamp;
use crate::worker;

use super::rows::Place;

/// The bounds of what a full lane tells its caller to wait.
const MIN_RETRY: Duration = Duration::from_millis(100);
const MAX_RETRY: Duration = Duration::from_secs(30);
const UNKNOWN_RETRY: Duration = Duration::from_secs(1);

/// Up to this length a place in the queue is counted exactly; beyond it, by its priority's bucket.
const EXACT_RANK: usize = 1024;

#[derive(Clone, Debug)]
pub(super) struct Lane {
    name: LaneId,
    pub(super) config: Config,
    pub(super) held: Option<WaitReason>,
    queue: BTreeSet<(Reverse<i8>, u64, Place)>,
    counts: BTreeMap<Reverse<i8>, u32>,
    waiting: BTreeSet<(u64, Place)>,
    slots: BTreeMap<TaskId, (u32, Slot)>,
    free: BTreeSet<u32>,
    n_places: u32,
    workers: Vec<WorkerId>,
    /// A moving average of how long its tasks held a place.
    pace: Option<Duration>,
}

impl Lane {
    pub(super) fn new(name: LaneId) -> Self {
        Self {
            name,
            config: Config::new(1, 0),
            held: None,
            queue: BTreeSet::new(),
            counts: BTreeMap::new(),
            waiting: BTreeSet::new(),
            slots: BTreeMap::new(),
            free: BTreeSet::new(),
            n_places: 0,
            workers: Vec::new(),
            pace: None,
        }
    }

    pub(super) fn configure(&mut self, config: Config) {
        self.config = config;
    }

    pub(super) fn enter(&mut self, record: &TaskRecord, place: Place) {
        match record.state {
            State::Queued => {
                let rank = Reverse(record.task.priority);
                if self.queue.insert((rank, record.seq, place)) {
                    *self.counts.entry(rank).or_default() += 1;
                }
            }
            State::Waiting => {
                self.waiting.insert((record.seq, place));
            }
            State::Scheduled
            | State::Running
            | State::InputRequired
            | State::CancelRequested
            | State::Cancelling
            | State::Succeeded
            | State::Failed
            | State::Cancelled
            | State::TimedOut
            | State::Expired => {}
        }
    }

    /// Takes rows into an empty lane, and makes its order in one go.
    pub(super) fn enter_all<'r>(&mut self, rows: impl Iterator<Item = (&'r TaskRecord, Place)>) {
        let (mut queue, mut waiting) = (Vec::new(), Vec::new());
        for (record, place) in rows {
            match record.state {
                State::Queued => queue.push((Reverse(record.task.priority), record.seq, place)),
                State::Waiting => waiting.push((record.seq, place)),
                State::Scheduled
                | State::Running
                | State::InputRequired
                | State::CancelRequested
                | State::Cancelling
                | State::Succeeded
                | State::Failed
                | State::Cancelled
                | State::TimedOut
                | State::Expired => {}
            }
        }
        for (rank, _, _) in &queue {
            *self.counts.entry(*rank).or_default() += 1;
        }
        self.queue = queue.into_iter().collect();
        self.waiting = waiting.into_iter().collect();
    }

    pub(super) fn leave(&mut self, record: &TaskRecord, place: Place) {
        let rank = Reverse(record.task.priority);
        if self.queue.remove(&(rank, record.seq, place))
            && let Some(count) = self.counts.get_mut(&rank)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&rank);
            }
        }
        self.waiting.remove(&(record.seq, place));
    }

    pub(super) fn n_queued(&self) -> u32 {
        u32::try_from(self.queue.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn n_waiting(&self) -> u32 {
        u32::try_from(self.waiting.len()).unwrap_or(u32::MAX)
    }

    /// Tells whether no task stands in it and none has a place.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.waiting.is_empty() && self.slots.is_empty()
    }

    pub(super) fn n_free(&self) -> u32 {
        let taken = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.config.concurrency.saturating_sub(taken)
    }

    /// How many tasks stand in the lane, and whether one more may [QUEUE-2, QUEUE-3].
    pub(super) fn depth(&self) -> (u32, bool) {
        let depth = self.n_queued().saturating_add(self.n_waiting());
        let at_once = if self.held.is_some() { 0 } else { self.n_free() };
        (depth, depth < self.config.queue_limit.saturating_add(at_once))
    }

    pub(super) fn queued(&self) -> impl Iterator<Item = Place> {
        self.queue.iter().map(|(_, _, place)| *place)
    }

    pub(super) fn waiters(&self) -> impl Iterator<Item = Place> {
        self.waiting.iter().map(|(_, place)| *place)
    }

    /// How many queued tasks run before one that has just arrived: all of its priority and above.
    pub(super) fn arrival_position(&self, record: &TaskRecord) -> u32 {
        let rank = Reverse(record.task.priority);
        let before: u32 = self.counts.range(..=rank).map(|(_, count)| *count).sum();
        before.saturating_sub(u32::from(record.state == State::Queued))
    }

    /// How many queued tasks run before this one.
    pub(super) fn position(&self, record: &TaskRecord) -> u32 {
        let rank = Reverse(record.task.priority);
        let above: u32 = self.counts.range(..rank).map(|(_, count)| *count).sum();
        let bucket = self.counts.get(&rank).copied().unwrap_or(0);
        let in_bucket = if bucket as usize > EXACT_RANK {
            self.bucket_place(rank, record.seq, bucket)
        } else {
            self.queue.range((rank, 0, 0)..(rank, record.seq, 0)).count()
        };
        above.saturating_add(u32::try_from(in_bucket).unwrap_or(u32::MAX))
    }

    /// In a long bucket only the two ends are counted exactly; a place between is the bucket's length.
    fn bucket_place(&self, rank: Reverse<i8>, seq: u64, bucket: u32) -> usize {
        let ahead = self.queue.range((rank, 0, 0)..(rank, seq, 0)).take(EXACT_RANK).count();
        if ahead < EXACT_RANK {
            return ahead;
        }
        let behind = self.queue.range((rank, seq, 0)..(rank, u64::MAX, Place::MAX));
        let behind = behind.take(EXACT_RANK).count();
        (bucket as usize).saturating_sub(if behind < EXACT_RANK { behind } else { 1 })
    }

    pub(super) fn delay(&self, position: u32) -> Option<Duration> {
        let pace = self.pace?;
        if self.n_free() > position && self.held.is_none() {
            return Some(Duration::ZERO);
        }
        let turns = position / self.config.concurrency.max(1) + 1;
        Some(pace.saturating_mul(turns))
    }

    pub(super) fn retry_after(&self) -> Duration {
        let pace = self.pace.map(|pace| pace / self.config.concurrency.max(1));
        pace.unwrap_or(UNKNOWN_RETRY).clamp(MIN_RETRY, MAX_RETRY)
    }

    pub(super) fn learn(&mut self, held: Duration) {
        self.pace = Some(self.pace.map_or(held, |pace| (pace * 7 + held) / 8));
    }

    /// Takes the lowest free place.
    pub(super) fn take(
        &mut self,
        now: Timestamp,
        task: TaskId,
        fence: Fence,
        lease: Timestamp,
    ) -> Slot {
        let place = self.free.pop_first().unwrap_or_else(|| {
            self.n_places += 1;
            self.n_places - 1
        });
        let worker = self.worker(place);
        let slot = Slot { lane: self.name.clone(), task, fence, worker, lease, heard: now };
        self.slots.insert(task, (place, slot.clone()));
        slot
    }

    /// Takes the place that a slot's worker is named after again, after a restart.
    pub(super) fn retake(&mut self, slot: Slot) {
        let number = slot.worker.as_str().rsplit('_').next().and_then(|n| n.parse::<u32>().ok());
        let place = number.map_or(self.n_places, |number| number.saturating_sub(1));
        self.free.extend(self.n_places..place);
        self.n_places = self.n_places.max(place + 1);
        self.free.remove(&place);
        self.slots.insert(slot.task, (place, slot));
    }

    /// Returns the name that the next taken place will have.
    pub(super) fn next_worker(&mut self) -> WorkerId {
        let place = self.free.first().copied().unwrap_or(self.n_places);
        self.worker(place)
    }

    fn worker(&mut self, place: u32) -> WorkerId {
        let known = u32::try_from(self.workers.len()).unwrap_or(u32::MAX);
        self.workers.extend((known..=place).map(|place| worker::name(&self.name, place)));
        let known = self.workers.get(place as usize).cloned();
        known.unwrap_or_else(|| worker::name(&self.name, place))
    }

    pub(super) fn free(&mut self, task: TaskId, fence: Fence) -> bool {
        if self.slots.get(&task).is_none_or(|(_, slot)| slot.fence != fence) {
            return false;
        }
        if let Some((place, _)) = self.slots.remove(&task) {
            self.free.insert(place);
        }
        true
    }

    pub(super) fn slot(&self, task: TaskId) -> Option<&Slot> {
        self.slots.get(&task).map(|(_, slot)| slot)
    }

    pub(super) fn slot_mut(&mut self, task: TaskId) -> Option<&mut Slot> {
        self.slots.get_mut(&task).map(|(_, slot)| slot)
    }

    pub(super) fn slots_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.slots.values_mut().map(|(_, slot)| slot)
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.values().map(|(_, slot)| slot)
    }
}
