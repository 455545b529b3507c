//! What a client can do, as one request of it says since revision 2026-07-28.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use raincheck_core::content::Json;
use raincheck_core::tool::Needs;

/// What a request declares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    extensions: Vec<Box<str>>,
    pub(crate) abilities: Abilities,
}

impl Declared {
    /// Reads the capabilities of a client.
    pub(crate) fn of(capabilities: Option<&Map<String, Value>>) -> Self {
        let member = |name| capabilities.and_then(|all| all.get(name)).and_then(Value::as_object);
        let extensions = member("extensions");
        let extensions = extensions.into_iter().flat_map(Map::keys).map(|id| (**id).into());
        let (elicitation, sampling) = (member("elicitation"), member("sampling"));
        let has =
            |of: Option<&Map<String, Value>>, name| of.is_some_and(|of| of.contains_key(name));
        let abilities = Abilities {
            // Who says nothing of the ways to ask a person has the first there was.
            form: elicitation.is_some_and(|ways| ways.is_empty() || ways.contains_key("form")),
            url: has(elicitation, "url"),
            sampling: sampling.is_some(),
            sampling_tools: has(sampling, "tools"),
            roots: member("roots").is_some(),
        };
        Self { extensions: extensions.collect(), abilities }
    }

    /// Tells whether it declares an extension of the protocol.
    pub(crate) fn has(&self, extension: &str) -> bool {
        self.extensions.iter().any(|one| **one == *extension)
    }
}

/// What a client can be asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Abilities {
    form: bool,
    url: bool,
    sampling: bool,
    sampling_tools: bool,
    roots: bool,
}

impl Abilities {
    /// Tells whether a question may be put to the client: one that it does not say it answers must not be.
    pub(crate) fn answers(self, request: &Json) -> bool {
        #[derive(Deserialize)]
        struct Request {
            method: String,
            #[serde(default)]
            params: Params,
        }

        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            mode: Option<String>,
            tools: Option<IgnoredAny>,
            tool_choice: Option<IgnoredAny>,
        }

        let Ok(Request { method, params }) = request.read() else { return false };
        match (method.as_str(), params.mode.as_deref()) {
            ("elicitation/create", None | Some("form")) => self.form,
            ("elicitation/create", Some("url")) => self.url,
            ("sampling/createMessage", _) => {
                let has_tools = params.tools.is_some() || params.tool_choice.is_some();
                self.sampling && (self.sampling_tools || !has_tools)
            }
            ("roots/list", _) => self.roots,
            _ => false,
        }
    }

    /// Returns what a tool needs of it and it does not have, tasks aside.
    pub(crate) const fn lacks(self, needs: Needs) -> Needs {
        Needs {
            tasks: false,
            elicitation: needs.elicitation && !self.form,
            sampling: needs.sampling && !self.sampling,
            roots: needs.roots && !self.roots,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn abilities(capabilities: &Value) -> Abilities {
        Declared::of(capabilities.as_object()).abilities
    }

    #[test]
    fn a_client_is_asked_what_it_says_it_answers_and_nothing_else() {
        // [TASKS-9]
        let elicitation = |mode: &Value| json!({"method": "elicitation/create", "params": {"mode": mode, "message": "?"}});
        let sampling =
            |params: Value| json!({"method": "sampling/createMessage", "params": params});
        let tools = json!({"tools": []});
        let cases = [
            (json!({"elicitation": {}}), elicitation(&Value::Null), true),
            (json!({"elicitation": {}}), elicitation(&json!("form")), true),
            (json!({"elicitation": {}}), elicitation(&json!("url")), false),
            (json!({"elicitation": {"url": {}}}), elicitation(&json!("url")), true),
            (json!({"elicitation": {"url": {}}}), elicitation(&json!("form")), false),
            (json!({"elicitation": {"form": {}}}), elicitation(&json!("voice")), false),
            (json!({"elicitation": true}), elicitation(&Value::Null), false),
            (json!({"sampling": {}}), elicitation(&Value::Null), false),
            (json!({"sampling": {}}), sampling(json!({})), true),
            (json!({"sampling": {}}), sampling(tools.clone()), false),
            (json!({"sampling": {"tools": {}}}), sampling(tools), true),
            (json!({"roots": {}}), json!({"method": "roots/list"}), true),
            (json!({"roots": {}}), json!({"method": "tools/list"}), false),
            (json!({"roots": {}}), json!("roots/list"), false),
            (json!({}), json!({"method": "roots/list"}), false),
        ];
        for (said, asked, expected) in cases {
            let request = Json::of(&asked).expect("JSON");
            assert_eq!(abilities(&said).answers(&request), expected, "{said} {asked}");
        }
    }

    #[test]
    fn what_a_tool_needs_and_a_client_has_not_is_named() {
        // [TASKS-8]
        let all = Needs { tasks: true, elicitation: true, sampling: true, roots: true };
        let lacks = |said: Value, needs| abilities(&said).lacks(needs);
        let some = Needs { elicitation: true, roots: true, ..Needs::default() };
        assert_eq!(lacks(json!({"sampling": {}}), all), some);
        assert_eq!(lacks(json!({"elicitation": {"url": {}}}), some), some, "a form is needed");
        let whole = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        assert_eq!(lacks(whole, all), Needs::default());
        assert_eq!(lacks(json!({}), Needs::default()), Needs::default());
    }
}
