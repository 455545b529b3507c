//! What our tools are called by CoplayDev's package. Commands that it has and we have not go by `unity_call`.

use raincheck_core::content::Json;
use serde_json::{Map, Value, json};

use crate::specs;

/// Returns the package's command for a call, and its parameters.
pub(crate) fn theirs(tool: &str, params: &Json) -> (String, Value) {
    let mut members: Map<String, Value> = params.read().unwrap_or_default();
    let name = match tool {
        specs::READ_CONSOLE => {
            members.insert("action".to_owned(), json!("get"));
            rename(
                &mut members,
                &[("filter", "filter_text"), ("limit", "count"), ("since_cursor", "cursor")],
            );
            tool
        }
        "execute_menu_item" => {
            rename(&mut members, &[("path", "menu_path")]);
            tool
        }
        specs::RUN_TESTS => {
            if let Some(filter) = members.remove("filter") {
                let names = if filter.is_array() { filter } else { json!([filter]) };
                members.insert("testNames".to_owned(), names);
            }
            tool
        }
        specs::EXECUTE_CODE => {
            members.insert("action".to_owned(), json!("execute"));
            tool
        }
        specs::REFRESH_AND_COMPILE => {
            members.insert("compile".to_owned(), json!("request"));
            "refresh_unity"
        }
        "control_play_mode" => "manage_editor",
        specs::CAPTURE_SCREENSHOT => {
            members.insert("action".to_owned(), json!("screenshot"));
            members.insert("include_image".to_owned(), json!(true));
            "manage_camera"
        }
        specs::MANAGE_GAMEOBJECT if members.get("action") == Some(&json!("find")) => {
            let by = members.remove("by").and_then(|by| by.as_str().map(|by| format!("by_{by}")));
            members.remove("action");
            rename(&mut members, &[("target", "search_term"), ("search", "search_term")]);
            members.insert("search_method".to_owned(), json!(by.as_deref().unwrap_or("by_name")));
            "find_gameobjects"
        }
        _ => return (tool.to_owned(), params.read().unwrap_or_else(|_| json!({}))),
    };
    (name.to_owned(), Value::Object(members))
}

fn rename(members: &mut Map<String, Value>, names: &[(&str, &str)]) {
    for (ours, theirs) in names {
        if let Some(value) = members.remove(*ours) {
            members.insert((*theirs).to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_tools_are_called_by_their_names() {
        // [UNITY-13]
        for (tool, params, name, theirs_are) in [
            (
                "read_console",
                r#"{"limit":5}"#,
                "read_console",
                json!({ "action": "get", "count": 5 }),
            ),
            (
                "run_tests",
                r#"{"mode":"EditMode","filter":"A"}"#,
                "run_tests",
                json!({ "mode": "EditMode", "testNames": ["A"] }),
            ),
            (
                "control_play_mode",
                r#"{"action":"play"}"#,
                "manage_editor",
                json!({ "action": "play" }),
            ),
            (
                "manage_gameobject",
                r#"{"action":"find","search":"x","by":"tag"}"#,
                "find_gameobjects",
                json!({ "search_term": "x", "search_method": "by_tag" }),
            ),
            ("anything", r#"{"n":1}"#, "anything", json!({ "n": 1 })),
        ] {
            let params = Json::parse(params).expect("JSON");
            assert_eq!(theirs(tool, &params), (name.to_owned(), theirs_are), "{tool}");
        }
    }
}
