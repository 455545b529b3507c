//! Flags and subcommands that every binary shares.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, Args, Command, Id, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::address::http_address;
use crate::binary::Binary;
use crate::config::{self, File, Overrides, Store};
use crate::failure::Failure;
use crate::redact::credentials;
use crate::setup::{Setup, Unset};

pub use crate::output::print;

/// The file of a binary's own folder that keeps its tasks.
const STORE: &str = "store.db";

/// The longest wait that may be asked for. A call waits as long as its surface and its client allow.
const MAX_WISH: Duration = Duration::from_secs(3600);

/// Who owns the tasks of a server that is not told.
const LOCAL: &str = "local";

/// Reads the command line of a binary. A variable that is empty is as good as absent.
///
/// What is wrong with it ends the process with code 2 and is told, as `--help` and `--version` are.
#[must_use]
pub fn parse<C: Parser>() -> C {
    let is_empty = |variable: &OsStr| std::env::var_os(variable).is_some_and(|it| it.is_empty());
    let command = C::command().mut_args(|flag| match flag.get_env() {
        Some(variable) if is_empty(variable) => flag.env(None::<&'static str>),
        Some(_) | None => flag,
    });
    let command = without_serving(command);
    C::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
}

/// Commands that take no heed of the flags of servers.
const NOT_SERVING: [&str; 5] = ["demo", "completions", "install", "uninstall", "unset"];

/// Leaves out of the help of a command what has no effect on it. It is taken all the same.
fn without_serving(command: Command) -> Command {
    let all = command.get_arguments().filter(|flag| flag.is_global_set());
    let hidden: Vec<Arg> = all.map(|flag| flag.clone().hide(true)).collect();
    let names = NOT_SERVING.iter().filter(|name| command.find_subcommand(name).is_some());
    let names: Vec<&str> = names.copied().collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |of| {
            // One that it has of its own by that name stands before it.
            let has = |id: &Id| of.get_arguments().any(|own| own.get_id() == id);
            let others = hidden.iter().filter(|flag| !has(flag.get_id()));
            let others: Vec<Arg> = others.cloned().collect();
            of.args(others)
        })
    })
}

/// Flags that every subcommand takes, before or after its name.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Every command")]
pub struct Shared {
    /// Where state is kept [default: the platform's state folder + raincheck; for a Unity project, Library/Raincheck in it]
    #[arg(long, global = true, value_name = "DIR", env = "RAINCHECK_STATE_DIR")]
    pub state_dir: Option<PathBuf>,
    /// Where sockets and endpoint files are kept [default: the platform's runtime folder + raincheck]
    #[arg(long, global = true, value_name = "DIR", env = "RAINCHECK_RUNTIME_DIR")]
    pub runtime_dir: Option<PathBuf>,
    /// Where tasks are kept: a file, or `memory` [default: store.db in the folder of the server, which `status` names]
    #[arg(long, global = true, value_name = "STORE", env = "RAINCHECK_STORE")]
    #[arg(hide_env_values = true)]
    pub store: Option<String>,
    /// How much to log: error, warn, info, debug, trace, or a filter such as `raincheck=debug` [default: warn, and info of its own]
    #[arg(long, global = true, value_name = "LEVEL", env = "RAINCHECK_LOG_LEVEL")]
    pub log_level: Option<String>,
    /// How log lines look
    #[arg(long, global = true, value_name = "FORMAT", env = "RAINCHECK_LOG_FORMAT")]
    #[arg(value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Who owns the tasks of this server
    #[arg(long, global = true, value_name = "NAME", env = "RAINCHECK_SCOPE")]
    #[arg(default_value = LOCAL, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub scope: String,
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE", env = "RAINCHECK_CONFIG")]
    pub config: Option<PathBuf>,
    /// The folder of the server itself, where that is not the binary's part of the state folder: set by
    /// a binary whose servers belong to a place.
    #[arg(skip)]
    pub home: Option<PathBuf>,
}

/// How log lines look.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Flags of a server, before or after `serve`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Serving")]
pub struct Serving {
    /// Send structuredContent beside the text of an answer
    #[arg(long, global = true, env = "RAINCHECK_STRUCTURED_CONTENT")]
    #[arg(value_parser = clap::builder::BoolishValueParser::new())]
    pub structured_content: bool,
    /// How long a call waits before it answers with the id of what goes on, in seconds; a minute at the most,
    /// and no longer than its client waits
    #[arg(long, global = true, value_name = "SECONDS", env = "RAINCHECK_WAIT_S")]
    #[arg(value_parser = seconds, allow_hyphen_values = true)]
    pub wait_s: Option<Duration>,
    /// Serve MCP over HTTP at this address instead of standard input and output: a port, or HOST:PORT
    #[arg(long, global = true, value_name = "ADDR", env = "RAINCHECK_HTTP")]
    #[arg(value_parser = http_address)]
    pub http: Option<SocketAddr>,
    /// Let other machines reach the address of --http; it needs a token
    #[arg(long, global = true, env = "RAINCHECK_ALLOW_REMOTE")]
    #[arg(value_parser = clap::builder::BoolishValueParser::new())]
    pub allow_remote: bool,
}

/// Subcommands that every binary has; none given is `serve`.
#[derive(Subcommand, Clone, Debug)]
pub enum Common {
    /// Serve MCP on standard input and output (the default)
    Serve,
    /// Show what the server does: starts one, calls it, kills it, and cleans up
    Demo,
    /// Look for the usual causes of trouble
    Doctor {
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Show the servers that run, their lanes and files, and what killed ones left
    Status {
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Check the configuration file, or print its JSON Schema
    Config {
        /// What to do with it.
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// Add this server to an MCP client, with the flags that stand before or after
    Setup(Setup),
    /// Take this server out of an MCP client
    Unset(Unset),
    /// Print the completion script of a shell
    Completions {
        /// The shell to complete in
        shell: Shell,
    },
}

/// What to do with the configuration file.
#[derive(Subcommand, Clone, Debug, PartialEq, Eq)]
pub enum ConfigAction {
    /// Explain every error of the file with its line
    Check {
        /// The file, instead of --config
        file: Option<PathBuf>,
    },
    /// Print the JSON Schema of the file, for editors
    Schema,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let most = MAX_WISH.as_secs_f64();
    let seconds = text.parse().ok().filter(|seconds| (0.0..=most).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("write seconds from 0 to {most}, such as 10 or 0.5"))
}

impl Shared {
    /// Reads the flags and the configuration file that they name, as a server does before it starts: what
    /// this accepts a server starts with. A store that a flag names comes before the file's.
    ///
    /// # Errors
    /// Everything that is wrong with the file, or what a flag asks for that this version does not do.
    pub fn load(&self, binary: &Binary, serving: &Serving) -> Result<File, Failure> {
        let mut file = self.load_file(binary, serving)?;
        let folder = &file.folder;
        let kept = file.store.map(|store| match store {
            Store::Path(path) => Store::Path(folder.join(path)),
            Store::Memory => Store::Memory,
        });
        file.store = match self.store_flag()? {
            Some(Store::Path(path)) => {
                Some(Store::Path(std::path::absolute(&path).unwrap_or(path)))
            }
            Some(Store::Memory) => Some(Store::Memory),
            None => kept,
        };
        Ok(file)
    }

    /// Reads the configuration file that the flags name; none named is an empty one.
    pub(crate) fn load_file(&self, binary: &Binary, serving: &Serving) -> Result<File, Failure> {
        let overrides = Overrides { wait: serving.wait_s };
        match &self.config {
            Some(path) => config::load(path, overrides, binary),
            None => Ok(File::none(std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")))),
        }
    }

    /// Returns the flags that say where a server finds and keeps things, for a client that starts it in another
    /// folder and without this environment.
    ///
    /// # Errors
    /// When a path is no text, or a server would not start with the configuration file.
    pub fn arguments(&self, binary: &Binary) -> Result<Vec<String>, Failure> {
        self.load_file(binary, &Serving::default())?;
        let mut arguments = Vec::new();
        let store = match self.store_flag()? {
            Some(Store::Path(path)) => Some(path),
            Some(Store::Memory) | None => None,
        };
        let paths = [
            ("--config", &self.config),
            ("--state-dir", &self.state_dir),
            ("--runtime-dir", &self.runtime_dir),
            ("--store", &store),
        ];
        for (flag, path) in paths {
            if let Some(path) = path.as_deref().filter(|path| !path.as_os_str().is_empty()) {
                arguments.extend([flag.to_owned(), full(path)?]);
            }
        }
        if let Some(Store::Memory) = self.store_flag()? {
            arguments.extend(["--store".to_owned(), "memory".to_owned()]);
        }
        if self.scope != LOCAL {
            arguments.extend(["--scope".to_owned(), self.scope.clone()]);
        }
        Ok(arguments)
    }

    /// Reads the store that the flag names.
    pub(crate) fn store_flag(&self) -> Result<Option<Store>, Failure> {
        let Some(text) = self.store.as_deref().filter(|store| !store.is_empty()) else {
            return Ok(None);
        };
        Store::read(text).map(Some).ok_or_else(|| {
            Failure::usage(
                format!(
                    "the store `{}`: this version keeps tasks in memory or in a file",
                    credentials(text)
                ),
                "leave out --store to keep tasks in the state folder, or name a file: --store PATH",
            )
        })
    }

    /// Says where tasks are kept: as the flag says, else as the file says, else in a file of the
    /// binary's own folder. A path in the file starts at the file's folder, like every other.
    #[must_use]
    pub fn store(&self, file: &File, home: &Path) -> Store {
        file.store.clone().unwrap_or_else(|| Store::Path(home.join(STORE)))
    }
}

/// Returns the full path, as text.
///
/// # Errors
/// When it is no text.
pub fn full(path: &Path) -> Result<String, Failure> {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    full.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!("{} is no text", path.display()), "give it a plain name")
    })
}

/// Prints the completion script of a shell.
///
/// # Errors
/// Why nothing could be printed.
pub fn completions(shell: Shell, mut command: Command) -> Result<(), Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    print(&String::from_utf8_lossy(&script))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _};

    use super::*;

    #[derive(Parser, Debug)]
    #[command(name = "raincheck")]
    struct Cli {
        #[command(flatten)]
        shared: Shared,
        #[command(flatten)]
        serving: Serving,
        #[command(subcommand)]
        command: Option<Common>,
    }

    fn parse(line: &str) -> Cli {
        Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{error}"))
    }

    const RAINCHECK: Binary = Binary {
        name: "raincheck",
        sections: &["store"],
        while_running: "",
        while_stopped: "",
        on_shared_store: "",
    };

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_a_command_that_serves_nothing_is_short() {
        let mut command = without_serving(Cli::command());
        command.build();
        let help = |name: &str| {
            let of = command.clone().find_subcommand_mut(name).expect("a command").clone();
            let mut of = of;
            of.render_long_help().to_string()
        };
        assert!(!help("demo").contains("--store") && help("serve").contains("--store"));
        let matches = without_serving(Cli::command());
        let matches = matches.try_get_matches_from(["raincheck", "demo", "--store", "memory"]);
        let cli = Cli::from_arg_matches(&matches.expect("it is taken all the same"));
        assert_eq!(cli.expect("flags").shared.store.as_deref(), Some("memory"));
    }

    #[test]
    fn flags_stand_before_or_after_the_subcommand() {
        for line in [
            "raincheck --state-dir s --scope me serve --config c --wait-s 0.5 --structured-content",
            "raincheck serve --config c --state-dir s --scope me --structured-content --wait-s 0.5",
            "raincheck --wait-s 0.5 --config c --structured-content --scope me --state-dir s",
        ] {
            let cli = parse(line);
            assert_eq!(cli.shared.state_dir, Some("s".into()), "{line}");
            assert_eq!(cli.shared.config, Some("c".into()), "{line}");
            assert_eq!(cli.shared.scope, "me", "{line}");
            assert!(cli.serving.structured_content, "{line}");
            assert_eq!(cli.serving.wait_s, Some(Duration::from_millis(500)), "{line}");
            assert!(matches!(cli.command, None | Some(Common::Serve)));
        }
    }

    #[test]
    fn a_wait_that_is_no_time_is_refused() {
        for wait in ["-3", "-1e-9", "3600.5", "1e99", "soon", "inf", "NaN", "-inf"] {
            for line in [format!("raincheck --wait-s={wait}"), format!("raincheck --wait-s {wait}")]
            {
                let error = Cli::try_parse_from(line.split(' ')).expect_err(&line).to_string();
                for part in [wait, "--wait-s", "seconds from 0 to 3600"] {
                    assert!(error.contains(part), "{part} is not in {error}");
                }
            }
        }
        for (wait, millis) in [("0", 0), ("0.5", 500), ("60", 60_000), ("600", 600_000)] {
            let cli = parse(&format!("raincheck serve --wait-s {wait}"));
            assert_eq!(cli.serving.wait_s, Some(Duration::from_millis(millis)), "{wait}");
        }
    }

    #[test]
    fn a_check_says_what_the_file_is_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("raincheck.toml");
        let binary = Binary { sections: &["tools", "wrap", "wrapped"], ..RAINCHECK };
        let check = |text: &str| {
            std::fs::write(&path, text).expect("written");
            let shared = Shared { config: Some(path.clone()), ..parse("raincheck").shared };
            crate::checking::checked(&binary, &shared, &path).expect("sound")
        };
        let tool = "[tools.a]\ncommand = [\"a\"]\ndescription = \"d\"\n";
        let said = check("[wrapped.query]\nidempotent = true\n[wrapped.rm]\nhidden = true\n");
        assert!(said.contains("for 2 tools by name, no problem"), "{said}");
        assert!(said.contains("raincheck wrap warns") && !said.contains("lane"), "{said}");
        let said = check("[wrap]\nwait_s = 1\n");
        assert!(said.contains("rules for the tools of a wrapped server, no problem"), "{said}");
        let said = check(&format!("{tool}[wrap]\nwait_s = 1\n"));
        assert!(said.contains("wrapped server, 1 tool, 3 lanes, no problem"), "{said}");
        let said = check(tool);
        assert!(
            said.contains(": 1 tool, 3 lanes, no problem") && said.contains("doctor"),
            "{said}"
        );
    }

    #[test]
    fn a_client_is_given_no_configuration_that_a_server_would_not_start_with() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("raincheck.toml");
        let shared = Shared { config: Some(path.clone()), ..parse("raincheck").shared };
        let refused = shared.arguments(&RAINCHECK).expect_err("no file");
        assert!(refused.message.contains("cannot read the configuration"), "{refused}");
        assert!(refused.next.contains("--config"), "{refused}");
        std::fs::write(&path, "[lane]\n").expect("written");
        let refused = shared.arguments(&RAINCHECK).expect_err("a broken file");
        assert!(refused.message.contains("lanes"), "{refused}");
        std::fs::write(&path, "").expect("written");
        assert_eq!(
            shared.arguments(&RAINCHECK).expect("sound").first().map(String::as_str),
            Some("--config")
        );
    }

    #[test]
    fn a_store_in_a_database_is_refused_without_its_password() {
        let shared = parse("raincheck --store postgres://me:secret@host/db").shared;
        let refusal = shared.load(&RAINCHECK, &Serving::default()).expect_err("no such store");
        assert_eq!(refusal.exit, crate::Exit::Usage);
        assert!(!refusal.message.contains("secret"), "{refusal}");
    }

    #[test]
    fn the_flag_says_where_tasks_are_kept_then_the_file_then_the_state_folder() {
        let home = Path::new("/state/raincheck");
        let dir = tempfile::tempdir().expect("a folder");
        let config = dir.path().join("raincheck.toml");
        std::fs::write(&config, "[store]\npath = \"a.db\"\n").expect("written");
        let config = config.display();
        let store = |line: &str| {
            let Cli { shared, serving, .. } = parse(line);
            shared.store(&shared.load(&RAINCHECK, &serving).expect("a file"), home)
        };
        assert_eq!(store("raincheck serve"), Store::Path("/state/raincheck/store.db".into()));
        let kept = store(&format!("raincheck serve --config {config}"));
        assert_eq!(kept, Store::Path(dir.path().join("a.db")));
        let flag = store(&format!("raincheck serve --store b.db --config {config}"));
        assert_eq!(flag, Store::Path(std::path::absolute("b.db").expect("a folder")));
        assert_eq!(store("raincheck --store memory"), Store::Memory);
    }
}
