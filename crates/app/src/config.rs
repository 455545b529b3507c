//! `raincheck.toml`: read whole, checked whole, explained with line and column.
//!
//! [`load`] turns the file into plain data, or into every problem it can find at once. The keys stand
//! in one table (`config/keys.rs`), from which the checks, the suggestions and the JSON Schema of
//! [`schema`] are made.

pub mod clients;
mod form;
mod keys;
mod limits;
mod problem;
mod read;
mod schema;
#[cfg(test)]
mod tests;
mod wrap;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raincheck::OAuth;
use raincheck_core::content::Json;
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::tool::ToolSpec;

use crate::binary::Binary;
use crate::failure::Failure;

pub use limits::{LimitFlags, Limits, Of, OfBrowser, OfUnity};
pub use problem::{Problem, Problems};
pub use schema::schema;
pub use wrap::{Wrap, Wrapped};

/// The names that command tools may not take, since every server has tools of these names.
pub const CANONICAL_TOOLS: [&str; 8] = [
    "submit_task",
    "get_task_status",
    "tail_task_logs",
    "list_tasks",
    "cancel_task",
    "get_task_result",
    "give_task_input",
    "fetch_cached_response",
];

/// The longest name a tool may have.
pub const MAX_TOOL_NAME: usize = 64;

/// The longest wait that a direct call may have.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// What a configuration file says, with everything it does not say filled in.
#[derive(Clone, Debug)]
pub struct File {
    /// The folder that relative commands start in: the file's, else the current one.
    pub folder: PathBuf,
    /// Where tasks are kept, when the file says so.
    pub store: Option<Store>,
    /// Every lane, the built-in ones included.
    pub lanes: Vec<(LaneId, lane::Config)>,
    /// The command tools, in the order of the file.
    pub tools: Vec<Tool>,
    /// What each client named in `[clients]` takes.
    pub clients: BTreeMap<String, Client>,
    /// The limits of the browser bridge that `[browser]` sets.
    pub browser: Limits,
    /// The limits of the bridge to Unity that `[unity]` sets.
    pub unity: Limits,
    /// What `[cache]` sets.
    pub cache: Cache,
    /// What `[http]` sets.
    pub http: Http,
    /// What `[wrap]` and `[wrapped.NAME]` set.
    pub wrap: Wrap,
    /// The sections that the file has.
    pub sections: Vec<&'static str>,
}

/// What a client takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Its longest call.
    pub timeout: Option<Duration>,
    /// Its longest answer, in characters.
    pub max_chars: Option<usize>,
}

/// How large answers are kept.
#[derive(Clone, Debug)]
pub struct Cache {
    /// Whether they are.
    pub is_enabled: bool,
    /// The limits that the file sets.
    pub limits: Limits,
    /// The calls whose answers are kept ahead.
    pub warm: Vec<Warm>,
}

impl Default for Cache {
    fn default() -> Self {
        Self { is_enabled: true, limits: Limits::default(), warm: Vec::new() }
    }
}

/// Where MCP is served over HTTP, and to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Http {
    /// The address; `--http` comes before it.
    pub listen: Option<SocketAddr>,
    /// Whether other machines may reach it.
    pub allows_remote: bool,
    /// Whether callers of this machine need no token.
    pub is_anonymous: bool,
    /// Names that it is called by.
    pub names: Vec<String>,
    /// Origins that a request may carry.
    pub origins: Vec<String>,
    /// The owners, each with the place of its token.
    pub tokens: Vec<(String, TokenFrom)>,
    /// Whose access tokens are believed too.
    pub oauth: Option<OAuth>,
}

/// Where a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenFrom {
    /// In a file; a relative path begins at the folder of the configuration.
    File(PathBuf),
    /// In a variable of the environment.
    Variable(String),
}

/// A call whose answer is kept ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warm {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub inputs: Json,
    /// How often it is called again; `None` is once.
    pub every: Option<Duration>,
}

/// Where tasks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// In the memory of the server.
    Memory,
    /// In a file.
    Path(PathBuf),
}

/// The word for a store in memory.
const MEMORY: &str = "memory";

impl Store {
    /// Reads what the flag or the file says: `memory`, or a path; `None` for the address of a database,
    /// in which this version keeps no tasks.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        if text == MEMORY {
            return Some(Self::Memory);
        }
        (!text.contains("://")).then(|| Self::Path(PathBuf::from(text)))
    }
}

/// A program that is a tool.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The tool as the engine sees it.
    pub spec: ToolSpec,
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// What of the environment it gets; `None` is the default list.
    pub env: Option<Env>,
    /// The bytes of log text it may keep.
    pub log_quota: u64,
    /// How long it has to end after a cancel before it is killed.
    pub grace: Duration,
}

/// The environment of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Env {
    /// These variables, with the server's values.
    Inherit(Vec<String>),
    /// These variables, with these values.
    Fixed(BTreeMap<String, String>),
}

/// What the command line says about tools; a tool's own key wins, `[defaults]` loses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overrides {
    /// The wait budget of a direct call.
    pub wait: Option<Duration>,
}

impl File {
    /// Returns the sections that have no effect on a binary.
    pub fn idle_sections(&self, binary: &Binary) -> impl Iterator<Item = &'static str> {
        self.sections.iter().copied().filter(|name| !binary.sections.contains(name))
    }

    /// Returns what holds without a file: the built-in lanes and no tool.
    #[must_use]
    pub fn none(folder: PathBuf) -> Self {
        Self {
            folder,
            store: None,
            lanes: lane::built_in(),
            tools: Vec::new(),
            clients: BTreeMap::new(),
            browser: Limits::default(),
            unity: Limits::default(),
            cache: Cache::default(),
            http: Http::default(),
            wrap: Wrap::default(),
            sections: Vec::new(),
        }
    }
}

/// Reads and checks a configuration file.
///
/// # Errors
/// A [`Failure`] that shows every problem found, each with its line and what would be right.
pub fn load(path: &Path, overrides: Overrides, binary: &Binary) -> Result<File, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(
            format!("cannot read the configuration `{shown}`: {error}"),
            "check the path given to --config (or RAINCHECK_CONFIG)",
        )
    })?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    parse(&text, folder, overrides).map_err(|problems| {
        Failure::usage(
            problems.render(&shown.to_string(), &text),
            format!("correct the file, then run: {} config check --config {shown}", binary.name),
        )
    })
}

/// Checks the text of a configuration file whose relative commands start in `folder`.
///
/// # Errors
/// Every problem that was found, in the order of the file.
pub fn parse(text: &str, folder: PathBuf, overrides: Overrides) -> Result<File, Problems> {
    read::read(text, folder, overrides)
}
