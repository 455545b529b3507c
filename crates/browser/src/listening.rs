//! The listener of the bridge: opened when the store is open, on the port of the last time.

use std::error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use raincheck_core::time::Timestamp;
use raincheck_loopback::endpoint::{Kind, Place};
use raincheck_loopback::{Error, Info, Options, Secret, Service, bind};
use raincheck_runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::bridge::Browser;
use crate::extension::{self, Pairing, Places};
use crate::wire::PROTOCOL;

/// What `GET /health` calls the server.
const NAME: &str = "browser-mcp";

/// How long a server that another one keeps from listening waits before it looks again.
const PAUSE: Duration = Duration::from_secs(2);

/// How the bridge listens.
#[derive(Clone, Debug)]
pub struct BridgeListener {
    places: Places,
    port: u16,
}

impl BridgeListener {
    /// Listens where the extension looks for it. Port 0 is the port of the last time, if it is free.
    #[must_use]
    pub const fn new(places: Places, port: u16) -> Self {
        Self { places, port }
    }

    /// Opens the listener once the store is open, and serves until `stop` fires. A server whose store
    /// belongs to another one never opens it.
    pub async fn serve(self, bridge: Browser, engine: Handle, stop: CancellationToken) {
        bridge.expect_listener();
        let opened = tokio::select! {
            opened = engine.opened() => opened,
            () = stop.cancelled() => false,
        };
        if !opened {
            return;
        }
        let is_ours = tokio::select! {
            () = self.wait_for_the_browser(&bridge) => true,
            () = stop.cancelled() => false,
        };
        // What was begun is ended: a listener that is dropped half-way leaves its endpoint file.
        if is_ours && let Some(service) = self.bind_apart(&bridge, engine.now()).await {
            service.run(stop).await;
        }
    }

    /// Waits while another server listens for the same extension.
    async fn wait_for_the_browser(&self, bridge: &Browser) {
        let mut was_told = false;
        loop {
            let (places, myself) = (self.places.clone(), std::process::id());
            let other = spawn_blocking(move || places.running()).await.ok().flatten();
            let Some(other) = other.filter(|other| other.pid != myself) else { break };
            bridge.owned_by(Some(other.pid));
            if !was_told {
                tracing::warn!(pid = other.pid, "the browser belongs to another browser-mcp");
                was_told = true;
            }
            sleep(PAUSE).await;
        }
        bridge.owned_by(None);
    }

    /// Binds the listener where files may be written on the way.
    async fn bind_apart(&self, bridge: &Browser, started_at: Timestamp) -> Option<Service> {
        let (listening, bridge) = (self.clone(), bridge.clone());
        let runtime = tokio::runtime::Handle::current();
        let bound = spawn_blocking(move || runtime.block_on(listening.bind(&bridge, started_at)));
        match bound.await {
            Ok(Ok(service)) => Some(service),
            Ok(Err(error)) => {
                let error: &dyn error::Error = &error;
                tracing::error!(error, "the extension cannot reach this server");
                None
            }
            Err(_) => None,
        }
    }

    async fn bind(&self, bridge: &Browser, started_at: Timestamp) -> Result<Service, Error> {
        let secret = Secret::kept(&self.places.secret())?;
        let path = self.places.endpoint().to_owned();
        let routes = bridge.clone();
        let options = Options {
            protocol: PROTOCOL,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)),
            kept_port: Some(self.places.port()),
            token: Some(secret.clone()),
            endpoint: Some(Place { path, kind: Kind::Browser, started_at }),
            ..Options::new(NAME)?
        };
        // Routes take memory, which a server without a browser has no use for.
        let options = options.serving_later(move || vec![routes.surface(&extension::origin())]);
        let (service, Info { port, url, instance_id, .. }) = bind(options).await?;
        bridge.listens_on(port);
        tracing::info!(url, "listening for the extension");
        if let Err(refusal) = self.places.pair_all(&Pairing::new(port, &secret, &instance_id)) {
            tracing::warn!(?refusal, "not every extension was told where this server listens");
        }
        Ok(service)
    }
}
