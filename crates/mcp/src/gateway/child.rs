//! A program as the other server: MCP on its standard streams, the rest on its standard error.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
#[cfg(unix)]
use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::process::{Child, ChildStderr};
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use raincheck_core::log::Stream;
use raincheck_core::text;

use super::calls::Calls;
use super::connect::{Connect, Why, Wires};
use crate::transport::stdio::{Lines, Read};

/// How long the program has to end by itself once its input is closed, and again once it was asked to.
const GRACE: Duration = Duration::from_millis(300);

/// The longest line of standard error that is taken whole.
const MAX_LINE: usize = 64 << 10;

/// How many of its last lines are shown when it does not start.
const N_LAST: usize = 8;

/// How long the last lines of standard error are waited for.
const LAST_LINES: Duration = Duration::from_millis(150);

/// What the names of variables begin with that configure this process.
const OURS: &str = "RAINCHECK_";

/// A program, its arguments, and where it runs. It gets the environment of this process, as if it were started
/// by the client itself, but for what is ours: variables whose names begin with `RAINCHECK_`, and those that
/// are [named](Self::without).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The folder that it runs in; that of this process where none is named.
    pub folder: Option<PathBuf>,
    /// Variables of the environment that it does not get.
    pub without: Vec<OsString>,
}

impl Command {
    /// Names a program.
    #[must_use]
    pub fn new(program: impl Into<OsString>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }

    /// Withholds a variable of the environment, such as one that holds a secret of ours.
    #[must_use]
    pub fn without(mut self, variable: impl Into<OsString>) -> Self {
        self.without.push(variable.into());
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }
}

#[async_trait]
impl Connect for Command {
    fn name(&self) -> String {
        let program = PathBuf::from(&self.program);
        let name = program.file_name().unwrap_or(&self.program).to_string_lossy().into_owned();
        text::escape(text::clip(&name, 100)).into_owned()
    }

    async fn connect(&self, calls: &Arc<Calls>) -> Result<Wires, Why> {
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let names = std::env::vars_os().map(|(name, _)| name);
        for name in withheld(names, &self.without) {
            command.env_remove(name);
        }
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        // What it starts is ended with it.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| Why::new(format!("`{}` cannot be started: {error}", self.name())))?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(Why::new("its standard streams cannot be used"));
        };
        let end = CancellationToken::new();
        let beside = Box::pin(attend(child, stderr, end.clone(), Arc::clone(calls)));
        Ok(Wires { reader: Box::new(stdout), writer: Box::new(stdin), beside, end })
    }
}

/// Returns the variables that a program does not get.
fn withheld(names: impl Iterator<Item = OsString>, named: &[OsString]) -> Vec<OsString> {
    let is_ours = |name: &OsString| name.as_encoded_bytes().starts_with(OURS.as_bytes());
    names.filter(is_ours).chain(named.iter().cloned()).collect()
}

/// Reads what the program says on standard error until it ends, and ends it when told to.
async fn attend(
    mut child: Child,
    stderr: ChildStderr,
    end: CancellationToken,
    calls: Arc<Calls>,
) -> Why {
    let group = Group::of(&child);
    let last = Last::default();
    let mut heard = std::pin::pin!(hear(stderr, &calls, &last));
    let mut is_heard = false;
    loop {
        tokio::select! {
            () = exited(&mut child, &group) => break,
            () = &mut heard, if !is_heard => is_heard = true,
            () = end.cancelled() => break stop(&mut child, &group).await,
        }
    }
    // What it started and left behind goes with it. Until it is waited for, the group's number is nobody else's.
    group.kill();
    let _ = child.start_kill();
    let status = child.wait().await.ok();
    if !is_heard {
        // What it said last is on its way.
        let _ = timeout(LAST_LINES, heard).await;
    }
    Why { words: ended(status), said: last.text() }
}

/// Tells the program to end: by its input, which is closed already, then by a signal.
async fn stop(child: &mut Child, group: &Group) {
    if timeout(GRACE, exited(child, group)).await.is_err() {
        group.terminate();
        let _ = timeout(GRACE, exited(child, group)).await;
    }
}

/// Waits until the program has ended. It is left to be waited for, where the system can do that.
///
/// # Cancel safety
/// Safe: nothing is lost.
async fn exited(child: &mut Child, group: &Group) {
    #[cfg(unix)]
    if let Some(id) = group.id
        && let Ok(mut children) = signal(SignalKind::child())
    {
        let events = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        // A signal that comes after this look is heard by the next one.
        while let Ok(None) = waitid(WaitId::Pid(id), events) {
            if children.recv().await.is_none() {
                break;
            }
        }
        return;
    }
    #[cfg(not(unix))]
    let _ = group;
    let _ = child.wait().await;
}

fn ended(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) => match status.code() {
            Some(code) => format!("it ended with exit code {code}"),
            None => "it was ended by a signal".to_owned(),
        },
        None => "it ended".to_owned(),
    }
}

async fn hear(stderr: ChildStderr, calls: &Calls, last: &Last) {
    let mut lines = Lines::new(stderr, MAX_LINE);
    loop {
        match lines.next().await {
            Ok(Read::Line(line)) => {
                calls.line(Stream::Stderr, &line).await;
                last.push(&line);
            }
            Ok(Read::TooLong) => {}
            Ok(Read::End) | Err(_) => return,
        }
    }
}

/// The last lines that were said.
#[derive(Debug, Default)]
struct Last(Mutex<VecDeque<String>>);

impl Last {
    fn push(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == N_LAST {
            lines.pop_front();
        }
        lines.push_back(text::clip(&line, 500).to_owned());
    }

    fn text(&self) -> String {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.make_contiguous().join("\n")
    }
}

/// The processes that the program and what it started belong to.
struct Group {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { id: id.and_then(rustix::process::Pid::from_raw) }
    }

    fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(id) = self.id {
            // Nobody may be left in it.
            let _ = rustix::process::kill_process_group(id, signal);
        }
    }
}

#[cfg(not(unix))]
impl Group {
    fn of(_: &Child) -> Self {
        Self {}
    }

    fn terminate(&self) {}

    fn kill(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[tokio::test]
    async fn a_program_that_ended_keeps_its_group_until_that_is_killed() {
        // [SEC-5]
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", "exit 3"]).process_group(0).kill_on_drop(true);
        let mut child = command.spawn().expect("a shell");
        let group = Group::of(&child);
        exited(&mut child, &group).await;
        let id = group.id.expect("a number");
        assert!(rustix::process::test_kill_process_group(id).is_ok(), "the number is its own");
        exited(&mut child, &group).await;
        group.kill();
        let status = child.wait().await.expect("it is still to be waited for");
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn what_configures_the_gateway_is_withheld() {
        // [GATE-14] [SEC-8]
        let names =
            ["PATH", "RAINCHECK_HTTP_TOKEN", "RAINCHECK_STORE", "CI_TOKEN", "MY_RAINCHECK_X"];
        let command = Command::new("x").without("CI_TOKEN");
        let withheld = withheld(names.iter().map(OsString::from), &command.without);
        assert_eq!(withheld, ["RAINCHECK_HTTP_TOKEN", "RAINCHECK_STORE", "CI_TOKEN"]);
    }
}
