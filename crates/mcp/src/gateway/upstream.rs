//! The other server: a connection that is held, and made again when it ends.

use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::log::Stream;
use raincheck_core::text;
use raincheck_runtime::{Handle, ToolsChanged};

use super::asking::Askable;
use super::calls::Calls;
use super::connect::{CLOSED, Connect, Why, Wires};
use super::link::{Answering, Failure, Hears, Link};
use super::listing::{self, Listing};
use super::message::RpcError;
use super::restarts::{Next, Restarts};
use super::settings::Settings;
use crate::surface::{Notice, Notices};

/// The revision that the other server is spoken to in: the last one in which a server may ask its client.
const REVISION: &str = "2025-11-25";

/// How long the other server has to end.
const END: Duration = Duration::from_millis(900);

/// How long is still read of a server that has ended: its last answer may be on its way.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The pause between two questions for tools that changed.
const ASK_PAUSE: Duration = Duration::from_millis(250);

/// How many requests for resources, prompts and completions are passed on at once.
const MAX_PASSING: usize = 8;

/// Where the other server stands.
#[derive(Clone, Debug)]
enum State {
    /// Nobody has asked for it yet. Whoever does starts it.
    Idle,
    /// It is being started, or is about to be.
    Starting,
    /// It is there.
    Up(Arc<Link>),
    /// It ended, and is started again after a pause.
    Down(Arc<Why>),
    /// It ended too often, the last time just now: calls are refused.
    Resting(Arc<Why>),
    /// It ended too often, a while ago: a call starts it.
    OnCall(Arc<Why>),
    /// Nothing starts it any more.
    Over,
}

impl State {
    /// Tells whether somebody who wants the other server is what starts it.
    const fn is_for_calls(&self) -> bool {
        matches!(self, Self::Idle | Self::OnCall(_))
    }

    const fn is_starting(&self) -> bool {
        matches!(self, Self::Starting)
    }

    /// Tells whether there is an answer for whoever waits for a connection.
    fn is_settled(&self) -> bool {
        match self {
            Self::Up(link) => !link.is_over(),
            Self::Resting(_) | Self::Over => true,
            Self::Idle | Self::Starting | Self::Down(_) | Self::OnCall(_) => false,
        }
    }
}

/// The other server.
pub(super) struct Upstream {
    pub(super) settings: Settings,
    pub(super) calls: Arc<Calls>,
    pub(super) changes: ToolsChanged,
    connect: Box<dyn Connect>,
    /// The tools as they were named last; `None` before they were named at all.
    listing: RwLock<Option<Arc<Listing>>>,
    /// What the other server says that it can do.
    capabilities: RwLock<Value>,
    /// Whom it can ask something.
    pub(super) askable: Arc<Askable>,
    /// What it tells our clients.
    pub(super) notices: Notices,
    state: watch::Sender<State>,
    /// Room for what is passed on beside calls.
    pub(super) passing: Semaphore,
    /// Rings when it says that its tools changed.
    changed: Notify,
}

impl Upstream {
    pub(super) fn new(connect: Box<dyn Connect>, settings: Settings) -> Self {
        Self {
            settings,
            connect,
            calls: Arc::default(),
            changes: ToolsChanged::new(),
            listing: RwLock::default(),
            capabilities: RwLock::default(),
            askable: Arc::default(),
            notices: Notices::new(),
            state: watch::Sender::new(State::Idle),
            passing: Semaphore::new(MAX_PASSING),
            changed: Notify::new(),
        }
    }

    /// Returns the tools as they were named last; while the other server is away they stay.
    pub(super) fn listing(&self) -> Arc<Listing> {
        self.listed().unwrap_or_default()
    }

    fn listed(&self) -> Option<Arc<Listing>> {
        self.listing.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the tools are known. Once they were named they are, whatever became of the other server.
    ///
    /// # Errors
    /// Why they are not known yet: a name that nobody else knows may be one of them.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn known(&self) -> Result<(), Error> {
        if self.listed().is_some() {
            return Ok(());
        }
        self.want();
        let most = self.settings.ready.max(self.settings.start);
        // At the end of the gateway its engine ends as well, and gives back what waits here.
        let settled = self.until(|state| state.is_settled() && !matches!(state, State::Over));
        match timeout(most, settled).await {
            Ok(State::Resting(why)) => Err(self.away(&why)),
            Ok(_) => Ok(()),
            Err(_) => Err(self.absent()),
        }
    }

    /// Starts the other server where only somebody who wants it does.
    fn want(&self) {
        self.state.send_if_modified(|state| {
            let is_started = state.is_for_calls();
            if is_started {
                *state = State::Starting;
            }
            is_started
        });
    }

    async fn until(&self, is_there: impl Fn(&State) -> bool) -> State {
        let mut state = self.state.subscribe();
        // The sender is ours: the wait can not fail.
        state.wait_for(|state| is_there(state)).await.map_or(State::Over, |state| state.clone())
    }

    /// Tells whether nothing starts the other server any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.state.borrow(), State::Over)
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// When the other server ends too often, or nothing starts it any more. Nothing was executed.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn up(&self) -> Result<Arc<Link>, Error> {
        self.want();
        match self.until(State::is_settled).await {
            State::Up(link) => Ok(link),
            State::Resting(why) => Err(self.away(&why)),
            State::Over | State::Idle | State::Starting | State::Down(_) | State::OnCall(_) => {
                Err(self.not_there("the gateway ends"))
            }
        }
    }

    /// Says why the other server is not there: nothing was sent to it.
    pub(super) fn absent(&self) -> Error {
        match &*self.state.borrow() {
            State::Down(why) | State::Resting(why) | State::OnCall(why) => self.away(why),
            State::Idle | State::Starting | State::Up(_) | State::Over => {
                self.not_there("it has not answered yet")
            }
        }
    }

    fn away(&self, why: &Why) -> Error {
        let error = self.not_there(&why.words).with_hint(
            "look at what it said; correct its command or its environment, then call again",
        );
        if why.said.is_empty() { error } else { error.with_quoted(&*why.said, None) }
    }

    fn not_there(&self, why: &str) -> Error {
        let message = format!("the wrapped server {} is not there: {why}", self.connect.name());
        Error::new(Kind::PeerNotReady, message)
    }

    /// Holds the connection until `stop` fires.
    pub(super) async fn run(&self, engine: &Handle, stop: &CancellationToken) {
        tokio::select! {
            _ = self.until(State::is_starting) => {}
            _ = engine.opened() => {}
            () = stop.cancelled() => {}
        }
        let mut restarts = Restarts::new(self.settings.restarts);
        while !stop.is_cancelled() {
            self.state.send_replace(State::Starting);
            let mut since = None;
            let why = self.hold(engine, stop, &mut since).await;
            if stop.is_cancelled() {
                break;
            }
            let lived = since.map(|since| engine.running_time().saturating_sub(since));
            let next = restarts.ended(lived);
            tracing::warn!(server = self.connect.name(), %why, said = %text::escape(&why.said), n_failed = restarts.n_failed(), "the wrapped server is away");
            tokio::select! {
                () = self.pause(engine, next, why) => {}
                () = stop.cancelled() => {}
            }
        }
        self.state.send_replace(State::Over);
    }

    /// Waits until the other server is to be started again.
    async fn pause(&self, engine: &Handle, next: Next, why: Why) {
        let why = Arc::new(why);
        match next {
            Next::Again(pause) => {
                self.state.send_replace(State::Down(why));
                engine.sleep(pause).await;
            }
            Next::OnCall(rest) => {
                self.state.send_replace(State::Resting(Arc::clone(&why)));
                engine.sleep(rest).await;
                self.state.send_replace(State::OnCall(why));
                self.until(State::is_starting).await;
            }
        }
    }

    /// Makes a connection and holds it to its end. `since` is when its handshake was over.
    async fn hold(
        &self,
        engine: &Handle,
        stop: &CancellationToken,
        since: &mut Option<Duration>,
    ) -> Why {
        let connected = tokio::select! {
            connected = self.connect.connect(&self.calls) => connected,
            () = stop.cancelled() => return Why::new("the gateway ends"),
        };
        let Wires { reader, writer, mut beside, end } = match connected {
            Ok(wires) => wires,
            Err(why) => return why,
        };
        let (link, outbox) = Link::new();
        let talked = {
            let mut running = pin!(link.run(reader, writer, outbox, self));
            tokio::select! {
                why = &mut running => Err(Why::new(why)),
                why = self.talk(engine, &link, since) => Err(why),
                why = &mut beside => {
                    // What it wrote before it ended is read to its end.
                    let _ = timeout(LAST_WORDS, running).await;
                    Ok(why)
                }
                () = stop.cancelled() => Err(Why::new("the gateway ends")),
            }
        };
        // The streams are closed now; what is under way is lost.
        link.end();
        match talked {
            Ok(why) => why,
            Err(seen) => {
                end.cancel();
                // How a program ended says more than that its streams did.
                match timeout(END, beside).await {
                    Ok(why) if seen.words == CLOSED => why,
                    Ok(why) if seen.said.is_empty() => Why { said: why.said, ..seen },
                    _ => seen,
                }
            }
        }
    }

    /// Shakes hands, asks for the tools, and asks again whenever they changed; returns what went wrong.
    async fn talk(&self, engine: &Handle, link: &Arc<Link>, since: &mut Option<Duration>) -> Why {
        let is_first = self.listed().is_none();
        match timeout(self.settings.start, self.begin(link)).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => return reason(&failure),
            Err(_) => return Why::new("it did not answer the handshake in time"),
        }
        tracing::info!(server = self.connect.name(), "the wrapped server is there");
        *since = Some(engine.running_time());
        self.state.send_replace(State::Up(Arc::clone(link)));
        if !is_first {
            // What it has may be something else than before it ended.
            self.notices.tell(Notice::ResourcesChanged);
            self.notices.tell(Notice::PromptsChanged);
        }
        loop {
            self.changed.notified().await;
            let asked = timeout(self.settings.start, listing::ask(link, &self.settings)).await;
            match asked {
                Ok(Ok(listing)) => self.set(listing),
                Ok(Err(failure)) => tracing::warn!(
                    reason = %reason(&failure),
                    "the changed tools of the wrapped server are not known"
                ),
                Err(_) => tracing::warn!("the wrapped server does not name its changed tools"),
            }
            engine.sleep(ASK_PAUSE).await;
        }
    }

    async fn begin(&self, link: &Arc<Link>) -> Result<(), Failure> {
        let introduction = json!({
            "protocolVersion": REVISION,
            "capabilities": self.askable.capabilities(),
            "clientInfo": {"name": "raincheck", "version": env!("CARGO_PKG_VERSION")},
        });
        let introduced = link.request("initialize", introduction).await?;
        let introduced: Value = introduced.read().unwrap_or_default();
        let capabilities = introduced.get("capabilities").cloned().unwrap_or_default();
        *self.capabilities.write().unwrap_or_else(PoisonError::into_inner) = capabilities;
        link.notify("notifications/initialized", None::<()>);
        let listing = match listing::ask(link, &self.settings).await {
            // A server without tools has no such method.
            Err(Failure::Refused(RpcError { code: -32601, .. })) => Listing::default(),
            listing => listing?,
        };
        self.set(listing);
        Ok(())
    }

    /// Tells whether the other server said that it has something.
    pub(super) fn can(&self, capability: &str) -> bool {
        let said = self.capabilities.read().unwrap_or_else(PoisonError::into_inner);
        said.get(capability).is_some_and(|capability| !capability.is_null())
    }

    fn set(&self, listing: Listing) {
        let before = self.listed();
        let is_as_before = before.as_ref().is_some_and(|before| before.is_like(&listing));
        if is_as_before {
            return;
        }
        if let Some(named) = &self.settings.named {
            named(&listing.theirs.iter().map(String::as_str).collect::<Vec<_>>());
        }
        let is_news = before.is_some() || !listing.names.is_empty();
        *self.listing.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(listing));
        if is_news {
            self.changes.tell();
        }
    }
}

/// Says why a handshake came to nothing; what the other server said stands apart [CALL-8].
fn reason(failure: &Failure) -> Why {
    match failure {
        Failure::Lost { .. } => Why::new(CLOSED),
        Failure::Refused(error) => Why {
            words: format!("it refused the handshake with the error {}", error.code),
            said: text::clip(&error.message, 300).to_owned(),
        },
    }
}

#[async_trait]
impl Hears for Upstream {
    async fn notified(&self, method: &str, params: Option<&RawValue>) {
        match (method, params) {
            ("notifications/progress", Some(params)) => self.calls.progress(params),
            ("notifications/message", Some(params)) => self.calls.message(params).await,
            ("notifications/tools/list_changed", _) => self.changed.notify_one(),
            ("notifications/resources/list_changed", _) => {
                self.notices.tell(Notice::ResourcesChanged);
            }
            ("notifications/prompts/list_changed", _) => self.notices.tell(Notice::PromptsChanged),
            _ => {}
        }
    }

    async fn noise(&self, line: &[u8]) {
        self.calls.line(Stream::Stdout, line).await;
    }

    fn asked(&self, method: &str, params: Option<&RawValue>) -> Answering {
        let (running, owners) = (self.calls.only(), self.calls.owners());
        if let Some(asking) = self.askable.ask(method, params, running, &owners) {
            return asking;
        }
        let answer = match method {
            "ping" => Ok(Json::empty_object()),
            _ => Err(RpcError::no_method(text::clip(method, 100))),
        };
        Box::pin(async move { answer })
    }
}
