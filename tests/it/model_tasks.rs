//! The tasks of the model: one that can be cancelled, one that cannot, one that may run again.

use std::time::Duration;

use raincheck_core::error::Kind;
use raincheck_core::ids::{LaneId, TaskId, ToolName};
use raincheck_core::retry;
use raincheck_core::scope::Scope;
use raincheck_core::task::{Limits, Resources, Task};
use raincheck_core::time::Timestamp;

pub(crate) const N_TASKS: usize = 3;
pub(crate) const LANE: &str = "one";

/// The task that can be cancelled.
pub(crate) const PLAIN: usize = 0;

/// The task that cannot be cancelled once it runs.
pub(crate) const STUBBORN: usize = 1;

/// The task that runs again when its worker is lost, twice in all.
pub(crate) const REPEATABLE: usize = 2;

pub(crate) fn id(task: usize) -> TaskId {
    let number = u8::try_from(task).expect("few tasks");
    TaskId::from_parts(1_700_000_000_000, [number; 10])
}

pub(crate) fn tasks(now: Timestamp) -> Vec<Task> {
    (0..N_TASKS).map(|number| task(number, now)).collect()
}

fn task(number: usize, now: Timestamp) -> Task {
    let is_repeatable = number == REPEATABLE;
    Task {
        id: id(number),
        scope: Scope::local(),
        tool: ToolName::from("tool"),
        lane: LaneId::from(LANE),
        priority: 0,
        tags: Vec::new(),
        key: None,
        inputs_hash: 0,
        limits: Limits::default(),
        resources: Resources::default(),
        supports_cancel: number != STUBBORN,
        is_idempotent: is_repeatable,
        retry: retry::Policy {
            max_attempts: if is_repeatable { 2 } else { 1 },
            backoff: Duration::from_secs(1),
            on: if is_repeatable { vec![Kind::WorkerLost] } else { Vec::new() },
        },
        trace: None,
        submitted_at: now,
    }
}
