//! Why an attempt has to stop.

/// Why an attempt has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Somebody asked to end the task.
    Cancelled,
    /// Its run deadline passed; the task has ended already.
    TimedOut,
    /// The attempt is not the task's any more.
    Lost,
    /// The serving process ends.
    Shutdown,
}
