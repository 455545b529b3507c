//! Every problem names its key, its line and what would be right.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as _, Command, FromArgMatches as _};
use expect_test::{Expect, expect};
use raincheck_core::cancel::OnExit;
use raincheck_core::content::Json;
use raincheck_core::error::Kind;
use raincheck_core::tool::ToolSpec;

use super::{
    Cache, Client, Env, File, LimitFlags, OfBrowser, Overrides, Store, Warm, Wrap, parse, schema,
};
use crate::binary::Binary;

fn good(text: &str) -> File {
    read(text, Overrides::default())
}

fn read(text: &str, overrides: Overrides) -> File {
    match parse(text, PathBuf::from("/etc"), overrides) {
        Ok(file) => file,
        Err(problems) => panic!("{}", problems.render("raincheck.toml", text)),
    }
}

fn bad(text: &str, want: &Expect) {
    let problems = parse(text, PathBuf::from("/etc"), Overrides::default()).expect_err("a problem");
    want.assert_eq(&problems.render("raincheck.toml", text));
}

#[test]
fn an_empty_file_has_the_built_in_lanes_and_no_tool() {
    let file = good("");
    let lanes: Vec<&str> = file.lanes.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(lanes, ["cpu_small", "cpu_standard", "cpu_heavy"]);
    assert!(file.tools.is_empty() && file.store.is_none());
}

#[test]
fn every_key_of_a_tool_reaches_its_place() {
    let file = good(
        r#"
[lanes.cpu_standard]
concurrency = 3
queue_limit = 7
max_runtime_s = 3600
cpu = 2.5
memory_mb = 4096
[tools.render]
description = "Render a scene"
command = ["python3", "render.py"]
lane = "cpu_standard"
timeout_s = 600
wait_s = 0.5
supports_cancel = false
cancel_grace_s = 1
on_exit = "stop"
needs_tasks = true
idempotent = true
max_attempts = 3
retry_backoff_s = 2
retry_on = ["worker_lost", "tool_failed"]
env = { GREETING = "hello $PATH" }
sensitive = ["/token", "/a~1b"]
log_quota_mb = 4
input_schema = { type = "object", properties = { frames = { type = "integer" } }, required = ["frames"] }
"#,
    );
    let (_, lane) = &file.lanes[1];
    assert_eq!((lane.concurrency, lane.queue_limit), (3, 7));
    assert_eq!((lane.cpu_milli, lane.memory_mb), (Some(2500), Some(4096)));
    let tool = &file.tools[0];
    assert_eq!(tool.command, ["python3", "render.py"]);
    assert_eq!(tool.spec.wait, Duration::from_millis(500));
    assert_eq!(tool.spec.run_timeout, Some(Duration::from_secs(600)));
    assert!(!tool.spec.supports_cancel && tool.spec.is_idempotent);
    // [TASKS-8]
    assert!(tool.spec.needs.tasks);
    assert_eq!(tool.spec.on_exit, OnExit::Stop);
    assert_eq!(tool.spec.retry.on, [Kind::WorkerLost, Kind::ToolFailed]);
    assert_eq!(tool.spec.retry.max_attempts, 3);
    assert_eq!((tool.log_quota, tool.grace), (4 << 20, Duration::from_secs(1)));
    let fixed = [("GREETING".to_owned(), "hello $PATH".to_owned())];
    assert_eq!(tool.env, Some(Env::Fixed(fixed.into())));
    assert_eq!(&*tool.spec.sensitive, ["/token", "/a~1b"]);
    assert!(tool.spec.input_schema.get().contains(r#""required":["frames"]"#));
}

#[test]
fn a_key_of_the_tool_wins_over_the_flag_and_the_flag_over_the_defaults() {
    let text = r#"
[defaults]
wait_s = 1
timeout_s = 2
[tools.own]
command = ["a"]
wait_s = 3
[tools.bare]
command = ["/usr/bin/b"]
"#;
    let waits = |file: &File| file.tools.iter().map(|t| t.spec.wait.as_secs()).collect::<Vec<_>>();
    let plain = good(text);
    assert_eq!(waits(&plain), [3, 1]);
    assert_eq!(plain.tools[1].spec.run_timeout, Some(Duration::from_secs(2)));
    assert_eq!(&*plain.tools[1].spec.description, "Runs b");
    let flag = Overrides { wait: Some(Duration::from_secs(9)) };
    assert_eq!(waits(&read(text, flag)), [3, 9]);
}

#[test]
fn the_default_limit_bends_to_a_shorter_lane() {
    let file = good("[lanes.a]\nmax_runtime_s = 60\n[tools.t]\ncommand = [\"t\"]\nlane = \"a\"\n");
    assert_eq!(file.tools[0].spec.run_timeout, Some(Duration::from_secs(60)));
}

#[test]
fn a_store_is_a_path_or_memory() {
    assert_eq!(good("[store]\npath = \"memory\"").store, Some(Store::Memory));
    assert_eq!(good("[store]\npath = \"a.db\"").store, Some(Store::Path("a.db".into())));
    assert_eq!(Store::read("postgres://host/db"), None);
}

#[test]
fn sections_of_other_binaries_are_accepted_and_told() {
    let file = good("[browser]\nring = 9\n[tools]\n[clients]\n\"a b\" = 25.5\n");
    let binary = Binary {
        name: "raincheck",
        sections: &["store", "clients"],
        while_running: "",
        while_stopped: "",
        on_shared_store: "give one client a state folder of its own: --state-dir DIR, or --store memory",
    };
    let idle: Vec<&str> = file.idle_sections(&binary).collect();
    assert_eq!(idle, ["browser", "tools"]);
    assert_eq!(file.clients["a b"].timeout, Some(Duration::from_millis(25_500)));
}

#[test]
fn limits_of_the_browser_stand_in_the_file_and_on_the_command_line_under_one_name() {
    let file = good("[browser]\naccept_ms = 1500\nqueue_limit = 8\nresult_ttl_s = 60.5\n");
    assert_eq!(file.browser.span("accept_ms"), Some(Duration::from_millis(1500)));
    assert_eq!(file.browser.whole("queue_limit"), Some(8));
    assert_eq!(file.browser.span("result_ttl_s"), Some(Duration::from_millis(60_500)));
    assert_eq!(file.browser.span("run_ms"), None);
    let flags = flags(&["--accept-ms", "2500.5", "--ring=7"]).expect("limits").0;
    let limits = flags.over(&file.browser);
    assert_eq!(limits.span("accept_ms"), Some(Duration::from_micros(2_500_500)), "a flag wins");
    assert_eq!((limits.whole("ring"), limits.whole("queue_limit")), (Some(7), Some(8)));
}

#[test]
fn a_limit_of_the_browser_that_is_none_is_told_with_its_range() {
    bad(
        "[browser]\naccept_ms = 0\nring = 1.5\nqueue_limt = 3\nresult_ttl_s = \"60\"\n",
        &expect![[r#"
            4 problems in raincheck.toml

            raincheck.toml:2:13: `browser.accept_ms` is 0
               |
             2 | accept_ms = 0
               |             ^
               = write milliseconds from 1 to 600000, such as 500

            raincheck.toml:3:8: `browser.ring` is a float
               |
             3 | ring = 1.5
               |        ^^^
               = write a whole number from 1 to 100000

            raincheck.toml:4:1: unknown key `queue_limt` in [browser]
               |
             4 | queue_limt = 3
               | ^^^^^^^^^^
               = did you mean `queue_limit`? known here: default_wait_ms, accept_ms, run_ms, max_run_ms, queue_limit, queue_timeout_s, result_ttl_s, cancel_grace_s, reconnect_grace_s, linger_ms, max_body_mb, ring, files_dir, show_credentials, show_storage, show_cookies

            raincheck.toml:5:16: `browser.result_ttl_s` is a string
               |
             5 | result_ttl_s = "60"
               |                ^^^^
               = write seconds from 1 to 86400, such as 10 or 0.5
        "#]],
    );
    for given in ["--accept-ms=0", "--accept-ms=soon", "--accept-ms=\"3\"", "--accept-ms=-1"] {
        let error = flags(&[given]).expect_err(given);
        for part in ["--accept-ms", "milliseconds from 1 to 600000"] {
            assert!(error.contains(part), "{part} is not in {error}");
        }
    }
}

fn flags(given: &[&str]) -> Result<LimitFlags<OfBrowser>, String> {
    let command = LimitFlags::<OfBrowser>::augment_args(Command::new("browser-mcp"));
    let matches = command.try_get_matches_from([&["browser-mcp"], given].concat());
    let matches = matches.map_err(|error| error.to_string())?;
    LimitFlags::from_arg_matches(&matches).map_err(|error| error.to_string())
}

#[test]
fn all_problems_are_shown_at_once_with_line_and_column() {
    bad(
        r#"[lanes.cpu_standrad]
concurency = 2
concurrency = 0
[tools.render]
command = []
wait_s = "10"
wait = 3
lane = "cpu_stand"
on_exit = "kill"
retry_on = ["worker_lots", "bad_luck"]
[tools.submit_task]
command = ["x"]
[tool.x]
"#,
        &expect![[r#"
            10 problems in raincheck.toml

            raincheck.toml:2:1: unknown key `concurency` in [lanes.cpu_standrad]
               |
             2 | concurency = 2
               | ^^^^^^^^^^
               = did you mean `concurrency`? known here: concurrency, queue_limit, max_runtime_s, cpu, memory_mb, scratch_mb

            raincheck.toml:3:15: `lanes.cpu_standrad.concurrency` is 0
               |
             3 | concurrency = 0
               |               ^
               = write a whole number from 1 to 1024

            raincheck.toml:5:11: `tools.render.command` is empty
               |
             5 | command = []
               |           ^^
               = write the program and its arguments: ["python3", "tool.py"]

            raincheck.toml:6:10: `tools.render.wait_s` is a string
               |
             6 | wait_s = "10"
               |          ^^^^
               = write seconds from 0 to 60, such as 10 or 0.5

            raincheck.toml:7:1: unknown key `wait` in [tools.render]
               |
             7 | wait = 3
               | ^^^^
               = did you mean `wait_s`? known here: title, description, command, input_schema, read_only, destructive, lane, timeout_s, wait_s, supports_cancel, cancel_grace_s, on_exit, on_disconnect, needs_tasks, idempotent, max_attempts, retry_backoff_s, retry_on, env, sensitive, log_quota_mb

            raincheck.toml:8:8: `tools.render.lane` names no lane: "cpu_stand"
               |
             8 | lane = "cpu_stand"
               |        ^^^^^^^^^^^
               = did you mean "cpu_small"? lanes: cpu_small, cpu_standard, cpu_heavy, cpu_standrad; or add [lanes.cpu_stand]

            raincheck.toml:9:11: `tools.render.on_exit` is "kill"
               |
             9 | on_exit = "kill"
               |           ^^^^^^
               = write one of: "detach", "stop"

            raincheck.toml:10:13: `tools.render.retry_on` holds "worker_lots", which is no kind of failure
                |
             10 | retry_on = ["worker_lots", "bad_luck"]
                |             ^^^^^^^^^^^^^
                = did you mean "worker_lost"?

            raincheck.toml:11:8: `submit_task` is the name of one of Raincheck's own tools
                |
             11 | [tools.submit_task]
                |        ^^^^^^^^^^^
                = give the tool another name

            raincheck.toml:13:2: unknown section `tool` in the file
                |
             13 | [tool.x]
                |  ^^^^
                = did you mean `tools`? known here: store, lanes, defaults, tools, wrap, wrapped, clients, cache, http, browser, unity
        "#]],
    );
}

#[test]
fn values_are_checked_against_their_ranges() {
    bad(
        r#"[lanes.a]
max_runtime_s = 60
[tools.t]
command = ["t"]
lane = "a"
timeout_s = 61
wait_s = 60.5
max_attempts = 0
retry_backoff_s = -1
env = ["A=B"]
sensitive = ["token"]
log_quota_mb = 1.5
"#,
        &expect![[r#"
            7 problems in raincheck.toml

            raincheck.toml:6:13: `tools.t.timeout_s` is 61, above the 60 of its lane
               |
             6 | timeout_s = 61
               |             ^^
               = write at most 60, or raise max_runtime_s in [lanes.a]

            raincheck.toml:7:10: `tools.t.wait_s` is 60.5
               |
             7 | wait_s = 60.5
               |          ^^^^
               = write seconds from 0 to 60, such as 10 or 0.5

            raincheck.toml:8:16: `tools.t.max_attempts` is 0
               |
             8 | max_attempts = 0
               |                ^
               = write a whole number from 1 to 100

            raincheck.toml:9:19: `tools.t.retry_backoff_s` is -1
               |
             9 | retry_backoff_s = -1
               |                   ^^
               = write seconds from 0 to 3600, such as 10 or 0.5

            raincheck.toml:10:8: `tools.t.env` holds "A=B", which is no name of a variable
                |
             10 | env = ["A=B"]
                |        ^^^^^
                = a name is not empty and holds no `=`; values go in { NAME = "…" }

            raincheck.toml:11:14: `tools.t.sensitive` holds "token", which is no JSON Pointer
                |
             11 | sensitive = ["token"]
                |              ^^^^^^^
                = write JSON Pointers: ["/token", "/login/password"]

            raincheck.toml:12:16: `tools.t.log_quota_mb` is a float
                |
             12 | log_quota_mb = 1.5
                |                ^^^
                = write a whole number from 1 to 1048576
        "#]],
    );
}

#[test]
fn a_schema_must_be_an_object_schema_that_compiles() {
    bad(
        r#"[tools.a]
command = ["a"]
input_schema = { properties = {} }
[tools.b]
command = ["b"]
input_schema = { type = "object", properties = { n = { type = "intger" } } }
[tools.c]
command = ["c"]
input_schema = "object"
"#,
        &expect![[r#"
            3 problems in raincheck.toml

            raincheck.toml:3:16: `tools.a.input_schema` does not say type = "object"
               |
             3 | input_schema = { properties = {} }
               |                ^^^^^^^^^^^^^^^^^^^
               = write an object schema: { type = "object", properties = { … } }

            raincheck.toml:6:16: `tools.b.input_schema` is no JSON Schema: "intger" is not valid under any of the schemas listed in the 'anyOf' keyword at `/properties/n/type`
               |
             6 | input_schema = { type = "object", properties = { n = { type = "intger" } } }
               |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
               = correct the schema; see https://json-schema.org/understanding-json-schema

            raincheck.toml:9:16: `tools.c.input_schema` is a string
               |
             9 | input_schema = "object"
               |                ^^^^^^^^
               = write an object schema: { type = "object", properties = { … } }
        "#]],
    );
}

#[test]
fn broken_toml_is_shown_where_it_breaks() {
    bad(
        "[tools.a]\ncommand = [\"a\"\n[tools.b]\ncommand = \"b\n",
        &expect![[r#"
        1 problem in raincheck.toml

        raincheck.toml:3:1: missing comma between array elements, expected `,`
           |
         3 | [tools.b]
           | ^
           = correct the TOML here; see https://toml.io
    "#]],
    );
    bad(
        "[defaults]\nwait_s = 1\nwait_s = 2\n",
        &expect![[r#"
        1 problem in raincheck.toml

        raincheck.toml:3:1: duplicate key
           |
         3 | wait_s = 2
           | ^^^^^^
           = correct the TOML here; see https://toml.io
    "#]],
    );
}

#[test]
fn a_tool_without_a_command_is_told_to_have_one() {
    bad(
        "[tools.a]\ndescription = \"A\"\n[tools.\"b c\"]\ncommand = [\"b\"]\n",
        &expect![[r#"
        2 problems in raincheck.toml

        raincheck.toml:1:8: [tools.a] has no `command`
           |
         1 | [tools.a]
           |        ^
           = add the program and its arguments: command = ["python3", "tool.py"]

        raincheck.toml:3:8: `b c` is no name of a tool
           |
         3 | [tools."b c"]
           |        ^^^^^
           = use 1 to 64 letters, digits, `_`, `-` and `.`
    "#]],
    );
    bad(
        "tools = 3\nlanes.x = 1\n[store]\npath = \"a\"\nurl = \"x://me:secret@host/db\"\n",
        &expect![[r#"
        3 problems in raincheck.toml

        raincheck.toml:1:9: `tools` is no table
           |
         1 | tools = 3
           |         ^
           = write it as a table: [tools]

        raincheck.toml:2:11: `lanes.x` is no table
           |
         2 | lanes.x = 1
           |           ^
           = write it as a table: [lanes.x]

        raincheck.toml:5:1: unknown key `url` in [store]
           |
         5 | url = "x://…@host/db"
           | ^^^
           = known here: path
    "#]],
    );
}

#[test]
fn the_json_schema_names_every_key_and_compiles() {
    let schema = schema();
    assert!(jsonschema::validator_for(&schema).is_ok());
    let tool = &schema["properties"]["tools"]["additionalProperties"]["properties"];
    for key in ["command", "wait_s", "env", "input_schema", "retry_on"] {
        assert!(tool[key]["description"].is_string(), "{key}");
    }
    assert!(schema["properties"]["defaults"]["properties"]["command"].is_null());
}

#[test]
fn what_the_cache_may_hold_and_call_ahead_is_read_and_checked() {
    // [CACHE-9]
    let file = good(
        "[cache]\nthreshold_chars = 20000\nscope_mb = 2\nentry_mb = 1\nttl_s = 3\n\
         [tools.scene]\ncommand = [\"a\"]\nread_only = true\n\
         [[cache.warm]]\ntool = \"scene\"\ninputs = { depth = 3 }\nevery_s = 60\n",
    );
    let Cache { is_enabled, limits, warm } = file.cache;
    assert!(is_enabled);
    assert_eq!(
        (limits.whole("scope_mb"), limits.whole("threshold_chars")),
        (Some(2), Some(20_000))
    );
    assert_eq!(limits.span("ttl_s"), Some(Duration::from_secs(3)));
    let every = Some(Duration::from_secs(60));
    let inputs = Json::parse(r#"{"depth":3}"#).expect("JSON");
    assert_eq!(warm, [Warm { tool: "scene".into(), inputs, every }]);
    assert!(!good("[cache]\nenabled = false\n").cache.is_enabled);
    assert!(good("[cache]\nwarm = [{ tool = \"observe\" }]\n").cache.warm[0].every.is_none());
}

#[test]
fn a_tool_that_may_change_something_is_not_called_ahead() {
    bad(
        "[tools.burn]\ncommand = [\"a\"]\n[cache]\nentry_mb = 200\n[[cache.warm]]\ntool = \"burn\"\n\
         [[cache.warm]]\ntool = \"nothing\"\n[[cache.warm]]\nevery_s = 1\n",
        &expect![[r#"
            5 problems in raincheck.toml

            raincheck.toml:4:12: `cache.entry_mb` is 200, above the 128 of `cache.scope_mb`
               |
             4 | entry_mb = 200
               |            ^^^
               = write at most 128, or raise `cache.scope_mb`

            raincheck.toml:6:8: `burn` may change something, so it is not called unasked
               |
             6 | tool = "burn"
               |        ^^^^^^
               = name a tool with `read_only = true` or `idempotent = true`

            raincheck.toml:8:8: no tool is named `nothing`
               |
             8 | tool = "nothing"
               |        ^^^^^^^^^
               = name one of [tools.NAME] in this file

            raincheck.toml:9:1: [[cache.warm]] has no `tool`
               |
             9 | [[cache.warm]]
               | ^^^^^^^^^^^^^^
               = name the tool: tool = "…"

            raincheck.toml:10:11: `cache.warm.every_s` is 1
                |
             10 | every_s = 1
                |           ^
                = write seconds from 10 to 86400, such as 10 or 0.5
        "#]],
    );
}

#[test]
fn a_client_is_a_number_of_seconds_or_a_table() {
    let file = good("[clients]\na = 25\nb = { timeout_s = 9, max_chars = 10000 }\n");
    let (nine, most) = (Some(Duration::from_secs(9)), Some(10_000));
    assert_eq!(file.clients["b"], Client { timeout: nine, max_chars: most });
    assert_eq!(file.clients["a"].max_chars, None);
}

#[test]
fn what_runs_behind_the_gateway_is_said_for_all_tools_and_for_one() {
    // [GATE-11]
    let file = good(
        "[wrap]\nwait_s = 2\nrestarts = 0\n[wrapped.\"a b\"]\nlane = \"wrapped\"\nidempotent = true\n\
         needs_tasks = true\nretry_on = [\"peer_lost\"]\nsensitive = [\"/token\"]\n",
    );
    let Wrap { wait, restarts, tools, .. } = file.wrap;
    assert_eq!((wait, restarts), (Some(Duration::from_secs(2)), Some(0)));
    let (name, tool) = &tools[0];
    assert_eq!((name.as_str(), tool.is_idempotent), ("a b", Some(true)));
    let mut spec = ToolSpec::new("a b", "", Json::empty_object());
    tool.adjust(&mut spec);
    assert_eq!((spec.retry.on.len(), spec.sensitive.len()), (1, 1));
    assert!(spec.needs.tasks);
    let problems =
        parse("[wrapped.x]\nlane = \"none\"\n", PathBuf::from("/"), Overrides::default());
    let text = problems
        .expect_err("no such lane")
        .render("raincheck.toml", "[wrapped.x]\nlane = \"none\"\n");
    assert!(text.contains("names no lane"), "{text}");
}
