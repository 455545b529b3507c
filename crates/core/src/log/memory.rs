//! Log lines in this process, bounded in all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{DEFAULT_QUOTA, Draft, LINE_OVERHEAD, Level, Line, LogStore, Stream};
use crate::ids::{Fence, TaskId};
use crate::store::{Error, Page};
use crate::time::Timestamp;

/// How many bytes all logs together keep unless it is said otherwise.
const DEFAULT_LIMIT: u64 = 64 << 20;

/// Keeps log lines in memory; for tests and for embedders without a state folder.
///
/// All logs together are bounded: when there is no room, the lines of the task that was closed the
/// longest ago go, and one record says so in their place. Where no closed task has lines, new ones are
/// dropped as beyond a quota.
#[derive(Debug)]
pub struct MemoryLogs {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    tasks: BTreeMap<TaskId, TaskLog>,
    /// Closed tasks by their end; some may have been removed or written to since.
    closed: VecDeque<TaskId>,
    kept: u64,
    limit: u64,
}

#[derive(Debug)]
struct TaskLog {
    quota: u64,
    kept: u64,
    fence: Fence,
    /// The lines, numbered from 1.
    lines: VecDeque<Line>,
    dropped: Option<(u64, u64)>,
    /// Whether the last line tells what was dropped.
    is_told: bool,
    is_closed: bool,
    last: Timestamp,
}

impl Default for TaskLog {
    fn default() -> Self {
        Self {
            quota: DEFAULT_QUOTA,
            kept: 0,
            fence: Fence::NONE,
            lines: VecDeque::new(),
            dropped: None,
            is_told: false,
            is_closed: false,
            last: Timestamp::MIN,
        }
    }
}

/// What a line is counted for.
fn size_of(message: &str) -> u64 {
    message.len() as u64 + LINE_OVERHEAD
}

impl TaskLog {
    /// Keeps a line, or counts it as dropped; returns what it takes.
    fn push(&mut self, line: Draft, has_room: bool) -> u64 {
        self.last = line.ts;
        let size = size_of(&line.message);
        if self.dropped.is_some() || !has_room || self.kept + size > self.quota {
            self.drop_lines(1, line.message.len() as u64);
            return 0;
        }
        self.kept += size;
        self.number(line);
        size
    }

    fn drop_lines(&mut self, n_lines: u64, n_bytes: u64) {
        let (lines, bytes) = self.dropped.get_or_insert((0, 0));
        *lines += n_lines;
        *bytes += n_bytes;
    }

    fn number(&mut self, line: Draft) {
        let Draft { ts, stream, level, message } = line;
        let seq = self.lines.len() as u64 + 1;
        self.lines.push_back(Line { seq, ts, stream, level, message });
    }

    /// Tells what was dropped, in a record that is always the last one.
    fn close(&mut self) {
        if let Some((n, bytes)) = self.dropped {
            if std::mem::replace(&mut self.is_told, true) {
                self.lines.pop_back();
            }
            self.number(truncated(self.last, n, bytes, self.quota));
        }
    }

    /// Drops every line, and returns how much room that makes.
    fn clear(&mut self) -> u64 {
        if std::mem::take(&mut self.is_told) {
            self.lines.pop_back();
        }
        let n_lines = self.lines.len() as u64;
        let n_bytes = self.lines.iter().map(|line| line.message.len() as u64).sum();
        self.lines = VecDeque::new();
        self.drop_lines(n_lines, n_bytes);
        self.close();
        std::mem::take(&mut self.kept)
    }
}

/// Makes the explicit record of lines that a quota dropped [LOG-2].
#[must_use]
pub(super) fn truncated(ts: Timestamp, lines: u64, bytes: u64, quota: u64) -> Draft {
    let message = format!(
        "truncated: {lines} lines ({bytes} bytes) beyond the quota of {quota} bytes were dropped"
    );
    Draft { ts, stream: Stream::System, level: Level::Warn, message: message.into() }
}

impl Default for MemoryLogs {
    fn default() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }
}

impl MemoryLogs {
    /// Makes an empty store of 64 MiB in all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty store of so many bytes in all.
    #[must_use]
    pub const fn with_limit(bytes: u64) -> Self {
        let inner =
            Inner { tasks: BTreeMap::new(), closed: VecDeque::new(), kept: 0, limit: bytes };
        Self { inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Makes room for so many bytes, if lines of closed tasks can go for it.
    fn has_room(&mut self, size: u64, writer: TaskId) -> bool {
        while self.kept + size > self.limit {
            let Some(id) = self.closed.pop_front() else { return false };
            if let Some(log) = self.tasks.get_mut(&id).filter(|log| log.is_closed && id != writer) {
                self.kept -= log.clear();
            }
        }
        true
    }

    fn push(&mut self, id: TaskId, line: Draft) {
        let has_room = self.has_room(size_of(&line.message), id);
        self.kept += self.tasks.entry(id).or_default().push(line, has_room);
    }
}

#[async_trait]
impl LogStore for MemoryLogs {
    async fn append(&self, id: TaskId, fence: Fence, lines: Vec<Draft>) -> Result<u64, Error> {
        let mut inner = self.lock();
        let log = inner.tasks.entry(id).or_default();
        if fence >= log.fence {
            log.fence = fence;
            log.is_closed = false;
            lines.into_iter().for_each(|line| inner.push(id, line));
        }
        Ok(inner.tasks.get(&id).map_or(0, |log| log.lines.len() as u64))
    }

    async fn limit(&self, id: TaskId, bytes: u64) {
        self.lock().tasks.entry(id).or_default().quota = bytes;
    }

    async fn close(&self, id: TaskId) -> Result<(), Error> {
        let mut inner = self.lock();
        if let Some(log) = inner.tasks.get_mut(&id) {
            log.close();
            log.is_closed = true;
            inner.closed.push_back(id);
        }
        Ok(())
    }

    async fn read(&self, id: TaskId, after: u64, limit: u32) -> Result<Page<Line>, Error> {
        let inner = self.lock();
        let Some(log) = inner.tasks.get(&id) else {
            return Ok(Page { items: Vec::new(), has_more: false });
        };
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        let items: Vec<_> = log.lines.iter().skip(skip).take(limit as usize).cloned().collect();
        let has_more = skip.saturating_add(items.len()) < log.lines.len();
        Ok(Page { items, has_more })
    }

    async fn remove(&self, ids: Vec<TaskId>) -> Result<(), Error> {
        let mut inner = self.lock();
        for id in ids {
            if let Some(log) = inner.tasks.remove(&id) {
                inner.kept -= log.kept;
            }
        }
        let Inner { closed, tasks, .. } = &mut *inner;
        if closed.len() / 2 > tasks.len() {
            closed.retain(|id| tasks.contains_key(id));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Draft {
        let message = text.into();
        Draft { ts: Timestamp::MIN, stream: Stream::Stdout, level: Level::Info, message }
    }

    fn id(n: u64) -> TaskId {
        TaskId::from_parts(n, [0; 10])
    }

    /// Runs a future that never waits.
    fn now<T>(future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => value,
            std::task::Poll::Pending => panic!("the memory store never waits"),
        }
    }

    fn texts(logs: &MemoryLogs, n: u64) -> Vec<String> {
        let page = now(logs.read(id(n), 0, 1_000)).expect("read");
        page.items.iter().map(|line| line.message.to_string()).collect()
    }

    #[test]
    fn pages_have_no_gap_and_no_repeat() {
        // [LOG-1]
        let logs = MemoryLogs::new();
        let lines = (0..10).map(|n| line(&format!("line {n}"))).collect();
        now(logs.append(id(1), Fence::new(1, 1), lines)).expect("kept");
        let mut seen = Vec::new();
        while let Ok(page) = now(logs.read(id(1), seen.len() as u64, 3))
            && !page.items.is_empty()
        {
            assert_eq!(page.has_more, seen.len() + page.items.len() < 10);
            seen.extend(page.items.into_iter().map(|line| line.seq));
        }
        assert_eq!(seen, (1..=10).collect::<Vec<_>>());
    }

    #[test]
    fn lines_beyond_the_quota_leave_one_record_with_counts() {
        // [LOG-2]
        let logs = MemoryLogs::new();
        now(logs.limit(id(1), 101));
        let lines = vec![line("12345"), line("123456"), line("1")];
        now(logs.append(id(1), Fence::new(1, 1), lines)).expect("kept");
        now(logs.close(id(1))).expect("closed");
        let record = "truncated: 2 lines (7 bytes) beyond the quota of 101 bytes were dropped";
        assert_eq!(texts(&logs, 1), ["12345", record]);
    }

    #[test]
    fn all_logs_together_are_bounded_and_what_closed_first_goes_first() {
        // [LOG-2] [DUR-8]
        let logs = MemoryLogs::with_limit(1_000);
        for n in 1..=20 {
            let lines = vec![line("12345678"); 3];
            now(logs.append(id(n), Fence::new(1, 1), lines)).expect("kept");
            now(logs.close(id(n))).expect("closed");
        }
        assert!(logs.lock().kept <= 1_000);
        let record = texts(&logs, 1);
        assert!(record.len() == 1 && record[0].starts_with("truncated: 3 lines (24 bytes)"));
        assert_eq!(texts(&logs, 20).len(), 3, "the newest is whole");
        now(logs.append(id(99), Fence::new(1, 1), vec![line("x"); 1_000])).expect("counted");
        assert!(logs.lock().kept <= 1_000, "what is not closed is bounded, too");
        now(logs.remove((1..=99).map(id).collect())).expect("removed");
        assert_eq!(logs.lock().kept, 0);
    }

    #[test]
    fn an_older_attempt_adds_nothing() {
        // [LEASE-1]
        let logs = MemoryLogs::new();
        now(logs.append(id(1), Fence::new(1, 2), vec![line("new")])).expect("kept");
        assert_eq!(now(logs.append(id(1), Fence::new(1, 1), vec![line("old")])).expect("read"), 1);
    }
}
