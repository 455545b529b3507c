//! The one writer of answers: a JSON text block with exactly the bytes the engine holds, images
//! beside it.
//!
//! Every tool answer leaves through [`Answer::into_result`]; whatever has to look at a whole answer,
//! such as its size, belongs there.

mod base64;
mod parts;

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Map, Value};

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Kind};
use raincheck_core::text;

pub(crate) use self::parts::Parts;

/// What a tool call is answered with.
#[derive(Debug)]
pub(crate) struct Answer {
    text: Option<String>,
    beside: Vec<ContentBlock>,
    is_error: bool,
    /// The name that a list goes by where an object is asked for.
    list: Option<&'static str>,
}

impl Answer {
    /// Answers with a value.
    pub(crate) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(text) => Self { text: Some(text), beside: Vec::new(), is_error: false, list: None },
            Err(error) => {
                let message = format!("the answer could not be written: {error}");
                Self::error(&Error::new(Kind::InvalidResponse, message))
            }
        }
    }

    /// Answers with a failure.
    pub(crate) fn error(error: &Error) -> Self {
        #[derive(Serialize)]
        struct Failure<'a> {
            error: &'a Error,
        }
        Self::json(&Failure { error: &shown(error) }).into_failure()
    }

    /// Answers with the result of a tool, as it is [RESULT-1].
    pub(crate) fn result(contents: &[Content]) -> Self {
        match contents {
            [Content::Json(json)] => Self::raw(json),
            [Content::Text(words)] => Self {
                text: Some(words.to_string()),
                beside: Vec::new(),
                is_error: false,
                list: None,
            },
            [] => Self::raw(&Json::null()),
            _ => {
                let mut parts = Parts::of(contents);
                let is_beside = parts.is_beside();
                let blocks = parts.take_blocks();
                if is_beside {
                    return Self { text: None, beside: blocks, is_error: false, list: None };
                }
                Self::json(&parts).with_beside(blocks)
            }
        }
    }

    fn raw(json: &Json) -> Self {
        Self { text: Some(json.get().to_owned()), beside: Vec::new(), is_error: false, list: None }
    }

    /// Adds blocks beside the text.
    pub(crate) fn with_beside(mut self, blocks: Vec<ContentBlock>) -> Self {
        self.beside = blocks;
        self
    }

    /// Marks the answer as a failed call.
    pub(crate) fn into_failure(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Names the list that the answer is, for clients that ask for objects.
    pub(crate) const fn listed_as(mut self, name: &'static str) -> Self {
        self.list = Some(name);
        self
    }

    /// Writes every character that acts instead of showing something as an escape of JSON: the value
    /// stays the same, and no terminal and no reader is misled [SEC-10].
    pub(crate) fn with_marks_escaped(mut self) -> Self {
        if let Some(text) = &self.text
            && let std::borrow::Cow::Owned(safe) = text::escape_json(text)
        {
            self.text = Some(safe);
        }
        self
    }

    /// Makes a text of it, without what stands beside.
    pub(crate) fn into_text(self) -> String {
        self.text.unwrap_or_else(|| "null".to_owned())
    }

    /// Makes the wire's result. With `is_structured`, an object goes out a second time as
    /// `structuredContent`; what is no object cannot, and stays in the text alone.
    pub(crate) fn into_result(self, is_structured: bool) -> CallToolResult {
        let structured: Option<Map<String, Value>> =
            self.text.as_deref().filter(|_| is_structured).and_then(|text| match self.list {
                None => serde_json::from_str(text).ok(),
                Some(name) => {
                    let list: Value = serde_json::from_str(text).ok()?;
                    Some(std::iter::once((name.to_owned(), list)).collect())
                }
            });
        let text = self.text.map(ContentBlock::text);
        let content = text.into_iter().chain(self.beside).collect();
        let mut result = CallToolResult::success(content);
        result.is_error = Some(self.is_error);
        result.structured_content = structured.map(Value::Object);
        result
    }
}

/// Makes an error fit to be shown: what a tool said in it acts on no terminal.
pub(crate) fn shown(error: &Error) -> Error {
    let mut shown = error.clone();
    if let Some(quoted) = shown.quoted.take() {
        shown.message = format!("{}: {}", error.message, quoted.text).into();
        shown.details = joined(error.details.as_ref(), quoted.details.as_ref());
    }
    if let std::borrow::Cow::Owned(safe) = text::escape_lines(&shown.message) {
        shown.message = safe.into();
    }
    shown
}

/// Joins the members of two objects.
fn joined(own: Option<&Json>, quoted: Option<&Json>) -> Option<Json> {
    let members = |json: &Json| json.read::<Map<String, Value>>().ok();
    let mut all = quoted.and_then(members).unwrap_or_default();
    all.extend(own.and_then(members).unwrap_or_default());
    if all.is_empty() { None } else { Json::of(&all).ok() }
}
