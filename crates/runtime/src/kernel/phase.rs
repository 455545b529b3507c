//! How far the engine is, and what may be asked of it meanwhile.

use tokio::sync::{Notify, watch};

use raincheck_core::error::{Error, Kind};
use raincheck_core::store;

/// How far the engine is.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// The store is not open yet.
    Opening,
    /// Requests are taken.
    Open,
    /// No new work is taken; what is under way is put away.
    Closing { was_open: bool },
    /// Nothing runs any more. What the store has can still be read, if it was ever open.
    Closed { was_open: bool },
    /// The store could not be opened.
    Failed(store::Error),
}

/// What a request needs the engine for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// To run something new.
    Work,
    /// To change what is there.
    Command,
    /// To look. It says nothing about work that it cannot look, so that it can for as long as
    /// possible: a call under way at the end of the server gets its handle [LEASE-9].
    Read,
}

/// The phase, and those who wait for another.
#[derive(Debug)]
pub(crate) struct Phases {
    now: watch::Sender<Phase>,
    /// Told when a request finds a store that could not be opened.
    pub(crate) wanted: Notify,
}

impl Phases {
    pub(crate) fn new() -> Self {
        Self { now: watch::Sender::new(Phase::Opening), wanted: Notify::new() }
    }

    pub(crate) fn get(&self) -> Phase {
        self.now.borrow().clone()
    }

    pub(crate) fn set(&self, phase: Phase) {
        self.now.send_replace(phase);
    }

    /// Takes no new work from now on.
    pub(crate) fn close(&self) {
        self.now.send_modify(|phase| *phase = Phase::Closing { was_open: phase.was_open() });
    }

    /// Says that nothing runs any more.
    pub(crate) fn end(&self) {
        self.now.send_modify(|phase| *phase = Phase::Closed { was_open: phase.was_open() });
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(*self.now.borrow(), Phase::Open)
    }

    /// Tells whether the end has begun.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(*self.now.borrow(), Phase::Closing { .. } | Phase::Closed { .. })
    }

    /// Tells whether nothing runs any more.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(*self.now.borrow(), Phase::Closed { .. })
    }

    /// Waits until the end has begun.
    pub(crate) async fn closing(&self) {
        let over = |phase: &Phase| matches!(phase, Phase::Closing { .. } | Phase::Closed { .. });
        // The sender is a part of this value.
        let _ = self.now.subscribe().wait_for(over).await;
    }

    /// Waits until the store is open. One that could not be opened is tried again: what was in the
    /// way, such as a full disk or another owner, may be gone.
    pub(crate) async fn admit(&self, need: Need) -> Result<(), Error> {
        if self.is_open() {
            return Ok(());
        }
        let mut phases = self.now.subscribe();
        if matches!(*phases.borrow_and_update(), Phase::Failed(_)) {
            self.wanted.notify_one();
            // The sender is a part of this value.
            let _ = phases.changed().await;
        }
        let phase = phases.wait_for(|phase| !matches!(phase, Phase::Opening)).await;
        phase.map_or_else(|_| Err(shutting_down()), |phase| phase.admits(need))
    }

    /// Waits until the store is open, without asking for it; `false` when the engine ends before.
    pub(crate) async fn opened(&self) -> bool {
        let mut phases = self.now.subscribe();
        let over = |phase: &Phase| !matches!(phase, Phase::Opening | Phase::Failed(_));
        matches!(phases.wait_for(over).await.as_deref(), Ok(Phase::Open))
    }
}

impl Phase {
    const fn was_open(&self) -> bool {
        match self {
            Self::Open => true,
            Self::Opening | Self::Failed(_) => false,
            Self::Closing { was_open } | Self::Closed { was_open } => *was_open,
        }
    }

    fn admits(&self, need: Need) -> Result<(), Error> {
        let may = match self {
            Self::Failed(error) => return Err(error.clone().into()),
            Self::Open => true,
            Self::Opening => false,
            Self::Closing { was_open } => *was_open && need != Need::Work,
            Self::Closed { was_open } => *was_open && need == Need::Read,
        };
        if may { Ok(()) } else { Err(shutting_down()) }
    }
}

/// Refuses what comes too late. Nothing was begun for it.
pub(crate) fn shutting_down() -> Error {
    Error::new(Kind::StorageUnavailable, "the server is shutting down")
        .with_hint("start the server again, then call again")
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn at_the_end_nothing_begins_and_everything_can_be_read() {
        // [LEASE-9] [CANCEL-8]
        let phases = Phases::new();
        let admits = |need| phases.admit(need).now_or_never().map(|admitted| admitted.is_ok());
        let all = || [Need::Work, Need::Command, Need::Read].map(admits);
        assert_eq!(all(), [None; 3]);
        phases.set(Phase::Open);
        assert_eq!(all(), [Some(true); 3]);
        phases.close();
        assert_eq!(all(), [Some(false), Some(true), Some(true)]);
        phases.end();
        assert_eq!(all(), [Some(false), Some(false), Some(true)]);
    }

    #[test]
    fn a_store_that_was_never_open_is_not_read_at_the_end() {
        let phases = Phases::new();
        phases.close();
        phases.end();
        for need in [Need::Work, Need::Command, Need::Read] {
            let refused = phases.admit(need).now_or_never().expect("decided");
            assert_eq!(refused.expect_err("closed").kind, Kind::StorageUnavailable);
        }
    }
}
