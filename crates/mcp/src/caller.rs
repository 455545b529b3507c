//! Who calls: the connection, how long it can be made to wait, and whom progress is told.

mod abilities;
mod ask;
mod budget;
mod key;
mod leave;
#[cfg(feature = "cache")]
mod luggage;
mod progress;
mod turn;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use raincheck_core::error::{Error, Kind};
use raincheck_core::scope::Scope;
use raincheck_core::trace::TraceContext;
use raincheck_runtime::Request;

pub(crate) use self::abilities::{Abilities, Declared};
pub(crate) use self::budget::{Budget, SURFACE_CAP};
pub(crate) use self::key::{Repeat, RequestKey};
pub(crate) use self::leave::Leave;
#[cfg(feature = "cache")]
pub(crate) use self::luggage::Luggage;
pub(crate) use self::progress::{Listener, Note, Notify};
pub(crate) use self::turn::{PassOn, Turn, Turns};

pub use self::ask::{Asking, Peer};
pub use self::budget::ClientTimeouts;

/// How much longer an open call may take once its connection is over.
const LAST_WAIT: Duration = Duration::from_millis(300);

/// One connection of one client.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Who owns what its calls make [SCOPE-1].
    pub scope: Scope,
    /// A name of its own, which the client's next connections to other owners have too; `None` where there is
    /// none, as of requests that stand alone: all of these of an owner are as one connection then.
    pub name: Option<Arc<str>>,
    /// Fires when the connection ends: nobody will read a late answer.
    pub closing: CancellationToken,
    /// Fires when another process goes on with the connection's calls: their tasks are left alone
    /// [ATTACH-7].
    pub handed_over: CancellationToken,
}

impl Connection {
    /// Begins a connection of an owner.
    #[must_use]
    pub fn new(scope: Scope) -> Self {
        let (closing, handed_over) = (CancellationToken::new(), CancellationToken::new());
        Self { scope, name: None, closing, handed_over }
    }
}

/// What lives as long as a call is open.
#[derive(Default)]
struct Kept(Mutex<Vec<Box<dyn Any + Send>>>);

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

/// Who makes one call.
#[derive(Debug)]
pub struct Caller {
    connection: Connection,
    client: Option<Box<str>>,
    /// What the request says that its client can do; `None` where its revision says nothing of it.
    declared: Option<Declared>,
    /// The trace that the request belongs to.
    trace: Option<Arc<TraceContext>>,
    budget: Budget,
    /// How long the call waits for its task, as it was asked and within the budget.
    effective_wait: Option<Duration>,
    /// Whether the call waits for its task.
    is_waiting: bool,
    cancelled: CancellationToken,
    leave: Option<Arc<dyn Leave>>,
    turn: Option<Arc<Turn>>,
    key: Option<RequestKey>,
    listener: Option<Listener>,
    ask: Option<Arc<dyn Peer>>,
    /// What lives as long as the call is open.
    kept: Kept,
}

impl Caller {
    /// Makes the caller of a request that arrived at `arrival` and can be held for `most`.
    pub(crate) fn new(connection: Connection, arrival: Instant, most: Duration) -> Self {
        Self {
            connection,
            client: None,
            declared: None,
            trace: None,
            budget: Budget::new(arrival, most),
            effective_wait: None,
            is_waiting: false,
            cancelled: CancellationToken::new(),
            leave: None,
            turn: None,
            key: None,
            listener: None,
            ask: None,
            kept: Kept::default(),
        }
    }

    /// Names the client, as it introduced itself.
    pub(crate) fn of_client(mut self, name: Option<&str>) -> Self {
        self.client = name.map(Into::into);
        self
    }

    /// Says what the request declares that its client can do; `None` where its revision says nothing of it.
    pub(crate) fn declaring(mut self, declared: Option<Declared>) -> Self {
        self.declared = declared;
        self
    }

    /// Says which trace the request belongs to [TRACE-1].
    pub(crate) fn in_trace(mut self, trace: Option<TraceContext>) -> Self {
        self.trace = trace.map(Arc::new);
        self
    }

    /// Gives up the call when `cancelled` fires; answers are made with `leave`.
    pub(crate) fn in_flight(mut self, cancelled: CancellationToken, leave: Arc<dyn Leave>) -> Self {
        self.cancelled = cancelled;
        self.leave = Some(leave);
        self
    }

    /// Begins work only when the calls before it have begun theirs.
    pub(crate) fn in_turn(mut self, turn: Option<Arc<Turn>>) -> Self {
        self.turn = turn;
        self
    }

    /// Finds what the call makes again by a key, should it be asked again [ATTACH-6].
    pub(crate) fn asked_as(mut self, key: Option<RequestKey>) -> Self {
        self.key = key;
        self
    }

    /// Returns the key of the request, where it has one.
    pub(crate) const fn key(&self) -> Option<&RequestKey> {
        self.key.as_ref()
    }

    /// Tells whether an owner that is gone was asked the same before [ATTACH-6].
    pub(crate) fn is_repeated(&self) -> bool {
        self.key.as_ref().is_some_and(|key| key.repeat.is_some())
    }

    /// Tells the progress of the call to who asked for it.
    pub(crate) fn with_listener(mut self, listener: Option<Listener>) -> Self {
        self.listener = listener;
        self
    }

    /// Lets the call ask its client something.
    pub(crate) fn with_peer(mut self, peer: Box<dyn Peer>) -> Self {
        self.ask = Some(peer.into());
        self
    }

    /// Returns who owns what the call makes.
    #[must_use]
    pub const fn scope(&self) -> &Scope {
        &self.connection.scope
    }

    /// Gives a request what is known of its caller.
    pub(crate) fn sign(&self, request: &mut Request) {
        request.trace = self.trace().cloned();
        request.connection.clone_from(&self.connection.name);
    }

    /// Returns the name of the connection; empty where it has none, as all requests of an owner that stand alone.
    pub(crate) fn connection(&self) -> &str {
        self.connection.name.as_deref().unwrap_or_default()
    }

    /// Returns the name that the client introduced itself with.
    #[must_use]
    pub fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// Returns the trace that the request belongs to.
    #[must_use]
    pub const fn trace(&self) -> Option<&Arc<TraceContext>> {
        self.trace.as_ref()
    }

    /// Tells whether the request is of a revision that has extensions, 2026-07-28 or later, on a connection
    /// that was not begun by a handshake of an older one.
    #[must_use]
    pub const fn has_extensions(&self) -> bool {
        self.declared.is_some()
    }

    /// Tells whether this very request declares an extension of the protocol.
    #[must_use]
    pub fn declares(&self, extension: &str) -> bool {
        self.declared.as_ref().is_some_and(|declared| declared.has(extension))
    }

    /// Returns what this very request says that its client can be asked; `None` where its revision says
    /// nothing of it.
    pub(crate) fn abilities(&self) -> Option<Abilities> {
        self.declared.as_ref().map(|declared| declared.abilities)
    }

    /// Returns the other end of the connection, for who may outlive the call.
    pub(crate) fn shared_peer(&self) -> Option<Arc<dyn Peer>> {
        self.ask.clone()
    }

    /// Holds something until the call was answered.
    pub(crate) fn keep(&self, guard: impl Any + Send) {
        self.kept.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(guard));
    }

    /// Returns the other end of the connection, where it can be asked something.
    #[must_use]
    pub fn peer(&self) -> Option<&dyn Peer> {
        self.ask.as_deref()
    }

    /// Returns what is left of a wish at this moment, within what the client waits for [CALL-2].
    #[must_use]
    pub fn wait(&self, wish: Duration) -> Duration {
        self.budget.left(wish, Instant::now())
    }

    /// Notes how long the call was asked to wait for its task, and returns what is left of that at this
    /// moment, within what the client waits for [CALL-2].
    pub(crate) fn asked_to_wait(&mut self, wish: Duration) -> Duration {
        self.effective_wait = Some(self.budget.within(wish));
        self.wait(wish)
    }

    /// Notes whether the call waits for its task: what a task asks within that wait, its caller can be asked
    /// in the answer of the call [TASKS-9].
    pub(crate) const fn waits(&mut self, wait: Duration) {
        self.is_waiting = !wait.is_zero();
    }

    /// Tells whether the call [waited](Self::waits) for its task.
    pub(crate) const fn has_waited(&self) -> bool {
        self.is_waiting
    }

    /// Returns how long the call waits at the most, once it has [said so](Self::asked_to_wait).
    pub(crate) const fn effective_wait(&self) -> Option<Duration> {
        self.effective_wait
    }

    /// Returns the longest wait to suggest for a next call, in whole seconds.
    #[must_use]
    pub fn next_wait_s(&self) -> u64 {
        self.budget.next_wait_s()
    }

    /// Tells whether the request was cancelled: there will be no answer.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Tells whether another process goes on with the call.
    pub(crate) fn is_handed_over(&self) -> bool {
        self.connection.handed_over.is_cancelled()
    }

    /// Tells whether the connection is over: what is answered now is the last that its client reads.
    pub(crate) fn is_closing(&self) -> bool {
        self.connection.closing.is_cancelled()
    }

    pub(crate) const fn listener(&mut self) -> Option<&mut Listener> {
        self.listener.as_mut()
    }

    /// Ends when the caller no longer wants an answer, or can hardly get one any more.
    pub(crate) fn gone(&self, wait: Duration) -> impl Future<Output = ()> + use<> {
        let (cancelled, closing) = (self.cancelled.clone(), self.connection.closing.clone());
        async move {
            let last_moment = async {
                closing.cancelled_owned().await;
                sleep(LAST_WAIT.min(wait)).await;
            };
            tokio::select! {
                () = cancelled.cancelled_owned() => {}
                () = last_moment => {}
            }
        }
    }

    /// Ends when the call is cancelled or its connection is over: whoever waits answers what it has.
    pub(crate) fn hurried(&self) -> impl Future<Output = ()> + use<> {
        let (cancelled, closing) = (self.cancelled.clone(), self.connection.closing.clone());
        async move {
            tokio::select! {
                () = cancelled.cancelled_owned() => {}
                () = closing.cancelled_owned() => {}
            }
        }
    }

    /// Waits until the calls of the same connection before this one have begun their work, or need not
    /// [CALL-7]. The next one begins when what is returned is dropped.
    ///
    /// # Errors
    /// When the request is cancelled, or its connection over, before that.
    pub(crate) async fn turn(&self) -> Result<PassOn, Error> {
        if let Some(turn) = &self.turn {
            tokio::select! {
                biased;
                () = turn.comes() => {}
                () = self.gone(LAST_WAIT) => return Err(unwanted()),
            }
        }
        if self.is_cancelled() {
            return Err(unwanted());
        }
        Ok(PassOn(self.turn.clone()))
    }

    /// Lets the calls after this one begin: it begins no work.
    pub(crate) fn begins_nothing(&self) {
        drop(PassOn(self.turn.clone()));
    }

    /// Waits for leave to make the answer of this call. What is large is read only then, so that what a
    /// client has not read yet is bounded together with what it asked for [CALL-7].
    ///
    /// # Errors
    /// When there will be no answer: the request was cancelled, or the connection is over and its
    /// other end does not read.
    ///
    /// # Cancel safety
    /// Safe: leave that was given stays given.
    pub async fn leave(&self) -> Result<(), Error> {
        if self.is_cancelled() {
            return Err(unwanted());
        }
        let Some(leave) = &self.leave else { return Ok(()) };
        if leave.try_now() {
            return Ok(());
        }
        // Once the connection is over, there is only the moment that `gone` gives.
        let last = if self.is_closing() { Duration::ZERO } else { LAST_WAIT };
        tokio::select! {
            biased;
            () = leave.wait() => Ok(()),
            () = self.gone(last) => Err(unwanted()),
        }
    }

    /// Gives leave back that is not needed yet: the call sleeps.
    pub(crate) fn give_back(&self) {
        if let Some(leave) = &self.leave {
            leave.give_back();
        }
    }

    /// Returns what counts the bytes that its arguments refer to [CALL-7].
    #[cfg(feature = "cache")]
    pub(crate) fn luggage(&self) -> Luggage {
        Luggage(self.leave.clone())
    }

    /// Takes leave to make the answer when that can be had at once.
    pub(crate) fn leave_now(&self) -> bool {
        self.leave.as_ref().is_none_or(|leave| leave.try_now())
    }
}

/// What a call ends with that nobody waits for any more; it is not shown to anybody.
pub(crate) fn unwanted() -> Error {
    Error::new(Kind::Cancelled, "the caller no longer waits for the answer")
}
