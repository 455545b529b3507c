//! A process of its own for each running program, so that the program outlives its server.
//!
//! The server starts its own binary again as a [fork server](forks); a supervisor is a copy of that,
//! which is handed the order. The supervisor runs the program, writes the task's log, and holds what
//! the program says until a server asks. When the server dies it goes on; the next server finds it by
//! its own folder, beside that of the attempt, and the lock in it, and no record of the task tells of it. At the
//! program's end it writes down how that was, tells its server, and ends itself.
//!
//! ```text
//! server ── socket ── fork server ── (copies) ── supervisor ── pipes ── program
//!    └────────────── socket ─────────────────────────┘
//!                                <root>/<task id>/log, a<attempt>.supervisor/{lock,socket,begun,end.json}
//! ```
//!
//! **Invariant**: a supervisor lives exactly as long as its lock is held, and when it ended by itself
//! there is an `end.json` or a server has committed what would be in it. The server takes the lock and
//! the supervisor is handed it, so that no instant is without it.
//! **Invariant**: `begun` is there before the program is, so that a folder without it and without a
//! lock that is held proves that the program never ran. Whoever makes it first decides: a server that
//! gives up a supervisor of which it heard nothing makes it itself, and the program never runs.
//! **Invariant**: all children of a supervisor belong to its program, and every orphan below it
//! becomes its child.

#[cfg(unix)]
mod ahead;
#[cfg(unix)]
mod forks;
#[cfg(unix)]
mod link;
#[cfg(unix)]
mod place;
#[cfg(unix)]
mod ready;
#[cfg(unix)]
mod reason;
#[cfg(unix)]
mod record;
#[cfg(unix)]
mod role;
#[cfg(unix)]
mod spool;
#[cfg(unix)]
mod supervisors;
#[cfg(unix)]
mod wire;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

#[cfg(unix)]
pub(crate) use ahead::{clear_unused, folder_ahead};
#[cfg(unix)]
pub(crate) use forks::{ForkServer, Generation, Need};
#[cfg(unix)]
pub(crate) use place::{Attached, Place};
#[cfg(unix)]
pub(crate) use ready::Ready;
#[cfg(unix)]
pub(crate) use reason::{Halt, Reason};
#[cfg(unix)]
pub(crate) use record::{End, Record};
#[cfg(unix)]
pub(crate) use supervisors::{Supervisors, discard};
#[cfg(unix)]
pub(crate) use wire::{Said, Talk, Told, Work};

/// How a supervisor is started: this program again, with arguments that lead its `main` to
/// [`supervisor_main`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supervisor {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
}

impl Supervisor {
    /// Makes a supervisor of the running program.
    ///
    /// # Errors
    /// When the system does not tell which program that is.
    pub fn of_this_program(
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> io::Result<Self> {
        // By this name the same program is found also when its file was replaced meanwhile.
        let program = if cfg!(target_os = "linux") {
            OsString::from("/proc/self/exe")
        } else {
            std::env::current_exe()?.into()
        };
        Ok(Self { program, arguments: arguments.into_iter().map(Into::into).collect() })
    }
}

/// Is the process that supervisors are copies of, until its server and they are gone. To be called
/// before `main` does anything else, and before there is a second thread.
///
/// Whoever calls it by hand is sent away with code 2.
#[must_use]
pub fn supervisor_main() -> ExitCode {
    #[cfg(unix)]
    {
        forks::run()
    }
    #[cfg(not(unix))]
    {
        ExitCode::from(2)
    }
}
