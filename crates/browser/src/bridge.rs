//! The bridge: what executors, tool calls and the extension's requests have in common.

mod hearing;

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{Fence, LaneId, TaskId};
use raincheck_core::scope::Scope;
use raincheck_core::task::Outcome;
use raincheck_core::time::Timestamp;
use raincheck_loopback::awake;
use raincheck_loopback::keeper::Owner;
use raincheck_runtime::{Handle, Told};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::choices::{Caller, Choice, Choices};
use crate::known::KnownTabs;
use crate::lanes::Lanes;
use crate::outbox::{Command, Move, Outbox};
use crate::owner;
use crate::rings::Rings;
use crate::settings::Settings;
use crate::typed::Typed;
use crate::undone::is_undone;

/// The pause before lanes are held or released again that could not be.
const PAUSE: Duration = Duration::from_secs(1);

/// How often it is looked whether commands ended that typed something.
const TYPED_LOOK: Duration = Duration::from_secs(2);

/// The bridge to browsers: their commands as tasks, their words as outcomes. Cloning is cheap.
#[derive(Clone)]
pub struct Browser(Arc<Inner>);

struct Inner {
    /// What the limits of browsers are judged by.
    clock: awake::Clock,
    settings: Mutex<Settings>,
    outbox: Mutex<Outbox>,
    rings: Mutex<Rings>,
    tabs: Mutex<KnownTabs>,
    choices: Mutex<Choices>,
    typed: Typed,
    /// Told when a command came that types something.
    typed_moved: Notify,
    /// Ends that are being saved and told.
    ends: TaskTracker,
    lanes: tokio::sync::Mutex<Lanes>,
    engine: OnceLock<Handle>,
    /// Told when a browser came, or may have gone.
    moved: Notify,
    /// Whether a browser is connected, as was seen last.
    is_there: watch::Sender<bool>,
    /// Set once the lanes stand as they should.
    is_set_up: watch::Sender<bool>,
    /// The port of the listener, once it listens.
    port: OnceLock<u16>,
    /// What this process is called among those that share the browser.
    process: OnceLock<Arc<str>>,
    incompatible: Mutex<Option<Incompatible>>,
    /// Whose the browser is.
    owner: watch::Sender<Owner>,
    closing: CancellationToken,
}

/// An extension of another protocol that was turned away.
#[derive(Clone, Debug)]
pub(crate) struct Incompatible {
    pub(crate) protocol: String,
    pub(crate) at: Timestamp,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Browser {
    /// Makes a bridge with no browser.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let lanes = Lanes::new(settings.queue_limit, settings.max_tabs);
        let (ring, typed) = (settings.ring, settings.typed_dir.clone());
        Self(Arc::new(Inner {
            clock: awake::Clock::default(),
            settings: Mutex::new(settings),
            outbox: Mutex::default(),
            rings: Mutex::new(Rings::new(ring)),
            tabs: Mutex::default(),
            choices: Mutex::default(),
            typed: Typed::new(typed),
            typed_moved: Notify::new(),
            ends: TaskTracker::new(),
            lanes: tokio::sync::Mutex::new(lanes),
            engine: OnceLock::new(),
            moved: Notify::new(),
            is_there: watch::Sender::new(false),
            is_set_up: watch::Sender::new(false),
            port: OnceLock::new(),
            process: OnceLock::new(),
            incompatible: Mutex::default(),
            owner: watch::Sender::new(Owner::Ours),
            closing: CancellationToken::new(),
        }))
    }

    /// Joins the bridge to its engine, and returns what has to run beside it: it holds the lanes of
    /// tabs while no browser is there, until `stop` fires.
    pub fn beside(
        &self,
        engine: Handle,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + use<> {
        // A bridge has one engine; the first stays.
        let _ = self.0.engine.set(engine);
        let bridge = self.clone();
        async move {
            let watching = async {
                if bridge.set_up().await {
                    tokio::join!(bridge.watch_presence(), bridge.forget_typed());
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = watching => {}
                () = stop.cancelled() => {}
            }
            bridge.0.closing.cancel();
        }
    }

    /// Tells the bridge where its listener listens: commands may not navigate there [SEC-7].
    pub fn listens_on(&self, port: u16) {
        // A listener keeps its port.
        let _ = self.0.port.set(port);
    }

    /// Tells the bridge what this process is called, which is the connection of its own client's calls: that
    /// client has gone with it once another process serves the browser [BROWSER-53].
    pub fn is_called(&self, process: &str) {
        // A process keeps its name.
        let _ = self.0.process.set(process.into());
    }

    /// Waits until a browser is connected; at once when one is.
    ///
    /// # Cancel safety
    /// Safe: nothing is changed by it.
    pub async fn is_connected(&self) {
        // The sender is a part of this value.
        let _ = self.0.is_there.subscribe().wait_for(|is_there| *is_there).await;
    }

    /// Says whose the browser is.
    pub(crate) fn set_owner(&self, owner: Owner) {
        self.0.owner.send_replace(owner);
    }

    /// Returns whose the browser is.
    pub(crate) fn owner(&self) -> Owner {
        self.0.owner.borrow().clone()
    }

    /// Refuses a command unless the browser is this process's, once that is known.
    pub(crate) async fn check_owner(&self) -> Result<(), Error> {
        let mut owner = self.0.owner.subscribe();
        // The sender is a part of this value.
        let _ = owner.wait_for(|owner| *owner != Owner::Unknown).await;
        owner::check(&self.owner())
    }

    /// Returns the clock that limits of browsers are judged by [LEASE-8].
    pub(crate) fn clock(&self) -> &awake::Clock {
        &self.0.clock
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.0.port.get().copied()
    }

    pub(crate) fn process(&self) -> Option<Arc<str>> {
        self.0.process.get().cloned()
    }

    pub(crate) fn settings(&self) -> MutexGuard<'_, Settings> {
        lock(&self.0.settings)
    }

    pub(crate) fn rings(&self) -> MutexGuard<'_, Rings> {
        lock(&self.0.rings)
    }

    pub(crate) fn tabs(&self) -> MutexGuard<'_, KnownTabs> {
        lock(&self.0.tabs)
    }

    pub(crate) fn choices(&self) -> MutexGuard<'_, Choices> {
        lock(&self.0.choices)
    }

    pub(crate) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        lock(&self.0.outbox)
    }

    pub(crate) fn incompatible(&self) -> MutexGuard<'_, Option<Incompatible>> {
        lock(&self.0.incompatible)
    }

    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    pub(crate) fn engine(&self) -> Result<&Handle, Error> {
        self.0.engine.get().ok_or_else(|| {
            Error::new(Kind::StorageUnavailable, "the bridge has not been started yet")
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.engine.get().map_or(Timestamp::from_millis(0), Handle::now)
    }

    // What commands type.

    pub(crate) fn typed(&self) -> &Typed {
        &self.0.typed
    }

    pub(crate) fn typed_moved(&self) {
        self.0.typed_moved.notify_one();
    }

    /// Forgets what commands typed once they have ended, whatever their end.
    async fn forget_typed(&self) {
        let Ok(engine) = self.engine() else { return };
        loop {
            for (id, is_old) in self.typed().all(self.now()) {
                let is_over = match engine.tell(id, None, None).await {
                    Ok(Told::Ended(_)) => true,
                    // A submit of that id may be under way.
                    Ok(Told::Unknown) => is_old,
                    Ok(Told::Counted(_) | Told::Stale(_)) | Err(_) => false,
                };
                if is_over {
                    self.forget_what_was_typed(id).await;
                }
            }
            let is_idle = self.typed().all(self.now()).is_empty();
            let again = self.clock().now().awake + TYPED_LOOK;
            tokio::select! {
                () = self.0.typed_moved.notified() => {}
                () = self.clock().sleep_until(again), if !is_idle => {}
            }
        }
    }

    /// Forgets what a command typed that has ended.
    pub(crate) async fn forget_what_was_typed(&self, id: TaskId) {
        let bridge = self.clone();
        if let Err(error) = blocking(move || bridge.typed().forget(id)).await {
            tracing::error!(%error, "what a command typed was not removed");
        }
    }

    // The lanes.

    async fn set_up(&self) -> bool {
        let Ok(engine) = self.engine() else { return false };
        if !engine.opened().await {
            return false;
        }
        let mut lanes = self.0.lanes.lock().await;
        let is_there = self.presence().0;
        let restored = lanes.restore(engine).await;
        let held = lanes.hold(engine, !is_there).await;
        drop(lanes);
        if let Err(error) = restored.and(held)
            && !engine.is_closing()
        {
            tracing::error!(%error, "the lanes of tabs could not be set up");
        }
        self.0.is_set_up.send_replace(true);
        true
    }

    /// Makes sure that a lane is there and held as it should be, before a task enters it.
    pub(crate) async fn ensure_lane(&self, lane: &LaneId) -> Result<(), Error> {
        let engine = self.engine()?;
        // The sender is a part of this value.
        let _ = self.0.is_set_up.subscribe().wait_for(|is_set_up| *is_set_up).await;
        let mut lanes = self.0.lanes.lock().await;
        let is_there = self.presence().0;
        lanes.ensure(engine, lane, !is_there).await
    }

    fn presence(&self) -> (bool, Option<Instant>) {
        let linger = self.settings().linger;
        self.outbox().presence(self.clock().now(), linger)
    }

    /// Holds the lanes while no browser is there, and lets them go on when one comes [QUEUE-5].
    async fn watch_presence(&self) {
        let mut was_there = None;
        loop {
            let moved = self.0.moved.notified();
            let (is_there, mut until) = self.presence();
            self.0.is_there.send_replace(is_there);
            if was_there != Some(is_there) {
                if self.hold(!is_there).await {
                    was_there = Some(is_there);
                } else {
                    // A store that fails may be back soon.
                    let again = self.clock().now().awake + PAUSE;
                    until = Some(until.map_or(again, |until| until.min(again)));
                }
            }
            match until {
                Some(until) => tokio::select! {
                    () = moved => {}
                    () = self.clock().sleep_until(until) => {}
                },
                None => moved.await,
            }
        }
    }

    /// Holds every lane, or lets every lane go on; tells whether that was done.
    async fn hold(&self, is_held: bool) -> bool {
        let Ok(engine) = self.engine() else { return false };
        tracing::info!("{}", if is_held { "no browser is connected" } else { "a browser is here" });
        let done = self.0.lanes.lock().await.hold(engine, is_held).await;
        if let Err(error) = &done
            && !engine.is_closing()
        {
            tracing::error!(%error, is_held, "the lanes of tabs could not be held or released");
        }
        done.is_ok()
    }

    /// Says that a browser came, or may have gone.
    pub(crate) fn moved(&self) {
        self.0.moved.notify_one();
    }

    // What executors do.

    pub(crate) fn put(&self, id: TaskId, command: Command) {
        let linger = self.settings().linger;
        self.outbox().put(self.clock().now(), linger, id, command);
    }

    pub(crate) fn step(&self, id: TaskId, on: Move) {
        self.outbox().step(id, on);
    }

    pub(crate) fn stop(&self, id: TaskId) {
        self.outbox().stop(id);
    }

    pub(crate) fn withdraw(&self, id: TaskId, fence: Fence) {
        self.outbox().withdraw(id, fence);
    }

    pub(crate) fn last_word(&self, id: TaskId) -> Option<Instant> {
        self.outbox().last_word(self.clock().now(), id)
    }

    /// Waits for an instant of the bridge's clock; for ever without one.
    pub(crate) async fn until(&self, instant: Option<Instant>) {
        match instant {
            Some(instant) => self.clock().sleep_until(instant).await,
            None => std::future::pending().await,
        }
    }

    /// Takes a command out of the outbox whose outcome is committed.
    pub(crate) fn let_go(&self, id: TaskId) {
        self.outbox().recorded(id);
    }

    /// Returns who gave a command.
    pub(crate) fn caller_of(&self, scope: &Scope, id: TaskId) -> Caller {
        self.choices().caller_of(scope, id)
    }

    /// Returns by which connection a command was given; `None` for one of an earlier server, and for one that
    /// ended long ago.
    #[must_use]
    pub fn connection_of(&self, id: TaskId) -> Option<Arc<str>> {
        self.choices().connection_of(id)
    }

    /// Notes for what its caller gives next where a command was done that has ended: in the tab that its
    /// browser tells, else in the one that it named unless nothing was done.
    pub(crate) fn ended_in(&self, caller: &Caller, id: TaskId, tab: Option<i64>, how: &Outcome) {
        let browser = self.outbox().browser_of(id);
        let mut choices = self.choices();
        match tab {
            Some(tab) => choices.choose(caller, id, Choice::Tab(tab, browser)),
            None if is_undone(how) => choices.refuse(caller, id),
            None => choices.confirm(caller, id),
        }
    }
}

/// Runs work that waits for the disk.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::new(Kind::Panicked, error.to_string()))
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Browser").field("settings", &*self.settings()).finish_non_exhaustive()
    }
}
