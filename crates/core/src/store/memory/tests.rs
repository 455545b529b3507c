use super::*;
use crate::content::{Content, Json};
use crate::decide::Change;
use crate::retry::Policy;
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
        submitted_at: NOW,
    };
    let inputs = Json::parse(format!("{{\"n\":{n}}}")).expect("JSON");
    Submit { task, inputs, waiting: None, is_inline: false }
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
    let post =
        Post { releases: true, ..Post::attempt(claimed.row.id(), claimed.row.fence, change) };
    now(store.post(NOW, vec![post], None)).expect("posted");
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
fn a_claim_hands_over_the_inputs_as_they_came() {
    // [DUR-6] Submit and first lease are one transaction.
    let store = store(MemoryLimits::default());
    let claim = Claim { lanes: vec!["lane".into()], n: 1 };
    let posted = now(store.submit(NOW, vec![one(7)], Some(claim))).expect("submitted");
    let claimed = &posted.value.1[0];
    assert_eq!(claimed.inputs.get(), "{\"n\":7}");
    assert_eq!(claimed.row.state, State::Scheduled);
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
        now(store.hold(NOW, "lane".into(), Some(WaitReason::Busy))).expect("held");
        now(store.hold(NOW, "lane".into(), None)).expect("resumed");
    }
    let id = TaskId::from_parts(1, [0; 10]);
    let events = now(store.events(&Scope::local(), id)).expect("read").expect("a task");
    assert_eq!((events.len(), events[0].seq, events[999].seq), (1_000, 1_002, 2_001));
}
