//! What a layer tells every client by itself.

use tokio::sync::broadcast;

/// How many notices a slow client may be behind before it misses some.
const CAPACITY: usize = 64;

/// Something that a layer tells every client that is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The list of resources is another.
    ResourcesChanged,
    /// The list of prompts is another.
    PromptsChanged,
}

/// Tells clients of notices. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Notices(broadcast::Sender<Notice>);

impl Notices {
    /// Begins with nobody who listens.
    #[must_use]
    pub fn new() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }

    /// Tells everybody who is connected now.
    pub fn tell(&self, notice: Notice) {
        // Nobody may be connected.
        let _ = self.0.send(notice);
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.0.subscribe()
    }
}

impl Default for Notices {
    fn default() -> Self {
        Self::new()
    }
}
