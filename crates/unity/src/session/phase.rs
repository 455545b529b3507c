//! How far a connection has come.

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It is open, and nothing was said.
    Fresh,
    /// The editor said who it is, and the server proved itself.
    Greeted,
    /// The editor proved itself as well.
    Known,
    /// It is being closed.
    Over,
}

/// What leads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Hello,
    Auth,
}

/// Every step there is.
const TABLE: &[(Phase, Step, Phase)] =
    &[(Phase::Fresh, Step::Hello, Phase::Greeted), (Phase::Greeted, Step::Auth, Phase::Known)];

impl Phase {
    /// Looks up where a step leads; `None` when the phase does not have it.
    pub(crate) fn next(self, on: Step) -> Option<Self> {
        TABLE.iter().find(|(from, by, _)| (*from, *by) == (self, on)).map(|(_, _, to)| *to)
    }
}
