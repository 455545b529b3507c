//! An entry in JSON, which may have comments and commas at ends.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};

use super::{Entry, Refusal, Value};

/// What some editors begin a file with.
const MARK: char = '\u{feff}';

/// What clients read: comments and commas at ends are more than JSON, the rest is not.
const READ: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Puts an entry in; what is in it beside the start of the server stays.
pub(super) fn put(text: &str, entry: &Entry) -> Result<String, Refusal> {
    edit(text, |root| {
        let servers = match root.get(entry.section) {
            Some(found) => object(&found, entry.section)?,
            None => {
                root.append(entry.section, CstInputValue::Object(Vec::new()));
                root.object_value_or_set(entry.section)
            }
        };
        let Some(found) = servers.get(&entry.name) else {
            let all = entry.start.iter().chain(&entry.beside);
            let all = all.map(|(key, value)| ((*key).to_owned(), written(value))).collect();
            servers.append(&entry.name, CstInputValue::Object(all));
            return Ok(());
        };
        let ours = own(&found, entry)?;
        for (key, value) in &entry.start {
            match ours.get(key) {
                Some(known) if is(&known, value) => {}
                Some(known) => known.set_value(written(value)),
                None => drop(ours.append(key, written(value))),
            }
        }
        Ok(())
    })
}

/// Takes an entry out, and what holds the servers if that is empty then.
pub(super) fn take(text: &str, entry: &Entry) -> Result<String, Refusal> {
    edit(text, |root| {
        let Some(section) = root.get(entry.section) else { return Ok(()) };
        let servers = object(&section, entry.section)?;
        let Some(found) = servers.get(&entry.name) else { return Ok(()) };
        own(&found, entry)?;
        found.remove();
        if servers.properties().is_empty() {
            section.remove();
        }
        Ok(())
    })
}

fn edit(
    text: &str,
    change: impl FnOnce(&CstObject) -> Result<(), Refusal>,
) -> Result<String, Refusal> {
    let mark = if text.starts_with(MARK) { "\u{feff}" } else { "" };
    let body = text.trim_start_matches(MARK);
    let is_new = body.trim().is_empty();
    let body = if is_new { "{}\n" } else { body };
    let root = CstRootNode::parse(body, &READ)
        .map_err(|error| Refusal::Broken(format!("it is no JSON: {error}")))?;
    let Some(object) = root.object_value() else {
        return Err(Refusal::Odd("it holds no object".to_owned()));
    };
    change(&object)?;
    let after = root.to_string();
    // Nothing to take out of nothing.
    Ok(if is_new && after == body { text.to_owned() } else { format!("{mark}{after}") })
}

fn object(found: &CstObjectProp, name: &str) -> Result<CstObject, Refusal> {
    let wrong = || Refusal::Odd(format!("`{name}` in it is no object"));
    found.object_value().ok_or_else(wrong)
}

/// Returns an entry if it starts our program.
fn own(found: &CstObjectProp, entry: &Entry) -> Result<CstObject, Refusal> {
    let ours = object(found, &entry.name)?;
    let command = ours.get("command").and_then(|command| command.value()?.to_serde_value());
    let command = command.unwrap_or_default();
    match command.as_str() {
        Some(command) if entry.is_ours(command) => Ok(ours),
        Some(command) => Err(Refusal::Foreign(command.to_owned())),
        None => Err(Refusal::Foreign("none that is named".to_owned())),
    }
}

fn is(known: &CstObjectProp, value: &Value) -> bool {
    let known = known.value().and_then(|known| known.to_serde_value());
    known
        == Some(match value {
            Value::Text(text) => text.as_str().into(),
            Value::List(list) => list.clone().into(),
            Value::Flag(flag) => (*flag).into(),
        })
}

fn written(value: &Value) -> CstInputValue {
    match value {
        Value::Text(text) => CstInputValue::String(text.clone()),
        Value::List(list) => {
            CstInputValue::Array(list.iter().cloned().map(CstInputValue::String).collect())
        }
        Value::Flag(flag) => CstInputValue::Bool(*flag),
    }
}
