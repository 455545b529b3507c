//! The JSON Schema of the file, made from the same keys as the checks.

use raincheck_core::error::TABLE;
use serde_json::{Map, Value, json};

use super::form::{Form, in_millis};
use super::keys::{self, Key};

/// Returns the JSON Schema of `raincheck.toml`, for editors.
#[must_use]
pub fn schema() -> Value {
    let properties: Map<String, Value> =
        keys::SECTIONS.iter().map(|(name, about)| ((*name).into(), section(name, about))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "raincheck.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn section(name: &str, about: &str) -> Value {
    let schema = match name {
        "store" => object(&[keys::STORE], &[]),
        "lanes" => each(&object(&[keys::LANE], &[])),
        "defaults" => object(&[keys::POLICY], &[]),
        "tools" => each(&object(&[keys::TOOL, keys::POLICY], &["command"])),
        "wrap" => object(&[keys::WRAP], &[]),
        "wrapped" => each(&object(&[keys::WRAPPED], &[])),
        "browser" => object(&[keys::BROWSER], &[]),
        "unity" => object(&[keys::UNITY], &[]),
        "http" => object(&[keys::HTTP], &[]),
        "cache" => object(&[keys::CACHE], &[]),
        "clients" => {
            let client = object(&[keys::CLIENT_KEYS], &[]);
            each(&json!({ "anyOf": [form(keys::CLIENT), client] }))
        }
        _ => json!({ "type": "object" }),
    };
    described(schema, about)
}

fn object(keys: &[&[Key]], required: &[&str]) -> Value {
    let properties: Map<String, Value> = keys
        .iter()
        .flat_map(|keys| keys.iter())
        .map(|key| (key.name.to_owned(), described(form(key.form), key.about)))
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn each(schema: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": schema })
}

fn described(mut schema: Value, about: &str) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.insert("description".into(), about.into());
    }
    schema
}

fn form(form: Form) -> Value {
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    match form {
        Form::Text => json!({ "type": "string", "minLength": 1 }),
        Form::Flag => json!({ "type": "boolean" }),
        Form::Whole(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Form::Number(min, max) => json!({ "type": "number", "minimum": min, "maximum": max }),
        Form::Seconds(min, max) => {
            let (min, max) = (min.as_secs_f64(), max.as_secs_f64());
            json!({ "type": "number", "minimum": min, "maximum": max })
        }
        Form::Millis(min, max) => {
            json!({ "type": "number", "minimum": in_millis(min), "maximum": in_millis(max) })
        }
        Form::OneOf(words) => json!({ "enum": words }),
        Form::Argv => {
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 })
        }
        Form::ErrorKinds => {
            let kinds: Vec<&str> = TABLE.iter().map(|entry| entry.code).collect();
            json!({ "type": "array", "items": { "enum": kinds } })
        }
        Form::Env => {
            let values = each(&json!({ "type": "string" }));
            json!({ "anyOf": [texts(), values] })
        }
        Form::Pointers => {
            json!({ "type": "array", "items": { "type": "string", "pattern": "^/" } })
        }
        Form::Schema => {
            json!({ "type": "object", "properties": { "type": { "const": "object" } }, "required": ["type"] })
        }
        Form::Texts => texts(),
        Form::Tokens => {
            let from = |key: &str| {
                let text = json!({ "type": "string", "minLength": 1 });
                let properties = json!({ key: text });
                json!({ "type": "object", "properties": properties, "required": [key],
                    "additionalProperties": false })
            };
            each(&json!({ "oneOf": [from("file"), from("env")] }))
        }
        Form::Inputs => json!({ "type": "object" }),
        Form::Tables => json!({ "type": "array", "items": object(&[keys::WARM], &["tool"]) }),
    }
}
