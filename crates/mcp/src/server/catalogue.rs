//! What `tools/list` shows: the same on every connection.

use std::sync::{Arc, OnceLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};

use raincheck_core::content::Json;
use raincheck_core::text;
use raincheck_core::tool::{Hints, ToolSpec};

use crate::tools::canonical;

/// The list of tools, made once.
#[derive(Debug, Default)]
pub(super) struct Catalogue(OnceLock<Vec<Tool>>);

impl Catalogue {
    /// Returns our own tools, then the engine's in their order; one that has the name of ours can
    /// never be called, and is not shown.
    pub(super) fn tools(&self, specs: &[ToolSpec]) -> Vec<Tool> {
        let is_own = |spec: &&ToolSpec| canonical::Tool::find(spec.name.as_str()).is_some();
        let others = specs.iter().filter(|spec| !is_own(spec)).map(of_spec);
        self.0.get_or_init(|| canonical_tools().chain(others).collect()).clone()
    }
}

fn canonical_tools() -> impl Iterator<Item = Tool> {
    canonical::Tool::ALL.iter().map(|tool| {
        let definition = tool.definition();
        Tool::new(tool.name(), definition.description, object(definition.schema))
            .with_title(definition.title)
            .with_annotations(annotations(definition.hints))
    })
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
