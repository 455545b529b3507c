//! Filters on two large answers, against the `jq` command and other engines, as ratios of one run.
//!
//! Prints one JSON object per figure. `RAINCHECK_BENCH_PEERS` may name other engines beside or instead of the
//! command, as `{"name": ["program", "argument"]}`: a filter and a path follow. One that prints a number to
//! stderr is taken at its word, in milliseconds; `tests/bench/filters.py` fills it in. The answers are written by `tests/bench/large_answers.py` into
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

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
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
    let peers = peers();
    for (at, (name, filter)) in COMPARED.iter().enumerate() {
        compare(&filters, &peers, &folder.join(format!("{name}.json")), at, filter);
    }
    ExitCode::SUCCESS
}

fn limits() -> Limits {
    Limits { wall: Duration::from_secs(60), cpu: Duration::from_secs(60), ..Limits::default() }
}

/// Commands that run a filter.
type Peers = BTreeMap<String, Vec<String>>;

fn peers() -> Peers {
    let named = std::env::var("RAINCHECK_BENCH_PEERS");
    named.map_or_else(
        |_| BTreeMap::from([("jq".to_owned(), vec!["jq".to_owned(), "-c".to_owned()])]),
        |peers| serde_json::from_str(&peers).unwrap(),
    )
}

fn compare(filters: &Filters, peers: &Peers, path: &Path, at: usize, text: &str) {
    let body = std::fs::read(path).unwrap();
    let index = scan(&body).unwrap();
    let view = View::new(&body, &index);
    let key = |revision| BodyKey { id: at as u128, revision };
    let filter = Filter::parse(text).unwrap();
    let limits = limits();
    let mut theirs: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    let mut cold = Vec::new();
    let mut warm = Vec::new();
    for round in 0..5 {
        let mut ours = Outputs::default();
        filters.clear();
        cold.push(timed(|| ours = filters.run(&filter, &view, key(round), &limits).unwrap()));
        let n_runs: u32 = if filter.is_path() { 20 } else { 1 };
        let time = timed(|| {
            for _ in 0..n_runs {
                filters.run(&filter, &view, key(round), &limits).unwrap();
            }
        });
        warm.push(time / n_runs);
        let ours: Vec<Value> = serde_json::from_slice(&ours.into_array()).unwrap();
        for (name, command) in peers {
            let (time, outputs) = run_peer(command, text, path);
            theirs.entry(name).or_default().push(time);
            assert_eq!(outputs, ours, "{name}: {text}");
        }
    }
    let (cold, warm) = (middle(cold), middle(warm));
    println!(
        "{}",
        json!({ "filter": text, "is_path": filter.is_path(), "first, ms": millis(cold), "again, ms": millis(warm) })
    );
    for (name, times) in theirs {
        let time = middle(times);
        let over = |ours: Duration| time.as_secs_f64() / ours.as_secs_f64();
        let figure = json!({
            "filter": text, "by": name, "ms": millis(time), "over our first": over(cold), "over ours again": over(warm),
        });
        println!("{figure}");
    }
}

/// Runs a filter by another engine; returns how long it took, and its outputs.
fn run_peer(command: &[String], filter: &str, path: &Path) -> (Duration, Vec<Value>) {
    let (program, arguments) = command.split_first().unwrap();
    let began = Instant::now();
    let output = Command::new(program).args(arguments).arg(filter).arg(path).output().unwrap();
    let whole = began.elapsed();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {filter}: {said}");
    let outputs = serde_json::Deserializer::from_slice(&output.stdout);
    let time = said.trim().parse().map_or(whole, |ms: f64| Duration::from_secs_f64(ms / 1e3));
    (time, outputs.into_iter().map(Result::unwrap).collect())
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
