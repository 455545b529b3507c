//! The task tools for programs that are no MCP client, such as the command line of the same user.

use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::scope::Scope;
use raincheck_core::text;
use raincheck_runtime::Handle;

use crate::answer::Answer;
use crate::arguments::Fields;
use crate::budget::{Budget, SURFACE_CAP};
use crate::call::Caller;
use crate::server::{Facade, Options};
use crate::tools::canonical::{self, Tool};

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
pub struct Control(Facade);

/// What a call may name: everything but the beginning of work, which is a client's to ask for.
const TOOLS: &[Tool] = &[Tool::List, Tool::Status, Tool::Result, Tool::Logs, Tool::Cancel];

impl Control {
    /// Makes the calls of a surface available; its scope does not count.
    #[must_use]
    pub fn new(engine: Handle, options: Options) -> Self {
        Self(Facade::new(engine, options, Box::new(|| ())))
    }

    /// Answers `{"scope": …, "tool": …, "arguments": {…}}`. Once `closing` fires, waiting reads answer
    /// with what they have.
    ///
    /// # Cancel safety
    /// Dropping the future loses no cancel that was asked for.
    pub async fn call(&self, body: &[u8], closing: CancellationToken) -> Reply {
        let arrival = Instant::now();
        let answered = match read(body) {
            Ok(call) => self.answer(call, arrival, closing).await,
            Err(error) => Err(error),
        };
        match answered {
            Ok(answer) => Reply { status: 200, body: answer.into_text() },
            Err(error) => {
                Reply { status: error.kind.entry().http, body: Answer::error(&error).into_text() }
            }
        }
    }

    async fn answer(
        &self,
        Call { scope, tool, arguments }: Call,
        arrival: Instant,
        closing: CancellationToken,
    ) -> Result<Answer, Error> {
        let mut caller = Caller {
            scope,
            budget: Budget::new(arrival, SURFACE_CAP),
            listener: None,
            cancelled: CancellationToken::new(),
            closing,
        };
        canonical::answer(&self.0, tool, &arguments, &mut caller).await
    }
}

/// One call.
struct Call {
    scope: Scope,
    tool: Tool,
    arguments: Json,
}

fn read(body: &[u8]) -> Result<Call, Error> {
    /// The member that is passed on as it is.
    #[derive(Deserialize)]
    struct Raw {
        #[serde(default)]
        arguments: Option<Json>,
    }

    let unsound = |why: String| Error::new(Kind::InvalidRequest, why);
    let text = std::str::from_utf8(body).map_err(|_| unsound("the call is not UTF-8".into()))?;
    let json =
        Json::parse(text).map_err(|error| unsound(format!("the call is no JSON: {error}")))?;
    let mut fields = Fields::read(&json, &["scope", "tool", "arguments"])?;
    let scope = fields.required::<String>("scope")?;
    if scope.is_empty() {
        return Err(fields.wrong("scope", "must not be empty"));
    }
    let name = fields.required::<String>("tool")?;
    let Some(tool) = TOOLS.iter().copied().find(|tool| tool.name() == name) else {
        let name = text::escape(text::clip(&name, 100)).into_owned();
        let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name()).collect();
        let message = format!("no tool is named `{name}` here; there are {}", known.join(", "));
        return Err(Error::new(Kind::UnknownTool, message));
    };
    let raw: Raw = json.read().map_err(|error| unsound(error.to_string()))?;
    let arguments = raw.arguments.unwrap_or_else(Json::empty_object);
    Ok(Call { scope: Scope::new(scope), tool, arguments })
}
