//! How much a connection has been answered and has not read.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Counts the bytes of answers that wait to be written.
#[derive(Debug)]
pub(crate) struct Backlog {
    bytes: AtomicUsize,
    cap: usize,
    drained: Notify,
}

impl Backlog {
    /// Begins empty, with room for `cap` bytes.
    pub(crate) const fn new(cap: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), cap, drained: Notify::const_new() }
    }

    /// Counts bytes that wait from now on.
    pub(crate) fn add(&self, n: usize) {
        self.bytes.fetch_add(n, Ordering::AcqRel);
    }

    /// Counts bytes that wait no more.
    pub(crate) fn remove(&self, n: usize) {
        self.bytes.fetch_sub(n, Ordering::AcqRel);
        self.drained.notify_waiters();
    }

    /// Returns how many bytes wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Tells whether less than the cap waits.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes() < self.cap
    }

    /// Waits until less than the cap waits.
    ///
    /// # Cancel safety
    /// Safe: it only looks.
    pub(crate) async fn room(&self) {
        loop {
            let drained = self.drained.notified();
            if self.has_room() {
                return;
            }
            drained.await;
        }
    }
}
