//! What belongs to a task beside its row.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::content::{Content, Json};
use crate::error::Error;
use crate::ids::{ArtifactId, TaskId};
use crate::ledger::Effect;
use crate::lifecycle::State;
use crate::store::memory::MemoryLimits;
use crate::store::{AttemptReport, Heartbeat};
use crate::task::{Artifact, AttemptSummary, Metrics, Outcome, TaskDetails, TaskEvent, TaskRecord};

/// Attempts that stay listed; older ones of a task that is retried for ever are dropped.
const MAX_ATTEMPTS: usize = 100;

/// Entries of a history that stay; older ones of a task that is retried for ever are dropped.
const MAX_EVENTS: usize = 1_000;

/// The payloads, and the order in which they may go.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    items: BTreeMap<TaskId, Item>,
    /// The task of every artifact.
    artifacts: BTreeMap<ArtifactId, TaskId>,
    /// Ended tasks, the oldest first; some may have expired since.
    settled: VecDeque<TaskId>,
    n_settled: usize,
    settled_bytes: usize,
    /// Expired tasks, the oldest first; some may be forgotten since.
    tombstones: VecDeque<TaskId>,
    n_tombstones: usize,
}

#[derive(Debug)]
struct Item {
    payload: Arc<TaskDetails>,
    metrics: Option<Metrics>,
    /// What an ended task counts for; `None` while it is live.
    settled: Option<usize>,
}

impl Shelf {
    /// Puts one record away.
    pub(super) fn keep(&mut self, effect: Effect, changed: &mut Vec<TaskRecord>) {
        match effect {
            Effect::Inserted { record, event } => {
                self.insert(record.id(), event);
                changed.push(record);
            }
            Effect::Moved { record, event, outcome, retried, late, input } => {
                let has_ended = outcome.is_some();
                if let Some(input) = input {
                    self.edit(record.id(), |payload| input.apply(&mut payload.asked));
                }
                self.moved(&record, event, outcome, retried);
                if let Some(late) = late {
                    self.late(record.id(), None, late);
                }
                if record.state == State::Expired {
                    self.bury(record.id());
                } else if has_ended {
                    self.settle(record.id());
                }
                changed.push(record);
            }
            Effect::Late { record, event, outcome } => {
                self.late(record.id(), Some(event), outcome);
                changed.push(record);
            }
            Effect::Forgotten(_) => self.n_tombstones = self.n_tombstones.saturating_sub(1),
            Effect::Taken(_) | Effect::Heard(_) | Effect::Freed { .. } => {}
        }
    }

    /// The oldest ended task while there are more of them, or more bytes, than the limits allow. The
    /// newest always stays.
    pub(super) fn next_to_expire(&mut self, limits: MemoryLimits) -> Option<TaskId> {
        let is_over = |shelf: &Self| {
            shelf.n_settled > limits.settled
                || (shelf.settled_bytes > limits.settled_bytes && shelf.n_settled > 1)
        };
        while is_over(self) {
            let id = self.settled.pop_front()?;
            if self.items.contains_key(&id) {
                return Some(id);
            }
        }
        // What has expired since by itself goes from the order, too, once it is most of it.
        if self.settled.len() > 64 && self.settled.len() / 2 > self.n_settled {
            self.settled.retain(|id| self.items.contains_key(id));
        }
        None
    }

    /// The oldest tombstone while there are more of them than the limits allow.
    pub(super) fn next_to_forget(&mut self, limits: MemoryLimits) -> Option<TaskId> {
        while self.tombstones.len() > self.n_tombstones {
            self.tombstones.pop_front();
        }
        (self.n_tombstones > limits.tombstones).then(|| self.tombstones.pop_front()).flatten()
    }

    /// Returns how long the order of ended tasks is.
    #[cfg(test)]
    pub(super) fn n_ordered(&self) -> usize {
        self.settled.len()
    }

    /// Takes a tombstone back that could not be forgotten.
    pub(super) fn put_off(&mut self, id: TaskId) {
        self.tombstones.push_back(id);
    }

    fn settle(&mut self, id: TaskId) {
        let size = self.size(id);
        if let Some(item) = self.items.get_mut(&id) {
            item.settled = Some(size);
            self.n_settled += 1;
            self.settled_bytes += size;
            self.settled.push_back(id);
        }
    }

    fn bury(&mut self, id: TaskId) {
        if let Some(item) = self.items.remove(&id) {
            for artifact in &item.payload.artifacts {
                self.artifacts.remove(&artifact.id);
            }
            if let Some(size) = item.settled {
                self.n_settled -= 1;
                self.settled_bytes -= size;
            }
        }
        self.tombstones.push_back(id);
        self.n_tombstones += 1;
    }

    fn insert(&mut self, id: TaskId, event: TaskEvent) {
        let mut events = Vec::with_capacity(4);
        events.push(event);
        let payload = TaskDetails {
            inputs: Json::null(),
            outcome: None,
            late: None,
            progress: None,
            partial: None,
            artifacts: Vec::new(),
            attempts: Vec::new(),
            asked: Vec::new(),
            events,
        };
        self.items.insert(id, Item { payload: Arc::new(payload), metrics: None, settled: None });
    }

    pub(super) fn give(&mut self, id: TaskId, inputs: Json) {
        self.edit(id, |payload| payload.inputs = inputs);
    }

    fn moved(
        &mut self,
        record: &TaskRecord,
        event: Option<TaskEvent>,
        outcome: Option<Outcome>,
        retried: Option<Error>,
    ) {
        let has_ended = outcome.is_some() || retried.is_some();
        let attempt = (has_ended && event.as_ref().is_some_and(TaskEvent::leaves_attempt))
            .then(|| self.end_attempt(record, outcome.as_ref(), retried));
        self.edit(record.id(), |payload| {
            remember(&mut payload.events, event);
            if let Some(attempt) = attempt {
                if payload.attempts.len() >= MAX_ATTEMPTS {
                    payload.attempts.remove(0);
                }
                payload.attempts.reserve_exact(1);
                payload.attempts.push(attempt);
            }
            if outcome.is_some() {
                payload.outcome = outcome;
            }
        });
    }

    fn end_attempt(
        &mut self,
        record: &TaskRecord,
        outcome: Option<&Outcome>,
        retried: Option<Error>,
    ) -> AttemptSummary {
        let metrics = self.items.get_mut(&record.id()).and_then(|item| item.metrics.take());
        let ended = if retried.is_some() { "retried" } else { record.state.as_str() };
        let error = retried.or_else(|| match outcome {
            Some(Outcome::Failed(error)) => Some(error.clone()),
            Some(Outcome::Succeeded(_) | Outcome::Cancelled) | None => None,
        });
        AttemptSummary {
            attempt: record.attempt,
            fence: record.fence,
            worker_id: record.worker.clone(),
            started_at: record.started_at,
            ended_at: record.ended_at.unwrap_or(record.updated_at),
            ended,
            error,
            metrics,
        }
    }

    fn late(&mut self, id: TaskId, event: Option<TaskEvent>, outcome: Outcome) {
        self.edit(id, |payload| {
            remember(&mut payload.events, event);
            payload.late.get_or_insert(outcome);
        });
        self.weigh(id);
    }

    pub(super) fn keep_report(&mut self, record: &TaskRecord, report: AttemptReport) {
        let id = record.id();
        let Some(item) = self.items.get_mut(&id) else { return };
        if record.state.is_leased() {
            item.metrics = report.metrics.or(item.metrics);
        }
        self.artifacts.extend(report.artifacts.iter().map(|one| (one.id.clone(), id)));
        self.edit(id, |payload| {
            payload.progress = report.progress.or(payload.progress.take());
            payload.partial = report.partial.or(payload.partial.take());
            payload.artifacts.extend(report.artifacts);
        });
        self.weigh(id);
    }

    pub(super) fn keep_beat(&mut self, beat: &Heartbeat) {
        self.edit(beat.id, |payload| {
            if beat.progress.is_some() {
                payload.progress.clone_from(&beat.progress);
            }
            if beat.partial.is_some() {
                payload.partial.clone_from(&beat.partial);
            }
        });
    }

    pub(super) fn inputs(&self, id: TaskId) -> Json {
        self.items.get(&id).map_or_else(Json::null, |item| item.payload.inputs.clone())
    }

    pub(super) fn artifact(&self, id: &ArtifactId) -> Option<(TaskId, Artifact)> {
        let task = *self.artifacts.get(id)?;
        let item = self.items.get(&task)?;
        let artifact = item.payload.artifacts.iter().find(|one| one.id == *id)?;
        Some((task, artifact.clone()))
    }

    pub(super) fn payload(&self, id: TaskId) -> Option<Arc<TaskDetails>> {
        self.items.get(&id).map(|item| Arc::clone(&item.payload))
    }

    /// Counts an ended task anew, after more came to it.
    fn weigh(&mut self, id: TaskId) {
        let size = self.size(id);
        if let Some(counted) = self.items.get_mut(&id).and_then(|item| item.settled.as_mut()) {
            self.settled_bytes = self.settled_bytes - *counted + size;
            *counted = size;
        }
    }

    /// Returns about how many bytes a task's content takes.
    fn size(&self, id: TaskId) -> usize {
        self.items.get(&id).map_or(0, |item| {
            let TaskDetails { inputs, outcome, late, partial, asked, .. } = &*item.payload;
            let json = |json: &Json| json.get().len();
            let outcomes = [outcome, late].into_iter().flatten().map(size_of).sum::<usize>();
            let asked = asked
                .iter()
                .map(|input| json(&input.request) + input.response.as_ref().map_or(0, json));
            json(inputs) + outcomes + partial.as_ref().map_or(0, json) + asked.sum::<usize>()
        })
    }

    fn edit(&mut self, id: TaskId, work: impl FnOnce(&mut TaskDetails)) {
        if let Some(item) = self.items.get_mut(&id) {
            work(Arc::make_mut(&mut item.payload));
        }
    }
}

/// Adds an entry to a history, in the place of the oldest one when there are too many.
fn remember(events: &mut Vec<TaskEvent>, event: Option<TaskEvent>) {
    if event.is_some() && events.len() >= MAX_EVENTS {
        events.remove(0);
    }
    events.extend(event);
}

fn size_of(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Succeeded(parts) => parts.iter().map(Content::size).sum(),
        Outcome::Failed(error) => {
            error.message.len() + error.details.as_ref().map_or(0, |details| details.get().len())
        }
        Outcome::Cancelled => 0,
    }
}
