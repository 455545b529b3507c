//! Where everything runs that the engine begins for somebody else.

use std::future::Future;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use futures_util::future::poll_immediate;
use tokio::runtime;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;

use raincheck_core::error::{Error, Guarantee, Kind};

use crate::shards::lock;

/// How long futures that were aborted have to be dropped.
const DROP: Duration = Duration::from_millis(100);

/// The futures that run attempts, and commands whose callers went away. They live on the runtime of
/// the [service](crate::Service), whatever runtime their caller has: one that goes away takes no slot
/// of a lane with it.
#[derive(Debug)]
pub(crate) struct Drivers {
    runtime: OnceLock<runtime::Handle>,
    /// `None` once nothing may begin any more.
    attempts: Mutex<Option<JoinSet<()>>>,
    commands: TaskTracker,
}

impl Drivers {
    pub(crate) fn new() -> Self {
        Self {
            runtime: OnceLock::new(),
            attempts: Mutex::new(Some(JoinSet::new())),
            commands: TaskTracker::new(),
        }
    }

    /// Has everything run on the current runtime from now on.
    pub(crate) fn settle(&self) {
        // A service runs once.
        let _ = self.runtime.set(runtime::Handle::current());
    }

    /// Runs one attempt and what its slot gets next; `false` when nothing may begin any more.
    pub(crate) fn spawn<F>(&self, attempt: impl FnOnce() -> F) -> bool
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Some(runtime) = self.runtime.get() else { return false };
        let mut attempts = lock(&self.attempts);
        let Some(attempts) = attempts.as_mut() else { return false };
        while let Some(ended) = attempts.try_join_next() {
            report(ended);
        }
        attempts.spawn_on(attempt(), runtime);
        true
    }

    /// Runs a command to its end even when its caller goes away: what is not ready at the first poll
    /// goes on beside the caller.
    pub(crate) async fn detached<T, F>(&self, command: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let mut command = Box::pin(command);
        if let Some(done) = poll_immediate(&mut command).await {
            return done;
        }
        let Some(runtime) = self.runtime.get() else { return command.await };
        self.commands.spawn_on(command, runtime).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a command did not come to its end");
            let error = Error::new(Kind::StorageUnavailable, "the command was cut off");
            Err(error.with_guarantee(Guarantee::Unknown))
        })
    }

    /// Waits for the attempts that run now.
    pub(crate) async fn drain(&self, deadline: Instant) {
        let mut attempts = self.take(Some(JoinSet::new()));
        while let Ok(Some(ended)) = timeout_at(deadline, attempts.join_next()).await {
            report(ended);
        }
        abort(attempts).await;
    }

    /// Waits for the commands under way.
    pub(crate) async fn finish_commands(&self, deadline: Instant) {
        self.commands.close();
        let _ = timeout_at(deadline, self.commands.wait()).await;
    }

    /// Lets nothing begin any more and drops what runs.
    pub(crate) async fn end(&self) {
        abort(self.take(None)).await;
    }

    /// The same for who cannot wait.
    pub(crate) fn end_now(&self) {
        drop(self.take(None));
    }

    fn take(&self, and_leave: Option<JoinSet<()>>) -> JoinSet<()> {
        let mut attempts = lock(&self.attempts);
        let left = if attempts.is_some() { and_leave } else { None };
        std::mem::replace(&mut *attempts, left).unwrap_or_default()
    }
}

/// Tells of a driver that panicked: its attempt is not renewed any more, so that its lease ends it.
fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "an attempt's driver panicked; the lease of the attempt will lapse");
    }
}

/// Drops futures, and waits for it; one that blocks its thread is left behind.
pub(crate) async fn abort<T: 'static>(mut futures: JoinSet<T>) {
    futures.abort_all();
    let deadline = Instant::now() + DROP;
    while let Ok(Some(_)) = timeout_at(deadline, futures.join_next()).await {}
}
