//! Results of several parts: one JSON value, and the blocks that JSON cannot hold beside it.

use rmcp::model::ContentBlock;
use serde::{Serialize, Serializer};

use raincheck_core::content::{Content, Json};

use super::base64;

/// The parts of a result, sorted by how they go out.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    values: Vec<Part<'a>>,
    blocks: Vec<ContentBlock>,
}

/// A part that goes out inside the JSON value.
#[derive(Debug)]
enum Part<'a> {
    Json(&'a Json),
    Text(&'a str),
    File { mime: &'a str, data: &'a [u8] },
}

impl<'a> Parts<'a> {
    /// Sorts the parts of a result.
    pub(crate) fn of(contents: &'a [Content]) -> Self {
        let mut parts = Self { values: Vec::new(), blocks: Vec::new() };
        for content in contents {
            match content {
                Content::Json(json) => parts.values.push(Part::Json(json)),
                Content::Text(words) => parts.values.push(Part::Text(words)),
                Content::Binary { mime, data } => parts.binary(mime, data),
                Content::Verbatim(block) => match block.read::<ContentBlock>() {
                    Ok(block) => parts.blocks.push(block),
                    Err(_) => parts.values.push(Part::Json(block)),
                },
            }
        }
        parts
    }

    fn binary(&mut self, mime: &'a str, data: &'a [u8]) {
        if mime.starts_with("image/") {
            self.blocks.push(ContentBlock::image(base64::encode(data), mime));
        } else if mime.starts_with("audio/") {
            self.blocks.push(ContentBlock::audio(base64::encode(data), mime));
        } else {
            self.values.push(Part::File { mime, data });
        }
    }

    /// Tells whether all of the result goes beside the JSON value.
    pub(super) fn is_beside(&self) -> bool {
        self.values.is_empty() && !self.blocks.is_empty()
    }

    /// Gives up the blocks that go beside the JSON value.
    pub(crate) fn take_blocks(&mut self) -> Vec<ContentBlock> {
        std::mem::take(&mut self.blocks)
    }
}

/// Writes a single part bare, several as an array, none as `null`.
impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.values.as_slice() {
            [] => serializer.serialize_unit(),
            [part] => part.serialize(serializer),
            parts => serializer.collect_seq(parts),
        }
    }
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// Bytes of a media type that has no block of its own.
        #[derive(Serialize)]
        struct File<'a> {
            mime_type: &'a str,
            data_base64: String,
        }

        match self {
            Self::Json(json) => json.serialize(serializer),
            Self::Text(words) => serializer.serialize_str(words),
            Self::File { mime, data } => {
                File { mime_type: mime, data_base64: base64::encode(data) }.serialize(serializer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Answer;
    use super::*;

    fn json(text: &str) -> Content {
        Content::Json(Json::parse(text).expect("JSON"))
    }

    fn image() -> Content {
        Content::Binary { mime: "image/png".into(), data: Vec::from(*b"png").into() }
    }

    fn wire(contents: &[Content]) -> String {
        serde_json::to_string(&Answer::result(contents).into_result(false)).expect("JSON")
    }

    #[test]
    fn one_value_goes_out_with_its_bytes_and_an_image_beside_it() {
        // [RESULT-1]
        assert_eq!(
            wire(&[json(r#"{"z":1.0,"a":1e2}"#), image()]),
            r#"{"resultType":"complete","content":[{"type":"text","text":"{\"z\":1.0,\"a\":1e2}"},{"type":"image","data":"cG5n","mimeType":"image/png"}],"isError":false}"#
        );
        assert!(!wire(&[image()]).contains("\"text\""), "an image alone needs no words");
    }

    #[test]
    fn several_values_go_out_as_an_array_and_none_as_null() {
        let file = Content::Binary { mime: "font/woff2".into(), data: Vec::from(*b"f").into() };
        let parts = [json("7"), Content::Text("words".into()), file];
        assert_eq!(
            serde_json::to_string(&Parts::of(&parts)).expect("JSON"),
            r#"[7,"words",{"mime_type":"font/woff2","data_base64":"Zg=="}]"#
        );
        assert_eq!(serde_json::to_string(&Parts::of(&[])).expect("JSON"), "null");
    }

    #[test]
    fn a_block_of_another_server_goes_out_as_it_came() {
        let block = Json::parse(r#"{"type":"text","text":"hi"}"#).expect("JSON");
        let odd = Json::parse(r#"{"type":"hologram"}"#).expect("JSON");
        let out = wire(&[Content::Verbatim(block), Content::Verbatim(odd)]);
        assert!(out.contains(r#"{"type":"text","text":"hi"}"#), "{out}");
        assert!(out.contains(r#"{\"type\":\"hologram\"}"#), "{out}");
    }
}
