//! Where the cache lives: opened when it is first needed, and worked with off the threads that answer.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use raincheck_cache::{Cache, Filters, Millis, Storage};
use raincheck_core::error::{Error, Kind};
use raincheck_core::time::Timestamp;
use raincheck_runtime::Handle;

use super::options::CacheOptions;

/// How many threads read and write entries at once.
const MAX_WORKERS: usize = 4;

/// How many filters run at once. They are apart from the rest, so that a filter that uses its whole time
/// keeps nobody from a page.
const MAX_FILTERS: usize = 2;

/// How many calls may wait for a filter to end.
const MAX_WAITING: usize = 64;

/// The least time between two looks at what is due.
const PAUSE: Duration = Duration::from_secs(1);

/// How often filter processes that have ended by themselves are looked for: a little longer than one that
/// has nothing to do lives.
const REAP: Duration = Duration::from_secs(95);

/// The cache, and who may work with it.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) options: CacheOptions,
    cache: OnceLock<Arc<Cache>>,
    filters: OnceLock<Arc<Filters>>,
    workers: Arc<Semaphore>,
    runners: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// Told when the next instant at which something ends may be earlier than it was.
    changed: Notify,
}

impl Home {
    pub(super) fn new(options: CacheOptions) -> Self {
        Self {
            options,
            cache: OnceLock::new(),
            filters: OnceLock::new(),
            workers: Arc::new(Semaphore::new(MAX_WORKERS)),
            runners: Arc::new(Semaphore::new(MAX_FILTERS)),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            changed: Notify::new(),
        }
    }

    /// Takes out what has expired and compresses what nobody reads, each at its time. Ends when it is
    /// dropped.
    pub(super) async fn tick(self: &Arc<Self>, engine: &Handle) {
        loop {
            self.changed.notified().await;
            loop {
                // What comes in bursts is looked at once.
                sleep(PAUSE).await;
                let next = self.ticked(engine).await;
                let Some(pause) = next else { break };
                tokio::select! {
                    () = self.changed.notified() => {}
                    () = sleep(pause) => {}
                }
            }
        }
    }

    /// Does what is due, and returns after how long there is something to do again.
    async fn ticked(self: &Arc<Self>, engine: &Handle) -> Option<Duration> {
        let (cache, filters) = (Arc::clone(self.cache.get()?), self.filters.get().cloned());
        let now = millis(engine.now());
        let ticked =
            spawn_blocking(move || (cache.tick(now), filters.map_or(0, |filters| filters.tick())));
        let (next, n_processes) = ticked.await.ok()?;
        let next = next.map(|next| Duration::from_millis(next.saturating_sub(now)));
        match n_processes {
            0 => next,
            _ => Some(next.map_or(REAP, |next| next.min(REAP))),
        }
    }

    /// Works with the cache on a thread where that is allowed to take time.
    ///
    /// # Errors
    /// What `work` says.
    ///
    /// # Cancel safety
    /// Work that has begun is done to its end.
    pub(super) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        engine: &Handle,
        work: impl FnOnce(&Arc<Cache>, Millis) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // The semaphores are never closed.
        let permit = Arc::clone(&self.workers).acquire_owned().await.map_err(ended)?;
        self.on_thread(engine, permit, work).await
    }

    /// Runs a filter on a thread of its own.
    ///
    /// # Errors
    /// What `work` says; `queue_full` when too many wait.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        engine: &Handle,
        work: impl FnOnce(&Arc<Cache>, &Filters, Millis) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let Ok(_waiting) = self.waiting.try_acquire() else {
            let message = format!("{MAX_WAITING} filters are running or wait for their turn");
            return Err(
                Error::new(Kind::QueueFull, message).with_retry_after(Duration::from_secs(2))
            );
        };
        let permit = Arc::clone(&self.runners).acquire_owned().await.map_err(ended)?;
        let home = Arc::clone(self);
        self.on_thread(engine, permit, move |cache, now| work(cache, home.filters(), now)).await
    }

    async fn on_thread<T: Send + 'static>(
        self: &Arc<Self>,
        engine: &Handle,
        permit: tokio::sync::OwnedSemaphorePermit,
        work: impl FnOnce(&Arc<Cache>, Millis) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (home, engine) = (Arc::clone(self), engine.clone());
        let worked = spawn_blocking(move || {
            let _permit = permit;
            let now = millis(engine.now());
            let worked = work(home.cache(now), now);
            home.changed.notify_one();
            worked
        });
        worked.await.map_err(ended)?
    }

    /// Opens the cache when it is first needed: a client that only looks at the server leaves no trace.
    fn cache(&self, now: Millis) -> &Arc<Cache> {
        self.cache.get_or_init(|| {
            let cache = Cache::open(self.options.config(), now);
            if let Storage::Memory { why: Some(why) } = cache.storage() {
                tracing::warn!(
                    why,
                    "cached responses are held in memory: they end with this server"
                );
            }
            Arc::new(cache)
        })
    }

    /// Opens the cache and says what keeps it out of its folder.
    pub(super) fn complaint(&self, engine: &Handle) -> Option<String> {
        match self.cache(millis(engine.now())).storage() {
            Storage::Memory { why } => why,
            Storage::Folder => None,
        }
    }

    fn filters(&self) -> &Filters {
        self.filters.get_or_init(|| Arc::new(Filters::open(self.options.filters())))
    }
}

fn ended(error: impl std::fmt::Display) -> Error {
    tracing::error!(%error, "work with the cache ended early");
    Error::new(Kind::Panicked, "reading the cached response failed in the server itself")
}

/// Returns an instant as the cache counts them.
pub(super) fn millis(at: Timestamp) -> Millis {
    u64::try_from(at.as_millis()).unwrap_or(0)
}

/// Returns an instant of the cache.
pub(super) fn timestamp(at: Millis) -> Timestamp {
    Timestamp::from_millis(i64::try_from(at).unwrap_or(i64::MAX))
}
