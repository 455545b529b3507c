//! What a vocabulary must say, and what wraps every call.

mod desk;
mod extension;
mod links;
mod notices;
mod shown;

use std::fmt;

use async_trait::async_trait;

use raincheck_core::content::Json;
use raincheck_core::error::Error;
use raincheck_core::store::Durability;
use raincheck_core::tool::{Needs, ToolSpec};
use raincheck_runtime::View;

use crate::answer::{Answer, Refused};
use crate::call::Told;
use crate::caller::Caller;

pub use self::desk::Desk;
pub use self::extension::Extension;
pub use self::links::Links;
pub use self::notices::{Notice, Notices};
pub use self::shown::Shown;

pub(crate) use self::desk::Face;
pub(crate) use self::shown::Definition;

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// Its arguments, as they were written.
    pub arguments: Json,
}

/// A call that was answered, as the layers see it.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The call, with its arguments as they were written, before any layer took them.
    pub call: &'a Call,
    /// The surface that answered, in whose words a layer refuses.
    pub surface: &'a dyn Surface,
}

/// A request for anything else than a tool.
#[derive(Clone, Debug)]
pub struct Method {
    /// Its name, such as `tasks/get`.
    pub name: String,
    /// The id of the request, as JSON.
    pub id: Json,
    /// Its parameters, as they were written; an empty object when there are none.
    pub params: Json,
}

/// One vocabulary: which tools stand in the list, and how their calls and answers are worded.
///
/// A surface is registered with [`Options::offer`](crate::Options::offer) and knows no other.
#[async_trait]
pub trait Surface: fmt::Debug + Send + Sync + 'static {
    /// Returns its tools in the order of the list: its own, and those of the engine that it shows.
    fn tools(&self, engine: &[ToolSpec]) -> Vec<Shown>;

    /// Returns further names that its tools answer to, without standing in the list.
    fn aliases(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Returns its part of the `instructions`, under 2 KiB: some clients cut the rest.
    fn practices(&self, durability: Durability) -> String;

    /// Makes a call of one of its tools.
    ///
    /// # Errors
    /// What [`refuse`](Self::refuse) puts into words.
    ///
    /// # Cancel safety
    /// Dropping the future loses no task that was accepted.
    async fn call(&self, desk: &Desk, call: Call, who: &mut Caller) -> Result<Told, Refused>;

    /// Puts into words what became of a call.
    fn write(&self, desk: &Desk, told: Told, who: &Caller) -> Answer;

    /// Puts a failure into words.
    fn refuse(&self, desk: &Desk, refused: &Refused) -> Answer;

    /// Names who else speaks in its answers, such as `the page`.
    fn whose(&self) -> &'static str {
        "the tool"
    }
}

/// What wraps the calls of every surface. Each method has a default that does nothing.
///
/// Layers are registered with [`Options::wrap`](crate::Options::wrap). Arguments pass through them in
/// the order of registration, answers the other way round. What a layer answers to calls of its own tools
/// passes through none.
#[async_trait]
pub trait Layer: fmt::Debug + Send + Sync + 'static {
    /// Notes that a client means to stay: called once, when the engine is started. `whose` names who else
    /// speaks in the answers of the first surface.
    fn start(&self, _desk: &Desk, _whose: &'static str) {}

    /// Hears what a client says that it can do, at its handshake.
    fn greeted(&self, _capabilities: &Json) {}

    /// Returns its part of the `instructions`, in a line or two; empty when it has none.
    fn practices(&self) -> String {
        String::new()
    }

    /// Returns what a tool's entry in the list says beside it, an object for its `_meta`.
    fn meta(&self, _tool: &Shown) -> Option<Json> {
        None
    }

    /// Tells whether it answers `resources/list`, `resources/templates/list` and `resources/read`.
    fn has_resources(&self) -> bool {
        false
    }

    /// Returns the extension of the protocol that it serves, where it serves one.
    fn extension(&self) -> Option<Extension> {
        None
    }

    /// Tells whether a tool that needs this can only be called by a client that declares the layer's
    /// extension.
    fn is_needed(&self, _needs: Needs) -> bool {
        false
    }

    /// Tells whether it answers `prompts/list` and `prompts/get`.
    fn has_prompts(&self) -> bool {
        false
    }

    /// Returns what it tells every client by itself; asked for each connection.
    fn notices(&self) -> Option<Notices> {
        None
    }

    /// Returns tools of its own, which stand behind those of the surfaces.
    fn tools(&self) -> Vec<Shown> {
        Vec::new()
    }

    /// Answers a call of one of its own tools.
    ///
    /// # Errors
    /// What the first surface of the server puts into words.
    async fn call(&self, _desk: &Desk, call: Call, _who: &mut Caller) -> Result<Answer, Refused> {
        let message = format!("no tool is named `{}`", call.tool);
        Err(Error::new(raincheck_core::error::Kind::UnknownTool, message).into())
    }

    /// Changes the arguments of a call before its surface sees them.
    ///
    /// # Errors
    /// What the surface then puts into words; nothing runs.
    async fn take(&self, _desk: &Desk, arguments: Json, _who: &Caller) -> Result<Json, Error> {
        Ok(arguments)
    }

    /// Answers for a task that goes on, instead of the surface: a result object of `tools/call`.
    fn ticket(&self, _desk: &Desk, _live: &View, _who: &Caller) -> Option<Json> {
        None
    }

    /// Changes an answer before it goes out.
    async fn finish(
        &self,
        _desk: &Desk,
        answer: Answer,
        _of: Answered<'_>,
        _who: &Caller,
    ) -> Answer {
        answer
    }

    /// Answers a request for something else than a tool; `None` when it does not know the method.
    async fn method(
        &self,
        _desk: &Desk,
        _method: &Method,
        _who: &mut Caller,
    ) -> Option<Result<Json, Error>> {
        None
    }
}
