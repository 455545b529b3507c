//! Requests and responses of a client, in the types of the protocol.

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ClientResult, CustomRequest,
    CustomResult, DiscoverRequest, ErrorData, Extensions, InitializeRequest, JsonObject,
    ListToolsRequest, PaginatedRequestParams, PingRequest, RequestId, RequestMetaObject,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use raincheck_core::content::Json;

use crate::wire::Id;

/// The arguments of a call, or the parameters of another request, exactly as they came.
#[derive(Clone, Debug)]
pub(super) struct Written(pub(super) Json);

/// What a call brings for questions that an earlier call of its client was answered with, as it was written.
/// The revision of the call says whether it means anything.
#[derive(Clone, Debug, Default)]
pub(super) struct Retry {
    pub(super) responses: Option<Json>,
    pub(super) state: Option<Json>,
}

/// Reads a request. Arguments of a call and parameters of a method that the protocol does not know stay
/// the text they are.
///
/// # Errors
/// What is wrong with the parameters.
pub(crate) fn read_request(
    method: &str,
    params: Option<&RawValue>,
) -> Result<ClientRequest, String> {
    let text = params.map_or("{}", RawValue::get);
    let (mut request, written) = match method {
        "tools/call" => call(text)?,
        "tools/list" => {
            let params: PaginatedRequestParams = read(text)?;
            (ListToolsRequest::with_param(params).into(), None)
        }
        "ping" => (PingRequest::default().into(), None),
        "initialize" => (InitializeRequest::new(read(text)?).into(), None),
        "server/discover" => (DiscoverRequest::default().into(), None),
        _ => {
            let request = ClientRequest::CustomRequest(CustomRequest::new(method, None));
            (request, Some(written(params)))
        }
    };
    let extensions = extensions(&mut request);
    if let Some(written) = written {
        extensions.insert(written);
    }
    if let Some(meta) = meta(text)? {
        extensions.insert(RequestMetaObject::from(meta));
    }
    Ok(request)
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn written(raw: Option<&RawValue>) -> Written {
    Written(raw.map_or_else(Json::empty_object, |raw| Json::from_raw(raw.to_owned())))
}

fn meta(text: &str) -> Result<Option<JsonObject>, String> {
    /// The one member that every method may have.
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Option<JsonObject>,
    }

    read::<Params>(text).map(|params| params.meta)
}

/// Reads a `tools/call`.
fn call(text: &str) -> Result<(ClientRequest, Option<Written>), String> {
    /// The members of a call; others are ignored.
    #[derive(Deserialize)]
    struct Call<'a> {
        name: Option<String>,
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
        #[serde(default, borrow, rename = "inputResponses", deserialize_with = "as_it_is")]
        responses: Option<&'a RawValue>,
        #[serde(default, borrow, rename = "requestState", deserialize_with = "as_it_is")]
        state: Option<&'a RawValue>,
    }

    let call: Call<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let name = call.name.ok_or("`name` is missing; it names the tool to call")?;
    let mut request: ClientRequest = CallToolRequest::new(CallToolRequestParams::new(name)).into();
    if call.responses.is_some() || call.state.is_some() {
        let json = |raw: &RawValue| Json::from_raw(raw.to_owned());
        let retry = Retry { responses: call.responses.map(json), state: call.state.map(json) };
        extensions(&mut request).insert(retry);
    }
    Ok((request, Some(written(call.arguments))))
}

/// Reads a member that is there, `null` too.
fn as_it_is<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

fn extensions(request: &mut ClientRequest) -> &mut Extensions {
    use rmcp::model::GetExtensions as _;

    request.extensions_mut()
}

/// Reads what a client answers to a question: the result as it is, or its error.
pub(crate) fn read_response(
    outcome: Result<&RawValue, &RawValue>,
) -> Result<ClientResult, ErrorData> {
    let unreadable = |error: serde_json::Error| ErrorData::parse_error(error.to_string(), None);
    match outcome {
        Ok(result) => {
            let value = serde_json::from_str(result.get()).map_err(unreadable)?;
            Ok(ClientResult::CustomResult(CustomResult::new(value)))
        }
        Err(error) => Err(serde_json::from_str(error.get()).unwrap_or_else(unreadable)),
    }
}

impl From<Id> for RequestId {
    fn from(id: Id) -> Self {
        match id {
            Id::Number(number) => Self::Number(number),
            Id::Text(text) => Self::String(text.into()),
        }
    }
}

impl From<&RequestId> for Id {
    fn from(id: &RequestId) -> Self {
        match id {
            RequestId::Number(number) => Self::Number(*number),
            RequestId::String(text) => Self::Text((&**text).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, params: &str) -> Result<ClientRequest, String> {
        let params: Box<RawValue> = serde_json::from_str(params).expect("JSON");
        read_request(method, Some(&params))
    }

    #[test]
    fn arguments_and_unknown_parameters_keep_their_bytes() {
        // [TOOL-6]
        let text = r#"{ "z":1.0,"a":1e2, "e":"\u00e9\/", "big":123456789012345678901234567890 }"#;
        let call = format!(r#"{{"name":"t","arguments":{text},"_meta":{{"progressToken":0}}}}"#);
        let mut call = request("tools/call", &call).expect("a call");
        assert_eq!(extensions(&mut call).get::<Written>().expect("arguments").0.get(), text);
        assert!(extensions(&mut call).get::<RequestMetaObject>().is_some());
        let mut other = request("tasks/get", text).expect("a request");
        assert_eq!(other.method(), "tasks/get");
        assert_eq!(extensions(&mut other).get::<Written>().expect("parameters").0.get(), text);
    }

    #[test]
    fn parameters_that_do_not_fit_are_refused_in_words() {
        let words = request("tools/call", "{}").expect_err("no name");
        assert!(words.contains("`name` is missing"), "{words}");
        assert!(request("tools/list", r#"{"cursor":7}"#).is_err());
        assert!(request("initialize", r#"{"protocolVersion":7}"#).is_err());
        assert!(request("ping", r#"{"_meta":7}"#).is_err());
        assert!(read_request("tools/list", None).is_ok());
    }
}
