//! What a call asks of an editor, read from its tool and its inputs.

use std::sync::Arc;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::idempotency;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::desk::run::JoinKey;
use crate::specs::{self, Entry};
use crate::spelling::Key;

/// The longest name of a command.
const MAX_NAME: usize = 128;

/// Actions of the tools that both read and change, which only read.
const READS: &[(&str, &[&str])] = &[
    (specs::MANAGE_SCENE, &["get_hierarchy", "get_active", "list"]),
    (specs::MANAGE_GAMEOBJECT, &["find", "get", "get_components"]),
];

/// What is asked of an editor.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) entry: &'static Entry,
    /// The command, as the editor knows it.
    pub(crate) tool: String,
    pub(crate) params: Json,
    /// Whether the caller named the command, by `unity_call`.
    pub(crate) is_call: bool,
}

/// Finds a tool by its name.
pub(crate) fn entry(tool: &str) -> Result<&'static Entry, Error> {
    specs::find(tool).ok_or_else(|| {
        Error::new(Kind::UnknownTool, format!("Unity has no tool `{}`", crate::wire::name(tool)))
    })
}

impl Wanted {
    /// Reads what a call asks for.
    pub(crate) fn of(entry: &'static Entry, inputs: &Json) -> Result<Self, Error> {
        if entry.name != specs::UNITY_CALL {
            if entry.name == specs::RUN_TESTS {
                check_filter(inputs)?;
            }
            let (tool, params) = (entry.name.to_owned(), inputs.clone());
            return Ok(Self { entry, tool, params, is_call: false });
        }
        #[derive(Deserialize)]
        struct Named<'a> {
            name: String,
            #[serde(borrow, default)]
            params: Option<&'a RawValue>,
        }
        let Ok(Named { name, params }) = inputs.read::<Named<'_>>() else {
            return Err(Error::new(Kind::InvalidParams, "`name` must be the name of a command"));
        };
        let is_name = !name.is_empty() && name.len() <= MAX_NAME;
        if !is_name {
            let words = format!("`name` must have 1 to {MAX_NAME} bytes");
            return Err(Error::new(Kind::InvalidParams, words));
        }
        let params = match params {
            Some(raw) if raw.get().starts_with('{') => Json::from_raw(raw.to_owned()),
            None => Json::empty_object(),
            Some(_) => return Err(Error::new(Kind::InvalidParams, "`params` must be an object")),
        };
        // A tool of ours by another door is the same tool.
        let own = specs::find(specs::canonical_name(&name));
        if own.is_some_and(|own| own.name == specs::RUN_TESTS) {
            check_filter(&params)?;
        }
        Ok(match own.filter(|own| own.name != specs::UNITY_CALL) {
            Some(own) => Self { entry: own, tool: own.name.to_owned(), params, is_call: false },
            None => Self { entry, tool: name, params, is_call: true },
        })
    }

    /// Tells whether what is asked for after it may find something else. A compile brings in what was written
    /// before, though several that ask for it may be one run.
    pub(crate) fn may_change(&self, join: Option<&JoinKey>) -> bool {
        join.is_none() || self.entry.name == specs::REFRESH_AND_COMPILE
    }

    /// Returns what the call may be one run with: nothing, if it changes anything.
    pub(crate) fn join_key(&self, editor: &Key) -> Option<JoinKey> {
        if self.is_call || !self.entry.can_join {
            return None;
        }
        if let Some((_, reads)) = READS.iter().find(|(tool, _)| *tool == self.entry.name) {
            #[derive(Deserialize)]
            struct Action {
                action: String,
            }
            let Action { action } = self.params.read().ok()?;
            reads.iter().find(|read| **read == action)?;
        }
        let inputs = idempotency::hash_inputs(&self.params).ok()?;
        Some(JoinKey { editor: Arc::clone(editor), tool: self.entry.name.into(), inputs })
    }
}

/// Refuses a list that some client made a string of: it would name one test that there is not.
fn check_filter(inputs: &Json) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Filter<'a> {
        #[serde(borrow, default)]
        filter: Option<&'a RawValue>,
    }
    let Ok(Filter { filter: Some(raw) }) = inputs.read::<Filter<'_>>() else { return Ok(()) };
    let text: Option<String> = serde_json::from_str(raw.get()).ok();
    let is_list = text.is_some_and(|text| serde_json::from_str::<Vec<String>>(&text).is_ok());
    if !is_list {
        return Ok(());
    }
    Err(Error::new(Kind::InvalidParams, "`filter` is a list inside of a string")
        .with_hint("pass the list itself, or one name as a string"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).expect("JSON")
    }

    fn wanted(tool: &str, inputs: &str) -> Result<Wanted, Error> {
        Wanted::of(entry(tool)?, &json(inputs))
    }

    #[test]
    fn a_list_of_tests_in_a_string_is_refused_and_a_list_is_not() {
        // Case unity-stringified-arguments.
        let bad = wanted("run_tests", r#"{"mode":"EditMode","filter":"[\"A\",\"B\"]"}"#);
        let error = bad.expect_err("refused");
        assert_eq!(error.kind, Kind::InvalidParams);
        assert!(error.message.contains("filter"));
        for good in [r#"["A","B"]"#, r#""A""#, r#""Reads([1])""#] {
            let inputs = format!(r#"{{"mode":"EditMode","filter":{good}}}"#);
            wanted("run_tests", &inputs).expect(good);
        }
    }

    #[test]
    fn only_what_changes_nothing_and_what_is_told_the_same_may_be_one_run() {
        // [UNITY-11]
        let editor: Key = "/p".into();
        let key = |tool: &str, inputs: &str| wanted(tool, inputs).expect("read").join_key(&editor);
        assert!(key("refresh_and_compile", "{}").is_some());
        let tests = key("run_tests", r#"{"mode":"EditMode","filter":"A"}"#);
        assert_eq!(tests, key("run_tests", r#"{ "filter":"A", "mode":"EditMode" }"#));
        assert_ne!(tests, key("run_tests", r#"{"mode":"EditMode","filter":"B"}"#));
        assert!(key("manage_scene", r#"{"action":"get_hierarchy"}"#).is_some());
        for (tool, inputs) in [
            ("manage_scene", r#"{"action":"save"}"#),
            ("manage_gameobject", r#"{"action":"delete","target":"x"}"#),
            ("execute_menu_item", r#"{"path":"A"}"#),
            ("control_play_mode", r#"{"action":"play"}"#),
            ("execute_code", r#"{"code":"1"}"#),
            ("unity_call", r#"{"name":"mine"}"#),
        ] {
            assert_eq!(key(tool, inputs), None, "{tool} {inputs}");
        }
    }

    #[test]
    fn a_tool_by_the_door_of_other_commands_is_the_same_tool() {
        let code = wanted("unity_call", r#"{"name":"execute_code","params":{"code":"1"}}"#);
        assert_eq!(code.expect("read").entry.name, specs::EXECUTE_CODE);
        let other =
            wanted("unity_call", r#"{"name":"mine","params":{"n":[1,2.50]}}"#).expect("read");
        assert_eq!((other.params.get(), other.is_call), (r#"{"n":[1,2.50]}"#, true));
        let list = r#"{"name":"run_tests","params":{"mode":"EditMode","filter":"[\"A\"]"}}"#;
        assert_eq!(wanted("unity_call", list).expect_err("a list").kind, Kind::InvalidParams);
        for bad in [r#"{"name":""}"#, r#"{"name":5}"#, r#"{"name":"x","params":[]}"#] {
            assert!(wanted("unity_call", bad).is_err(), "{bad}");
        }
    }
}
