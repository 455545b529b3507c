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
    // Whether nobody waits any more now or only after the answer was sent: it is dropped.
    spawner::run(move || drop(reply.send(start(order))))?;
    let started = answer.await.map_err(|_| io::Error::other("the spawner thread is gone"))??;
    let (pid, child, control) = started.keep()?;
    let process = Process::new(pid, changes, mark);
    Ok((process, pipes(child, control)?))
}

/// A program that runs, before its pipes are known to the reactor. Dropping it ends the program.
struct Started {
    pid: Pid,
    parts: Option<(Child, OwnedFd)>,
}

impl Started {
    fn keep(mut self) -> io::Result<(Pid, Child, OwnedFd)> {
        let (child, control) = self.parts.take().ok_or(io::ErrorKind::NotFound)?;
        Ok((self.pid, child, control))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some((mut child, _)) = self.parts.take() {
            let _ = rustix::process::kill_process_group(self.pid, rustix::process::Signal::KILL);
            let _ = child.wait();
        }
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
    Ok(Started { pid, parts: Some((child, OwnedFd::from(reader))) })
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
