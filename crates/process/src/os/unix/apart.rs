//! Starting a process that is to outlive this one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tokio::process::Child;

use super::{raw, strays};

/// The name under which such a process is listed.
const NAME: &str = "raincheck-supervisor";

/// How many connections may wait to be taken.
const BACKLOG: i32 = 128;

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
        .arg0(NAME)
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
pub(crate) fn end_stranger(pid: i32, folder: &Path) -> io::Result<()> {
    use rustix::process::{Pid, Signal, getsid};
    let number = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    let is_it = || {
        getsid(Some(number)) == Ok(number) && (!cfg!(target_os = "linux") || works_in(pid, folder))
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

/// Tells whether a process works in a folder, by whatever path that is reached, or in one that was
/// removed from this path.
fn works_in(pid: i32, folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let works_in = format!("/proc/{pid}/cwd");
    match (std::fs::metadata(&works_in), std::fs::metadata(folder)) {
        (Ok(own), Ok(asked)) => (own.dev(), own.ino()) == (asked.dev(), asked.ino()),
        (Ok(_), Err(_)) => worked_in(pid, folder),
        (Err(_), _) => false,
    }
}

/// Tells whether the folder in which a process works was removed, and had this name in a folder of
/// that name: the one of a task, which no other folder has.
fn worked_in(pid: i32, folder: &Path) -> bool {
    let (Some(task), Some(name)) = (folder.parent().and_then(Path::file_name), folder.file_name())
    else {
        return false;
    };
    let mut removed = name.to_owned();
    removed.push(" (deleted)");
    std::fs::read_link(format!("/proc/{pid}/cwd"))
        .is_ok_and(|it| it.ends_with(Path::new(task).join(removed)))
}

/// Returns the standard output of the process that was [started apart](spawn_apart), or is a copy of
/// one that was, and works in a folder which was removed; `None` when there is none, or when the system
/// does not tell.
pub(crate) fn output_of_lost(folder: &Path) -> Option<File> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut numbers = all.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    let is_it = |pid: &i32| {
        let line = || std::fs::read(format!("/proc/{pid}/cmdline"));
        worked_in(*pid, folder) && line().is_ok_and(|line| line.starts_with(NAME.as_bytes()))
    };
    let output = File::open(format!("/proc/{}/fd/1", numbers.find(is_it)?)).ok()?;
    output.metadata().is_ok_and(|facts| facts.is_file()).then_some(output)
}

/// Lets whoever connects learn that this process listens, and not the one that made the socket.
///
/// # Errors
/// When the socket cannot listen.
pub(crate) fn listen_as_this_process(socket: &UnixListener) -> io::Result<()> {
    // The system notes who listens whenever that is asked for.
    Ok(rustix::net::listen(socket, BACKLOG)?)
}

/// Returns the number of the process that listens where this connection was made.
pub(crate) fn listener_of(stream: &UnixStream) -> Option<i32> {
    #[cfg(target_os = "linux")]
    {
        let facts = rustix::net::sockopt::socket_peercred(stream).ok()?;
        Some(facts.pid.as_raw_nonzero().get())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = stream;
        None
    }
}
