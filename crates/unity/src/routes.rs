//! The route of editors, and who serves them.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::StatusCode;
use raincheck_loopback::websocket::{self, Upgrade};
use raincheck_loopback::{Accept, Bearer, Options, Policy, Secret, Surface, over};
use raincheck_runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backend::Backend;
use crate::bridge::Unity;
use crate::connection;
use crate::coplay::Coplay;
use crate::session::{Rules, Session};
use crate::specs;
use crate::wire::proof;

/// Where editors that speak the native protocol knock.
const NATIVE: &str = "/unity";

/// Where CoplayDev's package knocks.
const COPLAY: &str = "/hub/plugin";

/// How many connections may wait to be served.
const BACKLOG: usize = 64;

/// Makes the machine of a connection that is open since an instant.
pub(crate) type Make = Box<dyn FnOnce(&Unity, Instant) -> Box<dyn Backend> + Send>;

/// Connections on their way from the listener to whoever serves them.
pub(crate) struct Sockets {
    sender: mpsc::Sender<(Upgrade, Make)>,
}

/// The other end of [`Sockets`].
pub(crate) struct Incoming {
    receiver: mpsc::Receiver<(Upgrade, Make)>,
}

/// Makes the way from a listener to whoever serves its connections.
pub(crate) fn way() -> (Sockets, Incoming) {
    let (sender, receiver) = mpsc::channel(BACKLOG);
    (Sockets { sender }, Incoming { receiver })
}

impl Clone for Sockets {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone() }
    }
}

/// A route for WebSockets, and how the machines of its connections are made.
#[derive(Clone)]
struct Door {
    sockets: Sockets,
    max_message: usize,
    make: Arc<dyn Fn() -> Make + Send + Sync>,
}

async fn knock(State(door): State<Door>, request: Request) -> Response {
    let (response, upgrade) = match websocket::accept(request, door.max_message) {
        Ok(accepted) => accepted,
        Err(refusal) => return refusal,
    };
    match door.sockets.sender.try_send((upgrade, (door.make)())) {
        Ok(()) => response,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// Makes a surface of one route. No page may knock there, and who is there proves itself afterwards.
pub(crate) fn surface(
    route: &str,
    sockets: Sockets,
    max_message: usize,
    make: impl Fn() -> Make + Send + Sync + 'static,
) -> Surface {
    let door = Door { sockets, max_message, make: Arc::new(make) };
    let policy = Policy { bearer: Bearer::Handshake, max_body: 0, ..Policy::default() };
    Surface { routes: Router::new().route(route, any(knock)).with_state(door), policy }
}

impl Unity {
    /// Returns the route of the native protocol.
    pub(crate) fn native(&self, secret: Secret, port: u16, sockets: Sockets) -> Surface {
        let settings = self.settings();
        let tools = specs::TOOLS.iter().map(|entry| entry.named(settings));
        let rules = Arc::new(Rules {
            secret,
            port,
            max_message: settings.max_message,
            max_chunked: settings.max_chunked,
            hello: settings.hello,
            auth: settings.auth,
            silence: settings.silence,
            status_interval: settings.status_interval,
            tools: tools.collect::<Vec<_>>(),
        });
        let max_message = settings.max_message;
        surface(NATIVE, sockets, max_message, move || {
            let rules = Arc::clone(&rules);
            Box::new(move |bridge: &Self, now| {
                let nonce = bridge.engine().map_or(0, Handle::nonce);
                let id = bridge.engine().map_or(0, Handle::nonce);
                let (id, nonce) = (format!("{id:032x}"), proof::nonce(nonce));
                Box::new(Session::new(rules, now, id, nonce))
            })
        })
    }

    /// Returns the route of CoplayDev's package.
    pub(crate) fn coplay(&self, sockets: Sockets) -> Surface {
        let settings = self.settings();
        let limits = (settings.hello, settings.silence);
        // It has no chunks: what it has to say comes in one message.
        surface(COPLAY, sockets, settings.max_chunked, move || {
            Box::new(move |bridge: &Self, now| {
                let id = bridge.engine().map_or(0, Handle::nonce);
                Box::new(Coplay::new(format!("{id:032x}"), limits, now))
            })
        })
    }

    /// Serves connections until `stop` fires.
    pub(crate) async fn serve_sockets(&self, mut incoming: Incoming, stop: CancellationToken) {
        let mut serving = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some((upgrade, make)) = incoming.receiver.recv() => {
                    let (bridge, stop) = (self.clone(), stop.clone());
                    serving.spawn(async move {
                        let made = bridge.clone();
                        let make = move |now| make(&made, now);
                        connection::serve(&bridge, upgrade, make, stop).await;
                    });
                }
                Some(ended) = serving.join_next() => {
                    if ended.is_err_and(|error| error.is_panic()) {
                        tracing::error!("the connection of an editor panicked and is closed");
                    }
                }
            }
        }
        // Each says goodbye, and waits a moment for the other end.
        while serving.join_next().await.is_some() {}
    }

    /// Listens on any network that can accept, which goes by `address`: for simulations, and for whoever has
    /// sockets of its own. With a secret it serves the native protocol, without one that of CoplayDev's
    /// package.
    ///
    /// # Errors
    /// When the listener cannot be made.
    pub async fn serve_over<A: Accept>(
        self,
        accept: A,
        address: SocketAddr,
        secret: Option<Secret>,
        stop: CancellationToken,
    ) -> Result<(), raincheck_loopback::Error> {
        let bridge = self.clone();
        // One that cannot be read was told.
        let _ = spawn_blocking(move || bridge.restore_choices()).await;
        let (sockets, incoming) = way();
        let mut options = Options::new(crate::NAME)?;
        options.token.clone_from(&secret);
        options.surfaces.push(match secret {
            Some(secret) => self.native(secret, address.port(), sockets),
            None => self.coplay(sockets),
        });
        let (service, _) = over(accept, address, options)?;
        tokio::join!(service.run(stop.clone()), self.serve_sockets(incoming, stop));
        Ok(())
    }
}
