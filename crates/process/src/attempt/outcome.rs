//! From the end of a program to the outcome of its attempt.

use raincheck_core::cancel::OnExit;
use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::task::Outcome;
use raincheck_core::text::clip;
use raincheck_runtime::StopReason;
use serde::Serialize;

use crate::os::{Exit, Survivor, signal_name};
use crate::supervise::{Ended, Excess, Limit};
use crate::tool::CommandTool;

/// How much of the last line an error's message quotes, in bytes.
const QUOTE: usize = 500;

/// The result of a program that wrote none.
#[derive(Serialize)]
struct Plain<'a> {
    exit_code: i32,
    stdout_tail: &'a str,
}

/// What is known of a program that used too much.
#[derive(Serialize)]
struct Beyond<'a> {
    limit: &'a str,
    allowed_mb: u64,
}

/// What is known of a program that could not be stopped.
#[derive(Serialize)]
struct RunsOn<'a> {
    runs_on: &'a [Survivor],
}

/// What is known of a program that failed.
#[derive(Serialize)]
struct Details<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal_number: Option<i32>,
    stderr_tail: &'a [String],
}

/// Says how an attempt ended.
///
/// A program that was stopped and still ended well with a result of its own has that result kept:
/// the engine decides whether it comes too late [LEASE-7].
pub(super) fn of(
    tool: &CommandTool,
    ended: &Ended,
    result: Result<Option<Json>, Error>,
    reason: Option<StopReason>,
) -> Outcome {
    for survivor in &ended.survivors {
        tracing::warn!(tool = %tool.spec.name, pid = survivor.pid, "{survivor}; it runs on");
    }
    if (ended.is_stopped || ended.excess.is_some()) && !ended.survivors.is_empty() {
        return Outcome::Failed(not_stopped(tool, &ended.survivors));
    }
    if let Some(excess) = ended.excess {
        return Outcome::Failed(exceeded(tool, excess));
    }
    match (ended.exit, result) {
        (Some(Exit::Code(0)), Ok(Some(json))) => Outcome::Succeeded(vec![Content::Json(json)]),
        _ if ended.is_stopped => stopped(tool, reason),
        (Some(Exit::Code(0)), Ok(None)) => plain(&ended.stdout_tail),
        (Some(Exit::Code(0)), Err(error)) => Outcome::Failed(error),
        (Some(exit), _) => Outcome::Failed(failed(tool, exit, &ended.stderr_tail)),
        (None, _) => Outcome::Failed(lost(tool, "its end could not be read")),
    }
}

fn stopped(tool: &CommandTool, reason: Option<StopReason>) -> Outcome {
    match reason {
        Some(StopReason::Shutdown) if tool.spec.on_exit == OnExit::Detach => {
            Outcome::Failed(lost(tool, "the server stopped before it ended"))
        }
        // A tool that ends with its server is not lost with it [CANCEL-8].
        Some(
            StopReason::Cancelled | StopReason::TimedOut | StopReason::Lost | StopReason::Shutdown,
        )
        | None => Outcome::Cancelled,
    }
}

/// The end of an attempt whose artifacts were left alone because it was to end: without them nobody
/// can say that it succeeded.
pub(super) fn cut(reason: Option<StopReason>) -> Outcome {
    match reason {
        Some(StopReason::Shutdown) => Outcome::Failed(
            Error::new(Kind::WorkerLost, "the server ended while artifacts were being taken")
                .with_guarantee(Guarantee::Executed),
        ),
        Some(StopReason::Cancelled | StopReason::TimedOut | StopReason::Lost) | None => {
            Outcome::Cancelled
        }
    }
}

/// The end by the run limit, which is kept where the program is: whoever reads it may be sure that
/// the program is gone [TIME-3].
pub(super) fn timed_out(wall: Option<Duration>) -> Outcome {
    let span = |wall: Duration| format!("{}.{} s", wall.as_secs(), wall.subsec_millis() / 100);
    let ended = wall.map_or_else(
        || "has been ended".to_owned(),
        |wall| format!("was ended after {}", span(wall)),
    );
    let message = format!(
        "it ran longer than its limit, which is the tool's timeout_s or the caller's max_runtime_s, and {ended}"
    );
    Outcome::Failed(Error::new(Kind::RunTimeout, message))
}

/// The failure of a program that was to end and did not: nobody may say that it was cancelled, or
/// that its time was over, while it runs on [LEASE-10].
fn not_stopped(tool: &CommandTool, survivors: &[Survivor]) -> Error {
    let all: Vec<String> = survivors.iter().map(ToString::to_string).collect();
    let pids: Vec<String> = survivors.iter().map(|it| it.pid.to_string()).collect();
    let message = format!(
        "tool `{}` was to end, but it has not stopped: {}, and runs on",
        tool.spec.name,
        all.join(", ")
    );
    let hint = format!(
        "end it with the rights of its user, such as: sudo kill -9 {}; then look at what it did before \
         you run the tool again",
        pids.join(" ")
    );
    let mut error =
        Error::new(Kind::ToolFailed, message).with_guarantee(Guarantee::Unknown).with_hint(hint);
    error.details = Json::of(&RunsOn { runs_on: survivors }).ok();
    error
}

fn plain(stdout_tail: &str) -> Outcome {
    let json = Json::of(&Plain { exit_code: 0, stdout_tail });
    Outcome::Succeeded(vec![Content::Json(json.unwrap_or_else(|_| Json::null()))])
}

fn lost(tool: &CommandTool, how: &str) -> Error {
    let message = format!("tool `{}` was lost: {how}", tool.spec.name);
    Error::new(Kind::WorkerLost, message).with_guarantee(Guarantee::Unknown)
}

fn exceeded(tool: &CommandTool, excess: Excess) -> Error {
    let Excess { limit, allowed_mb } = excess;
    let (used, name) = match limit {
        Limit::MemoryMb => ("memory", "memory_mb"),
        Limit::ScratchMb => ("scratch space", "scratch_mb"),
    };
    let tool = &tool.spec.name;
    let message =
        format!("tool `{tool}` was ended: it used more than its {allowed_mb} MiB of {used}");
    let hint = format!("give it less to do, or ask for more with `resources.{name}` at submit");
    let mut error = Error::new(Kind::ToolFailed, message).with_hint(hint);
    error.details = Json::of(&Beyond { limit: name, allowed_mb }).ok();
    error
}

fn failed(tool: &CommandTool, exit: Exit, stderr_tail: &[String]) -> Error {
    let name = &tool.spec.name;
    let (mut message, signal) = match exit {
        Exit::Code(code) => (format!("tool `{name}` exited with code {code}"), None),
        Exit::Signal(number) => {
            let signal = signal_name(number);
            (format!("tool `{name}` was killed by {signal}"), Some((signal, number)))
        }
    };
    if let Some(last) = stderr_tail.iter().rev().find(|line| !line.trim().is_empty()) {
        message = format!("{message}: {}", clip(last, QUOTE));
    }
    let details = Details {
        exit_code: match exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) => None,
        },
        signal: signal.as_ref().map(|(name, _)| name.as_str()),
        signal_number: signal.as_ref().map(|(_, number)| *number),
        stderr_tail,
    };
    let mut error = Error::new(Kind::ToolFailed, message);
    error.details = Json::of(&details).ok();
    if signal.is_some_and(|(name, _)| name == "SIGKILL") {
        error = error.with_hint(
            "nobody here killed it: the system may have run out of memory; look at the system's log, \
             give it less to do or more memory, and run it again",
        );
    }
    error
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::{Expect, expect};
    use raincheck_core::tool::ToolSpec;

    use super::*;
    use crate::os::Usage;

    fn ended(exit: Exit) -> Ended {
        Ended {
            exit: Some(exit),
            usage: Usage::default(),
            wall: Duration::ZERO,
            is_stopped: false,
            excess: None,
            stdout_tail: "out\n".to_owned(),
            stderr_tail: vec!["step 9 of 9".to_owned(), String::new()],
            survivors: Vec::new(),
            claims: Vec::new(),
        }
    }

    fn outcome(ended: &Ended, result: Option<&str>, reason: Option<StopReason>) -> String {
        let spec = ToolSpec::new("sim", "Simulates", Json::empty_object());
        let tool = CommandTool::new(spec, vec!["sim".to_owned()], "/");
        let result = result.map(|text| Json::parse(text).expect("JSON"));
        match of(&tool, ended, Ok(result), reason) {
            Outcome::Succeeded(parts) => format!("succeeded {parts:?}"),
            Outcome::Failed(error) => serde_json::to_string(&error).expect("an error is JSON"),
            Outcome::Cancelled => "cancelled".to_owned(),
        }
    }

    fn check(exit: Exit, expected: &Expect) {
        expected.assert_eq(&outcome(&ended(exit), None, None));
    }

    #[test]
    fn code_and_signal_are_different_facts_and_both_are_told() {
        check(
            Exit::Code(137),
            &expect![[
                r#"{"code":"tool_failed","message":"tool `sim` exited with code 137: step 9 of 9","retryable":false,"guarantee":"executed","recovery":"inspect_then_retry","hint":"read the message and the log of the task, correct the cause and run it again","details":{"exit_code":137,"stderr_tail":["step 9 of 9",""]}}"#
            ]],
        );
        check(
            Exit::Signal(9),
            &expect![[
                r#"{"code":"tool_failed","message":"tool `sim` was killed by SIGKILL: step 9 of 9","retryable":false,"guarantee":"executed","recovery":"inspect_then_retry","hint":"nobody here killed it: the system may have run out of memory; look at the system's log, give it less to do or more memory, and run it again","details":{"signal":"SIGKILL","signal_number":9,"stderr_tail":["step 9 of 9",""]}}"#
            ]],
        );
        check(
            Exit::Signal(11),
            &expect![[
                r#"{"code":"tool_failed","message":"tool `sim` was killed by SIGSEGV: step 9 of 9","retryable":false,"guarantee":"executed","recovery":"inspect_then_retry","hint":"read the message and the log of the task, correct the cause and run it again","details":{"signal":"SIGSEGV","signal_number":11,"stderr_tail":["step 9 of 9",""]}}"#
            ]],
        );
        check(
            Exit::Code(0),
            &expect![[r#"succeeded [Json({"exit_code":0,"stdout_tail":"out\n"})]"#]],
        );
    }

    // [LEASE-10]. Case task-child-of-another-user.
    #[test]
    fn what_runs_on_is_neither_cancelled_nor_timed_out() {
        let survivors = vec![Survivor { pid: 42, user: Some(0) }];
        let ended = Ended { is_stopped: true, exit: None, survivors, ..ended(Exit::Code(0)) };
        for reason in [StopReason::Cancelled, StopReason::TimedOut] {
            expect![[r#"{"code":"tool_failed","message":"tool `sim` was to end, but it has not stopped: process 42 of user 0 could not be ended, and runs on","retryable":false,"guarantee":"unknown","recovery":"inspect_then_retry","hint":"end it with the rights of its user, such as: sudo kill -9 42; then look at what it did before you run the tool again","details":{"runs_on":[{"pid":42,"user":0}]}}"#]]
                .assert_eq(&outcome(&ended, Some("7"), Some(reason)));
        }
    }

    #[test]
    fn a_program_that_fails_has_no_result() {
        assert!(outcome(&ended(Exit::Code(1)), Some("{}"), None).contains("tool_failed"));
    }

    #[test]
    fn a_program_that_was_stopped_keeps_only_a_result_of_its_own() {
        let stopped = Ended { is_stopped: true, ..ended(Exit::Code(0)) };
        let reason = Some(StopReason::Cancelled);
        assert_eq!(outcome(&stopped, Some("7"), reason), "succeeded [Json(7)]");
        assert_eq!(outcome(&stopped, None, reason), "cancelled");
        let killed = Ended { is_stopped: true, ..ended(Exit::Signal(15)) };
        assert_eq!(outcome(&killed, Some("7"), reason), "cancelled");
        assert!(outcome(&killed, None, Some(StopReason::Shutdown)).contains("worker_lost"));
    }
}
