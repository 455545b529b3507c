//! `browser-mcp`: a real browser as MCP tools that never hang their caller.
//!
//! This file is the command line, `wiring` puts the server together, `extension` writes the extension,
//! `demo` shows it all.

mod bridge;

mod demo;

mod doctor;

mod extension;

mod wiring;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use raincheck::runtime::{Clock as _, SystemClock};
use raincheck_app::cli::{self, Common, Serving, Shared};
use raincheck_app::config::{LimitFlags, OfBrowser};
use raincheck_app::paths::Paths;
use raincheck_app::setup::Server;
use raincheck_app::terminal::Palette;
use raincheck_app::{Binary, Exit, Failure, checking, status};
use raincheck_store_sqlite::Reader;

/// The name of the binary, and of its part of the state folder.
const BINARY: &str = "browser-mcp";

/// What the shared commands have to know of it.
const THIS: Binary = Binary {
    name: BINARY,
    sections: &["store", "browser", "clients", "cache", "http"],
    while_running: "Whether a browser is connected: ask the server's client to call observe health",
    while_stopped: "Start one from an MCP client: browser-mcp serve",
    on_shared_store: "end one of them, or use its client: one server has the browser",
};

/// What no check of `doctor` sees.
const UNSEEN: &str = "whether a browser is connected cannot be seen from here: ask the server's client to call observe \
                      health, or look at the extension's icon in the browser, which shows ! while it is not";

/// A real browser as MCP tools that never hang their caller
#[derive(Parser, Debug)]
#[command(name = BINARY, version, subcommand_precedence_over_arg = true)]
struct Cli {
    #[command(flatten)]
    shared: Shared,
    #[command(flatten)]
    serving: Serving,
    /// The port to listen on for the extension [default: that of the last time, or any]
    #[arg(long, global = true, value_name = "PORT", env = "RAINCHECK_PORT")]
    #[arg(default_value_t = 0, hide_default_value = true)]
    port: u16,
    #[command(flatten)]
    limits: LimitFlags<OfBrowser>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    #[command(flatten)]
    Common(Common),
    /// Write the browser extension to a folder, change its secret, or remove it
    Extension {
        #[command(subcommand)]
        action: extension::Action,
    },
}

fn main() -> ExitCode {
    if let Some(code) = raincheck::child_main(&[]) {
        return code;
    }
    match run(&cli::parse()) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    }
}

fn run(cli: &Cli) -> Result<Exit, Failure> {
    let Cli { shared, serving, port, limits, command } = cli;
    let now = || SystemClock::new().now();
    let command = match command {
        None => &Common::Serve,
        Some(Command::Common(common)) => common,
        Some(Command::Extension { action }) => {
            let paths = Paths::resolve(BINARY, shared)?;
            return extension::run(&paths, action).map(|()| Exit::Done);
        }
    };
    match command {
        Common::Serve => wiring::serve(shared, serving, *port, &limits.0).map(|()| Exit::Done),
        Common::Demo => demo::run().map(|()| Exit::Done),
        Common::Doctor { json } => {
            let report = doctor::examine(shared, serving, *port, now()).with_unseen(UNSEEN);
            show(*json, &report.json(), || report.text(Palette::detect()))?;
            Ok(report.exit())
        }
        Common::Status { json } => {
            let paths = Paths::resolve(BINARY, shared)?;
            let places = places(&paths);
            let listener = wait_for(places.reach())?.and_then(Result::ok);
            let report = status::look(&THIS, &paths, now(), Reader::workers_of);
            let report =
                report.listening(listener).with("extension", extension::described(&places));
            show(*json, &report.json(), || report.text(Palette::detect()))?;
            Ok(Exit::Done)
        }
        Common::Config { action } => checking::config(&THIS, shared, action).map(|()| Exit::Done),
        Common::Setup(setup) => {
            let mut args = vec!["serve".to_owned()];
            args.extend(shared.arguments(&THIS)?);
            if *port != 0 {
                args.extend(["--port".to_owned(), port.to_string()]);
            }
            setup.run(&server(args)).map(|()| Exit::Done)
        }
        Common::Unset(unset) => unset.run(&server(Vec::new())).map(|()| Exit::Done),
        Common::Completions { shell } => {
            cli::completions(*shell, Cli::command()).map(|()| Exit::Done)
        }
    }
}

fn server(args: Vec<String>) -> Server<'static> {
    Server { binary: &THIS, name: "browser", args }
}

/// Prints a report for a program or for a person.
fn show(
    is_json: bool,
    json: &serde_json::Value,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    cli::print(&if is_json { format!("{json:#}\n") } else { text() })
}

/// Runs a future to its end on this thread.
fn wait_for<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::failed(format!("the command cannot start: {error}"), "try again")
    })?;
    Ok(runtime.block_on(future))
}

/// Returns the places of the bridge.
fn places(paths: &Paths) -> raincheck_browser::extension::Places {
    let state: &PathBuf = &paths.state;
    raincheck_browser::extension::Places::new(state, &paths.runtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
