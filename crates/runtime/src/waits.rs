//! Sleeping until something happens to a task [CALL-4].
//!
//! Only tasks that somebody waits for have an entry, so that a change of any other task costs one
//! look at a counter.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use raincheck_core::content::Content;
use raincheck_core::ids::TaskId;

use crate::shards::{Shards, lock};

/// What happened, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happened {
    /// Progress, a partial result or log lines came.
    Reported,
    /// The row changed.
    Moved,
    /// The task ended, or asks its caller something.
    Ended,
}

/// A number that grows, and the sleepers that wait for it to grow.
#[derive(Debug, Default)]
struct Bell {
    rung: AtomicU64,
    sleepers: Notify,
}

impl Bell {
    fn ring(&self) {
        self.rung.fetch_add(1, Ordering::Release);
        self.sleepers.notify_waiters();
    }

    /// Waits until the bell was rung since `seen`.
    async fn heard(&self, seen: &mut u64) {
        loop {
            let rings = self.sleepers.notified();
            let rung = self.rung.load(Ordering::Acquire);
            if rung != *seen {
                *seen = rung;
                return;
            }
            rings.await;
        }
    }
}

#[derive(Debug, Default)]
struct Bells {
    any: Bell,
    end: Bell,
    result: Mutex<Early>,
}

/// The result of a call that nobody has a handle of: it need not be committed to be told [DUR-1].
#[derive(Debug, Default)]
enum Early {
    #[default]
    Unwanted,
    Wanted,
    There(Vec<Content>),
}

/// The tasks that somebody waits for.
#[derive(Debug)]
pub(crate) struct Waits {
    watched: Shards<(usize, Arc<Bells>)>,
    n_watches: AtomicUsize,
}

impl Waits {
    pub(crate) fn new() -> Self {
        Self { watched: Shards::new(), n_watches: AtomicUsize::new(0) }
    }

    /// Wakes whoever waits for this.
    pub(crate) fn tell(&self, id: TaskId, happened: Happened) {
        if let Some(bells) = self.bells(id) {
            bells.any.ring();
            if happened == Happened::Ended {
                bells.end.ring();
            }
        }
    }

    /// Wakes everybody: the engine ends, and whoever waits looks again.
    pub(crate) fn tell_all(&self) {
        self.watched.each(|shard| {
            for (_, bells) in shard.values() {
                bells.any.ring();
                bells.end.ring();
            }
        });
    }

    fn bells(&self, id: TaskId) -> Option<Arc<Bells>> {
        // Pairs with the counting in `watch`: who registers before reading misses nothing.
        if self.n_watches.load(Ordering::SeqCst) == 0 {
            return None;
        }
        self.watched.of(id).get(&id).map(|(_, bells)| Arc::clone(bells))
    }

    /// Tells a result before its commit, to the one caller who may have it so.
    pub(crate) fn tell_early(&self, id: TaskId, result: &[Content]) {
        let Some(bells) = self.bells(id) else { return };
        let mut early = lock(&bells.result);
        if matches!(*early, Early::Wanted) {
            *early = Early::There(result.to_vec());
            drop(early);
            bells.end.ring();
        }
    }

    /// Begins to watch a task.
    pub(crate) fn watch(self: &Arc<Self>, id: TaskId) -> Watch {
        self.n_watches.fetch_add(1, Ordering::SeqCst);
        let mut shard = self.watched.of(id);
        let (count, bells) = shard.entry(id).or_default();
        *count += 1;
        let bells = Arc::clone(bells);
        drop(shard);
        let any = bells.any.rung.load(Ordering::Acquire);
        let end = bells.end.rung.load(Ordering::Acquire);
        Watch { id, waits: Arc::clone(self), bells, any, end }
    }

    fn unwatch(&self, id: TaskId) {
        let mut shard = self.watched.of(id);
        if let Some((count, _)) = shard.get_mut(&id) {
            *count -= 1;
            if *count == 0 {
                shard.remove(&id);
            }
        }
        drop(shard);
        self.n_watches.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A watch over one task. Register first, read then, and wait last: nothing is missed.
pub struct Watch {
    id: TaskId,
    waits: Arc<Waits>,
    bells: Arc<Bells>,
    any: u64,
    end: u64,
}

impl Watch {
    /// Waits until anything about the task changed since the last call: its state, progress,
    /// partial result or log. Changes in between count as one.
    ///
    /// # Cancel safety
    /// Safe: a change that was not returned is returned by the next call.
    pub async fn changed(&mut self) {
        self.bells.any.heard(&mut self.any).await;
    }

    /// Asks for the result as soon as there is one, committed or not.
    pub(crate) fn want_early(&self) {
        *lock(&self.bells.result) = Early::Wanted;
    }

    /// Takes a result that was told before its commit, and wants none from now on.
    pub(crate) fn take_early(&self) -> Option<Vec<Content>> {
        match std::mem::take(&mut *lock(&self.bells.result)) {
            Early::There(result) => Some(result),
            Early::Unwanted | Early::Wanted => None,
        }
    }

    /// Waits until the task ended since the watch began, or asked its caller something.
    ///
    /// # Cancel safety
    /// Safe: an end that was not returned is returned by the next call.
    pub async fn ended(&mut self) {
        self.bells.end.heard(&mut self.end).await;
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.waits.unwatch(self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const ID: TaskId = TaskId::from_parts(1, [1; 10]);

    #[tokio::test]
    async fn what_happens_between_two_waits_is_told_once() {
        // [CALL-4]
        let waits = Arc::new(Waits::new());
        let mut watch = waits.watch(ID);
        assert!(watch.changed().now_or_never().is_none());
        waits.tell(ID, Happened::Reported);
        waits.tell(ID, Happened::Moved);
        assert!(watch.changed().now_or_never().is_some());
        assert!(watch.changed().now_or_never().is_none());
        assert!(watch.ended().now_or_never().is_none());
        waits.tell(ID, Happened::Ended);
        assert!(watch.ended().now_or_never().is_some());
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_task_that_nobody_watches() {
        let waits = Arc::new(Waits::new());
        drop((waits.watch(ID), waits.watch(ID)));
        assert!(waits.watched.of(ID).is_empty());
        assert_eq!(waits.n_watches.load(Ordering::SeqCst), 0);
    }
}
