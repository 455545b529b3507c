//! What a task takes in and gives out, byte for byte [RESULT-1].

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The deepest nesting of arrays and objects that is taken in.
pub const MAX_DEPTH: usize = 128;

/// A JSON text kept exactly as it was written: order of members, spelling of numbers and escapes.
///
/// Cloning shares the text.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

/// A text that is not JSON, or nests too deep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotJson {
    /// It does not parse; the reason names line and column.
    #[error("{0}")]
    Syntax(String),
    /// It nests deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    Depth,
}

impl Json {
    /// Checks a text and keeps it, without surrounding white space.
    ///
    /// # Errors
    /// `NotJson` when the text is not one JSON value or nests too deep.
    pub fn parse(text: impl Into<String>) -> Result<Self, NotJson> {
        let text = text.into();
        if depth(&text) > MAX_DEPTH {
            return Err(NotJson::Depth);
        }
        let trimmed = text.trim_matches([' ', '\t', '\n', '\r']);
        let text = if trimmed.len() == text.len() { text } else { trimmed.to_owned() };
        RawValue::from_string(text)
            .map(|raw| Self(Arc::from(raw)))
            .map_err(|error| NotJson::Syntax(error.to_string()))
    }

    /// Writes any value as JSON.
    ///
    /// # Errors
    /// When the value cannot be written, such as a map with keys that are not strings.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, NotJson> {
        serde_json::value::to_raw_value(value)
            .map(|raw| Self(Arc::from(raw)))
            .map_err(|error| NotJson::Syntax(error.to_string()))
    }

    /// Shares a raw value that a reader already checked.
    #[must_use]
    pub fn from_raw(raw: Box<RawValue>) -> Self {
        Self(Arc::from(raw))
    }

    /// Returns the empty object.
    #[must_use]
    pub fn empty_object() -> Self {
        Self::of(&serde_json::Map::new()).unwrap_or_else(|_| Self::null())
    }

    /// Returns `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(Arc::from(RawValue::NULL.to_owned()))
    }

    /// Returns the text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Returns the raw value.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// Reads the text into a type.
    ///
    /// # Errors
    /// When the text is no such value.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }
}

/// Counts the deepest nesting without recursion, so that a bomb of brackets costs one pass.
fn depth(text: &str) -> usize {
    let (mut level, mut deepest, mut in_string, mut escaped) = (0_usize, 0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                level += 1;
                deepest = deepest.max(level);
            }
            b']' | b'}' if !in_string => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from_raw)
    }
}

/// One part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A JSON value, given on byte for byte.
    Json(Json),
    /// Words.
    Text(Arc<str>),
    /// Bytes of a media type, such as a screenshot.
    Binary {
        /// The media type.
        mime: Arc<str>,
        /// The bytes.
        data: Arc<[u8]>,
    },
    /// A content block of another MCP server, given on as it came.
    Verbatim(Json),
}

impl Content {
    /// Returns about how many bytes the part takes in memory.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Json(json) | Self::Verbatim(json) => json.get().len(),
            Self::Text(text) => text.len(),
            Self::Binary { mime, data } => mime.len() + data.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_keeps_its_bytes() {
        let text = r#"{"z":1.0,"a":1e2,"big":123456789012345678901234567890,"e":"\u00e9\/é"}"#;
        assert_eq!(Json::parse(format!(" \n{text}\n")).expect("JSON").get(), text);
    }

    #[test]
    fn a_bomb_of_brackets_is_refused_without_recursion() {
        assert_eq!(Json::parse("[".repeat(1_000_000)), Err(NotJson::Depth));
        assert_eq!(depth(r#""[[[\"[[[" "#), 0);
    }

    #[test]
    fn a_broken_text_is_refused_with_its_place() {
        let error = Json::parse("{\"a\":}").expect_err("broken");
        assert!(error.to_string().contains("column"), "{error}");
    }
}
