//! A message as the line that goes out.
//!
//! An object that stands in the text of an answer goes out a second time as `structuredContent`, with
//! the bytes of the text: members keep their order, so that what stands inside of a fence stays there.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ContentBlock, CustomNotification, CustomResult, InputRequiredResult,
    JsonRpcMessage, JsonRpcVersion2_0, MetaObject, RequestId, ResultType, ServerNotification,
    ServerResult,
};
use rmcp::service::TxJsonRpcMessage;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use raincheck_core::content::Json;

/// Holds an answer of a layer: the text of its JSON, which [`to_line`] writes as it is.
pub(super) fn verbatim(answer: &Json) -> CustomResult {
    CustomResult::new(Value::String(answer.get().to_owned()))
}

/// Holds what a call is answered with that asks its client something: the text of its JSON, which [`to_line`]
/// writes as it is. The protocol's own type would read the questions and write them anew.
pub(super) fn verbatim_round(answer: &Json) -> InputRequiredResult {
    InputRequiredResult::from_request_state(answer.get())
}

/// Holds a notification of a layer: the text of its parameters, which [`to_line`] writes as it is.
pub(super) fn verbatim_note(method: &str, params: &Json) -> CustomNotification {
    CustomNotification::new(method, Some(Value::String(params.get().to_owned())))
}

/// Requests whose results say since 2026-07-28 how long they hold, and for whom.
const CACHEABLE: [&str; 4] =
    ["prompts/list", "resources/list", "resources/read", "resources/templates/list"];

/// Adds to a layer's answer what a result has to say since 2026-07-28, where it does not say it itself.
pub(super) fn completed(result: CustomResult, method: &str) -> CustomResult {
    let CustomResult(Value::String(text)) = &result else { return result };
    let members: Result<BTreeMap<Cow<'_, str>, IgnoredAny>, _> = serde_json::from_str(text);
    let (Ok(members), Some(rest)) = (members, text.trim_start().strip_prefix('{')) else {
        return result;
    };
    let is_cacheable = CACHEABLE.contains(&method);
    let wanted = [
        (true, "resultType", r#""complete""#),
        (is_cacheable, "ttlMs", "0"),
        (is_cacheable, "cacheScope", r#""private""#),
    ];
    let missing: String = wanted
        .into_iter()
        .filter(|(is_wanted, name, _)| *is_wanted && !members.contains_key(*name))
        .map(|(_, name, value)| format!(r#""{name}":{value},"#))
        .collect();
    let missing = if members.is_empty() { missing.trim_end_matches(',') } else { &missing };
    CustomResult::new(Value::String(format!("{{{missing}{rest}")))
}

/// Writes a message as a line, with its end.
pub(crate) fn to_line(message: &TxJsonRpcMessage<RoleServer>) -> Option<Vec<u8>> {
    if let JsonRpcMessage::Response(response) = message {
        let (jsonrpc, id) = (&response.jsonrpc, &response.id);
        if let ServerResult::CallToolResult(result) = &response.result
            && let Some(result) = Call::structured(result)
        {
            return written(&Response { jsonrpc, id, result });
        }
        // No result of the protocol is a string: it is the text of one.
        if let ServerResult::CustomResult(CustomResult(Value::String(text))) = &response.result {
            let result: &RawValue = serde_json::from_str(text).ok()?;
            return written(&Response { jsonrpc, id, result });
        }
        if let ServerResult::InputRequiredResult(result) = &response.result
            && let (None, Some(text)) = (&result.input_requests, &result.request_state)
        {
            let result: &RawValue = serde_json::from_str(text).ok()?;
            return written(&Response { jsonrpc, id, result });
        }
    }
    if let JsonRpcMessage::Notification(note) = message
        && let ServerNotification::CustomNotification(note) = &note.notification
        && let Some(Value::String(text)) = &note.params
    {
        let params: &RawValue = serde_json::from_str(text).ok()?;
        return written(&Notice { jsonrpc: "2.0", method: &note.method, params });
    }
    written(message)
}

/// Writes the result of a call as [`to_line`] does.
pub(super) fn of_call(result: &CallToolResult) -> Json {
    let written = match Call::structured(result) {
        Some(structured) => Json::of(&structured),
        None => Json::of(result),
    };
    // Strings and JSON that was read can always be written.
    written.unwrap_or_else(|_| Json::null())
}

/// Writes anything as a line, with its end.
pub(crate) fn written(message: &impl Serialize) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(message)
        .inspect_err(|error| tracing::error!(%error, "an answer could not be written"))
        .ok()?;
    line.push(b'\n');
    Some(line)
}

#[derive(Serialize)]
struct Response<'a, R> {
    jsonrpc: &'a JsonRpcVersion2_0,
    id: &'a RequestId,
    result: R,
}

#[derive(Serialize)]
struct Notice<'a> {
    jsonrpc: &'static str,
    method: &'a str,
    params: &'a RawValue,
}

/// The result of a call as the protocol has it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'a ResultType>,
    content: &'a [ContentBlock],
    #[serde(rename = "structuredContent")]
    structured: Structured<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a MetaObject>,
}

impl<'a> Call<'a> {
    /// Takes a result that holds an object a second time; `None` for any other.
    fn structured(result: &'a CallToolResult) -> Option<Self> {
        Some(Self {
            result_type: result.result_type.as_ref(),
            content: &result.content,
            structured: Structured::of(result)?,
            is_error: result.is_error,
            meta: result.meta.as_ref(),
        })
    }
}

/// The object: the text itself, or the list that it is under a name.
struct Structured<'a> {
    name: Option<&'a str>,
    text: &'a RawValue,
}

impl<'a> Structured<'a> {
    /// Takes the text of a result that is to be structured as well.
    fn of(result: &'a CallToolResult) -> Option<Self> {
        let members = result.structured_content.as_ref()?.as_object()?;
        let text = result.content.first()?.as_text()?;
        let text = serde_json::from_str(&text.text).ok()?;
        Some(Self { name: members.keys().next().map(String::as_str), text })
    }
}

impl Serialize for Structured<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(name) = self.name else { return self.text.serialize(serializer) };
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(name, self.text)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_says_what_its_revision_asks_for_and_keeps_its_own_bytes() {
        // [HTTP-2]
        let completed = |text: &str, method| {
            let answer = verbatim(&Json::parse(text).expect("JSON"));
            let CustomResult(Value::String(text)) = completed(answer, method) else {
                panic!("no text")
            };
            text
        };
        let list = completed(r#"{ "resources":[],"n":1.0}"#, "resources/list");
        assert_eq!(
            list,
            r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private", "resources":[],"n":1.0}"#
        );
        assert_eq!(completed("{}", "tasks/cancel"), r#"{"resultType":"complete"}"#);
        let own = r#"{"ttlMs":5,"resultType":"task","cacheScope":"public"}"#;
        assert_eq!(completed(own, "resources/read"), own);
        assert_eq!(completed("[1]", "resources/read"), "[1]");
    }
}
