//! One batch as one transaction.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{
    Connection, OptionalExtension as _, Statement, Transaction, TransactionBehavior, params,
};

use raincheck_core::input::{InputChange, InputRequest};
use raincheck_core::slot::Slot;
use raincheck_core::task::{Artifact, AttemptSummary, TaskEvent, TaskRecord};

use crate::batch::{Batch, Results, Standing};
use crate::fault::Fault;
use crate::files::Stored;
use crate::log::Log;
use crate::outcome::error_text;
use crate::payload::metrics_text;
use crate::rows::{self, Statements};

/// Attempts that stay listed; older ones of a task that is retried for ever are dropped.
const MAX_ATTEMPTS: u32 = 100;

const INPUTS: &str = "INSERT INTO inputs (seq, body, file) VALUES (?, ?, ?)";
const RESULTS: &str = "INSERT INTO results \
    (seq, outcome, outcome_file, late, late_file, progress, partial) VALUES (?, ?, ?, ?, ?, ?, ?) \
    ON CONFLICT (seq) DO UPDATE SET \
    outcome = coalesce(excluded.outcome, outcome), \
    outcome_file = coalesce(excluded.outcome_file, outcome_file), \
    late = coalesce(late, excluded.late), late_file = coalesce(late_file, excluded.late_file), \
    progress = coalesce(excluded.progress, progress), \
    partial = coalesce(excluded.partial, partial)";
const EVENT: &str = "INSERT INTO task_events \
    (seq, n, at, attempt, fence, from_state, to_state, cause, note) \
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
const ATTEMPT: &str = "INSERT INTO attempts \
    (seq, fence, attempt, worker, started_at, ended_at, ended, error, metrics) \
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
const OLD_ATTEMPTS: &str = "DELETE FROM attempts WHERE seq = ? AND attempt <= ?";
const ARTIFACT: &str = "INSERT INTO artifacts (seq, n, id, name, kind, size, sha256, path) \
    VALUES (?1, (SELECT coalesce(max(n), 0) + 1 FROM artifacts WHERE seq = ?1), \
    ?2, ?3, ?4, ?5, ?6, ?7)";
const ASK: &str = "INSERT INTO questions (seq, n, key, request) \
    SELECT ?1, (SELECT coalesce(max(n), 0) + 1 FROM questions WHERE seq = ?1), ?2, ?3 \
    WHERE NOT EXISTS (SELECT 1 FROM questions WHERE seq = ?1 AND key = ?2)";
const ANSWER: &str =
    "UPDATE questions SET response = ? WHERE seq = ? AND key = ? AND response IS NULL";
const TAKE: &str = "INSERT OR REPLACE INTO slots (task, lane, fence, worker, lease, heard) \
    VALUES (?, ?, ?, ?, ?, ?)";
const FREE: &str = "DELETE FROM slots WHERE task = ?";
const FILES: [&str; 2] = [
    "SELECT file, NULL FROM inputs WHERE seq = ?",
    "SELECT outcome_file, late_file FROM results WHERE seq = ?",
];
const EXPIRE: [&str; 6] = [
    "DELETE FROM inputs WHERE seq = ?",
    "DELETE FROM results WHERE seq = ?",
    "DELETE FROM task_events WHERE seq = ?",
    "DELETE FROM attempts WHERE seq = ?",
    "DELETE FROM artifacts WHERE seq = ?",
    "DELETE FROM questions WHERE seq = ?",
];
pub(crate) const FORGET: &str =
    "DELETE FROM tasks WHERE state = 'expired' AND id = ? RETURNING seq";
const TAG: &str = "INSERT OR IGNORE INTO task_tags (scope, tag, seq) VALUES (?, ?, ?)";
const UNTAG: &str = "DELETE FROM task_tags WHERE scope = ? AND tag = ? AND seq = ?";
/// So much later than it was the newest instant of a block is noted, so that it need not be noted with
/// every commit: it only says where to begin to look.
const SLACK: i64 = 60_000;

/// What is known to be noted of blocks.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// The last block, and until when its tasks were submitted.
    submitted: Option<(i64, i64)>,
    /// From when on the retention of tasks is over, of some blocks.
    due: BTreeMap<i64, i64>,
}

/// Of so many blocks it is remembered what is noted.
const MOST_NOTED: usize = 4096;

impl Noted {
    fn covers(&self, block: i64, at: i64) -> bool {
        self.submitted.is_some_and(|(noted, until)| noted == block && at <= until)
    }
}

const SUBMITTED: &str = "INSERT INTO submit_times (block, newest) VALUES (?, ?) \
    ON CONFLICT (block) DO UPDATE SET newest = max(newest, excluded.newest)";
const ENDED: &str = "INSERT INTO due_times (block, due) VALUES (?, ?) \
    ON CONFLICT (block) DO UPDATE SET due = min(due, excluded.due)";
pub(crate) const STILL_DUE: &str = "SELECT min(retention_at) FROM tasks WHERE seq BETWEEN ? AND ?";
const DUE: &str = "INSERT OR REPLACE INTO due_times (block, due) VALUES (?, ?)";
const NONE_DUE: &str = "DELETE FROM due_times WHERE block = ?";
const NEXT_SEQ: &str = "UPDATE store SET next_seq = max(next_seq, ?) WHERE one = 1";

/// Writes a batch, and returns the files whose rows are gone with it.
pub(crate) fn commit(
    connection: &mut Connection,
    log: &mut Log,
    statements: &Statements,
    batch: &Batch,
    noted: &mut Noted,
) -> Result<Vec<String>, Fault> {
    // What a failed transaction noted is not there.
    let mut after = std::mem::take(noted);
    let writing = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    log.make_room();
    let files = write(&writing, statements, batch, &mut after)?;
    writing.commit()?;
    *noted = after;
    Ok(files)
}

fn write(
    writing: &Transaction<'_>,
    statements: &Statements,
    batch: &Batch,
    noted: &mut Noted,
) -> Result<Vec<String>, Fault> {
    write_new(writing, batch, noted)?;
    write_rows(writing, statements, batch)?;
    write_due(writing, batch, noted)?;
    if !batch.inputs.is_empty() {
        let mut insert = writing.prepare_cached(INPUTS)?;
        for (seq, stored) in &batch.inputs {
            insert.execute(params![seq.cast_signed(), stored.body(), stored.file()])?;
        }
    }
    if !batch.results.is_empty() {
        let mut write = writing.prepare_cached(RESULTS)?;
        for (seq, results) in &batch.results {
            write_results(&mut write, *seq, results)?;
        }
    }
    if !batch.events.is_empty() {
        let mut insert = writing.prepare_cached(EVENT)?;
        for (seq, event) in &batch.events {
            write_event(&mut insert, *seq, event)?;
        }
    }
    if !batch.attempts.is_empty() {
        let mut insert = writing.prepare_cached(ATTEMPT)?;
        for (seq, attempt) in &batch.attempts {
            write_attempt(writing, &mut insert, *seq, attempt)?;
        }
    }
    for (seq, artifact) in &batch.artifacts {
        write_artifact(writing, *seq, artifact)?;
    }
    for (seq, change) in &batch.questions {
        write_question(writing, *seq, change)?;
    }
    for (task, slot) in &batch.slots {
        let task = task.bits().to_be_bytes();
        match slot {
            Some(slot) => take(writing, task, slot)?,
            None => {
                writing.prepare_cached(FREE)?.execute([task])?;
            }
        }
    }
    forget(writing, batch)
}

/// Writes by what new tasks are listed.
fn write_new(writing: &Transaction<'_>, batch: &Batch, noted: &mut Noted) -> Result<(), Fault> {
    let mut times = BTreeMap::new();
    for standing in batch.rows.values().filter(|standing| standing.is_new) {
        let TaskRecord { task, seq, .. } = &standing.row;
        for tag in &task.tags {
            let tag = params![task.scope.as_str(), &**tag, seq.cast_signed()];
            writing.prepare_cached(TAG)?.execute(tag)?;
        }
        let (block, at) = (seq.cast_signed() >> 10, task.submitted_at.as_millis());
        if !noted.covers(block, at) {
            let newest = times.entry(block).or_insert(i64::MIN);
            *newest = at.saturating_add(SLACK).max(*newest);
        }
    }
    for (block, newest) in times {
        writing.prepare_cached(SUBMITTED)?.execute([block, newest])?;
        noted.submitted = Some((block, newest));
    }
    Ok(())
}

/// Writes when the retention of what has ended is over, after the rows.
fn write_due(writing: &Transaction<'_>, batch: &Batch, noted: &mut Noted) -> Result<(), Fault> {
    if noted.due.len() > MOST_NOTED {
        noted.due.clear();
    }
    for Standing { row, .. } in batch.rows.values() {
        let Some(at) = row.expires_at() else { continue };
        let (block, at) = (row.seq.cast_signed() >> 10, at.as_millis());
        if noted.due.get(&block).is_none_or(|due| at < *due) {
            writing.prepare_cached(ENDED)?.execute([block, at])?;
            noted.due.insert(block, at);
        }
    }
    let blocks: BTreeSet<_> = batch.expired.iter().map(|seq| seq.cast_signed() >> 10).collect();
    for block in blocks {
        let mut next = writing.prepare_cached(STILL_DUE)?;
        let ends = [block << 10, (block << 10) + 1023];
        let next: Option<i64> = next.query_row(ends, |row| row.get(0))?;
        noted.due.remove(&block);
        match next {
            Some(due) => writing.prepare_cached(DUE)?.execute([block, due])?,
            None => writing.prepare_cached(NONE_DUE)?.execute([block])?,
        };
    }
    Ok(())
}

/// Writes the rows, after all statements were found once: to look for one costs as much as to bind it.
fn write_rows(
    writing: &Transaction<'_>,
    statements: &Statements,
    batch: &Batch,
) -> Result<(), Fault> {
    let (mut insert, mut update, mut advance) = (None, None, None);
    for Standing { row, is_new } in batch.rows.values() {
        let goes_on = row.ended_at.is_none() && row.expires_at().is_none();
        let (statement, sql) = match (is_new, goes_on) {
            (true, _) => (&mut insert, &statements.insert),
            (false, true) => (&mut advance, &statements.advance),
            (false, false) => (&mut update, &statements.update),
        };
        let statement = match statement {
            Some(statement) => statement,
            none @ None => none.insert(writing.prepare_cached(sql)?),
        };
        if *is_new {
            rows::insert(statement, row)?;
        } else {
            rows::update(statement, row)?;
        }
    }
    Ok(())
}

fn write_results(write: &mut Statement<'_>, seq: u64, results: &Results) -> Result<(), Fault> {
    let progress = match &results.progress {
        Some(progress) => Some(
            serde_json::to_string(progress)
                .map_err(|_| Fault::Broken("a progress that cannot be written"))?,
        ),
        None => None,
    };
    write.execute(params![
        seq.cast_signed(),
        results.outcome.as_ref().and_then(Stored::body),
        results.outcome.as_ref().and_then(Stored::file),
        results.late.as_ref().and_then(Stored::body),
        results.late.as_ref().and_then(Stored::file),
        progress,
        results.partial.as_ref().map(|partial| partial.get()),
    ])?;
    Ok(())
}

fn write_event(insert: &mut Statement<'_>, seq: u64, event: &TaskEvent) -> Result<(), Fault> {
    insert.execute(params![
        seq.cast_signed(),
        event.seq,
        event.at.as_millis(),
        event.attempt,
        event.fence.raw().cast_signed(),
        event.from.map(|state| state.as_str()),
        event.to.as_str(),
        event.cause.as_str(),
        event.note.as_deref(),
    ])?;
    Ok(())
}

fn write_attempt(
    writing: &Transaction<'_>,
    insert: &mut Statement<'_>,
    seq: u64,
    attempt: &AttemptSummary,
) -> Result<(), Fault> {
    insert.execute(params![
        seq.cast_signed(),
        attempt.fence.raw().cast_signed(),
        attempt.attempt,
        attempt.worker_id.as_ref().map(|worker| worker.as_str()),
        attempt.started_at.map(|at| at.as_millis()),
        attempt.ended_at.as_millis(),
        attempt.ended,
        attempt.error.as_ref().map(error_text),
        attempt.metrics.map(metrics_text),
    ])?;
    if let Some(last) = attempt.attempt.checked_sub(MAX_ATTEMPTS).filter(|last| *last > 0) {
        writing.prepare_cached(OLD_ATTEMPTS)?.execute(params![seq.cast_signed(), last])?;
    }
    Ok(())
}

fn write_artifact(writing: &Transaction<'_>, seq: u64, artifact: &Artifact) -> Result<(), Fault> {
    writing.prepare_cached(ARTIFACT)?.execute(params![
        seq.cast_signed(),
        artifact.id.as_str(),
        &*artifact.name,
        &*artifact.kind,
        artifact.size.cast_signed(),
        &*artifact.sha256,
        &*artifact.path,
    ])?;
    Ok(())
}

fn write_question(writing: &Transaction<'_>, seq: u64, change: &InputChange) -> Result<(), Fault> {
    let seq = seq.cast_signed();
    match change {
        InputChange::Asked(InputRequest { key, request }) => {
            writing.prepare_cached(ASK)?.execute(params![seq, &**key, request.get()])?;
        }
        InputChange::Given { key, response } => {
            writing.prepare_cached(ANSWER)?.execute(params![response.get(), seq, &**key])?;
        }
    }
    Ok(())
}

fn take(writing: &Transaction<'_>, task: [u8; 16], slot: &Slot) -> Result<(), Fault> {
    writing.prepare_cached(TAKE)?.execute(params![
        task,
        slot.lane.as_str(),
        slot.fence.raw().cast_signed(),
        slot.worker.as_str(),
        slot.lease.as_millis(),
        slot.heard.as_millis(),
    ])?;
    Ok(())
}

/// Drops what nobody may read any more, after all that was written before it went.
fn forget(writing: &Transaction<'_>, batch: &Batch) -> Result<Vec<String>, Fault> {
    let mut files = Vec::new();
    for seq in &batch.expired {
        let seq = seq.cast_signed();
        for sql in FILES {
            let mut named = writing.prepare_cached(sql)?;
            let names = named.query_row([seq], |row| {
                Ok([row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?])
            });
            files.extend(names.optional()?.into_iter().flatten().flatten());
        }
        for sql in EXPIRE {
            writing.prepare_cached(sql)?.execute([seq])?;
        }
        let expired = batch.rows.get(&seq.cast_unsigned()).map(|standing| &standing.row.task);
        for task in expired.into_iter().filter(|task| !task.tags.is_empty()) {
            for tag in &task.tags {
                let tag = params![task.scope.as_str(), &**tag, seq];
                writing.prepare_cached(UNTAG)?.execute(tag)?;
            }
        }
    }
    for id in &batch.forgotten {
        let mut forget = writing.prepare_cached(FORGET)?;
        let gone = forget.query_row([id.bits().to_be_bytes()], |row| row.get::<_, i64>(0));
        if let Some(seq) = gone.optional()? {
            writing.prepare_cached(NEXT_SEQ)?.execute([seq + 1])?;
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
