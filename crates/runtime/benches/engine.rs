//! Tasks per second end to end, and the time from a submit to its result.
//!
//! ```console
//! cargo bench -p raincheck-runtime
//! ```

use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use raincheck_core::content::Json;
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Functions, Handle, Options, Request, Submission, start};

const WAIT: Duration = Duration::from_secs(60);

/// How many tasks one caller has under way.
const BATCH: usize = 100;

fn engine(runtime: &Runtime, concurrency: u32) -> Handle {
    let mut noop = ToolSpec::new("noop", "does nothing", Json::empty_object());
    noop.lane = LaneId::from("bench");
    let tools = Functions::new()
        .with(noop, |_, _| async { Outcome::Succeeded(Vec::new()) })
        .with_lane("bench", lane::Config::new(concurrency, 1_000_000));
    let _context = runtime.enter();
    let (handle, service) = start(Options::in_memory().with_tools(Arc::new(tools)));
    #[expect(clippy::disallowed_methods, reason = "the engine runs as long as the benchmark")]
    drop(tokio::spawn(service.run(CancellationToken::new())));
    handle
}

async fn run_one(handle: &Handle) {
    let mut request = Request::new("noop", Json::null(), Scope::local());
    request.is_inline = true;
    let Ok(Submission::Task(accepted)) = handle.submit(request).await else { return };
    let view = handle.wait_accepted(accepted, WAIT).await;
    assert!(view.is_ok_and(|view| view.record.state.is_terminal()), "a task did not end");
}

async fn run_many(handle: Handle, n: usize) {
    let mut under_way: FuturesUnordered<_> = (0..n).map(|_| run_one(&handle)).collect();
    while under_way.next().await.is_some() {}
}

/// Runs a future on a worker of the runtime, not beside it.
fn on_a_worker(runtime: &Runtime, future: impl Future<Output = ()> + Send + 'static) {
    let mut set = JoinSet::new();
    set.spawn_on(future, runtime.handle());
    runtime.block_on(set.join_all());
}

fn runtime(workers: usize) -> Option<Runtime> {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().ok()
}

fn one_at_a_time(criterion: &mut Criterion) {
    let Some(runtime) = runtime(2) else { return };
    let handle = engine(&runtime, 64);
    criterion.bench_function("submit to result, one at a time", |bencher| {
        bencher.iter_custom(|n| {
            let (handle, begun) = (handle.clone(), Instant::now());
            on_a_worker(&runtime, async move {
                for _ in 0..n {
                    run_one(&handle).await;
                }
            });
            begun.elapsed()
        });
    });
}

fn many_at_once(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("no-op tasks");
    for (workers, callers) in [(1, 1), (1, 8), (2, 2), (2, 8)] {
        let Some(runtime) = runtime(workers) else { return };
        let handle = engine(&runtime, 64);
        group.throughput(Throughput::Elements((callers * BATCH) as u64));
        group.sample_size(20);
        group.bench_function(format!("{workers} threads, {callers} callers"), |bencher| {
            bencher.iter(|| {
                let all = (0..callers).map(|_| run_many(handle.clone(), BATCH));
                let all: JoinSet<()> = runtime.block_on(async { all.collect() });
                runtime.block_on(all.join_all());
            });
        });
    }
    group.finish();
}

criterion_group!(benches, one_at_a_time, many_at_once);
criterion_main!(benches);
