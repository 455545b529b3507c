//! The program's words on their way into the log and to the server.

use async_trait::async_trait;
use raincheck_core::content::Json;
use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::log::{Draft, LogStore as _};
use raincheck_core::progress::Progress;
use raincheck_core::time::Timestamp;
use raincheck_runtime::{Clock as _, FileLogs, SystemClock};
use tokio::sync::OnceCell;

use super::link::Link;
use super::wire::Work;
use crate::supervise::Listener;

/// The log of one program, which is opened with its first line.
pub(super) struct Spool<'a> {
    id: TaskId,
    quota: u64,
    logs: FileLogs,
    is_open: OnceCell<()>,
    clock: SystemClock,
    link: &'a Link,
}

impl<'a> Spool<'a> {
    pub(super) fn new(id: TaskId, work: &Work, link: &'a Link) -> Self {
        let (logs, clock) = (FileLogs::new(&work.logs), SystemClock::new());
        Self { id, quota: work.log_quota, logs, is_open: OnceCell::new(), clock, link }
    }

    pub(super) async fn close(&self) {
        if self.is_open.initialized() {
            let _ = self.logs.close(self.id).await;
            self.link.log_grew();
        }
    }
}

#[async_trait]
impl Listener for Spool<'_> {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn begun(&self) {
        self.link.begun();
    }

    fn progress(&self, progress: Progress) {
        self.link.progress(progress);
    }

    fn partial(&self, partial: Json) {
        self.link.partial(partial);
    }

    async fn logs(&self, lines: Vec<Draft>) {
        if lines.is_empty() {
            return;
        }
        self.is_open.get_or_init(|| self.logs.limit(self.id, self.quota)).await;
        // There is nobody to tell but the log itself; the next lines may fit again.
        let _ = self.logs.append(self.id, Fence::NONE, lines).await;
        self.link.log_grew();
    }

    async fn stopping(&self) {
        self.link.stopping().await;
    }
}
