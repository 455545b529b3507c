//! `@csv`, `@html` and the like.

use jaq_json::Val;

use crate::filter::value::{Error, Value, fail, write};

pub(super) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

pub(super) fn sh(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(super) fn csv(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

pub(super) fn tsv(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

/// Writes an array of plain values as one line.
pub(super) fn row(
    value: &Value,
    format: &str,
    text: fn(&str) -> String,
    separator: &str,
) -> Result<Value, Error> {
    let Val::Arr(items) = &value.0 else {
        return fail(format_args!(
            "{} cannot be {format}-formatted, only an array can be",
            value.shown()
        ));
    };
    let mut cells = Vec::with_capacity(items.len());
    for item in items.iter() {
        cells.push(match item {
            Val::Null => String::new(),
            Val::Bool(_) | Val::Num(_) => write::bounded(item, usize::MAX),
            Val::TStr(bytes) => text(&String::from_utf8_lossy(bytes)),
            _ => {
                return fail(format_args!(
                    "{} is not valid in a {format} row",
                    Value(item.clone()).shown()
                ));
            }
        });
    }
    Ok(Value::from(cells.join(separator)))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

pub(super) fn base64(text: &str) -> String {
    encoded(text.as_bytes(), BASE64, 6, 4)
}

pub(super) fn base32(text: &str) -> String {
    encoded(text.as_bytes(), BASE32, 5, 8)
}

/// Writes bytes with so many bits in a digit, padded to a multiple of so many digits.
fn encoded(bytes: &[u8], digits: &[u8], bits: u32, multiple: usize) -> String {
    let mut out = String::with_capacity(bytes.len() * 8 / 5 + 8);
    let (mut held, mut n_held) = (0_u32, 0);
    let digit = |held: u32| {
        char::from(digits.get(held as usize & (digits.len() - 1)).copied().unwrap_or(b'='))
    };
    for byte in bytes {
        held = (held << 8 | u32::from(*byte)) & 0xffff;
        n_held += 8;
        while n_held >= bits {
            n_held -= bits;
            out.push(digit(held >> n_held));
        }
    }
    if n_held > 0 {
        out.push(digit(held << (bits - n_held)));
    }
    while !out.len().is_multiple_of(multiple) {
        out.push('=');
    }
    out
}

pub(super) fn base64_decoded(value: &Value) -> Result<Value, Error> {
    decoded(value, BASE64, 6, "base64")
}

pub(super) fn base32_decoded(value: &Value) -> Result<Value, Error> {
    decoded(value, BASE32, 5, "base32")
}

fn decoded(value: &Value, digits: &[u8], bits: u32, name: &str) -> Result<Value, Error> {
    let text = value.text("is not a string")?;
    let mut out = Vec::with_capacity(text.len());
    let (mut held, mut n_held) = (0_u32, 0);
    let body = text.trim_end_matches('=');
    for byte in body.bytes() {
        let Some(digit) = digits.iter().position(|digit| *digit == byte) else {
            return fail(format_args!("{} is not valid {name} data", value.shown()));
        };
        held = (held << bits | u32::try_from(digit).unwrap_or(0)) & 0xffff;
        n_held += bits;
        if n_held >= 8 {
            n_held -= 8;
            out.push(u8::try_from(held >> n_held & 0xff).unwrap_or(0));
        }
    }
    if !body.is_empty() && out.is_empty() {
        return fail(format_args!("{} trailing {name} data is not valid", value.shown()));
    }
    Ok(Value::from(String::from_utf8_lossy(&out).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_base64_and_base32() {
        for text in ["", "f", "fo", "foo", "foob", "fooba", "foobar", "äöü😀"] {
            for (encode, decode) in [
                (
                    base64 as fn(&str) -> String,
                    base64_decoded as fn(&Value) -> Result<Value, Error>,
                ),
                (base32, base32_decoded),
            ] {
                let value = decode(&Value::from(encode(text))).unwrap();
                assert_eq!(value.as_text(), Some(text));
            }
        }
        assert_eq!(base64("foob"), "Zm9vYg==");
        assert_eq!(base32("fooba"), "MZXW6YTB");
        assert_eq!(base32("foob"), "MZXW6YQ=");
    }
}
