//! Rows of tasks as columns.

mod read;
mod spec;

use std::sync::LazyLock;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Statement, ToSql, params};

use raincheck_core::deadline::Kind as Deadline;
use raincheck_core::error::Kind;
use raincheck_core::ids::TaskId;
use raincheck_core::scope::Scope;
use raincheck_core::task::{Task, TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;

use crate::fault::Fault;
use spec::Spec;

pub(crate) use read::{live, row as read};

/// The columns that are written once.
const FIXED: [&str; 9] =
    ["id", "scope", "tool", "lane", "priority", "key", "inputs_hash", "spec", "submitted_at"];

/// The columns that are written with every change.
const MOVING: [&str; 25] = [
    "state",
    "waiting",
    "ready_left",
    "attempt",
    "fence",
    "worker",
    "n_events",
    "has_reported",
    "has_stopped",
    "cancel_at",
    "cancel_reason",
    "failure",
    "started_at",
    "updated_at",
    "heartbeat_at",
    "ended_at",
    "backoff_at",
    "ready_at",
    "ttl_at",
    "accept_at",
    "run_at",
    "grace_at",
    "lease_at",
    "input_at",
    "retention_at",
];

/// Those of them that are empty until the task ends.
const OF_AN_END: [&str; 2] = ["ended_at", "retention_at"];

/// Every column, in the order in which [`read`] takes them.
pub(crate) fn columns() -> String {
    format!("{}, {}, seq", FIXED.join(", "), MOVING.join(", "))
}

/// Looks for a task by its place in the order of acceptance.
pub(crate) static BY_SEQ: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {} FROM tasks WHERE seq = ?", columns()));

/// Looks for a task by its identity.
pub(crate) static BY_ID: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {} FROM tasks WHERE id = ?", columns()));

/// Finds a task of a scope by its identity.
pub(crate) fn find(
    connection: &Connection,
    scope: &Scope,
    id: TaskId,
) -> Result<Option<TaskRecord>, Fault> {
    let row = by_id(connection, id)?;
    Ok(row.filter(|row| row.task.scope == *scope))
}

/// Finds a task by its identity, whoever owns it.
pub(crate) fn by_id(connection: &Connection, id: TaskId) -> Result<Option<TaskRecord>, Fault> {
    let mut statement = connection.prepare_cached(&BY_ID)?;
    let key = params![id.bits().to_be_bytes()];
    statement.query_row(key, |row| Ok(read(row))).optional()?.transpose()
}

/// Leaves those tasks that have no row, whether or not this version can read it.
///
/// One that is older than every row may be of a store that was here before, and is left out.
pub(crate) fn unknown(connection: &Connection, mut ids: Vec<TaskId>) -> Result<Vec<TaskId>, Fault> {
    let first =
        connection.query_row("SELECT id FROM tasks ORDER BY seq LIMIT 1", [], |row| row.get(0));
    let Some(first) = first.optional()? else { return Ok(Vec::new()) };
    let made_at = |id: TaskId| id.bits() >> 80;
    let first = made_at(task_id(first)?);
    ids.retain(|id| made_at(*id) >= first);
    let mut statement = connection.prepare_cached("SELECT 1 FROM tasks WHERE id = ?")?;
    let mut found = Vec::with_capacity(ids.len());
    for id in &ids {
        found.push(statement.exists([id.bits().to_be_bytes()])?);
    }
    let mut found = found.into_iter();
    ids.retain(|_| found.next() == Some(false));
    Ok(ids)
}

/// Sets a row apart that this version cannot read: it stays on the disk, for a version that can.
pub(crate) fn known(row: Result<TaskRecord, Fault>) -> Result<Option<TaskRecord>, Fault> {
    match row {
        Ok(row) => Ok(Some(row)),
        Err(Fault::Broken(why)) => {
            tracing::warn!(
                why,
                "the row of a task cannot be read by this version and is set apart"
            );
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// The statements that keep rows.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) insert: String,
    pub(crate) update: String,
    /// The same of a task that goes on: no index of what lives or has ended is touched.
    pub(crate) advance: String,
    /// What has not ended, between two places in the order of acceptance.
    pub(crate) scan: String,
    /// What has not ended, where that is little of the file.
    pub(crate) live: String,
    /// What has ended and still holds a place of a lane.
    pub(crate) holders: String,
}

impl Statements {
    pub(crate) fn new() -> Self {
        let (fixed, moving) = (FIXED.join(", "), MOVING.join(", "));
        let places = vec!["?"; FIXED.len() + MOVING.len() + 1].join(", ");
        let sets = MOVING.map(|column| format!("{column} = ?")).join(", ");
        let advances: Vec<_> = (1..)
            .zip(MOVING)
            .filter(|(_, column)| !OF_AN_END.contains(column))
            .map(|(place, column)| format!("{column} = ?{place}"))
            .collect();
        let (advances, seq) = (advances.join(", "), MOVING.len() + 1);
        Self {
            insert: format!("INSERT INTO tasks ({fixed}, {moving}, seq) VALUES ({places})"),
            update: format!("UPDATE tasks SET {sets} WHERE seq = ?"),
            advance: format!("UPDATE tasks SET {advances} WHERE seq = ?{seq}"),
            scan: format!(
                "SELECT {} FROM tasks NOT INDEXED WHERE seq BETWEEN ? AND ? AND ended_at IS NULL \
                 ORDER BY seq",
                columns()
            ),
            live: format!(
                "SELECT {} FROM tasks INDEXED BY live_tasks WHERE ended_at IS NULL",
                columns()
            ),
            holders: format!(
                "SELECT {} FROM tasks WHERE id IN (SELECT task FROM slots) AND ended_at IS NOT NULL",
                columns()
            ),
        }
    }
}

/// Adds a task.
pub(crate) fn insert(statement: &mut Statement<'_>, row: &TaskRecord) -> Result<(), Fault> {
    let mut bind = Bind { statement, place: 0 };
    put_task(&mut bind, &row.task)?;
    put_standing(&mut bind, row)?;
    bind.run()
}

/// Writes where a task stands now.
pub(crate) fn update(statement: &mut Statement<'_>, row: &TaskRecord) -> Result<(), Fault> {
    let mut bind = Bind { statement, place: 0 };
    put_standing(&mut bind, row)?;
    bind.run()
}

fn put_task(bind: &mut Bind<'_, '_>, task: &Task) -> Result<(), Fault> {
    bind.put(task.id.bits().to_be_bytes())?;
    bind.put(task.scope.as_str())?;
    bind.put(task.tool.as_str())?;
    bind.put(task.lane.as_str())?;
    bind.put(task.priority)?;
    bind.put(task.key.as_deref())?;
    bind.put(task.inputs_hash.to_be_bytes())?;
    bind.put(Spec::text(task)?)?;
    bind.put(task.submitted_at.as_millis())
}

fn put_standing(bind: &mut Bind<'_, '_>, row: &TaskRecord) -> Result<(), Fault> {
    bind.put(row.state.as_str())?;
    // One is for a task that waits, the other for one that asks.
    bind.put(row.asks.as_str().or(row.waiting.as_ref().map(WaitReason::as_str)))?;
    bind.put(nanos(row.ready_left))?;
    bind.put(row.attempt)?;
    bind.put(row.fence.raw().cast_signed())?;
    bind.put(row.worker.as_ref().map(|worker| worker.as_str()))?;
    bind.put(row.n_events)?;
    bind.put(row.has_reported)?;
    bind.put(row.has_stopped)?;
    bind.put(millis(row.cancel.as_ref().map(|cancel| cancel.at)))?;
    bind.put(row.cancel.as_ref().and_then(|cancel| cancel.reason.as_deref()))?;
    bind.put(row.failure.map(Kind::as_str))?;
    bind.put(millis(row.started_at))?;
    bind.put(row.updated_at.as_millis())?;
    bind.put(millis(row.heartbeat_at))?;
    bind.put(millis(row.ended_at))?;
    for kind in Deadline::ALL {
        bind.put(millis(row.deadlines.get(kind)))?;
    }
    bind.put(row.seq.cast_signed())
}

/// Reads an identity from its 16 bytes.
pub(crate) fn task_id(bytes: [u8; 16]) -> Result<TaskId, Fault> {
    TaskId::from_bits(u128::from_be_bytes(bytes))
        .ok_or(Fault::Broken("an identity that is not laid out as one"))
}

/// Finds the kind of error a word stands for.
pub(crate) fn kind_of(word: &str) -> Result<Kind, Fault> {
    Kind::from_word(word).ok_or(Fault::Broken("an unknown kind of error"))
}

fn millis(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millis)
}

/// Whole nanoseconds; a span beyond 292 years is written as that.
fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// Fills the places of a statement one after the other.
struct Bind<'s, 'c> {
    statement: &'s mut Statement<'c>,
    place: usize,
}

impl Bind<'_, '_> {
    fn put(&mut self, value: impl ToSql) -> Result<(), Fault> {
        self.place += 1;
        Ok(self.statement.raw_bind_parameter(self.place, value)?)
    }

    fn run(self) -> Result<(), Fault> {
        let n = self.statement.raw_execute()?;
        if n == 1 { Ok(()) } else { Err(Fault::Damaged("the row of a task is missing")) }
    }
}
