//! The supervisor's end of the conversation with whichever server there is.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::progress::Progress;
use tokio::net::UnixListener;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::reason::{Halt, Reason};
use super::record::Record;
use super::wire::{Said, Talk, Told};
use crate::patience::within;

/// How long a server has to record that the program is about to be stopped.
const GO: Duration = Duration::from_secs(2);

/// How long to wait after a connection that could not be taken, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// What the program said last, and what of it no server has heard yet.
///
/// Only the latest counts, so that a server that is slow or absent costs no memory.
#[derive(Debug, Default)]
struct News {
    progress: Option<Progress>,
    partial: Option<Json>,
    is_begun: bool,
    has_begun: bool,
    has_progress: bool,
    has_partial: bool,
    has_lines: bool,
    is_stopping: bool,
    is_collecting: bool,
    has_collecting: bool,
    end: Option<Record>,
    has_end: bool,
}

/// Whether there is a server, and what it said.
#[derive(Clone, Copy, Debug, Default)]
struct Server {
    is_there: bool,
    said_go: bool,
    said_kept: bool,
}

/// How far a program is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Before,
    Runs,
    Over,
}

/// What became of the end that a server was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is committed.
    Kept,
    /// There is no server, or it did not say so in time.
    Open,
}

/// The link to the server.
#[derive(Debug)]
pub(super) struct Link {
    news: Mutex<News>,
    has_news: Notify,
    server: watch::Sender<Server>,
    halt: watch::Sender<Option<Halt>>,
    stage: watch::Sender<Stage>,
    /// What the end of the server does to the program.
    without_server: Option<Halt>,
}

impl Link {
    pub(super) fn new(without_server: Option<Halt>) -> Self {
        Self {
            news: Mutex::default(),
            has_news: Notify::new(),
            server: watch::Sender::default(),
            halt: watch::Sender::default(),
            stage: watch::Sender::default(),
            without_server,
        }
    }

    /// Says who is there.
    pub(super) async fn greet(talk: &mut Talk) -> std::io::Result<()> {
        talk.tell(&Said::Here { pid: std::process::id() }).await
    }

    /// Asks to end the program; the first reason stays.
    pub(super) fn stop(&self, halt: Halt) {
        self.halt.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(halt);
            is_first
        });
    }

    /// Returns why the program has to end, once it has to.
    pub(super) fn halt(&self) -> Option<Halt> {
        *self.halt.borrow()
    }

    /// Waits until the program has to end, and returns its grace.
    pub(super) async fn halted(&self) -> Duration {
        let mut halts = self.halt.subscribe();
        match halts.wait_for(Option::is_some).await.map(|halt| *halt) {
            Ok(Some(halt)) => halt.grace,
            // The sender is this value: it cannot be gone.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    pub(super) fn begun(&self) {
        self.stage.send_replace(Stage::Runs);
        let mut news = self.news();
        (news.is_begun, news.has_begun) = (true, true);
        self.has_news.notify_one();
    }

    /// The program has ended.
    pub(super) fn over(&self) {
        self.stage.send_replace(Stage::Over);
    }

    /// Waits until the program has ended.
    pub(super) async fn is_over(&self) {
        let mut stage = self.stage.subscribe();
        let _ = stage.wait_for(|stage| *stage == Stage::Over).await;
    }

    /// Says that what the program left is being taken, which may take longer than it ran.
    pub(super) fn collecting(&self) {
        let mut news = self.news();
        (news.is_collecting, news.has_collecting) = (true, true);
        self.has_news.notify_one();
    }

    /// Waits until the program runs; for ever once it has ended.
    pub(super) async fn running(&self) {
        let mut stage = self.stage.subscribe();
        let _ = stage.wait_for(|stage| *stage == Stage::Runs).await;
    }

    /// Lets every server hear how the program ended.
    pub(super) fn ended(&self, record: Record) {
        let mut news = self.news();
        (news.end, news.has_end) = (Some(record), true);
        self.has_news.notify_one();
    }

    /// Waits until a server has committed the end, for as long as one is there but no longer than
    /// `limit`.
    pub(super) async fn taken(&self, limit: Duration) -> Taken {
        let mut server = self.server.subscribe();
        let heard = server.wait_for(|server| server.said_kept || !server.is_there);
        match within(limit, heard).await {
            Some(Ok(server)) if server.said_kept => Taken::Kept,
            Some(_) | None => Taken::Open,
        }
    }

    /// Waits until there is no server.
    pub(super) async fn alone(&self) {
        let mut server = self.server.subscribe();
        let _ = server.wait_for(|server| !server.is_there).await;
    }

    pub(super) fn has_server(&self) -> bool {
        self.server.borrow().is_there
    }

    pub(super) fn progress(&self, progress: Progress) {
        let mut news = self.news();
        news.progress = Some(news.progress.take().unwrap_or_default().advance(progress));
        news.has_progress = true;
        self.has_news.notify_one();
    }

    pub(super) fn partial(&self, partial: Json) {
        let mut news = self.news();
        news.partial = Some(partial);
        news.has_partial = true;
        self.has_news.notify_one();
    }

    pub(super) fn log_grew(&self) {
        self.news().has_lines = true;
        self.has_news.notify_one();
    }

    /// Returns the last progress and partial result.
    pub(super) fn latest(&self) -> (Option<Progress>, Option<Json>) {
        let news = self.news();
        (news.progress.clone(), news.partial.clone())
    }

    /// Lets the server record a cancel before the signal, where there is a server.
    pub(super) async fn stopping(&self) {
        if self.halt().is_none_or(|halt| halt.reason != Reason::Cancelled) {
            return;
        }
        self.news().is_stopping = true;
        self.has_news.notify_one();
        let mut server = self.server.subscribe();
        let _ = within(GO, server.wait_for(|server| server.said_go || !server.is_there)).await;
    }

    /// Talks to one server after another, as they come.
    pub(super) async fn attend(&self, first: Talk, listener: &UnixListener) -> Infallible {
        let mut talk = first;
        loop {
            self.server.send_modify(|server| (server.is_there, server.said_go) = (true, false));
            self.converse(&mut talk).await;
            // What is committed stays so when the server goes.
            self.server.send_modify(|server| (server.is_there, server.said_go) = (false, false));
            if let Some(halt) = self.without_server {
                self.stop(halt);
            }
            talk = loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let mut talk = Talk::new(stream);
                        if Self::greet(&mut talk).await.is_ok() {
                            break talk;
                        }
                    }
                    // Nobody else can be heard of but on the same way: it may be better soon.
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                }
            };
            self.repeat();
        }
    }

    async fn converse(&self, talk: &mut Talk) {
        loop {
            tokio::select! {
                told = talk.hear() => match told {
                    Some(Told::Stop(halt)) => self.stop(halt),
                    Some(Told::Go) => self.server.send_modify(|server| server.said_go = true),
                    Some(Told::Kept) => self.server.send_modify(|server| server.said_kept = true),
                    Some(Told::Run(_)) => {}
                    None => return,
                },
                () = self.has_news.notified() => {
                    for said in self.take() {
                        if talk.tell(&said).await.is_err() {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Lets a server that came later hear everything.
    fn repeat(&self) {
        let mut news = self.news();
        news.has_begun = news.is_begun;
        news.has_progress = news.progress.is_some();
        news.has_partial = news.partial.is_some();
        news.has_lines = true;
        news.has_collecting = news.is_collecting;
        news.has_end = news.end.is_some();
        self.has_news.notify_one();
    }

    fn take(&self) -> Vec<Said> {
        let mut news = self.news();
        let mut all = Vec::new();
        if std::mem::take(&mut news.has_begun) {
            all.push(Said::Begun);
        }
        if std::mem::take(&mut news.has_lines) {
            all.push(Said::LogGrew);
        }
        if std::mem::take(&mut news.has_progress) {
            all.extend(news.progress.clone().map(Said::Progress));
        }
        if std::mem::take(&mut news.has_partial) {
            all.extend(news.partial.clone().map(Said::Partial));
        }
        if std::mem::take(&mut news.is_stopping) {
            all.push(Said::Stopping);
        }
        if std::mem::take(&mut news.has_collecting) {
            all.push(Said::Collecting);
        }
        if std::mem::take(&mut news.has_end) {
            all.extend(news.end.clone().map(|end| Said::Ended(Box::new(end))));
        }
        all
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
