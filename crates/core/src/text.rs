//! Text from outside, made safe to show [SEC-10].

use std::borrow::Cow;

/// Writes a number of things: `1 tool`, `2 tools`. `one` is the word for one of them.
#[must_use]
pub fn counted(n: impl Into<u64>, one: &str) -> String {
    match n.into() {
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    }
}

/// Escapes what a terminal or a reader would act on: control characters but tab, C1 controls, bidi
/// marks and invisible separators. A character of ASCII becomes `\xNN`, any other `\u{…}`.
///
/// A line feed is kept when `keeps_lines` is asked for by [`escape_lines`].
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_but(text, |c| c == '\t')
}

/// Escapes like [`escape`] but keeps line ends.
#[must_use]
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_but(text, |c| c == '\t' || c == '\n')
}

/// Escapes like [`escape`]; a byte that is no UTF-8 becomes `\xNN`.
#[must_use]
pub fn escape_bytes(bytes: &[u8]) -> String {
    let mut safe = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        safe.push_str(&escape(chunk.valid()));
        for byte in chunk.invalid() {
            safe.push_str(&format!("\\x{byte:02x}"));
        }
    }
    safe
}

/// Escapes what a reader would act on in a JSON text, in JSON's own way: the value stays the same.
/// White space between values is kept.
#[must_use]
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let acts = |c: char| acts(c) && !matches!(c, '\t' | '\n' | '\r');
    if !json.chars().any(acts) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if acts(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

fn escape_but(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| acts(c) && !keep(c)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !acts(c) || keep(c) {
            safe.push(c);
        } else if c.is_ascii() {
            safe.push_str(&format!("\\x{:02x}", u32::from(c)));
        } else {
            safe.extend(c.escape_unicode());
        }
    }
    Cow::Owned(safe)
}

/// Tells whether a character does something instead of showing something.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Cuts a text to at most `max` bytes at a character border.
#[must_use]
pub fn clip(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_no_plural() {
        let counts = [0_u32, 1, 2].map(|n| counted(n, "tool"));
        assert_eq!(counts, ["0 tools", "1 tool", "2 tools"]);
    }

    #[test]
    fn escapes_of_terminals_and_bidi_marks_become_visible() {
        // Case task-terminal-escapes-in-output.
        let hostile = "a\u{1b}[2J\u{7}b \u{9b}31m \u{202e}evil\u{202c} zero\u{200b}width tab\t";
        assert_eq!(
            escape(hostile),
            "a\\x1b[2J\\x07b \\u{9b}31m \\u{202e}evil\\u{202c} zero\\u{200b}width tab\t"
        );
    }

    #[test]
    fn plain_text_is_not_copied() {
        assert!(matches!(escape("Ωm 日本語 e\u{301} 👩\u{200d}👩"), Cow::Borrowed(_)));
        assert_eq!(escape_lines("a\nb"), "a\nb");
        assert_eq!(escape("a\nb"), "a\\x0ab");
    }

    #[test]
    fn bytes_that_are_not_utf_8_become_visible() {
        assert_eq!(escape_bytes(b"we ird.txt"), "we ird.txt");
        assert_eq!(
            escape_bytes("two\nlines \u{202e}.txt".as_bytes()),
            "two\\x0alines \\u{202e}.txt"
        );
        assert_eq!(escape_bytes(b"\xff\xc3\xa9"), "\\xffé");
    }

    #[test]
    fn marks_in_json_become_its_own_escapes_and_the_value_stays() {
        let json = "{\"a\": \"x\u{202e}y\u{e0041}\u{7f}\",\n\"b\": 1.0}";
        let safe = escape_json(json);
        assert_eq!(safe, "{\"a\": \"x\\u202ey\\udb40\\udc41\\u007f\",\n\"b\": 1.0}");
        let (one, two): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(json).expect("JSON"), serde_json::from_str(&safe).expect("JSON"));
        assert_eq!(one, two);
    }

    #[test]
    fn a_cut_never_falls_inside_a_character() {
        assert_eq!(clip("aé", 2), "a");
        assert_eq!(clip("aé", 9), "aé");
    }
}
