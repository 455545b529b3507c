//! The request to end a task early [CANCEL-1..6].

use std::sync::Arc;

use crate::time::Timestamp;

/// A cancel that was asked for and stays on the record, whatever the end [CANCEL-3].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// When it was first asked for.
    pub at: Timestamp,
    /// Why, in the caller's words.
    pub reason: Option<Arc<str>>,
}

/// What becomes of a call without a handle when its caller goes away [CANCEL-7].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnDisconnect {
    /// The task is cancelled.
    Cancel,
    /// The task goes on.
    Detach,
}

/// What becomes of a running attempt when the serving process ends [CANCEL-8].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnExit {
    /// It goes on where a supervisor can hold it, and is reattached by the next server.
    Detach,
    /// It is stopped.
    Stop,
}
