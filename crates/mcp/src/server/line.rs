//! A message as the line that goes out.
//!
//! An object that stands in the text of an answer goes out a second time as `structuredContent`, with
//! the bytes of the text: members keep their order, so that what stands inside of a fence stays there.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonRpcMessage, JsonRpcVersion2_0, MetaObject, RequestId,
    ResultType, ServerResult,
};
use rmcp::service::TxJsonRpcMessage;
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::value::RawValue;

/// Writes a message as a line, with its end.
pub(crate) fn to_line(message: &TxJsonRpcMessage<RoleServer>) -> Option<Vec<u8>> {
    if let JsonRpcMessage::Response(response) = message
        && let ServerResult::CallToolResult(result) = &response.result
        && let Some(structured) = Structured::of(result)
    {
        return written(&Response {
            jsonrpc: &response.jsonrpc,
            id: &response.id,
            result: Call {
                result_type: result.result_type.as_ref(),
                content: &result.content,
                structured,
                is_error: result.is_error,
                meta: result.meta.as_ref(),
            },
        });
    }
    written(message)
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
struct Response<'a> {
    jsonrpc: &'a JsonRpcVersion2_0,
    id: &'a RequestId,
    result: Call<'a>,
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
