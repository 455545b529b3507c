//! One answer of a server.

use std::time::Duration;

use serde_json::Value;

use super::{Unmet, expect};

/// What a tool answered, and after what time.
#[derive(Debug)]
pub struct Answer {
    /// The JSON of its text.
    pub data: Value,
    /// Whether the call failed.
    pub is_error: bool,
    /// How long the call took.
    pub took: Duration,
}

impl Answer {
    /// Reads the text of an answer.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn read(text: &str, is_error: bool, took: Duration) -> Result<Self, Unmet> {
        Ok(Self { data: serde_json::from_str(text)?, is_error, took })
    }

    /// Returns a text of the answer by its JSON Pointer.
    ///
    /// # Errors
    /// When it is not there.
    pub fn text(&self, pointer: &str) -> Result<&str, Unmet> {
        let found = self.data.pointer(pointer).and_then(Value::as_str);
        found.ok_or_else(|| Unmet(format!("`{pointer}` is missing in {}", self.data)))
    }

    /// Goes on only if a text of the answer is this one.
    ///
    /// # Errors
    /// When it is another, or not there.
    pub fn expect(&self, pointer: &str, want: &str) -> Result<(), Unmet> {
        let found = self.text(pointer)?;
        expect(found == want, || format!("`{pointer}` is not `{want}` in {}", self.data))
    }

    /// Returns a part of the answer as JSON; nothing if it is not there.
    #[must_use]
    pub fn json(&self, pointer: &str) -> String {
        self.data.pointer(pointer).map(Value::to_string).unwrap_or_default()
    }
}
