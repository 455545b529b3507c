//! What is still there after a restart.

use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::decide::Change;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_core::progress::Progress;
use raincheck_core::retry;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    AttemptReport, Filter, Found, Heartbeat, Submitted, TaskStore as _, Update,
};
use raincheck_core::task::{Artifact, Metrics, Outcome, Resources, WaitReason};
use raincheck_store_sqlite::{Options, SqliteStore};

use crate::kit::*;

#[tokio::test]
async fn the_queue_keeps_its_order() {
    // [DUR-3]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    for (n, priority) in [0, -5, 10, 0, 10].into_iter().enumerate() {
        submit(&store, one(n as u64, |task| task.priority = priority)).await;
    }
    drop(store);
    let (store, survivors) = open(folder.path()).await;
    assert!(survivors.is_empty(), "nothing ran");
    let mut order = Vec::new();
    while let Some(next) = claim(&store).await {
        order.push((next.record.id(), next.inputs.get().to_owned()));
        update(&store, attempt(&next, done("x"))).await;
    }
    let expected = [2, 4, 0, 3, 1].map(|n| (id(n), format!("{{\"n\":{n}.0}}")));
    assert_eq!(order, expected);
}

#[tokio::test]
async fn a_key_still_stands_for_its_task() {
    // [IDEM-1, IDEM-2]
    let folder = tempfile::tempdir().expect("a folder");
    let keyed = |n, hash| {
        one(n, |task| {
            task.key = Some("key".into());
            task.inputs_hash = hash;
        })
    };
    let (store, _) = open(folder.path()).await;
    submit(&store, keyed(0, u128::MAX - 1)).await;
    drop(store);
    let (store, _) = open(folder.path()).await;
    let same = submit(&store, keyed(1, u128::MAX - 1)).await;
    assert!(matches!(same, Submitted::Existing(record) if record.id() == id(0)));
    let other = submit(&store, keyed(2, 1)).await;
    assert!(matches!(other, Submitted::Conflict(first) if first == id(0)));
}

#[tokio::test]
async fn the_key_of_a_file_is_drawn_once_and_is_no_other_files() {
    // [CALL-8]
    let folder = tempfile::tempdir().expect("a folder");
    let unopened = SqliteStore::new(Options::process(folder.path().join("tasks.db")));
    assert_eq!(unopened.mac_key(), None);
    let mut keys = Vec::new();
    for _ in 0..2 {
        let (store, _) = open(folder.path()).await;
        keys.push(store.mac_key().expect("a key"));
    }
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[0].as_bytes(), &[0; 32]);
    let other = tempfile::tempdir().expect("a folder");
    assert_ne!(open(other.path()).await.0.mac_key().as_ref(), keys.first());
}

#[tokio::test]
async fn every_field_of_a_task_comes_back_as_it_was() {
    // [RESULT-1]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    submit(&store, one(0, full_of_wishes)).await;
    let first = claim(&store).await.expect("work");
    let failure = Error::new(Kind::ToolFailed, "no")
        .with_guarantee(Guarantee::Unknown)
        .with_details(Json::parse(r#"{"b":1.0,"a":[]}"#).expect("JSON"));
    let mut failed = attempt(&first, Change::Finish(Outcome::Failed(failure)));
    failed.report = Some(Box::new(AttemptReport {
        metrics: Some(Metrics { wall_ms: 5, cpu_ms: Some(3), peak_memory_bytes: None }),
        ..AttemptReport::default()
    }));
    update(&store, failed).await;
    let fired = store.fire(at(60), 10).await.expect("the pause is over");
    fired.receipt.committed().await.expect("its commit");
    let second = claim(&store).await.expect("the next attempt");
    let (record, fence) = (second.record.id(), second.record.fence);
    update(&store, Update::attempt(record, fence, Change::Start)).await;
    let progress = Progress { percent: Some(12.5), ..Progress::default() };
    let partial = Json::parse("[1.0]").expect("JSON");
    let beat = Heartbeat { id: record, fence, progress: Some(progress), partial: Some(partial) };
    store.heartbeat(START, vec![beat]).await.expect("a heartbeat");
    update(&store, cancel(0)).await;
    let mut end = attempt(&second, odd_result());
    end.report =
        Some(Box::new(AttemptReport { artifacts: artifacts(), ..AttemptReport::default() }));
    update(&store, end).await;
    let before = task(&store, 0).await;
    assert_eq!(before.0.state, State::Succeeded);
    assert_eq!(before.1.attempts.len(), 2, "both attempts are listed");
    assert_eq!(before.1.artifacts.len(), 2, "in the order in which they came");
    assert!(before.1.progress.is_some() && before.1.partial.is_some());
    drop(store);
    let (store, _) = open(folder.path()).await;
    assert_eq!(task(&store, 0).await, before);
}

fn full_of_wishes(task: &mut raincheck_core::task::Task) {
    task.tags = vec!["a:b".into(), "é".into()];
    task.limits.run_timeout = Some(Duration::from_nanos(7_000_000_001));
    task.limits.retention = Duration::MAX;
    task.resources = Resources { cpu_milli: Some(1_500), memory_mb: Some(512), scratch_mb: None };
    task.retry = retry::Policy {
        max_attempts: 3,
        backoff: Duration::from_millis(1_500),
        on: vec![Kind::ToolFailed],
    };
    task.is_idempotent = true;
}

fn odd_result() -> Change {
    let odd = r#"{"z":1.0,"a":1e2,"big":123456789012345678901234567890,"e":"\u00e9\/é"}"#;
    Change::Finish(Outcome::Succeeded(vec![
        Content::Json(Json::parse(odd).expect("JSON")),
        Content::Binary { mime: "image/png".into(), data: vec![0, 255].into() },
    ]))
}

fn artifacts() -> Vec<Artifact> {
    let artifact = |name: &str| Artifact {
        id: name.into(),
        name: name.into(),
        kind: "text".into(),
        size: u64::MAX >> 1,
        sha256: "00".into(),
        path: format!("files/{name}").into(),
    };
    vec![artifact("z"), artifact("a")]
}

#[tokio::test]
async fn an_attempt_that_may_still_run_is_offered_for_adoption() {
    // [DUR-3, LEASE-1, QUEUE-6]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    for n in 0..4 {
        submit(&store, one(n, |task| task.limits.run_timeout = Some(Duration::from_secs(1)))).await;
    }
    let running = claim(&store).await.expect("work");
    update(&store, Update::attempt(running.record.id(), running.record.fence, Change::Start)).await;
    drop(store);
    // Its limits passed while nobody looked: it is heard first all the same [TIME-6].
    let (store, survivors) = open_at(folder.path(), at(3_600)).await.expect("it opens");
    let [survivor] = survivors.as_slice() else { panic!("{survivors:?}") };
    assert_eq!((survivor.record.id(), survivor.record.fence), (id(0), running.record.fence));
    assert_eq!(survivor.inputs, running.inputs);
    let fired = store.fire(at(3_605), 100).await.expect("deadlines");
    fired.receipt.committed().await.expect("their commit");
    assert_eq!(task(&store, 0).await.0.state, State::Running, "within the grace");
    let next = claim(&store).await.expect("one place is free");
    assert!(claim(&store).await.is_none(), "the other one is still taken");
    assert!(next.record.fence.raw() >> 32 > running.record.fence.raw() >> 32, "a new epoch");
    update(&store, attempt(&running, done("late but heard"))).await;
    assert_eq!(task(&store, 0).await.0.state, State::Succeeded);
}

#[tokio::test]
async fn a_place_outlives_its_task_across_a_restart() {
    // [QUEUE-6]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    for n in 0..3 {
        submit(&store, one(n, |_| {})).await;
    }
    let first = claim(&store).await.expect("work");
    let mut end = attempt(&first, done("x"));
    end.releases = false;
    update(&store, end).await;
    drop(store);
    let (store, _) = open(folder.path()).await;
    assert!(claim(&store).await.is_some());
    assert!(claim(&store).await.is_none(), "one of two places is held by what has ended");
    let slots = vec![(first.record.id(), first.record.fence)];
    let released = store.release(START, slots).await.expect("a release");
    released.receipt.committed().await.expect("its commit");
    assert!(claim(&store).await.is_some());
}

#[tokio::test]
async fn a_tombstone_stays_one_and_then_nothing_is_left() {
    // [TIME-5, SWEEP-1]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    submit(&store, one(0, |task| task.limits.retention = Duration::from_secs(1))).await;
    let claimed = claim(&store).await.expect("work");
    update(&store, attempt(&claimed, done("x"))).await;
    store.fire(at(2), 10).await.expect("its end").receipt.committed().await.expect("a commit");
    drop(store);
    let (store, _) = open_at(folder.path(), at(3)).await.expect("it opens");
    assert!(matches!(find(&store, 0).await, Found::Tombstone(_)));
    let day = Duration::from_secs(25 * 3600);
    assert_eq!(store.sweep(at(3) + day, 10).await.expect("a sweep"), [id(0)]);
    drop(store);
    let (store, _) = open_at(folder.path(), at(4)).await.expect("it opens");
    assert!(matches!(find(&store, 0).await, Found::Absent));
    let Submitted::Inserted { record, .. } = submit(&store, one(1, |_| {})).await else {
        panic!("not accepted")
    };
    assert_eq!(record.seq, 2, "a place in the order of acceptance is never given twice");
}

#[tokio::test]
async fn a_wait_and_a_list_go_on_where_they_were() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    let mut waits = one(0, |task| task.limits.ready = Duration::from_secs(9));
    waits.waiting = Some(WaitReason::new("compiling"));
    submit(&store, waits).await;
    submit(&store, one(1, |task| task.scope = Scope::new("other"))).await;
    let before = task(&store, 0).await;
    drop(store);
    let (store, _) = open(folder.path()).await;
    assert_eq!(task(&store, 0).await, before);
    let page = store.list(&Scope::local(), &Filter::default(), None, 9).await.expect("a list");
    assert_eq!(page.items, [before.0]);
    store.fire(at(10), 10).await.expect("deadlines").receipt.committed().await.expect("a commit");
    assert_eq!(task(&store, 0).await.0.failure, Some(Kind::PeerNotReady));
}

#[tokio::test]
async fn a_reason_to_wait_that_only_its_bridge_knows_outlives_a_restart() {
    // [QUEUE-5]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    let warming_up = WaitReason::new("warming_up_gpu_0");
    let held = store.hold(START, LANE.into(), Some(warming_up.clone())).await.expect("a hold");
    held.receipt.committed().await.expect("its commit");
    submit(&store, one(0, |task| task.limits.ready_is_accept = true)).await;
    assert_eq!(store.lanes().await.expect("lanes")[0].held, Some(warming_up.clone()));
    let before = task(&store, 0).await;
    drop(store);
    let (store, _) = open(folder.path()).await;
    assert_eq!(task(&store, 0).await, before, "with its limits");
    let status = store.status(&Scope::local(), id(0)).await.expect("a read").expect("a task");
    assert_eq!((status.record.state, status.record.waiting), (State::Waiting, Some(warming_up)));
    store.fire(at(50), 10).await.expect("deadlines").receipt.committed().await.expect("a commit");
    let (record, details) = task(&store, 0).await;
    assert_eq!(record.failure, Some(Kind::AcceptTimeout));
    let Some(Outcome::Failed(error)) = &details.outcome else { panic!("{details:?}") };
    assert!(error.message.contains("warming_up_gpu_0"), "{error}");
}
