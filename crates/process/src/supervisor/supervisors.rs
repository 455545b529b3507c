//! The supervisors of one server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raincheck_core::ids::TaskId;
use tokio::time::timeout;

use super::Supervisor;
use super::forks::{ForkServer, Generation};
use super::wire::{Talk, Told};

/// How long a supervisor may take to hear its last word; it can do without.
const LAST_WORD: Duration = Duration::from_millis(100);

/// What starts supervisors, and those that have told how their program ended and wait to hear that
/// this is committed.
#[derive(Debug)]
pub(crate) struct Supervisors {
    server: Arc<ForkServer>,
    waiting: Mutex<HashMap<(TaskId, u32), Talk>>,
}

impl Supervisors {
    pub(crate) fn new(how: Option<Supervisor>) -> Self {
        Self { server: Arc::new(ForkServer::new(how)), waiting: Mutex::default() }
    }

    pub(crate) fn server(&self) -> Arc<ForkServer> {
        Arc::clone(&self.server)
    }

    /// Gives up a fork server that does not answer.
    pub(crate) async fn replace(&self, generation: Generation) {
        let server = self.server();
        let _ = tokio::task::spawn_blocking(move || server.replace(generation)).await;
    }

    /// Holds the line of a supervisor whose outcome is about to be committed.
    pub(crate) fn remember(&self, id: TaskId, number: u32, talk: Talk) {
        self.lock().insert((id, number), talk);
    }

    /// Tells a supervisor that its outcome is committed.
    pub(crate) async fn kept(&self, id: TaskId, number: u32) {
        let talk = self.lock().remove(&(id, number));
        if let Some(mut talk) = talk {
            // One that is gone needs no word.
            let _ = timeout(LAST_WORD, talk.tell(&Told::Kept)).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(TaskId, u32), Talk>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
