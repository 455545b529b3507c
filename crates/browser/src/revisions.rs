//! What each revision of the extension knows, so that an older one, which would leave out what it does not know or do
//! something else, is asked for nothing of that [BROWSER-66].

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};

use crate::actions::{ACTIONS, ENDINGS, Entry, SETTINGS, VIEWS};
use crate::arguments::Arguments;

/// The revision of an extension that names none.
pub(crate) const FIRST: u32 = 1;

/// The revision of the extension that is written by this server; its `link/server.js` names the same.
pub(crate) const CURRENT: u32 = 2;

/// What the first revision does, and with which arguments.
const OF_FIRST: &[(&str, &[&str])] = &[
    ("execute_js", &["script"]),
    ("navigate", &["url"]),
    ("back", &[]),
    ("forward", &[]),
    ("reload", &[]),
    ("tab_new", &["url", "background"]),
    ("tab_close", &[]),
    ("tab_select", &[]),
    ("click", &["ref", "selector"]),
    ("hover", &["ref", "selector"]),
    ("type", &["ref", "selector", "text"]),
    ("fill", &["ref", "selector", "text"]),
    ("press", &["key"]),
    ("select", &["ref", "selector", "value"]),
    ("scroll", &["ref", "selector", "x", "y"]),
    ("wait_for", &["ref", "selector", "text", "url", "state"]),
    ("dialog", &["accept", "text"]),
    ("snapshot", &["ref", "selector"]),
    ("page_text", &["ref", "selector"]),
    ("screenshot", &["ref", "selector", "full_page"]),
    ("tabs", &["filter"]),
    ("dialog_policy", &["policy"]),
    ("engine", &["engine"]),
];

/// What came after the second revision: an action or a view, an argument of it unless all of it is meant, and the
/// revision. What stands neither here nor above came with the second.
const LATER: &[(&str, Option<&str>, u32)] = &[];

/// What an extension has to know for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) revision: u32,
    /// What of the command that is, in words.
    what: String,
}

impl Need {
    /// Returns what a command takes, with the steps that it has.
    pub(crate) fn of(what: &str, params: &Json) -> Self {
        let mut most = Self { revision: FIRST, what: format!("`{what}`") };
        let Ok(arguments) = Arguments::read(params) else { return most };
        most.raise(what, &arguments);
        for step in arguments.objects("steps") {
            if let Some(what) = step.text("action").or_else(|| step.text("what")) {
                most.raise(what, &step);
            }
        }
        most
    }

    fn raise(&mut self, what: &str, arguments: &Arguments) {
        let mut every = ACTIONS.iter().chain(VIEWS).chain(SETTINGS).chain(ENDINGS);
        let Some(entry) = every.find(|entry| entry.name == what) else { return };
        self.raise_to(since(entry, None), || format!("`{what}`"));
        for field in entry.fields.iter().filter(|field| arguments.asks(field.name)) {
            let name = field.name;
            self.raise_to(since(entry, Some(name)), || format!("`{name}` of `{what}`"));
        }
    }

    fn raise_to(&mut self, revision: u32, what: impl Fn() -> String) {
        if revision > self.revision {
            *self = Self { revision, what: what() };
        }
    }

    /// The failure of a command that an extension would not do as it is asked.
    pub(crate) fn is_not_met(&self) -> Error {
        let words = format!(
            "the extension in this browser is an older one, which does not know {}",
            self.what
        );
        let details = Json::parse(r#"{"reason":"old_extension"}"#.to_owned());
        let error = Error::new(Kind::PeerIncompatible, words)
            .with_guarantee(Guarantee::NotExecuted)
            .with_hint(HINT);
        match details {
            Ok(details) => error.with_details(details),
            Err(_) => error,
        }
    }
}

/// What to do about an older extension.
pub(crate) const HINT: &str = "ask the user to run: browser-mcp extension install DIR, with the folder that the \
     extension is loaded from, and to reload it at chrome://extensions; then call again";

/// Since which revision an action, or an argument of it, is known.
fn since(entry: &Entry, argument: Option<&str>) -> u32 {
    let later = LATER.iter().find(|(name, of, _)| (*name, *of) == (entry.name, argument));
    if let Some((.., revision)) = later {
        return *revision;
    }
    let first = OF_FIRST.iter().find(|(name, _)| *name == entry.name);
    let is_of_first = first.is_some_and(|(_, known)| argument.is_none_or(|it| known.contains(&it)));
    if is_of_first { FIRST } else { FIRST + 1 }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn need(params: &Value) -> Need {
        let what = params["action"].as_str().expect("an action");
        Need::of(what, &Json::of(params).expect("JSON"))
    }

    #[test]
    fn what_is_newer_than_the_first_extension_needs_a_newer_one_also_in_a_step() {
        // [BROWSER-66]
        for params in [
            json!({ "action": "execute_js", "script": "1" }),
            json!({ "action": "click", "ref": "e1", "changes": false, "tab_id": 7 }),
            json!({ "action": "snapshot", "selector": "main" }),
            json!({ "action": "dialog_policy", "policy": "report" }),
        ] {
            assert_eq!(need(&params).revision, FIRST, "{params}");
        }
        for (params, named) in [
            (json!({ "action": "click", "ref": "e1", "changes": true }), "`changes` of `click`"),
            (json!({ "action": "snapshot", "since": "s1.1" }), "`since` of `snapshot`"),
            (
                json!({ "action": "fill", "ref": "e1", "text": "a", "origin": "http://a" }),
                "`origin` of `fill`",
            ),
            (json!({ "action": "page_tools" }), "`page_tools`"),
            (json!({ "action": "end_script", "of": "corr-1" }), "`end_script`"),
            (
                json!({ "action": "batch", "steps": [{ "what": "snapshot", "since": "s1.1" }] }),
                "`batch`",
            ),
        ] {
            let need = need(&params);
            assert_eq!(need.revision, 2, "{params}");
            let error = need.is_not_met();
            assert!(error.message.contains(named), "{error}");
            assert_eq!(error.guarantee(), Some(Guarantee::NotExecuted));
        }
    }

    #[test]
    fn a_new_action_or_argument_comes_with_a_revision_of_its_own() {
        let every = || ACTIONS.iter().chain(VIEWS).chain(SETTINGS).chain(ENDINGS);
        let there = |name: &str, of: Option<&str>| {
            let mut fields =
                every().filter(|entry| entry.name == name).flat_map(|entry| entry.fields);
            of.is_none_or(|of| fields.any(|field| field.name == of))
        };
        for (name, known) in OF_FIRST {
            assert!(every().any(|entry| entry.name == *name), "{name}");
            assert!(known.iter().all(|field| there(name, Some(field))), "{name}: {known:?}");
        }
        let newest = LATER.iter().map(|(.., revision)| *revision).max().unwrap_or(FIRST + 1);
        assert_eq!(newest, CURRENT);
        // Whoever adds something that an extension has to know names it in `LATER`, raises `CURRENT` and the revision of
        // the extension, and then this number.
        let n_known = every().count() + every().map(|entry| entry.fields.len()).sum::<usize>();
        assert_eq!(n_known - LATER.len(), N_OF_SECOND);
    }

    /// How many actions, views, settings and arguments of these there are in the second revision.
    const N_OF_SECOND: usize = 168;

    #[test]
    fn the_extension_names_the_revision_that_this_server_writes() {
        let mut sources = crate::extension::sources();
        let (_, source) = sources.find(|(name, _)| *name == "link/server.js").expect("there");
        assert!(source.contains(&format!("export const REVISION = {CURRENT};")));
    }
}
