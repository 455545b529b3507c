//! What the surface must know of the bridge.

use std::collections::HashMap;

use raincheck::core::content::Content;
use raincheck::core::error::Error;
use raincheck::core::ids::LaneId;
use raincheck::mcp::surfaces::operations::{Bridge, HeldUp, Manner, Mode};
use raincheck_unity::{ExecutionMode, NO_PROJECT, Settings, Unity};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The tools of the bridge as the surface tells them.
#[derive(Debug)]
pub(crate) struct Words {
    bridge: Unity,
    manners: HashMap<String, Manner>,
    can_be_found: bool,
}

impl Words {
    /// Describes the tools as they are with these settings.
    pub(crate) fn of(bridge: Unity, settings: &Settings) -> Self {
        let manner = |mode: ExecutionMode, reload_safe| Manner {
            mode: match mode {
                ExecutionMode::Sync => Mode::Sync,
                ExecutionMode::Job => Mode::Job,
            },
            reload_safe,
        };
        let tools = raincheck_unity::tools(settings).into_iter();
        let manners = tools.map(|tool| {
            let name = tool.spec.name.as_str().to_owned();
            (name, manner(tool.meta.execution_mode, tool.meta.reload_safe))
        });
        Self { bridge, manners: manners.collect(), can_be_found: settings.can_be_found() }
    }
}

/// Why calls wait, and what to do.
const WAITING: &[(&str, &str)] = &[
    (
        "disconnected",
        "No Unity Editor is connected: open the project, with the package installed (unity-mcp install). The \
         call begins when the editor comes.",
    ),
    ("compiling", "The editor compiles scripts: the call begins when it is done."),
    ("reloading", "The editor reloads its code: the call begins when it is back."),
    ("busy", "The editor is busy: the call begins when it is free."),
];

/// What to do after a call that did not begin in time.
const NOT_READY: &[(&str, &str)] = &[
    (
        "disconnected",
        "have the project opened in Unity, with the package installed (unity-mcp install), and call again; \
         get_editor_state says when the editor is there",
    ),
    ("compiling", "call again when get_editor_state says that the editor is ready"),
    ("reloading", "call again when get_editor_state says that the editor is ready"),
    ("busy", "look at get_editor_state for what the editor does, and call again when it is free"),
];

impl Bridge for Words {
    fn whose(&self) -> &'static str {
        "the editor"
    }

    fn manner(&self, tool: &str) -> Manner {
        let known = self.manners.get(tool).copied();
        known.unwrap_or(Manner { mode: Mode::Sync, reload_safe: false })
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[("run_test", "run_tests"), ("run_all_tests", "run_tests")]
    }

    fn entries(&self) -> &'static [&'static str] {
        &["get_editor_state", "manage_gameobject", "run_tests"]
    }

    fn waiting(&self, reason: &str) -> Option<String> {
        if reason == "disconnected" && !self.can_be_found {
            return Some(NO_PROJECT.to_owned());
        }
        let words = WAITING.iter().find(|(known, _)| *known == reason);
        words.map(|(_, words)| (*words).to_owned())
    }

    fn not_ready(&self, reason: &str) -> Option<String> {
        if reason == "disconnected" && !self.can_be_found {
            return Some("start the server with --project DIR, and call again".to_owned());
        }
        let words = NOT_READY.iter().find(|(known, _)| *known == reason);
        words.map(|(_, words)| (*words).to_owned())
    }

    fn remark(&self, tool: &str, result: &[Content]) -> Option<HeldUp> {
        #[derive(Deserialize)]
        struct Tests {
            test_run_status: String,
            #[serde(default)]
            message: String,
        }
        let result = result.iter().find_map(|part| match part {
            Content::Json(json) if tool == "run_tests" => json.read::<Tests>().ok(),
            Content::Json(_) | Content::Text(_) | Content::Binary { .. } | Content::Verbatim(_) => {
                None
            }
        })?;
        let words = "No test was run, which is no pass. The editor says why:";
        (result.test_run_status == "no_tests").then_some(HeldUp { words, said: result.message })
    }

    fn other_door<'a>(&self, tool: &str, inputs: &'a Value) -> Option<(&'a str, Value)> {
        const CALL: &str = "unity_call";
        let own = raincheck_unity::canonical_name(inputs.get("name")?.as_str()?);
        let is_own = tool == CALL && own != CALL && self.manners.contains_key(own);
        if !is_own {
            return None;
        }
        let mut params = inputs.get("params").cloned().unwrap_or_else(|| Value::Object(Map::new()));
        if let Value::Object(params) = &mut params {
            // `null` is as good as absent.
            params.retain(|_, value| !value.is_null());
        }
        Some((own, params))
    }

    fn held_up(&self, lane: &LaneId) -> Option<HeldUp> {
        let said = self.bridge.dialog_of(lane)?;
        let words = "A dialog is open in the editor and holds it up: ask the user to answer it, and do not \
                     repeat the call. Its title:";
        Some(HeldUp { words, said })
    }

    fn owned_elsewhere(&self, pid: u32) -> Error {
        raincheck_unity::owned_elsewhere(Some(pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        Words::of(Unity::new(Settings::default()), &Settings::default())
    }

    #[test]
    fn a_tool_by_the_door_of_other_commands_is_checked_as_that_tool() {
        let inputs =
            serde_json::json!({ "name": "run_test", "params": { "mode": 5, "filter": null } });
        let (own, params) = words().other_door("unity_call", &inputs).expect("a tool of ours");
        assert_eq!((own, params.to_string()), ("run_tests", r#"{"mode":5}"#.to_owned()));
        for (tool, name) in
            [("unity_call", "mine"), ("unity_call", "unity_call"), ("run_tests", "x")]
        {
            let inputs = serde_json::json!({ "name": name });
            assert_eq!(words().other_door(tool, &inputs), None, "{tool} {name}");
        }
    }

    #[test]
    fn a_run_of_no_test_is_told_to_be_no_pass() {
        // Case unity-no-test-matched.
        let result = |status: &str| {
            let said =
                format!(r#"{{"test_run_status":"{status}","message":"none matches `A.B`"}}"#);
            [Content::Json(raincheck::core::content::Json::parse(said).expect("JSON"))]
        };
        let remark = words().remark("run_tests", &result("no_tests")).expect("a remark");
        assert!(remark.words.contains("no pass"));
        assert_eq!(remark.said, "none matches `A.B`");
        assert_eq!(words().remark("run_tests", &result("passed")), None);
        assert_eq!(words().remark("manage_scene", &result("no_tests")), None);
    }

    #[test]
    fn a_server_that_no_editor_can_find_says_so() {
        assert!(words().waiting("disconnected").is_some_and(|it| it.contains("--project DIR")));
        let settings = Settings { project: Some("/p".into()), ..Settings::default() };
        let words = Words::of(Unity::new(settings.clone()), &settings);
        assert!(words.waiting("disconnected").is_some_and(|it| it.contains("unity-mcp install")));
        assert!(words.not_ready("disconnected").is_some_and(|it| !it.contains("--project")));
    }

    #[test]
    fn aliases_stand_for_tools_that_there_are() {
        // [OPS-8]
        let words = Words::of(Unity::new(Settings::default()), &Settings::default());
        for (alias, own) in words.aliases() {
            assert_eq!(raincheck_unity::canonical_name(alias), *own);
            assert!(words.manners.contains_key(*own) && !words.manners.contains_key(*alias));
        }
    }
}
