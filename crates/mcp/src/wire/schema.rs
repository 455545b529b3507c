//! Inputs checked against a tool's own schema, before anything runs.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jsonschema::{ValidationError, Validator};
use serde::Serialize;
use serde_json::Value;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::ToolName;
use raincheck_core::text;
use raincheck_core::tool::ToolSpec;

/// How many faults one answer names.
const MAX_FAULTS: usize = 5;

/// How many validators are kept.
const MAX_KEPT: usize = 4096;

/// Tells whether a schema can be used for a tool's inputs.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check_schema(schema: &Json) -> Result<(), String> {
    compile(schema).map(|_| ())
}

/// One validator per tool, compiled when it is first needed, and again when its schema is another.
#[derive(Debug, Default)]
pub(crate) struct Validators(Mutex<HashMap<ToolName, Compiled>>);

/// A schema, and what checks it.
#[derive(Clone, Debug)]
struct Compiled {
    schema: Json,
    validator: Arc<Result<Validator, String>>,
}

impl Validators {
    /// Checks inputs. The answer names each fault by its JSON Pointer and never shows a value, so
    /// that a sensitive one cannot come back.
    ///
    /// # Errors
    /// `invalid_params` naming up to five faults.
    pub(crate) fn check(&self, spec: &ToolSpec, inputs: &Value) -> Result<(), Error> {
        if !inputs.is_object() {
            return Err(Error::new(Kind::InvalidParams, "the inputs must be an object"));
        }
        match &*self.validator(spec) {
            Ok(validator) if validator.is_valid(inputs) => Ok(()),
            Ok(validator) => Err(refuse(spec, validator.iter_errors(inputs))),
            Err(reason) => {
                let message = format!("the input schema of `{}` is unusable: {reason}", spec.name);
                Err(Error::new(Kind::InvalidParams, message)
                    .with_hint("correct `input_schema` in the tool's definition"))
            }
        }
    }

    fn validator(&self, spec: &ToolSpec) -> Arc<Result<Validator, String>> {
        let compiled = self.all().get(&spec.name).cloned();
        if let Some(known) = compiled.filter(|known| known.schema == spec.input_schema) {
            return known.validator;
        }
        let validator = Arc::new(compile(&spec.input_schema));
        let compiled =
            Compiled { schema: spec.input_schema.clone(), validator: Arc::clone(&validator) };
        let mut all = self.all();
        if all.len() >= MAX_KEPT {
            // Tools that come and go would fill it.
            all.clear();
        }
        all.insert(spec.name.clone(), compiled);
        validator
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ToolName, Compiled>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn compile(schema: &Json) -> Result<Validator, String> {
    let value: Value = schema.read().map_err(|error| error.to_string())?;
    jsonschema::validator_for(&value).map_err(|error| error.to_string())
}

/// One fault as it is told.
#[derive(Serialize)]
struct Fault {
    pointer: String,
    keyword: String,
    message: String,
}

impl Fault {
    fn of(error: &ValidationError<'_>) -> Self {
        Self {
            pointer: text::escape(error.instance_path().as_str()).into_owned(),
            keyword: error.kind().keyword().to_owned(),
            message: text::escape(text::clip(&error.masked().to_string(), 300)).into_owned(),
        }
    }
}

fn refuse<'a>(spec: &ToolSpec, errors: impl Iterator<Item = ValidationError<'a>>) -> Error {
    let faults: Vec<Fault> = errors.take(MAX_FAULTS).map(|error| Fault::of(&error)).collect();
    let mut message = format!("the inputs do not fit the schema of `{}`:", spec.name);
    for (place, fault) in faults.iter().enumerate() {
        let separator = if place == 0 { "" } else { ";" };
        // Writing to a string cannot fail.
        let _ = match fault.pointer.as_str() {
            "" => write!(message, "{separator} {}", fault.message),
            pointer => write!(message, "{separator} `{pointer}`: {}", fault.message),
        };
    }
    let error = Error::new(Kind::InvalidParams, message);
    #[derive(Serialize)]
    struct Details {
        faults: Vec<Fault>,
    }
    match Json::of(&Details { faults }) {
        Ok(details) => error.with_details(details),
        Err(_) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &str, inputs: &str) -> Result<(), String> {
        let schema = Json::parse(schema).expect("JSON");
        let spec = ToolSpec::new("render", "Renders", schema);
        let inputs = serde_json::from_str(inputs).expect("JSON");
        Validators::default().check(&spec, &inputs).map_err(|error| error.message.to_string())
    }

    const SCHEMA: &str = r#"{"type":"object","properties":{"frames":{"type":"integer"},
        "token":{"type":"string","maxLength":3}},"required":["frames"],"additionalProperties":false}"#;

    #[test]
    fn each_fault_is_named_by_its_pointer_and_no_value_is_shown() {
        assert_eq!(check(SCHEMA, r#"{"frames":7}"#), Ok(()));
        let message =
            check(SCHEMA, r#"{"frames":"many","token":"s3cr3t","other":1}"#).expect_err("faults");
        assert!(message.contains("`/frames`: "), "{message}");
        assert!(message.contains("`/token`: "), "{message}");
        assert!(message.contains("other"), "{message}");
        assert!(!message.contains("many") && !message.contains("s3cr3t"), "{message}");
        let missing = check(SCHEMA, "{}").expect_err("missing");
        assert!(missing.contains("\"frames\" is a required property"), "{missing}");
        assert_eq!(check(SCHEMA, "[]").expect_err("array"), "the inputs must be an object");
    }

    #[test]
    fn a_schema_that_is_none_is_told_as_such() {
        let message = check(r#"{"type":"objekt"}"#, "{}").expect_err("no schema");
        assert!(message.contains("the input schema of `render` is unusable"), "{message}");
        assert!(check_schema(&Json::parse("7").expect("JSON")).is_err());
    }

    #[test]
    fn a_tool_whose_schema_changed_is_checked_against_the_new_one() {
        // [TOOL-3] [GATE-5]
        let spec = |schema| ToolSpec::new("t", "", Json::parse(schema).expect("JSON"));
        let validators = Validators::default();
        let inputs = serde_json::json!({"a": 1});
        let first = spec(r#"{"required":["a"]}"#);
        assert!(validators.check(&first, &inputs).is_ok());
        assert!(validators.check(&spec(r#"{"required":["b"]}"#), &inputs).is_err());
        assert!(validators.check(&first, &inputs).is_ok());
    }

    #[test]
    fn a_number_beyond_every_machine_type_is_an_integer_all_the_same() {
        assert_eq!(check(SCHEMA, r#"{"frames":123456789012345678901234567890}"#), Ok(()));
    }
}
