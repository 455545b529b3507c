//! Why a program has to end.

use std::time::Duration;

use raincheck_runtime::StopReason;
use serde::{Deserialize, Serialize};

/// The request to end a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Halt {
    pub(crate) reason: Reason,
    pub(crate) grace: Duration,
}

/// Why a program has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    /// Somebody asked to end the task.
    Cancelled,
    /// Its run deadline passed.
    TimedOut,
    /// The attempt is not the task's any more.
    Lost,
    /// The server ended, or is about to.
    ServerGone,
    /// The supervisor itself was told to end.
    Told,
}

impl From<StopReason> for Reason {
    fn from(stop: StopReason) -> Self {
        match stop {
            StopReason::Cancelled => Self::Cancelled,
            StopReason::TimedOut => Self::TimedOut,
            StopReason::Lost => Self::Lost,
            StopReason::Shutdown => Self::ServerGone,
        }
    }
}

impl Reason {
    /// Returns what a server calls it.
    pub(crate) const fn stop(self) -> Option<StopReason> {
        match self {
            Self::Cancelled => Some(StopReason::Cancelled),
            Self::TimedOut => Some(StopReason::TimedOut),
            Self::Lost => Some(StopReason::Lost),
            Self::ServerGone => Some(StopReason::Shutdown),
            Self::Told => None,
        }
    }
}
