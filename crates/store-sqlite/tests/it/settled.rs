//! What has ended is on the disk and not in memory, and nobody notices [DUR-8].

use std::time::Duration;

use raincheck_core::decide::Change;
use raincheck_core::error::{Error, Kind};
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    Claim, Filter, Found, Submit, Submitted, TaskStore as _, Update, UpdateResult,
};
use raincheck_core::task::{Outcome, Task, TaskRecord};
use raincheck_store_sqlite::SqliteStore;

use crate::kit::*;

/// The key of a request.
const REQUEST: &str = "\u{1}window/7";

/// More tasks than stay in memory.
const MANY: u64 = 1_400;

/// Runs tasks to their end, many in one transaction. Every seventh fails.
async fn run(store: &SqliteStore, numbers: std::ops::Range<u64>, edit: impl Fn(u64, &mut Task)) {
    store
        .set_lane(LANE.into(), raincheck_core::lane::Config::new(2_000, 2_000))
        .await
        .expect("room");
    let batch = numbers.clone().map(|n| one(n, |task| edit(n, task))).collect();
    let submitted = store.submit(START, batch, None).await.expect("submits");
    submitted.receipt.committed().await.expect("their commit");
    let claim = Claim { lanes: vec![LANE.into()], n: u32::MAX };
    let claimed = store.claim(START, claim).await.expect("leases");
    let ends = claimed.value.iter().map(|claimed| {
        let fails = claimed.record.seq % 7 == 0;
        let failure = Outcome::Failed(Error::new(Kind::ToolFailed, "no"));
        attempt(claimed, if fails { Change::Finish(failure) } else { done("x") })
    });
    let ended = store.update(START, ends.collect(), None).await.expect("ends");
    ended.receipt.committed().await.expect("their commit");
    // What ended is taken out of memory with the commits that follow.
    for n in 0..60 {
        submit(store, one(1_000_000 + numbers.start * 100 + n, |_| {})).await;
        update(store, cancel(1_000_000 + numbers.start * 100 + n)).await;
    }
}

fn labels(n: u64, task: &mut Task) {
    task.key = Some(format!("key {n}").into());
    task.inputs_hash = n.into();
    task.tool = if n % 10 == 3 { "rare" } else { "tool" }.into();
    task.tags = vec![format!("n:{}", n % 100).into()];
}

#[tokio::test]
async fn a_key_of_what_has_left_memory_still_stands_for_its_task() {
    // [IDEM-1] [IDEM-2]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    run(&store, 0..MANY, labels).await;
    check_keys(&store).await;
    drop(store);
    let (store, _) = open(folder.path()).await;
    check_keys(&store).await;
}

async fn check_keys(store: &SqliteStore) {
    for n in [0, 5, 700] {
        let keyed = |hash: u64| {
            one(5_000 + n, |task| {
                labels(n, task);
                task.inputs_hash = hash.into();
            })
        };
        let same = submit(store, keyed(n)).await;
        assert!(matches!(&same, Submitted::Existing(row) if row.id() == id(n)), "{same:?}");
        let other = submit(store, keyed(n + 1)).await;
        assert!(matches!(other, Submitted::Conflict(first) if first == id(n)), "{other:?}");
    }
}

#[tokio::test]
async fn what_comes_late_to_what_has_left_memory_is_kept_or_refused_as_ever() {
    // [LEASE-7] [CANCEL-4] [LEASE-6]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    submit(&store, one(9_000, |_| {})).await;
    let claimed = claim(&store).await.expect("work");
    let given_up = Change::GiveUp(Outcome::Failed(Error::new(Kind::WorkerLost, "no word")));
    update(&store, attempt(&claimed, given_up)).await;
    run(&store, 0..MANY, labels).await;
    let refused = update(&store, cancel(9_000)).await;
    assert!(
        matches!(&refused, UpdateResult::Refused(row, _) if row.state == State::Failed),
        "{refused:?}"
    );
    let late = update(&store, attempt(&claimed, done("late"))).await;
    assert!(matches!(late, UpdateResult::Late(_)), "{late:?}");
    let again = update(&store, attempt(&claimed, done("again"))).await;
    assert!(matches!(again, UpdateResult::Refused(..)), "{again:?}");
    let (row, details) = task(&store, 9_000).await;
    assert!(details.late.is_some() && row.n_events == 4, "{row:?}");
    let absent = update(&store, Update { scope: Some(Scope::new("other")), ..cancel(3) }).await;
    assert!(matches!(absent, UpdateResult::Absent), "{absent:?}");
}

#[tokio::test]
async fn what_has_left_memory_expires_and_is_forgotten_in_time() {
    // [TIME-5] [SWEEP-1]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    run(&store, 0..MANY, |n, task| {
        labels(n, task);
        if n == 7 {
            task.key = Some(REQUEST.into());
        }
        task.limits.retention = Duration::from_secs(if n < 300 { 60 } else { 600 });
    })
    .await;
    let next = store.fire(at(1), 256).await.expect("no deadline").value.expect("the next one");
    assert!(next <= at(60), "{next}");
    let mut n_fires = 0;
    loop {
        let fired = store.fire(at(61), 256).await.expect("deadlines");
        fired.receipt.committed().await.expect("their commit");
        if fired.value.is_none_or(|next| next > at(61)) {
            break;
        }
        n_fires += 1;
        assert!(n_fires < 20, "it does not end");
    }
    for n in 0..MANY {
        let is_over = matches!(find(&store, n).await, Found::Tombstone(_));
        assert_eq!(is_over, n < 300, "task {n}");
    }
    let renewed = submit(&store, one(7_000, |task| labels(5, task))).await;
    assert!(matches!(renewed, Submitted::Inserted { .. }), "its key is free: {renewed:?}");
    // The key of a request is not [ATTACH-6].
    let asked = |n| {
        let same = one(n, |task| {
            labels(7, task);
            task.key = Some(REQUEST.into());
        });
        Submit { is_known: true, ..same }
    };
    let found = submit(&store, asked(7_100)).await;
    assert!(matches!(&found, Submitted::Existing(row) if row.id() == id(7)), "{found:?}");
    drop(store);
    let (store, _) = open(folder.path()).await;
    let found = submit(&store, asked(7_200)).await;
    assert!(matches!(&found, Submitted::Existing(row) if row.id() == id(7)), "{found:?}");
    let later = at(62) + Duration::from_secs(24 * 3600);
    let mut n_gone = 0;
    loop {
        let gone = store.sweep(later, 200).await.expect("a sweep");
        n_gone += gone.len();
        if gone.is_empty() {
            break;
        }
    }
    assert_eq!(n_gone, 300);
    let found = submit(&store, asked(7_300)).await;
    assert!(matches!(found, Submitted::Unknown), "{found:?}");
    assert!(matches!(find(&store, 0).await, Found::Absent));
    assert!(matches!(find(&store, 300).await, Found::Task(..)));
}

/// Lists all pages of a filter and compares them with what a look at every row gives.
async fn check_list(store: &SqliteStore, all: &[TaskRecord], filter: &Filter) {
    let wanted: Vec<_> = all.iter().filter(|row| filter.admits(row)).map(TaskRecord::id).collect();
    for limit in [7, 10_000] {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let page = store.list(&Scope::local(), filter, cursor, limit).await.expect("a page");
            seen.extend(page.items.iter().map(TaskRecord::id));
            cursor = page.items.last().map(|row| raincheck_core::store::Cursor(row.seq));
            if !page.has_more || seen.len() > 400 && limit == 7 {
                break;
            }
        }
        let n = if limit == 7 { seen.len() } else { wanted.len() };
        assert_eq!(seen, wanted[..n], "{filter:?} by {limit}");
        assert!(n == wanted.len() || n > 400, "{filter:?} by {limit}: {n} of {}", wanted.len());
    }
}

#[tokio::test]
async fn a_list_is_the_same_whatever_index_it_is_read_from() {
    // [SCOPE-2]
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path()).await;
    run(&store, 0..MANY, labels).await;
    for n in 0..20 {
        submit(&store, one(8_000 + n, |task| labels(n, task))).await;
    }
    submit(&store, one(8_900, |task| task.scope = Scope::new("other"))).await;
    let clock_went_back = store.submit(at(0), vec![one(8_901, |_| {})], None).await.expect("one");
    clock_went_back.receipt.committed().await.expect("its commit");
    let mut newer = one(8_902, |task| task.tool = "rare".into());
    newer.waiting = Some(raincheck_core::task::WaitReason::new("busy"));
    let newer = store.submit(at(50), vec![newer], None).await.expect("one");
    newer.receipt.committed().await.expect("its commit");
    let everything = Filter { states: State::ALL.to_vec(), ..Filter::default() };
    let all = store.list(&Scope::local(), &everything, None, 10_000).await.expect("all").items;
    assert!(all.is_sorted_by(|a, b| a.seq > b.seq) && all.len() > 1_400, "{}", all.len());
    let states: [&[State]; 5] = [
        &[],
        &[State::Failed],
        &[State::Queued, State::Failed],
        &[State::Running],
        &[State::Expired, State::Succeeded],
    ];
    for states in states {
        for tool in [None, Some("rare"), Some("none")] {
            for tags in [&[][..], &["n:3"], &["n:3", "n:4", "n:3"], &["none"]] {
                for after in [None, Some(START), Some(at(49)), Some(at(51))] {
                    let filter = Filter {
                        states: states.to_vec(),
                        tool: tool.map(Into::into),
                        tags_any: tags.iter().map(|tag| (*tag).into()).collect(),
                        submitted_after: after,
                    };
                    check_list(&store, &all, &filter).await;
                }
            }
        }
    }
}
