//! A tool in the list, in the types of the protocol.

use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};

use raincheck_core::content::Json;
use raincheck_core::tool::Hints;

use crate::surface::{Layer, Shown};

pub(super) fn tool(shown: &Shown, layers: &[Arc<dyn Layer>]) -> Tool {
    let of_layers = layers.iter().filter_map(|layer| layer.meta(shown));
    let mut meta = JsonObject::new();
    for said in shown.meta.iter().cloned().chain(of_layers) {
        meta.extend(said.read::<JsonObject>().unwrap_or_default());
    }
    let Shown { name, title, description, schema, hints, .. } = shown.clone();
    let tool = Tool::new(name, description, object(&schema))
        .with_title(title)
        .with_annotations(annotations(hints));
    if meta.is_empty() { tool } else { tool.with_meta(MetaObject(meta)) }
}

/// Reads a schema as the object that the protocol asks for.
fn object(schema: &Json) -> Arc<JsonObject> {
    let mut object: JsonObject = schema.read().unwrap_or_default();
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
