//! Answers as our own types, and the one place where bytes for a client are made: a JSON text with
//! exactly the bytes the engine holds, and blocks beside it.

mod blocks;
mod failure;
mod fence;
mod parts;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{Spelling, ToolName};
use raincheck_core::progress::Progress;
use raincheck_core::task::TaskRecord;
use raincheck_core::text;

pub use self::blocks::Block;
pub use self::failure::{Failure, Refused};
pub use self::fence::Mark;

pub(crate) use self::fence::Begins;
pub use self::parts::Parts;

/// What a tool call is answered with: a text, JSON as a rule, and blocks beside it.
#[derive(Clone, Debug)]
pub struct Answer {
    text: Option<String>,
    beside: Vec<Block>,
    is_error: bool,
    /// The name that a list goes by where an object is asked for.
    list: Option<&'static str>,
    /// The task that it shows.
    task: Option<Shows>,
}

/// The task that an answer shows, by what its surface calls it.
#[derive(Clone, Debug)]
pub struct Shows {
    /// The tool of the task: its words are in the answer.
    pub tool: ToolName,
    /// The id of the task, as the surface spells it.
    pub id: String,
}

impl Answer {
    /// Returns how long the text is.
    pub(crate) fn text_len(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }

    /// Answers with a value, written as JSON.
    pub fn json(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(text) => Self::text(text),
            Err(error) => {
                let message = format!("the answer could not be written: {error}");
                Self::error(&Error::new(Kind::InvalidResponse, message))
            }
        }
    }

    /// Answers with a text as it is.
    #[must_use]
    pub const fn text(text: String) -> Self {
        Self { text: Some(text), beside: Vec::new(), is_error: false, list: None, task: None }
    }

    /// Answers with a failure in our own words, as `{"error": …}`.
    #[must_use]
    pub fn error(error: &Error) -> Self {
        Self::failure(Failure::ours(&own(error)))
    }

    /// Answers with a failure as `{"error": …}`.
    #[must_use]
    pub fn failure(failure: Failure<'_>) -> Self {
        #[derive(Serialize)]
        struct Failed<'a> {
            error: Failure<'a>,
        }
        Self::json(&Failed { error: failure }).into_failure()
    }

    /// Answers a call that came to nothing, in the canonical words.
    #[must_use]
    pub fn refused(refused: &Refused) -> Self {
        Self::failure(Failure::ours(&own(&refused.error)).told(refused.guarantee()))
    }

    /// Answers with the result of a tool, as it is [RESULT-1].
    #[must_use]
    pub fn result(contents: &[Content]) -> Self {
        match contents {
            [Content::Json(json)] => Self::text(json.get().to_owned()),
            [Content::Text(words)] => Self::text(words.to_string()),
            [] => Self::text(Json::null().get().to_owned()),
            _ => {
                let mut parts = Parts::of(contents);
                let is_beside = parts.is_beside();
                let beside = parts.take_blocks();
                if is_beside {
                    return Self { text: None, beside, is_error: false, list: None, task: None };
                }
                let text = match parts.words() {
                    Some(words) => Self::text(words.to_owned()),
                    None => Self::json(&parts),
                };
                text.with_beside(beside)
            }
        }
    }

    /// Adds blocks beside the text.
    #[must_use]
    pub fn with_beside(mut self, blocks: Vec<Block>) -> Self {
        self.beside = blocks;
        self
    }

    /// Marks the answer as a failed call.
    #[must_use]
    pub const fn into_failure(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Names the list that the answer is, for clients that ask for objects.
    #[must_use]
    pub const fn listed_as(mut self, name: &'static str) -> Self {
        self.list = Some(name);
        self
    }

    /// Names the task that the answer shows, whose id its caller has.
    pub(crate) fn of_task(mut self, record: &TaskRecord, spelling: Spelling) -> Self {
        let (tool, id) = (record.task.tool.clone(), record.id().spell(spelling));
        self.task = Some(Shows { tool, id });
        self
    }

    /// Returns the task that the answer shows, where it shows one.
    #[must_use]
    pub const fn task(&self) -> Option<&Shows> {
        self.task.as_ref()
    }

    /// Writes every character that acts instead of showing something as an escape of JSON: the value
    /// stays the same, and no terminal and no reader is misled [SEC-10].
    #[must_use]
    pub fn with_marks_escaped(mut self) -> Self {
        if let Some(text) = &self.text
            && let Cow::Owned(safe) = text::escape_json(text)
        {
            self.text = Some(safe);
        }
        self
    }

    /// Returns the text; `None` when all of the answer stands beside it.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Tells whether the call failed.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.is_error
    }

    /// Makes a text of it, without what stands beside.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text.unwrap_or_else(|| Json::null().get().to_owned())
    }

    /// Takes it apart: the text, the blocks beside it, and the name of the list that it is.
    pub(crate) fn into_parts(self) -> (Option<String>, Vec<Block>, Option<&'static str>) {
        (self.text, self.beside, self.list)
    }
}

/// Makes an error fit to be shown inside a fence, with what others said about it; none of that acts on
/// a terminal.
pub(crate) fn shown(error: &Error) -> Error {
    let mut shown = own(error);
    shown.quoted.clone_from(&error.quoted);
    if let Some(quoted) = &error.quoted {
        let said = text::escape_lines(&quoted.text);
        shown.message = format!("{}: {said}", shown.message).into();
        shown.details = joined(error.details.as_ref(), quoted.details.as_ref());
    }
    shown
}

/// Makes an error fit to be shown, in our own words alone.
pub(crate) fn own(error: &Error) -> Error {
    let mut own = error.clone();
    own.quoted = None;
    if let Cow::Owned(safe) = text::escape_lines(&error.message) {
        own.message = safe.into();
    }
    own
}

/// Joins the members of two objects; ours win.
fn joined(own: Option<&Json>, quoted: Option<&Json>) -> Option<Json> {
    let members = |json: &Json| json.read::<Map<String, Value>>().ok();
    let mut all = quoted.and_then(members).unwrap_or_default();
    all.extend(own.and_then(members).unwrap_or_default());
    if all.is_empty() { None } else { Json::of(&all).ok() }
}

/// Makes a report fit to be shown: what a tool said in it acts on no terminal.
pub(crate) fn shown_progress(progress: &Progress) -> Progress {
    let safe = |words: &Option<String>| words.as_deref().map(|w| text::escape(w).into_owned());
    Progress { phase: safe(&progress.phase), message: safe(&progress.message), ..progress.clone() }
}
