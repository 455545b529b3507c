//! One line of JSON-RPC, taken apart without touching the bytes below its envelope.
//!
//! The members of the envelope are read; `params`, `result` and `error` stay the text they are.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The id of a request: a string, or an integer without fraction or exponent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub(crate) enum Id {
    /// An integer.
    Number(i64),
    /// A string.
    Text(Box<str>),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// What a line says.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// Something to be answered under its id.
    Request {
        /// The id.
        id: Id,
        /// What is asked for.
        method: Cow<'a, str>,
        /// An object, when it is there.
        params: Option<&'a RawValue>,
    },
    /// The client no longer wants the answer to a request.
    Cancelled(Id),
    /// The client is ready to work.
    Initialized,
    /// The answer to a request of the server.
    Response {
        /// The id that the server chose.
        id: Id,
        /// The result, or the error object.
        outcome: Result<&'a RawValue, &'a RawValue>,
    },
    /// Something that gets no answer and changes nothing.
    Nothing,
    /// Something that is answered with an error at once.
    Invalid(Invalid),
}

/// Why a line is refused.
#[derive(Debug)]
pub(crate) struct Invalid {
    /// The id to answer under; `None` when it cannot be read.
    pub(crate) id: Option<Id>,
    /// The code of JSON-RPC.
    pub(crate) code: Code,
    /// What is wrong, in words.
    pub(crate) message: String,
}

/// The codes that JSON-RPC reserves for lines that cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The line is no JSON.
    Parse,
    /// The JSON is no message.
    Request,
    /// The parameters do not fit the method.
    Params,
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
pub(crate) fn parse(line: &[u8]) -> Message<'_> {
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => return invalid(None, Code::Parse, format!("the line is not UTF-8: {error}")),
    };
    if !text.trim_ascii_start().starts_with('{') {
        return match serde_json::from_str::<&RawValue>(text) {
            Err(error) => invalid(None, Code::Parse, format!("the line is not JSON: {error}")),
            Ok(_) => {
                let words = "a message is one JSON object; batches are not taken";
                invalid(None, Code::Request, words)
            }
        };
    }
    match serde_json::from_str::<Envelope<'_>>(text) {
        Ok(envelope) => open(&envelope),
        Err(error) if error.is_data() => {
            invalid(None, Code::Request, format!("not a message: {error}"))
        }
        Err(error) => invalid(None, Code::Parse, format!("the line is not JSON: {error}")),
    }
}

fn invalid<'a>(id: Option<Id>, code: Code, message: impl Into<String>) -> Message<'a> {
    Message::Invalid(Invalid { id, code, message: message.into() })
}

fn open<'a>(envelope: &Envelope<'a>) -> Message<'a> {
    let id = envelope.id.map(read_id);
    let known = || id.clone().flatten();
    if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return invalid(known(), Code::Request, "`jsonrpc` must be \"2.0\"");
    }
    let Some(method) = envelope.method else {
        let outcome = envelope.result.map(Ok).or(envelope.error.map(Err));
        return match (known(), outcome) {
            (Some(id), Some(outcome)) => Message::Response { id, outcome },
            (None, Some(_)) => Message::Nothing,
            (id, None) => invalid(id, Code::Request, "`method` is missing"),
        };
    };
    let Some(method) = read_text(method) else {
        return invalid(known(), Code::Request, "`method` must be a string");
    };
    match id {
        None => notification(&method, envelope.params),
        Some(None) => invalid(None, Code::Request, "`id` must be a string or an integer"),
        Some(Some(id)) if envelope.params.is_some_and(|raw| !raw.get().starts_with('{')) => {
            invalid(Some(id), Code::Params, "`params` must be an object")
        }
        Some(Some(id)) => Message::Request { id, method, params: envelope.params },
    }
}

/// Reads a string; one without escapes is not copied.
fn read_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    /// Makes serde borrow what it can.
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|Text(text)| text)
}

/// Reads an id as it was written.
fn read_id(raw: &RawValue) -> Option<Id> {
    let text = raw.get();
    if text.starts_with('"') {
        return serde_json::from_str::<Box<str>>(text).ok().map(Id::Text);
    }
    text.parse().ok().map(Id::Number)
}

fn notification<'a>(method: &str, params: Option<&RawValue>) -> Message<'a> {
    /// The member of a cancel that matters.
    #[derive(Deserialize)]
    struct Cancel<'a> {
        #[serde(borrow, rename = "requestId")]
        id: &'a RawValue,
    }

    match method {
        "notifications/initialized" => Message::Initialized,
        "notifications/cancelled" => {
            let cancel = params.and_then(|raw| serde_json::from_str::<Cancel<'_>>(raw.get()).ok());
            let id = cancel.and_then(|cancel| read_id(cancel.id));
            id.map_or(Message::Nothing, Message::Cancelled)
        }
        _ => Message::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> String {
        match parse(line.as_bytes()) {
            Message::Invalid(Invalid { id, code, .. }) => {
                let id = serde_json::to_string(&id).expect("JSON");
                format!("{id} {code:?}")
            }
            Message::Request { id, method, .. } => format!("{id:?} {method}"),
            Message::Cancelled(id) => format!("cancel {id:?}"),
            Message::Initialized => "initialized".into(),
            Message::Response { id, outcome } => format!("response {id:?} {outcome:?}"),
            Message::Nothing => "nothing".into(),
        }
    }

    #[test]
    fn odd_lines_get_the_answer_that_json_rpc_gives_them() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":3,"method":"#, "null Parse"),
            ("\u{feff}{}", "null Parse"),
            ("[]", "null Request"),
            (r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#, "null Request"),
            ("{}", "null Request"),
            ("null", "null Request"),
            ("42", "null Request"),
            (r#""ping""#, "null Request"),
            (r#"{"jsonrpc":"1.0","id":9,"method":"ping"}"#, "9 Request"),
            (r#"{"id":10,"method":"ping"}"#, "10 Request"),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, "null Request"),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "1 Request"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, "1 Params"),
            (r#"{"jsonrpc":"2.0","result":{}}"#, "nothing"),
            (r#"{"jsonrpc":"2.0","method":"notifications/no_such"}"#, "nothing"),
        ];
        for (line, expected) in cases {
            assert_eq!(answer(line), expected, "{line}");
        }
        assert_eq!(answer(std::str::from_utf8(b"{\"a\xC3\xA9\":").expect("text")), "null Parse");
        assert!(matches!(parse(b"{\"a\":\"\xFF\"}"), Message::Invalid(_)), "not UTF-8");
    }

    #[test]
    fn an_id_is_read_as_it_was_written_or_not_at_all() {
        let cases = [
            ("1", "Number(1) ping"),
            ("\"1\"", "Text(\"1\") ping"),
            ("9223372036854775807", "Number(9223372036854775807) ping"),
            ("\"\"", "Text(\"\") ping"),
            ("1.5", "null Request"),
            ("1.0", "null Request"),
            ("9223372036854775808", "null Request"),
            ("null", "null Request"),
            ("true", "null Request"),
            ("{\"a\":1}", "null Request"),
            ("\"\\ud800\"", "null Request"),
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
        assert_eq!(answer(line), "cancel Text(\"h0\")");
        assert_eq!(answer(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#), "nothing");
    }
}
