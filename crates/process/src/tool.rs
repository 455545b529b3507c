//! What a command tool is.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use raincheck_core::log::DEFAULT_QUOTA;
use raincheck_core::tool::ToolSpec;

/// The variables that a program gets from this process unless its tool says otherwise: where
/// programs, its home, its language and its temporary files are.
pub const DEFAULT_ENVIRONMENT: &[&str] = if cfg!(windows) {
    &["PATH", "PATHEXT", "SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "USERPROFILE", "TEMP", "TMP"]
} else {
    &["PATH", "HOME", "LANG", "TMPDIR"]
};

/// A program that is a tool.
#[derive(Clone, Debug)]
pub struct CommandTool {
    /// What the engine must know of it.
    pub spec: ToolSpec,
    /// The program and its arguments; no shell reads them.
    ///
    /// A program without a slash is looked for on `PATH`: the tool's own where
    /// [`environment`](Self::environment) fixes one, else this process's. With a slash it is a path
    /// from [`folder`](Self::folder).
    pub argv: Vec<String>,
    /// The folder the program starts in, usually the one of the configuration file; a relative one
    /// starts at the server's own.
    pub folder: PathBuf,
    /// Which variables the program gets besides the `RAINCHECK_` ones.
    pub environment: EnvRule,
    /// How many bytes of log text a task may keep [LOG-2].
    pub log_quota: u64,
    /// How long a program that was asked to end has before it is killed [CANCEL-6].
    pub grace: Duration,
}

/// Which variables a program gets; everything else of this process stays hidden from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EnvRule {
    /// Those of [`DEFAULT_ENVIRONMENT`].
    #[default]
    Default,
    /// Those of these names that this process has.
    Inherit(Vec<String>),
    /// Exactly these, and none of this process's.
    Fixed(BTreeMap<String, String>),
}

impl CommandTool {
    /// Makes a tool with the contract's defaults.
    #[must_use]
    pub fn new(spec: ToolSpec, argv: Vec<String>, folder: impl Into<PathBuf>) -> Self {
        Self {
            spec,
            argv,
            folder: folder.into(),
            environment: EnvRule::Default,
            log_quota: DEFAULT_QUOTA,
            grace: Duration::from_secs(5),
        }
    }
}
