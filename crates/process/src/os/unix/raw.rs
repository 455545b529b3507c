//! The few calls that have no safe wrapper.
#![expect(
    unsafe_code,
    reason = "fork, its hooks, signal masks, descriptor flags by number and wait4 have no safe form"
)]

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal};

use crate::os::{Exit, Usage};

/// Tells whether a descriptor would survive the start of another program.
pub(super) fn is_inherited(fd: i32) -> bool {
    // SAFETY: F_GETFD reads a flag; a number that is not open gives an error.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

/// Lets the child keep `control` and no other descriptor beyond standard error, ties its life to this
/// process, and gives it the signals as the system gives them to a first process.
pub(super) fn before_exec(command: &mut Command, control: OwnedFd, strays: Vec<i32>) {
    let parent = rustix::process::getpid();
    let hook = move || {
        close_at_exec(&strays);
        fcntl_setfd(&control, FdFlags::empty())?;
        reset_signals();
        die_with(parent)
    };
    // SAFETY: between fork and exec the hook makes system calls only; it neither allocates nor locks.
    unsafe { command.pre_exec(hook) };
}

/// Lets the child keep no descriptor beyond standard error, and gives it a session of its own and the
/// signals as the system gives them to a first process.
pub(super) fn leave_session(command: &mut Command, strays: Vec<i32>) {
    let hook = move || {
        close_at_exec(&strays);
        reset_signals();
        rustix::process::setsid()?;
        Ok(())
    };
    // SAFETY: between fork and exec the hook makes system calls only; it neither allocates nor locks.
    unsafe { command.pre_exec(hook) };
}

/// Whether [`close_at_exec`] needs no list.
#[cfg(target_os = "linux")]
pub(super) fn closes_by_range() -> bool {
    // SAFETY: a range without any descriptor in it changes nothing.
    unsafe {
        libc::syscall(libc::SYS_close_range, u32::MAX, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) const fn closes_by_range() -> bool {
    false
}

/// Marks every descriptor beyond standard error to be closed at the start of another program.
#[cfg(target_os = "linux")]
pub(super) fn close_all_at_exec() {
    // SAFETY: it sets a flag of the calling process' own descriptors.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Marks every descriptor beyond standard error, or those that are named, to be closed at the start
/// of another program.
fn close_at_exec(strays: &[i32]) {
    #[cfg(target_os = "linux")]
    if strays.is_empty() {
        close_all_at_exec();
        return;
    }
    for fd in strays {
        // SAFETY: F_SETFD sets a flag; a number that is not open gives an error.
        unsafe { libc::fcntl(*fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Unblocks every signal and lets each do what it does by default: whoever started this process may
/// have blocked or ignored some, and both are inherited.
pub(super) fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: no handler of this process is named; KILL, STOP and those of the C library are refused,
        // which changes nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    unblock_signals();
}

/// As [`reset_signals`], but for a process that is this program: a pipe whose reader is gone is an
/// error to it, not its end.
pub(super) fn reset_own_signals() {
    reset_signals();
    // SAFETY: no handler of this process is named.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Blocks every signal, and returns what was blocked before.
#[cfg(target_os = "linux")]
pub(super) fn block_signals() -> libc::sigset_t {
    // SAFETY: the sets are made before they are read, and live until the call returns.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

/// Blocks what was blocked before.
#[cfg(target_os = "linux")]
pub(super) fn set_signals(before: &libc::sigset_t) {
    // SAFETY: the set lives until the call returns.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

/// Unblocks every signal.
fn unblock_signals() {
    // SAFETY: the set is made before it is read, and lives until the call returns.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Makes a copy of the calling process and returns its number, or `None` in the copy.
///
/// The process may have one thread only: a copy of another's lock stays locked.
pub(super) fn fork() -> io::Result<Option<i32>> {
    // SAFETY: there is no other thread whose state the copy could miss.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}

/// Ends the calling process at once, without the destructors of the process it is a copy of.
pub(crate) fn exit_now(code: u8) -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(code.into()) }
}

/// Where the handler of [`heed_children`] writes; below 0 there is none.
static ENDS: AtomicI32 = AtomicI32::new(-1);

/// Lets the end of a child make the descriptor readable that it returns with the one that is written.
pub(super) fn heed_children() -> io::Result<(OwnedFd, OwnedFd)> {
    extern "C" fn note(_: i32) {
        // SAFETY: write is safe in a handler; it may fail when the pipe is full, and is heard then.
        unsafe { libc::write(ENDS.load(Ordering::Relaxed), [0_u8].as_ptr().cast(), 1) };
    }
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    ENDS.store(writer.as_raw_fd(), Ordering::Relaxed);
    let handler: extern "C" fn(i32) = note;
    // SAFETY: the handler makes one system call.
    unsafe { libc::signal(libc::SIGCHLD, handler as libc::sighandler_t) };
    Ok((reader, writer))
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
    loop {
        match wait(pid.as_raw_nonzero().get(), 0) {
            Ok(Some((_, exit, usage))) => return Ok((exit, usage)),
            Ok(None) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Takes the end of any child that has ended; `None` when children are left and none has.
///
/// # Errors
/// When there is no child.
pub(super) fn reap_any() -> io::Result<Option<(i32, Exit, Usage)>> {
    wait(-1, libc::WNOHANG)
}

fn wait(pid: i32, how: i32) -> io::Result<Option<(i32, Exit, Usage)>> {
    let mut status = 0;
    // SAFETY: all zeroes is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let got = loop {
        // SAFETY: both pointers are to live locals.
        let got = unsafe { libc::wait4(pid, &raw mut status, how, &raw mut usage) };
        if got >= 0 {
            break got;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    };
    if got == 0 {
        return Ok(None);
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
    Ok(Some((got, exit, Usage { cpu: Some(cpu), peak_memory })))
}

fn span(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}
