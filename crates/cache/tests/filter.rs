//! Filters in their process: this test program again.

#![expect(clippy::unwrap_used, reason = "what is not there fails the test")]

use std::time::Duration;

use raincheck_cache::{
    BodyKey, ChildProgram, Filter, FilterFailure, Filters, FiltersConfig, LimitKind, Limits,
    Outputs, View, run_child, scan, scan_text,
};

/// The arguments that make this program a filter process.
const ROLE: [&str; 4] = ["--exact", "filter_process", "--nocapture", "--test-threads=1"];

/// Not a test: what the filter processes of the tests run.
#[test]
fn filter_process() {
    let is_child = std::env::args().skip(1).take(ROLE.len()).eq(ROLE.map(ToOwned::to_owned));
    if is_child {
        let _ = run_child();
    }
}

fn filters() -> Filters {
    let program = ChildProgram::of_this_program(ROLE).unwrap();
    Filters::open(FiltersConfig { program: Some(program), ..FiltersConfig::default() })
}

const KEY: BodyKey = BodyKey { id: 1, revision: 0 };

fn limits() -> Limits {
    Limits { wall: Duration::from_secs(60), cpu: Duration::from_secs(60), ..Limits::default() }
}

fn run_with(
    filters: &Filters,
    filter: &str,
    body: &[u8],
    key: BodyKey,
    limits: &Limits,
) -> Result<Outputs, FilterFailure> {
    let index = scan(body).unwrap();
    filters.run(&Filter::parse(filter).unwrap(), &View::new(&body, &index), key, limits)
}

fn text(result: Result<Outputs, FilterFailure>) -> String {
    match result {
        Ok(outputs) => String::from_utf8(outputs.into_array()).unwrap(),
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn outputs_come_as_strict_json() {
    let filters = filters();
    let body = br#"{"a":[1,2.50,"x"],"b":null}"#;
    let table = [
        ("[.a[]|tostring]", r#"[["1","2.50","x"]]"#),
        ("nan, infinite, -infinite", "[null,1.7976931348623157e+308,-1.7976931348623157e+308]"),
        ("empty", "[]"),
        ("..|numbers", "[1,2.50]"),
        ("\"\\u007f\\u0000\", @json", r#"["\u007f\u0000","{\"a\":[1,2.50,\"x\"],\"b\":null}"]"#),
        ("{(.a[2]): 1}", r#"[{"x":1}]"#),
        ("now|type", "[\"number\"]"),
        ("try error(\"x\") catch .", "[\"x\"]"),
    ];
    for (filter, wanted) in table {
        assert_eq!(text(run_with(&filters, filter, body, KEY, &limits())), wanted, "{filter}");
    }
}

#[test]
fn outputs_are_a_counted_list_and_bad_syntax_is_another_error_than_a_failure() {
    // [CACHE-10] cache-filters-that-fail-or-yield-nothing
    let filters = filters();
    let body = format!(
        r#"{{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaa!","b":null,"items":[{{"id":1}},{{"id":2}},{{"id":3}}],"missing":null,"pad":"{}"}}"#,
        "f".repeat(60_000)
    );
    for (filter, wanted) in [
        (".items[]", r#"[{"id":1},{"id":2},{"id":3}]"#),
        (".missing[]?", "[]"),
        ("empty", "[]"),
        (".a, .b", r#"["aaaaaaaaaaaaaaaaaaaaaaaaaaaa!",null]"#),
        (".items[] | .nope", "[null,null,null]"),
        (".items | map(select(.id > 1)) | length", "[2]"),
        ("try error(\"x\") catch .", r#"["x"]"#),
    ] {
        let got = text(run_with(&filters, filter, body.as_bytes(), KEY, &limits()));
        assert_eq!(got, wanted, "{filter}");
    }
    for (filter, wanted) in
        [(".missing[]", "Cannot iterate over null"), (".items[] | error(\"stop\")", "stop")]
    {
        match run_with(&filters, filter, body.as_bytes(), KEY, &limits()) {
            Err(FilterFailure::Failed { message, .. }) => assert_eq!(message, wanted, "{filter}"),
            other => panic!("{filter}: {other:?}"),
        }
    }
    for filter in [
        "{",
        ".items[",
        ".a |",
        "env.HOME",
        "$ENV.PATH",
        "input",
        "inputs",
        "halt",
        "halt_error",
        "import \"x\" as x; .",
        "include \"x\"; .",
    ] {
        let invalid = Filter::parse(filter).expect_err(filter);
        assert!(invalid.line == 1 && invalid.column >= 1 && !invalid.hint.is_empty(), "{filter}");
    }
    let long = format!("\"{}\"", "a".repeat(69_999));
    let invalid = Filter::parse(&long).expect_err("too long");
    assert!(invalid.to_string().len() + invalid.hint.len() < 1000, "it is not repeated");
}

#[test]
fn a_filter_that_fails_says_after_how_many_outputs() {
    let filters = filters();
    let body = br#"{"items":[{"id":0,"name":"n"},{"id":1},{"id":2}],"title":"t"}"#;
    let table = [
        (".items[0:3][].id | if . == 2 then error(\"boom\") else . end", "boom", 2),
        (".title | .[0].x", "Cannot index string with number", 0),
        (".items[0].name + 1", "string (\"n\") and number (1) cannot be added", 0),
        (".title[]", "Cannot iterate over string (\"t\")", 0),
        ("1, 2, {}.a.b.c[]", "Cannot iterate over null", 2),
        ("error({a: 1})", "{\"a\":1}", 0),
        ("1 / 0", "number (1) and number (0) cannot be divided because the divisor is zero", 0),
    ];
    for (filter, wanted, before) in table {
        match run_with(&filters, filter, body, KEY, &limits()) {
            Err(FilterFailure::Failed { message, outputs_before }) => {
                assert_eq!((message.as_str(), outputs_before), (wanted, before), "{filter}");
            }
            other => panic!("{filter}: {other:?}"),
        }
    }
}

#[test]
fn a_process_holds_the_body_it_was_given_last() {
    let filters = filters();
    let key = |id| BodyKey { id, revision: 0 };
    let count = |body: &[u8], id| text(run_with(&filters, "[..]|length", body, key(id), &limits()));
    for _ in 0..3 {
        assert_eq!(count(b"[1,2]", 1), "[3]");
        assert_eq!(count(b"[1,2,3]", 2), "[4]");
        assert_eq!(count(b"[]", 3), "[1]");
    }
    // The same key is the same body: it is not sent again.
    assert_eq!(count(b"[9,9,9,9]", 3), "[1]");
    assert_eq!(
        text(run_with(
            &filters,
            "[..]|length",
            b"[9,9,9,9]",
            BodyKey { id: 3, revision: 1 },
            &limits()
        )),
        "[5]"
    );
}

#[test]
fn plain_text_is_a_string() {
    let filters = filters();
    let body = b"one\ntwo \"quoted\"\n".as_slice();
    let index = scan_text(body).unwrap();
    let view = View::new(&body, &index);
    let run = |filter| text(filters.run(&Filter::parse(filter).unwrap(), &view, KEY, &limits()));
    assert_eq!(run("split(\"\\n\") | map(select(. != \"\"))"), r#"[["one","two \"quoted\""]]"#);
    assert_eq!(run("length"), "[17]");
}

#[test]
fn without_a_program_only_paths_are_followed() {
    let filters = Filters::open(FiltersConfig::default());
    assert_eq!(
        text(run_with(&filters, ".a[].b", br#"{"a":[{"b":1},{}]}"#, KEY, &limits())),
        "[1,null]"
    );
    assert!(matches!(
        run_with(&filters, ".a+1", b"{}", KEY, &limits()),
        Err(FilterFailure::Unavailable(_))
    ));
    let program = ChildProgram { path: "/nowhere/at/all".into(), arguments: Vec::new() };
    let filters =
        Filters::open(FiltersConfig { program: Some(program), ..FiltersConfig::default() });
    assert!(matches!(
        run_with(&filters, ".a+1", b"{}", KEY, &limits()),
        Err(FilterFailure::Unavailable(_))
    ));
}

#[test]
fn outputs_have_limits() {
    let filters = filters();
    let body = b"[1,[2,[3,[4,[5]]]]]";
    let kind = |filter, limits: Limits| match run_with(&filters, filter, body, KEY, &limits) {
        Err(FilterFailure::Limit { kind, limit }) => (kind, limit),
        other => panic!("{filter}: {other:?}"),
    };
    assert_eq!(
        kind("range(1e12)", Limits { outputs: 1000, ..limits() }),
        (LimitKind::Outputs, 1000)
    );
    assert_eq!(
        kind("repeat(\"x\" * 1000)", Limits { output_bytes: 100_000, ..limits() }),
        (LimitKind::Output, 100_000)
    );
    assert_eq!(
        kind("\"x\" * 5000000", Limits { output_bytes: 100_000, ..limits() }),
        (LimitKind::Output, 100_000)
    );
    assert_eq!(kind("[[[[[.]]]]]|.[0]", Limits { depth: 4, ..limits() }), (LimitKind::Depth, 4));
    // A single output longer than a frame comes whole.
    let long = run_with(&filters, "\"xyz\" * 1000000, 1", body, KEY, &limits()).unwrap();
    assert_eq!((long.count, long.bytes.len()), (2, 3_000_002 + 2));
}

#[test]
fn definitions_that_call_themselves_end_at_the_stack() {
    let filters = filters();
    let generous = Limits { memory: 8 << 30, ..limits() };
    for filter in ["def f: 1+f; f", "def f: [f]; f"] {
        let result = run_with(&filters, filter, b"0", KEY, &generous);
        assert!(
            matches!(result, Err(FilterFailure::Limit { kind: LimitKind::Depth, .. })),
            "{filter}: {result:?}"
        );
    }
}

/// Filters that end by no other way than a limit.
const ENDLESS: &[&str] = &[
    "def f: f; f",
    "[range(1e12)]",
    "last(range(1e12))",
    "def f: [f]; f",
    "def f: 1+f; f",
    "[repeat(1)]",
    "until(false; .)",
    "reduce range(1e12) as $i (0; .+1)",
    "[limit(1e12; repeat(.))] | length",
    "reduce range(40) as $i (1; [., .]) | tojson",
    "\"x\" * 1000000000 | length",
    "\"x\" * 1e10",
    "\"x\" * 1e300",
    "first(range(1e12)|select(false))",
    "[range(1e9)|[., .]]",
    "reduce range(64) as $i (\"x\"; . + .)",
    "reduce range(1e12) as $i ([]; . + [$i])",
    "[.[]|.]|[combinations(30)]",
    "[range(300)] as $a | $a[] as $b | $a[] as $c | $a[] as $d | $a[] as $e | select(false)",
    "def f: def g: f | g; g; f",
    "def f(g): f(g|g); f(.)",
    "reduce range(1e7) as $i (0; [.]) | 1",
    "{} | .[(range(1e12)|tostring)] = 1 | empty",
    "[range(1e8)] | sort",
    ".[999999999] = 1",
    ".[range(9e6; 1e12; 9e6)] = 1 | empty",
    "[.. , ..] as $x | [range(1e12)] | $x",
    "\"a\" * 100000000 | test(\"(a+)+$\") | [repeat(.)]",
    "reduce range(40) as $i (1; [., .]) | flatten | length",
    "[splits(\"a\")?] | [recurse([.])]",
    "label $x | repeat(.)|select(false)",
    "[paths(false), repeat(1)]",
    "range(1e12) as $x | empty",
    "@base64 \"\\([repeat(1)])\"",
    "tostream | select(false), repeat(.)",
    "limit(1e15; repeat(1)|select(false))",
];

#[test]
fn a_hostile_filter_is_stopped_and_the_next_one_runs() {
    let filters = filters();
    let body = br#"[0,1,2,3,4,"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"]"#;
    let hostile =
        Limits { wall: Duration::from_millis(400), memory: 64 << 20, ..Limits::default() };
    for filter in ENDLESS {
        let parsed = Filter::parse(filter).unwrap();
        let index = scan(body).unwrap();
        let source = body.as_slice();
        let result = filters.run(&parsed, &View::new(&source, &index), KEY, &hostile);
        assert!(
            matches!(result, Err(FilterFailure::Limit { .. } | FilterFailure::Failed { .. })),
            "{filter}: {result:?}"
        );
        assert_eq!(
            text(run_with(&filters, "map(numbers)|add", body, KEY, &limits())),
            "[10]",
            "after {filter}"
        );
    }
}

#[test]
fn many_callers_share_few_processes() {
    let filters = filters();
    std::thread::scope(|scope| {
        for id in 0..8_u128 {
            let filters = &filters;
            scope.spawn(move || {
                for _ in 0..5 {
                    let body = format!("[{id}]");
                    let key = BodyKey { id, revision: 0 };
                    assert_eq!(
                        text(run_with(filters, ".[0]+0", body.as_bytes(), key, &limits())),
                        format!("[{id}]")
                    );
                }
            });
        }
    });
}

/// The processes that this one started with an argument.
#[cfg(target_os = "linux")]
fn offspring(argument: &str) -> Vec<rustix::process::Pid> {
    let mut found = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let list =
            std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
        for id in list.split_whitespace() {
            let arguments =
                std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
            if arguments.contains(argument) {
                found.push(rustix::process::Pid::from_raw(id.parse().unwrap()).unwrap());
            }
        }
    }
    found
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_was_killed_while_idle_is_replaced() {
    use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, waitid};
    // One more argument, to tell its processes from those of other tests.
    let mark = "--color=never";
    let program = ChildProgram::of_this_program(ROLE.into_iter().chain([mark])).unwrap();
    let filters =
        Filters::open(FiltersConfig { program: Some(program), ..FiltersConfig::default() });
    let add = || text(run_with(&filters, ".+1", b"1", KEY, &limits()));
    assert_eq!(add(), "[2]");
    let ours = offspring(mark);
    assert_eq!(ours.len(), 1);
    assert_eq!((add(), offspring(mark)), ("[2]".to_owned(), ours.clone()));
    let killed = || {
        for id in offspring(mark) {
            kill_process(id, Signal::KILL).unwrap();
            waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        }
    };
    killed();
    assert_eq!(add(), "[2]");
    assert_ne!(offspring(mark), ours);
    assert_eq!(filters.tick(), 1, "one waits for the next run");
    killed();
    assert_eq!(filters.tick(), 0, "what has ended is forgotten");
    assert_eq!(add(), "[2]");
    filters.clear();
    assert_eq!(offspring(mark), []);
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_in_the_middle_of_a_run_ends_when_its_pipe_is_closed() {
    use std::io::Write as _;
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(ROLE)
        .env_clear()
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let limits = serde_json::to_value(limits()).unwrap();
    let request = serde_json::json!({ "filter": "def f: f; f", "body": 1, "is_text": false, "limits": limits }).to_string();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&u32::try_from(request.len()).unwrap().to_le_bytes()).unwrap();
    input.write_all(request.as_bytes()).unwrap();
    input.write_all(b"0").unwrap();
    drop(input);
    assert!(child.wait().unwrap().code().is_some());
}

/// Bodies that take much more memory than they have bytes.
#[test]
fn a_body_of_many_small_values_is_parsed_or_refused() {
    let filters = filters();
    for item in ["{}", "[]", "\"\"", "1", "[[]]"] {
        let body = format!("[{}1]", format!("{item},").repeat(300_000));
        let result = run_with(
            &filters,
            "length + 0",
            body.as_bytes(),
            BodyKey { id: body.len() as u128, revision: 0 },
            &limits(),
        );
        assert_eq!(text(result), "[300001]", "{item}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_sees_neither_environment_nor_descriptors_and_dies_with_its_pipe() {
    use std::io::Read as _;
    use std::os::fd::AsRawFd as _;
    // A descriptor that is not closed at the start of another program.
    let stray = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&stray, rustix::io::FdFlags::empty()).unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(ROLE)
        .env_clear()
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = Vec::new();
    let mut output = child.stdout.take().unwrap();
    while !seen.ends_with(b"raincheck filter 1\n") {
        let mut byte = [0];
        output.read_exact(&mut byte).unwrap();
        seen.push(byte[0]);
    }
    let open: Vec<i32> = std::fs::read_dir(format!("/proc/{}/fd", child.id()))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect();
    assert!(open.iter().all(|fd| *fd <= 2) && stray.as_raw_fd() > 2, "{open:?}");
    assert_eq!(std::fs::read(format!("/proc/{}/environ", child.id())).unwrap(), b"");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().code().is_some());
}
