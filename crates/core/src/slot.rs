//! The right to occupy one place of a lane's concurrency [QUEUE-6].

use crate::ids::{Fence, LaneId, TaskId, WorkerId};
use crate::time::Timestamp;

/// One occupied place. It is free only when the executor is gone or the lease lapsed, not when the
/// task's state ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The lane whose place it is.
    pub lane: LaneId,
    /// The task whose attempt holds it.
    pub task: TaskId,
    /// The attempt that holds it.
    pub fence: Fence,
    /// The place's name within the lane.
    pub worker: WorkerId,
    /// When the holder must have been heard again.
    pub lease: Timestamp,
    /// When the holder was last heard of, to the second.
    pub heard: Timestamp,
}
