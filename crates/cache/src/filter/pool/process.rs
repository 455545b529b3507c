//! One filter process, from outside.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use super::{BodyKey, ChildProgram};
use crate::filter::Outputs;
use crate::filter::deadline::Deadline;
use crate::filter::failure::FilterFailure;
use crate::filter::limits::{LimitKind, Limits};
use crate::filter::wire::{Frame, GREETING, How, Request};
use crate::json::{Kind, View};

/// How much may stand before the greeting, in bytes.
const MAX_PREAMBLE: usize = 4096;

/// How much of what a dying process says is read, in bytes.
const LAST_WORDS: u64 = 4096;

/// How much of a body is read at once, in bytes.
const BLOCK: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Process {
    /// Behind a lock, since whoever watches the deadline kills it.
    child: Mutex<Child>,
    input: ChildStdin,
    output: ChildStdout,
    errors: ChildStderr,
    body: Option<BodyKey>,
    runs: u32,
}

/// How a run went.
pub(super) enum Ran {
    /// The process had ended before: nothing was run.
    EndedBefore,
    /// The process has ended, or must not be used again.
    Ended(Result<Outputs, FilterFailure>),
    /// The process waits for the next run.
    Lives(Result<Outputs, FilterFailure>),
}

impl Process {
    /// Starts a process and waits until it says that it is one.
    pub(super) fn start(program: &ChildProgram, deadline: &Deadline) -> Result<Self, String> {
        let mut command = Command::new(&program.path);
        // A signal of the terminal is for the server.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .args(&program.arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("it cannot be started: {error}"))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            let _ = child.kill();
            let _ = child.wait();
            return Err("it has no pipes".into());
        };
        let mut process =
            Self { child: Mutex::new(child), input, output, errors, body: None, runs: 0 };
        let Self { child, output, .. } = &mut process;
        let (greeted, _) = watched(child, deadline, || greeting(output));
        greeted.map_err(|_| "it does not answer as one".to_owned())?;
        Ok(process)
    }

    pub(super) fn has(&self, key: BodyKey) -> bool {
        self.body == Some(key)
    }

    pub(super) const fn runs(&self) -> u32 {
        self.runs
    }

    /// Whether the process has ended, which one does that is idle for long.
    pub(super) fn has_ended(&mut self) -> bool {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        !matches!(child.try_wait(), Ok(None))
    }

    pub(super) fn run(
        &mut self,
        filter: &str,
        view: &View<'_>,
        key: BodyKey,
        limits: &Limits,
        deadline: &Deadline,
    ) -> Ran {
        let is_known = self.body == Some(key);
        let request = Request {
            filter: filter.to_owned(),
            body: (!is_known).then(|| view.source().len() as u64),
            is_text: view.root().kind == Kind::Text,
            limits: *limits,
        };
        if self.has_ended() {
            return Ran::EndedBefore;
        }
        self.runs += 1;
        self.body = None;
        let Self { child, input, output, .. } = self;
        let (talked, is_killed) =
            watched(child, deadline, || talk(&request, view, input, output, limits));
        match talked {
            _ if is_killed => Ran::Ended(Err(FilterFailure::limit(limits, LimitKind::Time))),
            Ok((result, is_spent)) => {
                self.body = Some(key);
                if is_spent { Ran::Ended(result) } else { Ran::Lives(result) }
            }
            Err(Broken::Body(error)) => Ran::Ended(Err(FilterFailure::Body(error))),
            Err(Broken::Output) => Ran::Ended(Err(FilterFailure::limit(limits, LimitKind::Output))),
            Err(Broken::Pipe { has_begun }) => self.autopsy(has_begun, limits),
        }
    }

    /// Says why a process ended in the middle of a run.
    fn autopsy(&mut self, has_begun: bool, limits: &Limits) -> Ran {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The pipe is closed, so that it ends now if it has not.
        let _ = child.kill();
        let status = child.wait();
        if !has_begun && self.runs > 1 && matches!(&status, Ok(status) if status.success()) {
            return Ran::EndedBefore;
        }
        let mut words = String::new();
        let _ = (&mut self.errors).take(LAST_WORDS).read_to_string(&mut words);
        let kind = if words.contains("overflowed its stack") {
            LimitKind::Depth
        } else if words.contains("memory allocation of") {
            LimitKind::Memory
        } else {
            match status.as_ref().ok().and_then(signal) {
                Some(Signal::Cpu) => LimitKind::Cpu,
                // The kernel takes memory back from whoever has most of it.
                Some(Signal::Kill | Signal::Fault) => LimitKind::Memory,
                None => {
                    let status =
                        status.map_or_else(|error| error.to_string(), |status| status.to_string());
                    return Ran::Ended(Err(FilterFailure::Unavailable(format!(
                        "it ended in the middle of the run ({status})"
                    ))));
                }
            }
        };
        Ran::Ended(Err(FilterFailure::limit(limits, kind)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}

enum Signal {
    Cpu,
    Kill,
    Fault,
}

#[cfg(unix)]
fn signal(status: &ExitStatus) -> Option<Signal> {
    use std::os::unix::process::ExitStatusExt;
    match status.signal()? {
        libc::SIGXCPU => Some(Signal::Cpu),
        libc::SIGKILL => Some(Signal::Kill),
        libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT => Some(Signal::Fault),
        _ => None,
    }
}

#[cfg(not(unix))]
fn signal(status: &ExitStatus) -> Option<Signal> {
    (!status.success()).then_some(Signal::Fault)
}

/// Why a conversation ended too soon.
enum Broken {
    Pipe { has_begun: bool },
    Body(io::Error),
    Output,
}

fn talk(
    request: &Request,
    view: &View<'_>,
    input: &mut ChildStdin,
    output: &mut ChildStdout,
    limits: &Limits,
) -> Result<(Result<Outputs, FilterFailure>, bool), Broken> {
    let unbegun = |_| Broken::Pipe { has_begun: false };
    request.write(input).map_err(unbegun)?;
    if let Some(len) = request.body {
        send_body(view, usize::try_from(len).unwrap_or(usize::MAX), input)?;
    }
    input.flush().map_err(unbegun)?;
    let mut outputs = Outputs::default();
    let mut has_begun = false;
    let mut is_open = false;
    loop {
        let frame = Frame::read(output).map_err(|_| Broken::Pipe { has_begun })?;
        has_begun = true;
        match frame {
            Frame::Outputs(count, bytes) => {
                // The last piece of an output that came in several counts it.
                if !is_open && !outputs.bytes.is_empty() {
                    outputs.bytes.push(b',');
                }
                is_open = count == 0;
                outputs.bytes.extend_from_slice(&bytes);
                outputs.count += count as usize;
                if outputs.bytes.len() > limits.output_bytes.saturating_add(limits.outputs) {
                    return Err(Broken::Output);
                }
            }
            Frame::End(end) => {
                let result = match end.how {
                    How::Done => Ok(outputs),
                    How::Failed(message) => {
                        Err(FilterFailure::Failed { message, outputs_before: outputs.count })
                    }
                    How::Limit(kind) => Err(FilterFailure::limit(limits, kind)),
                    How::Confused(why) => return Ok((Err(FilterFailure::Unavailable(why)), true)),
                };
                return Ok((result, end.is_spent));
            }
        }
    }
}

fn send_body(view: &View<'_>, len: usize, input: &mut ChildStdin) -> Result<(), Broken> {
    let mut block = Vec::new();
    let mut at = 0;
    while at < len {
        let end = len.min(at + BLOCK);
        block.clear();
        view.source().read(at..end, &mut block).map_err(Broken::Body)?;
        input.write_all(&block).map_err(|_| Broken::Pipe { has_begun: false })?;
        at = end;
    }
    Ok(())
}

fn greeting(from: &mut ChildStdout) -> io::Result<()> {
    let mut seen = Vec::new();
    while !seen.ends_with(GREETING) {
        let mut byte = [0];
        from.read_exact(&mut byte)?;
        seen.extend_from_slice(&byte);
        if seen.len() > MAX_PREAMBLE {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(())
}

/// Does something with a process that is killed at the deadline; says whether it was.
fn watched<T>(child: &Mutex<Child>, deadline: &Deadline, act: impl FnOnce() -> T) -> (T, bool) {
    let done = (Mutex::new(false), Condvar::new());
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut is_done = done.0.lock().unwrap_or_else(PoisonError::into_inner);
            while !*is_done {
                if deadline.is_over() {
                    drop(is_done);
                    let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
                    return true;
                }
                is_done = done
                    .1
                    .wait_timeout(is_done, deadline.left())
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
            false
        });
        let result = act();
        *done.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        done.1.notify_one();
        (result, watch.join().unwrap_or(false))
    })
}
