//! The server of a simulated world, started again as often as it is killed.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use raincheck_browser::{Browser, Settings};
use raincheck_core::ids::{ArtifactId, TaskId};
use raincheck_core::time::Timestamp;
use raincheck_loopback::{Accept, Secret, over};
use raincheck_runtime::{Clock, Ids, Options, start};
use raincheck_testkit::dice::Dice;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turmoil::net::{TcpListener, TcpStream};

use super::callers;
use super::fault::{Fault, confirm_early};
use super::history::{Log, lock, now};
use super::plan::Call;
use crate::http::SECRET;
use crate::store::Store;

pub(crate) const HOST: &str = "server";

pub(crate) const PORT: u16 = 4711;

/// What a server finds when it starts.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) store: Arc<Store>,
    pub(crate) log: Log,
    pub(crate) calls: Arc<Vec<(Duration, Call)>>,
    pub(crate) ids: Arc<SeededIds>,
    pub(crate) fault: Option<Fault>,
}

/// The simulated network.
struct Net(TcpListener);

impl Accept for Net {
    type Io = TcpStream;

    fn is_local(_: &TcpStream) -> bool {
        true
    }

    async fn accept(&mut self) -> Option<TcpStream> {
        loop {
            if let Ok((stream, _)) = self.0.accept().await {
                return Some(stream);
            }
        }
    }
}

/// The time of the simulation, which goes on while a server is down.
struct SimClock {
    begun: Timestamp,
    start: Instant,
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        self.begun + self.start.elapsed()
    }
}

pub(crate) struct SeededIds(Mutex<Dice>);

impl SeededIds {
    pub(crate) fn new(dice: Dice) -> Self {
        Self(Mutex::new(dice))
    }
}

impl Ids for SeededIds {
    fn task(&self, now: Timestamp) -> TaskId {
        let mut dice = self.0.lock().expect("dice");
        let mut random = [0; 10];
        random[..8].copy_from_slice(&dice.next().to_be_bytes());
        TaskId::from_parts(now.as_millis().unsigned_abs(), random)
    }

    fn artifact(&self) -> ArtifactId {
        ArtifactId::from("art")
    }
}

/// Limits that are short, so that a world is over soon.
fn settings() -> Settings {
    Settings {
        run_timeout: Duration::from_secs(3),
        grace: Duration::from_secs(2),
        reconnect_grace: Duration::from_secs(6),
        linger: Duration::from_secs(1),
        max_hold: Duration::from_secs(5),
        ..Settings::default()
    }
}

pub(crate) async fn serve(setup: Setup) -> turmoil::Result {
    let Setup { store, log, calls, ids, fault } = setup;
    lock(&log).note(now(), "the server starts");
    store.close();
    let bridge = Browser::new(settings());
    let mut options = Options::in_memory().with_store(store).with_tools(Arc::new(bridge.clone()));
    let begun = Timestamp::from_millis(1_700_000_000_000) + now();
    options.clock = Arc::new(SimClock { begun, start: Instant::now() });
    options.ids = ids;
    options.reattach_grace = Duration::from_secs(8);
    let (handle, service) = start(options);
    let stop = CancellationToken::new();
    let mut running = JoinSet::new();
    running.spawn(service.run(stop.clone()));
    running.spawn(bridge.beside(handle.clone(), stop.clone()));
    let mut options = raincheck_loopback::Options::new("browser-mcp")?;
    options.token = Some(Secret::from_bytes(SECRET));
    let mut surface = bridge.surface("chrome-extension://a");
    if fault == Some(Fault::ConfirmsBeforeCommit) {
        surface.routes = confirm_early(surface.routes);
    }
    options.surfaces.push(surface);
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
    let (listener, _) = over(Net(listener), (Ipv4Addr::LOCALHOST, PORT).into(), options)?;
    running.spawn(listener.run(stop));
    running.spawn(callers::call(handle.clone(), log.clone(), calls));
    running.spawn(callers::read(handle, log));
    while let Some(ended) = running.join_next().await {
        ended?;
    }
    Ok(())
}
