//! The shell around a connection's machine: a socket, a clock and the bridge.

use std::time::Duration;

use raincheck_loopback::websocket::{Socket, Upgrade};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backend::{Act, Ask, Backend, code};
use crate::bridge::Unity;
use crate::desk::stage::Move;
use crate::spelling::Key;

/// How much may be asked of a connection before it has been said.
const MAX_ASKS: usize = 256;

/// How long a message may still take to be sent once the server ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// A connection under way. Dropping it tells the bridge that it is over.
struct Connection<'a> {
    bridge: &'a Unity,
    backend: Box<dyn Backend>,
    asks: mpsc::Sender<Ask>,
    asked: mpsc::Receiver<Ask>,
    link: Option<(Key, u64)>,
}

/// What came.
enum Came {
    Acts(Vec<Act>),
    Ask(Ask),
}

/// Serves one connection to its end.
pub(crate) async fn serve(
    bridge: &Unity,
    upgrade: Upgrade,
    make: impl FnOnce(Instant) -> Box<dyn Backend>,
    stop: CancellationToken,
) {
    let Some(socket) = upgrade.socket().await else { return };
    let (asks, asked) = mpsc::channel(MAX_ASKS);
    let backend = make(bridge.now());
    let mut connection = Connection { bridge, backend, asks, asked, link: None };
    let opened = connection.backend.opened(bridge.now());
    connection.run(socket, opened, stop).await;
}

impl Connection<'_> {
    async fn run(&mut self, mut socket: Socket, opened: Vec<Act>, stop: CancellationToken) {
        let mut came = Came::Acts(opened);
        loop {
            let acts = match came {
                Came::Acts(acts) => acts,
                Came::Ask(ask) => self.asked(ask),
            };
            match self.perform(&mut socket, acts, &stop).await {
                Ok(()) => {}
                Err(Some((code, words))) => {
                    self.let_go();
                    socket.close(code, words).await;
                    return;
                }
                Err(None) => return,
            }
            let (due, clock) = (self.backend.due(), self.bridge.clock());
            came = tokio::select! {
                Some(ask) = self.asked.recv() => Came::Ask(ask),
                text = socket.next() => Came::Acts(match text {
                    Ok(text) => self.backend.heard(self.bridge.now(), &text),
                    Err(end) => self.backend.broke(end),
                }),
                () = clock.sleep_until(due) => Came::Acts(self.backend.look(self.bridge.now())),
                () = stop.cancelled() => {
                    Came::Ask(Ask::Leave(code::GOING_AWAY, "the server ends"))
                }
            };
        }
    }

    fn asked(&mut self, ask: Ask) -> Vec<Act> {
        if let Ask::Execute(order) = &ask {
            let mut desk = self.bridge.desk();
            let link = self.link.as_ref();
            if link.is_none_or(|(key, serial)| desk.linked(key, *serial).is_none()) {
                // Another connection took this one's place, and the editor listens to that.
                desk.step(order.request, Move::Return);
                return Vec::new();
            }
            // From here on the editor may have it.
            desk.step(order.request, Move::Send);
        }
        self.backend.asked(self.bridge.now(), ask)
    }

    /// Does what the machine wants; the way to close is an error.
    async fn perform(
        &mut self,
        socket: &mut Socket,
        acts: Vec<Act>,
        stop: &CancellationToken,
    ) -> Result<(), Option<(u16, &'static str)>> {
        let mut acts: std::collections::VecDeque<Act> = acts.into();
        while let Some(act) = acts.pop_front() {
            match act {
                Act::Send(text) => {
                    let due = self.backend.due();
                    if !send(self.bridge, socket, (text, due), stop).await {
                        return Err(None);
                    }
                }
                Act::Attach(introduction) => {
                    let attached = self.bridge.attach(*introduction, self.asks.clone()).await;
                    let Some(attached) = attached else {
                        return Err(Some((code::POLICY, "too many editors are connected")));
                    };
                    self.link = Some((attached.key, attached.serial));
                    for ask in attached.asks {
                        acts.extend(self.backend.asked(self.bridge.now(), ask));
                    }
                }
                Act::Say(word) => {
                    let Some((key, serial)) = &self.link else { continue };
                    if let Some(ask) = self.bridge.hear(key, *serial, word).await {
                        acts.extend(self.backend.asked(self.bridge.now(), ask));
                    }
                }
                Act::Close(code, words) => return Err(Some((code, words))),
            }
        }
        Ok(())
    }

    /// Gives back what was not written, and says that the connection is over.
    fn let_go(&mut self) {
        self.asked.close();
        while let Ok(ask) = self.asked.try_recv() {
            if let Ask::Execute(order) = ask {
                self.bridge.desk().step(order.request, Move::Return);
            }
        }
        if let Some((key, serial)) = self.link.take() {
            self.bridge.detach(&key, serial);
        }
    }
}

/// Sends a message; `false` when that fails, when the other end has neither read it nor said anything by
/// `due`, which is some seconds away at the least, or when the server ends.
async fn send(
    bridge: &Unity,
    socket: &mut Socket,
    (text, due): (String, Instant),
    stop: &CancellationToken,
) -> bool {
    let clock = bridge.clock();
    let due = due.max(bridge.now() + bridge.settings().accept);
    tokio::select! {
        biased;
        is_sent = socket.send(text) => is_sent,
        () = clock.sleep_until(due) => false,
        () = async {
            stop.cancelled().await;
            clock.sleep_until(bridge.now() + FAREWELL).await;
        } => false,
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.let_go();
    }
}
