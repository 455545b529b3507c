//! Drains a filled queue of the durable engine, or submits to it, and prints how many a second.
//!
//! `raincheck-queue drain full|process WORKERS JOBS SECONDS FOLDER`
//! `raincheck-queue submit full|process CALLERS JOBS SECONDS FOLDER`
//! `raincheck-queue open full|process 1 0 0 FOLDER`
//! `raincheck-queue large full|process 1 MIB ROUNDS FOLDER`
//! `raincheck-queue fill full|process 16 JOBS TTL_S FOLDER`
//! `raincheck-queue look|expiries full|process 1 0 SECONDS FOLDER`
//! `raincheck-queue polled full|process 1 MIB POLLS FOLDER`
//!
//! `drain`: the lane is held while the queue is filled, outside the clock; then WORKERS tasks run at
//! once. The rate is of the tasks whose executor was called until all were done or SECONDS were over;
//! each of them is also ended, recorded with its history, and committed.
//! `submit`: CALLERS submit one task after the other, each waiting for its commit.
//! `open`: opens what `submit` left in FOLDER, and prints seconds.
//! `large`: one caller submits for a second, and then while a result of MIB is stored, round by round;
//! prints the slowest acknowledgements, and how long a result took.
//! `fill`: runs JOBS tasks to their end, which are kept for TTL_S seconds.
//! `look`: times lists and submits of what `fill` left; `expiries`: the same for SECONDS after
//! the retention of all of it was over.
//! `polled`: times the status of a task whose result is MIB long.

mod many;

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use raincheck_core::content::{Content, Json};
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::scope::Scope;
use raincheck_core::task::{Outcome, WaitReason};
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Functions, Handle, Options, Request, Submission, start};
use raincheck_store_sqlite::{Options as StoreOptions, SqliteStore};

type Failure = Box<dyn std::error::Error>;

const LANE: &str = "bench";

static DONE: AtomicU64 = AtomicU64::new(0);
static ALL: AtomicU64 = AtomicU64::new(u64::MAX);
static COMPLETE: Notify = Notify::const_new();

fn request() -> Request {
    Request::new("nothing", Json::empty_object(), Scope::local())
}

fn engine(is_full: bool, n_workers: u32, n_mib: usize, folder: &Path) -> Result<Handle, Failure> {
    let mut nothing = ToolSpec::new("nothing", "does nothing", Json::empty_object());
    nothing.lane = LaneId::from(LANE);
    let mut large = ToolSpec::new("large", "answers at length", Json::empty_object());
    large.lane = LaneId::from("large");
    // Made once: what is measured is how it is stored.
    let text: Arc<str> = "0123456789abcdef".repeat(n_mib << 16).into();
    let tools = Functions::new()
        .with(nothing, |_, _| async {
            if DONE.fetch_add(1, Ordering::Relaxed) + 1 == ALL.load(Ordering::Relaxed) {
                COMPLETE.notify_one();
            }
            Outcome::Succeeded(Vec::new())
        })
        .with(large, move |_, _| {
            let outcome = Outcome::Succeeded(vec![Content::Text(Arc::clone(&text))]);
            async move { outcome }
        })
        .with_lane("large", lane::Config::new(1, 1))
        .with_lane(LANE, lane::Config::new(n_workers, 10_000_000));
    let path = folder.join("tasks.db");
    let store = if is_full { StoreOptions::full(path) } else { StoreOptions::process(path) };
    let options = Options { store: Arc::new(SqliteStore::new(store)), ..Options::in_memory() };
    let (handle, service) = start(options.with_tools(Arc::new(tools)));
    tokio::spawn(service.run(CancellationToken::new()));
    Ok(handle)
}

/// Submits from many callers at once; returns how long it took.
async fn submit(handle: &Handle, n_callers: u64, n_jobs: u64) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..n_callers {
        let share = n_jobs / n_callers + u64::from(caller < n_jobs % n_callers);
        let handle = handle.clone();
        callers.spawn(async move {
            for _ in 0..share {
                handle.submit(request()).await?;
            }
            Ok::<_, raincheck_core::error::Error>(())
        });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    Ok(begun.elapsed())
}

/// Submits one task after the other until `end` is ready; returns the slowest acknowledgement.
async fn slowest(
    handle: &Handle,
    end: impl Future<Output = Result<(), Failure>>,
) -> Result<Duration, Failure> {
    let is_over = Cell::new(false);
    let submits = async {
        let mut slowest = Duration::ZERO;
        while !is_over.get() {
            let begun = Instant::now();
            handle.submit(request()).await?;
            slowest = slowest.max(begun.elapsed());
        }
        Ok(slowest)
    };
    let end = async {
        let ended = end.await;
        is_over.set(true);
        ended
    };
    let (slowest, ended) = tokio::join!(submits, end);
    ended.and(slowest)
}

async fn store_large(handle: &Handle) -> Result<(), Failure> {
    let submitted =
        handle.submit(Request::new("large", Json::empty_object(), Scope::local())).await?;
    let Submission::Task(accepted) = submitted else { return Err("no task".into()) };
    let ended =
        handle.wait_end(&Scope::local(), accepted.record.id(), Duration::from_secs(60)).await?;
    if ended.record.state.is_terminal() {
        Ok(())
    } else {
        Err("the large result was not stored".into())
    }
}

/// Prints the slowest acknowledgements without and with a large result, and how long that took.
async fn large(handle: &Handle, n_rounds: u64) -> Result<(), Failure> {
    let (mut without, mut with, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n_rounds {
        let second = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(())
        };
        without.push(slowest(handle, second).await?);
        let begun = Instant::now();
        with.push(slowest(handle, store_large(handle)).await?);
        taken.push(begun.elapsed());
    }
    for (what, mut times) in [("without", without), ("with", with), ("stored in", taken)] {
        times.sort();
        println!("{what} {:.1} ms, of {times:.1?}", times[times.len() / 2].as_secs_f64() * 1e3);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, durability, n, jobs, seconds, folder] = arguments.as_slice() else {
        return Err(
            "usage: raincheck-queue drain|submit|open|large|fill|look|expiries|polled full|process N JOBS SECONDS FOLDER".into()
        );
    };
    let (n, n_jobs): (u32, u64) = (n.parse()?, jobs.parse()?);
    let at_most = Duration::from_secs(seconds.parse()?);
    let begun = Instant::now();
    let n_mib = if what == "large" || what == "polled" { jobs.parse()? } else { 0 };
    let handle = engine(durability == "full", n, n_mib, Path::new(folder))?;
    if what == "open" {
        handle.lanes().await?;
        println!("{:.3}", begun.elapsed().as_secs_f64());
        std::process::exit(0);
    }
    // Opening is not part of the first call.
    handle.lanes().await?;
    match what.as_str() {
        "fill" => {
            many::fill(&handle, n_jobs, at_most).await?;
            drop(handle);
            return Ok(());
        }
        "look" => return many::look(&handle).await,
        "expiries" => return many::expiries(&handle, at_most).await,
        "polled" => return many::polled(&handle, usize::try_from(at_most.as_secs())?).await,
        _ => {}
    }
    if what == "large" {
        large(&handle, at_most.as_secs()).await?;
        std::process::exit(0);
    }
    handle.hold(LaneId::from(LANE), Some(WaitReason::new("disconnected"))).await?;
    #[expect(clippy::cast_precision_loss, reason = "a count of tasks is small")]
    let rate = if what == "drain" {
        submit(&handle, 64, n_jobs).await?;
        ALL.store(n_jobs, Ordering::Relaxed);
        let begun = Instant::now();
        handle.hold(LaneId::from(LANE), None).await?;
        let _late = tokio::time::timeout(at_most, COMPLETE.notified()).await;
        DONE.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64()
    } else {
        n_jobs as f64 / submit(&handle, n.into(), n_jobs).await?.as_secs_f64()
    };
    println!("{rate:.1}");
    // The folder is thrown away: nothing has to be put away in order.
    std::process::exit(0);
}
