use std::time::Duration;

use super::*;
use crate::deadline::Armed;
use crate::ids::TaskId;
use crate::retry::Policy;
use crate::scope::Scope;
use crate::task::{Limits, Resources, Task};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn row(edit: impl FnOnce(&mut Task)) -> Row {
    let mut task = Task {
        id: TaskId::from_parts(1, [0; 10]),
        scope: Scope::local(),
        tool: "tool".into(),
        lane: "lane".into(),
        priority: 0,
        tags: Vec::new(),
        key: None,
        inputs_hash: 0,
        limits: Limits::default(),
        resources: Resources::default(),
        supports_cancel: true,
        is_idempotent: false,
        retry: Policy::default(),
        submitted_at: NOW,
    };
    edit(&mut task);
    Row {
        ready_left: task.limits.ready,
        task: Arc::new(task),
        seq: 1,
        state: State::Queued,
        waiting: None,
        attempt: 0,
        fence: Fence::NONE,
        worker: None,
        n_events: 1,
        has_reported: false,
        cancel: None,
        failure: None,
        started_at: None,
        updated_at: NOW,
        heartbeat_at: None,
        ended_at: None,
        deadlines: Armed::default(),
    }
}

fn after(mut row: Row, changes: &[Change]) -> Row {
    for change in changes {
        row = decide(&row, NOW, change, None).expect("accepted").row;
    }
    row
}

fn lease() -> Change {
    Change::Lease { worker: "wrk".into(), fence: Fence::new(1, 1) }
}

fn cancel() -> Change {
    Change::RequestCancel { reason: Some("why".into()) }
}

fn failed(kind: Kind) -> Change {
    Change::Finish(Outcome::Failed(Error::new(kind, "no")))
}

#[test]
fn the_run_deadline_counts_from_acceptance_and_only_once() {
    // [TIME-3]
    let row = after(row(|_| {}), &[lease(), Change::Accept]);
    let limit = row.timeout_at().expect("armed");
    assert_eq!(limit, NOW + Duration::from_secs(600));
    let later = NOW + Duration::from_secs(9);
    let row = decide(&row, later, &Change::Start, None).expect("accepted").row;
    assert_eq!(row.timeout_at(), Some(limit));
    assert_eq!(row.started_at, Some(later));
}

#[test]
fn an_older_attempt_is_refused_whatever_it_says() {
    // [LEASE-1]
    let row = after(row(|_| {}), &[lease(), Change::Start]);
    let old = Some(Fence::new(0, 9));
    assert_eq!(decide(&row, NOW, &failed(Kind::ToolFailed), old), Err(Refusal::Stale));
}

#[test]
fn a_result_produced_before_the_cancel_was_seen_wins() {
    // [CANCEL-5]
    let done = Change::Finish(Outcome::Succeeded(Vec::new()));
    let row = after(row(|_| {}), &[lease(), Change::Start, cancel(), done]);
    assert_eq!(row.state, State::Succeeded);
    assert_eq!(row.cancel.expect("kept").reason.as_deref(), Some("why"));
}

#[test]
fn once_the_executor_committed_to_end_it_the_end_is_cancelled() {
    // [CANCEL-5]
    let row = after(row(|_| {}), &[lease(), Change::Start, cancel(), Change::CommitCancel]);
    let done = Change::Finish(Outcome::Succeeded(Vec::new()));
    let decision = decide(&row, NOW, &done, None).expect("accepted");
    assert_eq!(decision.row.state, State::Cancelled);
    assert_eq!(decision.outcome, Some(Outcome::Cancelled));
    assert_eq!(decision.late, Some(Outcome::Succeeded(Vec::new())), "its result is kept beside it");
}

#[test]
fn an_attempt_that_was_given_up_is_not_reported() {
    // [LEASE-7]
    let running = after(row(|_| {}), &[lease(), Change::Start]);
    let lost = Outcome::Failed(Error::new(Kind::PeerLost, "silent"));
    let decision = decide(&running, NOW, &Change::GiveUp(lost.clone()), None).expect("accepted");
    assert_eq!((decision.row.state, decision.row.has_reported), (State::Failed, false));
    assert_eq!((decision.outcome, decision.late), (Some(lost), None));
    let asked = after(running, &[Change::RequestCancel { reason: None }]);
    let decision =
        decide(&asked, NOW, &Change::GiveUp(Outcome::Cancelled), None).expect("accepted");
    assert_eq!((decision.row.state, decision.row.has_reported), (State::Cancelled, false));
}

#[test]
fn the_grace_that_ends_a_cancelling_task_leaves_nothing_late() {
    // [CANCEL-6]
    let row = after(row(|_| {}), &[lease(), Change::Start, cancel(), Change::CommitCancel]);
    for due in [Deadline::Grace, Deadline::Run, Deadline::Lease] {
        let decision = decide(&row, NOW, &Change::Due(due), None).expect("accepted");
        assert_eq!((decision.row.state, decision.late), (State::Cancelled, None));
    }
}

#[test]
fn a_tool_that_cannot_be_cancelled_has_no_grace() {
    // [CANCEL-3]
    let stubborn = row(|task| task.supports_cancel = false);
    let row = after(stubborn, &[lease(), Change::Start, cancel()]);
    assert_eq!(row.state, State::CancelRequested);
    assert_eq!(row.deadlines.get(Deadline::Grace), None);
}

#[test]
fn a_lost_worker_is_never_run_again_in_silence() {
    // [LEASE-3]
    let due = Change::Due(Deadline::Lease);
    let start = [lease(), Change::Start];
    let ended = decide(&after(row(|_| {}), &start), NOW, &due, None).expect("accepted");
    assert_eq!(ended.row.failure, Some(Kind::WorkerLost));
    let Some(Outcome::Failed(error)) = ended.outcome else { panic!("no failure") };
    assert_eq!(error.guarantee(), Some(Guarantee::Unknown));

    let idempotent = row(|task| {
        task.is_idempotent = true;
        task.retry.max_attempts = 2;
    });
    let again = decide(&after(idempotent, &start), NOW, &due, None).expect("accepted");
    assert_eq!(again.row.state, State::Waiting);
    assert_eq!(again.row.waiting, Some(WaitReason::RetryBackoff));
    assert!(again.row.deadlines.get(Deadline::Backoff).is_some());
    assert_eq!(again.row.deadlines.get(Deadline::Lease), None);
}

#[test]
fn an_executor_that_keeps_the_run_limit_itself_times_the_task_out() {
    // [TIME-3]
    let running = after(row(|_| {}), &[lease(), Change::Start]);
    let ended = after(running.clone(), &[failed(Kind::RunTimeout)]);
    assert_eq!((ended.state, ended.failure), (State::TimedOut, Some(Kind::RunTimeout)));
    let cancelling = after(running, &[cancel(), Change::CommitCancel]);
    assert_eq!(after(cancelling, &[failed(Kind::RunTimeout)]).state, State::Cancelled);
}

#[test]
fn a_failure_is_not_retried_once_a_cancel_was_asked_for() {
    // [RETRY-1]
    let keen = row(|task| {
        task.retry = Policy { max_attempts: 5, on: vec![Kind::ToolFailed], ..Policy::default() };
    });
    let running = after(keen, &[lease(), Change::Start]);
    let again = decide(&running, NOW, &failed(Kind::ToolFailed), None).expect("accepted");
    assert_eq!(again.row.state, State::Waiting);
    assert!(again.retried.is_some());
    let ended = after(running, &[cancel(), failed(Kind::ToolFailed)]);
    assert_eq!(ended.state, State::Failed);
}

#[test]
fn the_ready_limit_only_drains() {
    // [STATE-5]
    let mut row = row(|_| {});
    for _ in 0..3 {
        row = decide(&row, NOW, &Change::Hold(WaitReason::Compiling), None).expect("held").row;
        let later = NOW + Duration::from_secs(10);
        row = decide(&row, later, &Change::Resume, None).expect("resumed").row;
    }
    assert_eq!(row.ready_left, Duration::from_secs(15));
}

#[test]
fn an_attempt_that_was_not_delivered_is_not_spent() {
    let row = after(row(|_| {}), &[lease(), Change::Undeliver]);
    assert_eq!((row.state, row.attempt), (State::Queued, 0));
    let row = after(row, &[lease(), cancel(), Change::Undeliver]);
    assert_eq!(row.state, State::Cancelled);
}

#[test]
fn retention_counts_from_the_end() {
    // [TIME-5]
    let row = after(row(|_| {}), &[cancel()]);
    assert_eq!(row.expires_at(), Some(NOW + Duration::from_secs(24 * 3600)));
    let row = after(row, &[Change::Due(Deadline::Retention)]);
    assert_eq!((row.state, row.deadlines.next()), (State::Expired, None));
}

#[test]
fn each_transition_writes_one_entry_and_a_repeat_writes_none() {
    // [STATE-3] [STATE-4]
    let row = after(row(|_| {}), &[lease()]);
    let first = decide(&row, NOW, &Change::Start, None).expect("accepted");
    let event = first.event.expect("an entry");
    assert_eq!((event.seq, event.from, event.to), (3, Some(State::Scheduled), State::Running));
    let again = decide(&first.row, NOW, &Change::Start, None).expect("accepted");
    assert_eq!((again.event, again.row.n_events), (None, 3));
}
