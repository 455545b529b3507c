//! What a browser can be asked to do or to show, and what each of these takes: the only list.

use crate::arguments::Form::{Address, Count, Flag, Name, Number, OneOf, Tab, Text};
use crate::arguments::{Field, may, needs};

/// Where something is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the lane of its tab.
    Tab,
    /// In the browser, beside the lanes of tabs.
    Control,
    /// From memory.
    Here,
}

/// How many of several arguments must be there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// Nothing more is asked.
    None,
    /// One of them, or none.
    AtMostOne(&'static [&'static str]),
    /// Exactly one of them.
    One(&'static [&'static str]),
    /// At least one of them.
    Some(&'static [&'static str]),
}

/// Something that can be asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) fields: &'static [Field],
    pub(crate) rule: Rule,
}

/// What every entry that goes to a browser takes.
pub(crate) const WHERE: &[Field] = &[may("tab_id", Tab), may("browser_id", Name)];

/// What names a part of a page.
const PART: &[&str] = &["ref", "selector"];
const TARGET: Rule = Rule::One(PART);
const STATES: &[&str] = &["visible", "hidden", "attached"];

const fn entry(name: &'static str, place: Place, fields: &'static [Field], rule: Rule) -> Entry {
    Entry { name, place, fields, rule }
}

/// The actions of `interact`.
pub(crate) const ACTIONS: &[Entry] = &[
    entry("execute_js", Place::Tab, &[needs("script", Text)], Rule::None),
    entry("navigate", Place::Tab, &[needs("url", Address)], Rule::None),
    entry("back", Place::Tab, &[], Rule::None),
    entry("forward", Place::Tab, &[], Rule::None),
    entry("reload", Place::Tab, &[], Rule::None),
    entry("tab_new", Place::Control, &[may("url", Address), may("background", Flag)], Rule::None),
    entry("tab_close", Place::Control, &[], Rule::None),
    entry("tab_select", Place::Control, &[], Rule::None),
    entry("click", Place::Tab, &[may("ref", Name), may("selector", Text)], TARGET),
    entry("hover", Place::Tab, &[may("ref", Name), may("selector", Text)], TARGET),
    entry(
        "type",
        Place::Tab,
        &[may("ref", Name), may("selector", Text), needs("text", Text), may("origin", Text)],
        TARGET,
    ),
    entry(
        "fill",
        Place::Tab,
        &[may("ref", Name), may("selector", Text), needs("text", Text), may("origin", Text)],
        TARGET,
    ),
    entry("press", Place::Tab, &[needs("key", Name)], Rule::None),
    entry(
        "select",
        Place::Tab,
        &[may("ref", Name), may("selector", Text), needs("value", Text)],
        TARGET,
    ),
    entry(
        "scroll",
        Place::Tab,
        &[may("ref", Name), may("selector", Text), may("x", Number), may("y", Number)],
        Rule::Some(&["ref", "selector", "x", "y"]),
    ),
    entry(
        "wait_for",
        Place::Tab,
        &[
            may("selector", Text),
            may("text", Text),
            may("url", Text),
            may("ref", Name),
            may("state", OneOf(STATES)),
        ],
        Rule::Some(&["selector", "text", "url", "ref"]),
    ),
    entry("dialog", Place::Control, &[needs("accept", Flag), may("text", Text)], Rule::None),
];

const LISTED: &[Field] = &[
    may("filter", Text),
    may("cursor", Name),
    may("limit", Count(1000)),
    may("tab_id", Tab),
    may("browser_id", Name),
];

/// What `observe` shows, beside the commands themselves.
pub(crate) const VIEWS: &[Entry] = &[
    entry(
        "snapshot",
        Place::Tab,
        &[
            may("ref", Name),
            may("selector", Text),
            may("depth", Count(1000)),
            may("max_nodes", Count(1_000_000)),
            may("max_bytes", Count(4_000_000)),
        ],
        Rule::AtMostOne(PART),
    ),
    entry(
        "page_text",
        Place::Tab,
        &[may("ref", Name), may("selector", Text)],
        Rule::AtMostOne(PART),
    ),
    entry(
        "screenshot",
        Place::Tab,
        &[may("ref", Name), may("selector", Text), may("full_page", Flag)],
        Rule::AtMostOne(PART),
    ),
    entry("tabs", Place::Control, &[may("filter", Text)], Rule::None),
    entry("console", Place::Here, LISTED, Rule::None),
    entry("network", Place::Here, LISTED, Rule::None),
    entry("dialogs", Place::Here, LISTED, Rule::None),
    entry("events", Place::Here, LISTED, Rule::None),
    entry("health", Place::Here, &[], Rule::None),
];

/// What `configure` sets.
pub(crate) const SETTINGS: &[Entry] = &[
    entry("default_tab", Place::Here, &[], Rule::None),
    entry(
        "dialog_policy",
        Place::Control,
        &[needs("policy", OneOf(&["accept", "dismiss", "report"]))],
        Rule::None,
    ),
    entry(
        "engine",
        Place::Control,
        &[needs("engine", OneOf(&["auto", "debugger", "scripting"]))],
        Rule::None,
    ),
    entry(
        "limits",
        Place::Here,
        &[
            may("result_ttl_s", Number),
            may("accept_ms", Number),
            may("run_ms", Number),
            may("queue_timeout_s", Number),
        ],
        Rule::None,
    ),
    entry(
        "clear",
        Place::Here,
        &[needs("target", OneOf(&["console", "network", "dialogs", "events", "all"]))],
        Rule::None,
    ),
];
