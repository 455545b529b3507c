//! The supervisors of one server.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raincheck_core::ids::TaskId;
use tokio::time::timeout;

use super::Supervisor;
use super::forks::{ForkServer, Generation};
use super::ready::{Readiness, Ready};
use super::wire::{Talk, Told};

/// How long a supervisor may take to hear its last word; it can do without.
const LAST_WORD: Duration = Duration::from_millis(100);

/// What starts supervisors, and those that have told how their program ended and wait to hear that
/// this is committed.
#[derive(Debug)]
pub(crate) struct Supervisors {
    server: Arc<ForkServer>,
    next: Arc<Mutex<Next>>,
    waiting: Mutex<HashMap<(TaskId, u32), Talk>>,
}

/// The supervisor of the next program.
#[derive(Debug, Default)]
enum Next {
    #[default]
    None,
    /// It is being made.
    Making,
    Made(Ready),
}

impl Supervisors {
    pub(crate) fn new(how: Option<Supervisor>) -> Self {
        let server = Arc::new(ForkServer::new(how));
        Self { server, next: Arc::default(), waiting: Mutex::default() }
    }

    /// Makes a supervisor for the next program, if there is none.
    pub(crate) fn prepare(
        &self,
        make: impl FnOnce(&ForkServer) -> io::Result<Ready> + Send + 'static,
    ) {
        let mut next = lock(&self.next);
        if !matches!(*next, Next::None) {
            return;
        }
        *next = Next::Making;
        drop(next);
        let (server, next) = (self.server(), Arc::clone(&self.next));
        tokio::task::spawn_blocking(move || {
            // Without one the next start takes longer.
            *lock(&next) = make(&server).map_or(Next::None, Next::Made);
        });
    }

    /// Takes the supervisor that waits for a program, if one does, with the number of its process.
    pub(crate) fn take(&self) -> Option<(Ready, u32)> {
        let mut next = lock(&self.next);
        match std::mem::take(&mut *next) {
            Next::Made(ready) => match ready.look() {
                Readiness::Waits(pid) => Some((ready, pid)),
                Readiness::NotYet => {
                    *next = Next::Made(ready);
                    None
                }
                Readiness::Gone => {
                    drop(next);
                    discard(ready.task);
                    None
                }
            },
            other @ (Next::None | Next::Making) => {
                *next = other;
                None
            }
        }
    }

    pub(crate) fn server(&self) -> Arc<ForkServer> {
        Arc::clone(&self.server)
    }

    /// Gives up a fork server that does not answer.
    pub(crate) async fn replace(&self, generation: Generation) {
        let server = self.server();
        let next = lock(&self.next).take_of(generation);
        if let Some(ready) = next {
            discard(ready.task);
        }
        let _ = tokio::task::spawn_blocking(move || server.replace(generation)).await;
    }

    /// Holds the line of a supervisor whose outcome is about to be committed.
    pub(crate) fn remember(&self, id: TaskId, number: u32, talk: Talk) {
        lock(&self.waiting).insert((id, number), talk);
    }

    /// Tells a supervisor that its outcome is committed.
    pub(crate) async fn kept(&self, id: TaskId, number: u32) {
        let talk = lock(&self.waiting).remove(&(id, number));
        if let Some(mut talk) = talk {
            // One that is gone needs no word.
            let _ = timeout(LAST_WORD, talk.tell(&Told::Kept)).await;
        }
    }
}

impl Next {
    /// Takes what a fork server made that does not answer.
    fn take_of(&mut self, generation: Generation) -> Option<Ready> {
        match std::mem::take(self) {
            Self::Made(ready) if ready.generation == generation => Some(ready),
            other @ (Self::None | Self::Making | Self::Made(_)) => {
                *self = other;
                None
            }
        }
    }
}

/// Removes a folder that no task will have.
pub(crate) fn discard(task: PathBuf) {
    tokio::task::spawn_blocking(move || drop(std::fs::remove_dir_all(task)));
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
