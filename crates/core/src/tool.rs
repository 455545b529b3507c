//! What the engine must know of a tool, without any MCP type.

use std::sync::Arc;
use std::time::Duration;

use crate::cancel::{OnDisconnect, OnExit};
use crate::content::Json;
use crate::ids::{LaneId, ToolName};
use crate::retry;
use crate::task::Limits;

/// Whether a tool runs in a lane or is answered beside all lanes [QUEUE-4].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// It never enters a lane.
    Control,
    /// It takes its turn in a lane.
    Lane,
}

/// What a client may assume of a tool, in MCP's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy something.
    pub destructive: bool,
    /// Calling it twice is the same as calling it once.
    pub idempotent: bool,
    /// It reaches beyond this machine.
    pub open_world: bool,
}

/// What a client must be able to do for a tool to be of use to it. A client of a revision in which each
/// request says what its client can do is refused where something is missing [TASKS-8]; one of an older
/// revision, which has no word for it, is served as it always was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Needs {
    /// To follow a native MCP task: the tool has no use for a client that does not come back by itself.
    pub tasks: bool,
    /// To ask a person, by a form.
    pub elicitation: bool,
    /// To ask its model.
    pub sampling: bool,
    /// To name its roots.
    pub roots: bool,
}

/// A tool as the engine sees it. Cloning shares the texts.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// The name callers use.
    pub name: ToolName,
    /// A title for people.
    pub title: Arc<str>,
    /// What it does, in under 400 characters.
    pub description: Arc<str>,
    /// The JSON Schema of its inputs, an object schema.
    pub input_schema: Json,
    /// What a client may assume.
    pub hints: Hints,
    /// Whether nothing is decided by its hints: they are words of another server, for which nobody here
    /// vouches, and only shown [GATE-11].
    pub has_foreign_hints: bool,
    /// Whether it runs in a lane.
    pub class: Class,
    /// The lane it runs in unless the caller names another.
    pub lane: LaneId,
    /// How long a direct call waits by default [CALL-2].
    pub wait: Duration,
    /// How long an attempt may run [TIME-3]; `None` is without limit.
    pub run_timeout: Option<Duration>,
    /// The longest run a caller may ask for.
    pub max_run: Option<Duration>,
    /// Whether an attempt can be told to stop [CANCEL-2].
    pub supports_cancel: bool,
    /// Whether a lost attempt may be run again [LEASE-3].
    pub is_idempotent: bool,
    /// What becomes of it when its caller goes away [CANCEL-7].
    pub on_disconnect: OnDisconnect,
    /// What becomes of it when the server goes away [CANCEL-8].
    pub on_exit: OnExit,
    /// How long a cancelled attempt has to end before it is ended [CANCEL-6].
    pub grace: Duration,
    /// The priority of a call that names none, -100 to 100: higher runs first [QUEUE-1].
    pub priority: i8,
    /// When a failed attempt is followed by another.
    pub retry: retry::Policy,
    /// JSON Pointers of inputs that are redacted everywhere.
    pub sensitive: Arc<[String]>,
    /// JSON Pointers of more inputs that are told nowhere, where what the tool answers is no secret all the same.
    pub unshown: Arc<[String]>,
    /// What a client must be able to do to call it by its name.
    pub needs: Needs,
    /// What its entry in the list says beside this, an object; who lists it decides whether it is shown.
    pub meta: Option<Json>,
}

impl ToolSpec {
    /// Makes a tool with the contract's defaults: a lane tool that can be cancelled and runs once.
    #[must_use]
    pub fn new(name: impl Into<ToolName>, description: &str, input_schema: Json) -> Self {
        let name = name.into();
        Self {
            title: name.as_str().into(),
            name,
            description: description.into(),
            input_schema,
            hints: Hints::default(),
            has_foreign_hints: false,
            class: Class::Lane,
            lane: LaneId::from("cpu_standard"),
            wait: Duration::from_secs(10),
            run_timeout: Some(Duration::from_secs(600)),
            max_run: None,
            supports_cancel: true,
            is_idempotent: false,
            on_disconnect: OnDisconnect::Detach,
            on_exit: OnExit::Detach,
            grace: Limits::default().grace,
            priority: 0,
            retry: retry::Policy::default(),
            sensitive: Arc::from([]),
            unshown: Arc::from([]),
            needs: Needs::default(),
            meta: None,
        }
    }

    /// Returns the hints that something may be decided by. Of foreign ones nothing is left but what was
    /// said here: whether it may be run twice.
    #[must_use]
    pub fn trusted_hints(&self) -> Hints {
        if !self.has_foreign_hints {
            return self.hints;
        }
        let idempotent = self.is_idempotent;
        Hints { read_only: false, destructive: true, idempotent, open_world: true }
    }
}
