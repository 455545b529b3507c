//! The protocol of CoplayDev's package, as a pure machine: for people who keep the package they have.
//!
//! It says neither that it has a call nor what it has when it comes back, takes one at a time, and knows no
//! cancel. So a call that was written when its connection is lost may have run, and is never sent again.

mod names;

use std::collections::BTreeMap;
use std::time::Duration;

use raincheck_core::text;
use raincheck_loopback::websocket::End;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::backend::{Act, Ask, Backend, Ending, Introduction, Order, Target, Word, code};
use crate::wire::inbound::Command;
use crate::wire::{EditorState, name, path};

/// How often the package says that it is there, in seconds.
const KEEP_ALIVE_S: u64 = 5;

/// A limit that the package never reaches: it would drop a result that comes after it.
const NEVER_S: u64 = 3600;

/// The most commands that are listed.
const MAX_COMMANDS: usize = 512;

/// The machine of one connection.
#[derive(Debug)]
pub(crate) struct Coplay {
    session_id: String,
    hello: Duration,
    silence: Duration,
    /// When it was heard of last.
    since: Instant,
    is_known: bool,
}

#[derive(Deserialize)]
struct Tagged {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Register {
    #[serde(default)]
    project_name: String,
    #[serde(default)]
    project_hash: String,
    #[serde(default)]
    unity_version: String,
    #[serde(default)]
    project_path: Option<String>,
}

#[derive(Deserialize)]
struct Tools {
    #[serde(default)]
    tools: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    #[serde(default)]
    description: Option<String>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: String,
    #[serde(borrow)]
    result: &'a RawValue,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(default)]
    status: String,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Reply {
    #[serde(default)]
    success: Option<bool>,
}

impl Coplay {
    pub(crate) const fn new(
        session_id: String,
        (hello, silence): (Duration, Duration),
        now: Instant,
    ) -> Self {
        Self { session_id, hello, silence, since: now, is_known: false }
    }

    fn register(&mut self, register: &Register) -> Vec<Act> {
        if self.is_known {
            return Vec::new();
        }
        self.is_known = true;
        let project_name = name(&register.project_name);
        let registered = json!({ "type": "registered", "session_id": self.session_id }).to_string();
        let introduction = Introduction {
            backend: "coplay",
            instance: name(&register.project_hash),
            project_path: path(register.project_path.as_deref().unwrap_or(&project_name)),
            name: project_name,
            unity_version: name(&register.unity_version),
            plugin_version: String::new(),
            pid: None,
            state: EditorState::Ready,
            commands: BTreeMap::new(),
            has: None,
            running: Vec::new(),
        };
        vec![Act::Send(registered), Act::Attach(Box::new(introduction))]
    }

    fn call(order: &Order) -> Vec<Act> {
        let (name, params) = names::theirs(&order.tool, &order.params);
        let call = json!({
            "type": "execute", "id": order.request, "name": name, "params": params, "timeout": NEVER_S,
        });
        // It does not say that it has a call; what was written it may have.
        vec![Act::Send(call.to_string()), Act::Say(Word::Accepted(order.request))]
    }
}

/// Reads how a call ended.
fn ended(answer: &Answer<'_>) -> Option<Act> {
    let request = answer.id.parse().ok()?;
    let ending = match serde_json::from_str::<Said<'_>>(answer.result.get()) {
        Ok(Said { status, result, .. }) if status == "success" => {
            let reply: Reply =
                result.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
            let status = if reply.success == Some(false) { "error" } else { "ok" };
            Ending::Said { status: status.to_owned(), result: result.map(ToOwned::to_owned) }
        }
        Ok(Said { error, .. }) => {
            let result = Some(error.unwrap_or(answer.result).to_owned());
            Ending::Said { status: "error".to_owned(), result }
        }
        Err(_) => Ending::Unreadable,
    };
    let target = Target::Request(request);
    Some(Act::Say(Word::Ended { target, named: String::new(), fence: None, ending }))
}

fn commands(tools: Tools) -> BTreeMap<String, Command> {
    let named = tools.tools.into_iter().filter(|it| !it.name.is_empty() && it.name.len() <= 128);
    let command = |it: Listed| {
        let about = it.description.unwrap_or_default();
        let command = Command {
            is_job: false,
            default_timeout_ms: None,
            max_timeout_ms: None,
            can_cancel: Some(false),
            read_only: false,
            is_control: false,
            description: text::escape(text::clip(&about, 400)).into_owned(),
            params: None,
        };
        (text::escape(&it.name).into_owned(), command)
    };
    named.take(MAX_COMMANDS).map(command).collect()
}

impl Backend for Coplay {
    fn opened(&mut self, now: Instant) -> Vec<Act> {
        self.since = now;
        let welcome =
            json!({ "type": "welcome", "serverTimeout": 30, "keepAliveInterval": KEEP_ALIVE_S });
        vec![Act::Send(welcome.to_string())]
    }

    fn heard(&mut self, now: Instant, text: &str) -> Vec<Act> {
        if self.is_known {
            self.since = now;
        }
        let Ok(Tagged { kind }) = serde_json::from_str(text) else { return Vec::new() };
        match kind.as_str() {
            "register" => match serde_json::from_str(text) {
                Ok(register) => self.register(&register),
                Err(_) => vec![Act::Close(code::POLICY, "register cannot be read")],
            },
            "register_tools" if self.is_known => match serde_json::from_str(text) {
                Ok(tools) => vec![Act::Say(Word::Commands(commands(tools)))],
                Err(_) => Vec::new(),
            },
            "command_result" if self.is_known => {
                let answer = serde_json::from_str::<Answer<'_>>(text).ok();
                answer.as_ref().and_then(ended).into_iter().collect()
            }
            // Pongs, and what later versions say.
            _ => Vec::new(),
        }
    }

    fn broke(&mut self, end: End) -> Vec<Act> {
        vec![match end {
            End::Closed => Act::Close(code::NORMAL, ""),
            End::TooLarge => Act::Close(code::TOO_LARGE, "a message is larger than is taken in"),
            End::Malformed => Act::Close(code::POLICY, "messages are text of JSON"),
        }]
    }

    fn asked(&mut self, _: Instant, ask: Ask) -> Vec<Act> {
        match ask {
            Ask::Execute(order) => Self::call(&order),
            Ask::Leave(code, words) => vec![Act::Close(code, words)],
            // It knows nothing of the kind.
            Ask::Cancel { .. } | Ask::Ack(_) | Ask::JobStatus { .. } => Vec::new(),
        }
    }

    fn due(&self) -> Instant {
        self.since + if self.is_known { self.silence } else { self.hello }
    }

    fn look(&mut self, now: Instant) -> Vec<Act> {
        if now < self.due() {
            return Vec::new();
        }
        let words = "nothing was heard of the editor for too long";
        vec![Act::Close(if self.is_known { code::POLICY } else { code::HELLO_TIMEOUT }, words)]
    }
}

#[cfg(test)]
mod tests {
    use raincheck_core::content::Json;
    use raincheck_core::ids::TaskId;
    use raincheck_core::time::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::wire::RequestId;

    fn known() -> Coplay {
        let now = Instant::now();
        let limits = (Duration::from_secs(5), Duration::from_secs(15));
        let mut coplay = Coplay::new("s".to_owned(), limits, now);
        coplay.opened(now);
        let register = json!({ "type": "register", "project_name": "P", "project_hash": "h", "project_path": "/p/" });
        let acts = coplay.heard(now, &register.to_string());
        let [Act::Send(registered), Act::Attach(who)] = &acts[..] else { panic!("{acts:?}") };
        assert_eq!(registered, r#"{"session_id":"s","type":"registered"}"#);
        assert_eq!((who.project_path.as_str(), who.has.is_none()), ("/p", true));
        coplay
    }

    fn order(tool: &str, params: &str) -> Ask {
        Ask::Execute(Box::new(Order {
            request: RequestId { task: TaskId::from_parts(1, [1; 10]), attempt: 1 },
            fence: 1,
            key: None,
            tool: tool.to_owned(),
            params: Json::parse(params).expect("JSON"),
            timeout_ms: 1000,
            submitted_at: Timestamp::from_millis(0),
            is_job: false,
        }))
    }

    #[test]
    fn a_call_has_a_limit_that_the_package_never_reaches_and_counts_as_taken() {
        // [UNITY-13]
        let acts = known().asked(Instant::now(), order("execute_menu_item", r#"{"path":"Kit/A"}"#));
        let [Act::Send(text), Act::Say(Word::Accepted(_))] = &acts[..] else { panic!("{acts:?}") };
        let call: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!((&call["type"], &call["timeout"]), (&json!("execute"), &json!(3600)));
        assert_eq!(call["params"]["menu_path"], "Kit/A");
    }

    #[test]
    fn results_and_both_kinds_of_errors_are_read() {
        // [UNITY-13]
        let id = RequestId { task: TaskId::from_parts(1, [1; 10]), attempt: 1 };
        for (result, expected) in [
            (json!({ "status": "success", "result": { "success": true, "data": 1 } }), "ok"),
            (
                json!({ "status": "success", "result": { "success": false, "message": "m" } }),
                "error",
            ),
            (json!({ "status": "error", "error": "no such menu" }), "error"),
        ] {
            let text = json!({ "type": "command_result", "id": id, "result": result }).to_string();
            let acts = known().heard(Instant::now(), &text);
            let [Act::Say(Word::Ended { ending: Ending::Said { status, result }, .. })] = &acts[..]
            else {
                panic!("{acts:?}")
            };
            assert_eq!(status, expected);
            assert!(result.is_some());
        }
    }

    #[test]
    fn nothing_is_heard_before_it_has_registered_and_silence_ends_it() {
        // [UNITY-13]
        let now = Instant::now();
        let mut coplay =
            Coplay::new("s".to_owned(), (Duration::from_secs(5), Duration::from_secs(15)), now);
        let result = r#"{"type":"command_result","id":"x","result":{}}"#;
        assert!(coplay.heard(now, result).is_empty());
        assert!(matches!(coplay.look(now + Duration::from_secs(5))[..], [Act::Close(4408, _)]));
        let mut coplay = known();
        let later = now + Duration::from_secs(14);
        coplay.heard(later, r#"{"type":"pong","session_id":"s"}"#);
        assert!(coplay.look(later + Duration::from_secs(14)).is_empty());
        assert!(matches!(coplay.look(later + Duration::from_secs(16))[..], [Act::Close(1008, _)]));
    }
}
