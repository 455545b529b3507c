//! One loop, many deadlines: an instant that anybody may bring forward.

use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::Notify;

use raincheck_core::time::Timestamp;

use crate::clock::Clock;

/// The earliest instant at which a loop has something to do.
#[derive(Debug)]
pub(crate) struct Alarm {
    at: AtomicI64,
    earlier: Notify,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self { at: AtomicI64::new(i64::MAX), earlier: Notify::new() }
    }

    /// Brings the alarm forward; a later instant changes nothing.
    pub(crate) fn arm(&self, at: Timestamp) {
        let at = at.as_millis();
        if at < self.at.load(Ordering::Relaxed) && at < self.at.fetch_min(at, Ordering::AcqRel) {
            self.earlier.notify_one();
        }
    }

    /// Forgets the instant, before its owner looks for what is due and arms it again.
    pub(crate) fn disarm(&self) {
        self.at.store(i64::MAX, Ordering::Release);
    }

    /// Waits until the instant, however often it is brought forward meanwhile.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub(crate) async fn rings(&self, clock: &dyn Clock) {
        loop {
            let at = self.at.load(Ordering::Acquire);
            let now = clock.now();
            if at <= now.as_millis() {
                return;
            }
            if at == i64::MAX {
                self.earlier.notified().await;
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(Timestamp::from_millis(at).since(now)) => {}
                () = self.earlier.notified() => {}
            }
        }
    }
}
