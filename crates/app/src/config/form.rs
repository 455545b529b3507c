//! What the value of a key must be, and how a value becomes data.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::{Kind, TABLE};
use toml::Spanned;
use toml::de::{DeInteger, DeValue};

use super::problem::Problems;
use super::{Env, TokenFrom};
use crate::suggest;

/// What a value must be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// Any text that is not empty.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number in a range.
    Whole(u64, u64),
    /// A number in a range.
    Number(f64, f64),
    /// A number of seconds in a range, fractions allowed.
    Seconds(Duration, Duration),
    /// A number of milliseconds in a range, fractions allowed.
    Millis(Duration, Duration),
    /// One of a few words.
    OneOf(&'static [&'static str]),
    /// A program and its arguments.
    Argv,
    /// Words of the error table.
    ErrorKinds,
    /// Names of variables, or a table of them.
    Env,
    /// JSON Pointers.
    Pointers,
    /// A JSON Schema of an object.
    Schema,
    /// The arguments of a call.
    Inputs,
    /// Tables, each with keys of its own.
    Tables,
    /// Texts.
    Texts,
    /// Owners, each with the place of its token.
    Tokens,
}

/// A value that is what it must be.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Flag(bool),
    Whole(u64),
    Number(f64),
    Span(Duration),
    List(Vec<String>),
    Kinds(Vec<Kind>),
    Env(Env),
    Json(Json),
    Tables,
    Tokens(Vec<(String, TokenFrom)>),
}

/// Why a value is not what it must be; the span is narrower than the value where it can be.
struct Wrong {
    span: Option<Range<usize>>,
    says: String,
    help: Option<String>,
}

impl From<String> for Wrong {
    fn from(says: String) -> Self {
        Self { span: None, says, help: None }
    }
}

impl Form {
    /// Checks one value; `path` is how the key is named to a person, such as `tools.render.wait_s`.
    pub(super) fn check(
        self,
        value: &Spanned<DeValue<'_>>,
        path: &str,
        problems: &mut Problems,
    ) -> Option<Value> {
        match self.read(value.get_ref()) {
            Ok(value) => Some(value),
            Err(wrong) => {
                let span = wrong.span.unwrap_or_else(|| value.span());
                let help = wrong.help.unwrap_or_else(|| self.help());
                problems.add(span, format!("`{path}` {}", wrong.says), help);
                None
            }
        }
    }

    /// Returns how a value on the command line is called.
    pub(super) const fn value_name(self) -> &'static str {
        if matches!(self, Self::Text) {
            "TEXT"
        } else if matches!(self, Self::Flag) {
            "true|false"
        } else {
            "N"
        }
    }

    /// Reads a value that stands on the command line or in a variable: a text, or what the file would have
    /// without quotes.
    pub(super) fn read_argument(self, text: &str) -> Result<Value, String> {
        if matches!(self, Self::Text) {
            return text_of(text).map(Value::Text).map_err(|_| self.help());
        }
        let text = text.trim();
        let whole = DeValue::parse(text).map_err(|_| self.help())?;
        self.read(whole.get_ref()).map_err(|wrong| wrong.help.unwrap_or_else(|| self.help()))
    }

    /// Says what would be right.
    pub(super) fn help(self) -> String {
        match self {
            Self::Text => "write a text in quotes".into(),
            Self::Flag => "write true or false".into(),
            Self::Whole(min, max) => format!("write a whole number from {min} to {max}"),
            Self::Number(min, max) => format!("write a number from {min} to {max}"),
            Self::Seconds(min, max) => {
                let (min, max) = (min.as_secs_f64(), max.as_secs_f64());
                format!("write seconds from {min} to {max}, such as 10 or 0.5")
            }
            Self::Millis(min, max) => {
                let (min, max) = (in_millis(min), in_millis(max));
                format!("write milliseconds from {min} to {max}, such as 500")
            }
            Self::OneOf(words) => format!("write one of: {}", quoted(words.iter().copied())),
            Self::Argv => r#"write the program and its arguments: ["python3", "tool.py"]"#.into(),
            Self::ErrorKinds => r#"write kinds of failure: ["worker_lost", "tool_failed"]"#.into(),
            Self::Env => r#"write names, ["PATH", "HOME"], or values, { NAME = "value" }"#.into(),
            Self::Pointers => r#"write JSON Pointers: ["/token", "/login/password"]"#.into(),
            Self::Schema => {
                r#"write an object schema: { type = "object", properties = { … } }"#.into()
            }
            Self::Inputs => "write a table: { depth = 3 }".into(),
            Self::Tables => "write each as a table of its own, under [[…]]".into(),
            Self::Texts => r#"write texts: ["one", "two"]"#.into(),
            Self::Tokens => {
                r#"write owners: alice = { file = "alice.token" }, or { env = "ALICE_TOKEN" }"#
                    .into()
            }
        }
    }

    fn read(self, value: &DeValue<'_>) -> Result<Value, Wrong> {
        let unlike = || Wrong::from(format!("is {}", article(value.type_str())));
        match (self, value) {
            (Self::Text, DeValue::String(text)) => text_of(text).map(Value::Text),
            (Self::Flag, DeValue::Boolean(flag)) => Ok(Value::Flag(*flag)),
            (Self::Whole(min, max), DeValue::Integer(number)) => whole(number, min, max),
            (Self::Number(min, max), _) => {
                let number = number(value).ok_or_else(unlike)?;
                in_range(number, min, max).map(Value::Number)
            }
            (Self::Seconds(min, max), _) => {
                let number = number(value).ok_or_else(unlike)?;
                in_range(number, min.as_secs_f64(), max.as_secs_f64())
                    .map(|seconds| Value::Span(Duration::from_secs_f64(seconds)))
            }
            (Self::Millis(min, max), _) => {
                let number = number(value).ok_or_else(unlike)?;
                in_range(number, in_millis(min), in_millis(max))
                    .map(|millis| Value::Span(Duration::from_secs_f64(millis / 1000.0)))
            }
            (Self::OneOf(words), DeValue::String(text)) => one_of(text, words).map(Value::Text),
            (Self::Argv, DeValue::Array(_)) => argv(value).map(Value::List),
            (Self::ErrorKinds, DeValue::Array(_)) => kinds(value).map(Value::Kinds),
            (Self::Env, DeValue::Array(_)) => variables(value).map(Env::Inherit).map(Value::Env),
            (Self::Env, DeValue::Table(_)) => settings(value).map(Env::Fixed).map(Value::Env),
            (Self::Pointers, DeValue::Array(_)) => pointers(value).map(Value::List),
            (Self::Schema, DeValue::Table(_)) => schema(value).map(Value::Json),
            (Self::Inputs, DeValue::Table(_)) => inputs(value).map(Value::Json),
            (Self::Tables, DeValue::Array(items)) => {
                let is_table = |item: &Spanned<DeValue<'_>>| item.get_ref().is_table();
                if items.iter().all(is_table) { Ok(Value::Tables) } else { Err(unlike()) }
            }
            (Self::Texts, DeValue::Array(_)) => {
                texts(value, |text| text_of(text).map(drop)).map(Value::List)
            }
            (Self::Tokens, DeValue::Table(_)) => tokens(value).map(Value::Tokens),
            _ => Err(unlike()),
        }
    }
}

/// Returns a duration as a number of milliseconds.
pub(super) fn in_millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

fn article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}

fn quoted<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

fn text_of(text: &str) -> Result<String, Wrong> {
    if text.trim().is_empty() { Err(String::from("is empty").into()) } else { Ok(text.to_owned()) }
}

fn integer(number: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
}

fn whole(number: &DeInteger<'_>, min: u64, max: u64) -> Result<Value, Wrong> {
    integer(number)
        .and_then(|number| u64::try_from(number).ok())
        .filter(|number| (min..=max).contains(number))
        .map(Value::Whole)
        .ok_or_else(|| format!("is {number}").into())
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "limits are far below 53 bits")]
        DeValue::Integer(number) => integer(number).map(|number| number as f64),
        DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
        DeValue::String(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => None,
    }
}

fn in_range(number: f64, min: f64, max: f64) -> Result<f64, Wrong> {
    if number.is_finite() && (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err(format!("is {number}").into())
    }
}

fn one_of(text: &str, words: &[&str]) -> Result<String, Wrong> {
    if words.contains(&text) { Ok(text.to_owned()) } else { Err(format!("is \"{text}\"").into()) }
}

/// Reads an array of texts; `check` says what is wrong with one of them.
fn texts(
    value: &DeValue<'_>,
    check: impl Fn(&str) -> Result<(), Wrong>,
) -> Result<Vec<String>, Wrong> {
    let items = value.as_array().map(|items| items.iter()).into_iter().flatten();
    items
        .map(|item| {
            let text = item.get_ref().as_str().ok_or_else(|| Wrong {
                span: Some(item.span()),
                says: format!("holds {}", article(item.get_ref().type_str())),
                help: Some("write every item as a text in quotes".into()),
            })?;
            check(text).map_err(|wrong| Wrong { span: Some(item.span()), ..wrong })?;
            Ok(text.to_owned())
        })
        .collect()
}

fn argv(value: &DeValue<'_>) -> Result<Vec<String>, Wrong> {
    let argv = texts(value, |text| {
        if text.contains('\0') { Err(String::from("holds a NUL").into()) } else { Ok(()) }
    })?;
    match argv.first() {
        None => Err(String::from("is empty").into()),
        Some(program) if program.trim().is_empty() => Err(String::from("names no program").into()),
        Some(_) => Ok(argv),
    }
}

fn kinds(value: &DeValue<'_>) -> Result<Vec<Kind>, Wrong> {
    let words = texts(value, |word| {
        if Kind::from_word(word).is_some() {
            return Ok(());
        }
        let known = || TABLE.iter().map(|entry| entry.code);
        let help = match suggest::nearest(word, known()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("write kinds of failure: {}", quoted(known())),
        };
        Err(Wrong {
            span: None,
            says: format!("holds \"{word}\", which is no kind of failure"),
            help: Some(help),
        })
    })?;
    Ok(words.iter().filter_map(|word| Kind::from_word(word)).collect())
}

fn check_variable(name: &str) -> Result<(), Wrong> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(Wrong {
            span: None,
            says: format!("holds \"{name}\", which is no name of a variable"),
            help: Some(
                "a name is not empty and holds no `=`; values go in { NAME = \"…\" }".into(),
            ),
        });
    }
    Ok(())
}

fn variables(value: &DeValue<'_>) -> Result<Vec<String>, Wrong> {
    texts(value, check_variable)
}

fn settings(value: &DeValue<'_>) -> Result<BTreeMap<String, String>, Wrong> {
    let entries = value.as_table().map(|table| table.iter()).into_iter().flatten();
    entries
        .map(|(name, value)| {
            check_variable(name.get_ref())
                .map_err(|wrong| Wrong { span: Some(name.span()), ..wrong })?;
            let text = value.get_ref().as_str().filter(|text| !text.contains('\0'));
            let text = text.ok_or_else(|| Wrong {
                span: Some(value.span()),
                says: format!("gives `{}` no text", name.get_ref()),
                help: Some("write the value of a variable as a text in quotes".into()),
            })?;
            Ok((name.get_ref().to_string(), text.to_owned()))
        })
        .collect()
}

fn tokens(value: &DeValue<'_>) -> Result<Vec<(String, TokenFrom)>, Wrong> {
    let entries = value.as_table().map(|table| table.iter()).into_iter().flatten();
    entries
        .map(|(owner, place)| {
            let wrong = |says: String| Wrong { span: Some(place.span()), says, help: None };
            if owner.get_ref().is_empty() {
                return Err(wrong("has an owner without a name".into()));
            }
            let unlike =
                || wrong(format!("does not say where the token of `{}` is", owner.get_ref()));
            let table = place.get_ref().as_table().filter(|table| table.len() == 1);
            let (key, text) = table.and_then(|table| table.iter().next()).ok_or_else(unlike)?;
            let text = text.get_ref().as_str().filter(|text| !text.is_empty());
            let text = text.ok_or_else(unlike)?.to_owned();
            let from = match key.get_ref().as_ref() {
                "file" => TokenFrom::File(text.into()),
                "env" => TokenFrom::Variable(text),
                _ => return Err(unlike()),
            };
            Ok((owner.get_ref().to_string(), from))
        })
        .collect()
}

fn pointers(value: &DeValue<'_>) -> Result<Vec<String>, Wrong> {
    texts(value, |pointer| {
        let escapes_well = pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        if pointer.starts_with('/') && escapes_well {
            return Ok(());
        }
        Err(format!("holds \"{pointer}\", which is no JSON Pointer").into())
    })
}

fn schema(value: &DeValue<'_>) -> Result<Json, Wrong> {
    let value = json(value)?;
    if value.get("type").and_then(serde_json::Value::as_str) != Some("object") {
        return Err(String::from("does not say type = \"object\"").into());
    }
    if let Err(error) = jsonschema::validator_for(&value) {
        return Err(Wrong {
            span: None,
            says: format!("is no JSON Schema: {error} at `{}`", error.instance_path()),
            help: Some(
                "correct the schema; see https://json-schema.org/understanding-json-schema".into(),
            ),
        });
    }
    Json::of(&value).map_err(|error| error.to_string().into())
}

fn inputs(value: &DeValue<'_>) -> Result<Json, Wrong> {
    Json::of(&json(value)?).map_err(|error| error.to_string().into())
}

/// Turns a value into JSON.
fn json(value: &DeValue<'_>) -> Result<serde_json::Value, Wrong> {
    Ok(match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Integer(number) => integer(number)
            .and_then(|number| i64::try_from(number).ok())
            .map(serde_json::Value::from)
            .ok_or_else(|| format!("holds the number {number}, which is too large"))?,
        DeValue::Float(_) => number(value)
            .and_then(serde_json::Number::from_f64)
            .map(serde_json::Value::Number)
            .ok_or_else(|| String::from("holds a number that JSON does not have"))?,
        DeValue::Datetime(_) => return Err(String::from("holds a date; write it in quotes").into()),
        DeValue::Array(items) => {
            items.iter().map(|item| json(item.get_ref())).collect::<Result<Vec<_>, _>>()?.into()
        }
        DeValue::Table(table) => {
            let members = table
                .iter()
                .map(|(name, value)| Ok((name.get_ref().to_string(), json(value.get_ref())?)))
                .collect::<Result<serde_json::Map<_, _>, Wrong>>()?;
            members.into()
        }
    })
}
