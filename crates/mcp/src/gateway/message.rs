//! A line of the other server, taken apart without touching what it says.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use raincheck_core::content::Json;

/// What a line says.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    /// The answer to a request of ours: the result, or the error.
    Response { id: u64, outcome: Result<&'a RawValue, &'a RawValue> },
    /// A request of the other server, to be answered under its id.
    Request { id: &'a RawValue, method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// Something that gets no answer.
    Notification { method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// No message, such as what a library prints to standard output.
    Noise,
}

/// The members of a message; others are ignored.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Reads a member that is there as it is, `null` included.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Takes a line apart.
pub(super) fn read(line: &[u8]) -> Incoming<'_> {
    let envelope: Option<Envelope<'_>> = serde_json::from_slice(line).ok();
    let Some(Envelope { id, method, params, result, error }) = envelope else {
        return Incoming::Noise;
    };
    if let Some(method) = method {
        return match id.filter(|id| id.get() != "null") {
            Some(id) => Incoming::Request { id, method, params },
            None => Incoming::Notification { method, params },
        };
    }
    // Ids of ours are numbers; some servers give them back as text.
    let id = id.and_then(|id| id.get().trim_matches('"').parse().ok());
    match (id, error.map(Err).or(result.map(Ok))) {
        (Some(id), Some(outcome)) => Incoming::Response { id, outcome },
        _ => Incoming::Noise,
    }
}

/// The code of an error that stands for an answer that will not come: none of the protocol.
pub(super) const LOST: i64 = -32_098;

/// An error of JSON-RPC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RpcError {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Json>,
}

impl RpcError {
    /// Refuses a method that is not known.
    pub(super) fn no_method(method: &str) -> Self {
        Self { code: -32601, message: format!("method not found: {method}"), data: None }
    }

    pub(super) fn read(raw: &RawValue) -> Self {
        serde_json::from_str(raw.get()).unwrap_or_else(|_| Self {
            code: 0,
            message: "an error that is no object".to_owned(),
            data: Some(Json::from_raw(raw.to_owned())),
        })
    }
}

/// A request of ours.
#[derive(Serialize)]
pub(super) struct Request<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

/// Writes a request, or a notification where there is no id. Nothing is lost where that cannot be written:
/// our own types can.
pub(super) fn request<P: Serialize>(id: Option<u64>, method: &str, params: Option<P>) -> String {
    let request = Request { jsonrpc: "2.0", id, method, params };
    serde_json::to_string(&request).unwrap_or_default()
}

/// Writes the answer to a request of the other server.
pub(super) fn answer(id: &RawValue, outcome: &Result<Json, RpcError>) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Json>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a RpcError>,
    }
    let (result, error) = (outcome.as_ref().ok(), outcome.as_ref().err());
    serde_json::to_string(&Answer { jsonrpc: "2.0", id, result, error }).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> String {
        match read(line.as_bytes()) {
            Incoming::Response { id, outcome } => format!("response {id} {outcome:?}"),
            Incoming::Request { id, method, .. } => format!("request {} {method}", id.get()),
            Incoming::Notification { method, .. } => format!("notification {method}"),
            Incoming::Noise => "noise".to_owned(),
        }
    }

    #[test]
    fn lines_are_told_apart_and_what_is_none_is_noise() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"a":1e2}}"#, "response 7 Ok"),
            (r#"{"jsonrpc":"2.0","id":"7","result":null}"#, "response 7 Ok"),
            (r#"{"jsonrpc":"2.0","id":7,"error":{"code":1}}"#, "response 7 Err"),
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, "request \"a\" ping"),
            (r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, "notification notifications/x"),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#, "noise"),
            ("listening on port 3000", "noise"),
            ("[]", "noise"),
            ("\u{fffd}", "noise"),
        ];
        for (line, expected) in cases {
            assert!(kind(line).starts_with(expected), "{line}: {}", kind(line));
        }
    }
}
