//! Everything of a task that is not its row, read from the disk.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Row};

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::{ArtifactId, Fence, TaskId};
use raincheck_core::input::Input;
use raincheck_core::lifecycle::{Event, State};
use raincheck_core::progress::Progress;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Found, TaskStatus};
use raincheck_core::task::{
    Artifact, AttemptSummary, Cause, Metrics, Outcome, TaskDetails, TaskEvent, TaskRecord,
};
use raincheck_core::time::Timestamp;

use crate::fault::Fault;
use crate::files::Files;
use crate::outcome::{self, json};
use crate::rows;

pub(crate) const INPUTS: &str = "SELECT body, file FROM inputs WHERE seq = ?";
pub(crate) const RESULTS: &str = "SELECT outcome, outcome_file, late, late_file, progress, partial \
     FROM results WHERE seq = ?";
pub(crate) const QUESTIONS: &str =
    "SELECT key, request, response FROM questions WHERE seq = ? ORDER BY n";
const PROGRESS: &str = "SELECT progress FROM results WHERE seq = ?";
pub(crate) const STATUS: &str = "SELECT progress, partial FROM results WHERE seq = ?";
pub(crate) const EVENTS: &str = "SELECT n, at, attempt, fence, from_state, to_state, cause, note \
     FROM task_events WHERE seq = ? ORDER BY n";
pub(crate) const ATTEMPTS: &str = "SELECT attempt, fence, worker, started_at, ended_at, ended, error, metrics \
     FROM attempts WHERE seq = ? ORDER BY fence";
pub(crate) const ARTIFACTS: &str =
    "SELECT id, name, kind, size, sha256, path FROM artifacts WHERE seq = ? ORDER BY n";
pub(crate) const ARTIFACT: &str = "SELECT a.id, a.name, a.kind, a.size, a.sha256, a.path, t.id FROM artifacts a \
     JOIN tasks t ON t.seq = a.seq WHERE a.id = ? AND t.state <> 'expired'";

/// Finds an artifact by its name, and the task that it belongs to.
pub(crate) fn find_artifact(
    connection: &Connection,
    id: &ArtifactId,
) -> Result<Option<(TaskId, Artifact)>, Fault> {
    let mut statement = connection.prepare_cached(ARTIFACT)?;
    let mut found = statement.query([id.as_str()])?;
    let Some(row) = found.next()? else { return Ok(None) };
    Ok(Some((rows::task_id(row.get(6)?)?, artifact(row)?)))
}

/// Reads what a task was given.
pub(crate) fn inputs(
    connection: &Connection,
    files: &Files,
    seq: u64,
) -> Result<Option<Json>, Fault> {
    let mut statement = connection.prepare_cached(INPUTS)?;
    let stored = statement
        .query_row([seq.cast_signed()], |row| {
            Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, Option<String>>(1)?))
        })
        .optional()?;
    let Some((body, file)) = stored else { return Ok(None) };
    let Some(bytes) = bytes_of(files, body, file)? else {
        return Err(Fault::Broken("a task without inputs"));
    };
    let text = String::from_utf8(bytes).map_err(|_| Fault::Broken("inputs that are not UTF-8"))?;
    json(&text).map(Some)
}

/// Finds a task of a scope, and everything of it.
pub(crate) fn find(
    connection: &Connection,
    files: &Files,
    scope: &Scope,
    id: TaskId,
) -> Result<Option<Found>, Fault> {
    // One view of the file for the row and what belongs to it.
    let view = connection.unchecked_transaction()?;
    let Some(record) = rows::find(&view, scope, id)? else { return Ok(None) };
    if record.state == State::Expired {
        return Ok(Some(Found::Tombstone(record)));
    }
    let details = payload_within(&view, files, record.seq)?;
    let details = details.ok_or(Fault::Broken("a task without inputs"))?;
    Ok(Some(Found::Task(record, Arc::new(details))))
}

/// Adds to a row what is shown beside it while it runs.
pub(crate) fn status(connection: &Connection, record: TaskRecord) -> Result<TaskStatus, Fault> {
    let mut statement = connection.prepare_cached(STATUS)?;
    let key = [record.seq.cast_signed()];
    let texts = statement.query_row(key, |row| {
        Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?))
    });
    let (progress, partial) = texts.optional()?.unwrap_or_default();
    Ok(TaskStatus {
        record,
        progress: progress.as_deref().map(self::progress).transpose()?,
        partial: partial.as_deref().map(json).transpose()?,
    })
}

/// Reads what a task was given, or what is wrong with this task alone.
pub(crate) fn inputs_of(
    connection: &Connection,
    files: &Files,
    seq: u64,
) -> Result<Result<Json, Fault>, Fault> {
    match inputs(connection, files, seq) {
        Ok(Some(inputs)) => Ok(Ok(inputs)),
        Ok(None) => Ok(Err(Fault::Broken("a leased task without inputs"))),
        Err(fault) if fault.is_of_one_task() => Ok(Err(fault)),
        Err(fault) => Err(fault),
    }
}

/// The failure of a task whose inputs are gone.
pub(crate) fn inputs_lost(guarantee: Guarantee) -> Error {
    let message = "what the task was given is missing from the store";
    let mut error = Error::new(Kind::StorageUnavailable, message).with_guarantee(guarantee);
    error.hint = Some("submit it again; `doctor` names what is missing from the store".into());
    error
}

/// Reads the payload of a task; `None` once its retention is over.
pub(crate) fn payload(
    connection: &Connection,
    files: &Files,
    seq: u64,
) -> Result<Option<TaskDetails>, Fault> {
    // One view of the file for all of it.
    let view = connection.unchecked_transaction()?;
    payload_within(&view, files, seq)
}

/// Reads the payload of a task within the caller's transaction.
pub(crate) fn payload_within(
    view: &Connection,
    files: &Files,
    seq: u64,
) -> Result<Option<TaskDetails>, Fault> {
    let Some(inputs) = inputs(view, files, seq)? else { return Ok(None) };
    let mut payload = TaskDetails {
        inputs,
        outcome: None,
        late: None,
        progress: None,
        partial: None,
        artifacts: list(view, ARTIFACTS, seq, artifact)?,
        attempts: list(view, ATTEMPTS, seq, attempt)?,
        asked: list(view, QUESTIONS, seq, question)?,
        events: events(view, seq)?,
    };
    results(view, files, seq, &mut payload)?;
    Ok(Some(payload))
}

/// Reads the history of a task; empty once its retention is over.
pub(crate) fn events(connection: &Connection, seq: u64) -> Result<Vec<TaskEvent>, Fault> {
    list(connection, EVENTS, seq, event)
}

fn results(
    connection: &Connection,
    files: &Files,
    seq: u64,
    payload: &mut TaskDetails,
) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(RESULTS)?;
    let mut rows = statement.query([seq.cast_signed()])?;
    let Some(row) = rows.next()? else { return Ok(()) };
    payload.outcome = outcome_of(files, row.get(0)?, row.get(1)?)?;
    payload.late = outcome_of(files, row.get(2)?, row.get(3)?)?;
    payload.progress = match row.get::<_, Option<String>>(4)? {
        Some(text) => Some(progress(&text)?),
        None => None,
    };
    payload.partial = match row.get::<_, Option<String>>(5)? {
        Some(text) => Some(json(&text)?),
        None => None,
    };
    Ok(())
}

fn outcome_of(
    files: &Files,
    body: Option<Vec<u8>>,
    file: Option<String>,
) -> Result<Option<Outcome>, Fault> {
    match bytes_of(files, body, file)? {
        Some(bytes) => outcome::decode(&bytes).map(Some),
        None => Ok(None),
    }
}

fn bytes_of(
    files: &Files,
    body: Option<Vec<u8>>,
    file: Option<String>,
) -> Result<Option<Vec<u8>>, Fault> {
    match (body, file) {
        (Some(body), _) => Ok(Some(body)),
        (None, Some(name)) => Ok(Some(files.read(&name)?)),
        (None, None) => Ok(None),
    }
}

fn list<T>(
    connection: &Connection,
    sql: &str,
    seq: u64,
    read: fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([seq.cast_signed()])?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.push(read(row)?);
    }
    Ok(items)
}

fn event(row: &Row<'_>) -> Result<TaskEvent, Fault> {
    let from: Option<String> = row.get(4)?;
    let note: Option<String> = row.get(7)?;
    Ok(TaskEvent {
        seq: row.get(0)?,
        at: Timestamp::from_millis(row.get(1)?),
        attempt: row.get(2)?,
        fence: fence(row.get(3)?),
        from: from.as_deref().map(state).transpose()?,
        to: state(&row.get::<_, String>(5)?)?,
        cause: cause(&row.get::<_, String>(6)?)?,
        note: note.map(Into::into),
    })
}

fn attempt(row: &Row<'_>) -> Result<AttemptSummary, Fault> {
    let worker: Option<String> = row.get(2)?;
    let started_at: Option<i64> = row.get(3)?;
    let ended: String = row.get(5)?;
    let error: Option<String> = row.get(6)?;
    let metrics: Option<String> = row.get(7)?;
    Ok(AttemptSummary {
        attempt: row.get(0)?,
        fence: fence(row.get(1)?),
        worker_id: worker.map(Into::into),
        started_at: started_at.map(Timestamp::from_millis),
        ended_at: Timestamp::from_millis(row.get(4)?),
        ended: if ended == "retried" { "retried" } else { state(&ended)?.as_str() },
        error: error.as_deref().map(outcome::read_error).transpose()?,
        metrics: metrics.as_deref().map(read_metrics).transpose()?,
    })
}

fn question(row: &Row<'_>) -> Result<Input, Fault> {
    let response: Option<String> = row.get(2)?;
    Ok(Input {
        key: row.get::<_, String>(0)?.into(),
        request: json(&row.get::<_, String>(1)?)?,
        response: response.as_deref().map(json).transpose()?,
    })
}

fn artifact(row: &Row<'_>) -> Result<Artifact, Fault> {
    let text = |place| row.get::<_, String>(place);
    Ok(Artifact {
        id: text(0)?.into(),
        name: text(1)?.into(),
        kind: text(2)?.into(),
        size: row.get::<_, i64>(3)?.cast_unsigned(),
        sha256: text(4)?.into(),
        path: text(5)?.into(),
    })
}

const fn fence(raw: i64) -> Fence {
    Fence::from_raw(raw.cast_unsigned())
}

fn state(word: &str) -> Result<State, Fault> {
    State::from_word(word).ok_or(Fault::Broken("an unknown state"))
}

fn cause(word: &str) -> Result<Cause, Fault> {
    match word {
        "received" => Ok(Cause::Received),
        "late_result" => Ok(Cause::LateResult),
        // Words of files of the first three versions.
        "ttl_due" => Ok(Cause::Moved(Event::QueueTimeoutDue)),
        "run_due" => Ok(Cause::Moved(Event::RunTimeoutDue)),
        _ => Event::from_word(word).map(Cause::Moved).ok_or(Fault::Broken("an unknown cause")),
    }
}

/// Reads the last progress of a task alone.
pub(crate) fn progress_of(connection: &Connection, seq: u64) -> Result<Option<Progress>, Fault> {
    let mut statement = connection.prepare_cached(PROGRESS)?;
    let text = statement.query_row([seq.cast_signed()], |row| row.get::<_, Option<String>>(0));
    text.optional()?.flatten().map(|text| progress(&text)).transpose()
}

fn progress(text: &str) -> Result<Progress, Fault> {
    serde_json::from_str(text).map_err(|_| Fault::Broken("a progress that does not parse"))
}

/// What an attempt used, as it is kept.
#[derive(serde::Serialize, serde::Deserialize)]
struct StoredMetrics {
    wall_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    cpu_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    peak_memory_bytes: Option<u64>,
}

/// Writes what an attempt used.
pub(crate) fn metrics_text(metrics: Metrics) -> String {
    let Metrics { wall_ms, cpu_ms, peak_memory_bytes } = metrics;
    // Three numbers can always be written.
    serde_json::to_string(&StoredMetrics { wall_ms, cpu_ms, peak_memory_bytes }).unwrap_or_default()
}

fn read_metrics(text: &str) -> Result<Metrics, Fault> {
    let stored: StoredMetrics = serde_json::from_str(text)
        .map_err(|_| Fault::Broken("the metrics of an attempt that do not parse"))?;
    let StoredMetrics { wall_ms, cpu_ms, peak_memory_bytes } = stored;
    Ok(Metrics { wall_ms, cpu_ms, peak_memory_bytes })
}
