//! What is to be said of a place of a lane, taken or not [QUEUE-7].

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ids::{LaneId, TaskId, WorkerId};
use crate::slot::Slot;
use crate::time::Timestamp;

/// One place of a lane, and who holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// Its name, the same as on the rows of its tasks.
    pub id: WorkerId,
    /// The lane whose place it is.
    pub lane: LaneId,
    /// Whether it has a task.
    pub state: Activity,
    /// When the attempt that holds it was last heard of, to the second.
    pub last_heartbeat: Option<Timestamp>,
    /// The task that it has.
    pub current_task: Option<TaskId>,
}

/// Whether a worker has a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// It waits for one.
    Idle,
    /// It has one, or what is left of one that ended.
    Busy,
}

impl From<&Slot> for Worker {
    fn from(slot: &Slot) -> Self {
        Self {
            id: slot.worker.clone(),
            lane: slot.lane.clone(),
            state: Activity::Busy,
            last_heartbeat: Some(slot.heard),
            current_task: Some(slot.task),
        }
    }
}

impl Worker {
    fn idle(lane: &LaneId, id: WorkerId) -> Self {
        let (lane, state) = (lane.clone(), Activity::Idle);
        Self { id, lane, state, last_heartbeat: None, current_task: None }
    }
}

/// Names a place of a lane, counted from 0.
#[must_use]
pub fn name(lane: &LaneId, place: u32) -> WorkerId {
    format!("wrk_{lane}_{:02}", u64::from(place) + 1).into()
}

/// Lists the workers of a lane: those of `busy` that are its own, and the places that nobody holds.
///
/// A lane whose concurrency was lowered has more of them until what runs has ended.
#[must_use]
pub fn of_lane(lane: &LaneId, concurrency: u32, busy: &[Worker]) -> Vec<Worker> {
    let own = busy.iter().filter(|worker| worker.lane == *lane);
    let mut busy: BTreeMap<_, _> = own.map(|worker| (&worker.id, worker)).collect();
    let places = (0..concurrency).map(|place| {
        let id = name(lane, place);
        busy.remove(&id).cloned().unwrap_or_else(|| Worker::idle(lane, id))
    });
    let mut all: Vec<_> = places.collect();
    all.extend(busy.into_values().cloned());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Fence;

    // [QUEUE-7]
    #[test]
    fn every_place_of_a_lane_is_a_worker_and_taken_ones_beyond_it_are_shown_too() {
        let heard = Timestamp::from_millis(5);
        let slot = |lane: &str, place| Slot {
            lane: lane.into(),
            task: TaskId::from_parts(u64::from(place), [0; 10]),
            fence: Fence::NONE,
            worker: name(&lane.into(), place),
            lease: heard,
            heard,
        };
        let slots = [slot("a", 1), slot("a", 12), slot("b", 0)];
        let busy: Vec<_> = slots.iter().map(Worker::from).collect();
        let workers = of_lane(&"a".into(), 3, &busy);
        let shown: Vec<_> =
            workers.iter().map(|worker| (worker.id.as_str(), worker.state)).collect();
        let (idle, busy) = (Activity::Idle, Activity::Busy);
        let all = [("wrk_a_01", idle), ("wrk_a_02", busy), ("wrk_a_03", idle), ("wrk_a_13", busy)];
        assert_eq!(shown, all);
        assert_eq!(
            (workers[1].current_task, workers[1].last_heartbeat),
            (Some(slots[0].task), Some(heard))
        );
    }
}
