//! How the tools describe themselves to clients.

use std::time::Duration;

use raincheck_core::cancel::{OnDisconnect, OnExit};
use raincheck_core::content::Json;
use raincheck_core::error::Kind;
use raincheck_core::ids::LaneId;
use raincheck_core::retry;
use raincheck_core::tool::{Class, Hints, ToolSpec};
use serde::Serialize;

use crate::lanes;
use crate::settings::Settings;

pub(crate) const GET_EDITOR_STATE: &str = "get_editor_state";
pub(crate) const READ_CONSOLE: &str = "read_console";
pub(crate) const MANAGE_SCENE: &str = "manage_scene";
pub(crate) const MANAGE_GAMEOBJECT: &str = "manage_gameobject";
pub(crate) const RUN_TESTS: &str = "run_tests";
pub(crate) const EXECUTE_CODE: &str = "execute_code";
pub(crate) const REFRESH_AND_COMPILE: &str = "refresh_and_compile";
pub(crate) const CAPTURE_SCREENSHOT: &str = "capture_screenshot";
pub(crate) const UNITY_CALL: &str = "unity_call";
pub(crate) const LIST_UNITY_COMMANDS: &str = "list_unity_commands";
pub(crate) const SELECT_EDITOR: &str = "select_editor";

/// How often a call is sent to editors that turn out not to have it.
const MAX_DELIVERIES: u32 = 8;

/// The pause before it is sent again.
const DELIVERY_PAUSE: Duration = Duration::from_millis(50);

/// Whether the answer of a tool is waited for, or its result is read later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionMode {
    /// It runs at once.
    Sync,
    /// It takes its time.
    Job,
}

/// What is said of a tool beside its description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Meta {
    /// Whether it is a job.
    pub execution_mode: ExecutionMode,
    /// How long it may run, in milliseconds.
    pub default_timeout_ms: u64,
    /// The longest run, in milliseconds.
    pub max_timeout_ms: u64,
    /// Whether it can be told to stop.
    pub supports_cancel: bool,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// Whether it goes on over a reload of the editor's code.
    pub reload_safe: bool,
    /// Whether calling it twice is the same as calling it once.
    pub idempotent: bool,
}

/// A tool and what is said of it.
#[derive(Clone, Debug)]
pub struct Tool {
    /// As the engine sees it. Its schema holds the arguments of the tool alone.
    pub spec: ToolSpec,
    /// Its metadata.
    pub meta: Meta,
}

/// A tool as an editor is told of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AnnouncedTool {
    pub(crate) name: &'static str,
    #[serde(flatten)]
    pub(crate) meta: Meta,
}

/// What a tool is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    title: &'static str,
    about: &'static str,
    schema: &'static str,
    pub(crate) mode: ExecutionMode,
    /// Beside the lane, off the editor's main thread.
    pub(crate) is_control: bool,
    pub(crate) can_cancel: bool,
    read_only: bool,
    destructive: bool,
    reload_safe: bool,
    idempotent: bool,
    /// Whether a call may join one that runs with the same arguments.
    pub(crate) can_join: bool,
}

const SYNC: Entry = Entry {
    name: "",
    title: "",
    about: "",
    schema: NO_ARGUMENTS,
    mode: ExecutionMode::Sync,
    is_control: false,
    can_cancel: false,
    read_only: false,
    destructive: true,
    reload_safe: false,
    idempotent: false,
    can_join: false,
};

const READ: Entry =
    Entry { read_only: true, destructive: false, idempotent: true, can_join: true, ..SYNC };

const JOB: Entry = Entry { mode: ExecutionMode::Job, reload_safe: true, ..SYNC };

const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{},"additionalProperties":false}"#;

/// The tools, in the order in which clients see them.
pub(crate) const TOOLS: &[Entry] = &[
    Entry {
        name: GET_EDITOR_STATE,
        title: "State of the Unity Editor",
        about: "Says whether a Unity Editor is connected, which, and what it does: ready, compiling, reloading, \
                playing, running_tests, blocked and so on. Answered at once, also while the editor is busy.",
        is_control: true,
        ..READ
    },
    Entry {
        name: READ_CONSOLE,
        title: "Read the Unity console",
        about: "Reads entries of the editor's console, the newest last. Works while the editor compiles or tests. \
                since_cursor: only what came after an earlier answer's cursor.",
        schema: r#"{"type":"object","properties":{
"types":{"type":"array","items":{"type":"string","enum":["error","warning","log","exception","assert"]}},
"filter":{"type":"string"},"since_cursor":{"type":["string","integer"]},
"limit":{"type":"integer","minimum":1},"include_stacktrace":{"type":"boolean"}},"additionalProperties":false}"#,
        is_control: true,
        ..READ
    },
    Entry {
        name: MANAGE_SCENE,
        title: "Scenes",
        about: "get_hierarchy lists the objects of the open scenes (root, max_depth narrow it), get_active and list \
                read, load and save need a path where the scene has none.",
        schema: r#"{"type":"object","properties":{
"action":{"type":"string","enum":["get_hierarchy","get_active","load","save","list"]},
"path":{"type":"string"},"root":{"type":"string"},"max_depth":{"type":"integer","minimum":0},
"include_components":{"type":"boolean"},"limit":{"type":"integer","minimum":1},"after":{"type":"string"}},"required":["action"],"additionalProperties":false}"#,
        can_join: true,
        ..SYNC
    },
    Entry {
        name: MANAGE_GAMEOBJECT,
        title: "Game objects",
        about: "Finds, reads, creates, changes and deletes game objects of the open scenes. target is an id, a name or \
                a path as by says; properties are those of a component.",
        schema: r#"{"type":"object","properties":{
"action":{"type":"string","enum":["find","get","create","modify","delete","get_components"]},
"target":{"type":["string","integer"]},"id":{"type":["string","integer"]},"search":{"type":"string"},
"by":{"type":"string","enum":["name","path","tag","component","id"]},
"name":{"type":"string"},"parent":{"type":["string","integer"]},
"position":{"type":"array","items":{"type":"number"}},"rotation":{"type":"array","items":{"type":"number"}},
"scale":{"type":"array","items":{"type":"number"}},"active":{"type":"boolean"},"tag":{"type":"string"},"layer":{"type":"integer"},
"components":{"type":"array","items":{"type":"string"}},"properties":{"type":"object"}},
"required":["action"],"additionalProperties":false}"#,
        can_join: true,
        ..SYNC
    },
    Entry {
        name: RUN_TESTS,
        title: "Run tests",
        about: "Runs tests of the project. filter: full names, or beginnings of them. Takes long: read the partial \
                result meanwhile; the run goes on over reloads and can be cancelled.",
        schema: r#"{"type":"object","properties":{
"mode":{"type":"string","enum":["EditMode","PlayMode"]},
"filter":{"type":["string","array"],"items":{"type":"string"}}},
"required":["mode"],"additionalProperties":false}"#,
        can_cancel: true,
        destructive: false,
        can_join: true,
        ..JOB
    },
    Entry {
        name: EXECUTE_CODE,
        title: "Run C#",
        about: "Compiles C# statements and runs them in the editor. The value of return is the result. Off unless the \
                server was started with --enable-execute-code.",
        schema: r#"{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}"#,
        reload_safe: false,
        ..JOB
    },
    Entry {
        name: REFRESH_AND_COMPILE,
        title: "Refresh and compile",
        about: "Imports changed assets and compiles scripts. Answers with the compiler's diagnostics once the editor is \
                back from its reload. Call it after changing scripts.",
        schema: r#"{"type":"object","properties":{"force":{"type":"boolean"}},"additionalProperties":false}"#,
        destructive: false,
        idempotent: true,
        can_join: true,
        ..JOB
    },
    Entry {
        name: "control_play_mode",
        title: "Play mode",
        about: "Enters, pauses, leaves play mode, or goes one frame on.",
        schema: r#"{"type":"object","properties":{
"action":{"type":"string","enum":["play","pause","stop","step"]}},"required":["action"],"additionalProperties":false}"#,
        destructive: false,
        reload_safe: true,
        ..SYNC
    },
    Entry {
        name: "execute_menu_item",
        title: "Menu item",
        about: "Runs an item of the editor's menus by its path, such as File/Save Project.",
        schema: r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}"#,
        ..SYNC
    },
    Entry {
        name: CAPTURE_SCREENSHOT,
        title: "Screenshot",
        about: "Takes a picture of the game or scene view, as an image.",
        schema: r#"{"type":"object","properties":{
"source":{"type":"string","enum":["game","scene"]},"camera":{"type":"string"},"width":{"type":"integer","minimum":1},
"height":{"type":"integer","minimum":1}},"additionalProperties":false}"#,
        ..READ
    },
    Entry {
        name: UNITY_CALL,
        title: "Other command",
        about: "Calls any command that the connected editor has registered, its own tools of the project included. \
                list_unity_commands names them with their params.",
        schema: r#"{"type":"object","properties":{"name":{"type":"string"},"params":{"type":"object"}},
"required":["name"],"additionalProperties":false}"#,
        can_cancel: true,
        ..JOB
    },
    Entry {
        name: LIST_UNITY_COMMANDS,
        title: "Commands of the editor",
        about: "Lists the commands that the connected editor has registered, for unity_call. Answered at once.",
        is_control: true,
        ..READ
    },
    Entry {
        name: SELECT_EDITOR,
        title: "Select an editor",
        about: "Chooses the editor that further calls go to, where several are connected: by its instance, its project's \
                name or its path.",
        schema: r#"{"type":"object","properties":{"instance":{"type":"string"}},"required":["instance"],"additionalProperties":false}"#,
        is_control: true,
        destructive: false,
        idempotent: true,
        ..SYNC
    },
];

/// Returns a tool's own name for one that callers may use as well.
#[must_use]
pub fn canonical_name(name: &str) -> &str {
    match name {
        "run_test" | "run_all_tests" => RUN_TESTS,
        name => name,
    }
}

/// Finds a tool by its name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    TOOLS.iter().find(|entry| entry.name == name)
}

/// Describes the tools.
#[must_use]
pub fn tools(settings: &Settings) -> Vec<Tool> {
    TOOLS.iter().map(|entry| entry.tool(settings)).collect()
}

impl Entry {
    pub(crate) const fn run_timeout(&self, settings: &Settings) -> (Duration, Duration) {
        match self.mode {
            ExecutionMode::Sync => (settings.sync_timeout, settings.max_sync_timeout),
            ExecutionMode::Job => (settings.job_timeout, settings.max_job_timeout),
        }
    }

    /// Describes the tool to an editor.
    pub(crate) fn named(&self, settings: &Settings) -> AnnouncedTool {
        AnnouncedTool { name: self.name, meta: self.meta(settings) }
    }

    fn meta(&self, settings: &Settings) -> Meta {
        let (run, most) = self.run_timeout(settings);
        Meta {
            execution_mode: self.mode,
            default_timeout_ms: millis(run),
            max_timeout_ms: millis(most),
            supports_cancel: self.can_cancel,
            read_only: self.read_only,
            reload_safe: self.reload_safe,
            idempotent: self.idempotent,
        }
    }

    fn tool(&self, settings: &Settings) -> Tool {
        let (run, most) = self.run_timeout(settings);
        let meta = self.meta(settings);
        let compact: String = self.schema.split('\n').collect();
        let schema = Json::parse(compact).unwrap_or_else(|_| Json::empty_object());
        let hints = Hints {
            read_only: self.read_only,
            destructive: self.destructive,
            idempotent: self.idempotent,
            open_world: false,
        };
        let spec = ToolSpec {
            title: self.title.into(),
            hints,
            class: if self.is_control { Class::Control } else { Class::Lane },
            lane: LaneId::from(if self.is_control { lanes::CONTROL } else { lanes::DEFAULT }),
            wait: settings.wait,
            run_timeout: Some(run),
            max_run: Some(most),
            supports_cancel: self.can_cancel,
            is_idempotent: self.read_only,
            on_disconnect: match self.mode {
                ExecutionMode::Sync => OnDisconnect::Cancel,
                ExecutionMode::Job => OnDisconnect::Detach,
            },
            on_exit: OnExit::Detach,
            retry: delivered_again(),
            ..ToolSpec::new(self.name, self.about, schema)
        };
        Tool { spec, meta }
    }
}

/// What surely never began may be sent again [LEASE-5]. Nothing else is, unless it only reads.
pub(crate) fn delivered_again() -> retry::Policy {
    retry::Policy {
        max_attempts: MAX_DELIVERIES,
        backoff: DELIVERY_PAUSE,
        on: vec![Kind::PeerNotReady],
    }
}

pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_tool_describes_itself_shortly_and_has_a_schema_of_its_own() {
        // [UNITY-1]
        for Tool { spec, meta } in tools(&Settings::default()) {
            let schema: Value = spec.input_schema.read().expect("a schema");
            assert_eq!(schema["type"], "object", "{}", spec.name);
            assert_eq!(schema["additionalProperties"], false, "{}", spec.name);
            assert!(spec.description.len() < 400, "{}", spec.name);
            assert!(!spec.title.is_empty() && !spec.description.is_empty(), "{}", spec.name);
            assert!(meta.default_timeout_ms <= meta.max_timeout_ms, "{}", spec.name);
            assert_eq!(spec.supports_cancel, meta.supports_cancel, "{}", spec.name);
        }
    }

    #[test]
    fn tests_go_by_three_names() {
        for name in ["run_tests", "run_test", "run_all_tests"] {
            assert_eq!(canonical_name(name), RUN_TESTS);
        }
        assert_eq!(canonical_name("manage_scene"), MANAGE_SCENE);
    }
}
