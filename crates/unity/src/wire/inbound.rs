//! What an editor says.

use std::collections::BTreeMap;

use raincheck_core::content::Json;
use raincheck_core::text;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The most tools that an editor may bring.
const MAX_TOOLS: usize = 512;

/// The most bytes of what is said of one.
const MAX_TOOL_TEXT: usize = 400;

/// The most bytes of the schema of one.
const MAX_PARAMS: usize = 8 * 1024;

/// The most bytes of all schemas of one editor.
const MAX_ALL_PARAMS: usize = 256 * 1024;

/// The most calls that an editor may list.
const MAX_LISTED: usize = 1024;

#[derive(Debug, Deserialize)]
pub(crate) struct Hello {
    #[serde(default)]
    pub(crate) protocol_version: u64,
    #[serde(default)]
    pub(crate) plugin_version: String,
    #[serde(default)]
    pub(crate) unity_version: String,
    #[serde(default)]
    pub(crate) project_name: String,
    #[serde(default)]
    pub(crate) editor_instance_id: String,
    #[serde(default)]
    pub(crate) pid: Option<u64>,
    #[serde(default)]
    pub(crate) nonce: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Auth {
    #[serde(default)]
    pub(crate) mac: String,
    #[serde(default)]
    pub(crate) project_path: String,
    #[serde(default)]
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) running: Vec<Running>,
    #[serde(default)]
    pub(crate) finished_unacked: Vec<String>,
    #[serde(default)]
    tools: Vec<RawTool>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Running {
    pub(crate) request_id: String,
    #[serde(default)]
    pub(crate) job_id: Option<String>,
    #[serde(default)]
    pub(crate) tool_name: String,
}

#[derive(Debug, Deserialize)]
struct RawTool {
    name: String,
    #[serde(default)]
    execution_mode: Option<String>,
    #[serde(default)]
    default_timeout_ms: Option<u64>,
    #[serde(default)]
    max_timeout_ms: Option<u64>,
    #[serde(default)]
    supports_cancel: Option<bool>,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    class: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    params: Option<Box<RawValue>>,
}

/// A command that an editor has registered.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) is_job: bool,
    pub(crate) default_timeout_ms: Option<u64>,
    pub(crate) max_timeout_ms: Option<u64>,
    pub(crate) can_cancel: Option<bool>,
    pub(crate) read_only: bool,
    pub(crate) is_control: bool,
    pub(crate) description: String,
    pub(crate) params: Option<Json>,
}

impl Auth {
    /// Cuts what the editor lists to what is taken in.
    pub(crate) fn bounded(mut self) -> Self {
        self.running.truncate(MAX_LISTED);
        self.finished_unacked.truncate(MAX_LISTED);
        self
    }

    /// Returns the commands of the editor by their names, as many as are taken in.
    pub(crate) fn commands(&mut self) -> BTreeMap<String, Command> {
        let mut room = MAX_ALL_PARAMS;
        let tools = std::mem::take(&mut self.tools).into_iter();
        let named = tools.filter(|tool| !tool.name.is_empty() && tool.name.len() <= 128);
        named.take(MAX_TOOLS).map(|tool| tool.command(&mut room)).collect()
    }
}

impl RawTool {
    fn command(self, room: &mut usize) -> (String, Command) {
        let params = self.params.filter(|raw| raw.get().len() <= MAX_PARAMS.min(*room));
        let params = params.and_then(|raw| Json::parse(raw.get()).ok());
        *room -= params.as_ref().map_or(0, |json| json.get().len());
        let description = self.description.unwrap_or_default();
        let command = Command {
            is_job: self.execution_mode.as_deref() == Some("job"),
            default_timeout_ms: self.default_timeout_ms,
            max_timeout_ms: self.max_timeout_ms,
            can_cancel: self.supports_cancel,
            read_only: self.read_only,
            is_control: self.class.as_deref() == Some("control"),
            description: text::escape(text::clip(&description, MAX_TOOL_TEXT)).into_owned(),
            params,
        };
        (text::escape(&self.name).into_owned(), command)
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Status {
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) seq: u64,
    #[serde(default)]
    pub(crate) focused: Option<bool>,
    #[serde(default)]
    pub(crate) main_thread_lag_ms: Option<f64>,
    #[serde(default, deserialize_with = "title")]
    pub(crate) dialog: Option<String>,
}

/// Reads the title of a dialog: a text, or the `title` of an object. Anything else says nothing, and
/// is no reason to lose the state that comes with it.
fn title<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Dialog {
        Text(String),
        Window { title: String },
        Other(IgnoredAny),
    }
    Ok(match Dialog::deserialize(from)? {
        Dialog::Text(title) | Dialog::Window { title } => Some(title),
        Dialog::Other(IgnoredAny) => None,
    })
}

/// A message about a call that says no more than its type.
#[derive(Debug, Deserialize)]
pub(crate) struct About {
    pub(crate) request_id: String,
    #[serde(default)]
    pub(crate) job_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Progress<'a> {
    #[serde(default)]
    pub(crate) request_id: Option<String>,
    #[serde(default)]
    pub(crate) job_id: Option<String>,
    #[serde(default)]
    pub(crate) fence: Option<u64>,
    #[serde(default)]
    pub(crate) seq: u64,
    #[serde(default)]
    pub(crate) current: Option<f64>,
    #[serde(default)]
    pub(crate) total: Option<f64>,
    #[serde(default)]
    pub(crate) message: Option<String>,
    #[serde(borrow, default)]
    pub(crate) partial: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Ended<'a> {
    pub(crate) request_id: String,
    #[serde(default)]
    pub(crate) fence: Option<u64>,
    pub(crate) status: String,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct JobStatus<'a> {
    #[serde(default)]
    pub(crate) job_id: Option<String>,
    #[serde(default)]
    pub(crate) state: String,
    #[serde(borrow, default)]
    pub(crate) progress: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CancelResult {
    #[serde(default)]
    pub(crate) target_request_id: Option<String>,
    #[serde(default)]
    pub(crate) target_job_id: Option<String>,
    #[serde(default)]
    pub(crate) status: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Failed<'a> {
    #[serde(default)]
    pub(crate) request_id: Option<String>,
    #[serde(borrow)]
    pub(crate) error: &'a RawValue,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Bye {
    #[serde(default)]
    pub(crate) reason: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    pub(crate) request_id: String,
    pub(crate) index: u32,
    pub(crate) total: u32,
    #[serde(borrow)]
    pub(crate) data: &'a str,
}

/// A message of an editor.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    Hello(Hello),
    Auth(Box<Auth>),
    Status(Status),
    Accepted(About),
    Started(About),
    Progress(Progress<'a>),
    Ended(Ended<'a>),
    Job(About),
    JobStatus(JobStatus<'a>),
    CancelResult(CancelResult),
    Failed(Failed<'a>),
    Bye(Bye),
    Chunk(Chunk<'a>),
    Pong,
}

/// What is wrong with a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is no message at all, or not one of its type.
    Malformed(String),
    /// Its type is none of the protocol.
    Unknown { kind: String, request_id: Option<String> },
}

#[derive(Deserialize)]
struct Tagged {
    #[serde(rename = "type")]
    kind: String,
}

/// Reads a message.
pub(crate) fn read(text: &str) -> Result<Message<'_>, Unread> {
    let Tagged { kind } = of(text)?;
    Ok(match kind.as_str() {
        "hello" => Message::Hello(of(text)?),
        "auth" => Message::Auth(Box::new(of::<Auth>(text)?.bounded())),
        "editor_status" => Message::Status(of(text)?),
        "accepted" => Message::Accepted(of(text)?),
        "started" => Message::Started(of(text)?),
        "progress" => Message::Progress(of(text)?),
        "result" => Message::Ended(of(text)?),
        "submit_job_result" => Message::Job(of(text)?),
        "job_status" => Message::JobStatus(of(text)?),
        "cancel_result" => Message::CancelResult(of(text)?),
        "error" => Message::Failed(of(text)?),
        "bye" => Message::Bye(of(text)?),
        "chunk" => Message::Chunk(of(text)?),
        "pong" => Message::Pong,
        _ => {
            let about: Option<About> = serde_json::from_str(text).ok();
            let request_id = about.map(|about| about.request_id).filter(|it| it.len() <= 128);
            return Err(Unread::Unknown { kind: super::name(&kind), request_id });
        }
    })
}

fn of<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Unread> {
    // The words of the reader name the place, and may repeat a name from the message.
    serde_json::from_str(text).map_err(|error| Unread::Malformed(super::name(&error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_told_from_one_of_an_unknown_type() {
        // [UNITY-5]
        let bomb = "[".repeat(500);
        let broken =
            ["{", "[]", "null", "\"x\"", "{}", r#"{"type":5}"#, r#"{"type":"result"}"#, &bomb];
        for text in broken {
            assert!(matches!(read(text), Err(Unread::Malformed(_))), "{text}");
        }
        let unknown = read(r#"{"type":"kit_nonsense","request_id":"k1"}"#).expect_err("unknown");
        let request_id = Some("k1".to_owned());
        assert_eq!(unknown, Unread::Unknown { kind: "kit_nonsense".to_owned(), request_id });
    }

    #[test]
    fn unknown_fields_are_ignored() {
        // [UNITY-5]
        let text = r#"{"type":"editor_status","state":"ready","seq":3,"kit_field":{"x":[1]}}"#;
        let Ok(Message::Status(status)) = read(text) else { panic!("a status") };
        assert_eq!((status.state.as_str(), status.seq), ("ready", 3));
    }

    #[test]
    fn a_dialog_is_read_as_a_title_or_a_window_and_never_costs_the_state() {
        // [UNITY-5] Case unity-dialog-blocks-save.
        let dialogs = [
            (r#"{"title":"Save Scene"}"#, Some("Save Scene")),
            (r#""Save Scene""#, Some("Save Scene")),
            ("null", None),
            (r#"{"name":5}"#, None),
            ("[1]", None),
        ];
        for (dialog, title) in dialogs {
            let text = format!(
                r#"{{"type":"editor_status","state":"blocked","seq":7,"dialog":{dialog}}}"#
            );
            let Ok(Message::Status(status)) = read(&text) else { panic!("{text}") };
            assert_eq!((status.state.as_str(), status.dialog.as_deref()), ("blocked", title));
        }
    }

    #[test]
    fn the_commands_of_an_editor_are_bounded() {
        // [UNITY-9]
        let tool = |n: usize| {
            let (about, pad) = ("d".repeat(3000), "p".repeat(2000));
            format!(r#"{{"name":"t{n}","description":"{about}","params":{{"pad":"{pad}"}}}}"#)
        };
        let tools: Vec<String> = (0..600).map(tool).collect();
        let text = format!(r#"{{"type":"auth","mac":"m","tools":[{}]}}"#, tools.join(","));
        let Ok(Message::Auth(mut auth)) = read(&text) else { panic!("an auth") };
        let commands = auth.commands();
        assert_eq!(commands.len(), MAX_TOOLS);
        let params = commands.values().filter_map(|it| it.params.as_ref());
        assert!(params.map(|it| it.get().len()).sum::<usize>() <= MAX_ALL_PARAMS);
        assert!(commands.values().all(|it| it.description.len() <= MAX_TOOL_TEXT));
    }
}
