//! Limits that count only time in which the engine can run [LEASE-8].

use std::collections::BTreeSet;
use std::time::Duration;

use crate::deadline::Kind;

use super::rows::Place;
use super::{Effect, Ledger};

/// The deadlines that are moved when the engine could not run: whoever has to act before they pass
/// could not be heard meanwhile. All others are instants of the wall clock.
const EXTENDED: [Kind; 6] =
    [Kind::Ready, Kind::Accept, Kind::Run, Kind::Lease, Kind::Grace, Kind::Input];

impl Ledger {
    /// Moves the limits of attempts, of waits for peers and of occupied slots, and returns how many
    /// tasks have one.
    pub fn extend(&mut self, by: Duration) -> u32 {
        let mut places: BTreeSet<Place> = BTreeSet::new();
        for lane in self.lanes.values_mut() {
            places.extend(lane.waiters());
            for slot in lane.slots_mut() {
                slot.lease = slot.lease + by;
                // A leased task holds a slot, so that this finds every attempt.
                places.extend(self.rows.place(slot.task));
            }
        }
        let mut n_moved = 0;
        for place in places {
            n_moved += u32::from(self.extend_one(place, by));
        }
        n_moved
    }

    fn extend_one(&mut self, place: Place, by: Duration) -> bool {
        let Some(record) = self.rows.at_mut(place) else { return false };
        let mut is_moved = false;
        for kind in EXTENDED {
            if let Some(at) = record.deadlines.get(kind) {
                record.deadlines.set(kind, Some(at + by));
                is_moved = true;
            }
        }
        if is_moved {
            let record = record.clone();
            self.effects.push(Effect::Moved {
                record,
                event: None,
                outcome: None,
                retried: None,
                late: None,
                input: None,
            });
        }
        self.arm(place);
        is_moved
    }
}
