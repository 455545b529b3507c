//! One line of JSON-RPC, taken apart without touching the bytes of a tool's arguments.
//!
//! The envelope is read first (`jsonrpc`, `id`, `method`, raw `params`); a `tools/call` keeps its
//! arguments as the text they came in, everything else goes through the types of `rmcp`.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CustomRequest, InitializeRequest,
    JsonObject, ListToolsRequest, PingRequest, RequestId, RequestMetaObject,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use raincheck_core::content::Json;

use crate::connection::Arguments;

/// What a line asks for.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A request, to be answered under its id.
    Request(Box<ClientRequest>, RequestId),
    /// The caller no longer wants the answer to a request.
    Cancelled(RequestId, Option<String>),
    /// The caller is ready to work.
    Initialized,
    /// Something that gets no answer and changes nothing.
    Nothing,
    /// Something that is answered with an error at once.
    Refused(Refusal),
}

/// An error that the transport itself answers.
#[derive(Debug, Serialize)]
pub(crate) struct Refusal {
    jsonrpc: &'static str,
    id: Option<RequestId>,
    error: ErrorData,
}

impl Refusal {
    /// Refuses a request; `None` is an id that cannot be read.
    pub(crate) fn new(id: Option<RequestId>, error: ErrorData) -> Self {
        Self { jsonrpc: "2.0", id, error }
    }

    fn request(id: Option<RequestId>, words: impl Into<Cow<'static, str>>) -> Incoming {
        Incoming::Refused(Self::new(id, ErrorData::invalid_request(words, None)))
    }

    fn params(id: RequestId, words: impl Into<Cow<'static, str>>) -> Incoming {
        Incoming::Refused(Self::new(Some(id), ErrorData::invalid_params(words, None)))
    }
}

/// The members of an envelope; others are ignored.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
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
pub(crate) fn parse(line: &[u8]) -> Incoming {
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => return unreadable(format!("the line is not UTF-8: {error}")),
    };
    if !text.trim_ascii_start().starts_with('{') {
        return match serde_json::from_str::<&RawValue>(text) {
            Err(error) => unreadable(format!("the line is not JSON: {error}")),
            Ok(_) => Refusal::request(None, "a message is one JSON object; batches are not taken"),
        };
    }
    match serde_json::from_str::<Envelope<'_>>(text) {
        Ok(envelope) => open(&envelope),
        Err(error) if error.is_data() => Refusal::request(None, format!("not a message: {error}")),
        Err(error) => unreadable(format!("the line is not JSON: {error}")),
    }
}

fn unreadable(words: String) -> Incoming {
    Incoming::Refused(Refusal::new(None, ErrorData::parse_error(words, None)))
}

fn open(envelope: &Envelope<'_>) -> Incoming {
    let id = envelope.id.map(read_id);
    let known = id.as_ref().and_then(Clone::clone);
    if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Refusal::request(known, "`jsonrpc` must be \"2.0\"");
    }
    let Some(method) = envelope.method else {
        let is_answer = envelope.result.is_some() || envelope.error.is_some();
        return if is_answer {
            Incoming::Nothing
        } else {
            Refusal::request(known, "`method` is missing")
        };
    };
    let Ok(method) = serde_json::from_str::<Cow<'_, str>>(method.get()) else {
        return Refusal::request(known, "`method` must be a string");
    };
    match id {
        None => notification(&method, envelope.params),
        Some(None) => Refusal::request(None, "`id` must be a string or an integer"),
        Some(Some(id)) => request(id, &method, envelope.params),
    }
}

/// Reads an id as it was written: a string, or an integer without fraction or exponent.
fn read_id(raw: &RawValue) -> Option<RequestId> {
    let text = raw.get();
    if text.starts_with('"') {
        return serde_json::from_str::<String>(text).ok().map(|id| RequestId::String(id.into()));
    }
    text.parse().ok().map(RequestId::Number)
}

fn notification(method: &str, params: Option<&RawValue>) -> Incoming {
    /// The members of a cancel that matter.
    #[derive(Deserialize)]
    struct Cancel<'a> {
        #[serde(borrow, rename = "requestId")]
        id: &'a RawValue,
        #[serde(borrow)]
        reason: Option<&'a RawValue>,
    }

    match method {
        "notifications/initialized" => Incoming::Initialized,
        "notifications/cancelled" => {
            let cancel = params.and_then(|raw| serde_json::from_str::<Cancel<'_>>(raw.get()).ok());
            let Some((id, reason)) = cancel.and_then(|c| Some((read_id(c.id)?, c.reason))) else {
                return Incoming::Nothing;
            };
            let reason = reason.and_then(|raw| serde_json::from_str(raw.get()).ok());
            Incoming::Cancelled(id, reason)
        }
        _ => Incoming::Nothing,
    }
}

fn request(id: RequestId, method: &str, params: Option<&RawValue>) -> Incoming {
    if params.is_some_and(|raw| !raw.get().starts_with('{')) {
        return Refusal::params(id, "`params` must be an object");
    }
    let read = match method {
        "tools/call" => call(params),
        "tools/list" => typed::<ListToolsRequest>(method, params),
        "ping" => typed::<PingRequest>(method, params),
        "initialize" => typed::<InitializeRequest>(method, params),
        _ => other(method, params),
    };
    match read {
        Ok(request) => Incoming::Request(Box::new(request), id),
        Err(words) => Refusal::params(id, words),
    }
}

/// Reads a `tools/call`; its arguments stay the text they are, as an extension of the request.
fn call(params: Option<&RawValue>) -> Result<ClientRequest, String> {
    /// The members of a call; others are ignored.
    #[derive(Deserialize)]
    struct Call<'a> {
        name: Option<String>,
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
        #[serde(rename = "_meta")]
        meta: Option<JsonObject>,
    }

    let params = params.map_or("{}", RawValue::get);
    let call: Call<'_> = serde_json::from_str(params).map_err(|error| error.to_string())?;
    let name = call.name.ok_or("`name` is missing; it names the tool to call")?;
    let arguments = match call.arguments {
        Some(raw) => Json::from_raw(raw.to_owned()),
        None => Json::empty_object(),
    };
    let mut request = CallToolRequest::new(CallToolRequestParams::new(name));
    request.extensions.insert(Arguments(arguments));
    if let Some(meta) = call.meta {
        request.extensions.insert(RequestMetaObject::from(meta));
    }
    Ok(ClientRequest::CallToolRequest(request))
}

/// What a request is written from for the types of `rmcp`.
#[derive(Serialize)]
struct Parts<'a> {
    method: &'a str,
    params: Option<&'a RawValue>,
}

fn text_of(method: &str, params: Option<&RawValue>) -> Result<String, String> {
    serde_json::to_string(&Parts { method, params }).map_err(|error| error.to_string())
}

fn typed<T>(method: &str, params: Option<&RawValue>) -> Result<ClientRequest, String>
where
    T: serde::de::DeserializeOwned + Into<ClientRequest>,
{
    let text = text_of(method, params)?;
    let request: T = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Ok(request.into())
}

/// Reads any other method; one that nobody knows becomes a custom request, and is refused by name.
fn other(method: &str, params: Option<&RawValue>) -> Result<ClientRequest, String> {
    let text = text_of(method, params)?;
    Ok(serde_json::from_str(&text)
        .unwrap_or_else(|_| ClientRequest::CustomRequest(CustomRequest::new(method, None))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> String {
        match parse(line.as_bytes()) {
            Incoming::Refused(refusal) => {
                let value = serde_json::to_value(&refusal).expect("JSON");
                format!("{} {}", value["id"], value["error"]["code"])
            }
            Incoming::Request(request, id) => format!("{id:?} {}", request.method()),
            Incoming::Cancelled(id, reason) => format!("cancel {id:?} {reason:?}"),
            Incoming::Initialized => "initialized".into(),
            Incoming::Nothing => "nothing".into(),
        }
    }

    #[test]
    fn odd_lines_get_the_answer_that_json_rpc_gives_them() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":3,"method":"#, "null -32700"),
            ("\u{feff}{}", "null -32700"),
            ("[]", "null -32600"),
            (r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#, "null -32600"),
            ("{}", "null -32600"),
            ("null", "null -32600"),
            ("42", "null -32600"),
            (r#""ping""#, "null -32600"),
            (r#"{"jsonrpc":"1.0","id":9,"method":"ping"}"#, "9 -32600"),
            (r#"{"id":10,"method":"ping"}"#, "10 -32600"),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, "null -32600"),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "1 -32600"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, "1 -32602"),
            (r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":null}"#, "4 -32602"),
            (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}"#, "5 -32602"),
            (r#"{"jsonrpc":"2.0","id":13,"result":{}}"#, "nothing"),
            (r#"{"jsonrpc":"2.0","method":"notifications/no_such"}"#, "nothing"),
        ];
        for (line, expected) in cases {
            assert_eq!(answer(line), expected, "{line}");
        }
        assert_eq!(answer(std::str::from_utf8(b"{\"a\xC3\xA9\":").expect("text")), "null -32700");
        assert!(matches!(parse(b"{\"a\":\"\xFF\"}"), Incoming::Refused(_)), "not UTF-8");
    }

    #[test]
    fn an_id_is_read_as_it_was_written_or_not_at_all() {
        let cases = [
            ("1", "Number(1) ping"),
            ("\"1\"", "String(\"1\") ping"),
            ("9223372036854775807", "Number(9223372036854775807) ping"),
            ("\"\"", "String(\"\") ping"),
            ("1.5", "null -32600"),
            ("1.0", "null -32600"),
            ("9223372036854775808", "null -32600"),
            ("null", "null -32600"),
            ("true", "null -32600"),
            ("{\"a\":1}", "null -32600"),
            ("\"\\ud800\"", "null -32600"),
        ];
        for (id, expected) in cases {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert_eq!(answer(&line), expected, "{id}");
        }
    }

    #[test]
    fn a_cancel_of_an_odd_id_is_nothing() {
        let odd = ["null", "{\"a\":1}", "[]", "1.5"];
        for id in odd {
            let params = format!(r#"{{"requestId":{id}}}"#);
            let line = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#
            );
            assert_eq!(answer(&line), "nothing", "{id}");
        }
        let line = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"h0","reason":7}}"#;
        assert_eq!(answer(line), "cancel String(\"h0\") None");
        assert_eq!(answer(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#), "nothing");
    }

    #[test]
    fn arguments_keep_their_bytes() {
        let text = r#"{ "z":1.0,"a":1e2, "e":"\u00e9\/", "big":123456789012345678901234567890 }"#;
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{text}}}}}"#
        );
        let Incoming::Request(request, _) = parse(line.as_bytes()) else {
            panic!("a request");
        };
        let ClientRequest::CallToolRequest(call) = *request else { panic!("a call") };
        assert_eq!(call.extensions.get::<Arguments>().expect("arguments").0.get(), text);
    }
}
