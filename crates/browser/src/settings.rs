//! Limits of the bridge, each with the default that the contract names.

use std::path::PathBuf;
use std::time::Duration;

/// Limits of the bridge. Durations are configuration; a command's own wishes come before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a call waits for the end of its command unless it says so [TIME-4].
    pub wait: Duration,
    /// How long a command has to be accepted, whether a browser is there or not [TIME-4].
    pub accept: Duration,
    /// How long a command may run unless it says so [TIME-4].
    pub run_timeout: Duration,
    /// The longest run that a command may ask for.
    pub max_run: Duration,
    /// How much later than its limit the server itself ends a command: the extension, which keeps the
    /// limit too, has until then to say what it stopped.
    pub run_margin: Duration,
    /// How long a command may stand in the queue of its tab [STATE-5].
    pub queue_timeout: Duration,
    /// How long a result stays readable [TIME-5].
    pub result_ttl: Duration,
    /// How many commands may stand in the queue of a tab [QUEUE-1].
    pub queue_limit: u32,
    /// How long a cancelled command has to end by itself [CANCEL-6].
    pub grace: Duration,
    /// How long a browser that runs a command may be silent [LEASE-6].
    pub reconnect_grace: Duration,
    /// How long after its last word a browser without an open poll counts as there.
    pub linger: Duration,
    /// How long a poll may be held.
    pub max_hold: Duration,
    /// The most bytes of a body that the extension posts.
    pub max_body: usize,
    /// The most browsers at once.
    pub max_browsers: usize,
    /// The most tabs that have commands of their own at once.
    pub max_tabs: usize,
    /// How many events of a kind are kept.
    pub ring: usize,
    /// The only folder that files are uploaded from and output is saved in; `None` allows neither.
    pub files_dir: Option<PathBuf>,
    /// What of a person's secrets commands may read.
    pub shows: Shows,
    /// Where what live commands type is held, beside the store; `None` holds it in memory only.
    pub typed_dir: Option<PathBuf>,
}

/// What of a person's secrets commands may read; none unless a person says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shows {
    /// Headers and values of requests that authenticate somebody.
    pub credentials: bool,
    /// The storage of pages.
    pub storage: bool,
    /// Cookies.
    pub cookies: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(2),
            accept: Duration::from_secs(3),
            run_timeout: Duration::from_secs(10),
            max_run: Duration::from_secs(600),
            run_margin: Duration::from_millis(400),
            queue_timeout: Duration::from_secs(600),
            result_ttl: Duration::from_secs(600),
            queue_limit: 32,
            grace: Duration::from_secs(5),
            reconnect_grace: Duration::from_secs(35),
            linger: Duration::from_secs(3),
            max_hold: Duration::from_secs(30),
            max_body: 16 * 1024 * 1024,
            max_browsers: 1024,
            max_tabs: 4096,
            ring: 1000,
            files_dir: None,
            shows: Shows::default(),
            typed_dir: None,
        }
    }
}
