//! `unity-mcp`: the Unity Editor as MCP tools, through reloads, compiles and lost connections.
//!
//! This file is the command line, `place` finds the project, `wiring` puts the server together, `package`
//! writes the Unity package, `demo` shows it all.

mod demo;

mod doctor;

mod package;

mod place;

mod wiring;

mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use raincheck::runtime::{Clock as _, SystemClock};
use raincheck_app::cli::{self, Common, Serving, Shared};
use raincheck_app::config::{LimitFlags, OfUnity};
use raincheck_app::paths::Paths;
use raincheck_app::setup::Server;
use raincheck_app::terminal::Palette;
use raincheck_app::{Binary, Exit, Failure, checking, status};
use raincheck_store_sqlite::Reader;

use crate::place::Place;

/// The name of the binary, and of its part of the state folder.
const BINARY: &str = "unity-mcp";

/// What the shared commands have to know of it.
const THIS: Binary = Binary {
    name: BINARY,
    sections: &["store", "unity", "clients", "cache", "http"],
    while_running: "Whether an editor is connected: ask the server's client to call get_editor_state",
    while_stopped: "Start one from an MCP client: unity-mcp --project DIR",
    on_shared_store: "end one of them, or use its client: one server has the editor of a project",
};

/// What no check of `doctor` sees.
const UNSEEN: &str = "whether the editor is connected cannot be seen from here: ask the server's client to call \
                      get_editor_state, or look at Preferences > Raincheck in the editor";

/// The Unity Editor as MCP tools, through reloads, compiles and lost connections
#[derive(Parser, Debug)]
#[command(name = BINARY, version, subcommand_precedence_over_arg = true)]
struct Cli {
    #[command(flatten)]
    shared: Shared,
    #[command(flatten)]
    serving: Serving,
    #[command(flatten)]
    unity: UnityFlags,
    #[command(flatten)]
    limits: LimitFlags<OfUnity>,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Flags that are about Unity.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Unity")]
struct UnityFlags {
    /// The Unity project [default: the one that the current folder is in, if any]
    #[arg(long, global = true, value_name = "DIR", env = "RAINCHECK_PROJECT")]
    project: Option<PathBuf>,
    /// The port to listen on for the editor [default: that of the last time, or any]
    #[arg(long, global = true, value_name = "PORT", env = "RAINCHECK_PORT")]
    #[arg(default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Let execute_code run what it is given
    #[arg(long, global = true, env = "RAINCHECK_ENABLE_EXECUTE_CODE")]
    #[arg(value_parser = clap::builder::BoolishValueParser::new())]
    enable_execute_code: bool,
    /// Listen for CoplayDev's package, too, on a port of its own and without a secret
    #[arg(long, global = true, value_name = "PORT", env = "RAINCHECK_COPLAY")]
    #[arg(num_args = 0..=1, default_missing_value = "8080")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    coplay: Option<u16>,
}

#[derive(Subcommand, Debug)]
enum Command {
    #[command(flatten)]
    Common(Common),
    /// Write the Unity package into a project, or bring it up to date
    Install(package::Install),
    /// Remove the Unity package from a project
    Uninstall(package::Uninstall),
}

fn main() -> ExitCode {
    if let Some(code) = raincheck::child_main(&[]) {
        return code;
    }
    match run(cli::parse()) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    }
}

fn run(cli: Cli) -> Result<Exit, Failure> {
    let Cli { mut shared, serving, unity, limits, command } = cli;
    let now = || SystemClock::new().now();
    let command = match command {
        None => Common::Serve,
        Some(Command::Common(common)) => common,
        Some(Command::Install(install)) => return install.run().map(|()| Exit::Done),
        Some(Command::Uninstall(uninstall)) => return uninstall.run().map(|()| Exit::Done),
    };
    let find = || Place::find(unity.project.as_deref());
    match command {
        Common::Serve => {
            let place = find()?;
            shared.home = place.home();
            wiring::serve(&shared, &serving, &place, &unity, &limits.0).map(|()| Exit::Done)
        }
        Common::Demo => demo::run().map(|()| Exit::Done),
        Common::Doctor { json } => {
            let place = find();
            shared.home = place.as_ref().ok().and_then(Place::home);
            let report = doctor::examine(&shared, &serving, place, unity.port, now());
            let report = report.with_unseen(UNSEEN);
            show(json, &report.json(), || report.text(Palette::detect()))?;
            Ok(report.exit())
        }
        Common::Status { json } => {
            let place = find()?;
            shared.home = place.home();
            let paths = Paths::resolve(BINARY, &shared)?;
            let listener = wait_for(place.places(&paths).reach())?.and_then(Result::ok);
            let report = status::look(&THIS, &paths, now(), Reader::workers_of);
            let report = report.listening(listener).with("project", vec![place.described()]);
            let mut installed = vec![package::described(&place)];
            installed.extend(place.project.as_ref().and_then(package::advice));
            let report = report.with("package", installed);
            show(json, &report.json(), || report.text(Palette::detect()))?;
            Ok(Exit::Done)
        }
        Common::Config { action } => checking::config(&THIS, &shared, &action).map(|()| Exit::Done),
        Common::Setup(setup) => {
            let args = arguments(&shared, &find()?, &unity)?;
            setup.run(&server(args)).map(|()| Exit::Done)
        }
        Common::Unset(unset) => unset.run(&server(Vec::new())).map(|()| Exit::Done),
        Common::Completions { shell } => {
            cli::completions(shell, Cli::command()).map(|()| Exit::Done)
        }
    }
}

fn server(args: Vec<String>) -> Server<'static> {
    Server { binary: &THIS, name: "unity", args }
}

/// Returns the arguments of a server with these flags, for a client.
fn arguments(shared: &Shared, place: &Place, unity: &UnityFlags) -> Result<Vec<String>, Failure> {
    let mut args = vec!["serve".to_owned()];
    match &place.project {
        Some(project) => args.extend(["--project".to_owned(), cli::full(project.root())?]),
        None if unity.coplay.is_some() => {}
        None => {
            return Err(Failure::usage(
                "no Unity project is named, so no editor could find the server",
                format!("name it: {BINARY} setup CLIENT --project DIR"),
            ));
        }
    }
    if let Some(port) = unity.coplay {
        args.extend(["--coplay".to_owned(), port.to_string()]);
    }
    if unity.port != 0 {
        args.extend(["--port".to_owned(), unity.port.to_string()]);
    }
    if unity.enable_execute_code {
        args.push("--enable-execute-code".to_owned());
    }
    args.extend(shared.arguments(&THIS)?);
    Ok(args)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_port_of_the_other_package_may_be_left_out() {
        let coplay = |line: &str| {
            let cli = Cli::try_parse_from(line.split(' '));
            cli.unwrap_or_else(|error| panic!("{error}")).unity.coplay
        };
        assert_eq!(coplay("unity-mcp --coplay"), Some(8080));
        assert_eq!(coplay("unity-mcp --coplay serve --project p"), Some(8080));
        assert_eq!(coplay("unity-mcp serve --coplay 8123"), Some(8123));
        assert_eq!(coplay("unity-mcp serve"), None);
    }
}
