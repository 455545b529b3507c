//! The ledger as one canonical value: the state of a model checker, the input of a rebuild, the
//! oracle of property tests.

use std::collections::BTreeMap;

use crate::ids::LaneId;
use crate::lane;
use crate::lifecycle::State;
use crate::slot::Slot;
use crate::task::{TaskRecord, WaitReason};

use super::Ledger;
use super::lanes::Lane;
use super::rows::{Place, Rows};
use super::submit::key_of;

/// Everything that decides what a ledger will do next, sorted.
///
/// A lane's pace is left out: it only colours estimates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// The next fence.
    pub next_fence: u64,
    /// The next place in the order of acceptance.
    pub next_seq: u64,
    /// The lanes by name, and why each is held.
    pub lanes: Vec<(LaneId, lane::Config, Option<WaitReason>)>,
    /// The tasks in the order of acceptance.
    pub rows: Vec<TaskRecord>,
    /// The places that are taken, by lane and task.
    pub slots: Vec<Slot>,
}

impl Ledger {
    /// Takes the canonical value.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut rows: Vec<_> = self.rows.iter().map(|(_, record)| record.clone()).collect();
        rows.sort_by_key(|record| record.seq);
        Snapshot {
            next_fence: self.next_fence,
            next_seq: self.next_seq,
            lanes: self
                .lanes
                .iter()
                .map(|(name, lane)| (name.clone(), lane.config.clone(), lane.held.clone()))
                .collect(),
            rows,
            slots: self.lanes.values().flat_map(|lane| lane.slots().cloned()).collect(),
        }
    }

    /// Rebuilds a ledger from its canonical value.
    #[must_use]
    pub fn restore(snapshot: Snapshot) -> Self {
        let mut ledger = Self::new(0);
        ledger.next_fence = snapshot.next_fence;
        ledger.next_seq = snapshot.next_seq;
        for (name, config, held) in snapshot.lanes {
            let lane = ledger.lane_mut(name);
            lane.configure(config);
            lane.held = held;
        }
        for slot in snapshot.slots {
            ledger.lane_mut(slot.lane.clone()).retake(slot);
        }
        ledger.take_rows(snapshot.rows);
        ledger
    }

    /// Takes the rows of a snapshot; a million of them in little more than the time they need to be
    /// looked at.
    fn take_rows(&mut self, rows: Vec<TaskRecord>) {
        self.rows = Rows::of(rows);
        let mut by_lane: BTreeMap<LaneId, Vec<Place>> = BTreeMap::new();
        for (place, record) in self.rows.unordered() {
            match by_lane.get_mut(&record.task.lane) {
                Some(places) => places.push(place),
                None => {
                    by_lane.insert(record.task.lane.clone(), vec![place]);
                }
            }
            if record.state == State::Expired {
                self.timers.bury(record);
            }
            if let Some(key) = key_of(record) {
                self.keys.insert(key, record.id());
            }
        }
        for (lane, places) in by_lane {
            let lane = self.lanes.entry(lane.clone()).or_insert_with(|| Lane::new(lane));
            let rows = places.iter().filter_map(|place| Some((self.rows.at(*place)?, *place)));
            lane.enter_all(rows);
        }
        self.arm_all();
    }

    /// Begins a new epoch: every fence from now on is above every fence before [LEASE-1].
    pub fn begin_epoch(&mut self) -> u32 {
        let epoch = (self.next_fence >> 32) + 1;
        self.next_fence = epoch << 32 | 1;
        u32::try_from(epoch).unwrap_or(u32::MAX)
    }
}
