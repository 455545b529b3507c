//! What waits to be written: one writer, counted in bytes, never a wait for whoever puts something in.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::server::Backlog;

/// How many bytes go into one write.
const BATCH: usize = 64 << 10;

/// The lines that wait for the peer to read. Cloning shares them.
#[derive(Clone, Debug)]
pub(crate) struct Outbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    backlog: Arc<Backlog>,
    filled: Notify,
    broken: CancellationToken,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    is_closed: bool,
}

impl Outbox {
    /// Makes an empty outbox; what waits in it is counted in `backlog`.
    pub(crate) fn new(backlog: Arc<Backlog>) -> Self {
        Self(Arc::new(Shared {
            queue: Mutex::default(),
            backlog,
            filled: Notify::new(),
            broken: CancellationToken::new(),
        }))
    }

    /// Puts a line in, whatever waits already: an answer is never dropped.
    pub(crate) fn put(&self, line: Vec<u8>) {
        if self.0.broken.is_cancelled() {
            return;
        }
        self.0.backlog.add(line.len());
        self.queue().lines.push_back(line);
        self.0.filled.notify_one();
    }

    /// Puts a line in that could be written.
    pub(crate) fn put_all(&self, line: Option<Vec<u8>>) {
        if let Some(line) = line {
            self.put(line);
        }
    }

    /// Puts a line in when there is room; otherwise drops it.
    pub(crate) fn put_if_room(&self, line: Vec<u8>) {
        if self.0.backlog.has_room() {
            self.put(line);
        }
    }

    /// Tells whether less than the cap waits.
    pub(crate) fn has_room(&self) -> bool {
        self.0.backlog.has_room()
    }

    /// Waits until less than the cap waits.
    ///
    /// # Cancel safety
    /// Safe: it only looks.
    pub(crate) async fn room(&self) {
        self.0.backlog.room().await;
    }

    /// Says that nothing will follow; the writer ends once all is written.
    pub(crate) fn close(&self) {
        self.queue().is_closed = true;
        self.0.filled.notify_one();
    }

    /// Waits until the peer is gone.
    pub(crate) async fn broken(&self) {
        self.0.broken.clone().cancelled_owned().await;
    }

    /// Writes what is put in until the outbox is closed and empty, or the peer is gone.
    pub(crate) async fn write_to(self, mut writer: impl AsyncWrite + Unpin) {
        while let Some(batch) = self.next().await {
            let written = match writer.write_all(&batch).await {
                Ok(()) => writer.flush().await,
                Err(error) => Err(error),
            };
            if let Err(error) = written {
                tracing::debug!(%error, "the client reads no more");
                self.0.broken.cancel();
                let unwritten = std::mem::take(&mut *self.queue()).lines;
                let n_bytes = unwritten.iter().map(Vec::len).sum::<usize>() + batch.len();
                self.0.backlog.remove(n_bytes);
                return;
            }
            self.0.backlog.remove(batch.len());
        }
    }

    /// Takes the next lines, as many as go into one write.
    async fn next(&self) -> Option<Vec<u8>> {
        loop {
            {
                let mut queue = self.queue();
                if let Some(mut batch) = queue.lines.pop_front() {
                    while let Some(line) =
                        queue.lines.pop_front_if(|line| batch.len() + line.len() <= BATCH)
                    {
                        batch.extend_from_slice(&line);
                    }
                    return Some(batch);
                }
                if queue.is_closed {
                    return None;
                }
            }
            self.0.filled.notified().await;
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_peer_that_does_not_read_takes_away_room_and_loses_nothing() {
        let backlog = Arc::new(Backlog::new(100));
        let outbox = Outbox::new(Arc::clone(&backlog));
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(outbox.clone().write_to(ours));
        for _ in 0..4 {
            outbox.put(vec![b'x'; 50]);
        }
        assert!(!backlog.has_room());
        outbox.put_if_room(vec![b'y'; 50]);
        outbox.close();
        let mut got = Vec::new();
        let (read, ()) = tokio::join!(theirs.read_to_end(&mut got), outbox.room());
        assert_eq!(read.expect("the writer closes its end"), 200);
        assert!(got.iter().all(|byte| *byte == b'x'), "what found no room was dropped");
        tasks.join_next().await.expect("the writer").expect("ended by itself");
    }

    #[tokio::test]
    async fn a_peer_that_is_gone_blocks_nobody() {
        let backlog = Arc::new(Backlog::new(1));
        let outbox = Outbox::new(Arc::clone(&backlog));
        let (ours, theirs) = tokio::io::duplex(16);
        drop(theirs);
        outbox.put(vec![b'x'; 50]);
        outbox.clone().write_to(ours).await;
        outbox.room().await;
        outbox.put(vec![b'x'; 50]);
        assert_eq!(backlog.bytes(), 0);
    }
}
