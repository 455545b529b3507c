//! What a filter may use, and what is said when it wants more.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What one run of a filter may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How long it may take, from the call to the last output; a program that is slow to start included.
    pub wall: Duration,
    /// How much time of a processor it may take; counted in whole seconds, and on Unix alone.
    pub cpu: Duration,
    /// How much memory it may take beside the parsed body, in bytes; on Unix alone.
    pub memory: u64,
    /// How long all outputs together may be, in bytes.
    pub output_bytes: usize,
    /// How many outputs there may be.
    pub outputs: usize,
    /// How deep an output may nest.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(5),
            cpu: Duration::from_secs(5),
            memory: 256 << 20,
            output_bytes: 32 << 20,
            outputs: 100_000,
            depth: 512,
        }
    }
}

/// Which limit a filter met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitKind {
    /// [`Limits::wall`], in milliseconds.
    Time,
    /// [`Limits::cpu`], in milliseconds.
    Cpu,
    /// [`Limits::memory`], in bytes.
    Memory,
    /// How deep definitions may call each other, or [`Limits::depth`].
    Depth,
    /// [`Limits::output_bytes`].
    Output,
    /// [`Limits::outputs`].
    Outputs,
}

impl LimitKind {
    /// Returns its name, as answers have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Depth => "depth",
            Self::Output => "output",
            Self::Outputs => "outputs",
        }
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Limits {
    /// Returns the limit of a kind, in its unit.
    #[must_use]
    pub fn of(&self, kind: LimitKind) -> u64 {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        match kind {
            LimitKind::Time => millis(self.wall),
            LimitKind::Cpu => millis(self.cpu),
            LimitKind::Memory => self.memory,
            LimitKind::Depth => self.depth as u64,
            LimitKind::Output => self.output_bytes as u64,
            LimitKind::Outputs => self.outputs as u64,
        }
    }
}

/// Why a run is stopped from inside, past any `try`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Memory,
    Depth,
}

impl Stop {
    /// Unwinds to where the run began.
    pub(super) fn now(self) -> ! {
        std::panic::resume_unwind(Box::new(self))
    }

    pub(super) const fn kind(self) -> LimitKind {
        match self {
            Self::Memory => LimitKind::Memory,
            Self::Depth => LimitKind::Depth,
        }
    }
}
