//! What a commit costs: submits a second, the time to lease with a long queue, and opening.
//!
//! ```console
//! cargo bench -p raincheck-store-sqlite                      # all of it; the long queues take minutes
//! cargo bench -p raincheck-store-sqlite -- "durable submits"
//! ```

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::Instant;

use raincheck_core::content::Json;
use raincheck_core::decide::Change;
use raincheck_core::ids::TaskId;
use raincheck_core::lane;
use raincheck_core::retry::Policy;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Claim, Claimed, NoSink, Submit, TaskStore as _, Update};
use raincheck_core::task::{Limits, Outcome, Resources, Task};
use raincheck_core::time::Timestamp;
use raincheck_store_sqlite::{Options, SqliteStore};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

/// Tasks in one transaction while a queue is filled.
const FILL: u64 = 1_000;

fn one(n: u64) -> Submit {
    let task = Task {
        id: TaskId::from_parts(n, [1; 10]),
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

async fn open(folder: &Path) -> Option<SqliteStore> {
    let store = SqliteStore::new(Options::full(folder.join("tasks.db")));
    let lanes = vec![("lane".into(), lane::Config::new(64, 10_000_000))];
    store.open(NOW, lanes, Duration::from_secs(10), Arc::new(NoSink)).await.ok()?;
    Some(store)
}

async fn submit(store: &SqliteStore, batch: Vec<Submit>) {
    let posted = store.submit(NOW, batch, None).await;
    let committed = match posted {
        Ok(posted) => posted.receipt.committed().await,
        Err(error) => Err(error),
    };
    assert!(committed.is_ok(), "{committed:?}");
}

fn claim() -> Claim {
    Claim { lanes: vec!["lane".into()], n: 1 }
}

async fn lease(store: &SqliteStore) -> Option<Claimed> {
    let posted = store.claim(NOW, claim()).await.ok()?;
    posted.receipt.committed().await.ok()?;
    posted.value.into_iter().next()
}

/// Ends a task and, as a worker does, leases the next one in the same transaction.
async fn end(store: &SqliteStore, claimed: &Claimed, then: Option<Claim>) -> Option<Claimed> {
    let done = Change::Finish(Outcome::Succeeded(Vec::new()));
    let update = Update {
        releases: true,
        ..Update::attempt(claimed.record.id(), claimed.record.fence, done)
    };
    let posted = store.update(NOW, vec![update], then).await.ok()?;
    posted.receipt.committed().await.ok()?;
    posted.value.1.into_iter().next()
}

async fn fill(store: &SqliteStore, n: u64) {
    for first in (0..n).step_by(usize::try_from(FILL).unwrap_or(1)) {
        submit(store, (first..first + FILL).map(one).collect()).await;
    }
}

fn runtime() -> Option<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().ok()
}

fn submits(criterion: &mut Criterion) {
    let (Some(runtime), Ok(folder)) = (runtime(), tempfile::tempdir()) else { return };
    let Some(store) = runtime.block_on(open(folder.path())) else { return };
    let (store, next) = (Arc::new(store), Arc::new(AtomicU64::new(0)));
    let mut group = criterion.benchmark_group("durable submits");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    for n_callers in [1_u64, 64] {
        group.bench_function(BenchmarkId::new("callers", n_callers), |bencher| {
            bencher.iter_custom(|n| {
                let begun = Instant::now();
                let mut callers = JoinSet::new();
                for caller in 0..n_callers {
                    let (store, next) = (Arc::clone(&store), Arc::clone(&next));
                    let share = n / n_callers + u64::from(caller < n % n_callers);
                    let calls = async move {
                        for _ in 0..share {
                            let n = next.fetch_add(1, Ordering::Relaxed);
                            submit(&store, vec![one(n)]).await;
                        }
                    };
                    callers.spawn_on(calls, runtime.handle());
                }
                runtime.block_on(callers.join_all());
                begun.elapsed()
            });
        });
    }
    group.finish();
}

fn tasks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("no-op tasks");
    let Some(runtime) = runtime() else { return };
    group.throughput(Throughput::Elements(1)).sample_size(10);
    for n_workers in [1_u64, 16] {
        group.bench_function(BenchmarkId::new("workers", n_workers), |bencher| {
            bencher.iter_custom(|n| {
                let Ok(folder) = tempfile::tempdir() else { return Duration::MAX };
                let Some(store) = runtime.block_on(open(folder.path())) else {
                    return Duration::MAX;
                };
                runtime.block_on(fill(&store, (n + n_workers).div_ceil(FILL) * FILL));
                let (store, begun) = (Arc::new(store), Instant::now());
                let mut workers = JoinSet::new();
                for worker in 0..n_workers {
                    let store = Arc::clone(&store);
                    let share = n / n_workers + u64::from(worker < n % n_workers);
                    let calls = async move {
                        let mut leased = lease(&store).await;
                        for _ in 0..share {
                            let Some(claimed) = leased else { return };
                            leased = end(&store, &claimed, Some(claim())).await;
                        }
                    };
                    workers.spawn_on(calls, runtime.handle());
                }
                runtime.block_on(workers.join_all());
                begun.elapsed()
            });
        });
    }
    group.finish();
}

/// The slowest of a hundred, over and over: the time that one in a hundred callers waits.
fn long_queues(criterion: &mut Criterion) {
    let Some(runtime) = runtime() else { return };
    let mut group = criterion.benchmark_group("durable lease, slowest of 100");
    group.sample_size(10);
    for length in [1_000_u64, 1_000_000] {
        let Ok(folder) = tempfile::tempdir() else { return };
        let Some(store) = runtime.block_on(open(folder.path())) else { return };
        runtime.block_on(fill(&store, length));
        let next = AtomicU64::new(length);
        group.bench_function(BenchmarkId::new("queued", length), |bencher| {
            bencher.iter_custom(|n| {
                let mut sum = Duration::ZERO;
                for _ in 0..n {
                    let mut slowest = Duration::ZERO;
                    for _ in 0..100 {
                        let again = next.fetch_add(1, Ordering::Relaxed);
                        runtime.block_on(submit(&store, vec![one(again)]));
                        let begun = Instant::now();
                        let leased = runtime.block_on(lease(&store));
                        slowest = slowest.max(begun.elapsed());
                        if let Some(leased) = leased {
                            black_box(runtime.block_on(end(&store, &leased, None)));
                        }
                    }
                    sum += slowest;
                }
                sum
            });
        });
        drop(store);
        group.bench_function(BenchmarkId::new("open", length), |bencher| {
            bencher.iter_custom(|n| {
                let mut sum = Duration::ZERO;
                for _ in 0..n {
                    let begun = Instant::now();
                    let store = runtime.block_on(open(folder.path()));
                    sum += begun.elapsed();
                    assert!(store.is_some(), "the store does not open");
                }
                sum
            });
        });
    }
    group.finish();
}

criterion_group!(benches, submits, tasks, long_queues);
criterion_main!(benches);
