use super::*;
use crate::decide::Change;
use crate::ids::TaskId;
use crate::retry::Policy;
use crate::store::{Claim, Filter, Submitted, Update};
use crate::task::{Limits, Resources, Task};

const NOW: Timestamp = Timestamp::from_millis(1_000);

fn task(n: u64, scope: &str, priority: i8) -> Task {
    Task {
        id: TaskId::from_parts(n, [0; 10]),
        scope: Scope::new(scope),
        tool: "tool".into(),
        lane: "lane".into(),
        priority,
        tags: vec![if n.is_multiple_of(2) { "even" } else { "odd" }.into()],
        key: None,
        inputs_hash: 0,
        limits: Limits::default(),
        resources: Resources::default(),
        supports_cancel: true,
        is_idempotent: false,
        retry: Policy::default(),
        trace: None,
        submitted_at: NOW,
    }
}

fn ledger(concurrency: u32, queue_limit: u32) -> Ledger {
    let mut ledger = Ledger::new(1);
    let config = lane::Config::new(concurrency, queue_limit);
    ledger.apply(NOW, Command::SetLane("lane".into(), config));
    ledger
}

fn submit(ledger: &mut Ledger, task: Task) -> Submitted {
    let reply = ledger.apply(NOW, Command::Submit(vec![(task, None)])).reply;
    let Reply::Submitted(mut all) = reply else { panic!("{reply:?}") };
    all.remove(0)
}

#[test]
fn a_full_lane_refuses_and_keeps_everything_it_has() {
    // [QUEUE-2] The two places that are free count beside the three that may wait.
    let mut ledger = ledger(2, 3);
    let n_in = (0..9)
        .filter(|n| matches!(submit(&mut ledger, task(*n, "a", 0)), Submitted::Inserted { .. }))
        .count();
    assert_eq!((n_in, ledger.len()), (5, 5));
    let Submitted::Full { depth, retry_after } = submit(&mut ledger, task(99, "a", 0)) else {
        panic!("not refused")
    };
    assert!(depth == 5 && retry_after > Duration::ZERO);
}

#[test]
fn a_position_counts_what_runs_before() {
    // [QUEUE-1] [QUEUE-3]
    let mut ledger = ledger(1, 100);
    let order = [0, -5, 10, 0, 10, 100, -100];
    for (n, priority) in order.iter().enumerate() {
        submit(&mut ledger, task(n as u64, "a", *priority));
    }
    let at = |n| ledger.position(TaskId::from_parts(n, [0; 10])).expect("queued");
    assert_eq!([at(0), at(1), at(2), at(3), at(4), at(5), at(6)], [3, 5, 1, 4, 2, 0, 6]);
}

#[test]
fn a_position_in_a_long_lane_is_exact_near_both_ends() {
    // [QUEUE-3]
    let mut ledger = ledger(1, 10_000);
    for n in 0..5_000 {
        submit(&mut ledger, task(n, "a", 0));
    }
    let at = |n| ledger.position(TaskId::from_parts(n, [0; 10])).expect("queued");
    assert_eq!((at(0), at(1_000), at(4_999), at(4_500)), (0, 1_000, 4_999, 4_500));
    assert!((1_024..5_000).contains(&at(2_500)), "a guess stays within the lane: {}", at(2_500));
}

#[test]
fn a_list_shows_one_scope_newest_first_and_pages_without_gap_or_repeat() {
    // [SCOPE-2]
    let mut ledger = ledger(1, 100);
    for n in 0..10 {
        submit(&mut ledger, task(n, if n < 8 { "a" } else { "b" }, 0));
    }
    let (scope, filter) = (Scope::new("a"), Filter::default());
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = ledger.list(&scope, &filter, cursor, 3);
        seen.extend(page.items.iter().map(|record| record.seq));
        cursor = page.items.last().map(|record| crate::store::Cursor(record.seq));
        if !page.has_more {
            break;
        }
    }
    assert_eq!(seen, [8, 7, 6, 5, 4, 3, 2, 1]);
    let odd = Filter { tags_any: vec!["odd".into()], ..Filter::default() };
    assert_eq!(ledger.list(&scope, &odd, None, 99).items.len(), 4);
    assert!(ledger.find(&scope, TaskId::from_parts(9, [0; 10])).is_none());
}

#[test]
fn a_snapshot_rebuilds_the_same_ledger() {
    let mut ledger = ledger(2, 100);
    for n in 0..5 {
        submit(&mut ledger, task(n, "a", 0));
    }
    let claim = Claim { lanes: vec!["lane".into()], n: 2 };
    ledger.apply(NOW, Command::Claim(claim.clone()));
    let first = TaskId::from_parts(0, [0; 10]);
    ledger.apply(NOW, Command::Release(vec![(first, Fence::new(1, 1))]));
    let snapshot = ledger.snapshot();
    let mut again = Ledger::restore(snapshot.clone());
    assert_eq!(again.snapshot(), snapshot);
    assert_eq!(again.next_deadline(), ledger.next_deadline());
    let rows = |ledger: &mut Ledger| {
        let reply = ledger.apply(NOW, Command::Claim(claim.clone())).reply;
        let Reply::Rows(rows) = reply else { panic!("{reply:?}") };
        rows
    };
    assert_eq!(rows(&mut again), rows(&mut ledger), "the same worker takes the same task");
}

#[test]
fn a_thousand_ended_tasks_leave_no_timer_behind() {
    let mut ledger = ledger(1, 2_000);
    for n in 0..1_000 {
        submit(&mut ledger, task(n, "a", 0));
    }
    let ids: Vec<_> = (0..1_000).map(|n| TaskId::from_parts(n, [0; 10])).collect();
    let posts = ids.iter().map(|id| Update {
        fence: None,
        ..Update::attempt(*id, Fence::NONE, Change::RequestCancel { reason: None })
    });
    ledger.apply(NOW, Command::Update(posts.collect()));
    ledger.apply(NOW, Command::Expire(ids.clone()));
    assert_eq!(ledger.next_deadline(), None);
    let late = NOW + TOMBSTONE + Duration::from_secs(1);
    ledger.apply(late, Command::Sweep { limit: 10_000 });
    assert!(ledger.is_empty());
}
