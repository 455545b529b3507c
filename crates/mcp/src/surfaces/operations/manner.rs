//! How a tool runs, as the list tells it [OPS-4].

use std::time::Duration;

use serde::Serialize;

use raincheck_core::content::Json;
use raincheck_core::tool::ToolSpec;

/// Whether a tool is done in a moment or takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It is done in a moment as a rule; a caller that goes away ends it if it has no id.
    Sync,
    /// It takes its time and goes on without its caller.
    Job,
}

/// What a bridge says of a tool beside its specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Whether it is done in a moment.
    pub mode: Mode,
    /// Whether it goes on over a reload of the program at the other end.
    pub reload_safe: bool,
}

/// The name of the description among what the list says beside a tool.
const KEY: &str = "raincheck/execution";

#[derive(Serialize)]
struct Described {
    execution_mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_timeout_ms: Option<u64>,
    supports_cancel: bool,
    read_only: bool,
    reload_safe: bool,
    idempotent: bool,
}

/// Describes how a tool runs, for its entry in the list. The limits are those of the run, not of the wait.
pub(super) fn described(spec: &ToolSpec, manner: Manner) -> Option<Json> {
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let described = Described {
        execution_mode: manner.mode,
        default_timeout_ms: spec.run_timeout.map(millis),
        max_timeout_ms: spec.max_run.or(spec.run_timeout).map(millis),
        supports_cancel: spec.supports_cancel,
        read_only: spec.hints.read_only,
        reload_safe: manner.reload_safe,
        idempotent: spec.hints.idempotent,
    };
    Json::of(&std::collections::BTreeMap::from([(KEY, described)])).ok()
}
