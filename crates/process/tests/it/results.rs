//! What a program is given and what it gives back.

use std::collections::BTreeMap;
use std::sync::Arc;

use raincheck_core::content::Json;
use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::trace::TraceContext;
use raincheck_process::EnvRule;
use raincheck_runtime::Request;

use crate::harness::{program, python, shell, with};

// [CMD-1, CMD-4, RESULT-1]
#[tokio::test]
async fn inputs_arrive_and_results_come_back_byte_for_byte() {
    let echo = |folder: &_| vec![shell(folder, "echo", "cat >\"$RAINCHECK_RESULT_FILE\"")];
    with(echo, |house| async move {
        let inputs = r#"{"z":1.0,"a":1e2,"big":123456789012345678901234567890,"e":"\u00e9 é"}"#;
        let end = house.run("echo", inputs).await;
        assert_eq!((end.state, end.result()), (State::Succeeded, inputs));
        let metrics = end.payload.attempts[0].metrics.expect("metrics");
        assert!(metrics.cpu_ms.is_some() && metrics.peak_memory_bytes > Some(100_000));
    })
    .await;
}

// [CMD-4]
#[tokio::test]
async fn a_program_without_a_result_gives_its_code_and_its_last_words() {
    let plain = |folder: &_| {
        vec![shell(folder, "plain", r#"printf '{"jsonrpc":"2.0"}\n\033[31mred\nlast words\n'"#)]
    };
    with(plain, |house| async move {
        let end = house.run("plain", "{}").await;
        assert_eq!(
            end.result(),
            r#"{"exit_code":0,"stdout_tail":"{\"jsonrpc\":\"2.0\"}\n\\x1b[31mred\nlast words\n"}"#
        );
    })
    .await;
}

// [CMD-4]
#[tokio::test]
async fn a_result_that_is_no_json_fails_the_task_and_says_where() {
    let broken =
        |folder: &_| vec![shell(folder, "broken", r#"printf '{"a":}' >"$RAINCHECK_RESULT_FILE""#)];
    with(broken, |house| async move {
        let end = house.run("broken", "{}").await;
        let error = end.error();
        assert_eq!((end.state, error.kind), (State::Failed, Kind::InvalidResponse));
        assert!(error.message.contains("line 1 column 6"), "{error}");
        let words = serde_json::to_string(error).expect("JSON");
        assert!(!words.contains(&*house.folder().to_string_lossy()), "{words}");
    })
    .await;
}

// [CMD-5, LEASE-4]
#[tokio::test]
async fn a_failure_tells_code_or_signal_and_the_last_words_without_a_line_end() {
    let bad = |folder: &_| {
        vec![
            shell(folder, "code", "printf 'one\\nstep 9 of 9' >&2; exit 3"),
            shell(folder, "signal", "printf 'step 9 of 9, saving' >&2; kill -KILL $$"),
        ]
    };
    with(bad, |house| async move {
        let end = house.run("code", "{}").await;
        let error = end.error();
        assert_eq!((end.state, error.kind), (State::Failed, Kind::ToolFailed));
        assert_eq!(error.guarantee(), Some(Guarantee::Executed));
        assert_eq!(&*error.message, "tool `code` exited with code 3: step 9 of 9");
        let details = error.details.as_ref().expect("details");
        assert_eq!(details.get(), r#"{"exit_code":3,"stderr_tail":["one","step 9 of 9"]}"#);

        let end = house.run("signal", "{}").await;
        let error = end.error();
        assert_eq!(&*error.message, "tool `signal` was killed by SIGKILL: step 9 of 9, saving");
        assert!(error.hint.as_ref().is_some_and(|hint| hint.contains("memory")), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_surely_did_not_run() {
    let none = |folder: &std::path::Path| {
        std::fs::write(folder.join("bad.sh"), "#!/no/such/interpreter\n").expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.join("bad.sh"), mode).expect("a mode");
        vec![
            program(folder, "absent", &["no-such-program-here"]),
            program(folder, "script", &["./bad.sh"]),
        ]
    };
    with(none, |house| async move {
        for (tool, says) in [("absent", "`no-such-program-here`"), ("script", "interpreter")] {
            let id = house.submit(tool, "{}").await;
            let end = house.end(id).await;
            let error = end.error();
            assert_eq!((end.state, error.kind), (State::Failed, Kind::ToolFailed));
            assert_eq!(error.guarantee(), Some(Guarantee::NotExecuted));
            assert!(error.message.contains(says), "{error}");
            assert!(house.is_tidy(id).await, "it left a folder behind");
        }
    })
    .await;
}

// [SEC-8]
#[tokio::test]
async fn a_program_sees_only_what_its_tool_allows() {
    let tools = |folder: &_| {
        let mut listed = program(folder, "listed", &["env"]);
        listed.environment = EnvRule::Inherit(vec!["PATH".to_owned(), "NO_SUCH".to_owned()]);
        let mut fixed = program(folder, "fixed", &["env"]);
        let values = [("GREETING".to_owned(), "hello $PATH".to_owned())];
        fixed.environment = EnvRule::Fixed(BTreeMap::from(values));
        vec![listed, fixed]
    };
    with(tools, |house| async move {
        let path = format!("PATH={}", std::env::var("PATH").expect("a path"));
        for (tool, allowed) in [("listed", &*path), ("fixed", "GREETING=hello $PATH")] {
            let id = house.submit(tool, "{}").await;
            house.end(id).await;
            let lines = house.log(id).await;
            let seen: Vec<&str> = lines.iter().map(|line| &*line.message).collect();
            let (ours, rest): (Vec<&str>, Vec<&str>) =
                seen.iter().partition(|entry| entry.starts_with("RAINCHECK_"));
            assert_eq!(rest, [allowed], "{tool}");
            let names: Vec<&str> =
                ours.iter().filter_map(|entry| Some(entry.split_once('=')?.0)).collect();
            for name in ["TASK_ID", "ATTEMPT", "CONTROL_FD", "RESULT_FILE", "ARTIFACTS_DIR"] {
                assert!(names.contains(&&*format!("RAINCHECK_{name}")), "{name} in {names:?}");
            }
            assert!(ours.contains(&&*format!("RAINCHECK_TASK_ID={id}")), "{ours:?}");
            assert!(ours.contains(&"RAINCHECK_ATTEMPT=1"), "{ours:?}");
        }
    })
    .await;
}

// [TRACE-2]
#[tokio::test]
async fn a_program_is_told_the_trace_of_its_call() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let tools = |folder: &_| {
        let mut traced = program(folder, "traced", &["env"]);
        traced.environment = EnvRule::Fixed([("TRACESTATE".to_owned(), "own".to_owned())].into());
        vec![traced]
    };
    with(tools, |house| async move {
        let mut request = Request::new("traced", Json::empty_object(), Scope::local());
        let trace = TraceContext::new(PARENT, Some("a=1"), Some("user=7"));
        request.trace = trace.map(Arc::new);
        let id = house.submit_as(request).await;
        house.end(id).await;
        let lines = house.log(id).await;
        let seen: Vec<&str> = lines.iter().map(|line| &*line.message).collect();
        for entry in [&*format!("TRACEPARENT={PARENT}"), "TRACESTATE=a=1", "BAGGAGE=user=7"] {
            assert!(seen.contains(&entry), "{entry} in {seen:?}");
        }
    })
    .await;
}

// [CMD-1]
#[tokio::test]
async fn no_shell_reads_the_arguments_and_the_folder_is_the_tools() {
    let tools = |folder: &_| {
        let words = program(folder, "words", &["printf", "%s|", "$HOME", "a b", "*"]);
        vec![words, program(folder, "where", &["pwd", "-P"])]
    };
    with(tools, |house| async move {
        let words = house.submit("words", "{}").await;
        house.end(words).await;
        assert_eq!(&*house.log(words).await[0].message, "$HOME|a b|*|");
        let place = house.submit("where", "{}").await;
        house.end(place).await;
        let here = house.folder().canonicalize().expect("a folder");
        assert_eq!(*house.log(place).await[0].message, *here.to_string_lossy());
    })
    .await;
}

// [CMD-1]
#[tokio::test]
async fn a_path_in_the_command_starts_at_the_folder_of_the_tool() {
    let tools = |folder: &std::path::Path| {
        std::fs::create_dir(folder.join("tools")).expect("a folder");
        let script = "import os; open(os.environ['RAINCHECK_RESULT_FILE'], 'w').write('[1]')";
        std::fs::write(folder.join("tools/one.py"), script).expect("a file");
        vec![program(folder, "one", &["python3", "tools/one.py"])]
    };
    with(tools, |house| async move {
        assert_eq!(house.run("one", "{}").await.result(), "[1]");
    })
    .await;
}

// [CMD-3, RESULT-2]
#[tokio::test]
async fn progress_and_partial_results_are_seen_while_the_program_runs() {
    const STEPS: &str = r#"
import json, os, sys
out = os.fdopen(int(os.environ["RAINCHECK_CONTROL_FD"]), "w")
for percent in (10, 60, 30):
    print(json.dumps({"progress": {"phase": "mesh", "percent": percent}}), file=out)
print('{"partial":{"ticks":1.0}}', file=out, flush=True)
while not os.path.exists("go"): pass
"#;
    with(
        |folder| vec![python(folder, "steps", STEPS)],
        |house| async move {
            let id = house.submit("steps", "{}").await;
            let view = house.until(id, |view| view.partial.is_some()).await;
            assert_eq!(view.record.state, State::Running);
            assert_eq!(view.partial.expect("a partial").get(), r#"{"ticks":1.0}"#);
            assert_eq!(view.progress.expect("progress").percent, Some(60.0), "it never goes back");
            std::fs::write(house.folder().join("go"), "").expect("a file");
            assert_eq!(house.end(id).await.state, State::Succeeded);
        },
    )
    .await;
}

// [CMD-1]
#[tokio::test]
async fn inputs_of_several_lines_arrive_as_they_are() {
    let echo = |folder: &_| vec![shell(folder, "echo", "cat >\"$RAINCHECK_RESULT_FILE\"")];
    with(echo, |house| async move {
        let inputs = "{\n  \"a\": [\n    1\n  ]\n}";
        assert_eq!(house.run("echo", inputs).await.result(), inputs);
    })
    .await;
}

// [CMD-1]
#[tokio::test]
async fn the_folder_of_a_tool_may_be_relative_to_the_servers() {
    let list = |_: &_| vec![program(std::path::Path::new("tests/it"), "list", &["ls", "main.rs"])];
    with(list, |house| async move {
        assert_eq!(house.run("list", "{}").await.state, State::Succeeded);
    })
    .await;
}
