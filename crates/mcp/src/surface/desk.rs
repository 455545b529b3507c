//! What every surface works with.

use std::sync::Arc;

use serde_json::Value;

use raincheck_core::error::Error;
use raincheck_core::task::{TaskDetails, TaskRecord};
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::Handle;

use super::Links;
use crate::answer::Mark;
use crate::wire::Validators;

/// The engine, and what belongs to it at its face. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Desk {
    engine: Handle,
    validators: Arc<Validators>,
    links: Option<Arc<dyn Links>>,
}

impl Desk {
    pub(crate) fn new(engine: Handle, links: Option<Arc<dyn Links>>) -> Self {
        let validators = Arc::new(Validators::new(&engine.specs()));
        Self { engine, validators, links }
    }

    /// Returns the engine.
    #[must_use]
    pub const fn engine(&self) -> &Handle {
        &self.engine
    }

    /// Checks inputs against the schema of a tool [TOOL-3].
    ///
    /// # Errors
    /// `invalid_params` naming up to five faults by their JSON Pointers.
    pub fn check(&self, spec: &ToolSpec, inputs: &Value) -> Result<(), Error> {
        self.validators.check(spec, inputs)
    }

    /// Draws the mark of one answer.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark::of(self.engine.nonce())
    }

    /// Returns a link to each artifact, good until the task expires; none where nothing serves them.
    pub(crate) async fn links(&self, record: &TaskRecord, details: &TaskDetails) -> Vec<String> {
        match (&self.links, record.expires_at()) {
            (Some(links), Some(expires)) if !details.artifacts.is_empty() => {
                links.write(&details.artifacts, expires).await.unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }
}
