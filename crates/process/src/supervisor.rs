//! A process of its own for each running program, so that the program outlives its server.
//!
//! The server starts its own binary again in the role of a supervisor and hands it the order. The
//! supervisor runs the program, writes the task's log, and keeps what the program says until a server
//! asks. When the server dies it goes on; the next server finds it by the folder of the attempt and
//! the lock in it, and no row tells of it. At the program's end it writes down how that was and ends
//! itself, which is the event that the server waits for.
//!
//! ```text
//! server ── socket ── supervisor ── pipes ── program
//!                         └ <root>/<task id>/log, a<attempt>/{lock,socket,begun,end.json}
//! ```
//!
//! **Invariant**: a supervisor lives exactly as long as its lock is held, and there is an `end.json`
//! whenever it ended by itself. The server takes the lock and the supervisor inherits it, so that no
//! instant is without it.
//! **Invariant**: `begun` is there before the program is, so that a folder without it and without a
//! lock that is held proves that the program never ran.

#[cfg(unix)]
mod link;
#[cfg(unix)]
mod place;
#[cfg(unix)]
mod record;
#[cfg(unix)]
mod role;
#[cfg(unix)]
mod wire;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

#[cfg(unix)]
pub(crate) use place::{Attached, Place};
#[cfg(unix)]
pub(crate) use record::{End, Record};
#[cfg(unix)]
pub(crate) use wire::{Halt, Reason, Said, Talk, Told, Work};

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

/// Is a supervisor until its program has ended. To be called before `main` does anything else.
///
/// Whoever calls it by hand is sent away with code 2.
#[must_use]
pub fn supervisor_main() -> ExitCode {
    #[cfg(unix)]
    {
        role::run()
    }
    #[cfg(not(unix))]
    {
        ExitCode::from(2)
    }
}
