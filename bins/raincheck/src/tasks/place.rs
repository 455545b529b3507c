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
use raincheck_app::config::{File, Store};
use raincheck_app::paths::Paths;
use raincheck_app::terminal::complain;
use raincheck_store_sqlite::Reader;

use crate::servers::{self, Kept};
use crate::{BINARY, THIS};

/// A store, and who asks.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) reader: Reader,
    /// What the server is called beside others.
    pub(crate) server: String,
    pub(crate) scope: Scope,
    /// Where the servers of this user tell programs how to call them.
    pub(crate) endpoints: PathBuf,
    /// The lanes of the configuration.
    pub(crate) lanes: Vec<(LaneId, lane::Config)>,
    pub(crate) now: Timestamp,
}

impl Place {
    /// Finds the stores that flags and configuration lead to; there is one at least. One that cannot be read is
    /// told, and costs no other.
    pub(crate) fn all(
        shared: &Shared,
        serving: &Serving,
        now: Timestamp,
    ) -> Result<Vec<Self>, Failure> {
        let (mut places, mut broken) = (Vec::new(), Vec::new());
        let all = servers::all(shared, serving)?;
        for kept in &all {
            match Self::open(kept, serving, now) {
                Ok(place) => places.extend(place),
                Err(failure) => broken.push(failure),
            }
        }
        if places.is_empty() {
            return Err(match broken.into_iter().next() {
                Some(failure) => failure,
                None => nothing(shared, serving)?,
            });
        }
        for failure in broken {
            complain(&format!("note: {}\n", failure.message));
        }
        Ok(places)
    }

    /// Opens the store of a server, as the server would; `None` where it has kept nothing.
    pub(crate) fn open(
        kept: &Kept,
        serving: &Serving,
        now: Timestamp,
    ) -> Result<Option<Self>, Failure> {
        let shared = &kept.shared;
        let (file, paths, path) = place_of(shared, serving)?;
        let Some(reader) = Reader::open(&path).map_err(|error| unreadable(&error))? else {
            return Ok(None);
        };
        let endpoints = paths.endpoints();
        let scope = Scope::new(shared.scope.as_str());
        let server = kept.name().to_owned();
        Ok(Some(Self { path, reader, server, scope, endpoints, lanes: file.lanes, now }))
    }

    /// Returns the place that has a task.
    pub(crate) fn of(places: &[Self], id: TaskId) -> Result<&Self, Failure> {
        let mut first = None;
        for place in places {
            match place.reader.find(&place.scope, id).map_err(|error| unreadable(&error)) {
                Ok(Found::Absent) => first = first.or_else(|| Some(place.unknown(id))),
                Ok(Found::Task(..) | Found::Tombstone(_)) => return Ok(place),
                Err(failure) => first = first.or(Some(failure)),
            }
        }
        Err(first.unwrap_or_else(|| Failure::failed("there is no store", "run: raincheck status")))
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

/// Returns where the store of a server is, and what else is to be known of it.
fn place_of(shared: &Shared, serving: &Serving) -> Result<(File, Paths, PathBuf), Failure> {
    let file = shared.load(&THIS, serving)?;
    let paths = Paths::resolve(BINARY, shared)?;
    match shared.store(&file, &paths.home) {
        Store::Path(path) => Ok((file, paths, path)),
        Store::Memory => Err(Failure::usage(
            "tasks in the memory of a server are seen by its client only",
            "ask the client to call list_tasks, or serve without --store memory",
        )),
    }
}

/// Says that no server has kept a task.
fn nothing(shared: &Shared, serving: &Serving) -> Result<Failure, Failure> {
    let (.., path) = place_of(shared, serving)?;
    Ok(Failure::failed(
        format!("no server has kept tasks in `{}` yet", path.display()),
        "start a server, if none has run yet; else name its state folder or file: --state-dir DIR, or \
         --store PATH",
    ))
}

/// Says why a store cannot be read.
pub(crate) fn unreadable(error: &store::Error) -> Failure {
    let next = error.hint.as_deref().unwrap_or("run: raincheck doctor");
    Failure::failed(error.message.to_string(), next)
}
