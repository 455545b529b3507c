use std::time::Duration;

use super::*;
use crate::deadline::Armed;
use crate::ids::TaskId;
use crate::retry::Policy;
use crate::scope::Scope;
use crate::task::{Limits, Resources, Task};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn row(edit: impl FnOnce(&mut Task)) -> TaskRecord {
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
        trace: None,
        submitted_at: NOW,
    };
    edit(&mut task);
    TaskRecord {
        ready_left: task.limits.ready,
        task: Arc::new(task),
        seq: 1,
        state: State::Queued,
        waiting: None,
        asks: OpenInputs::default(),
        attempt: 0,
        fence: Fence::NONE,
        worker: None,
        n_events: 1,
        has_reported: false,
        has_stopped: false,
        cancel: None,
        failure: None,
        started_at: None,
        updated_at: NOW,
        heartbeat_at: None,
        ended_at: None,
        deadlines: Armed::default(),
    }
}

fn after(mut record: TaskRecord, changes: &[Change]) -> TaskRecord {
    for change in changes {
        record = decide(&record, NOW, change, None).expect("accepted").record;
    }
    record
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
    let record = after(row(|_| {}), &[lease(), Change::Accept]);
    let limit = record.timeout_at().expect("armed");
    assert_eq!(limit, NOW + Duration::from_secs(600));
    let later = NOW + Duration::from_secs(9);
    let record = decide(&record, later, &Change::Start, None).expect("accepted").record;
    assert_eq!(record.timeout_at(), Some(limit));
    assert_eq!(record.started_at, Some(later));
}

#[test]
fn an_older_attempt_is_refused_whatever_it_says() {
    // [LEASE-1]
    let record = after(row(|_| {}), &[lease(), Change::Start]);
    let old = Some(Fence::new(0, 9));
    assert_eq!(decide(&record, NOW, &failed(Kind::ToolFailed), old), Err(Refusal::Stale));
}

#[test]
fn a_result_produced_before_the_cancel_was_seen_wins() {
    // [CANCEL-5]
    let done = Change::Finish(Outcome::Succeeded(Vec::new()));
    let record = after(row(|_| {}), &[lease(), Change::Start, cancel(), done]);
    assert_eq!(record.state, State::Succeeded);
    assert_eq!(record.cancel.expect("kept").reason.as_deref(), Some("why"));
}

#[test]
fn once_the_executor_committed_to_end_it_the_end_is_cancelled() {
    // [CANCEL-5]
    let record = after(row(|_| {}), &[lease(), Change::Start, cancel(), Change::CommitCancel]);
    let done = Change::Finish(Outcome::Succeeded(Vec::new()));
    let decision = decide(&record, NOW, &done, None).expect("accepted");
    assert_eq!(decision.record.state, State::Cancelled);
    assert_eq!(decision.outcome, Some(Outcome::Cancelled));
    assert_eq!(decision.late, Some(Outcome::Succeeded(Vec::new())), "its result is kept beside it");
}

#[test]
fn an_attempt_that_was_given_up_is_not_reported() {
    // [LEASE-7]
    let running = after(row(|_| {}), &[lease(), Change::Start]);
    let lost = Outcome::Failed(Error::new(Kind::PeerLost, "silent"));
    let decision = decide(&running, NOW, &Change::GiveUp(lost.clone()), None).expect("accepted");
    assert_eq!((decision.record.state, decision.record.has_reported), (State::Failed, false));
    assert_eq!((decision.outcome, decision.late), (Some(lost), None));
    let asked = after(running, &[Change::RequestCancel { reason: None }]);
    let decision =
        decide(&asked, NOW, &Change::GiveUp(Outcome::Cancelled), None).expect("accepted");
    assert_eq!((decision.record.state, decision.record.has_reported), (State::Cancelled, false));
    assert!(!decision.record.has_stopped, "nobody has said so");
}

#[test]
fn a_failure_that_is_the_last_is_followed_by_no_attempt() {
    // [RETRY-1]
    let policy = Policy { max_attempts: 8, on: vec![Kind::PeerNotReady], ..Policy::default() };
    let record = after(row(|task| task.retry = policy), &[lease(), Change::Start]);
    for (is_last, state) in [(false, State::Waiting), (true, State::Failed)] {
        let error = Error { is_last, ..Error::new(Kind::PeerNotReady, "away") };
        let end = Change::Finish(Outcome::Failed(error));
        let decision = decide(&record, NOW, &end, None).expect("accepted");
        assert_eq!(decision.record.state, state, "{is_last}");
    }
}

#[test]
fn an_attempt_that_stopped_as_asked_is_known_to_have_stopped_and_may_still_report() {
    // [CANCEL-2] [LEASE-7]
    let asked = after(row(|_| {}), &[lease(), Change::Start, cancel()]);
    let decision = decide(&asked, NOW, &Change::Stop, None).expect("accepted");
    let record = decision.record;
    assert_eq!((record.state, decision.outcome), (State::Cancelled, Some(Outcome::Cancelled)));
    assert_eq!((record.has_stopped, record.has_reported), (true, false));
    let done = decide(&asked, NOW, &Change::Finish(Outcome::Cancelled), None).expect("accepted");
    assert!(done.record.has_stopped);
}

#[test]
fn the_grace_that_ends_a_cancelling_task_leaves_nothing_late() {
    // [CANCEL-6]
    let record = after(row(|_| {}), &[lease(), Change::Start, cancel(), Change::CommitCancel]);
    for due in [Deadline::Grace, Deadline::Run, Deadline::Lease] {
        let decision = decide(&record, NOW, &Change::Due(due), None).expect("accepted");
        assert_eq!((decision.record.state, decision.late), (State::Cancelled, None));
    }
}

#[test]
fn a_tool_that_cannot_be_cancelled_has_no_grace() {
    // [CANCEL-3]
    let stubborn = row(|task| task.supports_cancel = false);
    let record = after(stubborn, &[lease(), Change::Start, cancel()]);
    assert_eq!(record.state, State::CancelRequested);
    assert_eq!(record.deadlines.get(Deadline::Grace), None);
}

#[test]
fn a_lost_worker_is_never_run_again_in_silence() {
    // [LEASE-3]
    let due = Change::Due(Deadline::Lease);
    let start = [lease(), Change::Start];
    let ended = decide(&after(row(|_| {}), &start), NOW, &due, None).expect("accepted");
    assert_eq!(ended.record.failure, Some(Kind::WorkerLost));
    let Some(Outcome::Failed(error)) = ended.outcome else { panic!("no failure") };
    assert_eq!(error.guarantee(), Some(Guarantee::Unknown));

    let idempotent = row(|task| {
        task.is_idempotent = true;
        task.retry.max_attempts = 2;
    });
    let again = decide(&after(idempotent, &start), NOW, &due, None).expect("accepted");
    assert_eq!(again.record.state, State::Waiting);
    assert_eq!(again.record.waiting, Some(WaitReason::RETRY_BACKOFF));
    assert!(again.record.deadlines.get(Deadline::Backoff).is_some());
    assert_eq!(again.record.deadlines.get(Deadline::Lease), None);
}

#[test]
fn a_task_with_an_earlier_attempt_is_never_said_not_to_have_run() {
    // [LEASE-9] The last attempt is surely not executed; the one before it was.
    let keen = row(|task| {
        task.retry = Policy { max_attempts: 3, on: vec![Kind::ToolFailed], ..Policy::default() };
    });
    let paused = after(keen.clone(), &[lease(), Change::Start, failed(Kind::ToolFailed)]);
    let again = after(paused, &[Change::Due(Deadline::Backoff)]);
    let leased = after(again.clone(), &[lease()]);
    let held = after(again.clone(), &[Change::Hold(WaitReason::new("compiling"))]);
    for (row, change) in [
        (&again, Change::Due(Deadline::QueueTimeout)),
        (&held, Change::Due(Deadline::Ready)),
        (&leased, Change::Due(Deadline::Accept)),
        (&leased, failed(Kind::StorageUnavailable)),
    ] {
        let ended = decide(row, NOW, &change, None).expect("accepted");
        let Some(Outcome::Failed(error)) = ended.outcome else { panic!("no failure: {change:?}") };
        assert_eq!(error.guarantee(), Some(Guarantee::Unknown), "{change:?}");
    }
    let first = decide(&after(keen, &[lease()]), NOW, &Change::Due(Deadline::Accept), None);
    let Some(Outcome::Failed(error)) = first.expect("accepted").outcome else { panic!("no end") };
    assert_eq!(error.guarantee(), Some(Guarantee::NotExecuted));
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
    assert_eq!(again.record.state, State::Waiting);
    assert!(again.retried.is_some());
    let ended = after(running, &[cancel(), failed(Kind::ToolFailed)]);
    assert_eq!(ended.state, State::Failed);
}

#[test]
fn the_ready_limit_only_drains() {
    // [STATE-5]
    let mut record = row(|_| {});
    for _ in 0..3 {
        record = decide(&record, NOW, &Change::Hold(WaitReason::new("compiling")), None)
            .expect("held")
            .record;
        let later = NOW + Duration::from_secs(10);
        record = decide(&record, later, &Change::Resume, None).expect("resumed").record;
    }
    assert_eq!(record.ready_left, Duration::from_secs(15));
}

#[test]
fn a_peer_that_is_not_there_fails_a_task_as_its_limits_say() {
    // [QUEUE-5] [TIME-4]
    for (ready_is_accept, kind) in [(false, Kind::PeerNotReady), (true, Kind::AcceptTimeout)] {
        let record = row(|task| task.limits.ready_is_accept = ready_is_accept);
        let held = after(record, &[Change::Hold(WaitReason::new("warming_up_gpu_0"))]);
        let ended = decide(&held, NOW, &Change::Due(Deadline::Ready), None).expect("accepted");
        let Some(Outcome::Failed(error)) = ended.outcome else { panic!("no failure") };
        assert_eq!((error.kind, error.guarantee()), (kind, Some(Guarantee::NotExecuted)));
        assert!(error.message.contains("warming_up_gpu_0"), "{error}");
    }
}

#[test]
fn an_attempt_that_was_not_delivered_is_not_spent() {
    let record = after(row(|_| {}), &[lease(), Change::Undeliver]);
    assert_eq!((record.state, record.attempt), (State::Queued, 0));
    let record = after(record, &[lease(), cancel(), Change::Undeliver]);
    assert_eq!(record.state, State::Cancelled);
}

#[test]
fn a_task_that_ran_once_never_says_that_it_was_not_executed() {
    // [LEASE-9]
    let retried = || {
        let record = row(|task| {
            task.retry = Policy { max_attempts: 2, ..Policy::default() };
            task.retry.on = vec![Kind::ToolFailed];
        });
        let failed = Outcome::Failed(Error::new(Kind::ToolFailed, "no"));
        after(record, &[lease(), Change::Start, Change::Finish(failed), Change::Resume])
    };
    let guarantee = |record: &TaskRecord, change: Change| {
        let decision = decide(record, NOW, &change, None).expect("accepted");
        let Some(Outcome::Failed(error)) = decision.outcome else { panic!("{decision:?}") };
        (error.kind, error.guarantee())
    };
    let due = |deadline| Change::Due(deadline);
    let unknown = Some(Guarantee::Unknown);
    let queued = retried();
    assert_eq!((queued.state, queued.attempt), (State::Queued, 1));
    assert_eq!(guarantee(&queued, due(Deadline::QueueTimeout)), (Kind::QueueTimeout, unknown));
    let held = after(retried(), &[Change::Hold(WaitReason::new("disconnected"))]);
    assert_eq!(guarantee(&held, due(Deadline::Ready)), (Kind::PeerNotReady, unknown));
    let leased = after(retried(), &[lease()]);
    assert_eq!(guarantee(&leased, due(Deadline::Accept)), (Kind::AcceptTimeout, unknown));
    let first = after(row(|_| {}), &[lease()]);
    let not_executed = Some(Guarantee::NotExecuted);
    assert_eq!(guarantee(&first, due(Deadline::Accept)), (Kind::AcceptTimeout, not_executed));
    let queued = row(|_| {});
    assert_eq!(guarantee(&queued, due(Deadline::QueueTimeout)), (Kind::QueueTimeout, not_executed));
}

#[test]
fn retention_counts_from_the_end() {
    // [TIME-5]
    let record = after(row(|_| {}), &[cancel()]);
    assert_eq!(record.expires_at(), Some(NOW + Duration::from_secs(24 * 3600)));
    let record = after(record, &[Change::Due(Deadline::Retention)]);
    assert_eq!((record.state, record.deadlines.next()), (State::Expired, None));
}

#[test]
fn each_transition_writes_one_entry_and_a_repeat_writes_none() {
    // [STATE-3] [STATE-4]
    let record = after(row(|_| {}), &[lease()]);
    let first = decide(&record, NOW, &Change::Start, None).expect("accepted");
    let event = first.event.expect("an entry");
    assert_eq!((event.seq, event.from, event.to), (3, Some(State::Scheduled), State::Running));
    let again = decide(&first.record, NOW, &Change::Start, None).expect("accepted");
    assert_eq!((again.event, again.record.n_events), (None, 3));
}

fn ask(key: &str) -> Change {
    ask_beside(key, "")
}

fn ask_beside(key: &str, beside: &str) -> Change {
    let request = InputRequest { key: key.into(), request: Json::null() };
    Change::AskInput { request, beside: OpenInputs::read(beside) }
}

fn give(key: &str) -> Change {
    Change::GiveInput { key: key.into(), response: Json::null() }
}

#[test]
fn a_question_is_answered_by_its_key_alone_and_the_time_to_answer_is_no_time_to_run() {
    // [TASKS-6] [TIME-3]
    let running = after(row(|_| {}), &[lease(), Change::Start]);
    let limit = running.timeout_at().expect("armed");
    let asked = after(running, &[ask("a")]);
    assert_eq!((asked.state, asked.asks.as_str()), (State::InputRequired, Some("a")));
    assert_eq!(asked.deadlines.get(Deadline::Input), Some(NOW + Duration::from_secs(3600)));
    assert_eq!(asked.timeout_at(), Some(limit + Duration::from_secs(3600)));
    assert_eq!(decide(&asked, NOW, &give("b"), None).err(), Some(Refusal::NotAsked));
    let later = NOW + Duration::from_secs(60);
    let decision = decide(&asked, later, &give("a"), None).expect("accepted");
    assert_eq!((decision.record.state, decision.record.asks.as_str()), (State::Running, None));
    assert_eq!(decision.record.deadlines.get(Deadline::Input), None);
    assert_eq!(decision.record.timeout_at(), Some(limit + Duration::from_secs(60)));
    assert!(matches!(decision.input, Some(InputChange::Given { .. })));
    let again = decide(&decision.record, later, &give("a"), None);
    assert!(matches!(again, Err(Refusal::State(_))), "{again:?}");
}

#[test]
fn a_question_is_over_when_the_task_is_to_end_and_one_after_that_is_not_asked() {
    // [TASKS-6] [CANCEL-2]
    let asked = after(row(|_| {}), &[lease(), Change::Start, ask("a")]);
    let ending = after(asked, &[cancel()]);
    assert_eq!((ending.state, ending.asks.as_str()), (State::CancelRequested, None));
    assert_eq!(ending.timeout_at(), Some(NOW + Duration::from_secs(600)));
    let decision = decide(&ending, NOW, &ask("b"), None).expect("accepted");
    assert_eq!((decision.record.asks.as_str(), decision.input), (None, None));
}

#[test]
fn another_question_takes_the_place_of_one_whose_asker_is_gone() {
    // [TASKS-6]
    let asked = after(row(|_| {}), &[lease(), Change::Start, ask("a")]);
    let decision = decide(&asked, NOW, &ask("b"), None).expect("accepted");
    assert_eq!(decision.record.asks.as_str(), Some("b"));
    assert!(decision.event.is_none(), "it does not move");
    assert!(matches!(decide(&decision.record, NOW, &give("a"), None), Err(Refusal::NotAsked)));
}

#[test]
fn questions_that_are_waited_for_are_open_beside_one_another_until_the_last_is_answered() {
    // [TASKS-6] [TIME-3]
    let running = after(row(|_| {}), &[lease(), Change::Start]);
    let limit = running.timeout_at().expect("armed");
    let asked =
        after(running, &[ask("a"), ask("gone"), ask_beside("b", "a"), ask_beside("c", "a b")]);
    assert_eq!(asked.asks.as_str(), Some("b c"), "`a` was given up by who asked `gone`");
    let later = NOW + Duration::from_secs(60);
    let part = decide(&asked, later, &give("b"), None).expect("accepted");
    assert!(part.event.is_none() && matches!(part.input, Some(InputChange::Given { .. })));
    let left = part.record;
    assert_eq!((left.state, left.asks.as_str()), (State::InputRequired, Some("c")));
    assert_eq!(left.deadlines.get(Deadline::Input), Some(NOW + Duration::from_secs(3600)));
    assert_eq!(decide(&left, later, &give("b"), None).err(), Some(Refusal::NotAsked));
    let done = decide(&left, later, &give("c"), None).expect("accepted").record;
    assert_eq!((done.state, done.asks.is_empty()), (State::Running, true));
    assert_eq!(done.timeout_at(), Some(limit + Duration::from_secs(60)));
}

#[test]
fn another_question_has_all_of_its_time_and_the_same_one_has_no_more() {
    // [TASKS-6] [TIME-3]
    let running = after(row(|_| {}), &[lease(), Change::Start]);
    let limit = running.timeout_at().expect("armed");
    let asked = after(running, &[ask("a")]);
    let later = NOW + Duration::from_secs(3000);
    let hour = Duration::from_secs(3600);
    let same = decide(&asked, later, &ask("a"), None).expect("accepted").record;
    assert_eq!(same.deadlines.get(Deadline::Input), Some(NOW + hour));
    let other = decide(&asked, later, &ask("b"), None).expect("accepted").record;
    assert_eq!(other.deadlines.get(Deadline::Input), Some(later + hour));
    // Only the time that was waited, and the time to answer, are put off.
    assert_eq!(other.timeout_at(), Some(limit + Duration::from_secs(3000) + hour));
}

#[test]
fn input_that_is_not_given_in_time_fails_the_task() {
    // [TASKS-6] [STATE-5]
    let asked = after(row(|_| {}), &[lease(), Change::Start, ask("a")]);
    let (at, kind) = asked.deadlines.next().expect("armed");
    assert_eq!(kind, Deadline::Lease, "the attempt is alive all the time");
    let at = at.max(asked.deadlines.get(Deadline::Input).expect("armed"));
    let late = decide(&asked, at, &Change::Due(Deadline::Input), None).expect("accepted");
    assert_eq!((late.record.state, late.record.failure), (State::Failed, Some(Kind::RunTimeout)));
}
