//! Checks of task stores.

#![expect(clippy::panic, reason = "a check that fails panics with the requirement it is about")]

use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::deadline::Kind as Deadline;
use raincheck_core::decide::Change;
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::input::{Input, InputRequest, OpenInputs};
use raincheck_core::lane;
use raincheck_core::lifecycle::State;
use raincheck_core::retry;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    AttemptReport, Claim, Claimed, Cursor, Filter, Found, Heartbeat, HeartbeatReply, NoSink,
    Submit, Submitted, TaskStore, Update, UpdateResult,
};
use raincheck_core::task::{
    Artifact, Cause, Limits, Metrics, Outcome, Resources, Task, TaskDetails, TaskEvent, TaskRecord,
    WaitReason,
};
use raincheck_core::time::Timestamp;

const START: Timestamp = Timestamp::from_millis(1_000_000);
const LANE: &str = "lane";

fn at(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

fn id(n: u64) -> TaskId {
    TaskId::from_parts(1_000 + n, [1; 10])
}

fn must<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("the store failed: {error}"))
}

async fn open(store: &dyn TaskStore, concurrency: u32, queue_limit: u32) {
    let lanes = vec![(LANE.into(), lane::Config::new(concurrency, queue_limit))];
    must(store.open(START, lanes, Duration::from_secs(10), Arc::new(NoSink)).await);
}

fn one(n: u64, edit: impl FnOnce(&mut Task)) -> Submit {
    let mut task = Task {
        id: id(n),
        scope: Scope::local(),
        tool: "tool".into(),
        lane: LANE.into(),
        priority: 0,
        tags: Vec::new(),
        key: None,
        inputs_hash: 0,
        limits: Limits::default(),
        resources: Resources::default(),
        supports_cancel: true,
        is_idempotent: false,
        retry: retry::Policy::default(),
        trace: None,
        submitted_at: START,
    };
    edit(&mut task);
    let inputs = must(Json::parse(format!("{{\"n\":{n}}}")));
    Submit { task, inputs, waiting: None, is_inline: false, is_known: false }
}

async fn submit(store: &dyn TaskStore, submit: Submit) -> Submitted {
    let posted = must(store.submit(START, vec![submit], None).await);
    must(posted.receipt.committed().await);
    match posted.value.0.into_iter().next() {
        Some(submitted) => submitted,
        None => panic!("a submit was not answered"),
    }
}

async fn claim(store: &dyn TaskStore, n: u32) -> Vec<Claimed> {
    let posted = must(store.claim(START, Claim { lanes: vec![LANE.into()], n }).await);
    must(posted.receipt.committed().await);
    posted.value
}

async fn update(store: &dyn TaskStore, now: Timestamp, update: Update) -> UpdateResult {
    let posted = must(store.update(now, vec![update], None).await);
    must(posted.receipt.committed().await);
    match posted.value.0.into_iter().next() {
        Some(verdict) => verdict,
        None => panic!("a post was not answered"),
    }
}

fn attempt(claimed: &Claimed, change: Change, releases: bool) -> Update {
    Update { releases, ..Update::attempt(claimed.record.id(), claimed.record.fence, change) }
}

fn done(text: &str) -> Change {
    Change::Finish(Outcome::Succeeded(vec![Content::Text(text.into())]))
}

fn cancel(n: u64) -> Update {
    let change = Change::RequestCancel { reason: Some("why".into()) };
    Update {
        scope: Some(Scope::local()),
        fence: None,
        ..Update::attempt(id(n), Fence::NONE, change)
    }
}

async fn task(store: &dyn TaskStore, n: u64) -> (TaskRecord, Arc<TaskDetails>) {
    match must(store.find(&Scope::local(), id(n)).await) {
        Found::Task(record, payload) => (record, payload),
        found @ (Found::Tombstone(_) | Found::Absent) => panic!("task {n} is {found:?}"),
    }
}

pub(super) async fn positions_follow_priority_then_arrival(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    for (n, priority) in [0, -5, 10, 0, 10].into_iter().enumerate() {
        submit(store, one(n as u64, |task| task.priority = priority)).await;
    }
    let mut places = Vec::new();
    for n in 0..5 {
        places.push(must(store.position(id(n)).await).unwrap_or(u32::MAX));
    }
    assert_eq!(places, [2, 4, 0, 3, 1], "[QUEUE-3] positions");
    let mut order = Vec::new();
    while let Some(next) = claim(store, 1).await.pop() {
        assert_eq!(next.record.state, State::Scheduled);
        order.push(next.record.task.priority);
        update(store, START, attempt(&next, done("x"), true)).await;
    }
    assert_eq!(order, [10, 10, 0, 0, -5], "[QUEUE-1] order of execution");
}

pub(super) async fn a_full_lane_refuses_and_loses_nothing(store: &dyn TaskStore) {
    open(store, 1, 2).await;
    let mut accepted = 0;
    for n in 0..6 {
        match submit(store, one(n, |_| {})).await {
            Submitted::Inserted { .. } => accepted += 1,
            Submitted::Full { retry_after, .. } => {
                assert!(retry_after > Duration::ZERO, "[QUEUE-2] no word when to come back");
            }
            other @ (Submitted::Existing(_)
            | Submitted::Conflict(_)
            | Submitted::NoLane
            | Submitted::Unknown) => {
                panic!("[QUEUE-2] {other:?}")
            }
        }
    }
    assert_eq!(accepted, 3, "[QUEUE-2] one free place and two that wait");
    let page = must(store.list(&Scope::local(), &Filter::default(), None, 99).await);
    assert_eq!(page.items.len(), 3, "[QUEUE-2] something was dropped");
}

pub(super) async fn a_lane_never_runs_more_than_its_concurrency(store: &dyn TaskStore) {
    open(store, 2, 100).await;
    for n in 0..5 {
        submit(store, one(n, |_| {})).await;
    }
    let first = claim(store, 99).await;
    assert_eq!(first.len(), 2, "[QUEUE-6] leased at once");
    let workers: std::collections::BTreeSet<_> =
        first.iter().filter_map(|claimed| claimed.record.worker.clone()).collect();
    assert_eq!(workers.len(), 2, "[QUEUE-7] two tasks on one worker");
    assert!(claim(store, 99).await.is_empty(), "[QUEUE-6] leased beyond the concurrency");
}

pub(super) async fn one_key_is_one_task(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    let keyed = |n, hash| {
        one(n, |task| {
            task.key = Some("key".into());
            task.inputs_hash = hash;
        })
    };
    submit(store, keyed(0, 7)).await;
    assert!(
        matches!(submit(store, keyed(1, 7)).await, Submitted::Existing(record) if record.id() == id(0)),
        "[IDEM-1] the same key and inputs"
    );
    assert!(
        matches!(submit(store, keyed(2, 8)).await, Submitted::Conflict(first) if first == id(0)),
        "[IDEM-1] the same key with other inputs"
    );
    let mut foreign = keyed(3, 8);
    foreign.task.scope = Scope::new("other");
    assert!(
        matches!(submit(store, foreign).await, Submitted::Inserted { .. }),
        "[SCOPE-2] the key of another scope"
    );
}

/// A task that is readable for a second after its end.
fn keyed_for_a_second(n: u64, key: &'static str, hash: u128) -> Submit {
    one(n, |task| {
        task.key = Some(key.into());
        task.inputs_hash = hash;
        task.limits.retention = Duration::from_secs(1);
    })
}

async fn assert_found(store: &dyn TaskStore, submit: Submit, found: Option<TaskId>) {
    let what = format!("{:?}", submit.task.key);
    let existing = match self::submit(store, submit).await {
        Submitted::Existing(record) => Some(record.id()),
        Submitted::Unknown => None,
        other @ (Submitted::Inserted { .. }
        | Submitted::Conflict(_)
        | Submitted::Full { .. }
        | Submitted::NoLane) => panic!("{what}: {other:?}"),
    };
    assert_eq!(existing, found, "[IDEM-2] [ATTACH-6] {what}");
}

pub(super) async fn the_key_of_a_request_lives_as_long_as_its_row(store: &dyn TaskStore) {
    const REQUEST: &str = "\u{1}window/1";
    open(store, 1, 100).await;
    for (n, key) in [(0, "key"), (1, REQUEST)] {
        submit(store, keyed_for_a_second(n, key, 7)).await;
        let Some(claimed) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
        update(store, START, attempt(&claimed, done("x"), true)).await;
    }
    must(must(store.fire(at(2), 100).await).receipt.committed().await);
    let known = |n, key| Submit { is_known: true, ..keyed_for_a_second(n, key, 8) };
    assert_found(store, known(2, "key"), None).await;
    assert_found(store, known(3, REQUEST), Some(id(1))).await;
    assert_found(store, keyed_for_a_second(4, REQUEST, 7), Some(id(1))).await;
    must(store.sweep(at(2) + Duration::from_secs(25 * 3600), 100).await);
    assert_found(store, known(5, REQUEST), None).await;
    let found = must(store.find(&Scope::local(), id(5)).await);
    assert!(matches!(found, Found::Absent), "it made a task: {found:?}");
}

pub(super) async fn a_queued_task_is_cancelled_at_once(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    submit(store, one(0, |_| {})).await;
    assert!(
        matches!(update(store, START, cancel(0)).await, UpdateResult::Moved(record) if record.state == State::Cancelled),
        "[CANCEL-1] a queued task"
    );
    assert!(claim(store, 1).await.is_empty(), "[CANCEL-1] it was leased all the same");
    assert!(
        matches!(update(store, START, cancel(0)).await, UpdateResult::Refused(record, _) if record.state == State::Cancelled),
        "[CANCEL-4] a terminal task"
    );
}

pub(super) async fn a_slot_outlives_its_task(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    for n in 0..2 {
        submit(store, one(n, |_| {})).await;
    }
    let Some(first) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
    update(store, START, attempt(&first, done("x"), false)).await;
    assert!(claim(store, 1).await.is_empty(), "[QUEUE-6] the executor is not gone yet");
    let posted = must(store.release(START, vec![(first.record.id(), first.record.fence)]).await);
    must(posted.receipt.committed().await);
    assert_eq!(claim(store, 1).await.len(), 1, "[QUEUE-6] the executor is gone");
}

pub(super) async fn a_late_outcome_is_kept_beside_the_end(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    submit(store, one(0, |task| task.limits.run_timeout = Some(Duration::from_secs(5)))).await;
    let Some(claimed) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
    update(store, START, attempt(&claimed, Change::Start, false)).await;
    must(must(store.fire(at(6), 100).await).receipt.committed().await);
    assert_eq!(task(store, 0).await.0.state, State::TimedOut, "[TIME-3] the run deadline");
    let late = update(store, at(7), attempt(&claimed, done("late"), true)).await;
    assert!(matches!(late, UpdateResult::Late(_)), "[LEASE-7] got {late:?}");
    let (record, payload) = task(store, 0).await;
    assert_eq!(record.state, State::TimedOut, "[STATE-2] a late event moved a terminal task");
    assert!(payload.late.is_some(), "[LEASE-7] the late result is not kept");
}

pub(super) async fn what_a_peer_says_after_it_was_given_up_is_kept(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    submit(store, one(0, |_| {})).await;
    let Some(claimed) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
    update(store, START, attempt(&claimed, Change::Start, false)).await;
    let lost = Outcome::Failed(Error::new(Kind::PeerLost, "silent"));
    update(store, at(6), attempt(&claimed, Change::GiveUp(lost.clone()), true)).await;
    for is_late in [true, false] {
        let verdict = update(store, at(7), attempt(&claimed, done("late"), false)).await;
        assert_eq!(matches!(verdict, UpdateResult::Late(_)), is_late, "[LEASE-7] got {verdict:?}");
    }
    let (record, payload) = task(store, 0).await;
    assert_eq!(record.state, State::Failed, "[STATE-2] a late event moved a terminal task");
    assert_eq!(
        payload.outcome,
        Some(lost),
        "[STATE-2] a late result took the place of the outcome"
    );
    assert!(payload.late.is_some(), "[LEASE-7] the late result is not kept");
}

pub(super) async fn what_a_peer_says_after_it_has_stopped_is_kept(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    submit(store, one(0, |_| {})).await;
    let Some(claimed) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
    update(store, START, attempt(&claimed, Change::Start, false)).await;
    let ask = Change::RequestCancel { reason: None };
    update(store, at(5), Update { fence: None, ..attempt(&claimed, ask, false) }).await;
    update(store, at(6), attempt(&claimed, Change::Stop, true)).await;
    let (record, _) = task(store, 0).await;
    assert_eq!((record.state, record.has_stopped), (State::Cancelled, true), "[CANCEL-2]");
    for is_late in [true, false] {
        let verdict = update(store, at(7), attempt(&claimed, done("late"), false)).await;
        assert_eq!(matches!(verdict, UpdateResult::Late(_)), is_late, "[LEASE-7] got {verdict:?}");
    }
    let (record, payload) = task(store, 0).await;
    assert_eq!((record.state, record.has_stopped), (State::Cancelled, true), "[STATE-2]");
    assert!(payload.late.is_some(), "[LEASE-7] the late result is not kept");
}

pub(super) async fn a_stale_attempt_changes_nothing(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    submit(store, one(0, |_| {})).await;
    let Some(first) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
    update(store, START, attempt(&first, Change::Undeliver, true)).await;
    let Some(second) = claim(store, 1).await.pop() else { panic!("nothing was leased again") };
    assert!(second.record.fence > first.record.fence, "[LEASE-1] fences grow");
    assert_eq!(second.record.attempt, 1, "an attempt that was not delivered is not spent");
    let stale = update(store, START, attempt(&first, done("old"), true)).await;
    assert!(matches!(stale, UpdateResult::Refused(..)), "[LEASE-1] got {stale:?}");
    assert_eq!(task(store, 0).await.0.state, State::Scheduled, "[LEASE-1] an old attempt's word");
}

pub(super) async fn a_foreign_scope_sees_nothing(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    submit(store, one(0, |_| {})).await;
    let other = Scope::new("other");
    let found = must(store.find(&other, id(0)).await);
    assert!(matches!(found, Found::Absent), "[SCOPE-2] found {found:?}");
    let page = must(store.list(&other, &Filter::default(), None, 99).await);
    assert!(page.items.is_empty(), "[SCOPE-2] listed {:?}", page.items);
    let foreign = Update { scope: Some(other), ..cancel(0) };
    let verdict = update(store, START, foreign).await;
    assert!(matches!(verdict, UpdateResult::Absent), "[SCOPE-2] a foreign cancel: {verdict:?}");
    assert_eq!(task(store, 0).await.0.state, State::Queued, "[SCOPE-2] it was touched");
}

pub(super) async fn deadlines_fire_and_heartbeats_hold_them_off(store: &dyn TaskStore) {
    open(store, 2, 100).await;
    for n in 0..2 {
        submit(store, one(n, |_| {})).await;
    }
    let claimed = claim(store, 2).await;
    for one in &claimed {
        update(store, START, attempt(one, Change::Start, false)).await;
    }
    let Some(alive) = claimed.first() else { panic!("nothing was leased") };
    let beat = Heartbeat {
        id: alive.record.id(),
        fence: alive.record.fence,
        progress: None,
        partial: None,
    };
    let told = must(store.heartbeat(at(20), vec![beat]).await);
    assert_eq!(told, [HeartbeatReply::Continue], "[LEASE-2] a heartbeat");
    let posted = must(store.fire(at(31), 100).await);
    assert!(posted.value.is_some_and(|next| next > at(31)), "no further deadline is armed");
    assert_eq!(task(store, 0).await.0.state, State::Running, "[LEASE-2] the one that was heard");
    let (lost, payload) = task(store, 1).await;
    assert_eq!(lost.failure, Some(Kind::WorkerLost), "[LEASE-2] the one that was not");
    assert!(matches!(payload.outcome, Some(Outcome::Failed(_))), "[LEASE-3] its outcome");
}

pub(super) async fn limits_of_attempts_can_be_moved(store: &dyn TaskStore) {
    open(store, 2, 100).await;
    submit(store, one(0, |_| {})).await;
    let claimed = claim(store, 1).await;
    let Some(only) = claimed.first() else { panic!("nothing was leased") };
    update(store, START, attempt(only, Change::Start, false)).await;
    let (before, _) = task(store, 0).await;
    let by = Duration::from_secs(3_600);
    let posted = must(store.extend_deadlines(at(3_600), by).await);
    must(posted.receipt.committed().await);
    assert_eq!(posted.value, 1, "[LEASE-8] one task has a limit");
    let (after, _) = task(store, 0).await;
    let run = |row: &TaskRecord| row.deadlines.get(Deadline::Run);
    assert_eq!(run(&after), run(&before).map(|at| at + by), "[LEASE-8] the run limit");
    must(must(store.fire(at(3_601), 100).await).receipt.committed().await);
    assert_eq!(task(store, 0).await.0.state, State::Running, "[LEASE-8] nothing is judged by it");
    must(must(store.fire(at(3_631), 100).await).receipt.committed().await);
    assert_eq!(task(store, 0).await.0.failure, Some(Kind::WorkerLost), "[LEASE-8] a whole lease");
}

pub(super) async fn a_held_lane_keeps_its_order(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    for n in 0..2 {
        submit(store, one(n, |_| {})).await;
    }
    let hold = |hold| store.hold(START, LANE.into(), hold);
    assert_eq!(must(hold(Some(WaitReason::new("compiling"))).await).value, 2, "[QUEUE-5] held");
    submit(store, one(2, |_| {})).await;
    let (record, _) = task(store, 2).await;
    assert_eq!(
        (record.state, record.waiting),
        (State::Waiting, Some(WaitReason::new("compiling"))),
        "[QUEUE-5]"
    );
    assert!(claim(store, 9).await.is_empty(), "[QUEUE-5] a held lane was leased from");
    assert_eq!(must(hold(None).await).value, 3, "[QUEUE-5] resumed");
    let next = claim(store, 1).await.pop().map(|claimed| claimed.record.id());
    assert_eq!(next, Some(id(0)), "[QUEUE-5] it resumes in order");
}

pub(super) async fn an_expired_task_is_a_tombstone_then_nothing(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    submit(store, one(0, |task| task.limits.retention = Duration::from_secs(1))).await;
    let Some(claimed) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
    update(store, START, attempt(&claimed, done("x"), true)).await;
    must(must(store.fire(at(2), 100).await).receipt.committed().await);
    let found = must(store.find(&Scope::local(), id(0)).await);
    assert!(matches!(found, Found::Tombstone(_)), "[TIME-5] found {found:?}");
    let day = Duration::from_secs(25 * 3600);
    let swept = must(store.sweep(at(2) + day, 100).await);
    assert_eq!(swept, [id(0)], "[SWEEP-1] what was forgotten");
    let found = must(store.find(&Scope::local(), id(0)).await);
    assert!(matches!(found, Found::Absent), "[SWEEP-1] found {found:?}");
}

pub(super) async fn what_no_row_knows_is_told_whoever_asks(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    for n in 0..3 {
        submit(store, one(n, |task| task.scope = Scope::new(format!("owner {n}")))).await;
    }
    // One has ended and is not read any more, one is under way.
    let Some(first) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
    update(store, START, attempt(&first, done("x"), true)).await;
    must(must(store.fire(at(1_000_000), 100).await).receipt.committed().await);
    let asked: Vec<TaskId> = (0..6).map(id).collect();
    assert_eq!(must(store.unknown(asked).await), [id(3), id(4), id(5)], "[SWEEP-1]");
}

pub(super) async fn an_artifact_is_found_by_its_id_as_long_as_its_task_is_read(
    store: &dyn TaskStore,
) {
    open(store, 1, 100).await;
    for n in 0..2 {
        submit(store, one(n, |task| task.limits.retention = Duration::from_secs(1 + n))).await;
        let Some(claimed) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
        let artifacts = vec![artifact(n, "a"), artifact(n, "b")];
        let report = Some(Box::new(AttemptReport { artifacts, ..AttemptReport::default() }));
        update(store, START, Update { report, ..attempt(&claimed, done("x"), true) }).await;
    }
    let find = async |n: u64, name| must(store.artifact(&artifact(n, name).id).await);
    assert_eq!(find(0, "b").await, Some((id(0), artifact(0, "b"))), "[ART-2]");
    assert_eq!(find(1, "a").await, Some((id(1), artifact(1, "a"))), "[ART-2]");
    assert_eq!(find(7, "a").await, None, "[ART-2] one that nobody left");
    must(must(store.fire(at(1), 100).await).receipt.committed().await);
    assert_eq!(find(0, "a").await, None, "[ART-2] after the retention");
    assert_eq!(find(1, "b").await, Some((id(1), artifact(1, "b"))), "[ART-2] of another task");
}

fn artifact(n: u64, name: &str) -> Artifact {
    Artifact {
        id: format!("art_{n}{name}").into(),
        name: name.into(),
        kind: "file".into(),
        size: n,
        sha256: "00".into(),
        path: format!("artifacts/art_{n}{name}").into(),
    }
}

pub(super) async fn a_failed_attempt_is_retried_by_policy(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    let policy = retry::Policy {
        max_attempts: 2,
        backoff: Duration::from_secs(4),
        on: vec![Kind::ToolFailed],
    };
    submit(store, one(0, |task| task.retry = policy)).await;
    for number in 1..=2 {
        let Some(claimed) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
        assert_eq!(claimed.record.attempt, number, "[RETRY-1] the attempt's number");
        let failure = Change::Finish(Outcome::Failed(Error::new(Kind::ToolFailed, "no")));
        update(store, START, attempt(&claimed, failure, true)).await;
        if number == 1 {
            assert_eq!(task(store, 0).await.0.state, State::Waiting, "[RETRY-1] it pauses");
            must(must(store.fire(at(5), 100).await).receipt.committed().await);
        }
    }
    let (record, payload) = task(store, 0).await;
    assert_eq!((record.state, payload.attempts.len()), (State::Failed, 2), "[RETRY-1] attempts");
}

pub(super) async fn an_end_between_attempts_is_no_attempt(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    let policy = retry::Policy {
        max_attempts: 2,
        backoff: Duration::from_secs(4),
        on: vec![Kind::ToolFailed],
    };
    for n in 0..3 {
        submit(store, one(n, |task| task.retry = policy.clone())).await;
        let Some(claimed) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
        let failure = Change::Finish(Outcome::Failed(Error::new(Kind::ToolFailed, "no")));
        update(store, START, attempt(&claimed, failure, true)).await;
    }
    update(store, START, cancel(0)).await;
    must(must(store.fire(at(5), 100).await).receipt.committed().await);
    update(store, at(5), cancel(1)).await;
    for n in 0..2 {
        let (record, payload) = task(store, n).await;
        let ends: Vec<_> = payload.attempts.iter().map(|attempt| attempt.ended).collect();
        assert_eq!((record.state, ends), (State::Cancelled, vec!["retried"]), "[RETRY-1] task {n}");
    }
    let days = Duration::from_secs(2 * 24 * 3600);
    must(must(store.fire(at(5) + days, 100).await).receipt.committed().await);
    let (record, _) = task(store, 2).await;
    let end = (record.state, record.failure);
    assert_eq!(end, (State::Failed, Some(Kind::QueueTimeout)), "[STATE-5] its time in line");
}

pub(super) async fn an_end_that_is_recorded_late_is_when_it_was(store: &dyn TaskStore) {
    open(store, 3, 100).await;
    let (early, began) = (START + Duration::from_secs(60), START);
    let late = START + Duration::from_secs(3_600);
    // What is told of an instant before the start, or after the record, is taken as far as it can be.
    let cases = [(early, early), (Timestamp::MIN, began), (late + Duration::from_secs(9), late)];
    for (n, (told, kept)) in (0..).zip(cases) {
        submit(store, one(n, |_| {})).await;
        let Some(claimed) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
        let start = Update::attempt(claimed.record.id(), claimed.record.fence, Change::Start);
        update(store, START, start).await;
        let end = Update { ended_at: Some(told), ..attempt(&claimed, done("x"), true) };
        update(store, late, end).await;
        let (record, details) = task(store, n).await;
        assert_eq!((record.ended_at, record.updated_at), (Some(kept), late), "[TIME-5] case {n}");
        let attempt = details.attempts.first().map(|one| one.ended_at);
        assert_eq!(attempt, Some(kept), "[TIME-5] case {n}");
        assert_eq!(details.events.last().map(|event| event.at), Some(late), "[STATE-4] case {n}");
    }
}

pub(super) async fn a_report_after_the_last_word_is_not_kept(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    submit(store, one(0, |_| {})).await;
    let Some(claimed) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
    let end = || Update {
        report: Some(Box::new(AttemptReport {
            artifacts: vec![artifact(1, "a")],
            ..AttemptReport::default()
        })),
        ..attempt(&claimed, done("x"), false)
    };
    update(store, START, end()).await;
    let before = task(store, 0).await;
    let again = update(store, START, end()).await;
    assert!(matches!(again, UpdateResult::Refused(..)), "[LEASE-6] got {again:?}");
    let partial = Some(must(Json::parse("[1]")));
    let beat = Heartbeat { id: id(0), fence: claimed.record.fence, progress: None, partial };
    let told = must(store.heartbeat(START, vec![beat]).await);
    assert_eq!(told, [HeartbeatReply::Lost], "a heartbeat of what has ended");
    let after = task(store, 0).await;
    assert_eq!(after.1, before.1, "[RESULT-1] an ended task reads as before");
}

pub(super) async fn a_dead_attempt_leaves_nothing_to_the_next(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    let lost = one(0, |task| {
        task.is_idempotent = true;
        task.retry.max_attempts = 2;
    });
    submit(store, lost).await;
    let Some(first) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
    update(store, START, attempt(&first, Change::Start, false)).await;
    must(must(store.fire(at(31), 100).await).receipt.committed().await);
    let metrics = Some(Metrics { wall_ms: 7, ..Metrics::default() });
    let report =
        AttemptReport { metrics, artifacts: vec![artifact(1, "a")], ..AttemptReport::default() };
    let late = Update { report: Some(Box::new(report)), ..attempt(&first, done("late"), true) };
    let verdict = update(store, at(32), late).await;
    assert!(matches!(verdict, UpdateResult::Refused(..)), "[LEASE-1] got {verdict:?}");
    must(must(store.fire(at(60), 100).await).receipt.committed().await);
    let Some(second) = claim(store, 1).await.pop() else { panic!("nothing was leased again") };
    update(store, at(60), attempt(&second, done("x"), true)).await;
    let (_, payload) = task(store, 0).await;
    let used: Vec<_> = payload.attempts.iter().map(|one| one.metrics.is_some()).collect();
    assert_eq!(used, [false, false], "[RESULT-1] what another attempt used");
    assert!(payload.artifacts.is_empty(), "[DUR-2] an artifact without its outcome");
}

pub(super) async fn a_history_is_one_chain(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    submit(store, one(0, |_| {})).await;
    let Some(claimed) = claim(store, 1).await.pop() else { panic!("nothing was leased") };
    update(store, START, attempt(&claimed, Change::Start, false)).await;
    update(store, START, cancel(0)).await;
    update(store, START, attempt(&claimed, Change::CommitCancel, false)).await;
    update(store, START, attempt(&claimed, Change::Finish(Outcome::Cancelled), true)).await;
    let (_, payload) = task(store, 0).await;
    let first = payload.events.first().map(|event| (event.cause, event.from));
    assert_eq!(first, Some((Cause::Received, None)), "[STATE-6] how it begins");
    for (n, pair) in payload.events.windows(2).enumerate() {
        let [one, two] = pair else { continue };
        assert_eq!(two.from, Some(one.to), "[STATE-4] entry {n}");
        assert_eq!(two.seq, one.seq + 1, "[STATE-4] entry {n}");
    }
    let last = payload.events.last().map(|event| event.to);
    assert_eq!((last, payload.events.len()), (Some(State::Cancelled), 6), "[STATE-4] entries");
}

pub(super) async fn a_history_is_read_by_its_owner_until_retention_is_over(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    submit(store, one(0, |task| task.limits.retention = Duration::from_secs(1))).await;
    let events =
        |scope: &'static str| async move { must(store.events(&Scope::new(scope), id(0)).await) };
    let states = |events: Option<Vec<TaskEvent>>| -> Vec<State> {
        events.unwrap_or_default().iter().map(|event| event.to).collect()
    };
    assert_eq!(states(events(Scope::LOCAL).await), [State::Queued], "[STATE-6] a live task");
    assert_eq!(events("other").await, None, "[SCOPE-2] another scope's");
    update(store, START, cancel(0)).await;
    let (_, payload) = task(store, 0).await;
    let history = events(Scope::LOCAL).await;
    assert_eq!(history.as_ref(), Some(&payload.events), "[STATE-4] the same history");
    assert_eq!(states(history), [State::Queued, State::Cancelled], "[STATE-4] an ended task");
    must(must(store.fire(at(2), 100).await).receipt.committed().await);
    assert_eq!(events(Scope::LOCAL).await, Some(Vec::new()), "[TIME-5] a tombstone");
    assert_eq!(must(store.events(&Scope::local(), id(9)).await), None, "[SCOPE-2] no task");
}

pub(super) async fn lists_page_without_gap_or_repeat(store: &dyn TaskStore) {
    open(store, 1, 100).await;
    for n in 0..10 {
        submit(store, one(n, |task| task.tags = vec![format!("n:{}", n % 2).into()])).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = must(store.list(&Scope::local(), &Filter::default(), cursor, 3).await);
        cursor = page.items.last().map(|record| Cursor(record.seq));
        seen.extend(page.items.iter().map(TaskRecord::id));
        if !page.has_more {
            break;
        }
        // What comes meanwhile is newer than every page and shifts none.
        submit(store, one(10 + seen.len() as u64, |_| ())).await;
    }
    assert!(seen.iter().copied().eq((0..10).rev().map(id)), "listed {seen:?}");
    let odd = Filter { tags_any: vec!["n:1".into()], ..Filter::default() };
    let page = must(store.list(&Scope::local(), &odd, None, 99).await);
    assert_eq!(page.items.len(), 5, "by tag");
}

/// A request that an attempt may make of its caller.
fn question(n: u32) -> Json {
    must(Json::parse(format!("{{\"method\":\"m\",\"params\":{n}}}")))
}

fn ask(key: &str, n: u32) -> Change {
    ask_beside(key, n, "")
}

fn ask_beside(key: &str, n: u32, beside: &str) -> Change {
    let request = InputRequest { key: key.into(), request: question(n) };
    Change::AskInput { request, beside: OpenInputs::read(beside) }
}

/// What a caller of a scope answers to task 1.
fn answer(scope: &str, key: &str, n: u32) -> Update {
    let change = Change::GiveInput { key: key.into(), response: must(Json::of(&n)) };
    Update {
        scope: Some(Scope::new(scope)),
        fence: None,
        ..Update::attempt(id(1), Fence::NONE, change)
    }
}

/// Runs task 1 until it asks `a`.
async fn asking(store: &dyn TaskStore) -> Claimed {
    open(store, 1, 10).await;
    submit(store, one(1, |_| {})).await;
    let claimed = must(claim(store, 1).await.pop().ok_or("no lease"));
    for change in [Change::Start, ask("a", 1)] {
        update(store, START, attempt(&claimed, change, false)).await;
    }
    claimed
}

fn input(key: &str, n: u32, response: Option<u32>) -> Input {
    let response = response.map(|response| must(Json::of(&response)));
    Input { key: key.into(), request: question(n), response }
}

pub(super) async fn an_answer_is_taken_from_the_owner_and_for_what_is_asked(store: &dyn TaskStore) {
    asking(store).await;
    let (record, details) = task(store, 1).await;
    assert_eq!((record.state, record.asks.as_str()), (State::InputRequired, Some("a")));
    assert_eq!(details.asked, vec![input("a", 1, None)], "[TASKS-6]");
    let foreign = update(store, START, answer("other", "a", 9)).await;
    assert!(matches!(foreign, UpdateResult::Absent), "[SCOPE-2] {foreign:?}");
    let other = update(store, START, answer("local", "b", 9)).await;
    assert!(matches!(other, UpdateResult::Refused(..)), "[TASKS-6] {other:?}");
    let given = update(store, START, answer("local", "a", 7)).await;
    assert!(matches!(given, UpdateResult::Moved(_)), "[TASKS-6] {given:?}");
}

pub(super) async fn questions_and_answers_are_kept_with_their_task(store: &dyn TaskStore) {
    let claimed = asking(store).await;
    update(store, START, answer("local", "a", 7)).await;
    for change in [ask("a", 2), ask("b", 3)] {
        update(store, START, attempt(&claimed, change, false)).await;
    }
    let (record, details) = task(store, 1).await;
    assert_eq!(record.asks.as_str(), Some("b"), "[TASKS-6] the newest is open");
    let kept = [input("a", 1, Some(7)), input("b", 3, None)];
    assert_eq!(details.asked, kept, "[TASKS-6]");
    update(store, START, attempt(&claimed, ask_beside("c", 4, "b"), false)).await;
    let (record, _) = task(store, 1).await;
    assert_eq!(record.asks.as_str(), Some("b c"), "[TASKS-6] both are open");
    let part = update(store, START, answer("local", "b", 8)).await;
    assert!(matches!(part, UpdateResult::Same(_)), "[TASKS-6] {part:?}");
    let (record, details) = task(store, 1).await;
    assert_eq!((record.state, record.asks.as_str()), (State::InputRequired, Some("c")));
    let kept = [input("a", 1, Some(7)), input("b", 3, Some(8)), input("c", 4, None)];
    assert_eq!(details.asked, kept, "[TASKS-6]");
}
