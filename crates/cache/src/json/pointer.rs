//! JSON Pointer, RFC 6901.

use std::{fmt, fmt::Write as _};

/// Longest pointer that is followed, in bytes.
const LONGEST: usize = 64 * 1024;

/// A place in a body: `""` is the whole, `/items/3/name` a value inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pointer {
    text: String,
}

/// Why a text is not a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON pointer of at most 64 KiB: it begins with `/`, and `~` is followed by 0 or 1")]
pub struct InvalidPointer;

impl Pointer {
    /// Returns the pointer that `text` says. `#/a`, `.a` and `a` are not pointers.
    ///
    /// # Errors
    ///
    /// When `text` is neither empty nor begins with `/`, has a `~` without 0 or 1, or is longer than
    /// 64 KiB.
    pub fn parse(text: &str) -> Result<Self, InvalidPointer> {
        let is_escaped =
            text.split('~').skip(1).all(|rest| rest.starts_with('0') || rest.starts_with('1'));
        let is_rooted = text.is_empty() || text.starts_with('/');
        if !is_rooted || !is_escaped || text.len() > LONGEST {
            return Err(InvalidPointer);
        }
        Ok(Self { text: text.to_owned() })
    }

    /// Returns the pointer as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether this is the whole body.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the steps, each as it is written.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &str> {
        self.text.split('/').skip(1)
    }

    /// Adds a step: a member's name.
    pub fn push_name(&mut self, name: &str) {
        self.text.push('/');
        for character in name.chars() {
            match character {
                '~' => self.text.push_str("~0"),
                '/' => self.text.push_str("~1"),
                other => self.text.push(other),
            }
        }
    }

    /// Adds a step: an item's position.
    pub fn push_position(&mut self, position: usize) {
        let _ = write!(self.text, "/{position}");
    }

    /// Returns the name of the last step, unescaped.
    #[must_use]
    pub fn last(&self) -> Option<String> {
        self.steps().last().map(unescape)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the name that a step stands for.
pub(crate) fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Returns the position that a step stands for: digits without a leading zero.
pub(crate) fn position(step: &str) -> Option<usize> {
    let is_plain = step == "0" || !step.starts_with('0');
    let is_digits = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain && is_digits { step.parse().ok() } else { None }
}
