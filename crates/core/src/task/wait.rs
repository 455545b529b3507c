//! Why a task waits, as a word: who holds its lane chooses it.

use std::borrow::Cow;
use std::fmt;

/// Why a task is `waiting`: a short word of whoever holds its lane, such as a bridge whose peer is away.
///
/// The contract has one word of its own. Every other is kept and shown as it is, also by a version that
/// never heard of it. A word is 1 to 40 bytes of `a` to `z`, `0` to `9` and `_`, and begins with a letter.
///
/// ```
/// use raincheck_core::task::WaitReason;
///
/// const COMPILING: WaitReason = WaitReason::new("compiling");
/// assert_eq!(WaitReason::parse("compiling"), Some(COMPILING));
/// assert_eq!(WaitReason::parse("Not now!"), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct WaitReason(Cow<'static, str>);

impl WaitReason {
    /// The longest word, in bytes.
    pub const MAX_LEN: usize = 40;

    /// The pause before another attempt: the only wait that the contract itself begins.
    pub const RETRY_BACKOFF: Self = Self::new("retry_backoff");

    /// Takes a word of this program. As a constant it is checked when the program is compiled.
    ///
    /// # Panics
    /// When it is no word.
    #[must_use]
    pub const fn new(word: &'static str) -> Self {
        assert!(is_word(word), "a reason to wait is 1 to 40 bytes of a-z, 0-9 and `_`");
        Self(Cow::Borrowed(word))
    }

    /// Takes a word from outside, such as a file; `None` when it is none.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        is_word(word).then(|| Self(Cow::Owned(word.to_owned())))
    }

    /// Returns the word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const fn is_word(text: &str) -> bool {
    let mut rest = text.as_bytes();
    if !matches!(rest, [b'a'..=b'z', ..]) || rest.len() > WaitReason::MAX_LEN {
        return false;
    }
    while let [byte, tail @ ..] = rest {
        if !matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_') {
            return false;
        }
        rest = tail;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_short_and_plain_and_nothing_else_is_one() {
        let longest = "a".repeat(WaitReason::MAX_LEN);
        for word in ["retry_backoff", "waiting_for_browser", "x", "gpu0_busy", &longest] {
            let reason = WaitReason::parse(word).expect(word);
            assert_eq!(reason.as_str(), word);
        }
        assert_eq!(WaitReason::parse("retry_backoff"), Some(WaitReason::RETRY_BACKOFF));
        let long = format!("{longest}a");
        for text in ["", "_a", "0a", "Busy", "is busy", "a\u{202e}", "a\n", "é", &long] {
            assert_eq!(WaitReason::parse(text), None, "{text:?}");
        }
    }
}
