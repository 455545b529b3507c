//! One call in the hands of an editor, and everybody who waits for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use raincheck_core::content::Json;
use raincheck_core::ids::{LaneId, TaskId};
use raincheck_core::progress::Progress;
use raincheck_core::task::Outcome;
use raincheck_core::time::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::stage::{Move, Stage};
use crate::backend::Ask;
use crate::spelling::Key;
use crate::wire::RequestId;

/// What calls have in common that may be one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinKey {
    pub(crate) editor: Key,
    pub(crate) tool: Arc<str>,
    pub(crate) inputs: u128,
}

/// How a call stands, for everybody who waits for it. The latest counts.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) stage: Stage,
    pub(crate) progress: Option<Progress>,
    pub(crate) partial: Option<Json>,
    /// The editor has committed to end it early.
    pub(crate) is_cancelling: bool,
    pub(crate) outcome: Option<Outcome>,
}

/// A call in the hands of an editor.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) fence: u64,
    pub(crate) tool: Arc<str>,
    pub(crate) lane: LaneId,
    /// The editor that has it; `None` while that is not known.
    pub(crate) editor: Option<Key>,
    pub(crate) stage: Stage,
    pub(crate) report: watch::Sender<Report>,
    /// Who waits for it.
    pub(crate) members: BTreeSet<RequestId>,
    /// Whose outcome is not committed yet.
    pub(crate) uncommitted: BTreeSet<RequestId>,
    pub(crate) can_cancel: bool,
    /// It was told to stop.
    pub(crate) is_stopping: bool,
    pub(crate) job_id: Option<String>,
    /// The number of the last progress report.
    pub(crate) seq: u64,
    /// When it was handed over.
    pub(crate) since: Instant,
    /// It is of an earlier server, and its editor was not heard of it yet.
    pub(crate) is_unheard: bool,
    /// What it may be joined by, and when its own call was made.
    pub(crate) join: Option<(JoinKey, Timestamp)>,
    /// When its editor said, asked to end it, that it knows no such call.
    pub(crate) unknown_since: Option<Instant>,
    /// How the editor names it in its result.
    pub(crate) named: Option<String>,
    /// The editor's main thread is its alone meanwhile.
    pub(crate) turn: Option<OwnedSemaphorePermit>,
}

/// What a call begins with.
#[derive(Debug)]
pub(crate) struct Begin {
    pub(crate) fence: u64,
    pub(crate) tool: Arc<str>,
    pub(crate) lane: LaneId,
    pub(crate) editor: Option<Key>,
    pub(crate) stage: Stage,
    pub(crate) member: RequestId,
    pub(crate) can_cancel: bool,
    pub(crate) since: Instant,
    pub(crate) join: Option<(JoinKey, Timestamp)>,
    pub(crate) turn: Option<OwnedSemaphorePermit>,
}

impl Run {
    pub(crate) fn new(begin: Begin) -> (Self, watch::Receiver<Report>) {
        let Begin { fence, tool, lane, editor, stage, member, can_cancel, since, join, turn } =
            begin;
        let first =
            Report { stage, progress: None, partial: None, is_cancelling: false, outcome: None };
        let (report, seen) = watch::channel(first);
        let run = Self {
            fence,
            tool,
            lane,
            is_unheard: stage != Stage::Posted,
            editor,
            stage,
            report,
            members: BTreeSet::from([member]),
            uncommitted: BTreeSet::from([member]),
            can_cancel,
            is_stopping: false,
            job_id: None,
            seq: 0,
            since,
            join,
            unknown_since: None,
            named: None,
            turn,
        };
        (run, seen)
    }

    /// Makes a call that an editor says it has, and nobody waits for.
    pub(crate) fn of_nobody(editor: &Key, lane: &LaneId, tool: Arc<str>, now: Instant) -> Self {
        let request = RequestId { task: TaskId::from_parts(0, [0; 10]), attempt: 0 };
        let (mut run, _) = Self::new(Begin {
            fence: 0,
            tool,
            lane: lane.clone(),
            editor: Some(Arc::clone(editor)),
            stage: Stage::Accepted,
            member: request,
            can_cancel: false,
            since: now,
            join: None,
            turn: None,
        });
        run.members.clear();
        run.uncommitted.clear();
        run.is_unheard = false;
        run
    }

    /// Tells whether nobody waits for it, nor for its outcome to be committed.
    pub(crate) fn is_nobody_s(&self) -> bool {
        self.members.is_empty() && self.uncommitted.is_empty()
    }

    /// Moves the call; `false` when its stage does not have the move.
    pub(crate) fn step(&mut self, on: Move) -> bool {
        let Some(to) = self.stage.next(on) else { return false };
        self.stage = to;
        if !to.is_under_way() && to != Stage::Posted {
            self.turn = None;
        }
        self.report.send_modify(|report| report.stage = to);
        true
    }

    /// Takes down a progress report; an older one than was seen counts for nothing [RESULT-2].
    pub(crate) fn progress(&mut self, seq: u64, progress: Progress, partial: Option<Json>) {
        if seq <= self.seq && seq != 0 {
            return;
        }
        self.seq = seq;
        self.report.send_modify(|report| {
            report.progress = Some(progress);
            report.partial = partial.or(report.partial.take());
        });
    }

    /// Takes down how it ended; `false` when that is known already.
    pub(crate) fn end(&mut self, outcome: Outcome, named: String) -> bool {
        if self.stage.next(Move::End).is_none() {
            return false;
        }
        self.named = Some(named).filter(|it| !it.is_empty());
        self.report.send_modify(|report| report.outcome = Some(outcome));
        self.step(Move::End)
    }

    /// Wakes everybody who waits for it.
    pub(crate) fn wake(&self) {
        self.report.send_modify(|_| {});
    }

    /// Asks once more to stop a call that was told to before.
    pub(crate) fn stop_again(&self, request: RequestId) -> Option<Ask> {
        let is_due = self.is_stopping && self.can_cancel;
        is_due.then(|| Ask::Cancel { request, job_id: self.job_id.clone() })
    }
}
