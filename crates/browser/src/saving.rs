//! Output that goes into a file instead of the answer.

use std::path::{Path, PathBuf};

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::reply::Reply;
use raincheck_core::task::Outcome;
use raincheck_core::text;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::files;
use crate::gist;
use crate::told;

/// Where the output of a command goes.
#[derive(Clone, Debug)]
pub(crate) struct SaveTo {
    /// The name of the file.
    pub(crate) name: Arc<str>,
    /// Whether one thing was asked for by its `id`, so that a list is no answer.
    pub(crate) is_one: bool,
}

/// Adds where a file is, and how long, to what is told of it.
fn told_of(mut gist: Map<String, Value>, path: &Path, bytes: u64) -> Map<String, Value> {
    gist.insert("saved_to".to_owned(), path.to_string_lossy().into());
    gist.insert("bytes".to_owned(), bytes.into());
    gist
}

/// What answers with a file, and has nothing to save without one.
const ANSWER_WITH_FILE: &[&str] = &["screenshot", "pdf", "trace_stop"];

/// How much was saved from memory, for a mark of each.
static N_SAVED: AtomicU64 = AtomicU64::new(0);

/// The most bytes that are quoted of why a download did not complete.
const MAX_CAUSE: usize = 200;

/// One download, as the extension tells it.
#[derive(Deserialize)]
struct Download {
    path: PathBuf,
    state: String,
    error: Option<String>,
}

impl Download {
    /// Copies the file to where it was asked for.
    fn copied(
        self,
        gist: Map<String, Value>,
        (root, mark): (Option<&Path>, &str),
        name: &str,
    ) -> Result<Map<String, Value>, Error> {
        if self.state == "in_progress" {
            return Err(Error::new(Kind::ToolFailed, "the download goes on")
                .with_hint("give a longer timeout_ms"));
        }
        if self.state != "complete" {
            let why = self.error.unwrap_or(self.state);
            return Err(Error::new(Kind::ToolFailed, "the download did not complete")
                .with_quoted(text::clip(&why, MAX_CAUSE), None));
        }
        let (path, bytes) = files::copy(root, name, mark, &self.path)?;
        Ok(told_of(gist, &path, bytes))
    }
}

/// Saves the output of a command that succeeded under a name below the folder of `place`; the answer says where. The
/// other part of `place` is a mark that no other command has. Works with blocking calls.
pub(crate) fn saved(
    place: (Option<&Path>, &str),
    to: &SaveTo,
    what: &str,
    outcome: Outcome,
) -> Outcome {
    let Outcome::Succeeded(parts) = outcome else { return outcome };
    match save(place, to, what, &parts) {
        Ok(json) => Outcome::Succeeded(vec![Content::Json(json)]),
        Err(error) => Outcome::Failed(error.with_guarantee(Guarantee::Executed)),
    }
}

/// Saves a list from memory; the answer says where. Works with blocking calls.
pub(crate) fn remembered(
    root: Option<&Path>,
    (what, name): (&str, &str),
    answer: &Outcome,
) -> Result<Outcome, Error> {
    let Outcome::Succeeded(parts) = answer else { return Ok(answer.clone()) };
    let Some(Content::Json(json)) = parts.first() else { return Ok(answer.clone()) };
    let n = N_SAVED.fetch_add(1, Ordering::Relaxed);
    let mark = format!("memory-{}-{n}", std::process::id());
    let path = files::save(root, name, &mark, json.get().as_bytes())?;
    let gist = gist::of(what, &json.read().unwrap_or_default());
    told::told(&told_of(gist, &path, json.get().len() as u64))
}

fn save(
    place: (Option<&Path>, &str),
    to: &SaveTo,
    what: &str,
    parts: &[Content],
) -> Result<Json, Error> {
    let ((root, mark), name) = (place, &*to.name);
    let unread =
        |error: &dyn std::fmt::Display| Error::new(Kind::InvalidResponse, error.to_string());
    let mut reply = Reply::default();
    if let Some(Content::Json(json)) = parts.first() {
        reply = json.read().map_err(|error| unread(&error))?;
    }
    let raw = reply.result.map_or("null", RawValue::get);
    let gist = gist::of(what, &serde_json::from_str(raw).unwrap_or_default());
    let told = if what == "downloads" && to.is_one {
        let download: Download = serde_json::from_str(raw).map_err(|_| not_understood())?;
        download.copied(gist, place, name)?
    } else {
        let file = parts.iter().find_map(|part| match part {
            Content::Binary { data, .. } => Some(&**data),
            Content::Json(_) | Content::Text(_) | Content::Verbatim(_) => None,
        });
        if file.is_none() && ANSWER_WITH_FILE.contains(&what) {
            return Err(not_understood());
        }
        let words = text_of(raw);
        let bytes = file.unwrap_or_else(|| words.as_deref().unwrap_or(raw).as_bytes());
        let path = files::save(root, name, mark, bytes)?;
        // A trace is beside its summary, not in its place.
        let gist = match file {
            Some(_) => serde_json::from_str(raw).unwrap_or(gist),
            None => gist,
        };
        told_of(gist, &path, bytes.len() as u64)
    };
    let told = Json::of(&told).map_err(|error| unread(&error))?;
    // What the extension cut is cut in the file, too.
    Reply { result: Some(told.raw()), ..reply }.to_json().map_err(|error| unread(&error))
}

/// What an extension answers that does not know what it was asked: an older one, until it is loaded again.
fn not_understood() -> Error {
    let words =
        "the extension answered with something else than was to be saved; nothing was written";
    Error::new(Kind::PeerIncompatible, words).with_hint(
        "ask the user to reload the extension on the browser's page of extensions, then run it again",
    )
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

    fn to(name: &str, is_one: bool) -> SaveTo {
        SaveTo { name: name.into(), is_one }
    }

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
            let Outcome::Succeeded(told) =
                saved((root, "t"), &to(&name, false), "page_text", Outcome::Succeeded(parts))
            else {
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
    fn what_is_saved_still_says_what_the_next_call_needs() {
        // [BROWSER-40]
        let dir = tempfile::tempdir().expect("a folder");
        let page = r#"{"url":"http://a/","snapshot_id":"s1.2","text":"- one"}"#;
        let answer = Outcome::Succeeded(replied(page));
        let place = (Some(dir.path()), "t");
        let Outcome::Succeeded(told) = saved(place, &to("a", false), "snapshot", answer) else {
            panic!("not saved")
        };
        let [Content::Json(json)] = told.as_slice() else { panic!("{told:?}") };
        assert!(json.get().contains(r#""snapshot_id":"s1.2""#), "{json:?}");
        let log = Json::parse(r#"{"count":1,"next_cursor":"9","console":["said"]}"#).expect("JSON");
        let log = Outcome::Succeeded(vec![Content::Json(log)]);
        let told = remembered(Some(dir.path()), ("console", "b"), &log).expect("saved");
        let Outcome::Succeeded(told) = told else { panic!("{told:?}") };
        let [Content::Json(json)] = told.as_slice() else { panic!("{told:?}") };
        assert!(json.get().contains(r#""next_cursor":"9""#), "{json:?}");
        assert!(!json.get().contains("said"), "{json:?}");
    }

    #[test]
    fn output_that_cannot_be_saved_says_that_the_command_was_executed() {
        let outcome =
            saved((None, "t"), &to("a", false), "page_text", Outcome::Succeeded(replied("1")));
        let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
        assert_eq!(error.guarantee(), Some(Guarantee::Executed));
        let failed = Outcome::Failed(Error::new(Kind::ToolFailed, "it failed"));
        assert_eq!(saved((None, "t"), &to("a", false), "page_text", failed.clone()), failed);
    }

    #[test]
    fn what_an_older_extension_answers_instead_is_no_output() {
        // [BROWSER-40, BROWSER-49]
        let dir = tempfile::tempdir().expect("a folder");
        let list = r#"[{"path":"/etc/passwd","state":"complete"}]"#;
        let place = (Some(dir.path()), "t");
        let asked = [
            ("downloads", list),
            ("downloads", "null"),
            ("trace_stop", r#"{"duration_ms":5}"#),
            ("screenshot", r#"{"mime":"text/html","data":""}"#),
        ];
        for (what, result) in asked {
            let answer = Outcome::Succeeded(replied(result));
            let Outcome::Failed(error) = saved(place, &to("a", true), what, answer) else {
                panic!("{what}: {result}")
            };
            assert_eq!(error.kind, Kind::PeerIncompatible, "{what}");
            assert_eq!(error.guarantee(), Some(Guarantee::Executed), "{what}");
            assert!(!dir.path().join("a").exists(), "{what}");
        }
    }

    #[test]
    fn a_download_is_copied_when_it_is_complete_and_a_trace_is_saved_beside_its_summary() {
        // [BROWSER-49, BROWSER-50]
        let dir = tempfile::tempdir().expect("a folder");
        let (root, put) = (dir.path().join("named"), dir.path().join("tea.bin"));
        std::fs::create_dir(&root).expect("made");
        std::fs::write(&put, "tea").expect("written");
        let download = |state: &str, path: &Path| {
            let row = serde_json::json!({
                "download_id": 7, "url": "http://a/", "path": path, "state": state, "bytes": 3,
            });
            Outcome::Succeeded(replied(&row.to_string()))
        };
        let save = |name: &str, outcome: Outcome| {
            saved((Some(&*root), "t"), &to(name, name != "list"), "downloads", outcome)
        };
        for (state, path) in [("in_progress", &*put), ("complete", dir.path())] {
            let Outcome::Failed(error) = save("a", download(state, path)) else {
                panic!("{state}")
            };
            assert_eq!(error.guarantee(), Some(Guarantee::Executed), "{error}");
        }
        for _ in 0..2 {
            let Outcome::Succeeded(told) = save("a/tea", download("complete", &put)) else {
                panic!("not saved")
            };
            let [Content::Json(json)] = told.as_slice() else { panic!("{told:?}") };
            assert!(json.get().contains(r#""bytes":3"#), "{json:?}");
        }
        assert_eq!(std::fs::read(root.join("a/tea")).expect("there"), b"tea");
        std::fs::write(&put, "mate").expect("written");
        let other = save("a/tea", download("complete", &put));
        assert!(matches!(other, Outcome::Failed(_)), "written over: {other:?}");
        // Its words are the page's or the browser's, and only quoted.
        let Outcome::Failed(error) = save("b", {
            let row = serde_json::json!({ "path": "/x", "state": "PLANTED", "error": "PLANTED" });
            Outcome::Succeeded(replied(&row.to_string()))
        }) else {
            panic!("saved")
        };
        assert!(!error.message.contains("PLANTED"), "[SEC-10] {error}");
        assert_eq!(error.quoted.as_deref().map(|quoted| &*quoted.text), Some("PLANTED"));
        // The list is saved as a list.
        let list = Outcome::Succeeded(replied(r#"[{"path":"/etc/passwd","state":"complete"}]"#));
        assert!(matches!(save("list", list), Outcome::Succeeded(_)));
        assert!(std::fs::read_to_string(root.join("list")).expect("there").starts_with('['));

        let mut traced = replied(r#"{"duration_ms":5,"mime":"application/gzip","events":2}"#);
        traced.push(Content::Binary { mime: "application/gzip".into(), data: b"zip"[..].into() });
        let traced = saved(
            (Some(&*root), "t"),
            &to("t.gz", false),
            "trace_stop",
            Outcome::Succeeded(traced),
        );
        let Outcome::Succeeded(told) = traced else { panic!("{traced:?}") };
        let [Content::Json(json)] = told.as_slice() else { panic!("{told:?}") };
        for words in [r#""duration_ms":5"#, r#""events":2"#, "t.gz", r#""bytes":3"#] {
            assert!(json.get().contains(words), "{words}: {json:?}");
        }
    }
}
