//! Regular expressions: in linear time, compiled once per run.

use std::cell::RefCell;
use std::collections::HashMap;

use jaq_json::Val;
use regex::{Regex, RegexBuilder};

use crate::filter::value::{Error, Value, fail};

/// How large one compiled expression may be, in bytes.
const SIZE: usize = 4 << 20;

/// How many compiled expressions are kept.
const KEPT: usize = 64;

thread_local! {
    static COMPILED: RefCell<HashMap<(String, String), Regex>> = RefCell::new(HashMap::new());
}

/// The letters behind an expression, such as `gx`.
#[derive(Clone, Copy, Default)]
struct Flags {
    is_global: bool,
    skips_empty: bool,
}

fn compiled(pattern: &str, letters: &str) -> Result<(Regex, Flags), Error> {
    let mut flags = Flags::default();
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(SIZE).dfa_size_limit(SIZE);
    for letter in letters.chars() {
        match letter {
            'g' => flags.is_global = true,
            'n' => flags.skips_empty = true,
            'i' => {
                builder.case_insensitive(true);
            }
            'x' => {
                builder.ignore_whitespace(true);
            }
            's' => {
                builder.dot_matches_new_line(true);
            }
            'p' => {
                builder.dot_matches_new_line(true).multi_line(true);
            }
            'l' => {}
            _ => return fail(format_args!("{letters} is not a valid modifier string")),
        }
    }
    let key = (pattern.to_owned(), letters.to_owned());
    let known = COMPILED.with_borrow(|compiled| compiled.get(&key).cloned());
    if let Some(regex) = known {
        return Ok((regex, flags));
    }
    let regex = match builder.build() {
        Ok(regex) => regex,
        Err(regex::Error::CompiledTooBig(_)) => {
            return fail("the regular expression is too large: use smaller repetitions");
        }
        Err(error) => {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
            return fail(format_args!(
                "`{pattern}` is not a regular expression that is known here: {why}"
            ));
        }
    };
    COMPILED.with_borrow_mut(|compiled| {
        if compiled.len() >= KEPT {
            compiled.clear();
        }
        compiled.insert(key, regex.clone());
    });
    Ok((regex, flags))
}

fn prepared<'v>(
    input: &'v Value,
    pattern: &Value,
    flags: &Value,
) -> Result<(&'v str, Regex, Flags), Error> {
    let text = input.text("cannot be matched, as it is not a string")?;
    let pattern = pattern.text("cannot be matched, as it is not a string")?;
    let letters = match flags.0 {
        Val::Null => "",
        _ => flags.text("is not a string")?,
    };
    let (regex, flags) = compiled(pattern, letters)?;
    Ok((text, regex, flags))
}

/// Whether the expression matches anywhere.
pub(super) fn test(input: &Value, pattern: &Value, flags: &Value) -> Result<Value, Error> {
    let (text, regex, flags) = prepared(input, pattern, flags)?;
    if flags.skips_empty {
        return Ok(Value::from(regex.find_iter(text).any(|found| !found.is_empty())));
    }
    Ok(Value::from(regex.is_match(text)))
}

/// Every match, as jq describes one.
pub(super) fn matches(input: &Value, pattern: &Value, flags: &Value) -> Result<Value, Error> {
    let mut found = Vec::new();
    for_each_match(input, pattern, flags, |_, description| found.push(description))?;
    Ok(Value::array(found))
}

/// The text between matches and the matches, in turn, from text to text.
pub(super) fn pieces(input: &Value, pattern: &Value, flags: &Value) -> Result<Value, Error> {
    let mut found = Vec::new();
    let mut last = 0;
    let slice = |from: usize, to: usize| {
        let text = input.as_text().and_then(|text| text.get(from..to)).unwrap_or_default();
        jaq_std::ValT::as_sub_str(input, text.as_bytes())
    };
    for_each_match(input, pattern, flags, |range, description| {
        found.push(slice(last, range.start));
        found.push(description);
        last = range.end;
    })?;
    found.push(slice(last, input.as_text().map_or(0, str::len)));
    Ok(Value::array(found))
}

fn for_each_match(
    input: &Value,
    pattern: &Value,
    flags: &Value,
    mut each: impl FnMut(std::ops::Range<usize>, Value),
) -> Result<(), Error> {
    let (text, regex, flags) = prepared(input, pattern, flags)?;
    let mut chars = CharCount { text, at: 0, count: 0 };
    for captures in regex.captures_iter(text) {
        let Some(whole) = captures.get(0) else { continue };
        if flags.skips_empty && whole.is_empty() {
            continue;
        }
        let groups = captures.iter().zip(regex.capture_names()).skip(1);
        let groups = groups.map(|(group, name)| {
            let name = name.map_or(Value(Val::Null), |name| Value::from(name.to_owned()));
            let Some(group) = group else {
                return Value::object([
                    ("offset", Value::from(-1_isize)),
                    ("length", Value::from(0_usize)),
                    ("string", Value(Val::Null)),
                    ("name", name),
                ]);
            };
            let mut chars = chars;
            Value::object([
                ("offset", Value::from(chars.of(group.start()))),
                ("length", Value::from(group.as_str().chars().count())),
                ("string", jaq_std::ValT::as_sub_str(input, group.as_str().as_bytes())),
                ("name", name),
            ])
        });
        let groups = Value::array(groups.collect::<Vec<_>>());
        let offset = chars.of(whole.start());
        let description = Value::object([
            ("offset", Value::from(offset)),
            ("length", Value::from(whole.as_str().chars().count())),
            ("string", jaq_std::ValT::as_sub_str(input, whole.as_str().as_bytes())),
            ("captures", groups),
        ]);
        each(whole.range(), description);
        if !flags.is_global {
            break;
        }
    }
    Ok(())
}

/// Counts characters up to a byte, going on from the last.
#[derive(Clone, Copy)]
struct CharCount<'t> {
    text: &'t str,
    at: usize,
    count: usize,
}

impl CharCount<'_> {
    fn of(&mut self, byte: usize) -> usize {
        if let Some(between) = self.text.get(self.at..byte) {
            self.count += between.chars().count();
            self.at = byte;
        }
        self.count
    }
}
