//! What common clients, and the APIs behind them, refuse of tools that the protocol allows.
//!
//! A tool that a client drops is dropped in silence, sometimes with every other tool of its server: that is
//! said when the file is written.

use raincheck_core::tool::ToolSpec;
use serde_json::Value;

use super::File;

/// Names up to this many letters have room before them for what clients put there: `mcp__SERVER__`.
const SURE_NAME: usize = 45;

/// The longest name of an argument that APIs take.
const SURE_PROPERTY: usize = 64;

/// What may not stand at the top of a schema.
const CHOICES: [&str; 6] = ["oneOf", "anyOf", "allOf", "not", "enum", "$ref"];

/// Deeper schemas are not looked into.
const DEPTH: usize = 64;

/// Returns what common clients refuse of the tools of a file, a line for each.
#[must_use]
pub fn refused(file: &File) -> Vec<String> {
    file.tools.iter().flat_map(|tool| of_tool(&tool.spec)).collect()
}

fn of_tool(spec: &ToolSpec) -> Vec<String> {
    let name = spec.name.as_str();
    let mut found = Vec::new();
    if name.contains('.') {
        found.push(
            "a name with a dot: several clients take letters, digits, _ and - alone, and refuse the tool or the \
             whole list"
                .to_owned(),
        );
    }
    if name.len() > SURE_NAME {
        found.push(format!(
            "a name of {} letters: with what clients put before it, such as mcp__raincheck__, it is longer than \
             the 64 that several take",
            name.len()
        ));
    }
    let schema: Value = spec.input_schema.read().unwrap_or_default();
    for word in CHOICES.iter().filter(|word| schema.get(**word).is_some()) {
        found.push(format!(
            "`{word}` at the top of input_schema: large APIs refuse such a tool; say it in the description, and \
             leave the check to the program"
        ));
    }
    look(&schema, &mut String::from("input_schema"), 0, &mut found);
    found.into_iter().map(|what| format!("tool `{name}` has {what}")).collect()
}

/// Looks below a schema for what large APIs refuse anywhere.
fn look(schema: &Value, path: &mut String, depth: usize, found: &mut Vec<String>) {
    if depth > DEPTH {
        return;
    }
    let is_array = match schema.get("type") {
        Some(Value::String(one)) => one == "array",
        Some(Value::Array(some)) => some.iter().any(|one| one == "array"),
        Some(_) | None => false,
    };
    if is_array && schema.get("items").is_none() && schema.get("prefixItems").is_none() {
        found.push(format!("an array without `items` ({path}), which several APIs refuse"));
    }
    let words = schema.get("enum").and_then(Value::as_array);
    if words.is_some_and(|words| !words.iter().all(Value::is_string)) {
        found.push(format!(
            "an `enum` of other values than strings ({path}), which some APIs refuse"
        ));
    }
    for (name, below) in members(schema, "properties") {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if name.is_empty() || name.len() > SURE_PROPERTY || !name.chars().all(is_plain) {
            found.push(format!(
                "an argument `{name}` ({path}): large APIs take up to {SURE_PROPERTY} letters, digits, _, . and -"
            ));
        }
        step(below, name, path, depth, found);
    }
    if let Some(items) = schema.get("items") {
        step(items, "items", path, depth, found);
    }
    for (name, below) in members(schema, "$defs") {
        step(below, name, path, depth, found);
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        for below in schema.get(word).and_then(Value::as_array).into_iter().flatten() {
            step(below, word, path, depth, found);
        }
    }
}

fn step(below: &Value, name: &str, path: &mut String, depth: usize, found: &mut Vec<String>) {
    let end = path.len();
    path.push('.');
    path.push_str(name);
    look(below, path, depth + 1, found);
    path.truncate(end);
}

fn members<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema.get(name).and_then(Value::as_object).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use raincheck_core::content::Json;

    use super::*;

    fn found(name: &str, schema: &str) -> Vec<String> {
        of_tool(&ToolSpec::new(name, "Words", Json::parse(schema).expect("JSON")))
    }

    #[test]
    fn names_that_clients_refuse_are_named() {
        // Case mcp-tool-names-that-clients-refuse.
        let plain = r#"{"type":"object"}"#;
        assert_eq!(found("graph_list", plain), Vec::<String>::new());
        let dotted = found("graph.list", plain);
        assert!(dotted.len() == 1 && dotted[0].contains("`graph.list`"), "{dotted:?}");
        assert_eq!(found(&"x".repeat(45), plain), Vec::<String>::new());
        assert!(found(&"x".repeat(46), plain)[0].contains("46 letters"));
    }

    #[test]
    fn schemas_that_large_apis_refuse_are_named_with_the_place() {
        // Case mcp-schema-with-choice-at-the-top.
        let choice = r#"{"type":"object","properties":{"a":{"type":"string"}},"oneOf":[{"required":["a"]},{}]}"#;
        let choice = found("pick", choice);
        assert!(choice.len() == 1 && choice[0].contains("`oneOf` at the top"), "{choice:?}");
        for (schema, part) in [
            (r#"{"properties":{"a":{"type":"array"}}}"#, "(input_schema.a)"),
            (r#"{"properties":{"a":{"type":["array","null"]}}}"#, "without `items`"),
            (r#"{"properties":{"a":{"items":{"enum":[1,2]}}}}"#, "(input_schema.a.items)"),
            (r#"{"properties":{"größe":{}}}"#, "`größe`"),
            (r#"{"properties":{"a":{"anyOf":[{"type":"array"}]}}}"#, "(input_schema.a.anyOf)"),
            (r#"{"$defs":{"d":{"type":"array"}}}"#, "(input_schema.d)"),
        ] {
            let found = found("t", schema);
            assert!(found.len() == 1 && found[0].contains(part), "{schema}: {found:?}");
        }
        let sound = r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"oneOf":[{"type":"string"},{"type":"integer"}]}}}"#;
        assert_eq!(found("t", sound), Vec::<String>::new());
    }
}
