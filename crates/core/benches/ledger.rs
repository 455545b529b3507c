//! Cycles of one task through the ledger, at several queue lengths.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use raincheck_core::content::Content;
use raincheck_core::decide::Change;
use raincheck_core::ids::{LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::ledger::{Command, Ledger, Reply};
use raincheck_core::scope::Scope;
use raincheck_core::store::{Claim, Update};
use raincheck_core::task::{Limits, Outcome, Resources, Task};
use raincheck_core::time::Timestamp;

const NOW: Timestamp = Timestamp::from_millis(1_000);

fn task(n: u64) -> Task {
    Task {
        id: TaskId::from_parts(n, [0; 10]),
        scope: Scope::local(),
        tool: "noop".into(),
        lane: "lane".into(),
        priority: 0,
        tags: Vec::new(),
        key: None,
        inputs_hash: 0,
        limits: Limits::default(),
        resources: Resources::default(),
        supports_cancel: true,
        is_idempotent: false,
        retry: raincheck_core::retry::Policy::default(),
        trace: None,
        submitted_at: NOW,
    }
}

fn filled(queued: u64) -> Ledger {
    let mut ledger = Ledger::new(1);
    let config = lane::Config::new(1, u32::MAX);
    ledger.apply(NOW, Command::SetLane(LaneId::from("lane"), config));
    for n in 0..queued {
        ledger.apply(NOW, Command::Submit(vec![(task(n), None)]));
    }
    ledger
}

/// Submits one task, and takes the oldest one through lease, start and end.
fn cycle(ledger: &mut Ledger, n: u64) {
    ledger.apply(NOW, Command::Submit(vec![(task(n), None)]));
    let claim = Claim { lanes: vec![LaneId::from("lane")], n: 1 };
    let Reply::Rows(rows) = ledger.apply(NOW, Command::Claim(claim)).reply else { return };
    for record in rows {
        let (id, fence) = (record.id(), record.fence);
        ledger.apply(NOW, Command::Update(vec![Update::attempt(id, fence, Change::Start)]));
        let outcome = Outcome::Succeeded(vec![Content::Text("ok".into())]);
        let mut update = Update::attempt(id, fence, Change::Finish(outcome));
        update.releases = true;
        ledger.apply(NOW, Command::Update(vec![update]));
        ledger.apply(NOW, Command::Expire(vec![id]));
        black_box(ledger.apply(NOW, Command::Forget(vec![id])));
    }
}

fn cycles(c: &mut Criterion) {
    const BATCH: u64 = 1_000;
    let mut group = c.benchmark_group("submit_lease_start_finish");
    group.throughput(Throughput::Elements(BATCH)).sample_size(20);
    for queued in [1_000_u64, 100_000] {
        let ledger = filled(queued);
        group.bench_with_input(BenchmarkId::from_parameter(queued), &queued, |b, queued| {
            b.iter_batched_ref(
                || ledger.clone(),
                |ledger| (0..BATCH).for_each(|n| cycle(ledger, queued + n)),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, cycles);
criterion_main!(benches);
