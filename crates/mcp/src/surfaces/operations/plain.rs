//! Arguments that a client turned into strings, taken as what they plainly mean.
//!
//! Some clients write lists, objects, numbers and flags of arguments as strings. Where a schema says that
//! no string is meant, or the string is the text of a list or an object that the schema takes too, the value in the
//! string stands for it. What is none of what the schema takes is left for the schema to refuse.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// The types that a property may have.
#[derive(Debug, Default)]
struct Types(Vec<String>);

impl Types {
    fn of(property: &Value) -> Self {
        let mut types = Self::default();
        types.add(property);
        types
    }

    fn add(&mut self, schema: &Value) {
        match schema.get("type") {
            Some(Value::String(one)) => self.0.push(one.clone()),
            Some(Value::Array(some)) => {
                self.0.extend(some.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            Some(_) | None => {}
        }
        for word in ["anyOf", "oneOf"] {
            schema
                .get(word)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .for_each(|s| self.add(s));
        }
        if schema.get("enum").or_else(|| schema.get("const")).is_some()
            && schema.get("type").is_none()
        {
            self.0.push("string".to_owned());
        }
    }

    fn has(&self, word: &str) -> bool {
        self.0.iter().any(|known| known == word)
    }

    /// Tells whether a value is of one of the types.
    fn take(&self, value: &Value) -> bool {
        match value {
            Value::Null => self.has("null"),
            Value::Bool(_) => self.has("boolean"),
            Value::Number(number) => {
                self.has("number")
                    || (self.has("integer") && number.as_f64().is_some_and(|n| n.fract() == 0.0))
            }
            Value::String(_) => self.has("string"),
            Value::Array(_) => self.has("array"),
            Value::Object(_) => self.has("object"),
        }
    }

    /// Tells whether a string may stand for a value that it holds.
    fn mean(&self, value: &Value) -> bool {
        let is_nested = matches!(value, Value::Array(_) | Value::Object(_));
        !self.0.is_empty() && self.take(value) && (is_nested || !self.has("string"))
    }
}

/// Replaces, in the arguments of a call, strings by the values that they plainly mean. The digits of a
/// number stay as they were written.
pub(super) fn take(
    schema: &Value,
    values: &mut serde_json::Map<String, Value>,
    members: &mut BTreeMap<String, Box<RawValue>>,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, value) in values.iter_mut() {
        let (Value::String(text), Some(property)) = (&*value, properties.get(name)) else {
            continue;
        };
        let text = text.trim();
        let Ok(meant) = serde_json::from_str::<Value>(text) else { continue };
        if !Types::of(property).mean(&meant) {
            continue;
        }
        let Ok(raw) = RawValue::from_string(text.to_owned()) else { continue };
        members.insert(name.clone(), raw);
        *value = meant;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(property: &Value, argument: &Value) -> String {
        let schema = json!({ "properties": { "x": property } });
        let Value::Object(mut values) = json!({ "x": argument, "y": "[1]" }) else {
            return String::new();
        };
        let text = Value::Object(values.clone()).to_string();
        let mut members = serde_json::from_str(&text).expect("an object");
        take(&schema, &mut values, &mut members);
        assert_eq!(members["y"].get(), "\"[1]\"", "what the schema does not know stays");
        assert_eq!(values["x"].to_string().len(), members["x"].get().len());
        members["x"].get().to_owned()
    }

    #[test]
    fn a_string_is_taken_as_what_it_plainly_means() {
        // [OPS-3]
        let list = json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] });
        for (property, argument, meant) in [
            (&list, json!("[\"A\",\"B\"]"), "[\"A\",\"B\"]"),
            (&list, json!("A"), "\"A\""),
            (&list, json!("7"), "\"7\""),
            (&json!({ "type": ["string", "array"] }), json!("[\"A\"]"), "[\"A\"]"),
            (&json!({ "type": "integer" }), json!("10"), "10"),
            (&json!({ "type": "integer" }), json!("9007199254740993"), "9007199254740993"),
            (&json!({ "type": "integer" }), json!("1.5"), "\"1.5\""),
            (&json!({ "type": "boolean" }), json!("true"), "true"),
            (&json!({ "type": "object" }), json!("{\"a\":1}"), "{\"a\":1}"),
            (&json!({ "type": "string" }), json!("[1]"), "\"[1]\""),
            (&json!({ "enum": ["1", "2"] }), json!("1"), "\"1\""),
            (&json!({}), json!("{\"a\":1}"), "\"{\\\"a\\\":1}\""),
            (&json!({ "type": "integer" }), json!("ten"), "\"ten\""),
        ] {
            assert_eq!(taken(property, &argument), meant, "{property} {argument}");
        }
    }
}
