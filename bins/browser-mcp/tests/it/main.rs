//! The command line as a person types it, and the server as a client and a browser see it.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod chromium;
mod commands;
mod demo;
mod fake;
mod ownership;
mod server;
mod typed;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs the binary with a state folder of its own and nobody at standard input.
fn browser_mcp(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).stdin(Stdio::null()).output().expect("it runs")
}

/// Prepares a run in a folder; what the environment says of servers does not reach it.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_browser-mcp"));
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

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
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
