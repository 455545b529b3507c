//! What the other server answered, as the outcome of a task.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::task::Outcome;
use raincheck_core::text;

use super::message::RpcError;

/// How deep two values are compared.
const MAX_DEPTH: usize = 64;

/// How much of what a failed call said is shown, in bytes.
const MAX_SAID: usize = 16 << 10;

/// The result of `tools/call`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    #[serde(default)]
    content: Option<Vec<Json>>,
    #[serde(default)]
    structured_content: Option<Json>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    result_type: Option<String>,
}

/// The members of a block that matter here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed {
    r#type: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    data: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    annotations: Option<Json>,
    #[serde(default, rename = "_meta")]
    meta: Option<Json>,
}

/// Reads the result of a call. Each part of it is kept as it came.
pub(super) fn read(result: &Json) -> Outcome {
    let is_object = result.get().trim_start().starts_with('{');
    let Some(answered) = result.read::<Answered>().ok().filter(|_| is_object) else {
        return Outcome::Failed(broken("it is no object, or its `content` is no list"));
    };
    if let Some(other) = answered.result_type.filter(|kind| kind != "complete") {
        let error = broken("its `resultType` is another than `complete`");
        return Outcome::Failed(error.with_quoted(text::clip(&other, 100), None));
    }
    let blocks = answered.content.unwrap_or_default();
    let structured = answered.structured_content.filter(|json| json.get() != "null");
    if answered.is_error {
        return Outcome::Failed(failed(&blocks, structured));
    }
    if blocks.is_empty() && structured.is_none() {
        // Old servers answer with other members.
        return Outcome::Succeeded(vec![Content::Json(result.clone())]);
    }
    let parts = blocks.iter().filter_map(|block| part(block, structured.as_ref()));
    let parts: Vec<Content> = parts.collect();
    Outcome::Succeeded(structured.map(Content::Json).into_iter().chain(parts).collect())
}

/// Makes a part of a block; a text that says what the structured content says, as the protocol asks for, is
/// not needed a second time.
fn part(block: &Json, structured: Option<&Json>) -> Option<Content> {
    let Ok(typed) = block.read::<Typed>() else { return Some(Content::Verbatim(block.clone())) };
    let is_plain = typed.annotations.is_none() && typed.meta.is_none();
    Some(match (typed.r#type.as_str(), typed.text, typed.data, typed.mime_type) {
        ("text", Some(words), _, _) if is_plain => {
            let json = Json::parse(words.as_str()).ok().filter(is_compound);
            let is_mirror = structured
                .zip(json.as_ref())
                .is_some_and(|(structured, json)| is_same(structured.get(), json.get(), MAX_DEPTH));
            if is_mirror {
                return None;
            }
            match json {
                Some(json) => Content::Json(json),
                None => Content::Text(words.into()),
            }
        }
        ("image" | "audio", _, Some(data), Some(mime)) if is_plain => {
            match STANDARD.decode(data.as_bytes()) {
                Ok(bytes) => Content::Binary { mime: mime.into(), data: bytes.into() },
                Err(_) => Content::Verbatim(block.clone()),
            }
        }
        // A page of text belongs into the result, where what is large is kept and what is foreign is marked.
        ("resource", ..) if is_text_resource(block) => Content::Json(block.clone()),
        _ => Content::Verbatim(block.clone()),
    })
}

/// Tells whether two texts say the same, up to a depth: members in any order, numbers and words by what is
/// written. Numbers that are written in two ways are two numbers: a rounded one must not stand for the exact one.
fn is_same(one: &str, other: &str, depth: usize) -> bool {
    let Some(deeper) = depth.checked_sub(1) else { return false };
    let first = |text: &str| text.trim_start().bytes().next();
    match (first(one), first(other)) {
        (Some(b'{'), Some(b'{')) => {
            let (one, other) = (members(one), members(other));
            one.zip(other).is_some_and(|(one, other)| {
                one.len() == other.len()
                    && one.iter().all(|(name, value)| {
                        let value = value.get();
                        other.get(name).is_some_and(|it| is_same(value, it.get(), deeper))
                    })
            })
        }
        (Some(b'['), Some(b'[')) => {
            let items = |text| serde_json::from_str::<Vec<&RawValue>>(text).ok();
            items(one).zip(items(other)).is_some_and(|(one, other)| {
                one.len() == other.len()
                    && one.iter().zip(&other).all(|(one, it)| is_same(one.get(), it.get(), deeper))
            })
        }
        (Some(b'"'), Some(b'"')) => {
            let words = |text| serde_json::from_str::<String>(text).ok();
            words(one).is_some_and(|one| Some(one) == words(other))
        }
        _ => one.trim() == other.trim(),
    }
}

fn members(text: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(text).ok()
}

/// Tells whether a text is an object or a list: other texts stay the words they are.
fn is_compound(json: &Json) -> bool {
    json.get().starts_with(['{', '['])
}

fn is_text_resource(block: &Json) -> bool {
    #[derive(Deserialize)]
    struct Embedded {
        resource: Contents,
    }
    #[derive(Deserialize)]
    struct Contents {
        #[serde(default)]
        text: Option<Json>,
    }
    block.read::<Embedded>().is_ok_and(|embedded| embedded.resource.text.is_some())
}

/// A call that the other server says has failed [CALL-5]. Its words stand apart from ours.
fn failed(blocks: &[Json], structured: Option<Json>) -> Error {
    #[derive(Serialize)]
    struct Details<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        structured_content: Option<Json>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<&'a Json>,
    }
    let (mut words, mut others) = (Vec::new(), Vec::new());
    for block in blocks {
        match block.read::<Typed>() {
            Ok(Typed { r#type, text: Some(text), .. }) if r#type == "text" => words.push(text),
            _ => others.push(block),
        }
    }
    let said = words.join("\n");
    let said = text::clip(&said, MAX_SAID).to_owned();
    let details = Details { structured_content: structured, content: others };
    let has_details = details.structured_content.is_some() || !details.content.is_empty();
    let details = has_details.then(|| Json::of(&details).ok()).flatten();
    Error::new(Kind::ToolFailed, "the wrapped server says that the call failed")
        .with_quoted(said, details)
}

/// A call that the other server refused with an error of JSON-RPC. Whether it had begun is not said.
pub(super) fn refused(error: &RpcError) -> Error {
    #[derive(Serialize)]
    struct Details<'a> {
        code: i64,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Json>,
    }
    let details = Json::of(&Details { code: error.code, data: error.data.as_ref() }).ok();
    let message = format!("the wrapped server answered with the JSON-RPC error {}", error.code);
    Error::new(Kind::ToolFailed, message)
        .with_guarantee(Guarantee::Unknown)
        .with_quoted(text::clip(&error.message, MAX_SAID), details)
}

fn broken(what: &str) -> Error {
    Error::new(
        Kind::InvalidResponse,
        format!("the result of the wrapped server is unusable: {what}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> Outcome {
        read(&Json::parse(text).expect("JSON"))
    }

    fn parts(text: &str) -> Vec<Content> {
        let Outcome::Succeeded(parts) = outcome(text) else { panic!("{text}") };
        parts
    }

    fn json(text: &str) -> Json {
        Json::parse(text).expect("JSON")
    }

    #[test]
    fn each_part_is_kept_and_a_mirror_is_not_kept_twice() {
        // [GATE-2] [RESULT-1]
        assert_eq!(
            parts(
                r#"{"content":[{"type":"text","text":"{\"a\": 1.0}"}],"structuredContent":{"a":1.0,"b":1e2}}"#
            ),
            [Content::Json(json(r#"{"a":1.0,"b":1e2}"#)), Content::Json(json(r#"{"a": 1.0}"#))],
            "another text stays"
        );
        assert_eq!(
            parts(
                r#"{"content":[{"type":"text","text":"{\"a\": 1}"}],"structuredContent":{"a":1}}"#
            ),
            [Content::Json(json(r#"{"a":1}"#))]
        );
        assert_eq!(
            parts(
                r#"{"content":[{"type":"text","text":"7"},{"type":"image","data":"cG5n","mimeType":"image/png"}]}"#
            ),
            [
                Content::Text("7".into()),
                Content::Binary { mime: "image/png".into(), data: Vec::from(*b"png").into() }
            ]
        );
        let said = r#"{"type":"text","text":"hi","annotations":{"audience":["user"]}}"#;
        assert_eq!(
            parts(&format!(r#"{{"content":[{said}]}}"#)),
            [Content::Verbatim(json(said))],
            "what is said of a text stays with it"
        );
        let exact = r#"{"type":"text","text":"{\"n\":12345678901234567890123}"}"#;
        assert_eq!(
            parts(&format!(
                r#"{{"content":[{exact}],"structuredContent":{{"n":12345678901234567890124}}}}"#
            ))
            .len(),
            2,
            "numbers that a float cannot tell apart are two"
        );
        let link = r#"{"type":"resource_link","uri":"a:b","name":"n"}"#;
        let annotated =
            r#"{"type":"image","data":"cG5n","mimeType":"image/png","annotations":{"priority":1}}"#;
        let page = r#"{"type":"resource","resource":{"uri":"a:c","text":"words"}}"#;
        let blob = r#"{"type":"resource","resource":{"uri":"a:c","blob":"cG5n"}}"#;
        assert_eq!(
            parts(&format!(r#"{{"content":[{link},{annotated},{page},{blob}]}}"#)),
            [
                Content::Verbatim(json(link)),
                Content::Verbatim(json(annotated)),
                Content::Json(json(page)),
                Content::Verbatim(json(blob))
            ]
        );
        assert_eq!(parts(r#"{"toolResult":7}"#), [Content::Json(json(r#"{"toolResult":7}"#))]);
    }

    #[test]
    fn a_failed_call_is_a_failed_task_with_the_words_apart() {
        // [GATE-2] [CALL-5] [CALL-8]
        let Outcome::Failed(error) = outcome(
            r#"{"isError":true,"content":[{"type":"text","text":"planted"},{"type":"image","data":"AA==","mimeType":"image/png"}]}"#,
        ) else {
            panic!("it failed")
        };
        assert_eq!((error.kind, error.guarantee()), (Kind::ToolFailed, Some(Guarantee::Executed)));
        assert!(!error.message.contains("planted"));
        let quoted = error.quoted.expect("its words");
        assert_eq!(&*quoted.text, "planted");
        assert!(quoted.details.as_ref().is_some_and(|details| details.get().contains("image/png")));
    }

    #[test]
    fn what_is_no_result_is_said_to_be_none() {
        for text in ["7", "[]", r#"{"content":7}"#, r#"{"resultType":"task","taskId":"a"}"#] {
            let Outcome::Failed(error) = outcome(text) else { panic!("{text}") };
            assert_eq!(error.kind, Kind::InvalidResponse, "{text}");
            assert_eq!(error.guarantee(), Some(Guarantee::Unknown));
        }
    }
}
