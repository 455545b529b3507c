//! Log lines in this process, bounded in all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{DEFAULT_QUOTA, Draft, Level, Line, LogStore, Stream};
use crate::ids::{Fence, TaskId};
use crate::store::{Error, Page};
use crate::time::Timestamp;

/// Keeps log lines in memory; for tests and for embedders without a state folder.
#[derive(Debug, Default)]
pub struct MemoryLogs {
    tasks: Mutex<BTreeMap<TaskId, TaskLog>>,
}

#[derive(Debug)]
struct TaskLog {
    quota: u64,
    kept: u64,
    fence: Fence,
    lines: VecDeque<Line>,
    dropped: Option<(u64, u64)>,
    /// Whether the last line tells what was dropped.
    is_told: bool,
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
            last: Timestamp::MIN,
        }
    }
}

impl TaskLog {
    fn push(&mut self, line: Draft) {
        self.last = line.ts;
        let size = line.message.len() as u64;
        if self.dropped.is_some() || self.kept + size > self.quota {
            let (n, bytes) = self.dropped.get_or_insert((0, 0));
            *n += 1;
            *bytes += size;
            return;
        }
        self.kept += size;
        self.number(line);
    }

    fn number(&mut self, line: Draft) {
        let Draft { ts, stream, level, message } = line;
        let seq = self.lines.len() as u64 + 1;
        self.lines.push_back(Line { seq, ts, stream, level, message });
    }

    fn close(&mut self) {
        if let Some((n, bytes)) = self.dropped {
            if std::mem::replace(&mut self.is_told, true) {
                self.lines.pop_back();
            }
            self.number(truncated(self.last, n, bytes, self.quota));
        }
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

impl MemoryLogs {
    /// Makes an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, TaskLog>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl LogStore for MemoryLogs {
    async fn append(&self, id: TaskId, fence: Fence, lines: Vec<Draft>) -> Result<u64, Error> {
        let mut tasks = self.lock();
        let log = tasks.entry(id).or_default();
        if fence >= log.fence {
            log.fence = fence;
            lines.into_iter().for_each(|line| log.push(line));
        }
        Ok(log.lines.len() as u64)
    }

    async fn limit(&self, id: TaskId, bytes: u64) {
        self.lock().entry(id).or_default().quota = bytes;
    }

    async fn close(&self, id: TaskId) -> Result<(), Error> {
        if let Some(log) = self.lock().get_mut(&id) {
            log.close();
        }
        Ok(())
    }

    async fn read(&self, id: TaskId, after: u64, limit: u32) -> Result<Page<Line>, Error> {
        let tasks = self.lock();
        let Some(log) = tasks.get(&id) else {
            return Ok(Page { items: Vec::new(), has_more: false });
        };
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        let items: Vec<_> = log.lines.iter().skip(skip).take(limit as usize).cloned().collect();
        let has_more = skip.saturating_add(items.len()) < log.lines.len();
        Ok(Page { items, has_more })
    }

    async fn remove(&self, ids: Vec<TaskId>) -> Result<(), Error> {
        let mut tasks = self.lock();
        for id in ids {
            tasks.remove(&id);
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

    /// Runs a future that never waits.
    fn now<T>(future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => value,
            std::task::Poll::Pending => panic!("the memory store never waits"),
        }
    }

    #[test]
    fn pages_have_no_gap_and_no_repeat() {
        // [LOG-1]
        let (logs, id) = (MemoryLogs::new(), TaskId::from_parts(1, [0; 10]));
        let lines = (0..10).map(|n| line(&format!("line {n}"))).collect();
        now(logs.append(id, Fence::new(1, 1), lines)).expect("kept");
        let mut seen = Vec::new();
        while let Ok(page) = now(logs.read(id, seen.len() as u64, 3))
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
        let (logs, id) = (MemoryLogs::new(), TaskId::from_parts(1, [0; 10]));
        now(logs.limit(id, 10));
        now(logs.append(id, Fence::new(1, 1), vec![line("12345"), line("123456"), line("1")]))
            .expect("kept");
        now(logs.close(id)).expect("closed");
        let page = now(logs.read(id, 0, 10)).expect("read");
        let texts: Vec<_> = page.items.iter().map(|line| &*line.message).collect();
        assert_eq!(
            texts,
            ["12345", "truncated: 2 lines (7 bytes) beyond the quota of 10 bytes were dropped"]
        );
    }

    #[test]
    fn an_older_attempt_adds_nothing() {
        // [LEASE-1]
        let (logs, id) = (MemoryLogs::new(), TaskId::from_parts(1, [0; 10]));
        now(logs.append(id, Fence::new(1, 2), vec![line("new")])).expect("kept");
        assert_eq!(now(logs.append(id, Fence::new(1, 1), vec![line("old")])).expect("read"), 1);
    }
}
