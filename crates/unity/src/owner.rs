//! Which process the editors of a project find.

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_loopback::keeper::{Owner, Unreachable};
use serde_json::json;

/// Says that the editors belong to another process, whose number is told where it is known.
#[must_use]
pub fn owned_elsewhere(pid: Option<u32>) -> Error {
    let words = match pid {
        Some(pid) => format!("the editor belongs to another unity-mcp: process {pid}"),
        None => "the editor belongs to another unity-mcp".to_owned(),
    };
    let details = Json::of(&json!({ "reason": "owned_elsewhere", "pid": pid })).ok();
    let error = Error::new(Kind::PeerNotReady, format!("{words} (owned_elsewhere)"))
        .with_hint("use that server's client, or end that server and call again");
    Error { details, ..error }
}

/// Refuses calls while the editors are not this process's: nothing is taken from another.
pub(crate) fn check(owner: &Owner) -> Result<(), Error> {
    match owner {
        Owner::Unknown | Owner::Ours => Ok(()),
        Owner::Other(pid) => Err(owned_elsewhere(*pid)),
        Owner::Unreachable(Unreachable { next, .. }) => {
            // Where exactly is said by the log and by `doctor`: an error names no path.
            let details = Json::of(&json!({ "reason": "unreachable" })).ok();
            let words = "editors cannot find this server, which cannot listen for them";
            Err(Error { details, ..Error::new(Kind::PeerNotReady, words).with_hint(*next) })
        }
    }
}
