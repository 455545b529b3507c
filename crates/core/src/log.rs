//! Log lines and where they are kept [LOG-1, LOG-2].

mod memory;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;

use crate::ids::{Fence, TaskId};
use crate::lifecycle;
use crate::store::{self, Page};
use crate::time::Timestamp;

pub use memory::MemoryLogs;

/// The quota of log that one task may keep, in bytes as they are stored, unless its tool says
/// otherwise.
pub const DEFAULT_QUOTA: u64 = 64 << 20;

/// What a line is counted for beside its text where a store does not measure what it takes: its number,
/// its instant and its other fields.
pub const LINE_OVERHEAD: u64 = 96;

/// The longest message of one line, in bytes; a longer line is split.
pub const MAX_LINE: usize = 64 << 10;

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// The program's standard output.
    Stdout,
    /// The program's standard error.
    Stderr,
    /// The control channel, or an in-process tool.
    Control,
    /// Raincheck itself, such as a `truncated` record.
    System,
}

impl Stream {
    /// Returns the word of an answer.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Control => "control",
            Self::System => "system",
        }
    }
}

/// How grave a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// For whoever looks for a fault.
    Debug,
    /// As expected.
    Info,
    /// Worth a look.
    Warn,
    /// Something failed.
    Error,
}

impl Level {
    /// Returns the word of an answer.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// Reads a tool's own word; an unknown one is `Info`.
    #[must_use]
    pub fn from_word(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "trace" | "debug" => Self::Debug,
            "warn" | "warning" => Self::Warn,
            "error" | "critical" | "fatal" => Self::Error,
            _ => Self::Info,
        }
    }
}

/// A line before it has its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// When it was read.
    pub ts: Timestamp,
    /// Where it came from.
    pub stream: Stream,
    /// How grave it is.
    pub level: Level,
    /// The text, without its line end, control characters already escaped.
    pub message: Arc<str>,
}

/// A line as it is read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its number within the task, from 1 without gaps, across attempts.
    pub seq: u64,
    /// When it was read.
    pub ts: Timestamp,
    /// Where it came from.
    pub stream: Stream,
    /// How grave it is.
    pub level: Level,
    /// The text.
    pub message: Arc<str>,
}

/// Keeps log lines: its own file and writer, never the acknowledgement writer.
#[async_trait]
pub trait LogStore: Send + Sync + 'static {
    /// Appends lines and returns the number of the last one kept.
    ///
    /// Lines beyond the task's quota are dropped after one explicit `truncated` record that is
    /// rewritten with the final counts when the task is [closed](Self::close) [LOG-2]. Lines of an
    /// older fence than the newest seen are dropped.
    ///
    /// # Errors
    /// [`store::Error`] when nothing can be kept.
    async fn append(
        &self,
        id: TaskId,
        fence: Fence,
        lines: Vec<Draft>,
    ) -> Result<u64, store::Error>;

    /// Sets the quota of a task, in bytes as they are stored: a line without text counts, too.
    /// [`DEFAULT_QUOTA`] until then.
    async fn limit(&self, id: TaskId, bytes: u64);

    /// Says that no line will follow, so that a `truncated` record gets its final counts.
    ///
    /// # Errors
    /// [`store::Error`] when the record cannot be kept.
    async fn close(&self, id: TaskId) -> Result<(), store::Error>;

    /// Reads up to `limit` lines after number `after`.
    ///
    /// # Errors
    /// [`store::Error`] when nothing can be read.
    async fn read(&self, id: TaskId, after: u64, limit: u32) -> Result<Page<Line>, store::Error>;

    /// Forgets the lines of tasks.
    ///
    /// # Errors
    /// [`store::Error`] when something cannot be removed.
    async fn remove(&self, ids: Vec<TaskId>) -> Result<(), store::Error>;

    /// Returns the folder whose files are the log, where another process may write a task's lines in
    /// this store's place. Lines written there are read like any other.
    fn folder(&self) -> Option<&Path> {
        None
    }
}

/// Tells whether more lines can come for a task in this state.
#[must_use]
pub const fn may_grow(state: lifecycle::State) -> bool {
    !state.is_terminal()
}
