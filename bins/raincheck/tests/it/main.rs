//! The command line as a person types it.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod config;
mod demo;
mod homeless;
#[cfg(target_os = "linux")]
mod parent;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs the binary with a state folder of its own and nobody at standard input.
fn raincheck(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).stdin(Stdio::null()).output().expect("it runs")
}

/// Serves a client that writes these lines and ends.
fn served(folder: &Path, arguments: &[&str], lines: &[&str]) -> Output {
    let mut command = command(folder, arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = command.spawn().expect("it runs");
    let mut input = server.stdin.take().expect("a pipe");
    for line in lines {
        writeln!(input, "{line}").expect("written");
    }
    drop(input);
    server.wait_with_output().expect("it ends")
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raincheck"));
    command.args(arguments).current_dir(folder);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("RAINCHECK_") {
            command.env_remove(name);
        }
    }
    command.env("RAINCHECK_STATE_DIR", folder.join("state"));
    command.env("RAINCHECK_RUNTIME_DIR", folder.join("run"));
    command
}

fn folder(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("raincheck.toml"), config).expect("written");
    folder
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

// [DUR-7]
#[test]
fn what_is_not_built_is_refused_with_the_next_step() {
    let folder = folder("[store]\nurl = \"postgres://host/db\"\n");
    for arguments in
        [&["serve", "--store", "postgres://host/db"][..], &["serve", "--config", "raincheck.toml"]]
    {
        let refused = raincheck(folder.path(), arguments);
        assert_eq!(code(&refused), Some(2), "{arguments:?}");
        assert!(err(&refused).contains("next: "), "{}", err(&refused));
        assert!(out(&refused).is_empty());
    }
}

#[test]
fn a_broken_file_is_explained_by_check_serve_and_doctor() {
    let folder = folder("[tools.a]\ncommand = [\"a\"]\nwiat_s = 1\n");
    for (subcommand, exit) in [("serve", 2), ("config", 1), ("doctor", 1)] {
        let mut arguments = vec![subcommand, "--config", "raincheck.toml"];
        if subcommand == "config" {
            arguments.insert(1, "check");
        }
        let told = raincheck(folder.path(), &arguments);
        let text = out(&told) + &err(&told);
        assert_eq!(code(&told), Some(exit), "{text}");
        assert!(text.contains("raincheck.toml:3:1"), "{text}");
        assert!(text.contains("did you mean `wait_s`"), "{text}");
    }
}

#[test]
fn a_sound_file_is_checked_by_flag_or_by_name() {
    let folder = folder("[tools.a]\ncommand = [\"a\"]\n");
    for file in [&["--config", "raincheck.toml"][..], &["raincheck.toml"]] {
        let told = raincheck(folder.path(), &[&["config", "check"], file].concat());
        assert_eq!(code(&told), Some(0), "{}", err(&told));
        let text = out(&told);
        assert!(text.starts_with("raincheck.toml: 1 tool, 3 lanes, no problem\n"), "{text}");
        assert!(text.contains("raincheck doctor --config raincheck.toml"), "{text}");
    }
}

#[test]
fn reports_come_as_json_too() {
    let folder = folder("[tools.a]\ncommand = [\"no-such-program-anywhere\"]\n");
    let doctor = raincheck(folder.path(), &["doctor", "--json", "--config", "raincheck.toml"]);
    let report: Value = serde_json::from_str(&out(&doctor)).expect("JSON");
    assert_eq!((code(&doctor), &report["ok"]), (Some(1), &Value::Bool(false)));
    let status = raincheck(folder.path(), &["status", "--json"]);
    let report: Value = serde_json::from_str(&out(&status)).expect("JSON");
    assert_eq!((code(&status), report["servers"].as_array().map(Vec::len)), (Some(0), Some(0)));
    let schema = raincheck(folder.path(), &["config", "schema"]);
    assert!(serde_json::from_str::<Value>(&out(&schema)).is_ok());
}

#[test]
fn a_server_whose_client_is_gone_at_once_ends_well() {
    let folder = folder("[tools.a]\ncommand = [\"a\"]\n");
    let served = raincheck(folder.path(), &["serve", "--config", "raincheck.toml"]);
    assert_eq!(code(&served), Some(0), "{}", err(&served));
    assert!(out(&served).is_empty());
}

#[test]
fn completions_are_scripts() {
    let folder = folder("");
    for shell in ["bash", "zsh", "fish"] {
        let script = raincheck(folder.path(), &["completions", shell]);
        assert_eq!(code(&script), Some(0));
        assert!(out(&script).contains("raincheck"), "{shell}");
    }
}

#[test]
fn a_server_without_tools_says_so_in_one_line() {
    let folder = folder("");
    for arguments in [&["serve"][..], &["serve", "--config", "raincheck.toml"]] {
        let told = err(&raincheck(folder.path(), arguments));
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.contains("no tools") && told.contains("raincheck.toml"), "{told}");
    }
}

#[test]
fn a_slip_of_a_client_is_no_warning_but_can_be_seen() {
    let folder = folder("[tools.a]\ncommand = [\"a\"]\n");
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"case","version":"0"}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"typo"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"no/such"}"#,
    ];
    let arguments = ["serve", "--config", "raincheck.toml"];
    let quiet = served(folder.path(), &arguments, &lines);
    assert_eq!((code(&quiet), err(&quiet).as_str()), (Some(0), ""));
    assert_eq!(out(&quiet).lines().count(), 3);
    let told = served(
        folder.path(),
        &["serve", "--config", "raincheck.toml", "--log-level", "debug"],
        &lines,
    );
    for part in ["typo", "no/such"] {
        assert!(
            err(&told).lines().any(|line| line.contains("DEBUG") && line.contains(part)),
            "{part}"
        );
    }
    assert!(!err(&told).contains("WARN"), "{}", err(&told));
}

#[test]
fn a_variable_that_is_empty_is_as_good_as_absent() {
    let folder = folder("");
    let mut command = command(folder.path(), &["status", "--json"]);
    for name in [
        "CONFIG",
        "RUNTIME_DIR",
        "STORE",
        "LOG_LEVEL",
        "LOG_FORMAT",
        "SCOPE",
        "STRUCTURED_CONTENT",
        "WAIT_S",
    ] {
        command.env(format!("RAINCHECK_{name}"), "");
    }
    let shown = command.stdin(Stdio::null()).output().expect("it runs");
    assert_eq!(code(&shown), Some(0), "{}", err(&shown));
    command.env("RAINCHECK_STRUCTURED_CONTENT", "1");
    let shown = command.output().expect("it runs");
    assert_eq!(code(&shown), Some(0), "{}", err(&shown));
}
