//! Processes that are this binary again, in another role.

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;
#[cfg(any(feature = "cache", feature = "process"))]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "process")]
use raincheck_process::{Supervisor, supervisor_main};

/// The first argument that makes a process a child.
const MARK: &str = "raincheck-child";

/// Something that this binary does in a process of its own.
///
/// ```
/// use std::process::ExitCode;
///
/// use raincheck::Role;
///
/// const CLEANER: Role = Role { name: "cleaner", run: || ExitCode::SUCCESS };
///
/// fn main() -> ExitCode {
///     if let Some(code) = raincheck::child_main(&[CLEANER]) {
///         return code;
///     }
///     // The same program again, as the cleaner:
///     // Command::new(std::env::current_exe()?).args(CLEANER.arguments())
///     ExitCode::SUCCESS
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Role {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does; its end is the end of the process.
    pub run: fn() -> ExitCode,
}

impl Role {
    /// Returns the arguments that start this binary in the role.
    #[must_use]
    pub const fn arguments(&self) -> [&'static str; 2] {
        [MARK, self.name]
    }
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Role").field(&self.name).finish()
    }
}

/// Runs the role that the command line names, if it names one. To be called first in `main`:
///
/// ```
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(code) = raincheck::child_main(&[]) {
///         return code;
///     }
///     ExitCode::SUCCESS
/// }
/// ```
///
/// Beside the roles of the caller it knows those of this library.
#[must_use]
pub fn child_main(roles: &[Role]) -> Option<ExitCode> {
    let code = run(roles, std::env::args_os().skip(1));
    #[cfg(any(feature = "cache", feature = "process"))]
    IS_ENTERED.store(code.is_none(), Ordering::Release);
    code
}

/// Whether this program can be started again as a child.
#[cfg(any(feature = "cache", feature = "process"))]
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// Holds a program that is a tool, so that it outlives the server.
#[cfg(feature = "process")]
const SUPERVISOR: Role = Role { name: "supervisor", run: supervisor_main };

/// Runs filters over cached responses, so that a filter without end is ended with its process.
#[cfg(feature = "cache")]
const FILTER: Role = Role { name: "filter", run: raincheck_cache::run_child };

/// The roles of this library.
const OWN: &[Role] = &[
    #[cfg(feature = "cache")]
    FILTER,
    #[cfg(feature = "process")]
    SUPERVISOR,
];

/// Returns how the supervisors of command tools are started, for
/// [`Commands::supervised_by`](raincheck_process::Commands::supervised_by); `None` when [`child_main`]
/// was not called, so that this program cannot be one.
#[cfg(feature = "process")]
#[must_use]
pub fn supervisor() -> Option<Supervisor> {
    if !IS_ENTERED.load(Ordering::Acquire) {
        return None;
    }
    Supervisor::of_this_program(SUPERVISOR.arguments()).ok()
}

/// Returns how the child that runs filters is started; `None` when [`child_main`] was not called, so
/// that this program cannot be one.
#[cfg(feature = "cache")]
pub(crate) fn filter_child() -> Option<raincheck_cache::ChildProgram> {
    if !IS_ENTERED.load(Ordering::Acquire) {
        return None;
    }
    raincheck_cache::ChildProgram::of_this_program(FILTER.arguments()).ok()
}

fn run(roles: &[Role], mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != MARK {
        return None;
    }
    let name = arguments.next().unwrap_or_default();
    match roles.iter().chain(OWN).find(|role| name == role.name) {
        Some(role) => Some((role.run)()),
        None => Some(ExitCode::from(2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLES: &[Role] = &[Role { name: "dance", run: || ExitCode::from(7) }];

    fn code(arguments: &[&str]) -> Option<ExitCode> {
        run(ROLES, arguments.iter().map(OsString::from))
    }

    #[test]
    fn only_a_marked_process_is_a_child() {
        assert_eq!(code(&[]), None);
        assert_eq!(code(&["serve"]), None);
        assert_eq!(code(&ROLES[0].arguments()), Some(ExitCode::from(7)));
        assert_eq!(code(&[MARK, "sing"]), Some(ExitCode::from(2)));
    }
}
