//! Results of several parts: one JSON value, and the blocks that JSON cannot hold beside it.

use serde::{Serialize, Serializer};

use raincheck_core::content::{Content, Json};

use super::blocks::{Block, encode};

/// The parts of a result, sorted by how they go out.
#[derive(Debug)]
pub struct Parts<'a> {
    values: Vec<Part<'a>>,
    blocks: Vec<Block>,
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
    #[must_use]
    pub fn of(contents: &'a [Content]) -> Self {
        let mut parts = Self { values: Vec::new(), blocks: Vec::new() };
        for content in contents {
            match content {
                Content::Json(json) => parts.values.push(Part::Json(json)),
                Content::Text(words) => parts.values.push(Part::Text(words)),
                Content::Binary { mime, data } => parts.binary(mime, data),
                Content::Verbatim(block) => match Block::verbatim(block) {
                    Some(block) => parts.blocks.push(block),
                    None => parts.values.push(Part::Json(block)),
                },
            }
        }
        parts
    }

    fn binary(&mut self, mime: &'a str, data: &'a [u8]) {
        match Block::of(mime, data) {
            Some(block) => self.blocks.push(block),
            None => self.values.push(Part::File { mime, data }),
        }
    }

    /// Tells whether all of the result goes beside the JSON value.
    pub(super) const fn is_beside(&self) -> bool {
        self.values.is_empty() && !self.blocks.is_empty()
    }

    /// Returns the words that are all there is beside the blocks: they need no quotes.
    pub(super) fn words(&self) -> Option<&'a str> {
        match self.values.as_slice() {
            [Part::Text(words)] => Some(words),
            _ => None,
        }
    }

    /// Gives up the blocks that go beside the JSON value.
    pub(crate) fn take_blocks(&mut self) -> Vec<Block> {
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
                File { mime_type: mime, data_base64: encode(data) }.serialize(serializer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_values_go_out_as_an_array_and_none_as_null() {
        let json = Content::Json(Json::parse("7").expect("JSON"));
        let file = Content::Binary { mime: "font/woff2".into(), data: Vec::from(*b"fo").into() };
        let parts = [json, Content::Text("words".into()), file];
        assert_eq!(
            serde_json::to_string(&Parts::of(&parts)).expect("JSON"),
            r#"[7,"words",{"mime_type":"font/woff2","data_base64":"Zm8="}]"#
        );
        assert_eq!(serde_json::to_string(&Parts::of(&[])).expect("JSON"), "null");
    }
}
