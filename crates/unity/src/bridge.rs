//! The bridge: what executors, tool calls and connections have in common.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{LaneId, TaskId};
use raincheck_loopback::keeper::Owner;
use raincheck_loopback::{awake, private};
use raincheck_runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::lanes::{self, Lanes};
use crate::owner;
use crate::settings::Settings;
use crate::spelling::Spellings;

/// The pause before lanes are held or released again that could not be.
const PAUSE: Duration = Duration::from_secs(1);

/// The bridge to Unity editors: their calls as tasks, their words as outcomes. Cloning is cheap.
#[derive(Clone)]
pub struct Unity(Arc<Inner>);

struct Inner {
    /// What the limits of editors are judged by.
    clock: awake::Clock,
    settings: Settings,
    spellings: Spellings,
    desk: Mutex<Desk>,
    lanes: tokio::sync::Mutex<Lanes>,
    engine: OnceLock<Handle>,
    /// Told when an editor came, went, or does something else.
    moved: Notify,
    /// Told to whoever waits for that.
    changed: watch::Sender<u64>,
    /// Set once the lanes stand as they should.
    is_set_up: watch::Sender<bool>,
    owner: watch::Sender<Owner>,
    /// Held while the choices of callers are written down.
    keeping: tokio::sync::Mutex<()>,
}

/// An editor, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorView {
    /// What it calls itself, the same for the same project.
    pub instance: Arc<str>,
    /// The name of its project.
    pub name: Arc<str>,
    /// The path of its project.
    pub project_path: Arc<str>,
    /// The version of Unity.
    pub unity_version: Arc<str>,
    /// The version of the package in it.
    pub plugin_version: Arc<str>,
    /// The protocol that it speaks.
    pub backend: &'static str,
    /// What it does.
    pub state: &'static str,
    /// Whether it is connected; otherwise it is expected back.
    pub is_connected: bool,
}

impl Unity {
    /// Makes a bridge with no editor. Looks at the folder of the project with a blocking call.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let lanes = Lanes::new(settings.queue_limit, settings.max_editors);
        Self(Arc::new(Inner {
            clock: awake::Clock::default(),
            spellings: Spellings::new(settings.project.as_deref()),
            settings,
            desk: Mutex::default(),
            lanes: tokio::sync::Mutex::new(lanes),
            engine: OnceLock::new(),
            moved: Notify::new(),
            changed: watch::Sender::new(0),
            is_set_up: watch::Sender::new(false),
            owner: watch::Sender::new(Owner::Ours),
            keeping: tokio::sync::Mutex::default(),
        }))
    }

    /// Joins the bridge to its engine, and returns what has to run beside it: it holds the lanes of editors
    /// while these are away or busy, until `stop` fires.
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
                    bridge.watch_editors().await;
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = watching => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Shows the editors that are connected or expected back.
    #[must_use]
    pub fn editors(&self) -> Vec<EditorView> {
        let desk = self.desk();
        let show = |editor: &crate::desk::editor::Editor| EditorView {
            instance: Arc::clone(&editor.instance),
            name: Arc::clone(&editor.name),
            project_path: Arc::clone(&editor.project_path),
            unity_version: Arc::clone(&editor.unity_version),
            plugin_version: Arc::clone(&editor.plugin_version),
            backend: editor.backend,
            state: editor.state.as_str(),
            is_connected: editor.link.is_some(),
        };
        desk.editors.values().map(show).collect()
    }

    /// Returns the title of the dialog that holds the editor of a lane up, in the editor's own words.
    #[must_use]
    pub fn dialog_of(&self, lane: &LaneId) -> Option<String> {
        let desk = self.desk();
        let mut of_lane = desk.editors.values().filter(|editor| editor.lane == *lane);
        of_lane.find_map(|editor| editor.dialog.clone())
    }

    /// Waits until an editor is connected; at once when one is.
    ///
    /// # Cancel safety
    /// Safe: nothing is changed by it.
    pub async fn is_connected(&self) {
        let mut changed = self.0.changed.subscribe();
        while !self.desk().editors.values().any(|editor| editor.link.is_some()) {
            // The sender is a part of this value.
            let _ = changed.changed().await;
        }
    }

    /// Takes over what the callers of earlier servers have selected. Works with blocking calls.
    pub(crate) fn restore_choices(&self) {
        let Some(path) = &self.settings().choices else { return };
        let read = private::read(path).map_err(|error| error.to_string());
        let restored = read.and_then(|bytes| {
            let restored = bytes.map(|bytes| self.desk().choices.restore(&bytes));
            restored.transpose().map_err(|error| error.to_string())
        });
        if let Err(error) = restored {
            tracing::warn!(error, "which editors were selected before is not known");
        }
    }

    /// Keeps what callers have selected for the next server.
    pub(crate) async fn keep_choices(&self) {
        let Some(path) = self.settings().choices.clone() else { return };
        // One at a time, and the last one writes what all have selected.
        let _alone = self.0.keeping.lock().await;
        let bytes = self.desk().choices.written();
        let kept = spawn_blocking(move || private::write(&path, &bytes)).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(%error, "which editor was selected is not kept for the next server");
        }
    }

    pub(crate) fn set_owner(&self, owner: Owner) {
        self.0.owner.send_replace(owner);
    }

    /// Refuses a call unless the project's editors are this process's, once that is known.
    pub(crate) async fn check_owner(&self) -> Result<(), Error> {
        let mut told = self.0.owner.subscribe();
        // The sender is a part of this value.
        let _ = told.wait_for(|owner| *owner != Owner::Unknown).await;
        let owner = self.0.owner.borrow().clone();
        owner::check(&owner)
    }

    /// Waits until the editors are this process's; `false` when `stop` fires before.
    pub(crate) async fn is_ours(&self, stop: &CancellationToken) -> bool {
        let mut told = self.0.owner.subscribe();
        tokio::select! {
            ours = told.wait_for(|owner| *owner == Owner::Ours) => ours.is_ok(),
            () = stop.cancelled() => false,
        }
    }

    pub(crate) fn clock(&self) -> &awake::Clock {
        &self.0.clock
    }

    /// The present instant of the clock that limits of editors are judged by [LEASE-8].
    pub(crate) fn now(&self) -> Instant {
        self.0.clock.now().awake
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn spellings(&self) -> &Spellings {
        &self.0.spellings
    }

    pub(crate) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn engine(&self) -> Result<&Handle, Error> {
        self.0.engine.get().ok_or_else(|| {
            Error::new(Kind::StorageUnavailable, "the bridge has not been started yet")
        })
    }

    /// Says that an editor came, went, or does something else.
    pub(crate) fn moved(&self) {
        self.0.changed.send_modify(|n| *n += 1);
        self.0.moved.notify_one();
    }

    /// Returns a watch of what [`moved`](Self::moved) says.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    // The lanes.

    async fn set_up(&self) -> bool {
        let Ok(engine) = self.engine() else { return false };
        if !engine.opened().await {
            return false;
        }
        let mut lanes = self.0.lanes.lock().await;
        // What is still queued of an earlier server was made before what is made from now on.
        self.desk().changes(None, "", engine.now());
        self.desk().has_unplaced = true;
        if let Err(error) = lanes.restore(engine).await {
            tracing::error!(%error, "the lanes of editors could not be set up");
        }
        self.apply(&mut lanes, engine).await;
        drop(lanes);
        self.0.is_set_up.send_replace(true);
        true
    }

    /// Makes sure that a lane is there and held as it should be, before a task enters it.
    pub(crate) async fn ensure_lane(&self, lane: &LaneId) -> Result<(), Error> {
        let engine = self.engine()?;
        // The sender is a part of this value.
        let _ = self.0.is_set_up.subscribe().wait_for(|is_set_up| *is_set_up).await;
        let mut lanes = self.0.lanes.lock().await;
        let hold = self.desk().hold_of(lane);
        // One that changed just now is looked at again soon.
        lanes.set(engine, lane, hold, self.now()).await.map(drop)
    }

    /// Tells whether calls that were made before one, and before any editor was known, are still to go to the
    /// only editor there is.
    pub(crate) async fn has_older_unplaced(&self, id: TaskId) -> bool {
        let may_be = {
            let desk = self.desk();
            desk.has_unplaced && desk.has_one()
        };
        let Ok(engine) = self.engine() else { return false };
        if !may_be {
            return false;
        }
        let Ok(all) = engine.lanes().await else { return false };
        let Some(view) = all.into_iter().find(|view| view.lane.as_str() == lanes::DEFAULT) else {
            return false;
        };
        let is_empty = view.queued + view.waiting == 0;
        match view.slots.first() {
            // They are leased in their order, and identities grow with time.
            Some(slot) => slot.task < id,
            None => {
                self.desk().has_unplaced = !is_empty;
                !is_empty
            }
        }
    }

    /// Holds and releases lanes as editors come, go and change [QUEUE-5].
    async fn watch_editors(&self) {
        let Ok(engine) = self.engine() else { return };
        loop {
            let moved = self.0.moved.notified();
            let due = self.desk().forget_the_gone(self.now(), self.settings());
            let again = {
                let mut lanes = self.0.lanes.lock().await;
                self.apply(&mut lanes, engine).await
            };
            match due.into_iter().chain(again).min() {
                Some(due) => tokio::select! {
                    () = moved => {}
                    () = self.clock().sleep_until(due) => {}
                },
                None => moved.await,
            }
        }
    }

    /// Holds and releases lanes; returns when to do it again if nothing moves before.
    async fn apply(&self, lanes: &mut Lanes, engine: &Handle) -> Option<Instant> {
        let mut wanted = lanes.all();
        wanted.extend(self.desk().editors.values().map(|editor| editor.lane.clone()));
        let mut again: Option<Instant> = None;
        for lane in wanted {
            let hold = self.desk().hold_of(&lane);
            let next = match lanes.set(engine, &lane, hold, self.now()).await {
                Ok(next) => next,
                // Its lanes end with it.
                Err(_) if engine.is_closing() => return None,
                Err(error) => {
                    tracing::error!(%error, %lane, "a lane could not be held or released");
                    // A store that fails may be back soon.
                    Some(self.now() + PAUSE)
                }
            };
            again = again.into_iter().chain(next).min();
        }
        again
    }
}

impl fmt::Debug for Unity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unity").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}
