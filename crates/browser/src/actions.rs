//! What a browser can be asked to do or to show, and what each of these takes: the only list.

use crate::arguments::Form::{
    Address, Count, Flag, List, Members, Name, Number, Object, OneOf, Setting, Tab, Text,
};
use crate::arguments::{Field, Form, Shape, may, needs};

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
    /// All of them, or none.
    Together(&'static [&'static str]),
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

/// The same, where there is output that may go into a file.
pub(crate) const WHERE_TO: &[Field] =
    &[may("tab_id", Tab), may("browser_id", Name), may("save_to", Text)];

/// What a list from memory takes beside its own.
pub(crate) const TO: &[Field] = &[may("save_to", Text)];

/// Whether the answer tells what an act changed in the page.
const CHANGES: Field = may("changes", Flag);

/// What names a part of a page.
const PART: &[&str] = &["ref", "selector"];
const TARGET: Rule = Rule::One(PART);
const BUTTONS: &[&str] = &["left", "right", "middle"];
const MODIFIERS: Form = OneOf(&["Alt", "Control", "Meta", "Shift"]);

/// The most files of one upload.
const MAX_FILES: usize = 20;

/// The most fields of one form.
const MAX_FIELDS: usize = 100;

/// The most steps of one batch.
const MAX_STEPS: usize = 50;

/// Where a drag begins or ends: at an element, or at a point of what is shown.
const PLACE: Shape = Shape {
    fields: &[may("ref", Name), may("selector", Text), may("x", Number), may("y", Number)],
    one_of: &[&["ref"], &["selector"], &["x", "y"]],
};

/// A field of a form and what it is set to.
const FIELD: Shape = Shape {
    fields: &[may("ref", Name), may("selector", Text), needs("value", Setting)],
    one_of: &[&["ref"], &["selector"]],
};

/// What a page is shown in.
const VIEWPORT: Shape = Shape {
    fields: &[
        needs("width", Count(10_000)),
        needs("height", Count(10_000)),
        may("scale", Number),
        may("mobile", Flag),
    ],
    one_of: &[],
};

const DEVICES: &[&str] = &["phone", "iphone", "tablet", "laptop", "desktop"];
const NETWORKS: &[&str] = &["offline", "slow_3g", "fast_3g", "slow_4g", "fast_4g"];

const STATES: &[&str] = &["visible", "hidden", "attached"];

const fn entry(name: &'static str, place: Place, fields: &'static [Field], rule: Rule) -> Entry {
    Entry { name, place, fields, rule }
}

/// The actions of `interact`.
pub(crate) const ACTIONS: &[Entry] = &[
    entry("execute_js", Place::Tab, &[needs("script", Text), CHANGES], Rule::None),
    entry("navigate", Place::Tab, &[needs("url", Address), CHANGES], Rule::None),
    entry("back", Place::Tab, &[CHANGES], Rule::None),
    entry("forward", Place::Tab, &[CHANGES], Rule::None),
    entry("reload", Place::Tab, &[CHANGES], Rule::None),
    entry(
        "tab_new",
        Place::Control,
        &[may("url", Address), may("background", Flag), CHANGES],
        Rule::None,
    ),
    entry("tab_close", Place::Control, &[], Rule::None),
    entry("tab_select", Place::Control, &[], Rule::None),
    entry(
        "click",
        Place::Tab,
        &[
            may("ref", Name),
            may("selector", Text),
            may("button", OneOf(BUTTONS)),
            may("count", Count(3)),
            may("modifiers", List(&MODIFIERS, 4)),
            CHANGES,
        ],
        TARGET,
    ),
    entry(
        "drag",
        Place::Tab,
        &[needs("from", Object(&PLACE)), needs("to", Object(&PLACE)), CHANGES],
        Rule::None,
    ),
    entry("hover", Place::Tab, &[may("ref", Name), may("selector", Text), CHANGES], TARGET),
    entry(
        "type",
        Place::Tab,
        &[
            may("ref", Name),
            may("selector", Text),
            needs("text", Text),
            may("origin", Text),
            CHANGES,
        ],
        TARGET,
    ),
    entry(
        "fill",
        Place::Tab,
        &[
            may("ref", Name),
            may("selector", Text),
            needs("text", Text),
            may("origin", Text),
            CHANGES,
        ],
        TARGET,
    ),
    entry("press", Place::Tab, &[needs("key", Name), may("origin", Text), CHANGES], Rule::None),
    entry(
        "select",
        Place::Tab,
        &[may("ref", Name), may("selector", Text), needs("value", Text), CHANGES],
        TARGET,
    ),
    entry(
        "fill_form",
        Place::Tab,
        &[needs("fields", List(&Object(&FIELD), MAX_FIELDS)), may("origin", Text), CHANGES],
        Rule::None,
    ),
    entry(
        "upload",
        Place::Tab,
        &[may("ref", Name), may("selector", Text), needs("files", List(&Text, MAX_FILES)), CHANGES],
        TARGET,
    ),
    entry(
        "scroll",
        Place::Tab,
        &[may("ref", Name), may("selector", Text), may("x", Number), may("y", Number), CHANGES],
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
            may("network_idle", Flag),
        ],
        Rule::Some(&["selector", "text", "url", "ref", "network_idle"]),
    ),
    entry(
        "emulate",
        Place::Tab,
        &[
            may("viewport", Object(&VIEWPORT)),
            may("device", OneOf(DEVICES)),
            may("network", OneOf(NETWORKS)),
            may("cpu", Count(100)),
            CHANGES,
        ],
        Rule::None,
    ),
    entry("trace_start", Place::Tab, &[], Rule::None),
    entry("trace_stop", Place::Tab, &[], Rule::None),
    entry(
        "page_tools",
        Place::Tab,
        &[
            may("name", Name),
            may("arguments", Members),
            may("origin", Text),
            may("schema_hash", Name),
            CHANGES,
        ],
        Rule::Together(&["name", "origin", "schema_hash"]),
    ),
    entry("record_start", Place::Tab, &[], Rule::None),
    entry("record_stop", Place::Control, &[], Rule::None),
    entry(
        "batch",
        Place::Tab,
        &[
            needs("steps", List(&Members, MAX_STEPS)),
            may("values", Members),
            may("recorded", Members),
            CHANGES,
        ],
        Rule::None,
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
            may("since", Name),
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
    entry("pdf", Place::Tab, &[], Rule::None),
    entry("tabs", Place::Control, &[may("filter", Text)], Rule::None),
    entry("storage", Place::Tab, &[], Rule::None),
    entry("cookies", Place::Tab, &[], Rule::None),
    entry(
        "downloads",
        Place::Control,
        &[may("filter", Text), may("id", Name)],
        Rule::AtMostOne(&["filter", "id"]),
    ),
    entry("request", Place::Control, &[needs("id", Name)], Rule::None),
    entry("recording", Place::Control, &[], Rule::None),
    entry(
        "console",
        Place::Here,
        &[
            may("filter", Text),
            may("cursor", Name),
            may("limit", Count(1000)),
            may("tab_id", Tab),
            may("browser_id", Name),
            may("level", OneOf(crate::rings::LEVELS)),
            may("since", OneOf(&["navigation"])),
        ],
        Rule::None,
    ),
    entry("network", Place::Here, LISTED, Rule::None),
    entry("dialogs", Place::Here, LISTED, Rule::None),
    entry("events", Place::Here, LISTED, Rule::None),
    entry("health", Place::Here, &[], Rule::None),
];

/// What `cancel` asks of a browser, beside the commands themselves.
pub(crate) const ENDINGS: &[Entry] =
    &[entry("end_script", Place::Control, &[needs("of", Name)], Rule::None)];

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
    entry("webmcp", Place::Control, &[needs("shim", Flag)], Rule::None),
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
