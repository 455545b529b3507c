//! Lanes: named queues with a concurrency and a length cap [QUEUE-1, QUEUE-7].

use std::time::Duration;

use crate::ids::LaneId;

/// What a lane may do; a task's own wishes are checked against it at submit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// How many attempts run at once.
    pub concurrency: u32,
    /// How many tasks may wait or stand in the queue [QUEUE-3].
    pub queue_limit: u32,
    /// The longest run a task may ask for.
    pub max_runtime: Option<Duration>,
    /// The most thousandths of a processor a task may ask for.
    pub cpu_milli: Option<u32>,
    /// The most memory a task may ask for, in MiB.
    pub memory_mb: Option<u64>,
    /// The most scratch space a task may ask for, in MiB.
    pub scratch_mb: Option<u64>,
}

impl Config {
    /// Makes a lane with the two caps every lane has.
    #[must_use]
    pub const fn new(concurrency: u32, queue_limit: u32) -> Self {
        Self {
            concurrency,
            queue_limit,
            max_runtime: None,
            cpu_milli: None,
            memory_mb: None,
            scratch_mb: None,
        }
    }
}

/// Returns the lanes that the `raincheck` binary has without a word in the configuration.
#[must_use]
pub fn built_in() -> Vec<(LaneId, Config)> {
    let lane = |name: &str, concurrency| (LaneId::from(name), Config::new(concurrency, 1000));
    vec![lane("cpu_small", 4), lane("cpu_standard", 2), lane("cpu_heavy", 1)]
}
