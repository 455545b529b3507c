//! Storing, reading and resting of two large answers, as ratios of one run.
//!
//! Prints one JSON object per figure. The answers are those of the benchmark `bodies`.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark of known answers ends at the first surprise, and tells its figures"
)]

use std::{hint::black_box, path::Path, path::PathBuf, process::Command, time::Duration};

use raincheck_cache::{At, BodyKind, Budget, Cache, Config, New, PageRequest, Receipt};
use serde::de::IgnoredAny;
use serde_json::json;

const PAGE_BYTES: usize = 64 * 1024;
const IDLE: u64 = 60_000;

fn main() {
    // `cargo test --benches` only asks whether it starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = data();
    if let Some(name) = std::env::args().skip_while(|argument| argument != "resident").nth(1) {
        // In a process of its own: what another figure has freed would be taken again.
        return residing(&name, &std::fs::read(folder.join(format!("{name}.json"))).unwrap());
    }
    for name in ["scene", "log"] {
        let body = std::fs::read(folder.join(format!("{name}.json"))).unwrap();
        storing(name, &body);
        let own = Command::new(std::env::current_exe().unwrap())
            .args(["--bench", "resident", name])
            .status();
        assert!(own.unwrap().success());
        for (place, dir) in [("memory", None), ("folder", Some(tempfile::tempdir().unwrap()))] {
            reading(&format!("{name}, {place}"), &body, dir.as_ref().map(tempfile::TempDir::path));
        }
    }
}

fn data() -> PathBuf {
    let folder = std::env::var_os("RAINCHECK_BENCH_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("large"), PathBuf::from);
    if !folder.join("log.json").exists() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/bench/large_answers.py");
        let status = Command::new("python3").arg(script).arg(&folder).status().unwrap();
        assert!(status.success(), "{script} failed");
    }
    folder
}

fn config(dir: Option<&Path>) -> Config {
    Config { dir: dir.map(Path::to_owned), idle_ms: IDLE, ..Config::default() }
}

fn insert(cache: &Cache, body: Vec<u8>) -> Receipt {
    cache.insert(0, "me", New::answer("tool", "{}", body, BodyKind::Json)).unwrap()
}

fn storing(name: &str, body: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let mut times = [const { Vec::new() }; 3];
    let mut walls = [const { Vec::new() }; 3];
    let mut all = [const { Vec::new() }; 3];
    let caches = [Cache::open(config(None), 0), Cache::open(config(Some(dir.path())), 0)];
    for _ in 0..15 {
        let began = (now(), wall(), all_threads());
        black_box(serde_json::from_slice::<IgnoredAny>(body).unwrap());
        times[0].push(now() - began.0);
        walls[0].push(wall() - began.1);
        all[0].push(all_threads() - began.2);
        for (nth, cache) in (1..).zip(&caches) {
            let body = body.to_vec();
            let began = (now(), wall(), all_threads());
            let receipt = insert(cache, body);
            times[nth].push(now() - began.0);
            walls[nth].push(wall() - began.1);
            all[nth].push(all_threads() - began.2);
            let id = receipt.id();
            drop(receipt);
            cache.delete(0, "me", id).unwrap();
        }
    }
    let [ignored, memory, folder] = times.map(middle);
    print(name, "insert in memory, ms", millis(memory));
    print(name, "insert in memory / IgnoredAny (at most 1.5)", ratio(memory, ignored));
    print(name, "insert in a folder, ms", millis(folder));
    print(name, "insert in a folder / IgnoredAny (at most 1.5)", ratio(folder, ignored));
    let [ignored, memory, folder] = all.map(middle);
    print(name, "the same in memory, all threads", ratio(memory, ignored));
    print(name, "the same in a folder, all threads", ratio(folder, ignored));
    // Other work on the machine counts here: the best of all rounds had least of it.
    let [ignored, memory, folder] = walls.map(|walls| walls.into_iter().min().unwrap_or_default());
    print(name, "the same in memory, best on the wall clock", ratio(memory, ignored));
    print(name, "the same in a folder, best on the wall clock", ratio(folder, ignored));
}

fn residing(name: &str, body: &[u8]) {
    let cache = Cache::open(config(None), 0);
    let (before, before_own) = (resident(), own());
    // One after the other, as they come in a life. What is taken once, as the pages of the program
    // are, stands for the first of them.
    let mut now = 0;
    for n in 1..=4 {
        let new = New::answer("tool", "{}", body.to_vec(), BodyKind::Json);
        drop(cache.insert(now, "me", new).unwrap());
        let raw = f64::from(n) * body.len() as f64;
        if n == 1 {
            print(name, "resident / body, the first (at most 1.1)", (resident() - before) / raw);
        }
        now += IDLE;
        cache.tick(now);
        let figure = format!("resident at rest / body, {n} (at most 0.25)");
        print(name, &figure, (resident() - before) / raw);
        let figure = format!("the same without the pages of the program, {n}");
        print(name, &figure, (own() - before_own) / raw);
    }
}

fn reading(name: &str, body: &[u8], dir: Option<&Path>) {
    let cache = Cache::open(config(dir), 0);
    let raw = body.len() as f64;
    let id = insert(&cache, body.to_vec()).id();
    print(name, "charged / body", cache.usage(0, "me").bytes as f64 / raw);
    let began = now();
    cache.tick(IDLE);
    print(name, "coming to rest, ms", millis(now() - began));
    print(name, "charged at rest / body", cache.usage(IDLE, "me").bytes as f64 / raw);

    let page = |n, bytes| {
        let entry = cache.get(IDLE, "me", id).unwrap();
        let budget = Budget { bytes: Some(bytes), ..Budget::default() };
        let request = PageRequest { path: None, at: At::Page(n), budget, binding: 0 };
        entry.view().page(request).unwrap().pagination.total_pages as u64
    };
    for bytes in [PAGE_BYTES, PAGE_BYTES / 2] {
        let began = now();
        let n_pages = page(1, bytes);
        let size = bytes / 1024;
        print(name, &format!("first page of {size} KiB at rest, ms"), millis(now() - began));
        let time = |n| {
            let began = now();
            black_box(page(n, bytes));
            now() - began
        };
        let times: Vec<_> =
            (1..=n_pages).map(|n| middle((0..9).map(|_| time(n)).collect())).collect();
        let worst = times.iter().max().copied().unwrap_or_default();
        let good = times.iter().filter(|time| millis(**time) <= 0.15).count();
        print(name, &format!("pages of {size} KiB"), n_pages as f64);
        let figure = format!("get and a {size} KiB page at rest, ms, median (at most 0.15)");
        print(name, &figure, millis(middle(times.clone())));
        print(name, "the same, the slowest page, ms", millis(worst));
        print(name, "the same, pages within 0.15 ms, %", 100.0 * good as f64 / n_pages as f64);
    }

    let Some(dir) = dir else { return };
    drop(cache);
    let began = now();
    let cache = Cache::open(config(Some(dir)), IDLE);
    print(name, "opening a folder of one, ms", millis(now() - began));
    let began = now();
    cache.get(IDLE, "me", id).unwrap();
    print(name, "first read after a restart, ms", millis(now() - began));
}

/// What the process has resident.
fn resident() -> f64 {
    pages(1)
}

/// The same without what it has of files, such as its program.
fn own() -> f64 {
    pages(1) - pages(2)
}

fn pages(field: usize) -> f64 {
    let all = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = all.split(' ').nth(field).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as f64
}

fn print(body: &str, figure: &str, value: f64) {
    let value = (value * 1000.0).round() / 1000.0;
    println!("{}", json!({"body": body, "figure": figure, "value": value}));
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Processor time of this thread: other work on the machine does not count.
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Processor time of all threads of the process.
fn all_threads() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn wall() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::try_from(time).unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}
