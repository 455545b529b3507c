//! Index and pages of two large answers, against parsing them, as ratios of one run.
//!
//! Prints one JSON object per figure. The answers are written by `tests/bench/large_answers.py` into
//! the folder that `RAINCHECK_BENCH_DATA` names, else into the temporary folder of cargo.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a benchmark of known answers ends at the first surprise, and tells its figures"
)]

use std::{hint::black_box, path::PathBuf, process::Command, time::Duration};

use raincheck_cache::{At, Budget, PageRequest, Pointer, Query, View, scan};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

const PAGE_BYTES: usize = 64 * 1024;

fn main() {
    // `cargo test --benches` only asks whether it starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = data();
    for (name, field) in [("scene", "hierarchy"), ("log", "entries")] {
        let body = std::fs::read(folder.join(format!("{name}.json"))).unwrap();
        figures(name, field, &body);
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

fn figures(name: &str, field: &str, body: &[u8]) {
    let [ignored, scanned] = side_by_side(
        25,
        [
            &mut || {
                black_box(serde_json::from_slice::<IgnoredAny>(body).unwrap());
            },
            &mut || {
                drop(black_box(scan(body).unwrap()));
            },
        ],
    );
    let index = scan(body).unwrap();
    let index_bytes = index.heap_bytes();
    print(name, "index built, ms", millis(scanned));
    print(name, "validated by serde IgnoredAny, ms", millis(ignored));
    print(name, "index / IgnoredAny (at most 1.5)", ratio(scanned, ignored));
    print(name, "index / body, %", 100.0 * index_bytes as f64 / body.len() as f64);

    let view = View::new(&body, &index);
    let request = |page| PageRequest {
        path: None,
        at: At::Page(page),
        budget: Budget { bytes: Some(PAGE_BYTES), ..Budget::default() },
        binding: 0,
    };
    let began = now();
    let n_pages = view.page(request(1)).unwrap().pagination.total_pages as u64;
    print(name, "first page in a size, ms", millis(now() - began));
    let pages: Vec<Duration> = (1..=n_pages)
        .map(|page| {
            median(5, || {
                black_box(view.page(request(page)).unwrap());
            })
        })
        .collect();
    let page = middle(pages);
    let again = median(5, || {
        let value: Value = serde_json::from_slice(body).unwrap();
        let items = value[field].as_array().unwrap();
        let n = items.len().div_ceil(n_pages as usize);
        black_box(serde_json::to_vec(&items[items.len() - n..]).unwrap());
    });
    let value: Value = serde_json::from_slice(body).unwrap();
    let items = value[field].as_array().unwrap();
    let n = items.len().div_ceil(n_pages as usize);
    let held = median(15, || {
        black_box(serde_json::to_vec(&items[items.len() - n..]).unwrap());
    });
    print(name, "64 KiB page, µs", page.as_secs_f64() * 1e6);
    print(name, "parse again / page (at least 1000)", ratio(again, page));
    print(name, "parsed value held / page", ratio(held, page));

    // The one asked for last is held: another size is another outline.
    let mut sizes = (0..).map(|n| 2048 + n % 2);
    let outlined = median(5, || {
        black_box(view.outline(sizes.next().unwrap_or_default()).unwrap());
    });
    print(name, "outline, ms", millis(outlined));
    view.outline(2048).unwrap();
    let again = median(99, || {
        black_box(view.outline(2048).unwrap());
    });
    print(name, "the outline again, µs", again.as_secs_f64() * 1e6);
    let query = Query::literal("nothing that is there").unwrap();
    let searched = median(5, || {
        black_box(view.search(&query, 0, Budget::default()).unwrap());
    });
    print(name, "search of the whole, ms", millis(searched));
    let path = Pointer::parse(&format!("/{field}/{}", items.len() - 1)).unwrap();
    let found = median(99, || {
        black_box(view.resolve(&path).unwrap());
    });
    print(name, "a pointer to the last item, µs", found.as_secs_f64() * 1e6);
}

fn print(body: &str, figure: &str, value: f64) {
    let value = (value * 1000.0).round() / 1000.0;
    println!("{}", json!({"body": body, "figure": figure, "value": value}));
}

fn median(n_rounds: usize, mut run: impl FnMut()) -> Duration {
    middle(
        (0..n_rounds)
            .map(|_| {
                let began = now();
                run();
                now() - began
            })
            .collect(),
    )
}

/// Runs several in turn, so that each sees the same machine.
fn side_by_side<const N: usize>(n_rounds: usize, mut runs: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..n_rounds {
        for (run, times) in runs.iter_mut().zip(&mut times) {
            let began = now();
            run();
            times.push(now() - began);
        }
    }
    times.map(middle)
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

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}
