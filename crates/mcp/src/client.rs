//! A small MCP client over two streams, for demonstrations and checks.

use rmcp::model::{CallToolRequestParams, ClientConfig, Implementation, JsonObject};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use tokio::io::{AsyncRead, AsyncWrite};

/// A failure of the client or of the server it talks to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session could not be opened.
    #[error("failed to open the session: {0}")]
    Handshake(String),
    /// A request was refused, or the server went away.
    #[error("the server refused `{what}`: {reason}")]
    Request {
        /// What was asked for.
        what: String,
        /// What the server said.
        reason: String,
    },
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The text block, JSON as a rule.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
}

/// A session with an MCP server.
#[derive(Debug)]
pub struct Client {
    session: RunningService<RoleClient, ClientConfig>,
}

impl Client {
    /// Opens a session on two streams, such as those of a child process, under the client's own name.
    ///
    /// # Errors
    /// When the other end does not speak MCP.
    pub async fn connect(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        name: &str,
    ) -> Result<Self, Error> {
        let session = rmcp::serve_client(introduction(name), (reader, writer)).await;
        Ok(Self { session: session.map_err(|error| Error::Handshake(error.to_string()))? })
    }

    /// Returns the names of the server's tools.
    ///
    /// # Errors
    /// When the server refuses or goes away.
    pub async fn tools(&self) -> Result<Vec<String>, Error> {
        let tools = self.session.list_all_tools().await;
        let tools = tools.map_err(|error| refused("tools/list", &error))?;
        Ok(tools.into_iter().map(|tool| tool.name.into_owned()).collect())
    }

    /// Calls a tool with an object of arguments.
    ///
    /// # Errors
    /// When the server refuses the request itself; a call that fails is a [`Reply`].
    pub async fn call(
        &self,
        tool: &str,
        arguments: serde_json::Map<String, serde_json::Value>,
    ) -> Result<Reply, Error> {
        let arguments: JsonObject = arguments;
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = self.session.call_tool(request).await;
        let result = result.map_err(|error| refused(tool, &error))?;
        let texts = result.content.iter().filter_map(|block| block.as_text());
        let text = texts.map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n");
        Ok(Reply { text, is_error: result.is_error.unwrap_or(false) })
    }

    /// Ends the session and closes what was written to.
    pub async fn close(self) {
        if let Err(error) = self.session.cancel().await {
            tracing::debug!(%error, "the session broke at its end");
        }
    }
}

fn introduction(name: &str) -> ClientConfig {
    let mut introduction = ClientConfig::default();
    introduction.client_info = Implementation::new(name, env!("CARGO_PKG_VERSION"));
    introduction
}

fn refused(what: &str, error: &ServiceError) -> Error {
    Error::Request { what: what.to_owned(), reason: error.to_string() }
}
