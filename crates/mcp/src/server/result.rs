//! An answer as the result of `tools/call`.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::answer::{Answer, Block};

/// Makes the wire's result. With `is_structured`, an object goes out a second time as
/// `structuredContent`; what is no object cannot, and stays in the text alone.
///
/// The member is only announced here, by the name of the list or without one: it is written from the
/// text ([`to_line`](super::line::to_line)).
pub(super) fn result(answer: Answer, is_structured: bool) -> CallToolResult {
    let is_error = answer.is_error();
    let (text, beside, list) = answer.into_parts();
    let is_object = |text: &str| {
        let raw: Result<&RawValue, _> = serde_json::from_str(text);
        raw.is_ok_and(|raw| raw.get().starts_with('{'))
    };
    let structured = text.as_deref().filter(|_| is_structured).and_then(|text| match list {
        Some(name) => Some(Map::from_iter([(name.to_owned(), Value::Null)])),
        None => is_object(text).then(Map::new),
    });
    let text = text.map(ContentBlock::text);
    let content = text.into_iter().chain(beside.into_iter().map(block)).collect();
    let mut result = CallToolResult::success(content);
    result.is_error = Some(is_error);
    result.structured_content = structured.map(Value::Object);
    result
}

/// Makes a block of the protocol; one of another server that cannot be read goes out as its text.
fn block(block: Block) -> ContentBlock {
    match block {
        Block::Image { mime, data } => ContentBlock::image(data, mime),
        Block::Audio { mime, data } => ContentBlock::audio(data, mime),
        Block::Verbatim(json) => {
            json.read().unwrap_or_else(|_| ContentBlock::text(json.get().to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use raincheck_core::content::{Content, Json};

    use super::*;

    fn json(text: &str) -> Content {
        Content::Json(Json::parse(text).expect("JSON"))
    }

    fn image() -> Content {
        Content::Binary { mime: "image/png".into(), data: Vec::from(*b"png").into() }
    }

    fn wire(contents: &[Content]) -> String {
        serde_json::to_string(&result(Answer::result(contents), false)).expect("JSON")
    }

    #[test]
    fn one_value_goes_out_with_its_bytes_and_an_image_beside_it() {
        // [RESULT-1]
        assert_eq!(
            wire(&[json(r#"{"z":1.0,"a":1e2}"#), image()]),
            r#"{"resultType":"complete","content":[{"type":"text","text":"{\"z\":1.0,\"a\":1e2}"},{"type":"image","data":"cG5n","mimeType":"image/png"}],"isError":false}"#
        );
        assert!(!wire(&[image()]).contains("\"text\""), "an image alone needs no words");
        let caption = wire(&[Content::Text("a caption".into()), image()]);
        assert!(caption.contains(r#""text":"a caption""#), "words stay words: {caption}");
    }

    #[test]
    fn a_block_of_another_server_goes_out_as_it_came() {
        let block = |text: &str| Content::Verbatim(Json::parse(text).expect("JSON"));
        let out = wire(&[
            block(r#"{"type":"text","text":"hi"}"#),
            block(r#"{"type":"hologram"}"#),
            block(r#"{"type":"image"}"#),
        ]);
        assert!(out.contains(r#"{"type":"text","text":"hi"}"#), "{out}");
        assert!(out.contains(r#"{\"type\":\"hologram\"}"#), "{out}");
        assert!(out.contains(r#"{\"type\":\"image\"}"#), "a block that is none: {out}");
    }
}
