//! The states of a task and the one table that moves between them [STATE-1].

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the contract's word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Finds the value a word stands for.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

words! {
    /// Where a task stands. The set is closed: surfaces spell it from the dialect tables.
    State {
        /// Accepted, but what it needs is not ready (a peer, or the pause before another attempt).
        Waiting = "waiting",
        /// In its lane's order.
        Queued = "queued",
        /// Leased, not known to have started.
        Scheduled = "scheduled",
        /// Known to have started.
        Running = "running",
        /// Running, and waiting for an answer of the caller.
        InputRequired = "input_required",
        /// Asked to end; the executor has not committed to end it.
        CancelRequested = "cancel_requested",
        /// The executor has committed to end it.
        Cancelling = "cancelling",
        /// Ended with a result.
        Succeeded = "succeeded",
        /// Ended with an error.
        Failed = "failed",
        /// Ended because it was asked to.
        Cancelled = "cancelled",
        /// Ended by its run deadline.
        TimedOut = "timed_out",
        /// It was there; its retention is over.
        Expired = "expired",
    }
}

words! {
    /// What can happen to a task.
    Event {
        /// What it needs went away.
        Hold = "hold",
        /// What it needs is back.
        Resume = "resume",
        /// It was leased to a worker.
        Lease = "lease",
        /// The executor took it on; the run deadline begins.
        Accept = "accept",
        /// It is known to run.
        Start = "start",
        /// It surely never reached its executor.
        Undeliver = "undeliver",
        /// It asks its caller for input.
        AskInput = "ask_input",
        /// The input came, all that was asked for.
        GiveInput = "give_input",
        /// A part of the input came.
        GivePart = "give_part",
        /// Somebody asked to end it.
        RequestCancel = "request_cancel",
        /// The executor committed to end it.
        CommitCancel = "commit_cancel",
        /// The executor ended with a result.
        Succeed = "succeed",
        /// The executor ended with an error.
        Fail = "fail",
        /// The executor ended because it was asked to.
        Cancel = "cancel",
        /// The attempt failed and the policy grants another.
        Retry = "retry",
        /// The ready limit is used up.
        ReadyDue = "ready_due",
        /// The time in the queue is over.
        QueueTimeoutDue = "queue_timeout_due",
        /// Nobody accepted it in time.
        AcceptDue = "accept_due",
        /// The run deadline passed.
        RunTimeoutDue = "run_timeout_due",
        /// Nothing was heard of the attempt for the length of its lease.
        LeaseDue = "lease_due",
        /// The cancel grace is over.
        GraceDue = "grace_due",
        /// The caller gave no input in time.
        InputDue = "input_due",
        /// Retention is over.
        RetentionDue = "retention_due",
    }
}

use Event as E;
use State as S;

/// Every transition there is. A pair that is not here is refused; a pair that leads back to its own
/// state is accepted and moves nothing else.
pub const TABLE: &[(State, Event, State)] = &[
    // Accepted, not ready.
    (S::Waiting, E::Resume, S::Queued),
    (S::Waiting, E::Hold, S::Waiting),
    (S::Waiting, E::RequestCancel, S::Cancelled),
    (S::Waiting, E::ReadyDue, S::Failed),
    (S::Waiting, E::QueueTimeoutDue, S::Failed),
    // In line.
    (S::Queued, E::Hold, S::Waiting),
    (S::Queued, E::Resume, S::Queued),
    (S::Queued, E::Lease, S::Scheduled),
    (S::Queued, E::RequestCancel, S::Cancelled),
    (S::Queued, E::QueueTimeoutDue, S::Failed),
    // Leased.
    (S::Scheduled, E::Accept, S::Scheduled),
    (S::Scheduled, E::Start, S::Running),
    (S::Scheduled, E::Undeliver, S::Queued),
    (S::Scheduled, E::RequestCancel, S::CancelRequested),
    (S::Scheduled, E::Succeed, S::Succeeded),
    (S::Scheduled, E::Fail, S::Failed),
    (S::Scheduled, E::Cancel, S::Cancelled),
    (S::Scheduled, E::Retry, S::Waiting),
    (S::Scheduled, E::AcceptDue, S::Failed),
    (S::Scheduled, E::RunTimeoutDue, S::TimedOut),
    (S::Scheduled, E::LeaseDue, S::Failed),
    // Under way.
    (S::Running, E::Start, S::Running),
    (S::Running, E::AskInput, S::InputRequired),
    (S::Running, E::RequestCancel, S::CancelRequested),
    (S::Running, E::Succeed, S::Succeeded),
    (S::Running, E::Fail, S::Failed),
    (S::Running, E::Cancel, S::Cancelled),
    (S::Running, E::Retry, S::Waiting),
    (S::Running, E::RunTimeoutDue, S::TimedOut),
    (S::Running, E::LeaseDue, S::Failed),
    (S::InputRequired, E::Start, S::InputRequired),
    (S::InputRequired, E::AskInput, S::InputRequired),
    (S::InputRequired, E::GiveInput, S::Running),
    (S::InputRequired, E::GivePart, S::InputRequired),
    (S::InputRequired, E::RequestCancel, S::CancelRequested),
    (S::InputRequired, E::Succeed, S::Succeeded),
    (S::InputRequired, E::Fail, S::Failed),
    (S::InputRequired, E::Cancel, S::Cancelled),
    (S::InputRequired, E::Retry, S::Waiting),
    (S::InputRequired, E::InputDue, S::Failed),
    (S::InputRequired, E::RunTimeoutDue, S::TimedOut),
    (S::InputRequired, E::LeaseDue, S::Failed),
    // Asked to end: what the executor produced before it saw the request still wins.
    (S::CancelRequested, E::Accept, S::CancelRequested),
    (S::CancelRequested, E::Start, S::CancelRequested),
    (S::CancelRequested, E::Undeliver, S::Cancelled),
    (S::CancelRequested, E::AskInput, S::CancelRequested),
    (S::CancelRequested, E::GiveInput, S::CancelRequested),
    (S::CancelRequested, E::RequestCancel, S::CancelRequested),
    (S::CancelRequested, E::CommitCancel, S::Cancelling),
    (S::CancelRequested, E::Succeed, S::Succeeded),
    (S::CancelRequested, E::Fail, S::Failed),
    (S::CancelRequested, E::Cancel, S::Cancelled),
    (S::CancelRequested, E::AcceptDue, S::Cancelled),
    (S::CancelRequested, E::RunTimeoutDue, S::TimedOut),
    (S::CancelRequested, E::LeaseDue, S::Failed),
    (S::CancelRequested, E::GraceDue, S::Cancelled),
    (S::CancelRequested, E::InputDue, S::CancelRequested),
    // Committed to end: only one end is left.
    (S::Cancelling, E::RequestCancel, S::Cancelling),
    (S::Cancelling, E::CommitCancel, S::Cancelling),
    (S::Cancelling, E::Succeed, S::Cancelled),
    (S::Cancelling, E::Fail, S::Cancelled),
    (S::Cancelling, E::Cancel, S::Cancelled),
    (S::Cancelling, E::RunTimeoutDue, S::Cancelled),
    (S::Cancelling, E::LeaseDue, S::Cancelled),
    (S::Cancelling, E::GraceDue, S::Cancelled),
    // Ended: only retention is left [STATE-2].
    (S::Succeeded, E::RetentionDue, S::Expired),
    (S::Failed, E::RetentionDue, S::Expired),
    (S::Cancelled, E::RetentionDue, S::Expired),
    (S::TimedOut, E::RetentionDue, S::Expired),
];

const N_STATES: usize = State::ALL.len();
const N_EVENTS: usize = Event::ALL.len();

/// `TABLE` folded at compile time; two rows for one pair do not compile.
#[expect(clippy::indexing_slicing, reason = "runs at compile time only")]
const MATRIX: [[Option<State>; N_EVENTS]; N_STATES] = {
    let mut matrix = [[None; N_EVENTS]; N_STATES];
    let mut i = 0;
    while i < TABLE.len() {
        let (from, on, to) = TABLE[i];
        assert!(matrix[from as usize][on as usize].is_none(), "two rows for one (state, event)");
        matrix[from as usize][on as usize] = Some(to);
        i += 1;
    }
    matrix
};

/// An event that has no place in a state [STATE-3].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {from} task refuses {on}")]
pub struct Refused {
    /// The state that refused.
    pub from: State,
    /// The event it refused.
    pub on: Event,
}

/// Looks up where `on` leads from `from`. The only reader of the table.
///
/// # Errors
/// `Refused` when the table has no such row.
pub const fn next(from: State, on: Event) -> Result<State, Refused> {
    #[expect(clippy::indexing_slicing, reason = "the matrix has a cell for every pair")]
    match MATRIX[from as usize][on as usize] {
        Some(to) => Ok(to),
        None => Err(Refused { from, on }),
    }
}

impl State {
    /// Tells whether the task has ended: only `expired` may follow.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        next(self, Event::RetentionDue).is_ok() || matches!(self, Self::Expired)
    }

    /// Tells whether an attempt holds the task.
    #[must_use]
    pub const fn is_leased(self) -> bool {
        next(self, Event::LeaseDue).is_ok()
    }
}

#[cfg(test)]
mod tests;
