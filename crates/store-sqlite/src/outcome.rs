//! Outcomes as bytes: a version, a tag, and parts with their lengths in front.
//!
//! JSON stays the text it was; nothing is parsed and written again [RESULT-1].

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Guarantee, Kind, Quoted};
use raincheck_core::task::Outcome;

use crate::fault::Fault;

const VERSION: u8 = 1;

const SUCCEEDED: u8 = b'S';
const FAILED: u8 = b'F';
const CANCELLED: u8 = b'C';

const JSON: u8 = b'j';
const TEXT: u8 = b't';
const BINARY: u8 = b'b';
const VERBATIM: u8 = b'v';

const CUT: Fault = Fault::Broken("an outcome is cut short");

/// Writes an outcome.
pub(crate) fn encode(outcome: &Outcome) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    match outcome {
        Outcome::Succeeded(parts) => {
            bytes.push(SUCCEEDED);
            bytes.reserve(parts.iter().map(|part| part.size() + 24).sum());
            for part in parts {
                encode_part(&mut bytes, part);
            }
        }
        Outcome::Failed(error) => {
            bytes.push(FAILED);
            bytes.extend_from_slice(error_text(error).as_bytes());
        }
        Outcome::Cancelled => bytes.push(CANCELLED),
    }
    bytes
}

/// Reads an outcome.
pub(crate) fn decode(bytes: &[u8]) -> Result<Outcome, Fault> {
    let [VERSION, tag, rest @ ..] = bytes else {
        return Err(Fault::Broken("an outcome of an unknown version"));
    };
    match *tag {
        SUCCEEDED => {
            let (mut parts, mut rest) = (Vec::new(), rest);
            while !rest.is_empty() {
                parts.push(decode_part(&mut rest)?);
            }
            Ok(Outcome::Succeeded(parts))
        }
        FAILED => Ok(Outcome::Failed(read_error(text(rest)?)?)),
        CANCELLED => Ok(Outcome::Cancelled),
        _ => Err(Fault::Broken("an outcome of an unknown kind")),
    }
}

fn encode_part(bytes: &mut Vec<u8>, part: &Content) {
    match part {
        Content::Json(json) => field(bytes, JSON, json.get().as_bytes()),
        Content::Text(text) => field(bytes, TEXT, text.as_bytes()),
        Content::Binary { mime, data } => {
            field(bytes, BINARY, mime.as_bytes());
            field(bytes, BINARY, data);
        }
        Content::Verbatim(json) => field(bytes, VERBATIM, json.get().as_bytes()),
    }
}

fn decode_part(rest: &mut &[u8]) -> Result<Content, Fault> {
    let (tag, bytes) = take_field(rest)?;
    Ok(match tag {
        JSON => Content::Json(json(text(bytes)?)?),
        TEXT => Content::Text(text(bytes)?.into()),
        VERBATIM => Content::Verbatim(json(text(bytes)?)?),
        BINARY => match take_field(rest)? {
            (BINARY, data) => Content::Binary { mime: text(bytes)?.into(), data: data.into() },
            _ => return Err(CUT),
        },
        _ => return Err(Fault::Broken("a part of an outcome is of an unknown kind")),
    })
}

fn field(bytes: &mut Vec<u8>, tag: u8, value: &[u8]) {
    bytes.push(tag);
    bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
    bytes.extend_from_slice(value);
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Result<(u8, &'a [u8]), Fault> {
    let (tag, after) = rest.split_first().ok_or(CUT)?;
    let (length, after) = after.split_first_chunk::<8>().ok_or(CUT)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| CUT)?;
    let (value, after) = after.split_at_checked(length).ok_or(CUT)?;
    *rest = after;
    Ok((*tag, value))
}

fn text(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| Fault::Broken("a text that is not UTF-8"))
}

/// Takes a JSON text that was checked when it came in.
pub(crate) fn json(text: &str) -> Result<Json, Fault> {
    RawValue::from_string(text.to_owned())
        .map(Json::from_raw)
        .map_err(|_| Fault::Broken("a JSON text that does not parse"))
}

/// An error with exactly what it says itself; what the table says is not repeated.
#[derive(Serialize, Deserialize)]
struct StoredError {
    kind: String,
    message: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    guarantee: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    retry_after: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    hint: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    details: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    quoted: Option<StoredQuoted>,
}

/// What a page, a program or another server said about a failure.
#[derive(Serialize, Deserialize)]
struct StoredQuoted {
    text: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    details: Option<Json>,
}

/// Writes an error as JSON.
pub(crate) fn error_text(error: &Error) -> String {
    let stored = StoredError {
        kind: error.kind.as_str().to_owned(),
        message: Arc::clone(&error.message),
        guarantee: error.guarantee.map(|guarantee| guarantee.as_str().to_owned()),
        retry_after: error.retry_after,
        hint: error.hint.clone(),
        details: error.details.clone(),
        quoted: error.quoted.as_deref().map(|quoted| StoredQuoted {
            text: Arc::clone(&quoted.text),
            details: quoted.details.clone(),
        }),
    };
    // Strings, numbers and checked JSON can always be written.
    serde_json::to_string(&stored).unwrap_or_default()
}

/// Reads an error from JSON.
pub(crate) fn read_error(text: &str) -> Result<Error, Fault> {
    let stored: StoredError =
        serde_json::from_str(text).map_err(|_| Fault::Broken("an error that does not parse"))?;
    let kind = Kind::from_word(&stored.kind).ok_or(Fault::Broken("an unknown kind of error"))?;
    let guarantee = match stored.guarantee {
        Some(word) => {
            Some(Guarantee::from_word(&word).ok_or(Fault::Broken("an unknown guarantee"))?)
        }
        None => None,
    };
    let quoted = stored.quoted.map(|StoredQuoted { text, details }| Quoted { text, details });
    Ok(Error {
        kind,
        message: stored.message,
        quoted: quoted.map(Arc::new),
        guarantee,
        retry_after: stored.retry_after,
        hint: stored.hint,
        details: stored.details,
        is_last: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(outcome: &Outcome) {
        let bytes = encode(outcome);
        assert_eq!(decode(&bytes).expect("it was just written"), *outcome);
        for end in 2..bytes.len() {
            if let Ok(short) = decode(&bytes[..end]) {
                assert_ne!(short, *outcome, "cut at {end}");
            }
        }
    }

    #[test]
    fn every_part_of_a_result_comes_back_byte_for_byte() {
        // [RESULT-1]
        let odd = r#"{"z":1.0,"a":1e2,"big":123456789012345678901234567890,"e":"\u00e9\/é"}"#;
        check(&Outcome::Succeeded(vec![
            Content::Json(json(odd).expect("JSON")),
            Content::Text("línea\n\u{0}".into()),
            Content::Binary { mime: "image/png".into(), data: vec![0, 255, 1].into() },
            Content::Verbatim(json("[ 1 , 2 ]").expect("JSON")),
        ]));
        check(&Outcome::Succeeded(Vec::new()));
        check(&Outcome::Cancelled);
    }

    #[test]
    fn an_error_keeps_what_it_says_and_what_it_leaves_to_the_table() {
        let error = Error::new(Kind::ToolFailed, "no")
            .with_guarantee(Guarantee::NotExecuted)
            .with_retry_after(Duration::from_micros(1_500))
            .with_hint("try")
            .with_details(json(r#"{"b":1,"a":2.0}"#).expect("JSON"));
        check(&Outcome::Failed(error.clone()));
        check(&Outcome::Failed(error.clone().with_quoted("it said", None)));
        let details = json(r#"{"stack":"a\n b"}"#).expect("JSON");
        check(&Outcome::Failed(error.with_quoted("it said", Some(details))));
        check(&Outcome::Failed(Error::new(Kind::WorkerLost, "gone")));
    }

    #[test]
    fn bytes_of_another_version_are_refused() {
        assert!(decode(b"").is_err());
        assert!(decode(&[9, SUCCEEDED]).is_err());
        assert!(decode(&[VERSION, b'?']).is_err());
    }
}
