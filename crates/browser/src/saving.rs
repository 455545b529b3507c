//! Output that goes into a file instead of the answer.

use std::path::Path;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::reply::Reply;
use raincheck_core::task::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::files;
use crate::told;

/// What the answer still says of output that was saved.
#[derive(Default, Serialize, Deserialize)]
struct Saved {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mime: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    #[serde(default, skip_deserializing)]
    saved_to: String,
    #[serde(default, skip_deserializing)]
    bytes: usize,
}

/// Saves the output of a command that succeeded under a name below `root`; the answer says where. Works with
/// blocking calls.
pub(crate) fn saved(root: Option<&Path>, name: &str, outcome: Outcome) -> Outcome {
    let Outcome::Succeeded(parts) = outcome else { return outcome };
    match save(root, name, &parts) {
        Ok(json) => Outcome::Succeeded(vec![Content::Json(json)]),
        Err(error) => Outcome::Failed(error.with_guarantee(Guarantee::Executed)),
    }
}

/// Saves a list from memory; the answer says where. Works with blocking calls.
pub(crate) fn remembered(
    root: Option<&Path>,
    name: &str,
    answer: &Outcome,
) -> Result<Outcome, Error> {
    let Outcome::Succeeded(parts) = answer else { return Ok(answer.clone()) };
    let Some(Content::Json(json)) = parts.first() else { return Ok(answer.clone()) };
    let path = files::save(root, name, json.get().as_bytes())?;
    let told = Saved {
        saved_to: path.to_string_lossy().into_owned(),
        bytes: json.get().len(),
        ..Saved::default()
    };
    told::told(&told)
}

fn save(root: Option<&Path>, name: &str, parts: &[Content]) -> Result<Json, Error> {
    let unread =
        |error: &dyn std::fmt::Display| Error::new(Kind::InvalidResponse, error.to_string());
    let mut reply = Reply::default();
    if let Some(Content::Json(json)) = parts.first() {
        reply = json.read().map_err(|error| unread(&error))?;
    }
    let raw = reply.result.map_or("null", RawValue::get);
    let mut told: Saved = serde_json::from_str(raw).unwrap_or_default();
    let file = parts.iter().find_map(|part| match part {
        Content::Binary { data, .. } => Some(&**data),
        Content::Json(_) | Content::Text(_) | Content::Verbatim(_) => None,
    });
    let words = text_of(raw);
    let bytes = file.unwrap_or_else(|| words.as_deref().unwrap_or(raw).as_bytes());
    let path = files::save(root, name, bytes)?;
    (told.saved_to, told.bytes) = (path.to_string_lossy().into_owned(), bytes.len());
    let told = Json::of(&told).map_err(|error| unread(&error))?;
    Reply { result: Some(told.raw()), truncated: false, ..reply }
        .to_json()
        .map_err(|error| unread(&error))
}

/// Returns the text that a result is, or that it is about; anything else is saved as JSON.
fn text_of(raw: &str) -> Option<String> {
    /// A page as `page_text` and `snapshot` tell it.
    #[derive(Deserialize)]
    struct Page {
        #[serde(rename = "url")]
        _url: String,
        text: String,
    }
    let page = || serde_json::from_str(raw).map(|page: Page| page.text);
    serde_json::from_str(raw).or_else(|_| page()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replied(result: &str) -> Vec<Content> {
        let reply = format!(r#"{{"result":{result},"engine":"debugger","tab_id":7}}"#);
        vec![Content::Json(Json::parse(reply).expect("JSON"))]
    }

    #[test]
    fn text_is_saved_as_text_bytes_as_bytes_and_the_rest_as_json() {
        // [BROWSER-40]
        let dir = tempfile::tempdir().expect("a folder");
        let root = Some(dir.path());
        let page = r#"{"url":"http://a/","title":"A","text":"one\ntwo"}"#;
        let mut shot = replied(r#"{"mime":"image/jpeg","width":2,"height":1,"bytes":2}"#);
        shot.push(Content::Binary { mime: "image/jpeg".into(), data: b"hi"[..].into() });
        for (n, (parts, wanted)) in [
            (replied(page), "one\ntwo"),
            (replied(r#""said""#), "said"),
            (replied("[1.0,1e2]"), "[1.0,1e2]"),
            (shot, "hi"),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("{n}.out");
            let Outcome::Succeeded(told) = saved(root, &name, Outcome::Succeeded(parts)) else {
                panic!("{wanted}");
            };
            assert_eq!(std::fs::read_to_string(dir.path().join(&name)).expect("there"), wanted);
            let [Content::Json(json)] = told.as_slice() else { panic!("{told:?}") };
            assert!(json.get().contains(&name), "{json:?}");
            assert!(!json.get().contains("one"), "{json:?}");
            assert!(json.get().contains(r#""target":7"#), "{json:?}");
        }
    }

    #[test]
    fn output_that_cannot_be_saved_says_that_the_command_was_executed() {
        let outcome = saved(None, "a", Outcome::Succeeded(replied("1")));
        let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
        assert_eq!(error.guarantee(), Some(Guarantee::Executed));
        let failed = Outcome::Failed(Error::new(Kind::ToolFailed, "it failed"));
        assert_eq!(saved(None, "a", failed.clone()), failed);
    }
}
