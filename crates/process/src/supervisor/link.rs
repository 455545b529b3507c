//! The supervisor's end of the conversation with whichever server there is.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::progress::Progress;
use tokio::net::UnixListener;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::wire::{Halt, Reason, Said, Talk, Told};

/// How long a server has to record that the program is about to be stopped.
const GO: Duration = Duration::from_secs(2);

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
}

/// Whether there is a server, and whether it said `go`.
#[derive(Clone, Copy, Debug, Default)]
struct Server {
    is_there: bool,
    said_go: bool,
}

/// The link to the server.
#[derive(Debug)]
pub(super) struct Link {
    news: Mutex<News>,
    has_news: Notify,
    server: watch::Sender<Server>,
    halt: watch::Sender<Option<Halt>>,
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
            without_server,
        }
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
        let mut news = self.news();
        (news.is_begun, news.has_begun) = (true, true);
        self.has_news.notify_one();
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
        let _ = timeout(GO, server.wait_for(|server| server.said_go || !server.is_there)).await;
    }

    /// Talks to one server after another, as they come.
    pub(super) async fn attend(&self, first: Talk, listener: &UnixListener) -> Infallible {
        let mut talk = first;
        loop {
            self.server.send_replace(Server { is_there: true, said_go: false });
            self.converse(&mut talk).await;
            self.server.send_replace(Server::default());
            if let Some(halt) = self.without_server {
                self.stop(halt);
            }
            talk = match listener.accept().await {
                Ok((stream, _)) => Talk::new(stream),
                Err(_) => std::future::pending().await,
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
        all
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
