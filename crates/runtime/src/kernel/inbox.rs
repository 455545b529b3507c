//! What the engine's loop is told by everybody else: when to look again, and at which lanes.
//!
//! It is written with every task, so it costs no lock and no wake-up unless it says something new.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::Notify;

use raincheck_core::ids::LaneId;
use raincheck_core::time::Timestamp;

use crate::shards::lock;

/// What the loop finds when it looks.
#[derive(Debug)]
pub(crate) struct Found {
    /// When the next deadline passes.
    pub(crate) fire_at: Timestamp,
    /// When the next heartbeat is due.
    pub(crate) beat_at: Timestamp,
    /// The lanes that may have work and a free slot for it.
    pub(crate) lanes: BTreeSet<LaneId>,
}

/// Where everybody leaves word for the loop.
#[derive(Debug)]
pub(crate) struct Inbox {
    fire_at: Alarm,
    beat_at: Alarm,
    lanes: Mutex<BTreeSet<LaneId>>,
    news: Notify,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            fire_at: Alarm::new(),
            beat_at: Alarm::new(),
            lanes: Mutex::default(),
            news: Notify::new(),
        }
    }

    /// Brings the next look at deadlines forward; a later instant changes nothing.
    pub(crate) fn fire_by(&self, at: Timestamp) {
        if self.fire_at.bring_forward(at) {
            self.news.notify_one();
        }
    }

    /// Brings the next heartbeat forward; a later instant changes nothing.
    pub(crate) fn beat_by(&self, at: Timestamp) {
        if self.beat_at.bring_forward(at) {
            self.news.notify_one();
        }
    }

    /// Has a lane filled.
    pub(crate) fn fill(&self, lane: LaneId) {
        lock(&self.lanes).insert(lane);
        self.news.notify_one();
    }

    /// Waits for something new.
    ///
    /// # Cancel safety
    /// Safe: what was not waited for is found by the next look.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    /// Takes what is there. The instants stay until they are taken up.
    pub(crate) fn look(&self) -> Found {
        Found {
            fire_at: self.fire_at.get(),
            beat_at: self.beat_at.get(),
            lanes: std::mem::take(&mut *lock(&self.lanes)),
        }
    }

    /// Forgets the instant of the next deadline, right before deadlines are fired.
    pub(crate) fn take_fire(&self) {
        self.fire_at.reset();
    }

    /// Forgets the instant of the next heartbeat, right before heartbeats are sent.
    pub(crate) fn take_beat(&self) {
        self.beat_at.reset();
    }
}

/// An instant that anybody may bring forward.
#[derive(Debug)]
struct Alarm(AtomicI64);

impl Alarm {
    const fn new() -> Self {
        Self(AtomicI64::new(i64::MAX))
    }

    fn bring_forward(&self, at: Timestamp) -> bool {
        let at = at.as_millis();
        at < self.0.load(Ordering::Relaxed) && at < self.0.fetch_min(at, Ordering::AcqRel)
    }

    fn get(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Acquire))
    }

    fn reset(&self) {
        self.0.store(i64::MAX, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn only_what_is_earlier_is_news() {
        let inbox = Inbox::new();
        let at = Timestamp::from_millis;
        inbox.fire_by(at(9));
        assert!(inbox.news().now_or_never().is_some());
        inbox.fire_by(at(9));
        inbox.fire_by(at(10));
        assert!(inbox.news().now_or_never().is_none());
        inbox.fire_by(at(8));
        assert!(inbox.news().now_or_never().is_some());
        assert_eq!((inbox.look().fire_at, inbox.look().beat_at), (at(8), Timestamp::MAX));
        inbox.take_fire();
        assert_eq!(inbox.look().fire_at, Timestamp::MAX);
    }

    #[test]
    fn a_lane_is_found_once() {
        let inbox = Inbox::new();
        inbox.fill("one".into());
        inbox.fill("one".into());
        assert_eq!(inbox.look().lanes.len(), 1);
        assert!(inbox.look().lanes.is_empty());
    }
}
