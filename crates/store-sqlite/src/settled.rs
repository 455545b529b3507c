//! What has ended: a few of it in memory, the rest on the disk [DUR-8].
//!
//! A task that has ended is taken out of the ledger some time after its end is committed. What needs it
//! again brings it back first and pins it meanwhile, so that nobody decides on a row that is older than
//! what was decided before.

use std::collections::{BTreeMap, HashSet, VecDeque};

use rusqlite::{Connection, OptionalExtension as _, params};

use raincheck_core::ids::{TaskId, ToolName};
use raincheck_core::scope::Scope;
use raincheck_core::task::{Task, TaskRecord};
use raincheck_core::time::Timestamp;

use crate::fault::Fault;
use crate::rows;

/// How many tasks that have ended stay in memory, the newest.
const MOST: usize = 1024;

/// How many of them are looked at after a commit: some are still in use.
const LOOKS: usize = 64;

/// Up to so many keys of tasks on the disk are known; of more, each unknown key is looked for there.
const MOST_KEYS: usize = 64 << 10;

pub(crate) const KEYS: &str = "SELECT scope, tool, key FROM tasks INDEXED BY ended_by_key \
    WHERE key IS NOT NULL AND ended_at IS NOT NULL \
    AND (state <> 'expired' OR substr(key, 1, 1) = char(1)) LIMIT ?";
pub(crate) const BY_KEY: &str = "SELECT id FROM tasks WHERE scope = ? AND tool = ? AND key = ? \
    AND ended_at IS NOT NULL AND (state <> 'expired' OR substr(key, 1, 1) = char(1))";
pub(crate) const FIRST_DUE: &str = "SELECT min(due) FROM due_times";
pub(crate) const NEXT_DUE: &str = "SELECT min(next) FROM ( \
    SELECT due AS next FROM due_times WHERE due > ?1 UNION ALL \
    SELECT t.retention_at FROM due_times d CROSS JOIN tasks t \
    ON t.seq BETWEEN d.block << 10 AND (d.block << 10) + 1023 \
    WHERE d.due <= ?1 AND t.retention_at > ?1)";
pub(crate) const DUE: &str = "SELECT t.id FROM due_times d CROSS JOIN tasks t \
    ON t.seq BETWEEN d.block << 10 AND (d.block << 10) + 1023 \
    WHERE d.due <= ?1 AND t.retention_at <= ?1 LIMIT ?2";
pub(crate) const TOMBSTONES: &str = "SELECT id FROM tasks \
    WHERE state = 'expired' AND updated_at < ? ORDER BY updated_at LIMIT ?";

/// An idempotency key with its owner and its tool, as 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u128);

impl Key {
    fn new(scope: &str, tool: &str, key: &str) -> Self {
        Self(raincheck_core::idempotency::hash_words([scope, tool, key]))
    }

    /// The key of a task that has one.
    pub(crate) fn of(task: &Task) -> Option<Self> {
        Some(Self::new(task.scope.as_str(), task.tool.as_str(), task.key.as_deref()?))
    }

    /// The key that a task is found by now.
    fn held_by(record: &TaskRecord) -> Option<Self> {
        record.held_key().and_then(|_| Self::of(&record.task))
    }
}

/// What is known of the tasks that have ended.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// Those in memory, by their end; some may have gone since.
    here: VecDeque<TaskId>,
    /// The keys of those that are only on the disk.
    away: HashSet<Key>,
    /// Whether there are keys on the disk that are not in `away`.
    has_more_keys: bool,
    /// Nothing on the disk expires before this.
    due: Option<Timestamp>,
    /// The same of what was sent away since somebody last [looked](Self::begin_look).
    fresh: Option<Timestamp>,
    pinned: BTreeMap<TaskId, u32>,
    pinned_keys: BTreeMap<Key, u32>,
}

impl Settled {
    /// Reads what has to be known of the tasks on the disk.
    pub(crate) fn read(connection: &Connection) -> Result<Self, Fault> {
        let mut statement = connection.prepare(KEYS)?;
        let most = i64::try_from(MOST_KEYS).unwrap_or(i64::MAX);
        let mut found = statement.query([most.saturating_add(1)])?;
        let mut away = HashSet::new();
        while let Some(row) = found.next()? {
            let text = |place| Ok::<_, Fault>(row.get_ref(place)?.as_str().unwrap_or_default());
            away.insert(Key::new(text(0)?, text(1)?, text(2)?));
        }
        let has_more_keys = away.len() > MOST_KEYS;
        if has_more_keys {
            away = HashSet::new();
        }
        let due: Option<i64> = connection.query_row(FIRST_DUE, [], |row| row.get(0))?;
        let due = due.map(Timestamp::from_millis);
        Ok(Self { away, has_more_keys, due, ..Self::default() })
    }

    /// Takes the pins of what came before: whoever holds one lets go of it here.
    pub(crate) fn succeed(&mut self, before: Self) {
        self.pinned = before.pinned;
        self.pinned_keys = before.pinned_keys;
    }

    /// Notes a task in memory that has ended.
    pub(crate) fn add(&mut self, id: TaskId) {
        self.here.push_back(id);
    }

    /// Returns tasks that have been here for the longest, while there are too many: after a commit of
    /// `n_rows` some more than these.
    pub(crate) fn overdue(&mut self, n_rows: usize) -> Vec<TaskId> {
        let n_over = self.here.len().saturating_sub(MOST).min(LOOKS + n_rows);
        self.here.drain(..n_over).collect()
    }

    pub(crate) fn is_pinned(&self, record: &TaskRecord) -> bool {
        self.pinned.contains_key(&record.id())
            || Key::of(&record.task).is_some_and(|key| self.pinned_keys.contains_key(&key))
    }

    /// Notes a task that is only on the disk from now on.
    pub(crate) fn send_away(&mut self, record: &TaskRecord) {
        if let Some(at) = record.expires_at() {
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
            self.fresh = Some(self.fresh.map_or(at, |fresh| fresh.min(at)));
        }
        if let Some(key) = Key::held_by(record)
            && !self.has_more_keys
        {
            self.away.insert(key);
            self.has_more_keys = self.away.len() > MOST_KEYS;
        }
        if self.has_more_keys && !self.away.is_empty() {
            self.away = HashSet::new();
        }
    }

    /// Notes a task that is in memory again.
    pub(crate) fn take_back(&mut self, record: &TaskRecord) {
        if let Some(key) = Key::held_by(record) {
            self.away.remove(&key);
        }
        self.here.push_back(record.id());
    }

    /// Whether a task on the disk may have this key.
    pub(crate) fn may_have(&self, key: Key) -> bool {
        self.has_more_keys || self.away.contains(&key)
    }

    /// When something on the disk may expire.
    pub(crate) const fn due(&self) -> Option<Timestamp> {
        self.due
    }

    /// Whether something on the disk may have expired. Who looks there tells what comes
    /// [next](Self::end_look); one looks at a time.
    pub(crate) fn begin_look(&mut self, now: Timestamp) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            self.fresh = None;
        }
        is_due
    }

    /// Notes when the next thing on the disk expires, beside what was sent there since.
    pub(crate) fn end_look(&mut self, next: Option<Timestamp>) {
        self.due = [self.fresh, next].into_iter().flatten().min();
    }

    pub(crate) fn pin(&mut self, ids: &[TaskId], keys: &[Key]) {
        ids.iter().for_each(|id| *self.pinned.entry(*id).or_default() += 1);
        keys.iter().for_each(|key| *self.pinned_keys.entry(*key).or_default() += 1);
    }

    pub(crate) fn unpin(&mut self, ids: &[TaskId], keys: &[Key]) {
        ids.iter().for_each(|id| let_go(&mut self.pinned, id));
        keys.iter().for_each(|key| let_go(&mut self.pinned_keys, key));
    }
}

fn let_go<K: Ord>(pins: &mut BTreeMap<K, u32>, key: &K) {
    if let Some(n) = pins.get_mut(key) {
        *n -= 1;
        if *n == 0 {
            pins.remove(key);
        }
    }
}

fn next_due(connection: &Connection, after: Timestamp) -> Result<Option<Timestamp>, Fault> {
    let mut statement = connection.prepare_cached(NEXT_DUE)?;
    let at: Option<i64> = statement.query_row([after.as_millis()], |row| row.get(0))?;
    Ok(at.map(Timestamp::from_millis))
}

/// Reads up to `limit` tasks whose retention is over, and when the next one's is.
pub(crate) fn due(
    connection: &Connection,
    now: Timestamp,
    limit: u32,
) -> Result<(Vec<TaskId>, Option<Timestamp>), Fault> {
    let ids = ids(connection, DUE, now, limit)?;
    let next = if ids.len() < limit as usize { next_due(connection, now)? } else { Some(now) };
    Ok((ids, next))
}

/// Reads up to `limit` tombstones that expired before an instant.
pub(crate) fn tombstones(
    connection: &Connection,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<TaskId>, Fault> {
    ids(connection, TOMBSTONES, before, limit)
}

fn ids(
    connection: &Connection,
    sql: &str,
    at: Timestamp,
    limit: u32,
) -> Result<Vec<TaskId>, Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query(params![at.as_millis(), limit])?;
    let mut ids = Vec::new();
    while let Some(row) = found.next()? {
        ids.push(rows::task_id(row.get(0)?)?);
    }
    Ok(ids)
}

/// Finds the task that has a key.
pub(crate) fn keyed(
    connection: &Connection,
    scope: &Scope,
    tool: &ToolName,
    key: &str,
) -> Result<Option<TaskId>, Fault> {
    let mut statement = connection.prepare_cached(BY_KEY)?;
    let found = statement.query_row([scope.as_str(), tool.as_str(), key], |row| row.get(0));
    found.optional()?.map(rows::task_id).transpose()
}
