//! Unix: process groups, signals, and on Linux the tree as `/proc` tells it.

mod apart;
mod handover;
mod nest;
mod offspring;
mod process;
mod raw;
mod signals;
mod spawner;
#[cfg(target_os = "linux")]
mod table;
#[cfg(not(target_os = "linux"))]
mod table_elsewhere;
mod tree;
#[cfg(target_os = "linux")]
mod vfork;
#[cfg(target_os = "linux")]
mod warm;

#[cfg(target_os = "linux")]
use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::{CONTROL_FD, Pipes};
use crate::order::Order;

pub(crate) use apart::{
    end_stranger, listen_as_this_process, listener_of, output_of_lost, spawn_apart,
};
pub(crate) use handover::{receive, send};
pub(crate) use nest::{Copy, Nest, Woken, move_out, settle_in};
pub(crate) use offspring::keep_offspring;
pub(crate) use process::{Process, Scale, end_marked};
pub(crate) use raw::exit_now;
pub(crate) use signals::signal_name;
#[cfg(target_os = "linux")]
pub(crate) use warm::warm_up;

/// Has the memory of a new copy ready, where the system knows how.
#[cfg(not(target_os = "linux"))]
pub(crate) const fn warm_up() {}

/// Tells whether an error is of the moment: of what the machine is short of.
pub(crate) fn is_for_now(error: &io::Error) -> bool {
    let codes = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS, libc::EAGAIN, libc::EIO];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Says what this place lacks, so that a program which is started here could not be ended again.
#[must_use]
pub(crate) fn place_fault() -> Option<&'static str> {
    #[cfg(target_os = "linux")]
    {
        table::fault()
    }
    #[cfg(not(target_os = "linux"))]
    {
        table_elsewhere::fault()
    }
}

/// Starts a program as the leader of its own process group.
///
/// It inherits standard input, output and error as pipes and the control descriptor, nothing else.
/// On Linux the kernel kills it when this process dies.
pub(crate) async fn spawn(order: Order) -> io::Result<(Process, Pipes)> {
    // Before the start, so that no end can slip by unseen.
    let changes = signal(SignalKind::child())?;
    // Also before the start: once the program runs, nothing may fail that would say it does not.
    let (ends, pipes) = pipes()?;
    let (reply, answer) = oneshot::channel();
    let mark = order.mark.clone();
    // Whether nobody waits any more now or only after the answer was sent: it is dropped.
    let started = if offspring::is_kept() {
        // This process has one thread that lives as long as it does, and one program.
        start(&order, ends)?
    } else {
        spawner::run(move || drop(reply.send(start(&order, ends))))?;
        answer.await.map_err(|_| io::Error::other("the spawner thread is gone"))??
    };
    Ok((Process::new(started.keep(), changes, mark), pipes))
}

/// A program that runs. Dropping it ends the program.
struct Started {
    pid: Pid,
    is_kept: bool,
}

/// The ends of the pipes that the program gets.
struct Ends {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    control: OwnedFd,
}

impl Started {
    const fn new(pid: Pid) -> Self {
        Self { pid, is_kept: false }
    }

    fn keep(mut self) -> Pid {
        self.is_kept = true;
        self.pid
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = rustix::process::kill_process_group(self.pid, rustix::process::Signal::KILL);
            let _ = raw::reap(self.pid);
        }
    }
}

/// Starts a program on the calling thread, with whose end the kernel kills it.
fn start(order: &Order, ends: Ends) -> io::Result<Started> {
    #[cfg(target_os = "linux")]
    if raw::closes_by_range() {
        return start_at_once(order, &ends);
    }
    let Ends { stdin, stdout, stderr, control } = ends;
    let mut command = Command::new(&order.program);
    command
        .args(&order.arguments)
        .current_dir(&order.folder)
        .env_clear()
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .env(CONTROL_FD, control.as_raw_fd().to_string())
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr))
        .process_group(0);
    raw::before_exec(&mut command, control, strays());
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.map(Started::new).ok_or_else(|| io::Error::other("the system gave no process id"))
}

/// Starts a program without making a copy of this process first.
#[cfg(target_os = "linux")]
fn start_at_once(order: &Order, ends: &Ends) -> io::Result<Started> {
    let text = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| io::ErrorKind::InvalidInput.into());
    let own_name = order.program.as_bytes().to_vec();
    let rest = order.arguments.iter().map(|argument| argument.clone().into_bytes());
    let arguments = std::iter::once(own_name).chain(rest).map(text);
    let control_fd = (CONTROL_FD.into(), ends.control.as_raw_fd().to_string().into());
    let environment = order.environment.iter().cloned().chain([control_fd]);
    let entry = |(name, value): (OsString, OsString)| {
        text([name.as_bytes(), b"=", value.as_bytes()].concat())
    };
    let pid = vfork::spawn(&vfork::Plan {
        program: &order.program,
        arguments: arguments.collect::<io::Result<_>>()?,
        environment: environment.map(entry).collect::<io::Result<_>>()?,
        folder: &order.folder,
        streams: [&ends.stdin, &ends.stdout, &ends.stderr],
        control: &ends.control,
    })?;
    let pid = Pid::from_raw(pid);
    pid.map(Started::new).ok_or_else(|| io::Error::other("the system gave no process id"))
}

/// Returns the descriptors beyond standard error that a program would inherit, such as ones this
/// process was itself started with; none where they can be left out without being known.
fn strays() -> Vec<i32> {
    if raw::closes_by_range() {
        return Vec::new();
    }
    let Ok(open) = std::fs::read_dir("/dev/fd") else { return Vec::new() };
    open.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2 && raw::is_inherited(*fd))
        .collect()
}

/// Makes the pipes of a program: its ends, and those on this side, known to the reactor already.
fn pipes() -> io::Result<(Ends, Pipes)> {
    let pipe = || io::pipe().map(|(from, to)| (OwnedFd::from(from), OwnedFd::from(to)));
    let (stdin, input) = pipe()?;
    let ((output, stdout), (complaints, stderr), (reports, control)) = (pipe()?, pipe()?, pipe()?);
    let near = Pipes {
        stdin: Box::new(pipe::Sender::from_owned_fd(input)?),
        stdout: Box::new(pipe::Receiver::from_owned_fd(output)?),
        stderr: Box::new(pipe::Receiver::from_owned_fd(complaints)?),
        control: Box::new(pipe::Receiver::from_owned_fd(reports)?),
    };
    Ok((Ends { stdin, stdout, stderr, control }, near))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::future::Future as _;
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn a_program_whose_start_nobody_waits_for_any_more_does_not_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let order = Order {
            program: "/bin/sleep".into(),
            arguments: vec!["600".into()],
            folder: folder.path().into(),
            environment: Vec::new(),
            mark: "A_TEST=of-a-start".into(),
            limits: Default::default(),
        };
        // The thread does one job after the other: the start waits for the first of these, and is
        // done when the last one is.
        let (go, may_go) = mpsc::channel::<()>();
        let (done, is_done) = mpsc::channel();
        spawner::run(move || while may_go.recv().is_ok() {}).expect("a thread");
        let mut starting = Box::pin(spawn(order));
        assert!(starting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        spawner::run(move || done.send(()).expect("waited for")).expect("a thread");
        drop(go);
        is_done.recv().expect("done");
        drop(starting);
        assert_eq!(sleepers(folder.path()), Vec::<String>::new());
    }

    /// Lists the processes whose working folder is this one.
    fn sleepers(folder: &std::path::Path) -> Vec<String> {
        let all = std::fs::read_dir("/proc").expect("a process list").flatten();
        all.filter(|it| std::fs::read_link(it.path().join("cwd")).is_ok_and(|cwd| cwd == folder))
            .map(|it| it.file_name().to_string_lossy().into_owned())
            .collect()
    }
}
