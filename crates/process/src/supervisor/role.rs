//! The process itself: runs one program and outlives whoever asked for it.

use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::ExitCode;

use async_trait::async_trait;
use raincheck_core::content::Json;
use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::log::{Draft, LogStore as _};
use raincheck_core::progress::Progress;
use raincheck_core::time::Timestamp;
use raincheck_runtime::{Clock as _, FileLogs, Ids as _, OsIds, SystemClock};
use tokio::net::UnixListener;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::link::Link;
use super::place::Place;
use super::record::{End, Record};
use super::wire::{Halt, Reason, Talk, Told, Work};
use crate::artifacts::{self, Collected, Shelf};
use crate::supervise::{Ended, Listener, note, supervise};

/// How many threads may block at once: on the log, on a look at the tree.
const N_BLOCKING: usize = 2;

/// Runs the role to its end.
pub(super) fn run() -> ExitCode {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(N_BLOCKING)
        .build();
    let Ok(runtime) = runtime else { return ExitCode::FAILURE };
    let held = runtime.block_on(async {
        let Ok(listener) = listener() else { return ExitCode::from(2) };
        hold(&listener).await.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
    });
    runtime.shutdown_background();
    held
}

/// Returns the socket that the server left as standard input.
fn listener() -> io::Result<UnixListener> {
    let inherited = io::stdin().as_fd().try_clone_to_owned()?;
    let listener = std::os::unix::net::UnixListener::from(inherited);
    listener.local_addr()?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Holds one program until it has ended and that is written down.
async fn hold(listener: &UnixListener) -> io::Result<()> {
    // The server connected before it started this process.
    let (stream, _) = listener.accept().await?;
    let mut talk = Talk::new(stream);
    // A server that is gone before it said what to run leaves nothing to do and nothing to tell.
    let Some(Told::Run(work)) = talk.hear().await else { return Ok(()) };
    let id = work.id.parse().map_err(io::Error::other)?;

    let place = Place::new(&work.folder);
    let link = Link::new(work.ends_with_server.then_some(work.halt(Reason::ServerGone)));
    let spool = Spool::open(id, &work, &link).await;
    let whole = async {
        let record = attempt(&work, &place, &link, &spool).await;
        // Before the server hears of the end, which is that nobody talks to it any more.
        place.write_end(&record, work.is_synced)
    };
    tokio::select! {
        written = whole => written,
        never = link.attend(talk, listener) => match never {},
        never = limits(&work, &link) => match never {},
    }
}

impl Work {
    fn halt(&self, reason: Reason) -> Halt {
        Halt { reason, grace: self.grace }
    }
}

/// Ends the program when its time is over, or when this process is told to end.
async fn limits(work: &Work, link: &Link) -> Infallible {
    let over = async {
        match work.run_timeout {
            Some(limit) => sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let reason = tokio::select! {
        () = over => Reason::TimedOut,
        () = told_to_end() => Reason::Told,
    };
    link.stop(work.halt(reason));
    std::future::pending().await
}

async fn told_to_end() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Runs the program and takes what it left into keeping.
async fn attempt(work: &Work, place: &Place, link: &Link, spool: &Spool<'_>) -> Record {
    let order = work.order.clone();
    let inputs = work.inputs.as_bytes();
    let ended = match place.begin(work.is_synced) {
        Ok(()) => supervise(order, inputs, spool, link.halted()).await,
        Err(error) => Err(error),
    };
    let reason = link.halt().map(|halt| halt.reason);
    let collected = match &ended {
        Ok(ended) => collect(work, ended, reason).await,
        Err(_) => Collected::default(),
    };
    let notes = collected.notes.into_iter().map(|text| note(spool, text)).collect();
    spool.logs(notes).await;
    spool.close().await;
    let (progress, partial) = link.latest();
    Record {
        fence: work.fence,
        end: ended.map_or_else(|error| End::refused(&error), End::Ended),
        reason,
        progress,
        partial,
        artifacts: collected.artifacts.iter().map(Into::into).collect(),
    }
}

/// Takes the artifacts, unless the task is over or not this attempt's any more.
async fn collect(work: &Work, ended: &Ended, reason: Option<Reason>) -> Collected {
    if matches!(reason, Some(Reason::TimedOut | Reason::Lost)) {
        return Collected::default();
    }
    let folder = Path::new(&work.folder);
    let shelf = Shelf {
        from: folder.join("artifacts"),
        to: folder.parent().unwrap_or(folder).join("artifacts"),
    };
    let claims = ended.claims.clone();
    let collect = move || artifacts::collect(&shelf, &claims, || OsIds.artifact());
    match tokio::task::spawn_blocking(collect).await {
        Ok(Ok(collected)) => collected,
        Ok(Err(error)) => Collected::failed(error.kind()),
        Err(_) => Collected::failed(io::ErrorKind::Other),
    }
}

/// The program's words on their way into the log and to the server.
struct Spool<'a> {
    id: TaskId,
    logs: FileLogs,
    clock: SystemClock,
    link: &'a Link,
}

impl<'a> Spool<'a> {
    async fn open(id: TaskId, work: &Work, link: &'a Link) -> Self {
        let logs = FileLogs::new(&work.logs);
        logs.limit(id, work.log_quota).await;
        Self { id, logs, clock: SystemClock::new(), link }
    }

    async fn close(&self) {
        let _ = self.logs.close(self.id).await;
        self.link.log_grew();
    }
}

#[async_trait]
impl Listener for Spool<'_> {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn begun(&self) {
        self.link.begun();
    }

    fn progress(&self, progress: Progress) {
        self.link.progress(progress);
    }

    fn partial(&self, partial: Json) {
        self.link.partial(partial);
    }

    async fn logs(&self, lines: Vec<Draft>) {
        if lines.is_empty() {
            return;
        }
        // There is nobody to tell but the log itself; the next lines may fit again.
        let _ = self.logs.append(self.id, Fence::NONE, lines).await;
        self.link.log_grew();
    }

    async fn stopping(&self) {
        self.link.stopping().await;
    }
}
