//! The bridge as a tool set: where each call goes, and what it asks of an editor.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::task::{Limits, Outcome};
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Call, Executor, Route, TaskPlan, ToolSet};
use serde::Deserialize;

use crate::bridge::Unity;
use crate::desk::choices::Asker;
use crate::lanes;
use crate::order::{self, Wanted};
use crate::specs;
use crate::spelling::Key;
use crate::views;

/// Longer than anything runs.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Longer than it takes to commit a call: one that is made at the same time as a change may stand before it.
const COMMIT: Duration = Duration::from_secs(1);

#[async_trait]
impl ToolSet for Unity {
    fn specs(&self) -> Vec<ToolSpec> {
        specs::tools(self.settings()).into_iter().map(|tool| tool.spec).collect()
    }

    fn lanes(&self) -> Vec<(LaneId, lane::Config)> {
        lanes::fixed(self.settings().queue_limit)
    }

    async fn route(&self, call: &Call) -> Result<Route, Error> {
        let entry = order::entry(call.tool.as_str())?;
        let connection = call.connection.as_deref().unwrap_or_default();
        let asker = Asker { scope: &call.scope, connection: Some(connection) };
        match entry.name {
            specs::GET_EDITOR_STATE => {
                return Ok(Route::Answer(views::state(self, asker).await));
            }
            specs::LIST_UNITY_COMMANDS => {
                self.check_owner().await?;
                return views::commands(self, asker).map(Route::Answer);
            }
            specs::SELECT_EDITOR => {
                self.check_owner().await?;
                return self.select(asker, &call.inputs).await.map(Route::Answer);
            }
            _ => {}
        }
        let wanted = Wanted::of(entry, &call.inputs)?;
        if wanted.tool == specs::EXECUTE_CODE && !self.settings().enable_execute_code {
            return Err(Error::new(Kind::InvalidRequest, "`execute_code` is off").with_hint(
                "start the server with --enable-execute-code if its users may run any code",
            ));
        }
        self.check_owner().await?;
        let target = {
            let mut desk = self.desk();
            let target = desk.target(asker)?;
            desk.choices.note_call(call.id, connection);
            target
        };
        let plan = self.plan(&wanted, target.as_ref())?;
        self.ensure_lane(&plan.lane).await?;
        Ok(Route::Task(Box::new(plan)))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(self.clone())
    }

    async fn forget(&self, _ids: &[TaskId]) {}
}

impl Unity {
    async fn select(&self, asker: Asker<'_>, inputs: &Json) -> Result<Outcome, Error> {
        #[derive(Deserialize)]
        struct Chosen {
            instance: String,
        }
        let Ok(Chosen { instance }) = inputs.read() else {
            return Err(Error::new(Kind::InvalidParams, "`instance` must be a string"));
        };
        let key = {
            let mut desk = self.desk();
            desk.select(asker.scope, asker.connection.unwrap_or_default(), &instance)?
        };
        // The next server knows what its caller was told.
        self.keep_choices().await;
        views::selected(self, &key)
    }

    /// Places a call.
    fn plan(&self, wanted: &Wanted, target: Option<&Key>) -> Result<TaskPlan, Error> {
        let settings = self.settings();
        let mut desk = self.desk();
        let (mut run, most) = wanted.entry.run_timeout(settings);
        let mut is_compiling = false;
        let mut lane = LaneId::from(lanes::DEFAULT);
        let mut is_control = wanted.entry.is_control;
        if let Some(editor) = target.and_then(|key| desk.editors.get(key)) {
            let command = editor.commands.get(&wanted.tool);
            if wanted.is_call && command.is_none() && editor.reports_calls {
                return Err(unknown_command(&wanted.tool));
            }
            if let Some(command) = command.filter(|_| wanted.is_call) {
                let asked = command.default_timeout_ms.map(Duration::from_millis);
                let most =
                    command.max_timeout_ms.map_or(most, |ms| Duration::from_millis(ms).min(most));
                run = asked.unwrap_or(run).min(most);
                is_control = command.is_control;
            }
            is_compiling = editor.state.is_compiling();
            lane = editor.lane.clone();
        }
        if let Some(key) = target.filter(|key| !desk.editors.contains_key(*key)) {
            // It was there under an earlier server, and is expected back.
            lane = lanes::of_project(key);
        }
        if is_control {
            lane = LaneId::from(lanes::CONTROL);
        }
        desk.has_unplaced |= lane.as_str() == lanes::DEFAULT;
        let join = wanted.join_key(target.unwrap_or(&Key::default()));
        if join.as_ref().is_some_and(|join| desk.joinable(join).is_some()) {
            lane = LaneId::from(lanes::JOINED);
        } else if !is_control && wanted.may_change(join.as_ref()) {
            // What follows it may find something else than what went before it.
            desk.changes(target, &wanted.tool, self.engine()?.now() + COMMIT);
        }
        let ready = if is_compiling { settings.ready_compiling } else { settings.ready };
        let limits = Limits {
            ready,
            queue_timeout: settings.queue_timeout,
            // The executor keeps this limit: only it knows whether the editor may have the call.
            accept: Duration::MAX,
            run_timeout: Some(run),
            run_margin: settings.run_margin,
            // An editor cannot be killed: a call that it does not end goes on [LEASE-10].
            grace: NEVER,
            retention: settings.retention,
            ..Limits::default()
        };
        Ok(TaskPlan { lane, waiting: None, limits, retry: specs::delivered_again(), inputs: None })
    }
}

pub(crate) fn unknown_command(name: &str) -> Error {
    let name = crate::wire::name(name);
    Error::new(Kind::UnknownTool, format!("the editor has registered no command `{name}`"))
        .with_hint("call list_unity_commands for the commands there are")
}
