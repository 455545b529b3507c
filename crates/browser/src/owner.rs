//! Which process the extension finds: whose the browser is.

use std::path::Path;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_loopback::keeper::{Owner, Unreachable};
use raincheck_loopback::ownership::{self, OwnerLock, Taken};
use raincheck_loopback::{self as loopback, ErrorKind};
use serde_json::json;

/// Says that the browser belongs to another process, whose number is told where it is known.
#[must_use]
pub fn owned_elsewhere(pid: Option<u32>) -> Error {
    let words = words(&Owner::Other(pid)).unwrap_or_default();
    let details = Json::of(&json!({ "reason": "owned_elsewhere", "pid": pid })).ok();
    let error = Error::new(Kind::PeerNotReady, format!("{words} (owned_elsewhere)"))
        .with_hint("use that server's client, or end that server and call again");
    Error { details, ..error }
}

/// Refuses commands while the browser is not this process's: nothing is taken from another.
pub(crate) fn check(owner: &Owner) -> Result<(), Error> {
    match owner {
        Owner::Unknown | Owner::Ours => Ok(()),
        Owner::Other(pid) => Err(owned_elsewhere(*pid)),
        Owner::Unreachable(Unreachable { next, .. }) => {
            // Where exactly is said by the log, `health` and `doctor`: an error names no path.
            let details = Json::of(&json!({ "reason": "unreachable" })).ok();
            let words = "the extension cannot find this server, which cannot listen for it";
            Err(Error { details, ..Error::new(Kind::PeerNotReady, words).with_hint(*next) })
        }
    }
}

/// Says why no browser can come to this process; `None` when one can.
pub(crate) fn words(owner: &Owner) -> Option<String> {
    match owner {
        Owner::Unknown | Owner::Ours => None,
        Owner::Other(Some(pid)) => {
            Some(format!("the browser belongs to another browser-mcp: process {pid}"))
        }
        Owner::Other(None) => Some("the browser belongs to another browser-mcp".to_owned()),
        Owner::Unreachable(Unreachable { why, next }) => {
            Some(format!("the extension cannot find this server: {why}; {next}"))
        }
    }
}

pub(crate) fn log(owner: &Owner) {
    match owner {
        Owner::Unknown | Owner::Ours => {}
        Owner::Other(pid) => tracing::warn!(pid, "the browser belongs to another browser-mcp"),
        Owner::Unreachable(Unreachable { why, next }) => {
            tracing::error!(next, "the extension cannot find this server: {why}");
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
