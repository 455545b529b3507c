//! The listener of the bridge: opened when the store is open, on the port of the last time.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use raincheck_core::time::Timestamp;
use raincheck_loopback::endpoint::{Kind, Place};
use raincheck_loopback::keeper::{self, Owner, Unreachable};
use raincheck_loopback::ownership::{self, OwnerLock, Taken};
use raincheck_loopback::{Error, ErrorKind, Info, Options, Secret, Service, bind};
use raincheck_runtime::Handle;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::bridge::Unity;
use crate::places::Places;
use crate::routes::{self, Sockets};

const DOCTOR: &str = "run: unity-mcp doctor";

/// How the bridge listens.
#[derive(Clone, Debug)]
pub struct UnityListener {
    places: Places,
    port: u16,
    coplay: Option<u16>,
}

impl UnityListener {
    /// Listens where editors look for it. Port 0 is the port of the last time, if it is free.
    #[must_use]
    pub const fn new(places: Places, port: u16) -> Self {
        Self { places, port, coplay: None }
    }

    /// Listens for CoplayDev's package as well, on a port of its own and without a secret: the package has
    /// none.
    #[must_use]
    pub fn with_coplay(self, port: u16) -> Self {
        Self { coplay: Some(port), ..self }
    }

    /// Opens the listener once the store is open, and serves until `stop` fires. A server whose store
    /// belongs to another one never opens it.
    pub async fn serve(self, bridge: Unity, engine: Handle, stop: CancellationToken) {
        bridge.set_owner(Owner::Unknown);
        let opened = tokio::select! {
            opened = engine.opened() => opened,
            () = stop.cancelled() => false,
        };
        if !opened {
            return;
        }
        let (sockets, incoming) = routes::way();
        let open = || self.open(&bridge, engine.now(), sockets.clone());
        let tell = |owner: &Owner| {
            log(owner);
            bridge.set_owner(owner.clone());
        };
        let serving = bridge.serve_sockets(incoming, stop.clone());
        let beside = async {
            if let Some(port) = self.coplay
                && bridge.is_ours(&stop).await
            {
                let open = || open_coplay(&bridge, port, sockets.clone());
                keeper::keep(open, log_coplay, stop.clone()).await;
            }
        };
        tokio::join!(keeper::keep(open, tell, stop.clone()), serving, beside);
    }

    /// Takes the project and binds the listener, where files may be written on the way.
    async fn open(
        &self,
        bridge: &Unity,
        started_at: Timestamp,
        sockets: Sockets,
    ) -> Result<(Service, OwnerLock), Owner> {
        let (listening, bridge) = (self.clone(), bridge.clone());
        let runtime = tokio::runtime::Handle::current();
        let listened = spawn_blocking(move || {
            let lock = take(&listening.places.lock())?;
            // Before any editor comes.
            bridge.restore_choices();
            let bound = runtime.block_on(listening.bind(bridge, started_at, sockets));
            bound.map(|service| (service, lock)).map_err(Owner::Unreachable)
        });
        let failed = || Unreachable::new("opening the listener failed", "report the fault");
        listened.await.unwrap_or_else(|_| Err(Owner::Unreachable(failed())))
    }

    async fn bind(
        &self,
        bridge: Unity,
        started_at: Timestamp,
        sockets: Sockets,
    ) -> Result<Service, Unreachable> {
        let path = self.places.endpoint().to_owned();
        let secret = Secret::random().map_err(|error| elsewhere(&error))?;
        let options = Options {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)),
            kept_port: Some(self.places.port()),
            token: Some(secret.clone()),
            endpoint: Some(Place { path, kind: Kind::Unity, started_at }),
            ..Options::new(crate::NAME).map_err(|error| elsewhere(&error))?
        };
        // The port is known before anybody is served.
        let known = Arc::new(OnceLock::new());
        let listening = Arc::clone(&known);
        let options = options.serving_later(move || {
            let port = listening.get().copied().unwrap_or_default();
            vec![bridge.native(secret, port, sockets)]
        });
        let (service, Info { port, url, .. }) = bind(options).await.map_err(|error| {
            let is_of_file = error.kind() == ErrorKind::File;
            if is_of_file { in_project(&error) } else { elsewhere(&error) }
        })?;
        // It was not set before.
        let _ = known.set(port);
        tracing::info!(url, "listening for editors");
        Ok(service)
    }
}

async fn open_coplay(bridge: &Unity, port: u16, sockets: Sockets) -> Result<(Service, ()), Owner> {
    let unreachable = |error: Error| Owner::Unreachable(elsewhere(&error));
    let mut options = Options::new(crate::NAME).map_err(unreachable)?;
    options.address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    options.surfaces.push(bridge.coplay(sockets));
    let (service, Info { url, .. }) = bind(options).await.map_err(unreachable)?;
    tracing::info!(url, "listening for CoplayDev's package");
    Ok((service, ()))
}

fn log_coplay(owner: &Owner) {
    if let Owner::Unreachable(Unreachable { why, next }) = owner {
        tracing::error!(next, "CoplayDev's package cannot find this server: {why}");
    }
}

fn take(path: &Path) -> Result<OwnerLock, Owner> {
    match ownership::take(path) {
        Ok(Taken::Ours(lock)) => Ok(lock),
        Ok(Taken::Theirs(pid)) => Err(Owner::Other(pid)),
        Err(error) => Err(Owner::Unreachable(in_project(&error))),
    }
}

fn elsewhere(error: &Error) -> Unreachable {
    Unreachable::because(error, DOCTOR)
}

fn in_project(error: &Error) -> Unreachable {
    Unreachable::because(
        error,
        "make the project's Library/Raincheck writable and yours alone, or name another project: --project DIR",
    )
}

fn log(owner: &Owner) {
    match owner {
        Owner::Unknown | Owner::Ours => {}
        Owner::Other(pid) => tracing::warn!(pid, "the editor belongs to another unity-mcp"),
        Owner::Unreachable(Unreachable { why, next }) => {
            tracing::error!(next, "editors cannot find this server: {why}");
        }
    }
}
