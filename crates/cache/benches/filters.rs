//! Filters on two large answers, against the `jq` command, as ratios of one run.
//!
//! Prints one JSON object per figure. The answers are written by `tests/bench/large_answers.py` into
//! the folder that `RAINCHECK_BENCH_DATA` names, else into the temporary folder of cargo. Where
//! `RAINCHECK_JQ_EXAMPLES` names a file of jq's own tests, such as its `man.test`, it is counted how many
//! of them agree, and the others are shown.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a benchmark of known answers ends at the first surprise, and tells its figures by the clock"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use raincheck_cache::{
    BodyKey, ChildProgram, Filter, FilterFailure, Filters, FiltersConfig, Limits, Outputs, View,
    run_child, scan,
};
use serde_json::{Value, json};

/// The argument that makes this program a filter process.
const CHILD: &str = "raincheck-filter-process";

/// Filters that both must answer alike; the first of them follow paths.
const COMPARED: [(&str, &str); 9] = [
    ("scene", ".hierarchy[].name"),
    ("scene", ".hierarchy | length"),
    ("scene", ".hierarchy[3].children[0].name"),
    ("log", ".entries[1000:1010]"),
    ("log", ".entries | map(select(.type == \"Error\")) | length"),
    ("scene", "[.. | .name?] | length"),
    ("scene", "[.. | objects | .name? // empty] | group_by(.) | length"),
    ("log", "[.entries[] | select(.message | test(\"null\"; \"i\"))] | length"),
    ("log", ".entries | map(.message | length) | add"),
];

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == CHILD) {
        return run_child();
    }
    // `cargo test --benches` only asks whether it starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let program = ChildProgram::of_this_program([CHILD]).unwrap();
    let filters =
        Filters::open(FiltersConfig { program: Some(program), ..FiltersConfig::default() });
    if let Some(examples) = std::env::var_os("RAINCHECK_JQ_EXAMPLES") {
        agreement(&filters, Path::new(&examples));
        return ExitCode::SUCCESS;
    }
    let folder = data();
    for (at, (name, filter)) in COMPARED.iter().enumerate() {
        compare(&filters, &folder.join(format!("{name}.json")), at, filter);
    }
    ExitCode::SUCCESS
}

fn limits() -> Limits {
    Limits { wall: Duration::from_secs(60), cpu: Duration::from_secs(60), ..Limits::default() }
}

fn compare(filters: &Filters, path: &Path, at: usize, text: &str) {
    let body = std::fs::read(path).unwrap();
    let index = scan(&body).unwrap();
    let view = View::new(&body, &index);
    let key = |revision| BodyKey { id: at as u128, revision };
    let filter = Filter::parse(text).unwrap();
    let limits = limits();
    let mut jq = Vec::new();
    let mut cold = Vec::new();
    let mut warm = Vec::new();
    for round in 0..5 {
        let mut answers = (Vec::new(), Outputs::default());
        jq.push(timed(|| answers.0 = jq_outputs(text, path)));
        filters.clear();
        cold.push(timed(|| answers.1 = filters.run(&filter, &view, key(round), &limits).unwrap()));
        let n_runs: u32 = if filter.is_path() { 20 } else { 1 };
        let time = timed(|| {
            for _ in 0..n_runs {
                filters.run(&filter, &view, key(round), &limits).unwrap();
            }
        });
        warm.push(time / n_runs);
        let theirs: Vec<Value> = serde_json::Deserializer::from_slice(&answers.0)
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let ours: Vec<Value> = serde_json::from_slice(&answers.1.into_array()).unwrap();
        assert_eq!(theirs, ours, "{text}");
    }
    let (jq, cold, warm) = (middle(jq), middle(cold), middle(warm));
    let ratio = |time: Duration| jq.as_secs_f64() / time.as_secs_f64();
    let figure = json!({
        "filter": text, "is_path": filter.is_path(), "jq, ms": millis(jq), "first, ms": millis(cold), "again, ms": millis(warm),
        "jq / first": ratio(cold), "jq / again": ratio(warm),
    });
    println!("{figure}");
}

fn jq_outputs(filter: &str, path: &Path) -> Vec<u8> {
    let output = Command::new("jq")
        .args(["-c", filter])
        .arg(path)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "jq {filter}");
    output.stdout
}

fn timed(run: impl FnOnce()) -> Duration {
    let began = Instant::now();
    run();
    began.elapsed()
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
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

/// Counts the examples that agree: a filter, an input and the outputs, a line each, with an empty line
/// behind.
fn agreement(filters: &Filters, path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let (mut agreed, mut all) = (0, 0);
    for (at, example) in text.split("\n\n").enumerate() {
        let lines: Vec<&str> =
            example.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        let [filter, input, wanted @ ..] = lines.as_slice() else { continue };
        if filter.starts_with("%%FAIL")
            || filter.starts_with("import ")
            || filter.starts_with("include ")
            || filter.contains("::")
        {
            continue;
        }
        all += 1;
        let key = BodyKey { id: at as u128, revision: 0 };
        let got = example_outputs(filters, filter, input.trim_start_matches('\u{feff}'), key);
        let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
        let wanted: Vec<_> = wanted.iter().map(|line| parse(line)).collect();
        let is_agreed = got
            .as_ref()
            .is_ok_and(|got| got.iter().cloned().map(Some).collect::<Vec<_>>() == wanted);
        agreed += u32::from(is_agreed);
        if !is_agreed {
            println!(
                "{}",
                json!({ "filter": filter, "input": input, "wanted": wanted, "got": got.unwrap_or_else(|why| vec![json!(why)]) })
            );
        }
    }
    eprintln!("{agreed} of {all} examples agree");
}

fn example_outputs(
    filters: &Filters,
    filter: &str,
    input: &str,
    key: BodyKey,
) -> Result<Vec<Value>, String> {
    let filter = Filter::parse(filter).map_err(|wrong| wrong.to_string())?;
    let index = scan(input.as_bytes()).map_err(|wrong| format!("{wrong:?}"))?;
    let body = input.as_bytes();
    match filters.run(&filter, &View::new(&body, &index), key, &limits()) {
        Ok(outputs) => {
            serde_json::from_slice(&outputs.into_array()).map_err(|error| error.to_string())
        }
        Err(FilterFailure::Failed { message, .. }) => Err(format!("fails: {message}")),
        Err(failure) => Err(failure.to_string()),
    }
}
