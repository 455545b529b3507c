//! Where the tasks are.

use std::path::{Path, PathBuf};

use raincheck::core::ids::LaneId;
use raincheck::core::ids::TaskId;
use raincheck::core::lane;
use raincheck::core::scope::Scope;
use raincheck::core::store::{self, Found};
use raincheck::core::task::TaskRecord;
use raincheck::core::time::Timestamp;
use raincheck::runtime::View;
use raincheck_app::Failure;
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::config::Store;
use raincheck_app::paths::Paths;
use raincheck_store_sqlite::Reader;

use crate::{BINARY, THIS};

/// A store, and who asks.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) reader: Reader,
    pub(crate) scope: Scope,
    /// Where the servers of this user tell programs how to call them.
    pub(crate) endpoints: PathBuf,
    /// The lanes of the configuration.
    pub(crate) lanes: Vec<(LaneId, lane::Config)>,
    pub(crate) now: Timestamp,
}

impl Place {
    /// Finds the store that the flags and the configuration name, as a server would.
    pub(crate) fn find(
        shared: &Shared,
        serving: &Serving,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let file = shared.load(&THIS, serving)?;
        let paths = Paths::resolve(BINARY, shared)?;
        let Store::Path(path) = shared.store(&file, &paths.home) else {
            return Err(Failure::usage(
                "tasks in the memory of a server are seen by its client only",
                "ask the client to call list_tasks, or serve without --store memory",
            ));
        };
        let opened = Reader::open(&path).map_err(|error| unreadable(&error))?;
        let reader = opened.ok_or_else(|| {
            Failure::failed(
                format!("no server has kept tasks in `{}` yet", path.display()),
                "start a server, if none has run yet; else name its state folder or file: --state-dir DIR, or \
                 --store PATH",
            )
        })?;
        let endpoints = paths.endpoints();
        let scope = Scope::new(shared.scope.as_str());
        Ok(Self { path, reader, scope, endpoints, lanes: file.lanes, now })
    }

    /// Returns the folder with the logs and artifacts of the tasks.
    pub(crate) fn files(&self) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join("tasks")
    }

    /// Returns when the program of a task ended, if no server has recorded that yet.
    pub(crate) fn unrecorded_end(&self, record: &TaskRecord) -> Option<Timestamp> {
        if record.state.is_terminal() || record.attempt == 0 {
            return None;
        }
        raincheck::process::unrecorded_end(&self.files(), record.id(), record.attempt)
    }

    /// Reads a task as it was last committed.
    pub(crate) fn view(&self, id: TaskId) -> Result<View, Failure> {
        match self.reader.find(&self.scope, id).map_err(|error| unreadable(&error))? {
            Found::Task(record, payload) => Ok(View {
                progress: payload.progress.clone(),
                partial: payload.partial.clone(),
                inputs: payload.open(&record.asks).cloned().collect(),
                position: self.reader.position(&record).map_err(|error| unreadable(&error))?,
                payload: Some(payload),
                record,
                is_committed: true,
            }),
            Found::Tombstone(record) => Ok(View {
                record,
                payload: None,
                progress: None,
                partial: None,
                inputs: Vec::new(),
                position: None,
                is_committed: true,
            }),
            Found::Absent => Err(self.unknown(id)),
        }
    }

    /// Says that the scope has no such task.
    pub(crate) fn unknown(&self, id: TaskId) -> Failure {
        let scope = raincheck::core::text::escape(self.scope.as_str());
        Failure::failed(
            format!("the scope `{scope}` has no task {id}"),
            "find it: raincheck tasks list, or name its owner: --scope NAME",
        )
    }
}

/// Says why a store cannot be read.
pub(crate) fn unreadable(error: &store::Error) -> Failure {
    let next = error.hint.as_deref().unwrap_or("run: raincheck doctor");
    Failure::failed(error.message.to_string(), next)
}
