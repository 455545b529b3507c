//! The ledger as one canonical value: the state of a model checker, the input of a rebuild, the
//! oracle of property tests.

use crate::ids::LaneId;
use crate::lane;
use crate::slot::Slot;
use crate::task::{Row, WaitReason};

use super::Ledger;

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
    pub rows: Vec<Row>,
    /// The places that are taken, by lane and task.
    pub slots: Vec<Slot>,
}

impl Ledger {
    /// Takes the canonical value.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut rows: Vec<_> = self.rows.iter().map(|(_, row)| row.clone()).collect();
        rows.sort_by_key(|row| row.seq);
        Snapshot {
            next_fence: self.next_fence,
            next_seq: self.next_seq,
            lanes: self
                .lanes
                .iter()
                .map(|(name, lane)| (name.clone(), lane.config.clone(), lane.held))
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
        for row in snapshot.rows {
            if row.state == crate::lifecycle::State::Expired {
                ledger.timers.bury(&row);
            } else {
                ledger.remember_key(&row);
            }
            let place = ledger.rows.insert(row.clone());
            ledger.lane_mut(row.task.lane.clone()).enter(&row, place);
            ledger.arm(place);
        }
        ledger
    }

    /// Begins a new epoch: every fence from now on is above every fence before [LEASE-1].
    pub fn begin_epoch(&mut self) -> u32 {
        let epoch = (self.next_fence >> 32) + 1;
        self.next_fence = epoch << 32 | 1;
        u32::try_from(epoch).unwrap_or(u32::MAX)
    }
}
