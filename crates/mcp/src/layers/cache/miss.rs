//! A handle without a body: why, and which call brings the data again [CACHE-5].

use serde::Serialize;
use serde_json::value::RawValue;

use raincheck_cache::{Miss, Reason};
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};

/// What is told of a handle that is gone.
#[derive(Serialize)]
struct Details<'a> {
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rerun: Option<Rerun<'a>>,
}

/// The call to make again.
#[derive(Serialize)]
struct Rerun<'a> {
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Box<RawValue>>,
}

/// Makes the answer for a handle without a body.
pub(super) fn error(miss: &Miss) -> Error {
    let arguments = |params: &str| RawValue::from_string(params.to_owned()).ok();
    let rerun = miss.rerun.as_ref().map(|rerun| Rerun {
        tool: &rerun.tool,
        arguments: rerun.params.as_deref().and_then(arguments),
    });
    let hint = match &rerun {
        Some(Rerun { tool, arguments: Some(_) }) => {
            format!("call `{tool}` again with the arguments in `details.rerun`")
        }
        Some(Rerun { tool, .. }) => format!("call `{tool}` again with the arguments it had"),
        None => "check the id; fetch_cached_response with action list shows those there are".into(),
    };
    let message = match miss.reason {
        Reason::Expired => "the cached response is expired: nobody read it for too long",
        Reason::Evicted => "the cached response was evicted: it made room for newer ones",
        Reason::Deleted => "the cached response was deleted",
        Reason::Lost => "the cached response is lost: it was in the memory of a server that ended",
        Reason::Unknown => UNKNOWN,
    };
    let error = Error::new(Kind::CacheMiss, message).with_hint(hint);
    match Json::of(&Details { reason: miss.reason.as_str(), rerun }) {
        Ok(details) => error.with_details(details),
        Err(_) => error,
    }
}

/// What is said of a handle that is nobody's, or somebody else's: the same [SCOPE-2].
const UNKNOWN: &str = "there is no cached response of this id";

/// Makes the answer for a text that is no handle.
pub(super) fn unknown() -> Error {
    error(&Miss { reason: Reason::Unknown, rerun: None })
}
