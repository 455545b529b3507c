//! Who has a listener that one process of a machine may have: it is tried for until it is had.
//!
//! A peer finds one server, by one endpoint file. Of several servers that want to be found the first one
//! has it, and the others try again until it is gone.

use std::error;
use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::service::{Accept, Service};

/// How long a server that cannot listen now waits before it tries again.
const PAUSE: Duration = Duration::from_secs(2);

/// Whose the peers are that look for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// That is still to be found out.
    Unknown,
    /// This process's.
    Ours,
    /// Another's, whose number is known unless its lock could not be read.
    Other(Option<u32>),
    /// Nobody's: this process cannot be found.
    Unreachable(Unreachable),
}

/// Why peers cannot find this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// What is in the way. It may name files: it is for the operator.
    pub why: String,
    /// What to do.
    pub next: &'static str,
}

impl Unreachable {
    /// Says what is in the way and what to do.
    #[must_use]
    pub fn new(why: impl Into<String>, next: &'static str) -> Self {
        Self { why: why.into(), next }
    }

    /// Says what failed and why.
    #[must_use]
    pub fn because(error: &Error, next: &'static str) -> Self {
        let why = match error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        Self { why, next }
    }
}

/// Opens a listener with `open`, again and again until that succeeds, and serves until `stop` fires.
/// `tell` hears whose the peers are whenever that changes. What `open` returns beside the listener is
/// held until it is closed.
pub async fn keep<A, L, F>(
    mut open: impl FnMut() -> F,
    mut tell: impl FnMut(&Owner),
    stop: CancellationToken,
) where
    A: Accept,
    F: Future<Output = Result<(Service<A>, L), Owner>>,
{
    let mut last = None;
    while !stop.is_cancelled() {
        // What was begun is ended: a listener that is dropped half-way leaves its endpoint file.
        let owner = match open().await {
            Ok((service, held)) => {
                tell(&Owner::Ours);
                service.run(stop.clone()).await;
                // The next server listens once the endpoint file is gone.
                drop(held);
                return;
            }
            Err(owner) => owner,
        };
        if last.as_ref() != Some(&owner) {
            tell(&owner);
            last = Some(owner);
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = stop.cancelled() => {}
        }
    }
}
