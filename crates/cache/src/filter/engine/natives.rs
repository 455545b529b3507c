//! The filters that are not defined in terms of others.

use bytes::Bytes;
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{Cv, ValT as _, data};
use jaq_json::{Num, Val};
use jaq_std::ValT as _;

use super::regex;
use crate::filter::value::{Error, Value, fail, number, place, read, split_text, write};

/// What filters run on.
pub(super) type Data = data::JustLut<Value>;

/// Filters of the engine's libraries that are not taken over: they reach out of the filter, or have
/// another meaning in jq.
const LEFT_OUT: &[&str] = &[
    "halt",
    "env",
    "debug_empty",
    "stderr_empty",
    "ltrimstr",
    "rtrimstr",
    "trim",
    "ltrim",
    "rtrim",
    "escape_sh",
    "escape_html",
    "unescape_html",
    "matches",
    "split_matches",
    "split_",
    "localtime",
    "strflocaltime",
    "implode",
    "encode_base64",
    "decode_base64",
    "startswith",
    "endswith",
    "utf8bytelength",
    "floor",
    "ceil",
    "round",
];

/// Filters of the engine that are defined anew on top of what they are.
const RENAMED: &[(&str, &str)] = &[
    ("limit", "_limit"),
    ("skip", "_skip"),
    ("strptime", "_strptime"),
    ("strftime", "_strftime"),
    ("decode_uri", "_decode_uri"),
    ("encode_uri", "_encode_uri"),
    ("error_empty", "_error_empty"),
    ("key_values", "_key_values"),
    ("path_value", "_path_value"),
    ("min_by_or_empty", "_min_by"),
    ("max_by_or_empty", "_max_by"),
    ("mktime", "_mktime"),
    ("gmtime", "_gmtime"),
    ("fromdateiso8601", "_fromdateiso8601"),
    ("todateiso8601", "_todateiso8601"),
];

/// Returns every native filter.
pub(super) fn all() -> Vec<Fun<Data>> {
    let taken = jaq_core::funs::<Data>().chain(jaq_std::funs::<Data>());
    let taken =
        taken.filter(|(name, ..)| !LEFT_OUT.contains(name)).map(|(name, arguments, native)| {
            let name = RENAMED.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new);
            (name, arguments, native)
        });
    taken.chain(own()).collect()
}

/// Runs a native filter of so many arguments, which were all evaluated.
fn call<'a>(
    simple: fn(&Value, &[Value]) -> Result<Value, Error>,
    n: usize,
    mut cv: Cv<'a, Data>,
) -> jaq_core::ValXs<'a, Value> {
    let mut arguments: Vec<Value> = (0..n).map(|_| cv.0.pop_var()).collect();
    arguments.reverse();
    bome(simple(&cv.1, &arguments))
}

macro_rules! own {
    ($($name:literal / $n:literal = $run:expr;)*) => {
        fn own() -> Vec<Fun<Data>> {
            vec![$(run::<Data>(($name, v($n), |cv| call($run, $n, cv)))),*]
        }
    };
}

own! {
    "type" / 0 = |value, _| Ok(Value::string(Bytes::from_static(value.kind().as_bytes())));
    "infinite" / 0 = |_, _| Ok(Value::from(f64::INFINITY));
    "nan" / 0 = |_, _| Ok(Value::from(f64::NAN));
    "isnan" / 0 = |value, _| numeric(value).map(|float| Value::from(float.is_nan()));
    "isinfinite" / 0 = |value, _| numeric(value).map(|float| Value::from(float.is_infinite()));
    "isnormal" / 0 = |value, _| numeric(value).map(|float| Value::from(float.is_normal()));
    "floor" / 0 = |value, _| rounded(value, f64::floor);
    "ceil" / 0 = |value, _| rounded(value, f64::ceil);
    "round" / 0 = |value, _| rounded(value, f64::round);
    "length" / 0 = |value, _| length(value);
    "utf8bytelength" / 0 = |value, _| match &value.0 {
        Val::TStr(text) => Ok(Value::from(text.len())),
        _ => fail(format_args!("{} only strings have UTF-8 byte length", value.shown())),
    };
    "has" / 1 = has;
    "contains" / 1 = |value, arguments| with(arguments, |other| contains(value, other).map(Value::from));
    "_indices" / 1 = |value, arguments| with(arguments, |part| indices(value, part));
    "bsearch" / 1 = |value, arguments| with(arguments, |wanted| bsearch(value, wanted));
    "tojson" / 0 = |value, _| Ok(Value::string(write::grown(&value.0)));
    "fromjson" / 0 = |value, _| fromjson(value);
    "tonumber" / 0 = |value, _| tonumber(value);
    "delpaths" / 1 = |value, arguments| with(arguments, |paths| place::delete_paths(value.clone(), paths));
    "startswith" / 1 = |value, arguments| affix(value, arguments, "startswith", |text, part| text.starts_with(part));
    "endswith" / 1 = |value, arguments| affix(value, arguments, "endswith", |text, part| text.ends_with(part));
    "ltrimstr" / 1 = |value, arguments| trimmed(value, arguments, true, false);
    "rtrimstr" / 1 = |value, arguments| trimmed(value, arguments, false, true);
    "trimstr" / 1 = |value, arguments| trimmed(value, arguments, true, true);
    "trim" / 0 = |value, _| space(value, |text| text.trim_matches(is_space));
    "ltrim" / 0 = |value, _| space(value, |text| text.trim_start_matches(is_space));
    "rtrim" / 0 = |value, _| space(value, |text| text.trim_end_matches(is_space));
    "split" / 1 = |value, arguments| with(arguments, |separator| split_text(value, separator));
    "_join" / 1 = |value, arguments| with(arguments, |separator| join(value, separator));
    "implode" / 0 = |value, _| implode(value);
    "_test" / 2 = |value, arguments| with_two(arguments, |re, flags| regex::test(value, re, flags));
    "_match" / 2 = |value, arguments| with_two(arguments, |re, flags| regex::matches(value, re, flags));
    "_pieces" / 2 = |value, arguments| with_two(arguments, |re, flags| regex::pieces(value, re, flags));
    "_html" / 0 = |value, _| text_of(value, super::formats::html);
    "_sh" / 0 = |value, _| text_of(value, super::formats::sh);
    "_csv" / 0 = |value, _| super::formats::row(value, "csv", super::formats::csv, ",");
    "_tsv" / 0 = |value, _| super::formats::row(value, "tsv", super::formats::tsv, "\t");
    "_base64" / 0 = |value, _| text_of(value, super::formats::base64);
    "_base64d" / 0 = |value, _| super::formats::base64_decoded(value);
    "_base32" / 0 = |value, _| text_of(value, super::formats::base32);
    "_base32d" / 0 = |value, _| super::formats::base32_decoded(value);
}

fn with(
    arguments: &[Value],
    run: impl FnOnce(&Value) -> Result<Value, Error>,
) -> Result<Value, Error> {
    arguments.first().map_or_else(|| fail("an argument is missing"), run)
}

fn with_two(
    arguments: &[Value],
    run: impl FnOnce(&Value, &Value) -> Result<Value, Error>,
) -> Result<Value, Error> {
    match arguments {
        [first, second] => run(first, second),
        _ => fail("an argument is missing"),
    }
}

fn text_of(value: &Value, run: fn(&str) -> String) -> Result<Value, Error> {
    Ok(Value::from(run(value.text("is not a string")?)))
}

fn numeric(value: &Value) -> Result<f64, Error> {
    value.as_number().map_or_else(|| fail(format_args!("{} number required", value.shown())), Ok)
}

fn rounded(value: &Value, round: fn(f64) -> f64) -> Result<Value, Error> {
    match &value.0 {
        Val::Num(Num::Int(_) | Num::BigInt(_)) => Ok(value.clone()),
        _ => numeric(value).map(|float| Value::from(round(float))),
    }
}

fn length(value: &Value) -> Result<Value, Error> {
    Ok(match &value.0 {
        Val::Null => Value::from(0_usize),
        Val::Bool(_) => return fail(format_args!("{} has no length", value.shown())),
        Val::Num(Num::Int(int)) => Value::from(int.unsigned_abs()),
        Val::Num(number) if number::as_f64(number).is_sign_positive() => value.clone(),
        Val::Num(_) => return -value.clone(),
        Val::TStr(_) | Val::BStr(_) => {
            Value::from(value.as_text().map_or(0, |text| text.chars().count()))
        }
        Val::Arr(items) => Value::from(items.len()),
        Val::Obj(entries) => Value::from(entries.len()),
    })
}

fn has(value: &Value, arguments: &[Value]) -> Result<Value, Error> {
    with(arguments, |key| match (&value.0, &key.0) {
        (Val::Obj(_), Val::TStr(_)) => {
            place::get(value, key).map(|found| Value::from(found.is_some()))
        }
        (Val::Arr(items), Val::Num(_)) => {
            let at = numeric(key)?;
            #[expect(clippy::cast_precision_loss, reason = "arrays are shorter than 2^53")]
            let len = items.len() as f64;
            Ok(Value::from(at >= 0.0 && at.floor() < len))
        }
        _ => fail(format_args!("Cannot check whether {} has a {} key", value.kind(), key.kind())),
    })
}

/// Whether a value has all of another: substrings, elements, members.
fn contains(value: &Value, other: &Value) -> Result<bool, Error> {
    if value.kind() != other.kind() {
        return fail(format_args!(
            "{} and {} cannot have their containment checked",
            value.shown(),
            other.shown()
        ));
    }
    Ok(holds(&value.0, &other.0))
}

fn holds(value: &Val, other: &Val) -> bool {
    match (value, other) {
        (Val::TStr(text), Val::TStr(part)) => {
            match (std::str::from_utf8(text), std::str::from_utf8(part)) {
                (Ok(text), Ok(part)) => text.contains(part),
                _ => false,
            }
        }
        (Val::Arr(items), Val::Arr(others)) => {
            others.iter().all(|other| items.iter().any(|item| holds(item, other)))
        }
        (Val::Obj(entries), Val::Obj(others)) => others
            .iter()
            .all(|(key, other)| entries.get(key).is_some_and(|value| holds(value, other))),
        (value, other) => value == other,
    }
}

fn indices(value: &Value, part: &Value) -> Result<Value, Error> {
    match (&value.0, &part.0) {
        (Val::Null, _) => Ok(Value(Val::Null)),
        (Val::TStr(_), Val::TStr(_)) => {
            let (text, part) = (value.text("is not a string")?, part.text("is not a string")?);
            if part.is_empty() {
                return Ok(Value(Val::Null));
            }
            let mut found = Vec::new();
            for (count, (at, _)) in text.char_indices().enumerate() {
                if text.get(at..).is_some_and(|rest| rest.starts_with(part)) {
                    found.push(Value::from(count));
                }
            }
            Ok(Value::array(found))
        }
        (Val::Arr(items), Val::Arr(part)) => Ok(place::occurrences(items, part)),
        (Val::Arr(items), other) => Ok(place::occurrences(items, std::slice::from_ref(other))),
        _ => place::get(value, part).map(|found| found.unwrap_or(Value(Val::Null))),
    }
}

fn bsearch(value: &Value, wanted: &Value) -> Result<Value, Error> {
    let Val::Arr(items) = &value.0 else {
        return fail(format_args!("{} cannot be searched from", value.shown()));
    };
    let at = match items.binary_search(&wanted.0) {
        Ok(at) => isize::try_from(at).unwrap_or(isize::MAX),
        Err(at) => -1 - isize::try_from(at).unwrap_or(isize::MAX),
    };
    Ok(Value::from(at))
}

fn fromjson(value: &Value) -> Result<Value, Error> {
    let Val::TStr(text) = &value.0 else {
        return fail(format_args!("{} cannot be parsed as JSON", value.shown()));
    };
    read::json(text)
        .map(Value)
        .or_else(|why| fail(format_args!("{why} (while parsing {})", write::bounded(&value.0, 40))))
}

fn tonumber(value: &Value) -> Result<Value, Error> {
    if value.as_number().is_some() {
        return Ok(value.clone());
    }
    let text = value.text("cannot be parsed as a number")?;
    let is_number =
        text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            && !text.starts_with('+');
    match text.parse::<f64>() {
        Ok(float) if is_number => {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            Ok(if is_plain { Value(Val::Num(number::literal(text))) } else { Value::from(float) })
        }
        _ if text == "nan" => Ok(Value::from(f64::NAN)),
        _ => fail(format_args!("{} cannot be parsed as a number", value.shown())),
    }
}

fn affix(
    value: &Value,
    arguments: &[Value],
    name: &str,
    test: fn(&str, &str) -> bool,
) -> Result<Value, Error> {
    with(arguments, |part| match (value.as_text(), part.as_text()) {
        (Some(text), Some(part)) => Ok(Value::from(test(text, part))),
        _ => fail(format_args!("{name}() requires string inputs")),
    })
}

/// Cuts a text off at an end; what is not a string stays as it is.
fn trimmed(value: &Value, arguments: &[Value], left: bool, right: bool) -> Result<Value, Error> {
    with(arguments, |part| {
        let (Some(text), Some(part)) = (value.as_text(), part.as_text()) else {
            return Ok(value.clone());
        };
        let mut rest = text;
        if left {
            rest = rest.strip_prefix(part).unwrap_or(rest);
        }
        if right {
            rest = rest.strip_suffix(part).unwrap_or(rest);
        }
        Ok(value.as_sub_str(rest.as_bytes()))
    })
}

fn is_space(c: char) -> bool {
    c.is_whitespace()
}

fn space(value: &Value, trim: fn(&str) -> &str) -> Result<Value, Error> {
    match value.as_text() {
        Some(text) => Ok(value.as_sub_str(trim(text).as_bytes())),
        None => fail(format_args!("{} cannot be trimmed", value.shown())),
    }
}

fn join(value: &Value, separator: &Value) -> Result<Value, Error> {
    let Val::Arr(items) = &value.0 else {
        return fail(format_args!("Cannot iterate over {}", value.shown()));
    };
    if items.is_empty() {
        return Ok(Value::from(String::new()));
    }
    let mut out: Option<Value> = None;
    for item in items.iter() {
        let text = match item {
            Val::Null => Value::from(String::new()),
            Val::Bool(_) | Val::Num(_) => Value(item.clone()).into_string(),
            _ => Value(item.clone()),
        };
        let before = match out {
            None => Value::from(String::new()),
            Some(out) => (out + separator.clone())?,
        };
        out = Some((before + text)?);
    }
    Ok(out.unwrap_or(Value(Val::Null)))
}

fn implode(value: &Value) -> Result<Value, Error> {
    let Val::Arr(items) = &value.0 else {
        return fail(format_args!(
            "{} cannot be imploded, must be an array of codepoints",
            value.shown()
        ));
    };
    let mut out = String::with_capacity(items.len());
    for item in items.iter() {
        let code = Value(item.clone()).as_number().map(number::clamp);
        let Some(code) = code else { return fail("Unicode codepoint must be numeric") };
        let char = u32::try_from(code)
            .ok()
            .and_then(char::from_u32)
            .unwrap_or(char::REPLACEMENT_CHARACTER);
        out.push(char);
    }
    Ok(Value::from(out))
}
