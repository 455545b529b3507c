//! The only way into a running engine.

mod call;
mod input;
mod peers;
mod reads;
mod submit;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::error::Error;
use raincheck_core::ids::{LaneId, ToolName};
use raincheck_core::input::Input;
use raincheck_core::progress::Progress;
use raincheck_core::scope::Scope;
use raincheck_core::store::Capabilities;
use raincheck_core::task::{Artifact, Outcome, Resources, TaskDetails, TaskRecord};
use raincheck_core::time::Timestamp;
use raincheck_core::tool::ToolSpec;
use raincheck_core::trace::TraceContext;

use crate::engine::Engine;
use crate::kernel::Need;
use crate::running::sleep_by;
use crate::tools::ToolsWatch;
use crate::waits::Watch;

pub use self::call::{Called, TaskHandle, ToolCall};
pub use self::input::Given;
pub use self::peers::Told;

/// A request to run a tool.
#[derive(Clone, Debug)]
pub struct Request {
    /// The tool.
    pub tool: ToolName,
    /// Its arguments.
    pub inputs: Json,
    /// Who asks.
    pub scope: Scope,
    /// The lane to stand in, instead of the tool's own.
    pub lane: Option<LaneId>,
    /// How long an attempt may run, instead of the tool's own limit.
    pub max_runtime: Option<Duration>,
    /// What it may use of the machine.
    pub resources: Resources,
    /// How long the ended task stays readable.
    pub ttl: Option<Duration>,
    /// How long it may wait for a peer that is not ready, instead of the limit of its placement.
    pub ready: Option<Duration>,
    /// Higher runs first, -100 to 100; instead of the tool's own priority.
    pub priority: Option<i8>,
    /// The caller's idempotency key [IDEM-1].
    pub key: Option<Arc<str>>,
    /// The caller's labels.
    pub tags: Vec<Arc<str>>,
    /// The trace that the call belongs to.
    pub trace: Option<Arc<TraceContext>>,
    /// The connection of the client that asks, where it is known.
    pub connection: Option<Arc<str>>,
    /// Set when the caller waits for the end and was given no handle.
    pub is_inline: bool,
    /// Set when another server was asked before, and may have accepted the request: it becomes a task
    /// only if that server's store is this one and shows that it did not [ATTACH-6].
    pub before: Option<AskedBefore>,
}

/// Of whom a request was asked before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedBefore {
    /// The [name](Handle::store_name) of that server's store.
    pub store: Arc<str>,
    /// When it was asked first.
    pub at: Timestamp,
}

impl Request {
    /// Makes a request with the tool's own limits.
    #[must_use]
    pub fn new(tool: impl Into<ToolName>, inputs: Json, scope: Scope) -> Self {
        Self {
            tool: tool.into(),
            inputs,
            scope,
            lane: None,
            max_runtime: None,
            resources: Resources::default(),
            ttl: None,
            ready: None,
            priority: None,
            key: None,
            tags: Vec::new(),
            trace: None,
            connection: None,
            is_inline: false,
            before: None,
        }
    }
}

/// A task that was accepted.
#[derive(Debug)]
pub struct Accepted {
    /// Where it stands.
    pub record: TaskRecord,
    /// How many tasks of its lane run before it, while it is in line [QUEUE-3].
    pub position: Option<u32>,
    /// The lane's estimate of the time until it starts.
    pub delay: Option<Duration>,
    /// Whether the key named a task that was there before [IDEM-1].
    pub existing: bool,
    /// The watch of a caller that waits, begun before the task was there: it misses nothing.
    pub(crate) watch: Option<Watch>,
}

/// What became of a request.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is moved once, and nearly always the large one")]
pub enum Submission {
    /// It is a task.
    Task(Accepted),
    /// It was answered from memory.
    Answer(Outcome),
}

/// A task as its owner sees it.
#[derive(Clone, Debug)]
pub struct View {
    /// Where it stands.
    pub record: TaskRecord,
    /// Its inputs, outcome and history; `None` once its retention is over, and where only its
    /// [status](Handle::status) was read.
    pub payload: Option<Arc<TaskDetails>>,
    /// The latest progress.
    pub progress: Option<Progress>,
    /// The latest partial result.
    pub partial: Option<Json>,
    /// What it asks its caller just now.
    pub inputs: Vec<Input>,
    /// How many tasks of its lane run before it, while it is in line.
    pub position: Option<u32>,
    /// Whether the store showed it; while the store cannot be read, a task that was accepted is shown as it
    /// was then, and may not be kept [DUR-6].
    pub is_committed: bool,
}

/// What a caller that waited is told.
#[derive(Clone, Debug)]
pub enum Waited {
    /// The result, which may not be committed yet.
    Result(Vec<Content>),
    /// The task as it is found.
    View(Box<View>),
}

/// What became of a cancel.
#[derive(Clone, Debug)]
pub struct Cancelled {
    /// Where the task stands now.
    pub record: TaskRecord,
    /// Whether the request counts; `false` when the task had ended before [CANCEL-4].
    pub acknowledged: bool,
}

/// An artifact, and where it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What is known of it.
    pub artifact: Artifact,
    /// Its path below the folder that holds it.
    pub path: PathBuf,
    /// The folders that tool sets hold artifacts in.
    pub folders: Vec<PathBuf>,
}

/// A running engine, seen from outside. Cloning is cheap.
///
/// Every call that needs the store waits until the [service](crate::Service) has opened it. A call
/// that changes something runs to its end even when its future is dropped.
#[derive(Clone)]
pub struct Handle {
    engine: Arc<Engine>,
}

impl Handle {
    pub(crate) const fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// Returns the tools as they are now, in the order in which their sets name them.
    #[must_use]
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        self.engine.tools.specs()
    }

    /// Says that a store that could not be opened may be open to this process by now: it is tried again
    /// without waiting for a request.
    pub fn open_again(&self) {
        self.engine.kernel.phases.wanted.notify_one();
    }

    /// Returns a number that is another after each change of the tools.
    #[must_use]
    pub fn specs_version(&self) -> u64 {
        self.engine.tools.version()
    }

    /// Watches the tools for changes; `None` when they never change.
    #[must_use]
    pub fn watch_specs(&self) -> Option<ToolsWatch> {
        self.engine.tools.watch()
    }

    /// Waits until every tool set knows its tools.
    ///
    /// # Errors
    /// Of a set that does not know them yet: a name that nobody knows may be one of them.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn specs_known(&self) -> Result<(), Error> {
        self.engine.tools.known().await
    }

    /// Finds a tool by its name.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<ToolSpec> {
        self.engine.tools.find(name).map(|tool| tool.spec.clone())
    }

    /// Returns the current instant of the engine's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.engine.kernel.clock.now()
    }

    /// Returns how long the engine has been able to run since it was made: while its process is
    /// stopped, paused or asleep, this stands still. What a peer has to do within a limit is measured
    /// by it; a stop shorter than a second may go unnoticed [LEASE-8].
    ///
    /// An instant on this axis is a sum with it: `handle.running_time() + limit` is when a limit that
    /// begins now is over.
    #[must_use]
    pub fn running_time(&self) -> Duration {
        self.engine.kernel.running_time()
    }

    /// Sleeps for a span of [running time](Self::running_time).
    ///
    /// # Cancel safety
    /// Safe: dropping it ends the sleep.
    pub async fn sleep(&self, span: Duration) {
        sleep_by(span, || self.running_time()).await;
    }

    /// Draws bits that nobody can guess, for a use of its own.
    #[must_use]
    pub fn nonce(&self) -> u128 {
        self.engine.kernel.ids.nonce()
    }

    /// Returns 128 bits that follow from the parts and from a key that only this server knows: the same
    /// for the same parts, also after a restart where the store is a file, and not to be guessed by
    /// who wrote the parts [CALL-8]. `purpose` keeps different uses apart.
    #[must_use]
    pub fn seal<'a>(&self, purpose: &'a str, parts: impl IntoIterator<Item = &'a [u8]>) -> u128 {
        let mac = self.engine.kernel.mac_key().mac(purpose, parts);
        mac.iter().take(16).fold(0, |bits, byte| (bits << 8) | u128::from(*byte))
    }

    /// Tells whether the end of the engine has begun: what is asked of it may be refused for that alone.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.engine.kernel.phases.is_closing()
    }

    /// Waits until the store is open; `false` when the engine ends before. A store that cannot be
    /// opened may still be opened later.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn opened(&self) -> bool {
        self.engine.kernel.phases.opened().await
    }

    /// Waits until the store is open. One that could not be opened is tried once more.
    ///
    /// # Errors
    /// Why it cannot be opened, or that the engine ends.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn open(&self) -> Result<(), Error> {
        self.engine.kernel.admit(Need::Read).await
    }

    /// Returns the name of the store, which is kept in it: what has another name is another store. `None`
    /// before it was opened, and for one that ends with this process.
    #[must_use]
    pub fn store_name(&self) -> Option<Arc<str>> {
        self.engine.kernel.store.mac_key().map(|key| key.name())
    }

    /// Finds the task that a request of the key became, whatever has become of the task since; nothing
    /// is made or changed.
    ///
    /// # Errors
    /// `storage_unavailable`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn find_request(
        &self,
        scope: &Scope,
        tool: ToolName,
        key: Arc<str>,
    ) -> Result<Option<Accepted>, Error> {
        submit::find_request(&self.engine.kernel, scope, tool, key).await
    }

    /// Returns what the store promises.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.engine.kernel.store.capabilities()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("phase", &self.engine.kernel.phases.get())
            .finish_non_exhaustive()
    }
}
