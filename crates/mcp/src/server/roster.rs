//! The tools as they are now: which one is whose, and the list of them.

use std::sync::{Arc, PoisonError, RwLock};

use rmcp::model::Tool;

use raincheck_runtime::Handle;

use super::list;
use super::options::Options;
use super::registry::{Clash, Registry};

/// Which tool is whose, and the list, for one set of the engine's tools.
pub(super) struct Roster {
    version: u64,
    pub(super) registry: Registry,
    /// What `tools/list` shows.
    pub(super) list: Vec<Tool>,
}

impl Roster {
    fn new(options: &Options, engine: &Handle) -> Result<Self, Clash> {
        // Read first: what changes meanwhile is looked at again.
        let version = engine.specs_version();
        let registry = Registry::new(options, &engine.specs())?;
        let listed = |shown| list::tool(shown, registry.layers());
        Ok(Self { version, list: registry.shown().map(listed).collect(), registry })
    }
}

/// The roster that follows the engine's tools.
pub(super) struct Live(RwLock<Arc<Roster>>);

impl Live {
    /// Makes the first one.
    pub(super) fn new(options: &Options, engine: &Handle) -> Result<Self, Clash> {
        Ok(Self(RwLock::new(Arc::new(Roster::new(options, engine)?))))
    }

    /// Returns the one for the tools that the engine has now. Where changed tools clash, that of before
    /// stays.
    pub(super) fn now(&self, options: &Options, engine: &Handle) -> Arc<Roster> {
        let roster = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        if roster.version == engine.specs_version() {
            return roster;
        }
        match Roster::new(options, engine) {
            Ok(changed) => {
                let changed = Arc::new(changed);
                let mut roster = self.0.write().unwrap_or_else(PoisonError::into_inner);
                *roster = Arc::clone(&changed);
                changed
            }
            Err(clash) => {
                tracing::warn!(%clash, "the changed tools are not taken");
                roster
            }
        }
    }
}
