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
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::task::{Task, TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;

use super::spec::Spec;
use super::{kind_of, task_id};
use crate::fault::Fault;

/// How many names are remembered: tools, lanes, scopes and workers are few, unless something is odd.
const MAX_WORDS: usize = 4096;

/// So many tasks are read by two threads, each with a connection of its own.
const SHARED: i64 = 20_000;

/// Reads every task in the order of acceptance. `further` opens a further connection to the file.
pub(crate) fn all(
    connection: &Connection,
    select: &str,
    further: impl FnOnce() -> Result<Connection, Fault> + Send,
) -> Result<Vec<TaskRecord>, Fault> {
    let ends = "SELECT min(seq), max(seq) FROM tasks";
    let ends: (Option<i64>, Option<i64>) =
        connection.query_row(ends, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(first), Some(last)) = ends else { return Ok(Vec::new()) };
    if last - first < SHARED {
        return between(connection, select, first, last);
    }
    let middle = first + (last - first) / 2;
    thread::scope(|threads| {
        let newer = thread::Builder::new()
            .spawn_scoped(threads, move || between(&further()?, select, middle + 1, last))?;
        let older = between(connection, select, first, middle);
        let newer = newer.join().map_err(|_| Fault::Broken("a reader that panicked"))?;
        let (mut rows, mut newer) = (older?, newer?);
        rows.append(&mut newer);
        Ok(rows)
    })
}

fn between(
    connection: &Connection,
    select: &str,
    first: i64,
    last: i64,
) -> Result<Vec<TaskRecord>, Fault> {
    let mut statement = connection.prepare(select)?;
    let mut found = statement.query([first, last])?;
    let mut common = Common::default();
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        rows.push(read(&mut Columns { row, place: 0 }, &mut common)?);
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
    let waiting = from.maybe_text()?.map(wait_reason).transpose()?;
    let ready_left = Duration::from_nanos(from.count()?);
    let attempt = from.take()?;
    let fence = Fence::from_raw(from.count()?);
    let worker = from.maybe_text()?.map(|worker| WorkerId::new(common.word(worker)));
    let n_events = from.take()?;
    let has_reported = from.take()?;
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
        ready_left,
        attempt,
        fence,
        worker,
        n_events,
        has_reported,
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
        submitted_at,
    })
}

fn wait_reason(word: &str) -> Result<WaitReason, Fault> {
    const ALL: [WaitReason; 8] = [
        WaitReason::Disconnected,
        WaitReason::Compiling,
        WaitReason::Reloading,
        WaitReason::Busy,
        WaitReason::WaitingForBrowser,
        WaitReason::TabGone,
        WaitReason::OwnedElsewhere,
        WaitReason::RetryBackoff,
    ];
    let known = ALL.into_iter().find(|reason| reason.as_str() == word);
    known.ok_or(Fault::Broken("an unknown reason to wait"))
}

/// Takes the columns of a row one after the other.
struct Columns<'r, 's> {
    row: &'r rusqlite::Row<'s>,
    place: usize,
}

impl<'r> Columns<'r, '_> {
    fn take<T: FromSql>(&mut self) -> Result<T, Fault> {
        self.place += 1;
        Ok(self.row.get(self.place - 1)?)
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
