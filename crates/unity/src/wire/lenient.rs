//! Reading what hand-made writers get wrong: raw control characters inside of strings.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes raw control characters inside of strings, so that the text is JSON if that was all that was
/// wrong with it.
pub(crate) fn mended(text: &str) -> Cow<'_, str> {
    let (mut in_string, mut is_escaped) = (false, false);
    let mut mended = String::new();
    let mut copied = 0;
    for (at, c) in text.char_indices() {
        let is_raw = in_string && u32::from(c) < 0x20;
        match c {
            _ if is_raw => {
                mended.push_str(text.get(copied..at).unwrap_or_default());
                // An escape that was begun with it is none.
                let start = if is_escaped { "u" } else { "\\u" };
                // Writing to a string cannot fail.
                let _ = write!(mended, "{start}{:04x}", u32::from(c));
                copied = at + 1;
                is_escaped = false;
            }
            _ if is_escaped => is_escaped = false,
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    mended.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_control_characters_are_read_as_what_they_are() {
        // Case unity-raw-control-characters.
        let text = "{\"type\":\"result\",\n\"message\":\"tab\tline\nsoh\u{1}esc\u{1b}[2Jdel\u{7f} \\\" \\\\\"}";
        let value: serde_json::Value = serde_json::from_str(&mended(text)).expect("JSON");
        assert_eq!(value["message"], "tab\tline\nsoh\u{1}esc\u{1b}[2Jdel\u{7f} \" \\");
        assert!(serde_json::from_str::<serde_json::Value>(text).is_err());
    }

    #[test]
    fn what_is_json_is_left_alone() {
        let text = r#"{"a":"\n\u0001","b":[1,2]}"#;
        assert!(matches!(mended(text), Cow::Borrowed(same) if same == text));
    }
}
