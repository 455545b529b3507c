//! From JSON to a value; strings without escapes are slices of the text.

use bytes::Bytes;
use jaq_json::{Map, Rc, Val};

use super::number;

/// How deep a text may nest.
const DEPTH: usize = 10_000;

/// Reads exactly one value.
///
/// # Errors
///
/// Says at which byte the text is not JSON.
pub(in crate::filter) fn json(text: &Bytes) -> Result<Val, String> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(DEPTH)?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.wrong("more than one value"));
    }
    Ok(value)
}

struct Reader<'t> {
    text: &'t Bytes,
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, why: &str) -> String {
        format!("{why} at byte {}", self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        self.skip_space();
        if self.peek() != Some(byte) {
            return Err(self.wrong(&format!("`{}` is missing", char::from(byte))));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, value: Val) -> Result<Val, String> {
        let end = self.at + word.len();
        if self.text.get(self.at..end) != Some(word.as_bytes()) {
            return Err(self.wrong("not a JSON value"));
        }
        self.at = end;
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Result<Val, String> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => self.string().map(Val::utf8_str),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b't') => self.word("true", Val::Bool(true)),
            Some(b'f') => self.word("false", Val::Bool(false)),
            Some(b'n') if self.text.get(self.at..self.at + 3) == Some(b"nan") => {
                self.word("nan", Val::Num(number::from_f64(f64::NAN)))
            }
            Some(b'n') => self.word("null", Val::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.wrong("not a JSON value")),
        }
    }

    fn number(&mut self) -> Result<Val, String> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let len = rest
            .iter()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .count();
        let text =
            rest.get(..len).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
        // Stricter than a double: no `+1`, no `.5`, no `1.`, no `01`.
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_strict = digits.starts_with(|c: char| c.is_ascii_digit())
            && text.ends_with(|c: char| c.is_ascii_digit())
            && !digits.contains(".e")
            && !digits.contains(".E")
            && !(digits.len() > 1
                && digits.starts_with('0')
                && digits.as_bytes().get(1).is_some_and(u8::is_ascii_digit));
        if !is_strict || text.parse::<f64>().is_err() {
            return Err(self.wrong("not a number"));
        }
        self.at += len;
        Ok(Val::Num(number::literal(text)))
    }

    fn array(&mut self, depth: usize) -> Result<Val, String> {
        let depth = depth.checked_sub(1).ok_or_else(|| self.wrong("nested too deep"))?;
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Val::Arr(Rc::new(items)));
        }
        loop {
            items.push(self.value(depth)?);
            self.skip_space();
            if self.peek() != Some(b',') {
                break;
            }
            self.at += 1;
        }
        self.expect(b']')?;
        items.shrink_to_fit();
        Ok(Val::Arr(Rc::new(items)))
    }

    fn object(&mut self, depth: usize) -> Result<Val, String> {
        let depth = depth.checked_sub(1).ok_or_else(|| self.wrong("nested too deep"))?;
        self.at += 1;
        let mut map = Map::default();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Val::obj(map));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.wrong("a key is missing"));
            }
            let key = self.string()?;
            self.expect(b':')?;
            let value = self.value(depth)?;
            map.insert(Val::utf8_str(key), value);
            self.skip_space();
            if self.peek() != Some(b',') {
                break;
            }
            self.at += 1;
        }
        self.expect(b'}')?;
        Ok(Val::obj(map))
    }

    fn string(&mut self) -> Result<Bytes, String> {
        self.at += 1;
        let begin = self.at;
        let rest = self.text.get(begin..).unwrap_or_default();
        let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0x00..=0x1f));
        let plain = plain.ok_or_else(|| self.wrong("a string without end"))?;
        self.at = begin + plain;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(self.text.slice(begin..begin + plain));
        }
        let mut out = rest.get(..plain).unwrap_or_default().to_vec();
        self.escaped(&mut out)?;
        Ok(Bytes::from(out))
    }

    fn escaped(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        loop {
            let byte = self.peek().ok_or_else(|| self.wrong("a string without end"))?;
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => {
                    let (char, len) = escape(self.text.get(self.at..).unwrap_or_default())
                        .ok_or_else(|| self.wrong("an unknown escape"))?;
                    self.at += len;
                    out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                }
                0x00..=0x1f => return Err(self.wrong("a control character in a string")),
                byte => out.push(byte),
            }
        }
    }
}

/// Reads an escape behind its backslash: the character, and how many bytes it took. A surrogate without
/// its other half is the replacement character.
pub(in crate::filter) fn escape(text: &[u8]) -> Option<(char, usize)> {
    let char = match text.first()? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let first = unit(text.get(1..5)?)?;
            if let Some(char) = char::from_u32(first) {
                return Some((char, 5));
            }
            let low = text.get(5..11).filter(|next| next.starts_with(b"\\u"));
            let low = low.and_then(|next| next.get(2..)).and_then(unit);
            let pair = low.filter(|low| (0xdc00..0xe000).contains(low) && first < 0xdc00);
            let char = pair.and_then(|low| {
                char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00))
            });
            return Some(char.map_or((char::REPLACEMENT_CHARACTER, 5), |char| (char, 11)));
        }
        _ => return None,
    };
    Some((char, 1))
}

fn unit(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits)
        .ok()
        .filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::value::write;

    fn round(text: &'static str) -> Result<String, String> {
        let mut out = Vec::new();
        write::json(&json(&Bytes::from_static(text.as_bytes()))?, &mut out, 1 << 20, 512).unwrap();
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn json_comes_back_compact_and_as_it_was_written() {
        let table = [
            (
                r#" { "a" : [ 1.0 , -0, 1E5, "x\u0041\/é" ] , "b" : { } , "a" : null } "#,
                r#"{"a":null,"b":{}}"#,
            ),
            ("[1.0,-0,1E5,12345678901234567890]", "[1.0,-0,1E5,12345678901234567890]"),
            (r#""\ud83d\ude00\ud800x""#, "\"😀\u{fffd}x\""),
        ];
        for (text, wanted) in table {
            assert_eq!(round(text).unwrap(), wanted);
        }
        for text in ["01", "1.", "[1,]", "{\"a\"}", "nul", "\"", "\"\u{1}\"", "1 2", ""] {
            assert!(round(text).is_err(), "{text}");
        }
    }
}
