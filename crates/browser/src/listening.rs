//! The listener of the bridge: opened when the store is open, on the port of the last time.

use std::net::{Ipv4Addr, SocketAddr};

use raincheck_core::time::Timestamp;
use raincheck_loopback::endpoint::{Kind, Place};
use raincheck_loopback::keeper::{self, Owner, Unreachable};
use raincheck_loopback::{Error, ErrorKind, Info, Options, Secret, Service, bind};
use raincheck_runtime::Handle;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::bridge::Browser;
use crate::extension::{self, Pairing, Places};
use crate::owner::{self, Locks, in_runtime, in_state};
use crate::wire::PROTOCOL;

/// What `GET /health` calls the server.
const NAME: &str = "browser-mcp";

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
        bridge.set_owner(Owner::Unknown);
        let opened = tokio::select! {
            opened = engine.opened() => opened,
            () = stop.cancelled() => false,
        };
        if !opened {
            return;
        }
        let open = || self.listen(&bridge, engine.now());
        let tell = |owner: &Owner| {
            owner::log(owner);
            bridge.set_owner(owner.clone());
        };
        keeper::keep(open, tell, stop).await;
    }

    /// Takes the browser and binds the listener, where files may be written on the way.
    async fn listen(
        &self,
        bridge: &Browser,
        started_at: Timestamp,
    ) -> Result<(Service, Locks), Owner> {
        let (listening, bridge) = (self.clone(), bridge.clone());
        let runtime = tokio::runtime::Handle::current();
        let listened = spawn_blocking(move || {
            let locks =
                Locks::take(&listening.places.runtime_lock(), &listening.places.state_lock())?;
            let bound = runtime.block_on(listening.bind(&bridge, started_at));
            bound.map(|service| (service, locks)).map_err(Owner::Unreachable)
        });
        listened.await.unwrap_or_else(|_| {
            Err(Owner::Unreachable(Unreachable::new(
                "opening the listener failed",
                "report the fault",
            )))
        })
    }

    async fn bind(&self, bridge: &Browser, started_at: Timestamp) -> Result<Service, Unreachable> {
        let secret = Secret::kept(&self.places.secret()).map_err(|error| in_state(&error))?;
        let path = self.places.endpoint().to_owned();
        let routes = bridge.clone();
        let options = Options {
            protocol: PROTOCOL,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)),
            kept_port: Some(self.places.port()),
            token: Some(secret.clone()),
            endpoint: Some(Place { path, kind: Kind::Browser, started_at }),
            ..Options::new(NAME).map_err(|error| elsewhere(&error))?
        };
        // Routes take memory, which a server without a browser has no use for.
        let options = options.serving_later(move || vec![routes.surface(&extension::origin())]);
        let (service, Info { port, url, instance_id, .. }) =
            bind(options).await.map_err(|error| {
                let is_of_file = error.kind() == ErrorKind::File;
                if is_of_file { in_runtime(&error) } else { elsewhere(&error) }
            })?;
        bridge.listens_on(port);
        tracing::info!(url, "listening for the extension");
        if let Err(refusal) = self.places.pair_all(&Pairing::new(port, &secret, &instance_id)) {
            tracing::warn!(?refusal, "not every extension was told where this server listens");
        }
        Ok(service)
    }
}

fn elsewhere(error: &Error) -> Unreachable {
    Unreachable::because(error, "run: browser-mcp doctor")
}
