//! What is answered from memory: the state of editors, and the commands they have [QUEUE-4].

use std::sync::Arc;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Kind};
use raincheck_core::task::Outcome;
use serde::Serialize;

use crate::bridge::Unity;
use crate::desk::choices::Asker;
use crate::desk::editor::{Editor, Named};
use crate::specs::ExecutionMode;
use crate::spelling::Key;

/// Said by a server that no editor can find.
pub const NO_PROJECT: &str = "This server has no Unity project, so no editor can find it: start it with --project DIR, \
                              or in the folder of the project.";

fn told(value: &impl Serialize) -> Result<Outcome, Error> {
    let json =
        Json::of(value).map_err(|error| Error::new(Kind::InvalidResponse, error.to_string()))?;
    Ok(Outcome::Succeeded(vec![Content::Json(json)]))
}

/// An editor, as callers see it.
#[derive(Serialize)]
struct Shown {
    instance: Arc<str>,
    project_name: Arc<str>,
    project_path: Arc<str>,
    unity_version: Arc<str>,
    package_version: Arc<str>,
    backend: &'static str,
    state: &'static str,
    connected: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    focused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    main_thread_lag_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dialog: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u64>,
    selected: bool,
}

#[derive(Serialize)]
struct State {
    connected: bool,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_because: Option<String>,
    editors: Vec<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Says which editors there are and what they do. It never waits and is never refused.
pub(crate) async fn state(bridge: &Unity, asker: Asker<'_>) -> Outcome {
    let owner = bridge.check_owner().await.err();
    let desk = bridge.desk();
    let target = desk.target(asker);
    let selected = target.as_ref().ok().and_then(Option::as_ref);
    let editors: Vec<Shown> = desk
        .editors
        .iter()
        .map(|(key, editor)| Shown {
            instance: Arc::clone(&editor.instance),
            project_name: Arc::clone(&editor.name),
            project_path: Arc::clone(&editor.project_path),
            unity_version: Arc::clone(&editor.unity_version),
            package_version: Arc::clone(&editor.plugin_version),
            backend: editor.backend,
            state: editor.state.as_str(),
            connected: editor.link.is_some(),
            focused: editor.focused,
            main_thread_lag_ms: editor.lag_ms,
            dialog: editor.dialog.clone(),
            pid: editor.pid,
            selected: selected == Some(key),
        })
        .collect();
    let chosen = selected.and_then(|key| desk.editors.get(key));
    let is_there = chosen.is_some_and(|editor| editor.link.is_some());
    let note = match (&owner, &target) {
        (Some(error), _) | (None, Err(error)) => Some(error.message.to_string()),
        (None, Ok(None)) if bridge.settings().can_be_found() => Some(
            "no Unity Editor is connected; open the project with the package of unity-mcp install"
                .to_owned(),
        ),
        (None, Ok(None)) => Some(NO_PROJECT.to_owned()),
        (None, Ok(Some(_))) if chosen.is_none() => {
            Some("the editor that was selected has not come back yet".to_owned())
        }
        (None, Ok(Some(_))) => None,
    };
    let state = State {
        connected: is_there,
        state: chosen.filter(|_| is_there).map_or("disconnected", |editor| editor.state.as_str()),
        waiting_because: chosen.and_then(|it| it.hold()).map(|hold| hold.as_str().to_owned()),
        editors,
        note,
    };
    drop(desk);
    told(&state).unwrap_or_else(Outcome::Failed)
}

/// A command of an editor, as callers see it.
#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    execution_mode: ExecutionMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    supports_cancel: Option<bool>,
    read_only: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Json>,
}

#[derive(Serialize)]
struct Commands<'a> {
    connected: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'a str>,
    commands: Vec<Listed<'a>>,
}

/// Lists the commands of the editor that a caller's calls go to.
pub(crate) fn commands(bridge: &Unity, asker: Asker<'_>) -> Result<Outcome, Error> {
    let desk = bridge.desk();
    let target = desk.target(asker)?;
    let editor = target.as_ref().and_then(|key| desk.editors.get(key));
    let listed = editor.map_or_else(Vec::new, |editor| {
        let list = |(name, command)| {
            let (name, command): (&String, &crate::wire::inbound::Command) = (name, command);
            Listed {
                name,
                execution_mode: if command.is_job {
                    ExecutionMode::Job
                } else {
                    ExecutionMode::Sync
                },
                supports_cancel: command.can_cancel,
                read_only: command.read_only,
                description: &command.description,
                params: command.params.as_ref(),
            }
        };
        editor.commands.iter().map(list).collect()
    });
    told(&Commands {
        connected: editor.is_some_and(|editor| editor.link.is_some()),
        instance: editor.map(|editor| &*editor.instance),
        commands: listed,
    })
}

/// Says which editor was selected.
pub(crate) fn selected(bridge: &Unity, key: &Key) -> Result<Outcome, Error> {
    #[derive(Serialize)]
    struct Selected {
        selected: Arc<str>,
        project_name: Arc<str>,
        project_path: Arc<str>,
    }
    let named = bridge.desk().editors.get(key).map(Editor::named);
    let Some(Named { instance, name, project_path }) = named else {
        return Err(Error::new(Kind::PeerNotReady, "the editor has just gone"));
    };
    told(&Selected { selected: instance, project_name: name, project_path })
}
