//! The attempts that run in this process, and what they last said.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use raincheck_core::cancel::OnExit;
use raincheck_core::content::Json;
use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::lifecycle::State;
use raincheck_core::progress::Progress;
use raincheck_core::scope::Scope;
use raincheck_core::store::{AttemptReport, Heartbeat, HeartbeatReply};
use raincheck_core::task::{Artifact, Metrics, TaskRecord};
use raincheck_core::time::Timestamp;
use raincheck_core::trace::TraceContext;

use crate::asking::Asking;
use crate::shards::{Shards, lock};
use crate::stop::StopReason;

/// What an attempt reported and what is not yet in the store.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) progress: Option<Progress>,
    pub(crate) partial: Option<Json>,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) metrics: Option<Metrics>,
    /// When the attempt ended, where that was before this process could hear of it.
    pub(crate) ended_at: Option<Timestamp>,
}

/// One attempt that runs here.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: TaskId,
    pub(crate) scope: Scope,
    pub(crate) trace: Option<Arc<TraceContext>>,
    pub(crate) fence: Fence,
    pub(crate) number: u32,
    /// What it asks its caller.
    pub(crate) asking: Asking,
    pub(crate) supports_cancel: bool,
    pub(crate) on_exit: OnExit,
    pub(crate) report: Mutex<Report>,
    pub(crate) stop: CancellationToken,
    pub(crate) reason: OnceLock<StopReason>,
    /// Its executor is gone: whatever comes now is the end that it reported itself.
    pub(crate) has_ended: AtomicBool,
    pub(crate) was_given_back: AtomicBool,
    /// Its outcome is not what its peer said.
    pub(crate) was_given_up: AtomicBool,
    /// Whether its peer has said that it stopped as it was asked to.
    pub(crate) has_stopped: AtomicBool,
    pub(crate) uses_log: AtomicBool,
    /// Its tool has asked whether it has to stop.
    pub(crate) notices_cancel: AtomicBool,
    /// It was begun by an earlier server.
    pub(crate) is_reattached: bool,
    lease: Duration,
    next_beat: AtomicI64,
}

impl Live {
    pub(crate) fn new(record: &TaskRecord, on_exit: OnExit, now: Timestamp) -> Self {
        let live = Self {
            id: record.id(),
            scope: record.task.scope.clone(),
            trace: record.task.trace.clone(),
            asking: Asking::default(),
            fence: record.fence,
            number: record.attempt,
            supports_cancel: record.task.supports_cancel,
            on_exit,
            report: Mutex::default(),
            stop: CancellationToken::new(),
            reason: OnceLock::new(),
            has_ended: AtomicBool::new(false),
            was_given_back: AtomicBool::new(false),
            was_given_up: AtomicBool::new(false),
            has_stopped: AtomicBool::new(false),
            uses_log: AtomicBool::new(record.attempt > 1),
            notices_cancel: AtomicBool::new(false),
            is_reattached: false,
            lease: record.task.limits.lease,
            next_beat: AtomicI64::new(0),
        };
        live.plan_beat(now);
        live
    }

    /// Sets the next heartbeat to a third of the lease from now, less a jitter of up to 15 per cent
    /// [LEASE-2], and returns its instant.
    #[expect(clippy::cast_possible_truncation, reason = "only a byte of the random bits is used")]
    pub(crate) fn plan_beat(&self, now: Timestamp) -> Timestamp {
        let jitter = f64::from((self.id.bits() >> 24) as u8) / 255.0 * 0.15;
        let at = now + (self.lease / 3).mul_f64(1.0 - jitter);
        self.next_beat.store(at.as_millis(), Ordering::Relaxed);
        at
    }

    pub(crate) fn next_beat(&self) -> Timestamp {
        Timestamp::from_millis(self.next_beat.load(Ordering::Relaxed))
    }

    /// Tells the executor to stop; the first reason stays.
    pub(crate) fn stop(&self, reason: StopReason) {
        if self.reason.set(reason).is_ok() {
            self.stop.cancel();
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    pub(crate) fn was_given_back(&self) -> bool {
        self.was_given_back.load(Ordering::Acquire)
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.has_stopped.load(Ordering::Acquire)
    }

    pub(crate) fn was_given_up(&self) -> bool {
        self.was_given_up.load(Ordering::Acquire)
    }

    pub(crate) fn uses_log(&self) -> bool {
        self.uses_log.load(Ordering::Acquire)
    }

    /// Does what a heartbeat was answered.
    pub(crate) fn obey(&self, reply: HeartbeatReply) {
        match reply {
            HeartbeatReply::Cancel if self.supports_cancel => self.stop(StopReason::Cancelled),
            HeartbeatReply::Continue | HeartbeatReply::Cancel => {}
            HeartbeatReply::Lost => self.stop(StopReason::Lost),
        }
    }

    /// Looks at a row of the task: a cancel that was asked for, or an end that others decided.
    pub(crate) fn observe(&self, record: &TaskRecord) {
        // Rows may be told out of order: one of an older attempt says nothing about this one.
        if self.has_ended() || record.fence < self.fence {
            return;
        }
        let is_ours = record.fence == self.fence;
        match record.state {
            State::TimedOut if is_ours => self.stop(StopReason::TimedOut),
            State::Cancelled if is_ours => self.stop(StopReason::Cancelled),
            State::CancelRequested | State::Cancelling if is_ours => {
                if self.supports_cancel {
                    self.stop(StopReason::Cancelled);
                }
            }
            State::Scheduled | State::Running | State::InputRequired if is_ours => {}
            // Another attempt's task, or nobody's any more.
            State::Waiting
            | State::Queued
            | State::Scheduled
            | State::Running
            | State::InputRequired
            | State::CancelRequested
            | State::Cancelling
            | State::Succeeded
            | State::Failed
            | State::Cancelled
            | State::TimedOut
            | State::Expired => self.stop(StopReason::Lost),
        }
    }

    /// Returns what a heartbeat tells the store.
    pub(crate) fn beat(&self) -> Heartbeat {
        let report = lock(&self.report);
        Heartbeat {
            id: self.id,
            fence: self.fence,
            progress: report.progress.clone(),
            partial: report.partial.clone(),
        }
    }

    /// Takes what goes with the last event of the attempt.
    pub(crate) fn take_report(&self) -> Option<Box<AttemptReport>> {
        let mut report = lock(&self.report);
        let artifacts = std::mem::take(&mut report.artifacts);
        let metrics = report.metrics.take();
        let has_words = report.progress.is_some() || report.partial.is_some();
        (has_words || metrics.is_some() || !artifacts.is_empty()).then(|| {
            let (progress, partial) = (report.progress.clone(), report.partial.clone());
            Box::new(AttemptReport { progress, partial, artifacts, metrics })
        })
    }
}

/// Every attempt that runs here, by its task.
#[derive(Debug)]
pub(crate) struct Lives(Shards<Arc<Live>>);

impl Lives {
    pub(crate) fn new() -> Self {
        Self(Shards::new())
    }

    pub(crate) fn insert(&self, live: Arc<Live>) {
        let old = self.0.of(live.id).insert(live.id, live);
        if let Some(old) = old {
            old.stop(StopReason::Lost);
        }
    }

    /// Forgets one attempt, but not a newer one of the same task.
    pub(crate) fn remove(&self, live: &Live) {
        let mut shard = self.0.of(live.id);
        if shard.get(&live.id).is_some_and(|known| known.fence == live.fence) {
            shard.remove(&live.id);
        }
    }

    pub(crate) fn get(&self, id: TaskId) -> Option<Arc<Live>> {
        self.0.of(id).get(&id).cloned()
    }

    pub(crate) fn observe(&self, record: &TaskRecord) {
        let live = self.get(record.id());
        if let Some(live) = live {
            live.observe(record);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let mut n = 0;
        self.0.each(|shard| n += shard.len());
        n == 0
    }

    pub(crate) fn all(&self) -> Vec<Arc<Live>> {
        let mut all = Vec::new();
        self.0.each(|shard| all.extend(shard.values().cloned()));
        all
    }
}
