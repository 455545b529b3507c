//! Commits that fail.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use raincheck_core::content::{Content, Json};
use raincheck_core::decide::Change;
use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_core::progress::Progress;
use raincheck_core::retry::Policy;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    ChangeSink, Claim, Filter, Found, Heartbeat, Submit, Submitted, TaskStore as _, Update,
    UpdateResult,
};
use raincheck_core::task::{Limits, Outcome, Resources, Task};

use super::*;
use crate::{Options, SqliteStore};

/// Lets commits fail: none until told, then one or more after a few good ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    good: Arc<AtomicU32>,
    bad: Arc<AtomicU32>,
}

impl Faults {
    pub(crate) fn pass(&self) -> Result<(), Fault> {
        let take = |left: &AtomicU32| {
            left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1)).is_ok()
        };
        if !take(&self.good) && take(&self.bad) {
            return Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into());
        }
        Ok(())
    }

    fn fail(&self, after: u32, n: u32) {
        self.good.store(after, Ordering::Release);
        self.bad.store(n, Ordering::Release);
    }
}

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

/// Remembers what it was told.
#[derive(Default)]
struct Witness(Mutex<Vec<TaskRecord>>);

impl Witness {
    fn saw(&self, id: TaskId) -> bool {
        self.0.lock().expect("no panic before").iter().any(|row| row.id() == id)
    }
}

impl ChangeSink for Witness {
    fn changed(&self, rows: &[TaskRecord]) {
        self.0.lock().expect("no panic before").extend_from_slice(rows);
    }
}

async fn open(folder: &std::path::Path) -> (SqliteStore, Arc<Witness>) {
    let store = SqliteStore::new(Options::full(folder.join("tasks.db")));
    let sink = Arc::new(Witness::default());
    let lanes = vec![("lane".into(), lane::Config::new(9, 99))];
    let told = Arc::clone(&sink);
    store.open(NOW, lanes, Duration::from_secs(10), told).await.expect("it opens");
    (store, sink)
}

fn id(n: u64) -> TaskId {
    TaskId::from_parts(n, [1; 10])
}

fn one(n: u64) -> Submit {
    let task = Task {
        id: id(n),
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
    Submit { task, inputs: Json::empty_object(), waiting: None, is_inline: false, is_known: false }
}

/// Submits, and tells whether it was acknowledged.
async fn submit(store: &SqliteStore, n: u64) -> Result<(), Error> {
    let posted = store.submit(NOW, vec![one(n)], None).await?;
    posted.receipt.committed().await?;
    assert!(matches!(posted.value.0.as_slice(), [Submitted::Inserted { .. }]), "task {n}");
    Ok(())
}

async fn lease(store: &SqliteStore) -> Result<Claimed, Error> {
    let posted = store.claim(NOW, Claim { lanes: vec!["lane".into()], n: 1 }).await?;
    posted.receipt.committed().await?;
    Ok(posted.value.into_iter().next().expect("work"))
}

async fn finish(store: &SqliteStore, claimed: &Claimed) -> Result<UpdateResult, Error> {
    let done = Change::Finish(Outcome::Succeeded(vec![Content::Text("done".into())]));
    let update = Update::attempt(claimed.record.id(), claimed.record.fence, done);
    let posted = store.update(NOW, vec![update], None).await?;
    posted.receipt.committed().await?;
    Ok(posted.value.0.into_iter().next().expect("a verdict"))
}

/// Asks until the store is back.
async fn recover(store: &SqliteStore) {
    while store.set_lane("other".into(), lane::Config::new(1, 1)).await.is_err() {
        tokio::task::yield_now().await;
    }
}

async fn state(store: &SqliteStore, n: u64) -> Option<State> {
    match store.find(&Scope::local(), id(n)).await.expect("a find") {
        Found::Task(row, _) | Found::Tombstone(row) => Some(row.state),
        Found::Absent => None,
    }
}

#[tokio::test]
async fn a_failed_commit_is_told_and_what_was_in_it_never_was() {
    // [DUR-1, DUR-5]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, sink) = open(folder.path()).await;
    submit(&store, 1).await.expect("a good disk");
    let running = lease(&store).await.expect("a good disk");
    store.faults.fail(0, 1);
    let error = submit(&store, 2).await.expect_err("a full disk");
    assert_eq!(error.to_string(), "the disk is full");
    assert!(submit(&store, 3).await.is_err(), "nothing is accepted meanwhile");
    recover(&store).await;
    let error = store.find(&Scope::local(), id(2)).await.expect_err("it is lost");
    assert_eq!(error.to_string(), "the disk is full");
    let foreign = store.find(&Scope::new("other"), id(2)).await.expect("a find");
    assert!(matches!(foreign, Found::Absent), "[SCOPE-2]: {foreign:?}");
    assert!(!sink.saw(id(2)), "it was told to somebody");
    submit(&store, 2).await.expect("it may come again");
    let next = lease(&store).await.expect("work");
    assert!(
        next.record.fence.raw() >> 32 > running.record.fence.raw() >> 32,
        "a new epoch [LEASE-1]"
    );
    let verdict = finish(&store, &running).await.expect("a good disk");
    assert!(matches!(verdict, UpdateResult::Moved(_)), "a committed lease goes on: {verdict:?}");
}

#[tokio::test]
async fn a_store_that_stays_full_answers_and_comes_back_later() {
    // [DUR-5]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    submit(&store, 1).await.expect("a good disk");
    store.faults.fail(0, 20);
    for n in 2..12 {
        assert!(submit(&store, n).await.is_err(), "task {n}");
        assert_eq!(state(&store, 1).await, Some(State::Queued), "what is committed can be read");
        let page = store.list(&Scope::local(), &Filter::default(), None, 9).await.expect("a list");
        let listed: Vec<_> = page.items.iter().map(TaskRecord::id).collect();
        assert_eq!(listed, [id(1)], "and nothing else is");
        let lanes = store.lanes().await.expect("the lanes");
        assert_eq!(lanes.first().map(|lane| lane.queued), Some(1));
        assert!(store.barrier().committed().await.is_err(), "the rest is lost, not committed");
        tokio::task::yield_now().await;
    }
    recover(&store).await;
    assert_eq!(state(&store, 1).await, Some(State::Queued));
    submit(&store, 99).await.expect("there is room again");
    assert_eq!(state(&store, 99).await, Some(State::Queued));
}

#[tokio::test]
async fn a_read_of_a_change_that_is_lost_shows_what_was_before() {
    // [DUR-1, DUR-5]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    submit(&store, 1).await.expect("a good disk");
    store.faults.fail(0, 1);
    let claim = Claim { lanes: vec!["lane".into()], n: 1 };
    let (leased, seen) = tokio::join!(store.claim(NOW, claim), state(&store, 1));
    let receipt = leased.expect("decided").receipt;
    assert!(receipt.committed().await.is_err());
    assert_eq!(seen, Some(State::Queued));
}

#[tokio::test]
async fn a_call_whose_task_is_lost_is_told_so() {
    // [DUR-5, DUR-6]: the commit of an inline call lags behind its acceptance.
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    store.faults.fail(0, 1);
    let inline = Submit { is_inline: true, ..one(1) };
    let posted = store.submit(NOW, vec![inline], None).await.expect("accepted");
    posted.receipt.committed().await.expect("it need not wait");
    for _ in 0..2 {
        let error = store.find(&Scope::local(), id(1)).await.expect_err("it is lost");
        assert_eq!(error.to_string(), "the disk is full");
        recover(&store).await;
    }
    assert_eq!(state(&store, 7).await, None, "what never was is absent");
}

#[tokio::test]
async fn whichever_commit_fails_nothing_is_acknowledged_that_is_not_there() {
    // [DUR-1, DUR-2]
    for k in 0..8 {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, _) = open(folder.path()).await;
        store.faults.fail(k, 1);
        let (mut submitted, mut finished) = (Vec::new(), Vec::new());
        for n in 1..4 {
            if submit(&store, n).await.is_err() {
                recover(&store).await;
                continue;
            }
            submitted.push(n);
            let Ok(claimed) = lease(&store).await else {
                recover(&store).await;
                continue;
            };
            match finish(&store, &claimed).await {
                Ok(_) => finished.push(claimed.record.id()),
                Err(_) => recover(&store).await,
            }
        }
        drop(store);
        let (store, _) = open(folder.path()).await;
        for n in submitted {
            let state = state(&store, n).await;
            assert!(state.is_some(), "commit {k}: task {n} was acknowledged and is gone");
            let has_ended = state == Some(State::Succeeded);
            assert_eq!(has_ended, finished.contains(&id(n)), "commit {k}: task {n}");
        }
    }
}

#[tokio::test]
async fn large_contents_of_what_was_never_accepted_are_removed() {
    // [DUR-5] A full disk must not fill up further.
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    store.faults.fail(0, 50);
    for n in 1..6 {
        let inputs = Json::of(&"x".repeat(100_000)).expect("JSON");
        let posted = store.submit(NOW, vec![Submit { inputs, ..one(n) }], None).await;
        let Ok(posted) = posted else { continue };
        posted.receipt.committed().await.expect_err("a full disk");
    }
    recover(&store).await;
    submit(&store, 9).await.expect("a good disk");
    let running = lease(&store).await.expect("a good disk");
    store.faults.fail(0, 50);
    for _ in 0..5 {
        let parts = vec![Content::Text("x".repeat(100_000).into())];
        let done = Change::Finish(Outcome::Succeeded(parts));
        let update = Update::attempt(running.record.id(), running.record.fence, done);
        let Ok(posted) = store.update(NOW, vec![update], None).await else { continue };
        posted.receipt.committed().await.expect_err("a full disk");
    }
    recover(&store).await;
    drop(store);
    let contents = std::fs::read_dir(folder.path().join("tasks.db.contents")).expect("a folder");
    assert_eq!(contents.count(), 0);
}

/// Panics at the first word.
struct Clumsy;

impl ChangeSink for Clumsy {
    fn changed(&self, _rows: &[TaskRecord]) {
        panic!("a sink that panics, as this test wants it");
    }
}

#[tokio::test]
async fn a_sink_that_panics_leaves_nobody_waiting() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::new(Options::full(folder.path().join("tasks.db")));
    let lanes = vec![("lane".into(), lane::Config::new(9, 99))];
    store.open(NOW, lanes, Duration::from_secs(10), Arc::new(Clumsy)).await.expect("it opens");
    submit(&store, 1).await.expect("its commit came before the sink");
    // Whether it is taken and lost, or comes after the end and is refused: nobody is left to write.
    for n in [2, 3] {
        let error = submit(&store, n).await.expect_err("closed");
        assert_eq!(error.to_string(), "the store is closed");
    }
}

/// Ends so many tasks, and commits often enough that the first of them leave memory.
async fn end_many(store: &SqliteStore, n_tasks: u64) {
    store.set_lane("lane".into(), lane::Config::new(9, 9_999)).await.expect("room");
    let cancel = |n| {
        let change = Change::RequestCancel { reason: None };
        Update { fence: None, ..Update::attempt(id(n), raincheck_core::ids::Fence::NONE, change) }
    };
    for first in (0..n_tasks).step_by(100) {
        let batch = (first..first + 100).map(one).collect();
        let posted = store.submit(NOW, batch, None).await.expect("submits");
        posted.receipt.committed().await.expect("their commit");
        let ends = (first..first + 100).map(cancel).collect();
        let posted = store.update(NOW, ends, None).await.expect("ends");
        posted.receipt.committed().await.expect("their commit");
    }
}

#[tokio::test]
async fn what_has_ended_leaves_memory_with_the_commits_that_follow() {
    // [DUR-8]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    end_many(&store, 3_000).await;
    let n_here = store.shared.with(|front| front.ledger.len());
    assert!(n_here < 1_400, "{n_here} of 3,000");
    assert_eq!(state(&store, 0).await, Some(State::Cancelled));
    drop(store);
    let (store, _) = open(folder.path()).await;
    assert_eq!(store.shared.with(|front| front.ledger.len()), 0);
    assert_eq!(state(&store, 2_999).await, Some(State::Cancelled));
}

#[tokio::test]
async fn a_commit_that_fails_changes_nothing_of_what_had_left_memory() {
    // [DUR-5] [DUR-8]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    submit(&store, 7_000).await.expect("a task");
    let claimed = lease(&store).await.expect("its lease");
    let gone = Change::GiveUp(Outcome::Cancelled);
    let update = Update::attempt(id(7_000), claimed.record.fence, gone);
    let posted = store.update(NOW, vec![Update { releases: true, ..update }], None).await;
    posted.expect("its end").receipt.committed().await.expect("its commit");
    end_many(&store, 1_200).await;
    assert!(store.shared.with(|front| front.ledger.get(id(7_000)).is_none()), "it left");
    store.faults.fail(0, 1);
    finish(&store, &claimed).await.expect_err("its commit fails");
    recover(&store).await;
    let Ok(Found::Task(record, details)) = store.find(&Scope::local(), id(7_000)).await else {
        panic!("it is on the disk")
    };
    assert!(details.late.is_none() && record.state == State::Cancelled, "{record:?}");
    let late = finish(&store, &claimed).await.expect("it comes again");
    assert!(matches!(late, UpdateResult::Late(_)), "{late:?}");
}

#[tokio::test]
async fn a_heartbeat_that_says_nothing_new_writes_nothing() {
    // [LEASE-2]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    submit(&store, 1).await.expect("a task");
    let claimed = lease(&store).await.expect("its lease");
    let beat = |percent| Heartbeat {
        id: id(1),
        fence: claimed.record.fence,
        progress: Some(Progress { percent: Some(percent), ..Progress::default() }),
        partial: Some(Json::parse("[1]").expect("JSON")),
    };
    let mut heads = Vec::new();
    for percent in [1.0, 1.0, 2.0, 2.0] {
        store.heartbeat(NOW, vec![beat(percent)]).await.expect("a heartbeat");
        heads.push(store.shared.with(|front| front.head()));
    }
    assert_eq!([heads[1] - heads[0], heads[2] - heads[1], heads[3] - heads[2]], [0, 1, 0]);
    store.barrier().committed().await.expect("a commit");
    let status = store.status(&Scope::local(), id(1)).await.expect("read").expect("a task");
    assert_eq!(status.progress.and_then(|progress| progress.percent), Some(2.0));
    assert!(status.partial.is_some());
}
