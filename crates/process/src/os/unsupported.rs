//! The platform that has no command tools yet: every start fails with the reason.

use std::io;
use std::time::Duration;

use super::{Exit, Left, Pipes, Survivor, Usage};
use crate::order::Order;

/// A program that cannot exist here.
#[derive(Debug)]
pub(crate) enum Process {}

/// Refuses to start anything.
#[expect(clippy::unused_async, reason = "other platforms wait here")]
pub(crate) async fn spawn(_order: Order) -> io::Result<(Process, Pipes)> {
    let reason = "command tools are not built for this platform yet";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

/// Nothing can be wrong with a place where nothing is started.
pub(crate) const fn place_fault() -> Option<&'static str> {
    None
}

/// What weighs a program that cannot exist.
#[derive(Clone, Debug)]
pub(crate) enum Scale {}

impl Scale {
    pub(crate) fn memory(&self, _enough: u64) -> u64 {
        match *self {}
    }
}

impl Process {
    pub(crate) fn scale(&self) -> Scale {
        match *self {}
    }

    pub(crate) async fn ended(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn is_out_of_reach(&mut self) -> bool {
        match *self {}
    }

    pub(crate) fn has_ended(&mut self) -> io::Result<bool> {
        match *self {}
    }

    pub(crate) async fn settle(&mut self) -> Left {
        match *self {}
    }

    pub(crate) async fn stop(&mut self, _grace: Duration) -> Vec<Survivor> {
        match *self {}
    }

    pub(crate) fn reap(self) -> io::Result<Option<(Exit, Usage)>> {
        match self {}
    }
}
