//! From the text of a filter to tokens.

use super::Problem;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword or the name of a filter, such as `map`.
    Word,
    /// A key behind a dot, such as `.name`; the text is with the dot.
    Field,
    /// A variable, such as `$x`; the text is with the dollar sign.
    Variable,
    /// A format, such as `@csv`; the text is with the sign.
    Format,
    /// A number.
    Number,
    /// An operator or a bracket.
    Sign,
    /// The opening quote of a string.
    Quote,
    /// A piece of a string that stands for itself.
    Text,
    /// An escape in a string.
    Char(char),
    /// `\(` in a string.
    Enter,
    /// The `)` of a `\(`.
    Leave,
    /// The closing quote of a string.
    Unquote,
    /// The end of the text.
    End,
}

/// A piece of the text of a filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'s> {
    pub(super) kind: Kind,
    pub(super) text: &'s str,
    /// Where it begins, in bytes.
    pub(super) at: usize,
}

/// What the lexer is in, from the outside to the inside.
enum Nest {
    /// A string; where it begins.
    String(usize),
    /// `\(…)` in a string, with so many open parentheses inside.
    Hole(usize),
}

/// The operators, the longer ones first.
const SIGNS: &[&str] = &[
    "?//=", "?//", "//=", "|=", "+=", "-=", "*=", "/=", "%=", "==", "!=", "<=", ">=", "//", "..",
    "|", ",", "+", "-", "*", "/", "%", "=", "<", ">", "(", ")", "[", "]", "{", "}", ":", ";", ".",
    "?",
];

struct Lexer<'s> {
    text: &'s str,
    at: usize,
    nest: Vec<Nest>,
    tokens: Vec<Token<'s>>,
}

/// Cuts a filter into tokens; the last is [`Kind::End`].
pub(super) fn lex(text: &str) -> Result<Vec<Token<'_>>, Problem> {
    let mut lexer = Lexer { text, at: 0, nest: Vec::new(), tokens: Vec::new() };
    while lexer.step()? {}
    Ok(lexer.tokens)
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn push(&mut self, kind: Kind, len: usize) {
        let text = self.rest().get(..len).unwrap_or_default();
        self.tokens.push(Token { kind, text, at: self.at });
        self.at += len;
    }

    fn step(&mut self) -> Result<bool, Problem> {
        if let Some(Nest::String(begin)) = self.nest.last() {
            let begin = *begin;
            self.in_string(begin)?;
            return Ok(true);
        }
        self.skip_space();
        let rest = self.rest();
        let mut chars = rest.chars();
        let Some(first) = chars.next() else {
            self.push(Kind::End, 0);
            return Ok(false);
        };
        let second = chars.next().unwrap_or(' ');
        match first {
            '"' => {
                self.nest.push(Nest::String(self.at));
                self.push(Kind::Quote, 1);
            }
            '.' if is_name_start(second) => self.push(Kind::Field, 1 + name(chars_behind(rest, 1))),
            '.' if second.is_ascii_digit() => self.push(Kind::Number, number(rest)),
            '0'..='9' => self.push(Kind::Number, number(rest)),
            '$' | '@' => self.sigil(first, rest)?,
            c if is_name_start(c) => self.word(rest),
            _ => self.sign(rest, first)?,
        }
        Ok(true)
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            let Some(comment) = trimmed.strip_prefix('#') else { return };
            self.at += 1 + comment_len(comment);
        }
    }

    fn sigil(&mut self, first: char, rest: &str) -> Result<(), Problem> {
        let len = name(chars_behind(rest, 1));
        if len == 0 {
            let what = if first == '$' {
                "a variable is `$name`"
            } else {
                "a format is `@json`, `@csv` and the like"
            };
            return Err(Problem::at(self.at, first, what));
        }
        self.push(if first == '$' { Kind::Variable } else { Kind::Format }, 1 + len);
        Ok(())
    }

    fn word(&mut self, rest: &str) {
        let mut len = name(rest);
        while let Some(behind) = chars_behind(rest, len).strip_prefix("::") {
            match name(behind) {
                0 => break,
                more => len += 2 + more,
            }
        }
        self.push(Kind::Word, len);
    }

    fn sign(&mut self, rest: &str, first: char) -> Result<(), Problem> {
        let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) else {
            let hint = match first {
                '\'' => "strings are written with double quotes: \"…\"",
                '&' => "write `and`",
                '!' => "write `… | not`, or `!=`",
                c if !c.is_ascii() => "a key that is not plain letters is written `.[\"key\"]`",
                _ => "this sign has no meaning in a filter",
            };
            return Err(Problem::at(self.at, first, hint));
        };
        let mut kind = Kind::Sign;
        if let Some(Nest::Hole(open)) = self.nest.last_mut() {
            match *sign {
                "(" => *open += 1,
                ")" if *open == 0 => {
                    self.nest.pop();
                    kind = Kind::Leave;
                }
                ")" => *open -= 1,
                _ => {}
            }
        }
        self.push(kind, sign.len());
        Ok(())
    }

    fn in_string(&mut self, begin: usize) -> Result<(), Problem> {
        let rest = self.rest();
        let len = rest.find(['"', '\\']).unwrap_or(rest.len());
        if len > 0 {
            self.push(Kind::Text, len);
            return Ok(());
        }
        if rest.starts_with('"') {
            self.nest.pop();
            self.push(Kind::Unquote, 1);
            return Ok(());
        }
        if rest.is_empty() {
            let near = self.text.get(begin..).unwrap_or_default();
            return Err(Problem::near(begin, near, "close the string with `\"`"));
        }
        let (kind, len) = escape(rest).map_err(|hint| Problem::near(self.at, rest, hint))?;
        if kind == Kind::Enter {
            self.nest.push(Nest::Hole(0));
        }
        self.push(kind, len);
        Ok(())
    }
}

/// Reads an escape, from its backslash.
fn escape(rest: &str) -> Result<(Kind, usize), &'static str> {
    let char = match rest.as_bytes().get(1) {
        Some(b'(') => return Ok((Kind::Enter, 2)),
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(rest),
        _ => {
            return Err(
                "in a string a backslash is written `\\\\`; known escapes are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX \\(…)",
            );
        }
    };
    Ok((Kind::Char(char), 2))
}

fn unicode(rest: &str) -> Result<(Kind, usize), &'static str> {
    let unit = |at: usize| {
        let digits =
            rest.get(at..at + 4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        u32::from_str_radix(digits, 16).ok()
    };
    let first = unit(2).ok_or("`\\u` needs four hexadecimal digits")?;
    if let Some(char) = char::from_u32(first) {
        return Ok((Kind::Char(char), 6));
    }
    let second = if rest.get(6..8) == Some("\\u") { unit(8) } else { None };
    let pair = second.filter(|low| (0xdc00..0xe000).contains(low) && first < 0xdc00);
    let char =
        pair.and_then(|low| char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00)));
    Ok(char.map_or((Kind::Char(char::REPLACEMENT_CHARACTER), 6), |char| (Kind::Char(char), 12)))
}

const fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// The length of the name that the text begins with; 0 for none.
fn name(text: &str) -> usize {
    if !text.starts_with(is_name_start) {
        return 0;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

fn chars_behind(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

/// The length of a comment, to the end of its line; an odd number of backslashes there joins the next.
fn comment_len(comment: &str) -> usize {
    let mut len = 0;
    for line in comment.split_inclusive('\n') {
        len += line.len();
        let content = line.trim_end_matches(['\n', '\r']);
        let slashes = content.len() - content.trim_end_matches('\\').len();
        if slashes % 2 == 0 {
            break;
        }
    }
    len
}

/// The length of the number that the text begins with.
fn number(text: &str) -> usize {
    let digits = |at: usize| chars_behind(text, at).bytes().take_while(u8::is_ascii_digit).count();
    let mut len = digits(0);
    if chars_behind(text, len).starts_with('.') {
        len += 1 + digits(len + 1);
    }
    if chars_behind(text, len).starts_with(['e', 'E']) {
        let sign = usize::from(chars_behind(text, len + 1).starts_with(['+', '-']));
        let exponent = digits(len + 1 + sign);
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        lex(text).unwrap().into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn a_filter_is_cut_at_its_operators() {
        assert_eq!(texts(".a.b?//1e3"), [".a", ".b", "?//", "1e3", ""]);
        assert_eq!(texts("..|.[1:]"), ["..", "|", ".", "[", "1", ":", "]", ""]);
        assert_eq!(texts(". # comment \\\n still\n| 1."), [".", "|", "1.", ""]);
    }

    #[test]
    fn a_string_holds_filters() {
        assert_eq!(texts(r#""a\((1))b""#), ["\"", "a", "\\(", "(", "1", ")", ")", "b", "\"", ""]);
        let kinds: Vec<_> = lex(r#""😀\ud800""#).unwrap().iter().map(|token| token.kind).collect();
        assert_eq!(
            kinds,
            [Kind::Quote, Kind::Text, Kind::Char('\u{fffd}'), Kind::Unquote, Kind::End]
        );
        assert_eq!(lex(r#""\ud83d\ude00""#).unwrap()[1].kind, Kind::Char('😀'));
    }
}
