//! The tools that a server lists, as tables of their arguments.

use std::fmt::Write as _;

use anyhow::Context as _;
use serde_json::Value;

/// What a client says to be given the list.
pub(super) const ASK: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","#,
    r#""capabilities":{},"clientInfo":{"name":"xtask","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    "\n",
);

/// Writes a section for each tool of an answer to [`ASK`].
pub(super) fn list(answers: &str) -> anyhow::Result<String> {
    let last = answers.lines().last().context("no answer")?;
    let answer: Value = serde_json::from_str(last)?;
    let tools = answer.pointer("/result/tools").and_then(Value::as_array).context("no tools")?;
    let mut text = String::new();
    for tool in tools {
        let name = tool["name"].as_str().unwrap_or_default();
        let about = tool["description"].as_str().unwrap_or_default();
        let _ = write!(
            text,
            "### `{name}`\n\n{about}\n\n| argument | type | meaning |\n|---|---|---|\n"
        );
        arguments(&mut text, "", &tool["inputSchema"]);
        text.push('\n');
    }
    Ok(text)
}

fn arguments(text: &mut String, prefix: &str, schema: &Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let Some(properties) = schema["properties"].as_object() else { return };
    for (name, property) in properties {
        let needed = if required.contains(&Value::from(name.as_str())) { ", required" } else { "" };
        let _ = writeln!(
            text,
            "| `{prefix}{name}` | {}{needed} | {} |",
            kind(property),
            meaning(property).replace('|', "\\|"),
        );
        arguments(text, &format!("{prefix}{name}."), property);
    }
}

/// Names the type of a value, with its bounds.
pub(super) fn kind(property: &Value) -> String {
    if let Some(words) = property["enum"].as_array() {
        let words: Vec<String> =
            words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    if let Some(kinds) = property["anyOf"].as_array() {
        return kinds.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let mut text = property["type"].as_str().unwrap_or("any").to_owned();
    if text == "array" {
        text = format!("list of {}", kind(&property["items"]));
    }
    let bound = |name: &str| property.get(name).map(number);
    match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => text += &format!(", {least} to {most}"),
        (Some(least), None) => text += &format!(", at least {least}"),
        (None, Some(most)) => text += &format!(", at most {most}"),
        (None, None) => {}
    }
    if let Some(above) = bound("exclusiveMinimum") {
        text += &format!(", above {above}");
    }
    text
}

/// Writes a number as people do, without a fraction of zero.
fn number(value: &Value) -> String {
    let text = value.to_string();
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

fn meaning(property: &Value) -> String {
    let about = property["description"].as_str().unwrap_or_default();
    match property.get("default") {
        Some(default) if about.is_empty() => format!("default {default}"),
        Some(default) => format!("{about} (default {default})"),
        None => about.to_owned(),
    }
}
