//! A call taken apart: what is for the engine, and what is for the other end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::scope::Scope;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::Request;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::plain;
use crate::caller::SURFACE_CAP;
use crate::wire::read_strictly;

/// How long the caller waits.
pub(super) const TIMEOUT: &str = "timeout";

/// The caller's key of the operation [IDEM-1].
const KEY: &str = "client_request_id";

/// The longest key, in bytes.
const MAX_KEY: usize = 512;

/// A call of a tool of the bridge.
#[derive(Debug)]
pub(super) struct Order {
    /// How long the caller wants to wait.
    pub(super) wait: Option<Duration>,
    /// The caller's key.
    pub(super) key: Option<String>,
    /// What is for the other end, to be checked against the schema of the tool.
    pub(super) value: Value,
    /// The same as it was written.
    inputs: Json,
}

impl Order {
    /// Reads the arguments of a call. `null` is as good as absent.
    pub(super) fn read(arguments: &Json, spec: &ToolSpec) -> Result<Self, Error> {
        let wrong = |words: &str| Error::new(Kind::InvalidParams, words.to_owned());
        let Value::Object(mut values) = read_strictly(arguments, "the arguments")? else {
            return Err(wrong("the arguments must be an object"));
        };
        let mut members: BTreeMap<String, Box<RawValue>> =
            arguments.read().map_err(|error| wrong(&error.to_string()))?;
        values.retain(|_, value| !value.is_null());
        let wait = values.remove(TIMEOUT).map(|value| seconds(&value)).transpose()?;
        let key = values.remove(KEY).map(key).transpose()?;
        members.retain(|name, _| values.contains_key(name));
        if let Ok(schema) = spec.input_schema.read::<Value>() {
            plain::take(&schema, &mut values, &mut members);
        }
        let inputs = Json::of(&members).map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { wait, key, value: Value::Object(values), inputs })
    }

    /// Makes the request to the engine. Waits and keys are no part of the inputs [IDEM-1].
    pub(super) fn request(self, spec: &ToolSpec, scope: Scope) -> Request {
        let mut request = Request::new(spec.name.clone(), self.inputs, scope);
        request.key = self.key.map(Arc::from);
        request
    }
}

/// Reads a `timeout` [TIME-2].
pub(super) fn seconds(value: &Value) -> Result<Duration, Error> {
    let seconds = value.as_f64().filter(|seconds| seconds.is_finite());
    let capped = seconds.map(|seconds| seconds.min(SURFACE_CAP.as_secs_f64()));
    let span = capped.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    span.ok_or_else(|| {
        Error::new(Kind::InvalidParams, "`timeout` must be a number of seconds, 0 or more")
    })
}

fn key(value: Value) -> Result<String, Error> {
    match value {
        Value::String(key) if !key.is_empty() && key.len() <= MAX_KEY => Ok(key),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            let words = format!("`{KEY}` must be a string of 1 to {MAX_KEY} bytes");
            Err(Error::new(Kind::InvalidParams, words))
        }
    }
}

/// Returns the schema of a tool's arguments: its own, and what every operation takes.
pub(super) fn schema(spec: &ToolSpec) -> Json {
    let mut schema: Map<String, Value> = spec.input_schema.read().unwrap_or_default();
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(properties) = properties {
        let wait = spec.wait.as_secs_f64();
        let default = if wait.fract() == 0.0 { json!(spec.wait.as_secs()) } else { json!(wait) };
        let timeout = json!({
            "type": "number", "minimum": 0, "default": default,
            "description": "Seconds to wait, at most 60; the work goes on",
        });
        properties.insert(TIMEOUT.to_owned(), timeout);
        properties.insert(KEY.to_owned(), json!({ "type": "string" }));
    }
    Json::of(&schema).unwrap_or_else(|_| spec.input_schema.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Order, Error> {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
        let spec = ToolSpec::new("t", "Words", Json::parse(schema).expect("JSON"));
        Order::read(&Json::parse(text).expect("JSON"), &spec)
    }

    #[test]
    fn waits_and_keys_are_taken_out_and_the_rest_stays_as_written() {
        // [OPS-2]
        let order = read(
            r#"{"y":1.50,"timeout":2.5,"client_request_id":"k","x":null,"n":"9007199254740993"}"#,
        )
        .expect("an order");
        assert_eq!(order.inputs.get(), r#"{"n":9007199254740993,"y":1.50}"#);
        assert_eq!(order.wait, Some(Duration::from_millis(2500)));
        assert_eq!(order.key.as_deref(), Some("k"));
        assert_eq!(read(r#"{"timeout":null}"#).expect("an order").wait, None);
        assert_eq!(read(r#"{"timeout":1e300}"#).expect("an order").wait, Some(SURFACE_CAP));
    }

    #[test]
    fn what_is_no_time_and_no_key_is_refused_by_its_name() {
        // [TIME-2]
        for (text, name) in [
            (r#"{"timeout":-1}"#, "`timeout`"),
            (r#"{"timeout":"5"}"#, "`timeout`"),
            (r#"{"timeout":true}"#, "`timeout`"),
            (r#"{"timeout":[]}"#, "`timeout`"),
            (r#"{"client_request_id":7}"#, "`client_request_id`"),
            (r#"{"client_request_id":""}"#, "`client_request_id`"),
        ] {
            let error = read(text).expect_err(text);
            assert_eq!(error.kind, Kind::InvalidParams);
            assert!(error.message.contains(name), "{error}");
        }
    }
}
