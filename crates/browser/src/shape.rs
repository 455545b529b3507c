//! The shape of what a task keeps of a browser's answer.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::reply::Reply;
use raincheck_core::task::Outcome;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::actions::{ACTIONS, VIEWS};
use crate::address;

/// What the events of a trace come as.
const GZIP: &str = "application/gzip";

/// Makes the outcome of a command what its task keeps: an image leaves the JSON, and a page that may
/// not be opened is not told of.
///
/// Where the tab stands counts for each of them: `own_port` is that of this server's listener.
pub(crate) fn shaped(what: &str, outcome: Outcome, own_port: Option<u16>) -> Outcome {
    let Outcome::Succeeded(parts) = &outcome else { return outcome };
    let [Content::Json(json)] = parts.as_slice() else { return outcome };
    let Ok(reply) = json.read::<Reply<'_>>() else { return outcome };
    if reply.origin.as_deref().is_some_and(|origin| is_refused(origin, own_port)) {
        return Outcome::Failed(refused());
    }
    match what {
        "screenshot" | "pdf" => file(reply).unwrap_or(outcome),
        "trace_stop" => trace(reply).unwrap_or(outcome),
        _ if is_view_or_action(what) && arrived(&reply, own_port) => Outcome::Failed(refused()),
        _ => outcome,
    }
}

fn is_view_or_action(what: &str) -> bool {
    let is_script = what == "execute_js";
    !is_script && ACTIONS.iter().chain(VIEWS).any(|entry| entry.name == what)
}

/// Looks where a command arrived, after redirects [SEC-7].
fn arrived(reply: &Reply<'_>, own_port: Option<u16>) -> bool {
    #[derive(Deserialize)]
    struct Arrived {
        url: Option<String>,
        #[serde(default)]
        steps: Vec<Step>,
    }
    #[derive(Deserialize)]
    struct Step {
        action: String,
        result: Option<Box<RawValue>>,
    }
    let Some(result) = reply.result else { return false };
    let Ok(arrived) = serde_json::from_str::<Arrived>(result.get()) else { return false };
    let of_steps = arrived.steps.into_iter().filter_map(|step| {
        let result = step.result.filter(|_| is_view_or_action(&step.action))?;
        serde_json::from_str::<Arrived>(result.get()).ok()?.url
    });
    arrived.url.into_iter().chain(of_steps).any(|url| is_refused(&url, own_port))
}

fn is_refused(address: &str, own_port: Option<u16>) -> bool {
    let error = address::check("url", address, own_port).err();
    error.is_some_and(|error| error.kind == Kind::UrlBlocked) && address.starts_with("http")
}

fn refused() -> Error {
    let words = "the page led to an address that may not be opened; what it holds is not shown";
    Error::new(Kind::UrlBlocked, words).with_guarantee(Guarantee::Executed)
}

/// Takes a file out of the JSON that it came in.
fn file(reply: Reply<'_>) -> Option<Outcome> {
    #[derive(Deserialize)]
    struct Shot {
        mime: String,
        data: String,
        width: Option<u32>,
        height: Option<u32>,
    }
    let shot: Shot = serde_json::from_str(reply.result?.get()).ok()?;
    let known = ["image/jpeg", "image/png", "image/webp", "application/pdf"];
    let mime = known.into_iter().find(|known| *known == shot.mime)?;
    let data = STANDARD.decode(shot.data.as_bytes()).ok()?;
    let told = json!({
        "mime": mime, "width": shot.width, "height": shot.height, "bytes": data.len(),
    });
    with_file(reply, &told, mime, data)
}

/// Takes the events of a trace out of the JSON that they came in: its file.
fn trace(reply: Reply<'_>) -> Option<Outcome> {
    #[derive(Deserialize)]
    struct Traced {
        raw: Raw,
        #[serde(flatten)]
        told: Map<String, Value>,
    }
    #[derive(Deserialize)]
    struct Raw {
        data: String,
        events: u64,
        left_out: Option<String>,
    }
    let Traced { raw, mut told } = serde_json::from_str(reply.result?.get()).ok()?;
    let data = STANDARD.decode(raw.data.as_bytes()).ok()?;
    told.insert("mime".to_owned(), json!(GZIP));
    told.insert("events".to_owned(), json!(raw.events));
    if let Some(left_out) = raw.left_out {
        told.insert("left_out_of_file".to_owned(), json!(left_out));
    }
    with_file(reply, &Value::Object(told), GZIP, data)
}

fn with_file(reply: Reply<'_>, told: &Value, mime: &'static str, data: Vec<u8>) -> Option<Outcome> {
    let told = Json::of(told).ok()?;
    let reply = Reply { result: Some(told.raw()), truncated: false, ..reply };
    let json = reply.to_json().ok()?;
    let file = Content::Binary { mime: Arc::from(mime), data: data.into() };
    Some(Outcome::Succeeded(vec![Content::Json(json), file]))
}

/// Puts a document beside the JSON as a resource of its own: clients show only images as they are.
pub(crate) fn beside(outcome: Outcome) -> Outcome {
    let Outcome::Succeeded(parts) = outcome else { return outcome };
    let shown = parts.into_iter().map(|part| {
        let Content::Binary { mime, data } = &part else { return part };
        if mime.starts_with("image/") {
            return part;
        }
        let resource = json!({
            "type": "resource",
            "resource": {
                "uri": "attachment:page.pdf", "mimeType": &**mime, "blob": STANDARD.encode(data),
            },
        });
        Json::of(&resource).map_or(part, Content::Verbatim)
    });
    Outcome::Succeeded(shown.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replied(result: &str) -> Outcome {
        let reply = format!(r#"{{"result":{result}}}"#);
        Outcome::Succeeded(vec![Content::Json(Json::parse(reply).expect("JSON"))])
    }

    #[test]
    fn what_a_refused_address_showed_is_not_handed_on() {
        // [BROWSER-16, SEC-7]
        let metadata = replied(r#"{"url":"http://169.254.169.254/","text":"key"}"#);
        for what in ["navigate", "page_text", "tab_new"] {
            let Outcome::Failed(error) = shaped(what, metadata.clone(), None) else {
                panic!("{what}")
            };
            assert_eq!(error.kind, Kind::UrlBlocked, "{what}");
            assert!(!error.message.contains("key"), "{error}");
        }
        let steps = r#"{"steps":[{"action":"reload"},{"action":"page_text","result":{"url":"http://169.254.169.254/","text":"key"}}]}"#;
        let Outcome::Failed(error) = shaped("batch", replied(steps), None) else {
            panic!("a step")
        };
        assert_eq!(error.kind, Kind::UrlBlocked);
        let fine = replied(r#"{"url":"https://example.com/","text":"hi"}"#);
        assert_eq!(shaped("page_text", fine.clone(), None), fine);
    }

    #[test]
    fn no_result_of_a_tab_at_this_server_s_own_listener_is_handed_on() {
        // [BROWSER-16, SEC-7]
        let reply = r#"{"result":"secret","origin":"http://localhost:4711"}"#;
        let seen = Outcome::Succeeded(vec![Content::Json(Json::parse(reply).expect("JSON"))]);
        for what in ["execute_js", "screenshot", "click"] {
            let Outcome::Failed(error) = shaped(what, seen.clone(), Some(4711)) else {
                panic!("{what}")
            };
            assert_eq!(error.kind, Kind::UrlBlocked, "{what}");
        }
        assert_eq!(shaped("execute_js", seen.clone(), Some(4712)), seen);
    }

    #[test]
    fn an_image_leaves_the_json() {
        let shot = replied(r#"{"mime":"image/jpeg","data":"aGk=","width":2,"height":1}"#);
        let Outcome::Succeeded(parts) = shaped("screenshot", shot, None) else {
            panic!("no image")
        };
        assert!(
            matches!(&parts[1], Content::Binary { mime, data } if &**mime == "image/jpeg" && &**data == b"hi")
        );
    }
}
