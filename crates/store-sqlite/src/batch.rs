//! What one transaction writes: the changes of many commands, each row once.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::OwnedSemaphorePermit;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::ids::TaskId;
use raincheck_core::input::InputChange;
use raincheck_core::ledger::Effect;
use raincheck_core::lifecycle::State;
use raincheck_core::progress::Progress;
use raincheck_core::slot::Slot;
use raincheck_core::task::{Artifact, AttemptSummary, Metrics, Outcome, TaskEvent, TaskRecord};

use crate::files::Stored;
use crate::outcome;

/// Where a task stands at the end of the transaction.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) row: TaskRecord,
    pub(crate) is_new: bool,
}

/// What came out of a task in the transaction.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) outcome: Option<Stored>,
    pub(crate) late: Option<Stored>,
    pub(crate) progress: Option<Progress>,
    pub(crate) partial: Option<Json>,
}

/// The changes that wait for their transaction, by `seq` of their task.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The number of the last hand-over in it.
    pub(crate) upto: u64,
    pub(crate) rows: BTreeMap<u64, Standing>,
    pub(crate) inputs: Vec<(u64, Stored)>,
    pub(crate) results: BTreeMap<u64, Results>,
    pub(crate) events: Vec<(u64, TaskEvent)>,
    pub(crate) attempts: Vec<(u64, AttemptSummary)>,
    pub(crate) artifacts: Vec<(u64, Artifact)>,
    /// What was asked and answered, in order.
    pub(crate) questions: Vec<(u64, InputChange)>,
    /// Places taken and freed; `None` is free.
    pub(crate) slots: BTreeMap<TaskId, Option<Slot>>,
    /// Tasks of which only the row stays.
    pub(crate) expired: BTreeSet<u64>,
    /// Tasks of which nothing stays.
    pub(crate) forgotten: Vec<TaskId>,
    /// Every change of a row, in order, for the sink.
    pub(crate) changed: Vec<TaskRecord>,
    /// The room its bytes take until they are written.
    pub(crate) room: Vec<OwnedSemaphorePermit>,
}

impl Batch {
    /// Takes one record in. `given` is the outcome that its command brought, if it was written
    /// before; it is taken when the record holds that outcome.
    pub(crate) fn keep(
        &mut self,
        effect: Effect,
        metrics: Option<Metrics>,
        given: &mut Option<Stored>,
    ) {
        match effect {
            Effect::Inserted { record: row, event } => {
                self.events.push((row.seq, event));
                self.stand(row, true);
            }
            Effect::Moved { record: row, event, outcome, retried, late, input } => {
                self.questions.extend(input.map(|change| (row.seq, change)));
                let leaves_attempt = event.as_ref().is_some_and(TaskEvent::leaves_attempt);
                self.events.extend(event.map(|event| (row.seq, event)));
                if (outcome.is_some() || retried.is_some()) && leaves_attempt {
                    let attempt = end_attempt(&row, outcome.as_ref(), retried, metrics);
                    self.attempts.push((row.seq, attempt));
                }
                if let Some(late) = late {
                    self.keep_late(row.seq, store(&late, given));
                }
                if let Some(outcome) = outcome {
                    let stored = store(&outcome, given);
                    self.results.entry(row.seq).or_default().outcome = Some(stored);
                }
                if row.state == State::Expired {
                    self.expired.insert(row.seq);
                }
                self.stand(row, false);
            }
            Effect::Late { record: row, event, outcome } => {
                self.events.push((row.seq, event));
                self.keep_late(row.seq, store(&outcome, given));
                self.stand(row, false);
            }
            Effect::Taken(slot) | Effect::Heard(slot) => {
                self.slots.insert(slot.task, Some(slot));
            }
            Effect::Freed { task, .. } => {
                self.slots.insert(task, None);
            }
            Effect::Forgotten(id) => self.forgotten.push(id),
        }
    }

    /// Names the files that its rows would have named.
    pub(crate) fn files(&self) -> impl Iterator<Item = String> {
        let results = self.results.values().flat_map(|one| [&one.outcome, &one.late]);
        let inputs = self.inputs.iter().map(|(_, stored)| stored);
        inputs.chain(results.flatten()).filter_map(|stored| stored.file().map(str::to_owned))
    }

    /// Keeps an outcome that came after the end; the first one stays.
    fn keep_late(&mut self, seq: u64, stored: Stored) {
        self.results.entry(seq).or_default().late.get_or_insert(stored);
    }

    fn stand(&mut self, row: TaskRecord, is_new: bool) {
        self.changed.push(row.clone());
        match self.rows.get_mut(&row.seq) {
            Some(standing) => standing.row = row,
            None => {
                self.rows.insert(row.seq, Standing { row, is_new });
            }
        }
    }
}

/// Takes the bytes that were written before, or writes them now: the outcomes that the engine makes
/// itself are small.
fn store(outcome: &Outcome, given: &mut Option<Stored>) -> Stored {
    let is_own = matches!(outcome, Outcome::Cancelled);
    let stored = if is_own { None } else { given.take() };
    stored.unwrap_or_else(|| Stored::Inline(outcome::encode(outcome)))
}

fn end_attempt(
    row: &TaskRecord,
    outcome: Option<&Outcome>,
    retried: Option<Error>,
    metrics: Option<Metrics>,
) -> AttemptSummary {
    let ended = if retried.is_some() { "retried" } else { row.state.as_str() };
    let error = retried.or_else(|| match outcome {
        Some(Outcome::Failed(error)) => Some(error.clone()),
        Some(Outcome::Succeeded(_) | Outcome::Cancelled) | None => None,
    });
    AttemptSummary {
        attempt: row.attempt,
        fence: row.fence,
        worker_id: row.worker.clone(),
        started_at: row.started_at,
        ended_at: row.ended_at.unwrap_or(row.updated_at),
        ended,
        error,
        metrics,
    }
}
