//! What else the other server has, passed on: resources, prompts, completions.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::timeout;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::text;

use super::Gateway;
use super::link::Failure;
use crate::caller::{Caller, unwanted};
use crate::surface::{Desk, Layer, Method, Notices};

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
    passed("resources/subscribe", "resources", None),
    passed("resources/unsubscribe", "resources", None),
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
        let link = tokio::select! {
            link = timeout(upstream.settings.ready, upstream.up()) => {
                link.unwrap_or_else(|_| Err(upstream.absent()))?
            }
            () = who.hurried() => return Err(unwanted()),
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
        let mut asked = link.ask(passed.method, &method.params);
        let answered = tokio::select! {
            answered = timeout(upstream.settings.start, asked.answer()) => answered,
            () = who.hurried() => {
                asked.cancel("it was cancelled");
                return Err(unwanted());
            }
        };
        match answered {
            Ok(Ok(result)) => Ok(of_era(&result, who)),
            Ok(Err(Failure::Refused(error))) => {
                let said = text::escape(text::clip(&error.message, 500)).into_owned();
                let words =
                    format!("the wrapped server refused with the error {}: {said}", error.code);
                Err(Error::new(Kind::InvalidParams, words))
            }
            Ok(Err(Failure::Lost { .. })) => Err(upstream.absent()),
            Err(_) => {
                asked.cancel("it takes too long");
                Err(Error::new(Kind::RunTimeout, "the wrapped server did not answer in time"))
            }
        }
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

/// Adds what a result has to say in newer revisions. In others it stays the bytes that it is.
fn of_era(result: &Json, who: &Caller) -> Json {
    if !who.has_extensions() {
        return result.clone();
    }
    let Ok(mut members) = result.read::<Map<String, Value>>() else { return result.clone() };
    for (name, value) in [
        ("resultType", Value::from("complete")),
        ("ttlMs", 0.into()),
        ("cacheScope", "private".into()),
    ] {
        members.entry(name).or_insert(value);
    }
    Json::of(&members).unwrap_or_else(|_| result.clone())
}
