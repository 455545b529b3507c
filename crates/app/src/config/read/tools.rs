//! `[tools.NAME]` over `[defaults]`.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use raincheck_core::cancel::{OnDisconnect, OnExit};
use raincheck_core::content::Json;
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::log::DEFAULT_QUOTA;
use raincheck_core::tool::{Hints, ToolSpec};
use toml::Spanned;
use toml::de::DeValue;

use super::lanes;
use super::section::{Section, entries};
use crate::config::problem::Problems;
use crate::config::{CANONICAL_TOOLS, MAX_TOOL_NAME, Overrides, Tool, keys};

/// The longest description of a tool, in characters.
const MAX_DESCRIPTION: usize = 400;

/// What a tool is read against.
pub(super) struct Policy<'a> {
    pub(super) defaults: Option<&'a Section>,
    pub(super) overrides: Overrides,
    pub(super) lanes: &'a [(LaneId, lane::Config)],
}

impl Policy<'_> {
    /// Reads every tool, in the order of the file.
    pub(super) fn read(&self, value: &Spanned<DeValue<'_>>, problems: &mut Problems) -> Vec<Tool> {
        entries(value, "tools", problems)
            .into_iter()
            .filter_map(|(name, value)| {
                check_name(name, problems);
                self.tool(name, value, problems)
            })
            .collect()
    }

    fn tool(
        &self,
        name: &Spanned<Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        problems: &mut Problems,
    ) -> Option<Tool> {
        let path = format!("tools.{}", name.get_ref());
        let n_before = problems.len();
        let own = Section::read(value, &path, &[keys::TOOL, keys::POLICY], problems);
        if let Some(span) = own.span_of("lane") {
            lanes::check_known(&own, span, self.lanes, problems);
        }
        self.check_runtime(&own, problems);
        check_description(&own, problems);
        let Some(command) = own.list("command") else {
            if problems.len() == n_before {
                problems.add(
                    name.span(),
                    format!("[{path}] has no `command`"),
                    r#"add the program and its arguments: command = ["python3", "tool.py"]"#,
                );
            }
            return None;
        };
        let layers = Layers { own: &own, defaults: self.defaults };
        Some(Tool {
            spec: self.spec(name.get_ref(), command, &layers),
            command: command.to_vec(),
            env: layers.find(|section| section.env("env").cloned()),
            log_quota: layers
                .find(|section| section.whole("log_quota_mb"))
                .map_or(DEFAULT_QUOTA, |mb| mb << 20),
            grace: layers
                .find(|section| section.seconds("cancel_grace_s"))
                .unwrap_or(Duration::from_secs(5)),
        })
    }

    fn spec(&self, name: &str, command: &[String], layers: &Layers<'_>) -> ToolSpec {
        let own = layers.own;
        let description = own.text("description").map_or_else(|| runs(command), str::to_owned);
        let schema = own.json("input_schema").cloned().unwrap_or_else(any_object);
        let mut spec = ToolSpec::new(name, &description, schema);
        if let Some(title) = own.text("title") {
            spec.title = title.into();
        }
        if let Some(lane) = layers.find(|section| section.text("lane").map(LaneId::from)) {
            spec.lane = lane;
        }
        spec.is_idempotent = layers.find(|s| s.flag("idempotent")).unwrap_or_default();
        spec.hints = Hints {
            read_only: own.flag("read_only").unwrap_or_default(),
            destructive: own.flag("destructive").unwrap_or_default(),
            idempotent: spec.is_idempotent,
            open_world: true,
        };
        if let Some(limit) = layers.find(|section| section.seconds("timeout_s")) {
            spec.run_timeout = Some(limit);
        }
        if let Some(max) = self.max_runtime(spec.lane.as_str()) {
            spec.run_timeout = spec.run_timeout.map(|limit| limit.min(max));
        }
        let by_default = || self.defaults.and_then(|defaults| defaults.seconds("wait_s"));
        if let Some(wait) = own.seconds("wait_s").or(self.overrides.wait).or_else(by_default) {
            spec.wait = wait;
        }
        spec.supports_cancel = layers.find(|s| s.flag("supports_cancel")).unwrap_or(true);
        spec.needs.tasks = layers.find(|s| s.flag("needs_tasks")).unwrap_or_default();
        spec.on_exit = match layers.find(|section| section.text("on_exit")) {
            Some("stop") => OnExit::Stop,
            _ => OnExit::Detach,
        };
        spec.on_disconnect = match layers.find(|section| section.text("on_disconnect")) {
            Some("cancel") => OnDisconnect::Cancel,
            _ => OnDisconnect::Detach,
        };
        let retry = &mut spec.retry;
        let attempts = layers.find(|section| section.whole("max_attempts"));
        retry.max_attempts =
            attempts.and_then(|n| u32::try_from(n).ok()).unwrap_or(retry.max_attempts);
        retry.backoff = layers.find(|s| s.seconds("retry_backoff_s")).unwrap_or(retry.backoff);
        retry.on = layers.find(|s| s.kinds("retry_on").map(<[_]>::to_vec)).unwrap_or_default();
        if let Some(pointers) = layers.find(|section| section.list("sensitive")) {
            spec.sensitive = pointers.into();
        }
        spec
    }

    fn max_runtime(&self, lane: &str) -> Option<Duration> {
        let (_, config) = self.lanes.iter().find(|(id, _)| id.as_str() == lane)?;
        config.max_runtime
    }

    /// Reports a tool's own limit above its lane's.
    fn check_runtime(&self, own: &Section, problems: &mut Problems) {
        let layers = Layers { own, defaults: self.defaults };
        let lane = layers.find(|section| section.text("lane")).unwrap_or("cpu_standard");
        let (Some(limit), Some(max)) = (own.seconds("timeout_s"), self.max_runtime(lane)) else {
            return;
        };
        if limit > max {
            let (limit, max) = (limit.as_secs_f64(), max.as_secs_f64());
            problems.add(
                own.span_of("timeout_s").unwrap_or_default(),
                format!("`{}.timeout_s` is {limit}, above the {max} of its lane", own.path()),
                format!("write at most {max}, or raise max_runtime_s in [lanes.{lane}]"),
            );
        }
    }
}

/// A tool's own keys, then those of `[defaults]`.
struct Layers<'a> {
    own: &'a Section,
    defaults: Option<&'a Section>,
}

impl<'a> Layers<'a> {
    fn find<T>(&self, get: impl Fn(&'a Section) -> Option<T>) -> Option<T> {
        get(self.own).or_else(|| self.defaults.and_then(get))
    }
}

fn check_name(name: &Spanned<Cow<'_, str>>, problems: &mut Problems) {
    let word = name.get_ref().as_ref();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !(1..=MAX_TOOL_NAME).contains(&word.len()) || !word.chars().all(plain) {
        problems.add(
            name.span(),
            format!("`{word}` is no name of a tool"),
            format!("use 1 to {MAX_TOOL_NAME} letters, digits, `_`, `-` and `.`"),
        );
    } else if CANONICAL_TOOLS.contains(&word) {
        problems.add(
            name.span(),
            format!("`{word}` is the name of one of Raincheck's own tools"),
            "give the tool another name",
        );
    }
}

fn check_description(own: &Section, problems: &mut Problems) {
    let length = own.text("description").map_or(0, |text| text.chars().count());
    if length >= MAX_DESCRIPTION {
        problems.add(
            own.span_of("description").unwrap_or_default(),
            format!("`{}.description` has {length} characters", own.path()),
            format!("keep it under {MAX_DESCRIPTION}; a model reads it in every conversation"),
        );
    }
}

fn runs(command: &[String]) -> String {
    let program = command.first().map_or("a program", String::as_str);
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    format!("Runs {name}")
}

fn any_object() -> Json {
    Json::parse(r#"{"type":"object"}"#).unwrap_or_else(|_| Json::empty_object())
}
