//! The few calls that have no safe wrapper.
#![expect(
    unsafe_code,
    reason = "fork hooks, descriptor flags by number and wait4 have no safe form"
)]

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal};

use crate::os::{Exit, Usage};

/// Tells whether a descriptor would survive the start of another program.
pub(super) fn is_inherited(fd: i32) -> bool {
    // SAFETY: F_GETFD reads a flag; a number that is not open gives an error.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

/// Lets the child keep `control` and none of `strays`, and ties its life to this process.
pub(super) fn before_exec(command: &mut Command, control: OwnedFd, strays: Vec<i32>) {
    let parent = rustix::process::getpid();
    let hook = move || {
        for fd in &strays {
            // SAFETY: F_SETFD sets a flag; a number that is not open gives an error.
            unsafe { libc::fcntl(*fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        fcntl_setfd(&control, FdFlags::empty())?;
        die_with(parent)
    };
    // SAFETY: between fork and exec the hook makes system calls only; it neither allocates nor locks.
    unsafe { command.pre_exec(hook) };
}

/// Lets the child keep none of `strays`, and gives it a session of its own.
pub(super) fn leave_session(command: &mut Command, strays: Vec<i32>) {
    let hook = move || {
        for fd in &strays {
            // SAFETY: F_SETFD sets a flag; a number that is not open gives an error.
            unsafe { libc::fcntl(*fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        rustix::process::setsid()?;
        Ok(())
    };
    // SAFETY: between fork and exec the hook makes system calls only; it neither allocates nor locks.
    unsafe { command.pre_exec(hook) };
}

/// Asks the kernel to kill the calling process when the thread that started it ends.
#[cfg(target_os = "linux")]
fn die_with(parent: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the line above.
    if rustix::process::getppid() == Some(parent) {
        Ok(())
    } else {
        Err(rustix::io::Errno::SRCH.into())
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with(_parent: Pid) -> io::Result<()> {
    Ok(())
}

/// Takes the end of a child that has ended, and what it used.
pub(super) fn reap(pid: Pid) -> io::Result<(Exit, Usage)> {
    let mut status = 0;
    // SAFETY: all zeroes is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live locals.
        let got =
            unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage) };
        if got >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let exit = if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    };
    let cpu = span(usage.ru_utime) + span(usage.ru_stime);
    // Linux counts in KiB, the BSDs' and macOS's count differs: macOS counts bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    let peak_memory = u64::try_from(usage.ru_maxrss).ok().map(|n| n.saturating_mul(unit));
    Ok((exit, Usage { cpu: Some(cpu), peak_memory }))
}

fn span(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}
