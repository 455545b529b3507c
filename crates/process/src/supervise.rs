//! Runs one program from its start until nothing of it is left.
//!
//! **Boundary**: this module knows pipes and processes, not tasks. It is given an order and the
//! bytes of standard input, and it tells a [`Listener`] what the program says; so it does the same in
//! the server and in a process of its own that outlives it.

mod backlog;
mod control;
mod limits;
mod lines;
mod pumps;
mod tail;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use raincheck_core::content::Json;
use raincheck_core::log::{Draft, Level, Stream};
use raincheck_core::progress::Progress;
use raincheck_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::order::{Limits, Order};
use crate::os::{self, Exit, Left, Pipes, Process, Survivor, Usage};
use crate::patience::pass;

pub(crate) use control::Claim;
pub(crate) use limits::{Excess, Limit};

/// How long pipes are read after the tree is gone, should somebody outside of it hold them open.
const DRAIN: Duration = Duration::from_secs(1);

/// Hears what a program says while it runs.
#[async_trait]
pub(crate) trait Listener: Send + Sync {
    /// Returns the instant that a log line read now carries.
    fn now(&self) -> Timestamp;

    /// Hears that the program runs.
    fn begun(&self);

    /// Takes how far the program is.
    fn progress(&self, progress: Progress);

    /// Takes what the program has so far.
    fn partial(&self, partial: Json);

    /// Takes log lines, in the order of each stream. It may be slow: the program is not held up.
    async fn logs(&self, lines: Vec<Draft>);

    /// Hears that the program is about to be stopped, before it gets a signal.
    async fn stopping(&self);
}

/// The end of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// How it ended; `None` when the system does not tell.
    pub(crate) exit: Option<Exit>,
    /// What it used.
    pub(crate) usage: Usage,
    /// How long it ran.
    pub(crate) wall: Duration,
    /// Whether it was stopped, and not by itself at its end.
    pub(crate) is_stopped: bool,
    /// The limit that it went beyond, for which it was ended.
    #[serde(default)]
    pub(crate) excess: Option<Excess>,
    /// Its last words on standard output.
    pub(crate) stdout_tail: String,
    /// Its last lines on standard error.
    pub(crate) stderr_tail: Vec<String>,
    /// What of it could not be ended and runs on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) survivors: Vec<Survivor>,
    /// What it said about its artifacts, which are taken into keeping at once.
    #[serde(skip)]
    pub(crate) claims: Vec<Claim>,
}

/// Runs a program until nothing of it is left.
///
/// `stop` resolves to a grace when the program has to end early: its process group gets SIGTERM, and
/// what is left of its tree after the grace is killed. A program that has ended before `stop` was
/// seen counts as ended by itself. What may not be killed, such as a process of another user, is
/// named in the end and in the log, and left.
///
/// # Errors
/// When the program cannot be started.
pub(crate) async fn supervise(
    order: Order,
    stdin: &[u8],
    listener: &dyn Listener,
    stop: impl Future<Output = Duration>,
) -> io::Result<Ended> {
    let begun = Instant::now();
    let limits = order.limits.clone();
    let (mut process, pipes) = os::spawn(order).await?;
    listener.begun();
    let (gone, cut) = (CancellationToken::new(), CancellationToken::new());
    let survives = AtomicBool::new(false);
    let (log, backlog) = backlog::open();
    let own = log.clone();
    let Pipes { stdin: input, stdout, stderr, control } = pipes;

    let life = async {
        let life = live(&mut process, &limits, listener, stop).await;
        survives.store(life.as_ref().is_ok_and(|it| !it.survivors().is_empty()), Ordering::Relaxed);
        gone.cancel();
        if let Ok(life) = &life {
            own.finish(life.notes().into_iter().map(|text| note(listener, text)).collect()).await;
        }
        (life, begun.elapsed())
    };
    let bar = pumps::Bar::default();
    let speech = async {
        let stdout = pumps::output(stdout, Stream::Stdout, listener, log.clone(), &cut, &bar);
        let stderr = pumps::output(stderr, Stream::Stderr, listener, log.clone(), &cut, &bar);
        let control = pumps::control(control, listener, log, &cut, &bar);
        tokio::join!(stdout, stderr, control, pumps::feed(input, stdin, &gone))
    };
    let overtime = async {
        gone.cancelled().await;
        // What could not be ended holds the pipes as long as it likes.
        pass(if survives.load(Ordering::Relaxed) { DRAIN / 10 } else { DRAIN }).await;
        cut.cancel();
        std::future::pending().await
    };
    let speech = async {
        tokio::select! { said = speech => said, never = overtime => never }
    };
    let ((life, wall), (stdout, stderr, claims, ()), ()) =
        tokio::join!(life, speech, backlog.drain(listener));

    let (mut is_stopped, mut excess, mut survivors) = (false, None, Vec::new());
    match &life {
        Ok(Life::Itself(left)) => survivors.clone_from(&left.survivors),
        Ok(Life::Stopped(left)) => (is_stopped, survivors) = (true, left.clone()),
        Ok(Life::Exceeded(limit, left)) => (excess, survivors) = (Some(*limit), left.clone()),
        Err(_) => {}
    }
    let (exit, usage) = match life.and_then(|_| process.reap()) {
        Ok(Some((exit, usage))) => (Some(exit), usage),
        Ok(None) => (None, Usage::default()),
        Err(error) => {
            tracing::warn!(%error, "the end of a program cannot be read");
            (None, Usage::default())
        }
    };
    Ok(Ended {
        exit,
        usage,
        wall,
        is_stopped,
        excess,
        stdout_tail: stdout.text(),
        stderr_tail: stderr.lines(),
        survivors,
        claims,
    })
}

/// How a program's tree came to be gone, and what of it is not.
enum Life {
    /// The program ended by itself; what it left running was ended.
    Itself(Left),
    /// The program was stopped.
    Stopped(Vec<Survivor>),
    /// The program was ended because it used too much.
    Exceeded(Excess, Vec<Survivor>),
}

impl Life {
    /// Returns what could not be ended.
    fn survivors(&self) -> &[Survivor] {
        match self {
            Self::Itself(left) => &left.survivors,
            Self::Stopped(survivors) | Self::Exceeded(_, survivors) => survivors,
        }
    }

    /// Returns what the log of the task has to say about it.
    fn notes(&self) -> Vec<String> {
        let n_ended = match self {
            Self::Itself(left) => left.n_ended,
            Self::Stopped(_) | Self::Exceeded(..) => 0,
        };
        let ended = (n_ended > 0).then(|| {
            let those = if n_ended == 1 { "1 process" } else { &*format!("{n_ended} processes") };
            let were = if n_ended == 1 { "was" } else { "were" };
            format!("{those} that the program left running {were} ended with it")
        });
        let remain = self.survivors().iter().map(|it| format!("{it}; it runs on"));
        ended.into_iter().chain(remain).collect()
    }
}

/// Why a program's life is over.
enum Cause {
    Itself,
    Told(Duration),
    Excess(Excess),
}

async fn live(
    process: &mut Process,
    limits: &Limits,
    listener: &dyn Listener,
    stop: impl Future<Output = Duration>,
) -> io::Result<Life> {
    let scale = process.scale();
    let cause = tokio::select! {
        biased;
        ended = process.ended() => ended.map(|()| Cause::Itself)?,
        grace = stop => Cause::Told(grace),
        excess = limits::exceeded(limits, scale) => Cause::Excess(excess),
    };
    match cause {
        Cause::Told(grace) if !process.has_ended()? => {
            // Nobody may commit to end what is not ours to end.
            if !process.is_out_of_reach() {
                listener.stopping().await;
            }
            Ok(Life::Stopped(process.stop(grace).await))
        }
        Cause::Excess(excess) if !process.has_ended()? => {
            Ok(Life::Exceeded(excess, process.stop(Duration::ZERO).await))
        }
        Cause::Itself | Cause::Told(_) | Cause::Excess(_) => {
            Ok(Life::Itself(process.settle().await))
        }
    }
}

/// Makes a warning of our own for the log of the program.
pub(crate) fn note(listener: &dyn Listener, text: impl Into<std::sync::Arc<str>>) -> Draft {
    Draft { ts: listener.now(), stream: Stream::System, level: Level::Warn, message: text.into() }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
