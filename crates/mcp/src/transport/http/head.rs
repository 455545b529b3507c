//! What the head of a request says, and whether it says the same as its body.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use raincheck_core::content::Json;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Number, Value};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAM: &str = "mcp-param-";

/// The first revision without sessions, in which every request says what it needs.
pub(super) const STATELESS: &str = "2026-07-28";

/// A header that does not say what the body says, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mismatch(pub(super) String);

/// Returns the value of a header that may stand once.
pub(super) fn one<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, Mismatch> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Mismatch(format!("`{name}` stands several times")));
    }
    let unreadable = |_| Mismatch(format!("`{name}` is not plain ASCII"));
    HeaderValue::to_str(value).map(Some).map_err(unreadable)
}

/// Tells whether a client takes both forms that an answer may have.
pub(super) fn accepts(headers: &HeaderMap, wanted: &[&str]) -> bool {
    let ranges: Vec<String> = headers
        .get_all(http::header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|range| Some(range.split(';').next()?.trim().to_ascii_lowercase()))
        .collect();
    let takes = |range: &str, form: &str| {
        let family = form.split('/').next().unwrap_or_default();
        range == form || range == "*/*" || range.strip_suffix("/*") == Some(family)
    };
    wanted.iter().all(|form| ranges.iter().any(|range| takes(range, form)))
}

/// Checks the headers by which a request can be routed without its body [HTTP-6].
///
/// # Errors
/// The first header that is missing or says something else.
pub(super) fn check_standard(
    headers: &HeaderMap,
    method: &str,
    params: Option<&RawValue>,
    schema: impl FnOnce(&str) -> Option<Json>,
) -> Result<(), Mismatch> {
    match one(headers, &METHOD)? {
        None => return Err(Mismatch("`Mcp-Method` is missing".into())),
        Some(value) if value != method => {
            return Err(Mismatch("`Mcp-Method` is not the `method` of the body".into()));
        }
        Some(_) => {}
    }
    let Some((field, name)) = named(method, params)? else { return Ok(()) };
    match one(headers, &NAME)? {
        // Clients that have tasks leave it out, and the body says it.
        None if field == "taskId" => {}
        None => return Err(Mismatch(format!("`Mcp-Name` is missing; it is `params.{field}`"))),
        Some(value) if decoded(value).as_deref() != Some(&name) => {
            return Err(Mismatch(format!("`Mcp-Name` is not `params.{field}` of the body")));
        }
        Some(_) => {}
    }
    match schema(&name).filter(|_| method == "tools/call") {
        Some(schema) => check_params(headers, &schema, params),
        None => Ok(()),
    }
}

/// Returns what a request names: the member, and its value.
///
/// # Errors
/// When what it names cannot be said, such as a member that stands twice.
fn named(
    method: &str,
    params: Option<&RawValue>,
) -> Result<Option<(&'static str, String)>, Mismatch> {
    /// The members that name something.
    #[derive(Deserialize)]
    struct Params {
        name: Option<Value>,
        uri: Option<Value>,
        #[serde(rename = "taskId")]
        task_id: Option<Value>,
    }

    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(None),
    };
    let Some(params) = params else { return Ok(None) };
    let unclear = |_| Mismatch(format!("`params.{field}` of the body cannot be read"));
    let params: Params = serde_json::from_str(params.get()).map_err(unclear)?;
    let value = match field {
        "name" => params.name,
        "uri" => params.uri,
        _ => params.task_id,
    };
    let value = value.as_ref().and_then(Value::as_str);
    Ok(value.map(|value| (field, value.to_owned())))
}

/// Checks the arguments that the schema of a tool wants in headers, too.
fn check_params(
    headers: &HeaderMap,
    schema: &Json,
    params: Option<&RawValue>,
) -> Result<(), Mismatch> {
    /// The arguments of a call.
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(default, borrow)]
        arguments: Option<&'a RawValue>,
    }

    if !schema.get().contains("x-mcp-header") {
        return Ok(());
    }
    let schema: Value = schema.read().unwrap_or_default();
    let unclear = |_| Mismatch("`params.arguments` of the body cannot be read".into());
    let call = params.map(|raw| serde_json::from_str::<Call<'_>>(raw.get()));
    let arguments = call.transpose().map_err(unclear)?.and_then(|call| call.arguments);
    let mut wanted = Vec::new();
    collect(&schema, arguments, &mut wanted);
    for (header, argument) in wanted {
        let Ok(name) = HeaderName::from_bytes(format!("{PARAM}{header}").as_bytes()) else {
            continue;
        };
        let is_right = match (one(headers, &name)?, argument.and_then(plain)) {
            (None, None) => true,
            (Some(value), Some(argument)) => {
                decoded(value).is_some_and(|value| argument.is_said_by(&value))
            }
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_right {
            return Err(Mismatch(format!("`{name}` is not the argument that it stands for")));
        }
    }
    Ok(())
}

/// Gathers the properties of a schema that are also headers, with their values as they were written.
fn collect<'a>(
    schema: &'a Value,
    value: Option<&'a RawValue>,
    into: &mut Vec<(&'a str, Option<&'a RawValue>)>,
) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let members: BTreeMap<String, &RawValue> =
        value.and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default();
    for (name, schema) in properties.into_iter().flatten() {
        let value = members.get(name).copied();
        if let Some(header) = schema.get("x-mcp-header").and_then(Value::as_str) {
            into.push((header, value));
        }
        collect(schema, value, into);
    }
}

/// A value that a header can have.
#[derive(Debug)]
enum Plain {
    Text(String),
    /// A number, as it was written.
    Number(String),
}

impl Plain {
    /// Tells whether the value of a header says it. A number may be written in another way, where no
    /// digit is lost by that.
    fn is_said_by(&self, header: &str) -> bool {
        /// Integers below this are exact, however they are written.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let number = |text: &str| {
            let number: Number = serde_json::from_str(text).ok()?;
            number.as_f64().filter(|number| number.abs() < EXACT)
        };
        match self {
            Self::Text(text) => text == header,
            Self::Number(text) if text == header => true,
            Self::Number(text) => number(text).is_some_and(|one| number(header) == Some(one)),
        }
    }
}

/// Returns the value that a header can have; `None` for a list, an object or nothing.
fn plain(value: &RawValue) -> Option<Plain> {
    let written = value.get();
    match serde_json::from_str(written).ok()? {
        Value::String(text) => Some(Plain::Text(text)),
        Value::Bool(flag) => Some(Plain::Text(flag.to_string())),
        Value::Number(_) => Some(Plain::Number(written.to_owned())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads a value that is written as it is, or as `=?base64?…?=`.
fn decoded(value: &str) -> Option<String> {
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    match encoded {
        None => Some(value.to_owned()),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            headers.append(name, HeaderValue::from_str(value).expect("a value"));
        }
        headers
    }

    fn check(list: &[(&str, &str)], method: &str, params: &str) -> Result<(), Mismatch> {
        let params: Box<RawValue> = serde_json::from_str(params).expect("JSON");
        let schema = r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"},
            "in":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#;
        let schema = || Json::parse(schema).ok();
        check_standard(&headers(list), method, Some(&params), |_| schema())
    }

    #[test]
    fn a_task_is_named_like_a_tool_is() {
        // [HTTP-6]
        let named = |name| [("Mcp-Method", "tasks/get"), ("Mcp-Name", name)];
        let params = r#"{"taskId":"tsk_1"}"#;
        assert_eq!(check(&named("tsk_1"), "tasks/get", params), Ok(()));
        assert_eq!(check(&named("=?base64?dHNrXzE=?="), "tasks/get", params), Ok(()));
        for wrong in ["tsk_2", "TSK_1", "=?base64?!?=", ""] {
            assert!(check(&named(wrong), "tasks/get", params).is_err(), "{wrong}");
        }
        assert_eq!(check(&[("Mcp-Method", "tasks/get")], "tasks/get", params), Ok(()));
        assert!(check(&[("Mcp-Method", "tools/call")], "tools/call", r#"{"name":"t"}"#).is_err());
        assert!(check(&named("tsk_1"), "tasks/cancel", params).is_err(), "another method");
        let twice = [("Mcp-Method", "tasks/get"), ("Mcp-Name", "tsk_1"), ("Mcp-Name", "tsk_1")];
        assert!(check(&twice, "tasks/get", params).is_err());
        assert_eq!(check(&[("Mcp-Method", "tools/list")], "tools/list", "{}"), Ok(()));
    }

    #[test]
    fn arguments_that_a_schema_wants_in_headers_are_compared() {
        // [HTTP-6]
        let call = r#"{"name":"t","arguments":{"region":"eu","in":{"n":7}}}"#;
        let base = [("Mcp-Method", "tools/call"), ("Mcp-Name", "t")];
        let with = |more: &[(&'static str, &'static str)]| [&base[..], more].concat();
        let right = with(&[("Mcp-Param-Region", "eu"), ("Mcp-Param-N", "7")]);
        assert_eq!(check(&right, "tools/call", call), Ok(()));
        for wrong in [
            with(&[]),
            with(&[("Mcp-Param-Region", "us"), ("Mcp-Param-N", "7")]),
            with(&[("Mcp-Param-Region", "eu")]),
        ] {
            assert!(check(&wrong, "tools/call", call).is_err(), "{wrong:?}");
        }
        assert!(check(&right, "tools/call", r#"{"name":"t","arguments":{}}"#).is_err());
        assert_eq!(check(&base, "tools/call", r#"{"name":"t"}"#), Ok(()));
    }

    #[test]
    fn a_number_is_said_as_it_was_written_or_in_another_way_that_loses_nothing() {
        // [HTTP-6]
        let says = |written: &str, header: &str| {
            let call = format!(r#"{{"name":"t","arguments":{{"in":{{"n":{written}}}}}}}"#);
            let base = [("Mcp-Method", "tools/call"), ("Mcp-Name", "t"), ("Mcp-Param-N", header)];
            check(&base, "tools/call", &call).is_ok()
        };
        let large = "123456789012345678901234567890";
        for (written, header) in
            [("1e2", "1e2"), ("1e2", "100"), ("100.0", "100"), ("7", "7"), (large, large)]
        {
            assert!(says(written, header), "{written} {header}");
        }
        for (written, header) in [
            ("9007199254740993", "9007199254740992"),
            ("7", "8"),
            ("7", "seven"),
            ("7", " 7.5"),
            ("true", "1"),
        ] {
            assert!(!says(written, header), "{written} {header}");
        }
    }

    #[test]
    fn a_name_that_stands_twice_is_no_name() {
        // [HTTP-6]
        let base = [("Mcp-Method", "prompts/get"), ("Mcp-Name", "t")];
        assert_eq!(check(&base, "prompts/get", r#"{"name":"t"}"#), Ok(()));
        assert!(check(&base, "prompts/get", r#"{"name":"t","name":"u"}"#).is_err());
    }

    #[test]
    fn both_forms_must_be_taken() {
        let both = ["application/json", "text/event-stream"];
        let takes = |value| accepts(&headers(&[("Accept", value)]), &both);
        for good in ["application/json, text/event-stream", "*/*", "Text/*;q=0.5, application/*"] {
            assert!(takes(good), "{good}");
        }
        for bad in ["application/json", "text/event-stream", "", "text/html"] {
            assert!(!takes(bad), "{bad}");
        }
    }
}
