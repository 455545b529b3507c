//! What only the operating system can do: start a program with its pipes, learn of its end, and end
//! everything that it started.
//!
//! **Boundary**: the rest of the crate names no system call. Another platform is another module
//! with the same names.

#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod unsupported;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

#[cfg(unix)]
pub(crate) use unix::{
    Copy, Nest, Process, Scale, Woken, end_marked, end_stranger, exit_now, is_for_now,
    keep_offspring, listen_as_this_process, listener_of, move_out, output_of_lost, place_fault,
    receive, send, settle_in, spawn, spawn_apart, warm_up,
};
#[cfg(not(unix))]
pub(crate) use unsupported::{Process, Scale, place_fault, spawn};

/// The variable that tells a program the number of its control descriptor.
pub(crate) const CONTROL_FD: &str = "RAINCHECK_CONTROL_FD";

/// The ends of a program's pipes that are on this side.
pub(crate) struct Pipes {
    /// What it reads.
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// What it says.
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// What it complains.
    pub(crate) stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// What it reports on the control channel.
    pub(crate) control: Box<dyn AsyncRead + Send + Unpin>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Exit {
    /// By itself, with a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// What a program and the children it waited for have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// Processor time.
    pub(crate) cpu: Option<Duration>,
    /// The largest resident memory of any one process, in bytes.
    pub(crate) peak_memory: Option<u64>,
}

/// A process of a program that could not be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Survivor {
    pub(crate) pid: i32,
    /// The number of its user, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<u32>,
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, user } = self;
        match user {
            Some(user) => write!(f, "process {pid} of user {user} could not be ended"),
            None => write!(f, "process {pid} could not be ended"),
        }
    }
}

/// What a program that ended by itself left running.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// How many processes were ended after it.
    pub(crate) n_ended: usize,
    /// What could not be ended.
    pub(crate) survivors: Vec<Survivor>,
}

/// Returns the name of a signal, such as `SIGKILL`.
pub(crate) fn signal_name(number: i32) -> String {
    #[cfg(unix)]
    if let Some(name) = unix::signal_name(number) {
        return name.to_owned();
    }
    format!("signal {number}")
}
