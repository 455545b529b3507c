//! Unix: process groups, signals, and on Linux the tree as `/proc` tells it.

mod apart;
mod process;
mod raw;
mod signals;
mod spawner;
mod tree;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::{CONTROL_FD, Order, Pipes};

pub(crate) use apart::spawn_apart;
pub(crate) use process::{Process, Scale, end_marked};
pub(crate) use signals::signal_name;

/// Starts a program as the leader of its own process group.
///
/// It inherits standard input, output and error as pipes and the control descriptor, nothing else.
/// On Linux the kernel kills it when this process dies.
pub(crate) async fn spawn(order: Order) -> io::Result<(Process, Pipes)> {
    // Before the start, so that no end can slip by unseen.
    let changes = signal(SignalKind::child())?;
    let (reply, answer) = oneshot::channel();
    let mark = order.mark.clone();
    spawner::run(move || {
        if let Err(Ok(unwanted)) = reply.send(start(order)) {
            unwanted.discard();
        }
    })?;
    let started = answer.await.map_err(|_| io::Error::other("the spawner thread is gone"))??;
    let Started { pid, child, control } = started;
    let process = Process::new(pid, changes, mark);
    Ok((process, pipes(child, control)?))
}

/// A program that runs, before its pipes are known to the reactor.
struct Started {
    pid: Pid,
    child: Child,
    control: OwnedFd,
}

impl Started {
    /// Ends a program that nobody waits for any more.
    fn discard(mut self) {
        let _ = rustix::process::kill_process_group(self.pid, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Runs on the spawner thread.
fn start(order: Order) -> io::Result<Started> {
    let (reader, writer) = io::pipe()?;
    let writer = OwnedFd::from(writer);
    let mut command = Command::new(&order.program);
    command
        .args(&order.arguments)
        .current_dir(&order.folder)
        .env_clear()
        .envs(order.environment)
        .env(CONTROL_FD, writer.as_raw_fd().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let strays = strays();
    raw::before_exec(&mut command, writer, strays);
    let mut child = command.spawn()?;
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(io::Error::other("the system gave no process id"));
    };
    Ok(Started { pid, child, control: OwnedFd::from(reader) })
}

/// Returns the descriptors beyond standard error that a program would inherit, such as ones this
/// process was itself started with.
fn strays() -> Vec<i32> {
    let Ok(open) = std::fs::read_dir("/dev/fd") else { return Vec::new() };
    open.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2 && raw::is_inherited(*fd))
        .collect()
}

fn pipes(child: Child, control: OwnedFd) -> io::Result<Pipes> {
    let missing = || io::Error::other("a pipe of the program is missing");
    let stdin = child.stdin.ok_or_else(missing)?;
    let stdout = child.stdout.ok_or_else(missing)?;
    let stderr = child.stderr.ok_or_else(missing)?;
    Ok(Pipes {
        stdin: Box::new(pipe::Sender::from_owned_fd(stdin.into())?),
        stdout: Box::new(pipe::Receiver::from_owned_fd(stdout.into())?),
        stderr: Box::new(pipe::Receiver::from_owned_fd(stderr.into())?),
        control: Box::new(pipe::Receiver::from_file(File::from(control))?),
    })
}
