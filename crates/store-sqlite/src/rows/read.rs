//! Reading rows, a million at a time: what one shares with another is made once.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::FromSql;

use raincheck_core::cancel;
use raincheck_core::deadline::{Armed, Kind as Deadline};
use raincheck_core::ids::{Fence, LaneId, ToolName, WorkerId};
use raincheck_core::input::OpenInputs;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::task::{Task, TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;

use super::spec::{Spec, StoredTrace};
use super::{Statements, kind_of, known, task_id};
use crate::fault::Fault;

/// How many names are remembered: tools, lanes, scopes and workers are few, unless something is odd.
const MAX_WORDS: usize = 4096;

/// So many tasks are read by two threads, each with a connection of its own.
const SHARED: i64 = 20_000;

/// Below one in so many, what lives is read by its index and not with all that has ended.
const SPARSE: i64 = 4;

pub(super) const N_LIVE: &str =
    "SELECT count(*) FROM tasks INDEXED BY live_tasks WHERE ended_at IS NULL";

/// Reads, in the order of acceptance, every task that has not ended or whose attempt still holds a
/// place. `further` opens a further connection to the file.
pub(crate) fn live(
    connection: &Connection,
    statements: &Statements,
    further: impl FnOnce() -> Result<Connection, Fault> + Send,
) -> Result<Vec<TaskRecord>, Fault> {
    let ends = "SELECT min(seq), max(seq) FROM tasks";
    let ends: (Option<i64>, Option<i64>) =
        connection.query_row(ends, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(first), Some(last)) = ends else { return Ok(Vec::new()) };
    let n_live: i64 = connection.query_row(N_LIVE, [], |row| row.get(0))?;
    let mut rows = if n_live < (last - first) / SPARSE {
        gather(connection, &statements.live, &[])?
    } else if n_live < SHARED {
        gather(connection, &statements.scan, &[first, last])?
    } else {
        both_halves(connection, &statements.scan, first, last, further)?
    };
    rows.append(&mut gather(connection, &statements.holders, &[])?);
    rows.sort_by_key(|row| row.seq);
    Ok(rows)
}

fn both_halves(
    connection: &Connection,
    scan: &str,
    first: i64,
    last: i64,
    further: impl FnOnce() -> Result<Connection, Fault> + Send,
) -> Result<Vec<TaskRecord>, Fault> {
    let middle = first + (last - first) / 2;
    thread::scope(|threads| {
        let newer = thread::Builder::new()
            .spawn_scoped(threads, move || gather(&further()?, scan, &[middle + 1, last]))?;
        let older = gather(connection, scan, &[first, middle]);
        let newer = newer.join().map_err(|_| Fault::Damaged("a reader that panicked"))?;
        let (mut rows, mut newer) = (older?, newer?);
        rows.append(&mut newer);
        Ok(rows)
    })
}

/// Reads rows; those that this version cannot read are left where they are.
fn gather(connection: &Connection, sql: &str, ends: &[i64]) -> Result<Vec<TaskRecord>, Fault> {
    let mut statement = connection.prepare(sql)?;
    let mut found = statement.query(rusqlite::params_from_iter(ends))?;
    let mut common = Common::default();
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        rows.extend(known(read(&mut Columns { row, place: 0 }, &mut common))?);
    }
    Ok(rows)
}

/// Reads one row from its [`columns`](super::columns).
pub(crate) fn row(row: &rusqlite::Row<'_>) -> Result<TaskRecord, Fault> {
    read(&mut Columns { row, place: 0 }, &mut Common::default())
}

/// What rows have in common.
#[derive(Default)]
struct Common {
    words: HashSet<Arc<str>>,
    /// The last text of a specification, and what it says.
    spec: Option<(String, Spec)>,
}

impl Common {
    /// Returns the one copy of a name.
    fn word(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.words.get(word) {
            return Arc::clone(known);
        }
        let word: Arc<str> = word.into();
        if self.words.len() < MAX_WORDS {
            self.words.insert(Arc::clone(&word));
        }
        word
    }

    fn spec(&mut self, text: &str) -> Result<Spec, Fault> {
        match &self.spec {
            Some((known, spec)) if known == text => Ok(spec.clone()),
            Some(_) | None => {
                let spec = Spec::read(text)?;
                self.spec = Some((text.to_owned(), spec.clone()));
                Ok(spec)
            }
        }
    }
}

fn read(from: &mut Columns<'_, '_>, common: &mut Common) -> Result<TaskRecord, Fault> {
    let task = read_task(from, common)?;
    let state = State::from_word(from.text()?).ok_or(Fault::Broken("an unknown state"))?;
    let waiting = from.maybe_text()?;
    let (waiting, asks) = match (waiting, state) {
        (Some(keys), State::InputRequired) => (None, OpenInputs::read(keys)),
        (waiting, _) => (waiting.map(wait_reason).transpose()?, OpenInputs::default()),
    };
    let ready_left = Duration::from_nanos(from.count()?);
    let attempt = from.take()?;
    let fence = Fence::from_raw(from.count()?);
    let worker = from.maybe_text()?.map(|worker| WorkerId::new(common.word(worker)));
    let n_events = from.take()?;
    let has_reported = from.take()?;
    let has_stopped = from.take()?;
    let cancel_at = from.instant()?;
    let cancel_reason = from.maybe_text()?;
    let cancel = cancel_at.map(|at| cancel::Request { at, reason: cancel_reason.map(Into::into) });
    let failure = from.maybe_text()?.map(kind_of).transpose()?;
    let started_at = from.instant()?;
    let updated_at = Timestamp::from_millis(from.take()?);
    let heartbeat_at = from.instant()?;
    let ended_at = from.instant()?;
    let mut deadlines = Armed::default();
    for kind in Deadline::ALL {
        deadlines.set(kind, from.instant()?);
    }
    Ok(TaskRecord {
        task: Arc::new(task),
        seq: from.count()?,
        state,
        waiting,
        asks,
        ready_left,
        attempt,
        fence,
        worker,
        n_events,
        has_reported,
        has_stopped,
        cancel,
        failure,
        started_at,
        updated_at,
        heartbeat_at,
        ended_at,
        deadlines,
    })
}

fn read_task(from: &mut Columns<'_, '_>, common: &mut Common) -> Result<Task, Fault> {
    let id = task_id(from.take()?)?;
    let scope = Scope::new(common.word(from.text()?));
    let tool = ToolName::new(common.word(from.text()?));
    let lane = LaneId::new(common.word(from.text()?));
    let priority = from.take()?;
    let key = from.maybe_text()?.map(Into::into);
    let inputs_hash = u128::from_be_bytes(from.take()?);
    let spec = common.spec(from.text()?)?;
    let submitted_at = Timestamp::from_millis(from.take()?);
    Ok(Task {
        id,
        scope,
        tool,
        lane,
        priority,
        tags: spec.tags,
        key,
        inputs_hash,
        limits: spec.limits.into(),
        resources: spec.resources.into(),
        supports_cancel: spec.supports_cancel,
        is_idempotent: spec.is_idempotent,
        retry: spec.retry.try_into()?,
        trace: spec.trace.as_ref().and_then(StoredTrace::read),
        submitted_at,
    })
}

/// Takes the word as it is: which words there are is up to whoever held the lane.
fn wait_reason(word: &str) -> Result<WaitReason, Fault> {
    WaitReason::parse(word).ok_or(Fault::Broken("a reason to wait that is no word"))
}

/// Takes the columns of a row one after the other.
struct Columns<'r, 's> {
    row: &'r rusqlite::Row<'s>,
    place: usize,
}

impl<'r> Columns<'r, '_> {
    fn take<T: FromSql>(&mut self) -> Result<T, Fault> {
        self.place += 1;
        self.row.get(self.place - 1).map_err(|error| {
            if error.sqlite_error().is_some() {
                error.into()
            } else {
                Fault::Broken("a value of another type")
            }
        })
    }

    /// Takes a text where it lies.
    fn maybe_text(&mut self) -> Result<Option<&'r str>, Fault> {
        self.place += 1;
        let text = self.row.get_ref(self.place - 1)?.as_str_or_null();
        text.map_err(|_| Fault::Broken("a value that should be a text"))
    }

    fn text(&mut self) -> Result<&'r str, Fault> {
        self.maybe_text()?.ok_or(Fault::Broken("a text is missing"))
    }

    fn count(&mut self) -> Result<u64, Fault> {
        Ok(self.take::<i64>()?.cast_unsigned())
    }

    fn instant(&mut self) -> Result<Option<Timestamp>, Fault> {
        Ok(self.take::<Option<i64>>()?.map(Timestamp::from_millis))
    }
}
