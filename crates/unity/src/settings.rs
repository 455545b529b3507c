//! Limits of the bridge, each with the default that the contract names.

use std::path::PathBuf;
use std::time::Duration;

/// Limits of the bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The project that the server was started for.
    pub project: Option<PathBuf>,
    /// Whether editors with CoplayDev's package are listened for, which find a server without a project.
    pub takes_coplay: bool,
    /// The file that keeps for the next server which editors its callers have selected; without one that is
    /// forgotten with the server.
    pub choices: Option<PathBuf>,
    /// Whether `execute_code` may run what it is given.
    pub enable_execute_code: bool,
    /// How long a call waits for the end of its task unless it says so [TIME-2].
    pub wait: Duration,
    /// How long an editor that was sent a call has to say that it has it.
    pub accept: Duration,
    /// How long a call may wait for an editor in all [QUEUE-5].
    pub ready: Duration,
    /// The same for a call that is made while the editor compiles.
    pub ready_compiling: Duration,
    /// How long an editor that went away with a call has to come back [LEASE-6].
    pub reconnect_grace: Duration,
    /// The same for one that went away while it compiled.
    pub reconnect_grace_compiling: Duration,
    /// How long a new connection has for its `hello`.
    pub hello: Duration,
    /// How long it then has for its `auth`.
    pub auth: Duration,
    /// How long a connected editor may be silent.
    pub silence: Duration,
    /// How often an editor is asked to say its state.
    pub status_interval: Duration,
    /// How long a call may stand in the queue [STATE-5].
    pub queue_timeout: Duration,
    /// How long an ended task stays readable [TIME-5].
    pub retention: Duration,
    /// How many calls may stand in the queue of an editor [QUEUE-1].
    pub queue_limit: u32,
    /// How long a tool that runs at once may run unless it has a limit of its own.
    pub sync_timeout: Duration,
    /// The longest run of such a tool.
    pub max_sync_timeout: Duration,
    /// How long a job may run unless it has a limit of its own.
    pub job_timeout: Duration,
    /// The longest run of a job.
    pub max_job_timeout: Duration,
    /// How much later than its limit the server itself ends a call: the editor, which has the limit too,
    /// has until then to say what it stopped.
    pub run_margin: Duration,
    /// The most bytes of one message.
    pub max_message: usize,
    /// The most bytes of a message that comes in chunks.
    pub max_chunked: usize,
    /// How many editors are known at the most.
    pub max_editors: usize,
}

impl Settings {
    /// Tells whether an editor can find the server at all.
    #[must_use]
    pub const fn can_be_found(&self) -> bool {
        self.project.is_some() || self.takes_coplay
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            project: None,
            choices: None,
            takes_coplay: false,
            enable_execute_code: false,
            wait: Duration::from_secs(1),
            accept: Duration::from_secs(5),
            ready: Duration::from_secs(45),
            ready_compiling: Duration::from_secs(90),
            reconnect_grace: Duration::from_secs(45),
            reconnect_grace_compiling: Duration::from_secs(90),
            hello: Duration::from_secs(5),
            auth: Duration::from_secs(2),
            silence: Duration::from_secs(15),
            status_interval: Duration::from_secs(5),
            queue_timeout: Duration::from_secs(600),
            retention: Duration::from_secs(24 * 3600),
            queue_limit: 32,
            sync_timeout: Duration::from_secs(30),
            max_sync_timeout: Duration::from_secs(60),
            job_timeout: Duration::from_secs(300),
            max_job_timeout: Duration::from_secs(1800),
            run_margin: Duration::from_secs(2),
            max_message: 1024 * 1024,
            max_chunked: 64 * 1024 * 1024,
            max_editors: 64,
        }
    }
}
