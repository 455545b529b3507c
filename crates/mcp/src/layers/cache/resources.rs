//! Entries as resources: `response://{cache_id}{?path,page}` [CACHE-7].
//!
//! They are one more way in, never the only one: some clients read no resources.

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use raincheck_cache::Metadata;
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};

use crate::caller::Caller;
use crate::surface::{Desk, Method};

use super::stub::{mime_type, uri};
use super::{CacheLayer, actions};

/// How entries are addressed.
const SCHEME: &str = "response://";

/// How many entries a list shows.
const MAX_LISTED: usize = 100;

/// The parameters of `resources/read`.
#[derive(Deserialize)]
struct Addressed {
    uri: String,
}

/// One entry in the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: String,
    name: String,
    mime_type: &'static str,
    size: u64,
}

/// Answers what the protocol asks about resources; `None` for every other method.
pub(super) async fn answer(
    layer: &CacheLayer,
    desk: &Desk,
    method: &Method,
    who: &Caller,
) -> Option<Result<Json, Error>> {
    match method.name.as_str() {
        "resources/list" => Some(match one_page(method) {
            Ok(()) => list(layer, desk, who).await,
            Err(error) => Err(error),
        }),
        "resources/templates/list" => Some(one_page(method).and_then(|()| templates())),
        // Other addresses may be those of another layer.
        "resources/read" if is_of_another(&method.params) => None,
        "resources/read" => Some(read(layer, desk, method, who).await),
        _ => None,
    }
}

/// Refuses a cursor: every list is one page, and gives none out.
fn one_page(method: &Method) -> Result<(), Error> {
    #[derive(Default, Deserialize)]
    struct Params {
        #[serde(default)]
        cursor: Option<Value>,
    }
    let Params { cursor } = method.params.read().unwrap_or_default();
    match cursor {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(Error::new(Kind::BadCursor, "no list of this server gave this cursor")),
    }
}

fn is_of_another(params: &Json) -> bool {
    params.read::<Addressed>().is_ok_and(|params| !params.uri.starts_with(SCHEME))
}

fn written(value: &impl Serialize) -> Result<Json, Error> {
    Json::of(value).map_err(|error| Error::new(Kind::InvalidResponse, error.to_string()))
}

async fn list(layer: &CacheLayer, desk: &Desk, who: &Caller) -> Result<Json, Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct List {
        result_type: &'static str,
        resources: Vec<Resource>,
    }
    let scope = who.scope().clone();
    let of = |metadata: &Metadata| Resource {
        uri: uri(&metadata.id),
        name: format!("cached response of {}", metadata.tool),
        mime_type: mime_type(metadata.kind),
        size: metadata.size_bytes,
    };
    let resources = layer.home().work(desk.engine(), move |cache, now| {
        Ok(cache.list(now, scope.as_str()).iter().take(MAX_LISTED).map(of).collect())
    });
    written(&List { result_type: "complete", resources: resources.await? })
}

fn templates() -> Result<Json, Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Template {
        uri_template: &'static str,
        name: &'static str,
        description: &'static str,
    }

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct List {
        result_type: &'static str,
        resource_templates: [Template; 1],
    }
    let template = Template {
        uri_template: "response://{cache_id}{?path,page}",
        name: "A cached response",
        description: "A page of an answer that was too large to send; path is a JSON Pointer.",
    };
    written(&List { result_type: "complete", resource_templates: [template] })
}

async fn read(
    layer: &CacheLayer,
    desk: &Desk,
    method: &Method,
    who: &Caller,
) -> Result<Json, Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Contents<'a> {
        uri: &'a str,
        mime_type: &'static str,
        text: &'a str,
    }

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Read<'a> {
        result_type: &'static str,
        contents: [Contents<'a>; 1],
    }
    let Addressed { uri } = method
        .params
        .read()
        .map_err(|_| Error::new(Kind::InvalidParams, "`uri` is missing, or is no string"))?;
    let arguments = arguments(&uri)?;
    let arguments = Json::of(&arguments).map_err(unwritten)?;
    // What the entry says about a failure stays behind: an error of the protocol has no mark around it.
    let answer = actions::answer(layer, desk, &arguments, who).await?;
    let contents = Contents {
        uri: &uri,
        mime_type: "application/json",
        text: answer.as_text().unwrap_or_default(),
    };
    written(&Read { result_type: "complete", contents: [contents] })
}

fn unwritten(error: impl std::fmt::Display) -> Error {
    Error::new(Kind::InvalidResponse, error.to_string())
}

/// Makes of an address the arguments of a read.
fn arguments(uri: &str) -> Result<Value, Error> {
    let wrong = |rule: &str| {
        let message = format!("`uri` {rule}");
        Error::new(Kind::InvalidParams, message)
            .with_hint("write response://CACHE_ID, with ?path= and &page= where you need them")
    };
    let rest = uri.strip_prefix(SCHEME).ok_or_else(|| wrong("is no address of this server"))?;
    let (id, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut arguments = serde_json::Map::new();
    arguments.insert("action".into(), "get_page".into());
    arguments.insert("cache_id".into(), id.trim_end_matches('/').into());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| wrong("holds something that is not UTF-8"))?;
        let value = match name {
            "path" => Value::from(value.into_owned()),
            "page" => value.parse::<u64>().map_or_else(|_| Value::Null, Value::from),
            _ => return Err(wrong("may hold `path` and `page`, and nothing else")),
        };
        if value.is_null() || arguments.insert(name.to_owned(), value).is_some() {
            return Err(wrong("names a page that is no number, or something twice"));
        }
    }
    Ok(arguments.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_names_an_entry_a_path_and_a_page() {
        // [CACHE-7]
        let read = |uri: &str| arguments(uri).ok();
        assert_eq!(
            read("response://x?path=%2Fa%20b%2F0&page=3"),
            Some(json!({"action": "get_page", "cache_id": "x", "path": "/a b/0", "page": 3}))
        );
        assert_eq!(read("response://x"), Some(json!({"action": "get_page", "cache_id": "x"})));
        for odd in [
            "file:///etc/passwd",
            "response://x?page=a",
            "response://x?page=1&page=2",
            "response://x?other=1",
            "response://x?path=%ff",
        ] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
