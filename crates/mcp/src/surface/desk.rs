//! What every surface works with.

use std::fmt;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use serde_json::Value;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::task::{TaskDetails, TaskRecord};
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{Handle, View};

use super::Links;
use crate::answer::{Answer, Mark};
use crate::caller::Caller;
use crate::wire::Validators;

/// The server that a desk belongs to, as layers use it.
#[async_trait]
pub(crate) trait Face: fmt::Debug + Send + Sync {
    /// Writes the result of `tools/call` that a call whose task ended is answered with.
    async fn result_of(&self, ended: View, who: &Caller) -> Json;
}

/// The engine, and what belongs to it at its face. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Desk {
    engine: Handle,
    validators: Arc<Validators>,
    links: Option<Arc<dyn Links>>,
    /// Weak, since the server has the desk.
    face: Option<Weak<dyn Face>>,
}

impl Desk {
    pub(crate) fn new(engine: Handle, links: Option<Arc<dyn Links>>) -> Self {
        Self { engine, validators: Arc::default(), links, face: None }
    }

    /// Says which server it belongs to.
    pub(crate) fn of_server(mut self, face: Weak<dyn Face>) -> Self {
        self.face = Some(face);
        self
    }

    /// Writes the result of `tools/call` that a call whose task has ended is answered with: in the words of
    /// the tool's surface, with what the layers make of it.
    ///
    /// # Errors
    /// `storage_unavailable` at a desk without a server, and at the end of it.
    pub(crate) async fn result_of(&self, ended: View, who: &Caller) -> Result<Json, Error> {
        match self.face.as_ref().and_then(Weak::upgrade) {
            Some(face) => Ok(face.result_of(ended, who).await),
            None => Err(Error::new(Kind::StorageUnavailable, "the server is shutting down")),
        }
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
