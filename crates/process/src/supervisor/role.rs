//! The process itself: runs one program and outlives whoever asked for it.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use raincheck_runtime::{Ids as _, OsIds};
use tokio::net::UnixListener;
use tokio::runtime::{self, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::ahead::clear_own;
use super::link::{Link, Taken};
use super::place::Place;
use super::reason::{Halt, Reason};
use super::record::{End, Record};
use super::spool::Spool;
use super::wire::{Talk, Told, Work};
use crate::artifacts::{self, Collected, Shelf};
use crate::os::{keep_offspring, listen_as_this_process};
use crate::patience::pass;
use crate::supervise::{Ended, Listener as _, note, supervise};

/// How many threads may block at once: on the log, on a look at the tree.
const N_BLOCKING: usize = 2;

/// How long a server has to commit the outcome before the end is written down here at all.
const TAKE: Duration = Duration::from_millis(5);

/// How long a server has to commit the outcome before the end is made to last here.
const COMMIT: Duration = Duration::from_millis(200);

/// How often a supervisor without a server looks whether one could still find it.
const LOOK: Duration = Duration::from_secs(2);

/// How often in a row it has to see that none could before it ends its program.
const LOOKS: u32 = 5;

/// The longest pause between two attempts to write an end down.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Prepares the process for the role, before it is known what for.
///
/// # Errors
/// When the system refuses what the role needs.
pub(super) fn prepare() -> io::Result<Runtime> {
    keep_offspring()?;
    let mut builder = runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(N_BLOCKING).build()?;
    // The first of its kind costs most. Nothing is missed: there is no child yet.
    runtime.block_on(async { signal(SignalKind::child()).map(drop) })?;
    Ok(runtime)
}

/// Runs the role to its end. `near` is the conversation with the first server, `listener` is where
/// others come.
///
/// # Errors
/// When the system refuses what the role needs before anything was run.
pub(super) fn run(runtime: Runtime, near: OwnedFd, listener: OwnedFd) -> io::Result<()> {
    let held = runtime.block_on(async {
        let listener = std::os::unix::net::UnixListener::from(listener);
        listen_as_this_process(&listener)?;
        listener.set_nonblocking(true)?;
        hold(Talk::of(near.into())?, &UnixListener::from_std(listener)?).await
    });
    runtime.shutdown_background();
    held
}

/// Holds one program until it has ended and that is written down, or a server has committed it.
async fn hold(mut talk: Talk, listener: &UnixListener) -> io::Result<()> {
    Link::greet(&mut talk).await?;
    // A server that is gone before it said what to run leaves nothing to do and nothing to tell.
    let Some(Told::Run(work)) = talk.hear().await else {
        clear_own();
        return Ok(());
    };
    let id = work.id.parse().map_err(io::Error::other)?;

    let place = Place::new(&work.place);
    let link = Link::new(work.ends_with_server.then_some(work.halt(Reason::ServerGone)));
    let spool = Spool::new(id, &work, &link);
    let whole = async {
        let record = attempt(&work, &place, &link, &spool).await;
        deliver(record, &work, &place, &link).await;
    };
    tokio::select! {
        () = whole => Ok(()),
        never = link.attend(talk, listener) => match never {},
        never = limits(&work, &place, &link) => match never {},
    }
}

impl Work {
    fn halt(&self, reason: Reason) -> Halt {
        Halt { reason, grace: self.grace }
    }
}

/// Ends the program when its time is over, when this process is told to end, or when nobody will ever
/// hear of it.
async fn limits(work: &Work, place: &Place, link: &Link) -> Infallible {
    let over = async {
        match work.run_timeout {
            Some(limit) => {
                link.running().await;
                tokio::select! {
                    () = pass(limit) => {}
                    // What is done with what it left does not count.
                    () = link.is_over() => std::future::pending().await,
                }
            }
            None => std::future::pending().await,
        }
    };
    let reason = tokio::select! {
        () = over => Reason::TimedOut,
        () = told_to_end() => Reason::Told,
        () = forsaken(link, || place.is_removed()) => Reason::ServerGone,
    };
    link.stop(work.halt(reason));
    std::future::pending().await
}

/// Waits until there is no server, and none could find this process any more: what it would be found by
/// is removed, and so is the folder of all tasks [CMD-8].
async fn forsaken(link: &Link, is_removed: impl Fn() -> bool) {
    let mut n_seen = 0;
    while n_seen < LOOKS {
        link.alone().await;
        sleep(LOOK).await;
        n_seen = if link.has_server() || !is_removed() { 0 } else { n_seen + 1 };
    }
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

/// Sees to it that the end is known: a server commits it, or it is written down for the next one.
///
/// On a full disk neither works; then both are tried until one does [DUR-5].
async fn deliver(record: Record, work: &Work, place: &Place, link: &Link) {
    let mut pause = Duration::from_millis(100);
    link.ended(record.clone());
    // Who listens hears of it first: the file is for the next server, should this one be lost.
    if link.taken(TAKE).await == Taken::Kept {
        return;
    }
    // A server that is there may be removing the folder, as it has committed the outcome.
    let write = || place.write_end(&record, !link.has_server()).is_ok();
    let is_in_vain = || !link.has_server() && place.is_removed();
    let mut is_written = !is_in_vain() && write();
    let result = result_of(work);
    while !is_in_vain() {
        // While a server is there its store is faster and safer than a file beside it.
        if link.taken(if is_written { COMMIT.max(pause / 2) } else { pause }).await == Taken::Kept {
            return;
        }
        is_written = is_written || write();
        if is_written {
            match place.sync_end(&result, work.is_synced) {
                Ok(()) => return,
                // Nobody but a server that has committed it removes what nobody else knows of.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return,
                Err(_) => {}
            }
        }
        if !link.has_server() {
            sleep(pause).await;
        }
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Returns where the program writes its result.
fn result_of(work: &Work) -> PathBuf {
    Path::new(&work.folder).join("out/result.json")
}

fn is_missing(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Runs the program and takes what it left into keeping.
async fn attempt(work: &Work, place: &Place, link: &Link, spool: &Spool<'_>) -> Record {
    let order = work.order.clone();
    let inputs = work.inputs.as_bytes();
    let ended = match place.begin(work.is_synced, work.are_names_synced) {
        Ok(()) => {
            let ended = supervise(order, inputs, spool, link.halted()).await;
            ended.map_err(|error| End::refused(&error))
        }
        Err(error) => Err(End::NotNoted { text: error.to_string() }),
    };
    let ended_at = ended.is_ok().then(|| spool.now());
    // Nothing that is done from here on counts as its time.
    link.over();
    let (collected, is_cut) = match &ended {
        Ok(ended) => collect(work, ended, link).await,
        Err(_) => (Collected::default(), false),
    };
    let has_no_result = ended.is_ok() && is_missing(&result_of(work));
    let notes = collected.notes.into_iter().map(|text| note(spool, text)).collect();
    spool.logs(notes).await;
    spool.close().await;
    let (progress, partial) = link.latest();
    Record {
        fence: work.fence,
        end: ended.map_or_else(|end| end, End::Ended),
        ended_at,
        reason: link.halt().map(|halt| halt.reason),
        progress,
        partial,
        artifacts: collected.artifacts.iter().map(Into::into).collect(),
        has_no_result,
        is_cut,
    }
}

/// Takes the artifacts, unless the task is over or not this attempt's any more. A request to end that
/// comes meanwhile cuts it short, which is told.
async fn collect(work: &Work, ended: &Ended, link: &Link) -> (Collected, bool) {
    let reason = link.halt().map(|halt| halt.reason);
    if matches!(reason, Some(Reason::TimedOut | Reason::Lost)) {
        return (Collected::default(), false);
    }
    let folder = Path::new(&work.folder);
    let shelf = Shelf {
        from: folder.join("out/artifacts"),
        to: folder.parent().unwrap_or(folder).join("artifacts"),
    };
    if ended.claims.is_empty() && artifacts::is_empty(&shelf) {
        return (Collected::default(), false);
    }
    link.collecting();
    let claims = ended.claims.clone();
    let is_cut = Arc::new(AtomicBool::new(false));
    let cut = Arc::clone(&is_cut);
    let collect = move || artifacts::collect(&shelf, &claims, &cut, || OsIds.artifact());
    let mut collecting = tokio::task::spawn_blocking(collect);
    let collected = tokio::select! {
        collected = &mut collecting => collected,
        // One that came before the program's end stopped the program, and has had its way.
        _ = link.halted(), if reason.is_none() => {
            is_cut.store(true, Ordering::Relaxed);
            collecting.await
        }
    };
    let is_cut = is_cut.load(Ordering::Relaxed);
    match collected {
        Ok(Ok(collected)) => (collected, is_cut),
        Ok(Err(error)) => (Collected::failed(error.kind()), is_cut),
        Err(_) => (Collected::failed(io::ErrorKind::Other), is_cut),
    }
}

#[cfg(test)]
mod tests {
    use crate::order::Order;
    use crate::patience::within;

    use super::*;

    // [CMD-8]
    #[tokio::test(start_paused = true)]
    async fn a_program_is_forsaken_once_nobody_can_find_it_for_a_while() {
        let link = Link::new(None);
        let begun = tokio::time::Instant::now();
        let is_removed = || begun.elapsed() > Duration::from_secs(60);
        forsaken(&link, is_removed).await;
        let after = begun.elapsed().as_secs();
        assert!((68..=72).contains(&after), "{after}");
        // A folder that was out of sight for a moment is none that is gone.
        let looks = std::cell::Cell::new(0_u32);
        let is_removed = || !looks.replace(looks.get() + 1).is_multiple_of(LOOKS);
        assert!(within(600 * LOOK, forsaken(&link, is_removed)).await.is_none());
    }

    // [LEASE-3]
    #[tokio::test]
    async fn a_start_that_cannot_be_noted_is_not_blamed_on_the_program() {
        let folder = tempfile::tempdir().expect("a folder");
        let gone = folder.path().join("gone");
        let order = Order {
            program: "/bin/true".into(),
            arguments: Vec::new(),
            folder: folder.path().into(),
            environment: Vec::new(),
            mark: "A_TEST=of-a-note".into(),
            limits: Default::default(),
        };
        let work = Work {
            id: String::new(),
            fence: 1,
            order,
            inputs: String::new(),
            folder: gone.clone().into(),
            place: gone.clone().into(),
            logs: folder.path().into(),
            log_quota: 1000,
            run_timeout: None,
            grace: Duration::ZERO,
            ends_with_server: false,
            is_synced: false,
            are_names_synced: false,
        };
        let id = OsIds.task(raincheck_core::time::Timestamp::from_millis(0));
        let link = Link::new(None);
        let spool = Spool::new(id, &work, &link);
        let record = attempt(&work, &Place::new(gone), &link, &spool).await;
        assert!(matches!(record.end, End::NotNoted { .. }), "{record:?}");
    }
}
