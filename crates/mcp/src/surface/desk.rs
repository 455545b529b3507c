//! What every surface works with.

use std::sync::Arc;

use serde_json::Value;

use raincheck_core::error::Error;
use raincheck_core::task::{TaskDetails, TaskRecord};
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::Handle;

use super::Links;
use crate::answer::{Answer, Mark};
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

    /// Writes an answer in which somebody else speaks, with the mark that follows from its bytes [CALL-8].
    pub fn fence(&self, write: impl FnOnce(&Mark) -> Answer) -> Answer {
        let drawn = self.draw();
        let answer = write(&drawn);
        let mark = self.seal(&answer, &drawn);
        answer.sealed(&drawn, &mark)
    }

    /// As [`Desk::fence`], for an answer with links: they may differ from one reading to the next
    /// [RESULT-1], so that the mark does not follow from them.
    pub fn fence_linked(
        &self,
        links: Vec<String>,
        write: impl Fn(&Mark, Vec<String>) -> Answer,
    ) -> Answer {
        if links.is_empty() {
            return self.fence(|mark| write(mark, links));
        }
        let drawn = self.draw();
        let mark = self.seal(&write(&drawn, Vec::new()), &drawn);
        write(&drawn, links).sealed(&drawn, &mark)
    }

    /// Draws a mark that no text can hold yet.
    fn draw(&self) -> Mark {
        Mark::of(self.engine.nonce())
    }

    fn seal(&self, answer: &Answer, drawn: &Mark) -> Mark {
        answer.seal(drawn, |parts| self.engine.seal("answer", parts))
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
