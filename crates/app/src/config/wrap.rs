//! What a file says about the server behind `raincheck wrap`.

use std::time::Duration;

use raincheck_core::cancel::OnDisconnect;
use raincheck_core::error::Kind;
use raincheck_core::ids::LaneId;
use raincheck_core::retry;
use raincheck_core::tool::ToolSpec;

/// How the tools of the server behind the gateway are run. What is not set is the gateway's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wrap {
    /// How long a direct call waits.
    pub wait: Option<Duration>,
    /// How long a call may run.
    pub run_timeout: Option<Duration>,
    /// How many calls run at once.
    pub concurrency: Option<u32>,
    /// How many calls may wait.
    pub queue_limit: Option<u32>,
    /// How long a call waits for the server to be there.
    pub ready: Option<Duration>,
    /// How long the server has to start.
    pub start: Option<Duration>,
    /// How often in a row the server is started again.
    pub restarts: Option<u32>,
    /// What is said of single tools, by the names that the server gives them.
    pub tools: Vec<(String, Wrapped)>,
}

/// What is said of a tool of the server behind the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wrapped {
    /// How long a direct call waits.
    pub wait: Option<Duration>,
    /// How long a call may run.
    pub run_timeout: Option<Duration>,
    /// The lane it runs in.
    pub lane: Option<LaneId>,
    /// Whether it may be stopped by a cancel.
    pub supports_cancel: Option<bool>,
    /// What becomes of a call without a task id when its caller goes away.
    pub on_disconnect: Option<OnDisconnect>,
    /// Whether its clients have to follow native MCP tasks.
    pub needs_tasks: Option<bool>,
    /// Whether it may be run twice without harm.
    pub is_idempotent: Option<bool>,
    /// How many attempts there may be.
    pub max_attempts: Option<u32>,
    /// The pause before the second attempt.
    pub backoff: Option<Duration>,
    /// The kinds of failure that are worth another attempt.
    pub retry_on: Option<Vec<Kind>>,
    /// JSON Pointers of inputs that are redacted.
    pub sensitive: Option<Vec<String>>,
    /// Whether the tool is left out.
    pub is_hidden: bool,
}

impl Wrapped {
    /// Changes what the server said about the tool.
    pub fn adjust(&self, spec: &mut ToolSpec) {
        let said = self.clone();
        spec.wait = said.wait.unwrap_or(spec.wait);
        spec.run_timeout = said.run_timeout.or(spec.run_timeout);
        if let Some(lane) = said.lane {
            spec.lane = lane;
        }
        spec.supports_cancel = said.supports_cancel.unwrap_or(spec.supports_cancel);
        spec.on_disconnect = said.on_disconnect.unwrap_or(spec.on_disconnect);
        spec.needs.tasks = said.needs_tasks.unwrap_or(spec.needs.tasks);
        spec.is_idempotent = said.is_idempotent.unwrap_or(spec.is_idempotent);
        if let Some(is_idempotent) = said.is_idempotent {
            spec.hints.idempotent = is_idempotent;
        }
        let retry::Policy { max_attempts, backoff, on, .. } = &mut spec.retry;
        *max_attempts = said.max_attempts.unwrap_or(*max_attempts);
        *backoff = said.backoff.unwrap_or(*backoff);
        if let Some(kinds) = said.retry_on {
            *on = kinds;
        }
        if let Some(pointers) = said.sensitive {
            spec.sensitive = pointers.into();
        }
    }
}
