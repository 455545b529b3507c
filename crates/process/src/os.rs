//! What only the operating system can do: start a program with its pipes, learn of its end, and end
//! everything that it started.
//!
//! **Boundary**: the rest of the crate names no system call. Another platform is another module
//! with the same five names.

#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod unsupported;

use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::supervise::Limits;

#[cfg(unix)]
pub(crate) use unix::{Process, Scale, end_marked, spawn, spawn_apart};
#[cfg(not(unix))]
pub(crate) use unsupported::{Process, Scale, spawn};

/// The variable that tells a program the number of its control descriptor.
pub(crate) const CONTROL_FD: &str = "RAINCHECK_CONTROL_FD";

/// What to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The file to run.
    pub(crate) program: OsString,
    /// Its arguments, without its own name.
    pub(crate) arguments: Vec<String>,
    /// The folder it starts in.
    pub(crate) folder: OsString,
    /// Its whole environment, but for [`CONTROL_FD`].
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The entry of `environment` that tells this tree from every other.
    pub(crate) mark: OsString,
    /// What it may use.
    pub(crate) limits: Limits,
}

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

/// Returns the name of a signal, such as `SIGKILL`.
pub(crate) fn signal_name(number: i32) -> String {
    #[cfg(unix)]
    if let Some(name) = unix::signal_name(number) {
        return name.to_owned();
    }
    format!("signal {number}")
}
