//! `raincheck`: any command as a durable MCP tool.
//!
//! This file is the command line, `wiring` puts the server together, `wrap` puts another server behind it,
//! `demo` shows it at work, `tasks` and `cache` look at what it keeps.

mod cache;
mod demo;

mod kept;
mod tasks;

mod wiring;

mod wrap;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use raincheck::runtime::{Clock as _, SystemClock};
use raincheck_app::cli::{self, Common, Serving, Shared};
use raincheck_app::doctor::{self, Finding, Patient};
use raincheck_app::paths::Paths;
use raincheck_app::setup::Server;
use raincheck_app::terminal::Palette;
use raincheck_app::{Binary, Exit, Failure, status};
use raincheck_store_sqlite::{Reader, check_locks};

/// The name of the binary, and of its part of the state folder.
const BINARY: &str = "raincheck";

/// What the shared commands have to know of it.
const THIS: Binary = Binary {
    name: BINARY,
    sections: &[
        "store", "lanes", "defaults", "tools", "clients", "cache", "http", "wrap", "wrapped",
    ],
    while_running: "See what they keep: raincheck tasks list",
    while_stopped: "Start one from an MCP client: raincheck serve --config raincheck.toml",
    on_shared_store: "give one client a state folder of its own: --state-dir DIR, or --store memory",
};

/// Any command as a durable MCP tool: long calls answer with a task id, results are read later
#[derive(Parser, Debug)]
#[command(name = BINARY, version, subcommand_precedence_over_arg = true)]
struct Cli {
    #[command(flatten)]
    shared: Shared,
    #[command(flatten)]
    serving: Serving,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    #[command(flatten)]
    Common(Common),
    /// Look at cached responses, delete them, whether a server runs or not
    Cache {
        #[command(subcommand)]
        action: cache::Action,
    },
    /// Look at tasks and their logs, and cancel them, whether a server runs or not
    Tasks {
        #[command(subcommand)]
        action: tasks::Action,
    },
    /// Serve the tools of another MCP server, with task ids, progress, logs and cancel for each call
    Wrap(wrap::Wrap),
}

fn main() -> ExitCode {
    if let Some(code) = raincheck::child_main(demo::ROLES) {
        return code;
    }
    match run(&cli::parse()) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    }
}

fn run(cli: &Cli) -> Result<Exit, Failure> {
    let Cli { shared, serving, command } = cli;
    let now = || SystemClock::new().now();
    let command = match command {
        None => &Common::Serve,
        Some(Command::Common(common)) => common,
        Some(Command::Cache { action }) => {
            return cache::run(shared, serving, now(), action).map(|()| Exit::Done);
        }
        Some(Command::Tasks { action }) => {
            return tasks::run(shared, serving, now(), action).map(|()| Exit::Done);
        }
        Some(Command::Wrap(wrap)) => {
            return wrap::serve(shared, serving, wrap).map(|()| Exit::Done);
        }
    };
    match command {
        Common::Serve => {
            wiring::serve(shared, serving, |_| Ok(wiring::Tools::Programs)).map(|()| Exit::Done)
        }
        Common::Demo => demo::run().map(|()| Exit::Done),
        Common::Doctor { json } => {
            let patient = Patient {
                binary: &THIS,
                shared,
                serving,
                now: now(),
                missing_contents: Reader::missing_contents_of,
                check_locks,
            };
            let report = doctor::examine(&patient)
                .with([process_table()])
                .with(kept::findings(shared, serving));
            show(*json, &report.json(), || report.text(Palette::detect()))?;
            Ok(report.exit())
        }
        Common::Status { json } => {
            let paths = Paths::resolve(BINARY, shared)?;
            let mut report = status::look(&THIS, &paths, now(), Reader::workers_of);
            if let Some((fault, next)) = raincheck::process::place_fault() {
                report = report.with("programs", vec![format!("refused: {fault}; {next}")]);
            }
            show(*json, &report.json(), || report.text(Palette::detect()))?;
            Ok(Exit::Done)
        }
        Common::Config { action } => cli::config(&THIS, shared, action).map(|()| Exit::Done),
        Common::Setup(setup) => setup.run(&server(shared)?).map(|()| Exit::Done),
        Common::Unset(unset) => unset.run(&as_client_s(Vec::new())).map(|()| Exit::Done),
        Common::Completions { shell } => {
            cli::completions(*shell, Cli::command()).map(|()| Exit::Done)
        }
    }
}

/// Returns the server that these flags start, for a client.
fn server(shared: &Shared) -> Result<Server<'static>, Failure> {
    if shared.config.is_none() {
        return Err(Failure::usage(
            "no configuration file is named, so the server would have no tools",
            format!("name it: {BINARY} setup CLIENT --config raincheck.toml"),
        ));
    }
    let mut args = vec!["serve".to_owned()];
    args.extend(shared.arguments()?);
    Ok(as_client_s(args))
}

fn as_client_s(args: Vec<String>) -> Server<'static> {
    Server { binary: &THIS, name: BINARY, args }
}

/// Looks whether what a tool starts could be ended again.
fn process_table() -> Finding {
    const CHECK: &str = "process table";
    match raincheck::process::place_fault() {
        None => Finding::good(CHECK, "/proc shows the processes of this server"),
        Some((fault, next)) => Finding::bad(CHECK, format!("{fault}; tools are refused"), next),
    }
}

/// Prints a report for a program or for a person.
fn show(
    is_json: bool,
    json: &serde_json::Value,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    cli::print(&if is_json { format!("{json:#}\n") } else { text() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
