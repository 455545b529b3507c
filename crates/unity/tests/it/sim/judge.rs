//! The judge of a world.

use raincheck_core::content::Content;
use raincheck_core::error::Guarantee;
use raincheck_core::ids::TaskId;
use raincheck_core::task::Outcome;
use raincheck_runtime::{Submission, View};
use serde_json::Value;

use super::editor::Journal;

/// A call, as its caller knows it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) number: u64,
    pub(crate) id: TaskId,
    pub(crate) was_cancelled_in_line: bool,
}

impl Call {
    pub(crate) fn of(number: u64, submitted: Submission) -> Option<Self> {
        match submitted {
            Submission::Task(accepted) => {
                Some(Self { number, id: accepted.record.id(), was_cancelled_in_line: false })
            }
            Submission::Answer(_) => None,
        }
    }
}

fn value(outcome: Option<&Outcome>) -> Option<Value> {
    match outcome {
        Some(Outcome::Succeeded(parts)) => match &parts[..] {
            [Content::Json(json)] => json.read().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// Judges a world by what its editor did and what its callers were told.
pub(crate) fn judge(journal: &Journal, views: &[(Call, View)]) -> Vec<String> {
    let mut complaints = journal.complaints.clone();
    // The result of a run that one has left is another's.
    let told: Vec<Value> = views.iter().flat_map(|(_, view)| values(view)).collect();
    for (call, view) in views {
        complaints.extend(judge_call(journal, call, view, &told));
    }
    for request in journal.outbox.keys() {
        complaints.push(format!("the result of {request} was never acknowledged"));
    }
    complaints
}

/// What a caller was given, in time or late.
fn values(view: &View) -> Vec<Value> {
    let payload = view.payload.as_ref();
    let both = payload.map(|it| [value(it.outcome.as_ref()), value(it.late.as_ref())]);
    both.into_iter().flatten().flatten().collect()
}

fn judge_call(journal: &Journal, call: &Call, view: &View, told: &[Value]) -> Vec<String> {
    let (number, state) = (call.number, view.record.state);
    if !state.is_terminal() {
        return vec![format!("call {number} did not end: {state}")];
    }
    let Some(payload) = &view.payload else {
        return vec![format!("call {number} cannot be read any more")];
    };
    let mut complaints = Vec::new();
    let n_ends = payload
        .events
        .iter()
        .filter(|event| event.to.is_terminal() && event.from != Some(event.to))
        .count();
    if n_ends != 1 {
        complaints.push(format!("call {number} ended {n_ends} times"));
    }
    let n_runs = journal.runs.get(&call.id).copied().unwrap_or_default();
    if n_runs > 1 {
        complaints.push(format!("call {number} ran {n_runs} times"));
    }
    let surely_not = match payload.outcome.as_ref() {
        Some(Outcome::Failed(error)) => error.guarantee() == Some(Guarantee::NotExecuted),
        _ => call.was_cancelled_in_line,
    };
    if surely_not && n_runs > 0 {
        complaints.push(format!("call {number} ran although it ended as {:?}", payload.outcome));
    }
    if let Some(produced) = journal.produced.get(&call.id)
        && !told.contains(produced)
    {
        let history: Vec<String> = payload
            .events
            .iter()
            .map(|it| format!("{} {} #{}", it.at, it.to, it.attempt))
            .collect();
        let (outcome, history) = (&payload.outcome, history.join(", "));
        complaints.push(format!(
            "the result of call {number} is lost: {outcome:?}; {produced}; {history}"
        ));
    }
    let outcome = value(payload.outcome.as_ref());
    let is_anybody_s = |value: &Value| journal.produced.values().any(|it| it == value);
    if outcome.as_ref().is_some_and(|value| !is_anybody_s(value)) {
        complaints.push(format!("the result of call {number} came from nowhere: {outcome:?}"));
    }
    complaints
}
