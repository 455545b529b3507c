//! How a server presents itself, and what it is made of.

use std::sync::Arc;

use crate::caller::ClientTimeouts;
use crate::surface::{Layer, Links, Surface};

/// Starts what must not be started by a mere probe: stores, locks, ports.
pub type Starter = Box<dyn FnOnce() + Send>;

/// How a server presents itself, which surfaces it has, and what wraps them.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name the server gives itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether objects are sent as `structuredContent` as well.
    pub is_structured: bool,
    /// After what time clients give up.
    pub client_timeouts: ClientTimeouts,
    /// Writes links to artifacts; without it they are listed without one.
    pub links: Option<Arc<dyn Links>>,
    /// The vocabularies, in the order of the list; none stands for the canonical one.
    pub surfaces: Vec<Arc<dyn Surface>>,
    /// What wraps the calls of all of them, the outermost last.
    pub layers: Vec<Arc<dyn Layer>>,
}

impl Options {
    /// Presents the server as `raincheck` of a version. It speaks canonically unless a surface is
    /// [offered](Self::offer).
    #[must_use]
    pub fn new(version: impl Into<String>) -> Self {
        Self {
            name: "raincheck".into(),
            version: version.into(),
            is_structured: false,
            client_timeouts: ClientTimeouts::default(),
            links: None,
            surfaces: Vec::new(),
            layers: Vec::new(),
        }
    }

    /// Adds a surface. Tools are listed in the order in which their surfaces were offered.
    #[must_use]
    pub fn offer(mut self, surface: impl Surface) -> Self {
        self.surfaces.push(Arc::new(surface));
        self
    }

    /// Wraps the calls of every surface into a layer, outside of those that were added before.
    #[must_use]
    pub fn wrap(mut self, layer: impl Layer) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }
}
