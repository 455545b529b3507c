//! Starting a process that is to outlive this one.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use tokio::process::Child;

use super::{raw, strays};

/// Starts a program as the leader of a session of its own, in the root folder, with nothing but one
/// descriptor, which is its standard input.
///
/// Dropping the child leaves it running; it is waited for all the same.
pub(crate) fn spawn_apart(
    program: &OsStr,
    arguments: &[OsString],
    stdin: OwnedFd,
) -> io::Result<Child> {
    let mut command = Command::new(program);
    command
        .arg0("raincheck-supervisor")
        .args(arguments)
        .current_dir("/")
        .env_clear()
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    raw::leave_session(&mut command, strays());
    tokio::process::Command::from(command).spawn()
}

/// Kills a process that works in a folder and leads a session of its own; nothing else that may have
/// its number by now.
///
/// # Errors
/// When there is no such process, or it may not be killed.
pub(crate) fn end_stranger(pid: i32, folder: &std::path::Path) -> io::Result<()> {
    use rustix::process::{Pid, Signal, getsid};
    let number = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    let is_it = || {
        let works_in = std::fs::read_link(format!("/proc/{pid}/cwd"));
        getsid(Some(number)) == Ok(number)
            && (!cfg!(target_os = "linux") || works_in.is_ok_and(|it| it == folder))
    };
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        match pidfd_open(number, PidfdFlags::empty()) {
            Err(rustix::io::Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
            // What is held cannot change its number: looked at after it was taken, it is the one.
            Ok(held) if is_it() => return Ok(pidfd_send_signal(held, Signal::KILL)?),
            Ok(_) => return Err(io::ErrorKind::NotFound.into()),
        }
    }
    if is_it() {
        Ok(rustix::process::kill_process(number, Signal::KILL)?)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}
