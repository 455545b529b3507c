//! What waits for a client that means to stay: the engine, and the search for the owner of its store.

use raincheck_mcp::Starter;
use tokio::sync::oneshot;

/// What is begun when a client means to stay.
#[derive(Debug)]
pub(crate) struct Begin {
    /// Told at once.
    pub(crate) wanted: oneshot::Sender<()>,
    /// Told when the engine is to run.
    pub(crate) engine: oneshot::Sender<()>,
}

impl Begin {
    /// Makes what begins everything at once.
    pub(crate) fn starter(self) -> Starter {
        let Self { wanted, engine } = self;
        Box::new(move || {
            // Nobody waits for them once the server ends.
            let _ = (wanted.send(()), engine.send(()));
        })
    }
}

/// The far ends of a [`Begin`].
pub(crate) struct Begun {
    pub(crate) wanted: oneshot::Receiver<()>,
    pub(crate) engine: oneshot::Receiver<()>,
}

/// Makes both ends.
pub(crate) fn begins() -> (Begin, Begun) {
    let (wanted, is_wanted) = oneshot::channel();
    let (engine, is_begun) = oneshot::channel();
    (Begin { wanted, engine }, Begun { wanted: is_wanted, engine: is_begun })
}
