//! What a task asks of the browser, read from its tool and its inputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::LaneId;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::actions::{ACTIONS, ENDINGS, Entry, SETTINGS, VIEWS};
use crate::arguments::Arguments;
use crate::checks::name_in;
use crate::choices::Choice;
use crate::lanes;
use crate::saving::SaveTo;
use crate::specs;

/// What `observe` shows that the surface answers itself.
const COMMANDS: &[&str] = &["command_result", "pending_commands", "failed_commands"];

/// What is done to no tab that was there before.
const ABOUT_NO_TAB: &[&str] =
    &["tab_new", "tabs", "downloads", "dialog_policy", "engine", "webmcp", "end_script"];

/// What names a tab and does not work in it: to close a tab is not to work there.
const WORKS_IN_NO_TAB: &[&str] = &["tab_close", "record_stop", "recording"];

/// What is beside a file in an answer, in bytes.
const ROOM_BESIDE: usize = 128 * 1024;

/// A tool of the set.
pub(crate) struct Named {
    name: &'static str,
    /// The argument that says what is asked for.
    pub(crate) chooser: &'static str,
    /// What can be asked for.
    pub(crate) entries: &'static [Entry],
    /// What else can be asked for, and is answered elsewhere.
    pub(crate) also: &'static [&'static str],
}

const TOOLS: &[Named] = &[
    Named { name: specs::INTERACT, chooser: "action", entries: ACTIONS, also: &[] },
    Named { name: specs::OBSERVE, chooser: "what", entries: VIEWS, also: COMMANDS },
    Named { name: specs::END, chooser: "what", entries: ENDINGS, also: &[] },
    Named { name: specs::CONFIGURE, chooser: "what", entries: SETTINGS, also: &[] },
];

/// What a task asks of the browser.
#[derive(Debug)]
pub(crate) struct Order {
    /// The action or the view.
    pub(crate) what: String,
    /// The browser, where the caller named one.
    pub(crate) browser: Option<Arc<str>>,
    /// The tab, where one was named or chosen.
    pub(crate) tab_id: Option<i64>,
    /// Whether it is done to a tab.
    is_about_a_tab: bool,
    /// The file that the output goes into, where one was named.
    pub(crate) save_to: Option<SaveTo>,
    /// What goes over the wire.
    pub(crate) params: Json,
}

impl Order {
    /// Reads the order from the inputs of a task that was placed.
    pub(crate) fn of(tool: &str, lane: &LaneId, inputs: &Json) -> Result<Self, Error> {
        let unread = |error: &dyn std::fmt::Display| {
            Error::new(Kind::InvalidRequest, format!("the command cannot be read: {error}"))
        };
        let Named { chooser, .. } = named(tool)?;
        let mut members: BTreeMap<String, Box<RawValue>> =
            inputs.read().map_err(|error| unread(&error))?;
        let chosen = members.remove(*chooser).ok_or_else(|| unread(&"it asks for nothing"))?;
        let what: String = serde_json::from_str(chosen.get()).map_err(|error| unread(&error))?;
        members.insert("action".to_owned(), chosen);
        let arguments = Arguments::read(inputs)?;
        members.remove("save_to");
        Ok(Self {
            is_about_a_tab: !ABOUT_NO_TAB.contains(&what.as_str()),
            what,
            browser: arguments.text("browser_id").map(Arc::from),
            save_to: arguments
                .text("save_to")
                .map(|name| SaveTo { name: name.into(), is_one: arguments.has("id") }),
            tab_id: arguments.whole("tab_id").or_else(|| lanes::tab_of(lane)),
            params: Json::of(&members).map_err(|error| unread(&error))?,
        })
    }

    /// Takes the tab of its caller where it names none. Tells whether the caller gave its tab up, so that the
    /// browser has to find one anew.
    pub(crate) fn take_tab(&mut self, choice: Option<&Choice>) -> bool {
        if !self.is_about_a_tab {
            return false;
        }
        match choice {
            Some(choice @ Choice::Tab(..))
                if self.tab_id.is_none() && !choice.is_in(self.browser.as_deref()) =>
            {
                false
            }
            Some(Choice::Tab(tab, browser)) => {
                if *self.tab_id.get_or_insert(*tab) == *tab && self.browser.is_none() {
                    self.browser.clone_from(browser);
                }
                false
            }
            Some(Choice::Front) => self.tab_id.is_none(),
            None => false,
        }
    }
}

impl Order {
    /// Lets the extension tell what authenticates somebody.
    pub(crate) fn show_credentials(&mut self) {
        self.tell("shows_credentials", RawValue::TRUE);
    }

    /// Has the extension hand over the events of a trace, where a file for them is named: as many as an
    /// answer of at most `max_body` bytes has room for beside its summary.
    pub(crate) fn ask_for_raw(&mut self, max_body: usize) {
        if self.what == "trace_stop" && self.save_to.is_some() {
            // In base64 four bytes stand for three.
            let room = max_body.saturating_sub(ROOM_BESIDE) / 4 * 3;
            if let Ok(room) = RawValue::from_string(room.to_string()) {
                self.tell("raw", &room);
            }
        }
    }

    /// Puts the values of a recorded script into its steps, so that no extension has to. A step or a field that got one
    /// says `secret: true`: a recording of the replay notes a name in its place again.
    pub(crate) fn put_values(&mut self) {
        if self.what != "batch" {
            return;
        }
        let Ok(mut params) = self.params.read::<Map<String, Value>>() else { return };
        let Some(Value::Object(values)) = params.remove("values") else { return };
        let steps = params.get_mut("steps").and_then(Value::as_array_mut);
        for step in steps.into_iter().flatten() {
            put_into(step, &["text", "value"], &values);
            let fields = step.get_mut("fields").and_then(Value::as_array_mut);
            for field in fields.into_iter().flatten() {
                put_into(field, &["value"], &values);
            }
        }
        if let Ok(params) = Json::of(&params) {
            self.params = params;
        }
    }

    fn tell(&mut self, name: &str, value: &RawValue) {
        let members: Result<BTreeMap<String, &RawValue>, _> = self.params.read();
        let Ok(mut members) = members else { return };
        members.insert(name.to_owned(), value);
        if let Ok(params) = Json::of(&members) {
            self.params = params;
        }
    }
}

/// Puts values in the place of their names.
fn put_into(given: &mut Value, members: &[&str], values: &Map<String, Value>) {
    let Some(given) = given.as_object_mut() else { return };
    let mut is_secret = false;
    for member in members {
        let Some(Value::String(text)) = given.get_mut(*member) else { continue };
        if let Some(value) = name_in(text).and_then(|name| values.get(name)?.as_str()) {
            value.clone_into(text);
            is_secret = true;
        }
    }
    if is_secret {
        given.insert("secret".to_owned(), Value::Bool(true));
    }
}

/// Tells whether the tab of a command is its caller's from then on.
pub(crate) fn works_in_a_tab(what: &str) -> bool {
    !ABOUT_NO_TAB.contains(&what) && !WORKS_IN_NO_TAB.contains(&what)
}

/// Finds a tool by its name.
pub(crate) fn named(tool: &str) -> Result<&'static Named, Error> {
    TOOLS
        .iter()
        .find(|known| known.name == tool)
        .ok_or_else(|| Error::new(Kind::UnknownTool, format!("the browser has no tool `{tool}`")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_values_of_a_script_are_in_its_steps_before_any_extension_has_it() {
        // [BROWSER-59]
        let inputs = json!({
            "action": "batch",
            "values": { "word": "s3cret", "other": "{{secret:word}}", "unused": null },
            "steps": [
                { "action": "fill", "selector": "{{secret:word}}", "text": "{{secret:word}}" },
                { "action": "fill_form", "fields": [
                    { "ref": "e1", "value": "{{secret:other}}" }, { "ref": "e2", "value": "Ada" },
                ] },
                { "action": "fill", "ref": "e4", "text": "say {{secret:word}}" },
                { "action": "click", "ref": "e3" },
            ],
        });
        let inputs = Json::of(&inputs).expect("JSON");
        let mut order = Order::of(specs::INTERACT, &LaneId::from("7"), &inputs).expect("an order");
        order.put_values();
        let params: Value = order.params.read().expect("JSON");
        let steps = json!([
            { "action": "fill", "selector": "{{secret:word}}", "text": "s3cret", "secret": true },
            { "action": "fill_form", "fields": [
                { "ref": "e1", "value": "{{secret:word}}", "secret": true },
                { "ref": "e2", "value": "Ada" },
            ] },
            { "action": "fill", "ref": "e4", "text": "say {{secret:word}}" },
            { "action": "click", "ref": "e3" },
        ]);
        assert_eq!(params, json!({ "action": "batch", "steps": steps }));
    }

    #[test]
    fn the_tab_of_one_browser_is_none_of_another_one() {
        // [BROWSER-7]
        let lane = LaneId::from(lanes::CONTROL);
        for (of, named, tab) in [
            (Some("a"), Some("b"), None),
            (Some("a"), Some("a"), Some(7)),
            (Some("a"), None, Some(7)),
            (None, Some("b"), Some(7)),
        ] {
            let inputs = json!({ "action": "tab_select", "browser_id": named });
            let inputs = Json::of(&inputs).expect("JSON");
            let mut order = Order::of(specs::INTERACT, &lane, &inputs).expect("an order");
            order.take_tab(Some(&Choice::Tab(7, of.map(Arc::from))));
            assert_eq!(order.tab_id, tab, "{of:?} {named:?}");
            assert_eq!(order.browser.as_deref(), named.or(of));
        }
    }

    #[test]
    fn what_a_caller_recorded_is_asked_of_the_browser_of_its_tab() {
        // [BROWSER-58, BROWSER-7]
        let choice = Choice::Tab(7, Some("b".into()));
        let lane = LaneId::from(lanes::CONTROL);
        for (tool, inputs, browser) in [
            (specs::INTERACT, r#"{"action":"record_stop"}"#, Some("b")),
            (specs::OBSERVE, r#"{"what":"recording"}"#, Some("b")),
            (specs::OBSERVE, r#"{"what":"tabs"}"#, None),
        ] {
            let inputs = Json::parse(inputs).expect("JSON");
            let mut order = Order::of(tool, &lane, &inputs).expect("an order");
            assert!(!order.take_tab(Some(&choice)));
            assert_eq!(order.browser.as_deref(), browser, "{}", order.what);
        }
    }
}
