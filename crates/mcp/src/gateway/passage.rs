//! What else the other server has, passed on: resources, prompts, completions.

use std::pin::pin;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::timeout;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::text;

use super::Gateway;
use super::link::Failure;
use super::message::{LOST, RpcError};
use super::traced::{self, Traced};
use crate::caller::{Caller, unwanted};
use crate::surface::{Desk, Layer, Method, Notices};
use crate::wire::Members;

/// The codes of JSON-RPC that have a kind of ours.
const INVALID_PARAMS: i64 = -32_602;
const NOT_FOUND: i64 = -32_002;

/// Where a request says something of itself.
const META: &str = "_meta";

/// Addresses of ours: what is kept of large answers.
const OURS: &str = "response://";

/// What a method needs of the other server, and the list that it answers with, where it is one.
struct Passed {
    method: &'static str,
    capability: &'static str,
    list: Option<&'static str>,
}

const fn passed(
    method: &'static str,
    capability: &'static str,
    list: Option<&'static str>,
) -> Passed {
    Passed { method, capability, list }
}

/// The methods that are passed on.
const PASSED: &[Passed] = &[
    passed("resources/list", "resources", Some("resources")),
    passed("resources/templates/list", "resources", Some("resourceTemplates")),
    passed("resources/read", "resources", None),
    passed("prompts/list", "prompts", Some("prompts")),
    passed("prompts/get", "prompts", None),
    passed("completion/complete", "completions", None),
];

#[async_trait]
impl Layer for Gateway {
    fn has_resources(&self) -> bool {
        true
    }

    fn has_prompts(&self) -> bool {
        true
    }

    fn notices(&self) -> Option<Notices> {
        Some(self.0.notices.clone())
    }

    fn greeted(&self, capabilities: &Json) {
        self.0.askable.greeted(capabilities);
    }

    /// While the call is open, its client can be asked what the other server wants to know.
    async fn take(&self, _desk: &Desk, arguments: Json, who: &Caller) -> Result<Json, Error> {
        if !who.has_extensions()
            && let Some(peer) = who.shared_peer()
        {
            who.keep(self.0.askable.enter(who.scope(), peer));
        }
        Ok(arguments)
    }

    async fn method(
        &self,
        _desk: &Desk,
        method: &Method,
        who: &mut Caller,
    ) -> Option<Result<Json, Error>> {
        let passed = PASSED.iter().find(|passed| passed.method == method.name)?;
        if is_ours(&method.params) {
            return None;
        }
        Some(self.pass(passed, method, who).await)
    }
}

impl Gateway {
    async fn pass(&self, passed: &Passed, method: &Method, who: &Caller) -> Result<Json, Error> {
        let upstream = &self.0;
        let (most, hurried) = (who.wait(upstream.settings.ready), who.hurried());
        let mut hurried = pin!(hurried);
        let link = tokio::select! {
            link = timeout(most, upstream.up()) => {
                link.unwrap_or_else(|_| Err(upstream.absent()))?
            }
            () = &mut hurried => return Err(unwanted()),
        };
        if !upstream.can(passed.capability) {
            return match passed.list {
                Some(list) => Ok(of_era(&empty(list), who)),
                None => {
                    let words = format!("the wrapped server has no {}", passed.capability);
                    Err(Error::new(Kind::InvalidParams, words))
                }
            };
        }
        // Answers are as large as the other server likes: few are here at once, and each has leave to be.
        let most = who.wait(upstream.settings.start);
        let _room = tokio::select! {
            room = timeout(most, upstream.passing.acquire()) => match room {
                Ok(Ok(room)) => room,
                _ => return Err(upstream.absent()),
            },
            () = &mut hurried => return Err(unwanted()),
        };
        who.leave().await?;
        let most = who.wait(upstream.settings.start);
        let mut asked = link.ask(passed.method, own_params(&method.params));
        let answered = tokio::select! {
            answered = timeout(most, asked.answer()) => answered,
            () = &mut hurried => {
                asked.cancel("it was cancelled");
                return Err(unwanted());
            }
        };
        match answered {
            Ok(Ok(result)) => Ok(of_era(&result, who)),
            Ok(Err(Failure::Refused(error))) if error.code != LOST => Err(refused(&error)),
            Ok(Err(Failure::Lost { is_written: false })) => Err(upstream.absent()),
            Ok(Err(Failure::Refused(_) | Failure::Lost { .. })) => {
                let words = "the connection to the wrapped server ended during the request";
                Err(Error::new(Kind::PeerLost, words))
            }
            Err(_) if asked.cancel("it takes too long") => {
                Err(Error::new(Kind::RunTimeout, "the wrapped server did not answer in time"))
            }
            Err(_) => Err(upstream.absent()),
        }
    }
}

/// Returns parameters without what a client said of its own request: tokens of its progress mean nothing to the
/// other server, and its revision is not the one that the other server is spoken to in. The trace that it
/// belongs to stays [TRACE-3].
fn own_params(params: &Json) -> Json {
    let Some(mut members) = Members::read(params) else { return params.clone() };
    let Some(meta) = members.get(META) else { return params.clone() };
    let trace = traced::of_meta(meta);
    members.remove(META);
    match trace.and_then(|trace| Json::of(&Traced::from(&trace)).ok()) {
        Some(trace) => members.with(&[(META, &trace)]),
        None => members.with(&[]),
    }
}

/// What the other server refused. Its words are none of ours, and no mark stands around an error of JSON-RPC: they
/// are in the details alone [CALL-8].
fn refused(error: &RpcError) -> Error {
    #[derive(Serialize)]
    struct Details<'a> {
        code: i64,
        said: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Json>,
    }
    let kind = match error.code {
        INVALID_PARAMS => Kind::InvalidParams,
        NOT_FOUND => Kind::NotFound,
        _ => Kind::InvalidResponse,
    };
    let said = text::escape(text::clip(&error.message, 500));
    let details = Details { code: error.code, said: &said, data: error.data.as_ref() };
    let words = format!("the wrapped server refused with the JSON-RPC error {}", error.code);
    let refused = Error::new(kind, words).with_guarantee(Guarantee::Unknown);
    match Json::of(&details) {
        Ok(details) => refused.with_details(details),
        Err(_) => refused,
    }
}

/// Tells whether an address is one of ours.
fn is_ours(params: &Json) -> bool {
    #[derive(Deserialize)]
    struct Addressed {
        #[serde(default)]
        uri: String,
    }
    params.read::<Addressed>().is_ok_and(|params| params.uri.starts_with(OURS))
}

fn empty(list: &str) -> Json {
    let members = Map::from_iter([(list.to_owned(), Value::Array(Vec::new()))]);
    Json::of(&members).unwrap_or_else(|_| Json::empty_object())
}

/// Adds what a result has to say in newer revisions. What it says itself stays the bytes that it is.
fn of_era(result: &Json, who: &Caller) -> Json {
    if who.has_extensions() { completed(result) } else { result.clone() }
}

fn completed(result: &Json) -> Json {
    let Some(members) = Members::read(result) else { return result.clone() };
    let said = [("resultType", "\"complete\""), ("ttlMs", "0"), ("cacheScope", "\"private\"")];
    let added = said.into_iter().filter(|(name, _)| members.get(name).is_none());
    let added: Vec<(&str, Json)> =
        added.filter_map(|(name, text)| Some((name, Json::parse(text).ok()?))).collect();
    let added: Vec<(&str, &Json)> = added.iter().map(|(name, json)| (*name, json)).collect();
    members.with(&added)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).expect("JSON")
    }

    #[test]
    fn a_request_passes_without_what_its_client_said_of_it() {
        // [GATE-10]
        let params = json(r#"{"uri":"a:b","_meta":{"progressToken":1},"z":1e2}"#);
        assert_eq!(own_params(&params).get(), r#"{"uri":"a:b","z":1e2}"#);
        // [TRACE-3]
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let of = |meta: &str| own_params(&json(&format!(r#"{{"_meta":{meta},"uri":"a:b"}}"#)));
        let trace = format!(r#"{{"traceparent":"{parent}","baggage":"user=7"}}"#);
        let more = trace.replacen('{', r#"{"progressToken":1,"tracestate":7,"#, 1);
        assert_eq!(of(&more).get(), format!(r#"{{"uri":"a:b","_meta":{trace}}}"#));
        assert_eq!(of(r#"{"traceparent":"00-1"}"#).get(), r#"{"uri":"a:b"}"#, "none that is one");
        let plain = json(r#"{ "uri": "a:b" }"#);
        assert_eq!(own_params(&plain).get(), plain.get());
    }

    #[test]
    fn a_result_of_a_newer_revision_has_its_own_bytes_and_three_members_more() {
        // [GATE-10]
        let result = json(r#"{"z":1e2,"ttlMs":5,"a":123456789012345678901234567890}"#);
        assert_eq!(
            completed(&result).get(),
            r#"{"z":1e2,"ttlMs":5,"a":123456789012345678901234567890,"resultType":"complete","cacheScope":"private"}"#
        );
    }

    #[test]
    fn words_of_the_other_server_are_no_words_of_ours() {
        // [CALL-8] [LEASE-9]
        for (code, kind) in [
            (-32602, Kind::InvalidParams),
            (-32002, Kind::NotFound),
            (-32603, Kind::InvalidResponse),
        ] {
            let said =
                RpcError { code, message: "planted\u{1b}".to_owned(), data: Some(json("7")) };
            let error = refused(&said);
            assert_eq!((error.kind, error.guarantee()), (kind, Some(Guarantee::Unknown)));
            assert!(!error.message.contains("planted"), "{error}");
            let details = error.details.expect("details");
            let expected = format!(r#"{{"code":{code},"said":"planted\\x1b","data":7}}"#);
            assert_eq!(details.get(), expected);
        }
    }
}
