//! `raincheck tasks`: the tasks of a store for a person at a terminal, or a script.
//!
//! They are those of `raincheck serve` and of every wrapped server, unless a store is named.
//! Looking goes past the server, into the store's file, and works whether a server runs or not.
//! What changes a task or waits for one goes through the server that owns the store, if there is one.

mod cancel;
mod list;
mod logs;
pub(crate) mod owner;
pub(crate) mod place;
mod show;
pub(crate) mod words;

use std::future::Future;
use std::sync::Arc;

use clap::{Args, Subcommand};
use raincheck::core::ids::TaskId;
use raincheck::core::time::Timestamp;
use raincheck_app::Failure;
use raincheck_app::cli::{Serving, Shared};
use tokio::runtime;

use place::Place;

/// What to do with tasks.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Action {
    /// List tasks, newest first
    List(Listed),
    /// Show one task: state, progress, result, artifacts, history. Inputs are never shown
    Show {
        /// The task id: tsk_…, or the same as a UUID
        task_id: String,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Print what the program of a task wrote
    Logs {
        /// The task id: tsk_…, or the same as a UUID
        task_id: String,
        /// Go on until the task has ended; while it has not, a server must run
        #[arg(long, short)]
        follow: bool,
        /// Print one JSON object a line instead of text
        #[arg(long)]
        json: bool,
    },
    /// Ask a task to end
    Cancel {
        /// The task id: tsk_…, or the same as a UUID
        task_id: String,
        /// Why, for its history
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Which tasks to list.
#[derive(Args, Clone, Debug)]
pub(crate) struct Listed {
    /// Only tasks in this state, such as queued, running or failed; may repeat
    #[arg(long = "state", value_name = "STATE")]
    states: Vec<String>,
    /// Only tasks of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only tasks with this tag; may repeat
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Runs one of them.
pub(crate) fn run(
    shared: &Shared,
    serving: &Serving,
    now: Timestamp,
    action: &Action,
) -> Result<(), Failure> {
    let places = Place::all(shared, serving, now)?;
    let place = |id| Place::of(&places, id);
    match action {
        Action::List(listed) => list::run(&places, listed),
        Action::Show { task_id, json } => {
            let id = id(task_id)?;
            show::run(place(id)?, id, *json)
        }
        Action::Logs { task_id, follow, json } => {
            let id = id(task_id)?;
            wait_for(logs::run(place(id)?, id, *follow, *json))
        }
        Action::Cancel { task_id, reason, json } => {
            let id = id(task_id)?;
            let reason = reason.as_deref().map(Arc::from);
            wait_for(cancel::run(place(id)?, id, reason, *json))
        }
    }
}

fn id(text: &str) -> Result<TaskId, Failure> {
    text.parse().map_err(|_| {
        Failure::usage(
            format!("`{}` is no task id", raincheck::core::text::escape(text)),
            "find the id: raincheck tasks list",
        )
    })
}

pub(crate) fn wait_for(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::failed(format!("the command cannot start: {error}"), "try again")
    })?;
    runtime.block_on(work)
}
