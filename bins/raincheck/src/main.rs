//! `raincheck`: any command as a durable MCP tool.
//!
//! This file is the command line, `wiring` puts the server together, `wrap` puts another server behind it,
//! `demo` shows it at work, `tasks` and `cache` look at what it keeps.

mod cache;
mod demo;

mod kept;
mod servers;
mod tasks;

mod wiring;

mod wrap;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use raincheck::runtime::{Clock as _, SystemClock};
use raincheck_app::cli::{self, Common, Serving, Shared};
use raincheck_app::doctor::{self, Finding, Patient};
use raincheck_app::paths::Paths;
use raincheck_app::setup::{Server, Setup};
use raincheck_app::terminal::Palette;
use raincheck_app::wrapped::homes;
use raincheck_app::{Binary, Exit, Failure, checking, status};
use raincheck_store_sqlite::{Reader, check_locks};

/// The name of the binary, and of its part of the state folder.
const BINARY: &str = "raincheck";

/// The command that puts another server behind this one.
const WRAP: &str = "wrap";

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
            for (_, home) in homes(&paths.home) {
                report = report.beside(&home, Reader::workers_of);
            }
            if let Some((fault, next)) = raincheck::process::place_fault() {
                report = report.with("programs", vec![format!("refused: {fault}; {next}")]);
            }
            show(*json, &report.json(), || report.text(Palette::detect()))?;
            Ok(Exit::Done)
        }
        Common::Config { action } => checking::config(&THIS, shared, action).map(|()| Exit::Done),
        Common::Setup(setup) => setup.run(&server(shared, setup)?).map(|()| Exit::Done),
        Common::Unset(unset) => unset.run(&as_client_s(Vec::new())).map(|()| Exit::Done),
        Common::Completions { shell } => {
            cli::completions(*shell, Cli::command()).map(|()| Exit::Done)
        }
    }
}

/// Returns the server that these flags start, for a client.
fn server(shared: &Shared, setup: &Setup) -> Result<Server<'static>, Failure> {
    if setup.more().first().is_some_and(|word| word == WRAP) {
        return wrapping(shared, setup);
    }
    if shared.config.is_none() {
        return Err(Failure::usage(
            "no configuration file is named, so the server would have no tools",
            format!(
                "name it: {BINARY} setup CLIENT --config raincheck.toml; or put another server behind this one: \
                 {BINARY} setup CLIENT --name NAME -- wrap -- COMMAND"
            ),
        ));
    }
    let mut args = vec!["serve".to_owned()];
    args.extend(shared.arguments(&THIS)?);
    Ok(as_client_s(args))
}

/// Returns the server that puts another one behind it, which what follows names.
fn wrapping(shared: &Shared, setup: &Setup) -> Result<Server<'static>, Failure> {
    let example = format!("{BINARY} setup CLIENT --name NAME -- wrap -- COMMAND");
    let line = [&[BINARY.to_owned()], setup.more()].concat();
    let read = Cli::try_parse_from(line).map_err(|error| {
        let why = error.to_string();
        let why = why.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Failure::usage(why, format!("write it so: {example}"))
    })?;
    if let Some(Command::Wrap(wrap)) = &read.command {
        wrap.check_for_client()?;
    }
    if !setup.is_named() {
        return Err(Failure::usage(
            "it is not said what the client calls the wrapped server",
            format!("name it: {example}"),
        ));
    }
    Ok(as_client_s(shared.arguments(&THIS)?))
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

    #[test]
    fn a_client_is_given_a_wrapped_server_as_it_was_written() {
        let of = |line: &[&str]| {
            let line = [&[BINARY, "setup", "claude-code"], line].concat();
            let cli = Cli::try_parse_from(line).unwrap_or_else(|error| panic!("{error}"));
            let Some(Command::Common(Common::Setup(setup))) = cli.command else { panic!("setup") };
            let server = server(&cli.shared, &setup).map_err(|failure| failure.to_string())?;
            Ok::<_, String>([server.args, setup.more().to_vec()].concat())
        };
        let wrapped = ["--name", "github", "--scope", "me", "--", "wrap", "--", "npx", "-y", "x"];
        assert_eq!(of(&wrapped).expect("sound"), ["--scope", "me", "wrap", "--", "npx", "-y", "x"]);
        let url = ["--name", "far", "--", "wrap", "--url", "https://host/mcp"];
        assert_eq!(of(&url).expect("sound"), ["wrap", "--url", "https://host/mcp"]);
        for (line, said) in [
            (&["--", "wrap", "--", "npx"][..], "--name NAME"),
            (&["--name", "a", "--", "wrap"], "COMMAND"),
            (&["--name", "a", "--", "wrap", "npx"], "npx"),
            (&["--name", "a", "--", "wrap", "--", "./server.py"], "full path"),
            (&["--name", "a"], "--config raincheck.toml"),
        ] {
            let failure = of(line).expect_err("refused");
            assert!(failure.contains(said), "{line:?}: {failure}");
        }
    }
}
