//! A tool as it is listed.

use serde_json::{Map, Value};

use raincheck_core::content::Json;
use raincheck_core::text;
use raincheck_core::tool::{Hints, ToolSpec};

/// Above this many bytes clients cut a description.
const MAX_DESCRIPTION: usize = 2000;

/// What `tools/list` says of a tool.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The name callers use.
    pub name: String,
    /// A title for people.
    pub title: String,
    /// What it does, in under 400 characters.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Json,
    /// What a client may assume.
    pub hints: Hints,
    /// What its surface says beside that, an object for its `_meta`.
    pub meta: Option<Json>,
}

impl Shown {
    /// Shows a tool of the engine.
    #[must_use]
    pub fn of(spec: &ToolSpec) -> Self {
        Self {
            name: spec.name.to_string(),
            title: spec.title.to_string(),
            description: text::clip(&spec.description, MAX_DESCRIPTION).to_owned(),
            schema: spec.input_schema.clone(),
            hints: spec.hints,
            meta: spec.meta.clone(),
        }
    }
}

/// What the list says beside a tool that clients are to show their model from the beginning.
const ALWAYS_LOADED: &str = "anthropic/alwaysLoad";

impl Shown {
    /// Asks clients that show their model only some tools to show it this one: the way to the others leads
    /// through it [TOOL-9].
    #[must_use]
    pub fn always_loaded(mut self) -> Self {
        let meta = self.meta.as_ref().and_then(|meta| meta.read::<Map<String, Value>>().ok());
        let mut meta = meta.unwrap_or_default();
        meta.insert(ALWAYS_LOADED.to_owned(), Value::Bool(true));
        self.meta = Json::of(&meta).ok();
        self
    }
}

/// What a surface says of a tool of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Definition {
    /// A title for people.
    pub(crate) title: &'static str,
    /// What it does, in under 400 characters.
    pub(crate) description: &'static str,
    /// The JSON Schema of its arguments.
    pub(crate) schema: &'static str,
    /// What a client may assume.
    pub(crate) hints: Hints,
}

impl Definition {
    /// Shows the tool under its name.
    pub(crate) fn shown(self, name: &str) -> Shown {
        Shown {
            name: name.to_owned(),
            title: self.title.to_owned(),
            description: self.description.to_owned(),
            schema: Json::parse(self.schema).unwrap_or_else(|_| Json::empty_object()),
            hints: self.hints,
            meta: None,
        }
    }
}
