//! What `tools/list` shows: the same on every connection.

use std::sync::{Arc, OnceLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};

use raincheck_core::content::Json;
use raincheck_core::text;
use raincheck_core::tool::{Hints, ToolSpec};

use super::Dialect;
use crate::tools::canonical::Definition;
use crate::tools::{browser, canonical};

/// The list of tools, made once.
#[derive(Debug, Default)]
pub(super) struct Catalogue(OnceLock<Vec<Tool>>);

impl Catalogue {
    /// Returns our own tools, then the engine's in their order; one that has the name of ours can
    /// never be called, and is not shown.
    pub(super) fn tools(&self, dialect: Dialect, specs: &[ToolSpec]) -> Vec<Tool> {
        let make = || match dialect {
            Dialect::Canonical => canonical_tools(specs),
            Dialect::Browser => browser_tools(specs),
        };
        self.0.get_or_init(make).clone()
    }
}

fn canonical_tools(specs: &[ToolSpec]) -> Vec<Tool> {
    let own = canonical::Tool::ALL.iter().map(|tool| defined(tool.name(), tool.definition()));
    let is_own = |spec: &&ToolSpec| canonical::Tool::find(spec.name.as_str()).is_some();
    own.chain(specs.iter().filter(|spec| !is_own(spec)).map(of_spec)).collect()
}

fn browser_tools(specs: &[ToolSpec]) -> Vec<Tool> {
    let of_bridge = |name: &str| specs.iter().find(|spec| spec.name.as_str() == name).map(of_spec);
    browser::Tool::ALL
        .iter()
        .filter_map(|tool| match tool.definition() {
            Some(definition) => Some(defined(tool.name(), definition)),
            None => of_bridge(tool.name()),
        })
        .collect()
}

fn defined(name: &'static str, definition: Definition) -> Tool {
    Tool::new(name, definition.description, object(definition.schema))
        .with_title(definition.title)
        .with_annotations(annotations(definition.hints))
}

fn of_spec(spec: &ToolSpec) -> Tool {
    /// Above this many bytes clients cut a description.
    const MAX_DESCRIPTION: usize = 2000;

    let description = text::clip(&spec.description, MAX_DESCRIPTION).to_owned();
    Tool::new(spec.name.to_string(), description, schema_of(&spec.input_schema))
        .with_title(&*spec.title)
        .with_annotations(annotations(spec.hints))
}

/// Reads a schema as the object that the protocol asks for.
fn schema_of(schema: &Json) -> Arc<JsonObject> {
    object(schema.get())
}

fn object(schema: &str) -> Arc<JsonObject> {
    let mut object: JsonObject = serde_json::from_str(schema).unwrap_or_default();
    object.entry("type").or_insert_with(|| "object".into());
    Arc::new(object)
}

fn annotations(hints: Hints) -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world)
}
