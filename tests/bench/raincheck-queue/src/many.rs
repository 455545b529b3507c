//! A store that holds much: a million tasks that have ended, as many whose retention is over at once,
//! and one result that is polled.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Cursor, Filter};
use raincheck_core::time::Timestamp;
use raincheck_runtime::{Handle, Submission};

use super::{Failure, request, store_large};

/// So many calls of a kind are timed.
const N_CALLS: usize = 1000;

/// A page of a list, as the tools ask for it.
const N_LISTED: u32 = 50;

/// Submits from 64 callers and waits until all have ended; every second task has a key, every
/// hundredth a tag.
pub(super) async fn fill(handle: &Handle, n_jobs: u64, ttl: Duration) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..64 {
        let handle = handle.clone();
        callers.spawn(async move {
            let mut last = None;
            for job in (caller..n_jobs).step_by(64) {
                let mut request = request();
                request.ttl = Some(ttl);
                request.key = (job / 64 % 2 == 0).then(|| format!("key-{job}").into());
                if job % 100 == 0 {
                    request.tags = vec!["rare".into()];
                }
                last = Some(handle.submit(request).await?);
            }
            if let Some(Submission::Task(task)) = last {
                let wait = Duration::from_secs(3600);
                handle.wait_end(&Scope::local(), task.record.id(), wait).await?;
            }
            Ok::<_, raincheck_core::error::Error>(())
        });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    let live = Filter { states: vec![State::Queued, State::Running], ..Filter::default() };
    while !handle.list(&Scope::local(), &live, None, 1).await?.items.is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("{n_jobs} ended in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Prints how long lists and submits take.
pub(super) async fn look(handle: &Handle) -> Result<(), Failure> {
    println!("open, resident {} MB", resident_mb());
    let scope = Scope::local();
    let newest = handle.list(&scope, &Filter::default(), None, 1).await?;
    let after = newest.items.first().ok_or("the store is empty")?.task.submitted_at;
    let all = Filter::default();
    let filters = [
        ("all", all.clone()),
        ("succeeded", Filter { states: vec![State::Succeeded], ..all.clone() }),
        ("failed, of which there are none", Filter { states: vec![State::Failed], ..all.clone() }),
        ("of a tool", Filter { tool: Some("nothing".into()), ..all.clone() }),
        ("of another tool", Filter { tool: Some("large".into()), ..all.clone() }),
        ("with a rare tag", Filter { tags_any: vec!["rare".into()], ..all.clone() }),
        ("with a tag of none", Filter { tags_any: vec!["none".into()], ..all.clone() }),
        (
            "of the last second",
            Filter {
                submitted_after: Some(Timestamp::from_millis(after.as_millis() - 1000)),
                ..all.clone()
            },
        ),
        (
            "succeeded, with a rare tag",
            Filter { states: vec![State::Succeeded], tags_any: vec!["rare".into()], ..all },
        ),
    ];
    for (what, filter) in filters {
        let (mut times, mut before) = (Vec::new(), None);
        for _ in 0..N_CALLS {
            let begun = Instant::now();
            let page = handle.list(&scope, &filter, before, N_LISTED).await?;
            times.push(begun.elapsed());
            before = page.items.last().filter(|_| page.has_more).map(|last| Cursor(last.seq));
        }
        print(&format!("list {what}"), times);
    }
    print("submit", submits(handle, N_CALLS).await?);
    println!("resident {} MB", resident_mb());
    Ok(())
}

/// Prints how long submits and lists take in the time after the retention of everything was over.
pub(super) async fn expiries(handle: &Handle, span: Duration) -> Result<(), Failure> {
    let scope = Scope::local();
    let ended = Filter { states: vec![State::Succeeded], ..Filter::default() };
    let (begun, mut submitted, mut listed) = (Instant::now(), Vec::new(), Vec::new());
    while begun.elapsed() < span {
        submitted.extend(submits(handle, 1).await?);
        let asked = Instant::now();
        handle.list(&scope, &ended, None, N_LISTED).await?;
        listed.push(asked.elapsed());
    }
    print("submit meanwhile", submitted);
    print("list meanwhile", listed);
    println!("resident {} MB", resident_mb());
    Ok(())
}

/// Prints how long polls of a large result take that do not ask for it.
pub(super) async fn polled(handle: &Handle, n_polls: usize) -> Result<(), Failure> {
    store_large(handle).await?;
    let scope = Scope::local();
    let page = handle.list(&scope, &Filter::default(), None, 1).await?;
    let id = page.items.first().ok_or("no task")?.id();
    let before = resident_mb();
    let mut times = Vec::new();
    for _ in 0..n_polls {
        let begun = Instant::now();
        handle.status(&scope, id).await?;
        times.push(begun.elapsed());
    }
    print("status", times);
    println!("resident {before} MB before, {} MB after", resident_mb());
    Ok(())
}

async fn submits(handle: &Handle, n: usize) -> Result<Vec<Duration>, Failure> {
    let mut times = Vec::with_capacity(n);
    for _ in 0..n {
        let mut request = request();
        request.ttl = Some(Duration::from_secs(86400));
        let begun = Instant::now();
        handle.submit(request).await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |per_mille: usize| times[(times.len() - 1) * per_mille / 1000].as_secs_f64() * 1e3;
    println!(
        "{what}: p50 {:.2} ms, p99 {:.2} ms, slowest {:.2} ms, of {}",
        at(500),
        at(990),
        at(1000),
        times.len()
    );
}

/// Returns the resident memory of this process in MB.
fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1000
}
