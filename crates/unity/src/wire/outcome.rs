//! How a call ended, as an editor says it, made into what its task keeps.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::task::Outcome;
use raincheck_core::text;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::specs;

/// The most bytes of an editor's words, and of its details as JSON.
const MAX_QUOTED: usize = 16 * 1024;

/// The keys under which a picture may come.
const PICTURE: &[&str] = &["data", "image_base64", "data_base64", "image", "base64"];

/// Media types of pictures, by how their bytes begin.
const KINDS: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
];

/// Reads how a call of a tool ended.
pub(crate) fn of(tool: &str, status: &str, result: Option<&RawValue>) -> Outcome {
    match status {
        "ok" | "succeeded" => succeeded(tool, result),
        "error" | "failed" => Outcome::Failed(failed(result)),
        "timeout" => {
            let words = "the editor stopped it at its time limit";
            Outcome::Failed(quoting(Error::new(Kind::RunTimeout, words), result))
        }
        "cancelled" => Outcome::Cancelled,
        _ => Outcome::Failed(Error::new(
            Kind::InvalidResponse,
            "the editor ended the call with a status that is none",
        )),
    }
}

fn succeeded(tool: &str, result: Option<&RawValue>) -> Outcome {
    let parsed = result.map_or(Ok(Json::null()), |raw| Json::parse(raw.get()));
    match parsed {
        Ok(json) if tool == specs::CAPTURE_SCREENSHOT => Outcome::Succeeded(picture(json)),
        Ok(json) => Outcome::Succeeded(vec![Content::Json(json)]),
        Err(error) => {
            let words = format!("the result is no JSON that can be kept: {error}");
            let error = Error::new(Kind::InvalidResponse, words);
            Outcome::Failed(error.with_guarantee(Guarantee::Executed))
        }
    }
}

/// Takes a picture out of the JSON that it came in; what is none stays as it is.
fn picture(json: Json) -> Vec<Content> {
    type Members = serde_json::Map<String, serde_json::Value>;
    let Ok(mut members) = json.read::<Members>() else { return vec![Content::Json(json)] };
    let found = PICTURE.iter().find_map(|key| {
        let bytes = STANDARD.decode(members.get(*key)?.as_str()?).ok()?;
        let (_, mime) = KINDS.iter().find(|(begin, _)| bytes.starts_with(begin))?;
        Some((bytes, *mime))
    });
    let Some((bytes, mime)) = found else { return vec![Content::Json(json)] };
    members.retain(|key, _| !PICTURE.contains(&key.as_str()));
    let rest = Json::of(&members).unwrap_or_else(|_| Json::empty_object());
    vec![Content::Binary { mime: mime.into(), data: bytes.into() }, Content::Json(rest)]
}

#[derive(Default, Deserialize)]
struct Words<'a> {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(borrow, default)]
    details: Option<&'a RawValue>,
}

fn failed(result: Option<&RawValue>) -> Error {
    quoting(Error::new(Kind::ToolFailed, "the editor reported an error"), result)
}

/// Adds what the editor said: data, which is only quoted [SEC-10].
fn quoting(error: Error, result: Option<&RawValue>) -> Error {
    let Some(raw) = result else { return error };
    let text: Option<String> = serde_json::from_str(raw.get()).ok();
    let words: Words<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
    let said = text.or(words.message).or_else(|| words.code.clone());
    let said = said.unwrap_or_else(|| raw.get().to_owned());
    let details =
        words.details.filter(|it| it.get().len() <= MAX_QUOTED && it.get().starts_with('{'));
    let code = words.code.map(|code| text::clip(&code, 100).to_owned());
    let details = Json::of(&match (&code, details) {
        (code, Some(details)) => json!({ "code": code, "details": details }),
        (code, None) => json!({ "code": code }),
    });
    let details = details.ok().filter(|_| code.is_some());
    error.with_quoted(text::clip(&said, MAX_QUOTED).to_owned(), details)
}

/// What an editor answers to a call that it did not take on, or could not end.
#[derive(Debug)]
pub(crate) struct Declined {
    pub(crate) error: Error,
}

/// Reads an `error` message about a call.
pub(crate) fn declined(raw: &RawValue) -> Declined {
    #[derive(Default, Deserialize)]
    struct Told {
        #[serde(default)]
        code: String,
        #[serde(default)]
        details: Option<Known>,
    }
    #[derive(Default, Deserialize)]
    struct Known {
        #[serde(default)]
        execution_guarantee: Option<String>,
    }
    let told: Told = serde_json::from_str(raw.get()).unwrap_or_default();
    let known = told.details.and_then(|it| it.execution_guarantee);
    // What an editor does not say is not known.
    let guarantee =
        known.and_then(|word| Guarantee::from_word(&word)).unwrap_or(Guarantee::Unknown);
    let kind = match told.code.as_str() {
        "ERR_UNKNOWN_COMMAND" => Kind::UnknownTool,
        "ERR_INVALID_PARAMS" => Kind::InvalidParams,
        "ERR_INVALID_REQUEST" => Kind::InvalidRequest,
        "ERR_RESPONSE_TOO_LARGE" => Kind::TooLarge,
        "ERR_REQUEST_TIMEOUT" => Kind::RunTimeout,
        "ERR_RECONNECT_TIMEOUT" | "ERR_INTERNAL" => Kind::PeerLost,
        // What surely did not begin is sent again [LEASE-5].
        "ERR_UNITY_DISCONNECTED" | "ERR_EDITOR_NOT_READY" | "ERR_QUEUE_FULL" => match guarantee {
            Guarantee::NotExecuted => Kind::PeerNotReady,
            Guarantee::Executed | Guarantee::Unknown => Kind::PeerLost,
        },
        _ => Kind::ToolFailed,
    };
    let error = Error::new(kind, "the editor refused the call").with_guarantee(guarantee);
    Declined { error: quoting(error, Some(raw)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("JSON")
    }

    #[test]
    fn a_result_is_kept_byte_for_byte() {
        // Case unity-64-bit-ids. [RESULT-1]
        let text = r#"{"id":9223372036854775807,"x":1.0,"e":"\u00e9"}"#;
        let outcome = of("manage_scene", "ok", Some(&raw(text)));
        let Outcome::Succeeded(parts) = outcome else { panic!("{outcome:?}") };
        assert_eq!(parts, [Content::Json(Json::parse(text).expect("JSON"))]);
    }

    #[test]
    fn an_error_of_the_editor_is_quoted_and_not_repeated() {
        // [SEC-10] [CALL-5]
        let outcome =
            of("x", "error", Some(&raw(r#"{"code":"MENU_NOT_FOUND","message":"no menu item"}"#)));
        let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
        assert_eq!(error.kind, Kind::ToolFailed);
        assert_eq!(error.guarantee(), Some(Guarantee::Executed));
        assert!(!error.message.contains("menu"));
        let quoted = error.quoted.expect("quoted");
        assert_eq!(quoted.text.as_ref(), "no menu item");
        assert_eq!(quoted.details.as_ref().expect("a code").get(), r#"{"code":"MENU_NOT_FOUND"}"#);
    }

    #[test]
    fn a_picture_leaves_the_json_and_its_type_is_that_of_its_bytes() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n....");
        let text =
            format!(r#"{{"mime_type":"text/html","width":1,"data":"{png}","image":"{png}"}}"#);
        let outcome = of(specs::CAPTURE_SCREENSHOT, "ok", Some(&raw(&text)));
        let Outcome::Succeeded(parts) = outcome else { panic!("{outcome:?}") };
        let [Content::Binary { mime, .. }, Content::Json(rest)] = &parts[..] else {
            panic!("{parts:?}")
        };
        assert_eq!(mime.as_ref(), "image/png");
        assert_eq!(rest.get(), r#"{"mime_type":"text/html","width":1}"#);
        let script = raw(r#"{"mime_type":"image/png","data":"PHNjcmlwdD4="}"#);
        let Outcome::Succeeded(parts) = of(specs::CAPTURE_SCREENSHOT, "ok", Some(&script)) else {
            panic!("a result")
        };
        assert!(matches!(&parts[..], [Content::Json(_)]), "what is no picture is not shown as one");
    }

    #[test]
    fn what_an_editor_refuses_is_not_executed_only_if_it_says_so() {
        // [LEASE-9]
        let said = r#"{"code":"ERR_UNKNOWN_COMMAND","message":"m","details":{"execution_guarantee":"not_executed"}}"#;
        assert_eq!(declined(&raw(said)).error.guarantee(), Some(Guarantee::NotExecuted));
        let silent = r#"{"code":"ERR_UNKNOWN_COMMAND","message":"m"}"#;
        assert_eq!(declined(&raw(silent)).error.guarantee(), Some(Guarantee::Unknown));
    }

    #[test]
    fn what_an_editor_had_and_never_began_may_be_sent_again() {
        // [LEASE-5] [LEASE-9]
        for code in ["ERR_UNITY_DISCONNECTED", "ERR_EDITOR_NOT_READY", "ERR_QUEUE_FULL"] {
            for (word, kind) in [("not_executed", Kind::PeerNotReady), ("unknown", Kind::PeerLost)]
            {
                let said = format!(
                    r#"{{"code":"{code}","message":"m","details":{{"execution_guarantee":"{word}"}}}}"#
                );
                assert_eq!(declined(&raw(&said)).error.kind, kind, "{code} {word}");
            }
        }
    }

    #[test]
    fn a_bomb_of_brackets_is_no_result() {
        let bomb = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
        let raw = RawValue::from_string(bomb);
        let Ok(raw) = raw else { return };
        assert!(matches!(of("x", "ok", Some(&raw)), Outcome::Failed(_)));
    }
}
