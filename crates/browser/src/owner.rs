//! Which process the extension finds: whose the browser is.

use std::error;
use std::path::Path;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_loopback::ownership::{self, OwnerLock, Taken};
use raincheck_loopback::{self as loopback, ErrorKind};
use serde_json::json;

/// Whose the browser is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// That is still to be found out.
    Unknown,
    /// This process's.
    Ours,
    /// Another's, whose number is known unless its lock could not be read.
    Other(Option<u32>),
    /// Nobody's: this process cannot be found.
    Unreachable(Unreachable),
}

/// Why the extension cannot find this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreachable {
    why: String,
    next: &'static str,
}

impl Unreachable {
    pub(crate) fn new(why: impl Into<String>, next: &'static str) -> Self {
        Self { why: why.into(), next }
    }

    /// Says what failed and why.
    pub(crate) fn because(error: &loopback::Error, next: &'static str) -> Self {
        let why = match error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        Self { why, next }
    }
}

/// Says that the browser belongs to another process, whose number is told where it is known.
#[must_use]
pub fn owned_elsewhere(pid: Option<u32>) -> Error {
    let words = Owner::Other(pid).words().unwrap_or_default();
    let details = Json::of(&json!({ "reason": "owned_elsewhere", "pid": pid })).ok();
    let error = Error::new(Kind::PeerNotReady, format!("{words} (owned_elsewhere)"))
        .with_hint("use that server's client, or end that server and call again");
    Error { details, ..error }
}

impl Owner {
    /// Refuses commands while the browser is not this process's: nothing is taken from another.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Self::Unknown | Self::Ours => Ok(()),
            Self::Other(pid) => Err(owned_elsewhere(*pid)),
            Self::Unreachable(Unreachable { next, .. }) => {
                // Where exactly is said by the log, `health` and `doctor`: an error names no path.
                let details = Json::of(&json!({ "reason": "unreachable" })).ok();
                let words = "the extension cannot find this server, which cannot listen for it";
                Err(Error { details, ..Error::new(Kind::PeerNotReady, words).with_hint(*next) })
            }
        }
    }

    /// Says why no browser can come to this process; `None` when one can.
    pub(crate) fn words(&self) -> Option<String> {
        match self {
            Self::Unknown | Self::Ours => None,
            Self::Other(Some(pid)) => {
                Some(format!("the browser belongs to another browser-mcp: process {pid}"))
            }
            Self::Other(None) => Some("the browser belongs to another browser-mcp".to_owned()),
            Self::Unreachable(Unreachable { why, next }) => {
                Some(format!("the extension cannot find this server: {why}; {next}"))
            }
        }
    }

    pub(crate) fn log(&self) {
        match self {
            Self::Unknown | Self::Ours => {}
            Self::Other(pid) => {
                tracing::warn!(pid, "the browser belongs to another browser-mcp");
            }
            Self::Unreachable(Unreachable { why, next }) => {
                tracing::error!(next, "the extension cannot find this server: {why}");
            }
        }
    }
}

/// What makes this process the only one that the extension can find: of all servers of one runtime
/// folder, whose endpoint file is one, and of one state folder, whose extensions are paired with one.
#[derive(Debug)]
pub(crate) struct Locks {
    _runtime: OwnerLock,
    _state: Option<OwnerLock>,
}

impl Locks {
    /// Takes both, or says who has one of them [BROWSER-18]. Works with blocking calls.
    pub(crate) fn take(runtime: &Path, state: &Path) -> Result<Self, Owner> {
        let runtime = take(runtime, in_runtime)?;
        let state = match ownership::take(state) {
            Ok(Taken::Ours(lock)) => Some(lock),
            Ok(Taken::Theirs(pid)) => return Err(Owner::Other(pid)),
            // State on a network folder: the lock of the runtime folder has to do.
            Err(error) if error.kind() == ErrorKind::Lock => {
                tracing::debug!(%error, "the state folder has no lock");
                None
            }
            Err(error) => return Err(Owner::Unreachable(in_state(&error))),
        };
        Ok(Self { _runtime: runtime, _state: state })
    }
}

fn take(path: &Path, told: fn(&loopback::Error) -> Unreachable) -> Result<OwnerLock, Owner> {
    match ownership::take(path) {
        Ok(Taken::Ours(lock)) => Ok(lock),
        Ok(Taken::Theirs(pid)) => Err(Owner::Other(pid)),
        Err(error) => Err(Owner::Unreachable(told(&error))),
    }
}

pub(crate) fn in_runtime(error: &loopback::Error) -> Unreachable {
    Unreachable::because(
        error,
        "make the runtime folder writable, or name another: --runtime-dir DIR (or RAINCHECK_RUNTIME_DIR)",
    )
}

pub(crate) fn in_state(error: &loopback::Error) -> Unreachable {
    Unreachable::because(
        error,
        "make the state folder writable, or name another: --state-dir DIR (or RAINCHECK_STATE_DIR)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::Places;

    #[test]
    fn one_folder_for_state_and_runtime_files_has_both_locks() {
        // [BROWSER-18]
        let dir = tempfile::tempdir().expect("a folder");
        let places = Places::new(dir.path(), dir.path());
        std::fs::create_dir(dir.path().join("browser")).expect("a folder");
        let take = || Locks::take(&places.runtime_lock(), &places.state_lock());
        let locks = take().expect("this process's");
        assert_eq!(take().expect_err("taken"), Owner::Other(Some(std::process::id())));
        drop(locks);
        take().expect("free again");
    }
}
