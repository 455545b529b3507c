use super::*;
use crate::content::{Content, Json};
use crate::decide::Change;
use crate::retry::Policy;
use crate::store::AttemptReport;
use crate::task::{Limits, Outcome, Resources, Task};

const NOW: Timestamp = Timestamp::from_millis(1_000);

/// Runs a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the memory store never waits"),
    }
}

fn one(n: u64) -> Submit {
    let task = Task {
        id: TaskId::from_parts(n, [0; 10]),
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
    let inputs = Json::parse(format!("{{\"n\":{n}}}")).expect("JSON");
    Submit { task, inputs, waiting: None, is_inline: false, is_known: false }
}

fn store(limits: MemoryLimits) -> MemoryStore {
    let store = MemoryStore::new(limits);
    let lanes = vec![("lane".into(), lane::Config::new(1, 1_000))];
    now(store.open(NOW, lanes, Duration::from_secs(1), Arc::new(NoSink))).expect("opens");
    store
}

fn run(store: &MemoryStore, n: u64, result: &str) {
    let claim = Claim { lanes: vec!["lane".into()], n: 1 };
    let posted = now(store.submit(NOW, vec![one(n)], Some(claim))).expect("submitted");
    let claimed = &posted.value.1[0];
    let parts = vec![Content::Text(result.into())];
    let change = Change::Finish(Outcome::Succeeded(parts));
    let update = Update {
        releases: true,
        ..Update::attempt(claimed.record.id(), claimed.record.fence, change)
    };
    now(store.update(NOW, vec![update], None)).expect("posted");
}

fn found(store: &MemoryStore, n: u64) -> &'static str {
    match now(store.find(&Scope::local(), TaskId::from_parts(n, [0; 10]))).expect("read") {
        Found::Task(..) => "task",
        Found::Tombstone(_) => "tombstone",
        Found::Absent => "absent",
    }
}

#[test]
fn what_has_ended_is_bounded_by_number_and_the_oldest_expires_first() {
    let store = store(MemoryLimits { settled: 2, settled_bytes: 1 << 20, tombstones: 1 });
    for n in 1..=4 {
        run(&store, n, "x");
    }
    let all: Vec<_> = (1..=4).map(|n| found(&store, n)).collect();
    assert_eq!(all, ["absent", "tombstone", "task", "task"]);
}

#[test]
fn what_has_ended_is_bounded_by_bytes_but_the_newest_stays() {
    let store = store(MemoryLimits { settled: 99, settled_bytes: 100, tombstones: 99 });
    run(&store, 1, "short");
    run(&store, 2, &"x".repeat(1_000));
    assert_eq!((found(&store, 1), found(&store, 2)), ("tombstone", "task"));
}

#[test]
fn tasks_that_expire_by_themselves_leave_nothing_behind_one_that_stays() {
    let store = store(MemoryLimits::default());
    run(&store, 0, "x");
    for n in 1..=500 {
        let claim = Claim { lanes: vec!["lane".into()], n: 1 };
        let mut one = one(n);
        one.task.limits.retention = Duration::from_millis(1);
        let posted = now(store.submit(NOW, vec![one], Some(claim))).expect("submitted");
        let record = &posted.value.1[0].record;
        let change = Change::Finish(Outcome::Succeeded(Vec::new()));
        let update =
            Update { releases: true, ..Update::attempt(record.id(), record.fence, change) };
        now(store.update(NOW, vec![update], None)).expect("posted");
        now(store.fire(NOW + Duration::from_secs(1), 9)).expect("fired");
    }
    assert_eq!((found(&store, 0), found(&store, 1)), ("task", "tombstone"));
    let n_settled = store.lock().shelf.n_ordered();
    assert!(n_settled < 100, "{n_settled} places for one task");
}

fn begin(store: &MemoryStore, n: u64) -> Claimed {
    let claim = Claim { lanes: vec!["lane".into()], n: 1 };
    let posted = now(store.submit(NOW, vec![one(n)], Some(claim))).expect("submitted");
    posted.value.1.into_iter().next().expect("work")
}

fn end(store: &MemoryStore, claimed: &Claimed, text: &str, report: AttemptReport) {
    let outcome = Outcome::Succeeded(vec![Content::Text(text.into())]);
    let update =
        Update::attempt(claimed.record.id(), claimed.record.fence, Change::Finish(outcome));
    let update = Update { releases: true, report: Some(Box::new(report)), ..update };
    now(store.update(NOW, vec![update], None)).expect("posted");
}

#[test]
fn everything_that_is_kept_of_what_has_ended_counts_against_its_bytes() {
    let store = store(MemoryLimits { settled: 99, settled_bytes: 1_000, tombstones: 99 });
    let text = "x".repeat(2_000);
    let partial = Json::of(&text).expect("JSON");
    end(
        &store,
        &begin(&store, 1),
        "x",
        AttemptReport { partial: Some(partial), ..AttemptReport::default() },
    );
    end(&store, &begin(&store, 2), "x", AttemptReport::default());
    assert_eq!(found(&store, 1), "tombstone", "a partial result");
    let claimed = begin(&store, 3);
    let change = Change::RequestCancel { reason: None };
    let cancel = Update::attempt(claimed.record.id(), claimed.record.fence, change);
    now(store.update(NOW, vec![cancel], None)).expect("posted");
    now(store.fire(NOW + Duration::from_secs(10), 9)).expect("its grace is over");
    end(&store, &claimed, &text, AttemptReport::default());
    end(&store, &begin(&store, 4), "x", AttemptReport::default());
    assert_eq!(found(&store, 3), "tombstone", "a late result");
    assert_eq!(found(&store, 4), "task");
}

#[test]
fn what_is_forgotten_for_want_of_room_is_told_to_the_sweep() {
    // [SWEEP-1] Else its files would stay for ever.
    let store = store(MemoryLimits { settled: 1, settled_bytes: 1 << 20, tombstones: 1 });
    for n in 1..=5 {
        run(&store, n, "x");
    }
    let id = |n| TaskId::from_parts(n, [0; 10]);
    assert_eq!(now(store.sweep(NOW, 2)).expect("swept"), [id(1), id(2)]);
    assert_eq!(now(store.sweep(NOW, 2)).expect("swept"), [id(3)]);
    assert!(now(store.sweep(NOW, 2)).expect("swept").is_empty());
}

#[test]
fn a_place_is_kept_when_there_is_no_room_for_the_memory_of_its_task() {
    // [QUEUE-6]
    let store =
        MemoryStore::new(MemoryLimits { settled: 1, settled_bytes: 1 << 20, tombstones: 1 });
    let lanes = vec![("lane".into(), lane::Config::new(2, 9))];
    now(store.open(NOW, lanes, Duration::from_secs(1), Arc::new(NoSink))).expect("opens");
    let slow = begin(&store, 1);
    let change = Change::Finish(Outcome::Succeeded(Vec::new()));
    let still_there = Update::attempt(slow.record.id(), slow.record.fence, change);
    now(store.update(NOW, vec![still_there], None)).expect("posted");
    for n in 2..9 {
        run(&store, n, "x");
    }
    now(store.release(NOW, vec![(slow.record.id(), slow.record.fence)])).expect("released");
    let both = [begin(&store, 10), begin(&store, 11)];
    assert_eq!(both.map(|claimed| claimed.record.state), [State::Scheduled; 2]);
}

#[test]
fn a_claim_hands_over_the_inputs_as_they_came() {
    // [DUR-6] Submit and first lease are one transaction.
    let store = store(MemoryLimits::default());
    let claim = Claim { lanes: vec!["lane".into()], n: 1 };
    let posted = now(store.submit(NOW, vec![one(7)], Some(claim))).expect("submitted");
    let claimed = &posted.value.1[0];
    assert_eq!(claimed.inputs.get(), "{\"n\":7}");
    assert_eq!(claimed.record.state, State::Scheduled);
}

#[test]
fn a_store_is_opened_once() {
    // [DUR-4]
    let store = store(MemoryLimits::default());
    let again = now(store.open(NOW, Vec::new(), Duration::ZERO, Arc::new(NoSink)));
    assert!(again.is_err());
    store.close();
    let next = now(store.open(NOW, Vec::new(), Duration::ZERO, Arc::new(NoSink)));
    assert!(next.is_ok());
}

#[test]
fn the_history_of_a_task_that_never_ends_is_bounded_and_keeps_its_newest_entries() {
    // [STATE-4]
    let store = store(MemoryLimits::default());
    now(store.submit(NOW, vec![one(1)], None)).expect("submitted");
    for _ in 0..1_000 {
        now(store.hold(NOW, "lane".into(), Some(WaitReason::new("busy")))).expect("held");
        now(store.hold(NOW, "lane".into(), None)).expect("resumed");
    }
    let id = TaskId::from_parts(1, [0; 10]);
    let events = now(store.events(&Scope::local(), id)).expect("read").expect("a task");
    assert_eq!((events.len(), events[0].seq, events[999].seq), (1_000, 1_002, 2_001));
}
