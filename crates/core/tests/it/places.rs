//! Places of a lane, and waits, over a restart and beyond the memory of their tasks.

use std::time::Duration;

use raincheck_core::content::Content;
use raincheck_core::deadline::Kind;
use raincheck_core::decide::Change;
use raincheck_core::ids::TaskId;
use raincheck_core::lane;
use raincheck_core::ledger::{Command, Ledger, Reply, TOMBSTONE};
use raincheck_core::lifecycle::State;
use raincheck_core::retry::Policy;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Claim, Heartbeat, Update};
use raincheck_core::task::{Limits, Outcome, Resources, Task, TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;

const NOW: Timestamp = Timestamp::from_millis(1_000);

fn id(n: u64) -> TaskId {
    TaskId::from_parts(n, [0; 10])
}

fn task(n: u64) -> Task {
    Task {
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
    }
}

fn ledger() -> Ledger {
    let mut ledger = Ledger::new(1);
    ledger.apply(NOW, Command::SetLane("lane".into(), lane::Config::new(1, 99)));
    ledger
}

fn submit(ledger: &mut Ledger, n: u64, waiting: Option<WaitReason>) {
    ledger.apply(NOW, Command::Submit(vec![(task(n), waiting)]));
}

fn lease(ledger: &mut Ledger, now: Timestamp) -> Option<TaskRecord> {
    let reply = ledger.apply(now, Command::Claim(claim())).reply;
    let Reply::Rows(mut rows) = reply else { panic!("{reply:?}") };
    rows.pop()
}

fn claim() -> Claim {
    Claim { lanes: vec!["lane".into()], n: 1 }
}

fn done(record: &TaskRecord, text: &str) -> Update {
    let outcome = Outcome::Succeeded(vec![Content::Text(text.into())]);
    Update::attempt(record.id(), record.fence, Change::Finish(outcome))
}

#[test]
fn a_place_is_not_lost_with_the_memory_of_its_task() {
    // [QUEUE-6] [SWEEP-1]
    let mut ledger = ledger();
    for n in 0..2 {
        submit(&mut ledger, n, None);
    }
    let first = lease(&mut ledger, NOW).expect("work");
    ledger.apply(NOW, Command::Update(vec![done(&first, "x")]));
    ledger.apply(NOW, Command::Expire(vec![id(0)]));
    ledger.apply(NOW, Command::Forget(vec![id(0)]));
    let late = NOW + TOMBSTONE + Duration::from_secs(1);
    let reply = ledger.apply(late, Command::Sweep { limit: 1 }).reply;
    assert!(matches!(&reply, Reply::Forgotten(ids) if ids.is_empty()), "it runs: {reply:?}");
    ledger.apply(late, Command::Release(vec![(id(0), first.fence)]));
    assert_eq!(
        lease(&mut ledger, late).map(|record| record.id()),
        Some(id(1)),
        "the place is free"
    );
    let reply = ledger.apply(late, Command::Sweep { limit: 9 }).reply;
    assert!(matches!(&reply, Reply::Forgotten(ids) if *ids == [id(0)]), "{reply:?}");
}

#[test]
fn a_place_of_what_has_ended_is_kept_over_a_restart_as_long_as_any_other() {
    // [QUEUE-6] [TIME-6]
    let mut ledger = ledger();
    for n in 0..2 {
        submit(&mut ledger, n, None);
    }
    let first = lease(&mut ledger, NOW).expect("work");
    ledger.apply(NOW, Command::Update(vec![done(&first, "x")]));
    let mut ledger = Ledger::restore(ledger.snapshot());
    let after = NOW + Duration::from_secs(60);
    ledger.apply(after, Command::Reattach(Duration::from_secs(15)));
    ledger.apply(after, Command::Fire { limit: 9 });
    assert!(lease(&mut ledger, after).is_none(), "its executor may still run");
    let after = after + Duration::from_secs(15);
    ledger.apply(after, Command::Fire { limit: 9 });
    assert!(lease(&mut ledger, after).is_some(), "nobody was heard");
}

#[test]
fn a_limit_that_has_not_passed_at_a_restart_is_kept() {
    // [TIME-6]
    let mut ledger = ledger();
    submit(&mut ledger, 0, None);
    let record = lease(&mut ledger, NOW).expect("work");
    ledger.apply(
        NOW,
        Command::Update(vec![Update::attempt(record.id(), record.fence, Change::Start)]),
    );
    let limit = record.task.limits.run_timeout.expect("a limit");
    for (down, ends) in [
        (Duration::from_secs(1), limit),
        (limit - Duration::from_secs(1), limit + Duration::from_secs(4)),
        (limit + Duration::from_secs(1), limit + Duration::from_secs(16)),
    ] {
        let mut ledger = Ledger::restore(ledger.snapshot());
        ledger.apply(NOW + down, Command::Reattach(Duration::from_secs(15)));
        let (early, due) = (NOW + (ends - Duration::from_millis(1)), NOW + ends);
        // Its executor is heard of all the while.
        let beat =
            Heartbeat { id: record.id(), fence: record.fence, progress: None, partial: None };
        ledger.apply(early, Command::Heartbeat(vec![beat]));
        ledger.apply(early, Command::Fire { limit: 9 });
        assert_eq!(ledger.get(id(0)).map(|record| record.state), Some(State::Running), "{down:?}");
        ledger.apply(due, Command::Fire { limit: 9 });
        assert_eq!(ledger.get(id(0)).map(|record| record.state), Some(State::TimedOut), "{down:?}");
    }
}

#[test]
fn a_peer_that_could_not_come_while_no_server_ran_gets_the_grace() {
    // [TIME-6] [QUEUE-5]
    let mut ledger = ledger();
    submit(&mut ledger, 0, Some(WaitReason::new("disconnected")));
    let mut ledger = Ledger::restore(ledger.snapshot());
    let after = NOW + Duration::from_secs(3_600);
    ledger.apply(after, Command::Reattach(Duration::from_secs(15)));
    ledger.apply(after, Command::Fire { limit: 9 });
    assert_eq!(ledger.get(id(0)).map(|record| record.state), Some(State::Waiting));
    ledger.apply(after + Duration::from_secs(15), Command::Fire { limit: 9 });
    assert_eq!(ledger.get(id(0)).map(|record| record.state), Some(State::Failed));
}

#[test]
fn limits_are_moved_by_the_time_in_which_the_engine_could_not_run() {
    // [LEASE-8]
    let hour = Duration::from_secs(3_600);
    let mut ledger = ledger();
    ledger.apply(NOW, Command::SetLane("other".into(), lane::Config::new(1, 99)));
    submit(&mut ledger, 0, None);
    let running = lease(&mut ledger, NOW).expect("work");
    ledger.apply(NOW, Command::Update(vec![Update::attempt(id(0), running.fence, Change::Start)]));
    submit(&mut ledger, 1, Some(WaitReason::new("disconnected")));
    submit(&mut ledger, 2, None);
    ledger.apply(NOW, Command::Submit(vec![(Task { lane: "other".into(), ..task(3) }, None)]));
    let claim = Claim { lanes: vec!["other".into()], n: 1 };
    let Reply::Rows(others) = ledger.apply(NOW, Command::Claim(claim)).reply else { panic!() };
    // It has ended; its executor has not.
    ledger.apply(NOW, Command::Update(vec![done(&others[0], "x")]));
    let before: Vec<_> = (0..4).map(|n| ledger.get(id(n)).expect("a task").deadlines).collect();

    let applied = ledger.apply(NOW + hour, Command::Extend(hour));
    assert!(matches!(applied.reply, Reply::Moved(2)), "{:?}", applied.reply);
    assert_eq!(applied.effects.len(), 2, "each is kept: {:?}", applied.effects);
    for (n, before) in before.iter().enumerate() {
        let after = ledger.get(id(n as u64)).expect("a task").deadlines;
        for kind in Kind::ALL {
            let is_wall = matches!(kind, Kind::QueueTimeout | Kind::Backoff | Kind::Retention);
            let by = if is_wall { Duration::ZERO } else { hour };
            assert_eq!(after.get(kind), before.get(kind).map(|at| at + by), "{n} {kind:?}");
        }
    }
    ledger.apply(NOW + hour, Command::Fire { limit: 99 });
    let state = |ledger: &Ledger, n| ledger.get(id(n)).map(|row| row.state);
    assert_eq!(state(&ledger, 0), Some(State::Running));
    assert_eq!(state(&ledger, 1), Some(State::Waiting));
    let slots = ledger.lanes().into_iter().flat_map(|lane| lane.slots).count();
    assert_eq!(slots, 2, "also the place of what has ended is held");
    ledger.apply(NOW + hour + Limits::default().lease, Command::Fire { limit: 99 });
    assert_eq!(state(&ledger, 0), Some(State::Failed), "it was silent for a whole lease");
}
