//! The task tools for programs that are no MCP client, such as the command line of the same user.

use std::sync::Arc;

use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::scope::Scope;
use raincheck_core::text;
use raincheck_runtime::Handle;

use crate::answer::{Answer, Refused};
use crate::caller::{Caller, Connection, SURFACE_CAP};
use crate::surface::{self, Desk, Layer, Links};
use crate::surfaces::canonical::{self, Tool};
use crate::wire::Fields;

/// An answer: an HTTP status and a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 200, or what the error table says.
    pub status: u16,
    /// What the tool answers, or `{"error": …}`.
    pub body: String,
}

/// Answers calls of the task tools, for every scope: the caller has proved to be the engine's owner.
#[derive(Clone, Debug)]
pub struct Control {
    desk: Desk,
    layers: Vec<Arc<dyn Layer>>,
}

/// What a call may name: everything but the beginning of work, which is a client's to ask for.
const TOOLS: &[Tool] =
    &[Tool::List, Tool::Status, Tool::Result, Tool::Logs, Tool::Cancel, Tool::Input];

impl Control {
    /// Answers for an engine; artifacts are listed with `links`.
    #[must_use]
    pub fn new(engine: Handle, links: Option<Arc<dyn Links>>) -> Self {
        Self { desk: Desk::new(engine, links), layers: Vec::new() }
    }

    /// Answers calls of the layers' own tools, too, such as those of cached responses.
    #[must_use]
    pub fn with_layers(mut self, layers: Vec<Arc<dyn Layer>>) -> Self {
        self.layers = layers;
        self
    }

    /// Answers `{"scope": …, "tool": …, "arguments": {…}}`. Once `closing` fires, waiting reads answer
    /// with what they have.
    ///
    /// # Cancel safety
    /// Dropping the future loses no cancel that was asked for.
    pub async fn call(&self, body: &[u8], closing: CancellationToken) -> Reply {
        let arrival = Instant::now();
        let answered = match self.read(body) {
            Ok(call) => self.answer(call, arrival, closing).await,
            Err(error) => Err(error.into()),
        };
        match answered {
            Ok(answer) => Reply { status: 200, body: answer.into_text() },
            Err(refused) => {
                let status = refused.error.kind.entry().http;
                Reply { status, body: Answer::refused(&refused).into_text() }
            }
        }
    }

    async fn answer(
        &self,
        Call { scope, tool, arguments }: Call<'_>,
        arrival: Instant,
        closing: CancellationToken,
    ) -> Result<Answer, Refused> {
        let connection = Connection { closing, ..Connection::new(scope) };
        let mut who = Caller::new(connection, arrival, SURFACE_CAP);
        match tool {
            Called::Task(tool) => canonical::answer(&self.desk, tool, &arguments, &mut who).await,
            Called::OfLayer(layer, tool) => {
                let call = surface::Call { tool, arguments };
                layer.call(&self.desk, call, &mut who).await
            }
        }
    }
}

/// What is called.
enum Called<'a> {
    /// A task tool.
    Task(Tool),
    /// A tool of a layer.
    OfLayer(&'a dyn Layer, String),
}

/// One call.
struct Call<'a> {
    scope: Scope,
    tool: Called<'a>,
    arguments: Json,
}

impl Control {
    /// Finds what a name stands for.
    fn find(&self, name: &str) -> Option<Called<'_>> {
        if let Some(tool) = TOOLS.iter().copied().find(|tool| tool.name() == name) {
            return Some(Called::Task(tool));
        }
        let has = |layer: &&Arc<dyn Layer>| layer.tools().iter().any(|tool| tool.name == name);
        let layer = self.layers.iter().find(has)?;
        Some(Called::OfLayer(&**layer, name.to_owned()))
    }

    fn read(&self, body: &[u8]) -> Result<Call<'_>, Error> {
        /// The member that is passed on as it is.
        #[derive(Deserialize)]
        struct Raw {
            #[serde(default)]
            arguments: Option<Json>,
        }

        let unsound = |why: String| Error::new(Kind::InvalidRequest, why);
        let text =
            std::str::from_utf8(body).map_err(|_| unsound("the call is not UTF-8".into()))?;
        let json =
            Json::parse(text).map_err(|error| unsound(format!("the call is no JSON: {error}")))?;
        let mut fields = Fields::read(&json, &["scope", "tool", "arguments"])?;
        let scope = fields.required::<String>("scope")?;
        if scope.is_empty() {
            return Err(fields.wrong("scope", "must not be empty"));
        }
        let name = fields.required::<String>("tool")?;
        let Some(tool) = self.find(&name) else {
            let name = text::escape(text::clip(&name, 100)).into_owned();
            let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name()).collect();
            let message = format!("no tool is named `{name}` here; there are {}", known.join(", "));
            return Err(Error::new(Kind::UnknownTool, message));
        };
        let raw: Raw = json.read().map_err(|error| unsound(error.to_string()))?;
        let arguments = raw.arguments.unwrap_or_else(Json::empty_object);
        Ok(Call { scope: Scope::new(scope), tool, arguments })
    }
}
