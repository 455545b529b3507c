//! The other server: a connection that is held, and made again when it ends.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
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
use super::link::{Answering, Failure, Hears, Link, Outbox};
use super::listing::{self, Listing};
use super::message::RpcError;
use super::settings::Settings;
use crate::surface::{Notice, Notices};

/// The revision that the other server is spoken to in: the last one in which a server may ask its client.
const REVISION: &str = "2025-11-25";

/// The pause before the other server is started again: at first, and at most. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The pause between two starts once it was started too often.
const GIVEN_UP_PAUSE: Duration = Duration::from_secs(30);

/// After this time a connection counts as a good one.
const STABLE: Duration = Duration::from_secs(60);

/// How long the other server has to end.
const END: Duration = Duration::from_millis(900);

/// Where the other server stands.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Nobody has asked for it yet.
    Idle,
    /// It is being started.
    Starting,
    /// It is there.
    Up(Arc<Link>),
    /// It ended, and is started again after a pause.
    Down(Arc<Why>),
    /// It ended too often: only a call starts it.
    GivenUp(Arc<Why>),
    /// Nothing starts it any more.
    Over,
}

/// The other server.
pub(super) struct Upstream {
    pub(super) settings: Settings,
    pub(super) calls: Arc<Calls>,
    pub(super) changes: ToolsChanged,
    connect: Box<dyn Connect>,
    listing: RwLock<Arc<Listing>>,
    /// What the other server says that it can do.
    capabilities: RwLock<Value>,
    /// Whom it can ask something.
    pub(super) askable: Arc<Askable>,
    /// What it tells our clients.
    pub(super) notices: Notices,
    state: watch::Sender<State>,
    /// Rings when somebody wants the other server.
    wanted: Notify,
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
            wanted: Notify::new(),
            changed: Notify::new(),
        }
    }

    /// Returns the tools as they were named last; while the other server is away they stay.
    pub(super) fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.listing.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until the tools are known, or cannot be known for now.
    pub(super) async fn known(&self) {
        self.want();
        let mut state = self.state.subscribe();
        let is_known = |state: &State| match state {
            State::Idle | State::Starting => !self.listing().names.is_empty(),
            State::Up(_) | State::Down(_) | State::GivenUp(_) | State::Over => true,
        };
        // A server that takes longer is listed when it is there.
        let _ = timeout(self.settings.start, state.wait_for(is_known)).await;
    }

    fn want(&self) {
        if matches!(*self.state.borrow(), State::Idle | State::GivenUp(_)) {
            self.wanted.notify_one();
        }
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
        let mut state = self.state.subscribe();
        let settled = |state: &State| match state {
            State::Up(link) => !link.is_over(),
            State::GivenUp(_) | State::Over => true,
            State::Idle | State::Starting | State::Down(_) => false,
        };
        let found = state.wait_for(settled).await.map(|state| state.clone());
        match found {
            Ok(State::Up(link)) => Ok(link),
            Ok(State::GivenUp(why)) => Err(self.away(&why)),
            _ => Err(self.not_there("the gateway ends")),
        }
    }

    /// Says why no tools are known, while there should be some.
    pub(super) fn unlisted(&self) -> Option<Error> {
        if !self.listing().names.is_empty() || matches!(*self.state.borrow(), State::Up(_)) {
            return None;
        }
        Some(self.absent())
    }

    /// Says why the other server is not there: nothing was sent to it.
    pub(super) fn absent(&self) -> Error {
        match &*self.state.borrow() {
            State::Down(why) | State::GivenUp(why) => self.away(why),
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
            () = self.wanted.notified() => {}
            _ = engine.opened() => {}
            () = stop.cancelled() => {}
        }
        let mut n_failed = 0;
        while !stop.is_cancelled() {
            let from = engine.running_time();
            self.state.send_replace(State::Starting);
            let why = self.hold(stop).await;
            if stop.is_cancelled() {
                break;
            }
            let is_stable = engine.running_time().saturating_sub(from) >= STABLE;
            n_failed = if is_stable { 1 } else { n_failed + 1 };
            tracing::warn!(server = self.connect.name(), %why, said = %text::escape(&why.said), n_failed, "the wrapped server is away");
            let next = async {
                if n_failed > self.settings.restarts {
                    self.state.send_replace(State::GivenUp(Arc::new(why)));
                    self.wanted.notified().await;
                    let since = engine.running_time().saturating_sub(from);
                    engine.sleep(GIVEN_UP_PAUSE.saturating_sub(since)).await;
                } else {
                    self.state.send_replace(State::Down(Arc::new(why)));
                    let doubled = FIRST_PAUSE.saturating_mul(1 << (n_failed - 1).min(16));
                    engine.sleep(doubled.min(LONGEST_PAUSE)).await;
                }
            };
            tokio::select! {
                () = next => {}
                () = stop.cancelled() => {}
            }
        }
        self.state.send_replace(State::Over);
    }

    /// Makes a connection and holds it to its end.
    async fn hold(&self, stop: &CancellationToken) -> Why {
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
            let io: (_, _, Outbox) = (reader, writer, outbox);
            tokio::select! {
                why = link.run(io.0, io.1, io.2, self) => Err(why.to_owned()),
                why = self.talk(&link) => Err(why),
                why = &mut beside => Ok(why),
                () = stop.cancelled() => Err("the gateway ends".to_owned()),
            }
        };
        // The streams are closed now; what is under way is lost.
        link.end();
        match talked {
            Ok(why) => why,
            Err(words) => {
                end.cancel();
                // How a program ended says more than that its streams did.
                match timeout(END, beside).await {
                    Ok(why) if words == CLOSED => why,
                    Ok(why) => Why { words, ..why },
                    Err(_) => Why::new(words),
                }
            }
        }
    }

    /// Shakes hands, asks for the tools, and asks again whenever they changed; returns what went wrong.
    async fn talk(&self, link: &Arc<Link>) -> String {
        let begun = timeout(self.settings.start, self.begin(link)).await;
        match begun {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => return words(&failure),
            Err(_) => return "it did not answer the handshake in time".to_owned(),
        }
        tracing::info!(server = self.connect.name(), "the wrapped server is there");
        self.state.send_replace(State::Up(Arc::clone(link)));
        loop {
            self.changed.notified().await;
            match listing::ask(link, &self.settings).await {
                Ok(listing) => self.set(listing),
                Err(failure) => tracing::warn!(
                    reason = words(&failure),
                    "the changed tools of the wrapped server are not known"
                ),
            }
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
        if self.listing().is_like(&listing) {
            return;
        }
        *self.listing.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(listing);
        self.changes.tell();
    }
}

fn words(failure: &Failure) -> String {
    match failure {
        Failure::Lost { .. } => CLOSED.to_owned(),
        Failure::Refused(error) => {
            let said = text::escape(text::clip(&error.message, 300)).into_owned();
            format!("it refused the handshake with the error {}: {said}", error.code)
        }
    }
}

/// The parameters of `notifications/resources/updated`.
#[derive(Deserialize)]
struct Updated {
    uri: String,
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
            ("notifications/resources/updated", Some(params)) => {
                if let Ok(Updated { uri }) = serde_json::from_str(params.get()) {
                    self.notices.tell(Notice::ResourceUpdated(uri));
                }
            }
            _ => {}
        }
    }

    async fn noise(&self, line: &[u8]) {
        self.calls.line(Stream::Stdout, line).await;
    }

    fn asked(&self, method: &str, params: Option<&RawValue>) -> Answering {
        if let Some(asking) = self.askable.ask(method, params, self.calls.only()) {
            return asking;
        }
        let answer = match method {
            "ping" => Ok(Json::empty_object()),
            _ => Err(RpcError::no_method(text::clip(method, 100))),
        };
        Box::pin(async move { answer })
    }
}
