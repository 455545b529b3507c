//! Another MCP server behind ours: its tools are called as tasks, and nothing of it has to change.
//!
//! A [`Gateway`] is a tool set and an executor. It reaches the other server over lines of JSON-RPC: of a
//! child process, of a URL, or of a handler in this process. What that server says stays the text it is:
//! arguments and results are passed on as they were written.
//!
//! The rooms of this folder, from the bottom: `message` reads lines, `link` is one connection, `connect`
//! makes one, `calls` knows which calls are under way and hears what is said about them, `listing` and
//! `outcome` read what the other server names and answers, `upstream` holds a connection and makes another
//! when it ends (`restarts` says when), `tools` is what the engine sees, `passage` passes on
//! resources and prompts, `asking` the questions of the other server, `traced` the trace of a request.

mod asking;
mod calls;
mod child;
mod connect;
mod handler;
mod link;
mod listing;
mod message;
mod outcome;
mod passage;
#[cfg(feature = "url")]
mod remote;
mod restarts;
mod settings;
mod tools;
mod traced;
mod upstream;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use raincheck_runtime::Handle;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

pub use self::child::Command;
#[cfg(feature = "url")]
pub use self::remote::{BadRemote, Remote};
pub use self::settings::{Adjust, Named, Settings};
/// What an MCP server written with `rmcp` implements.
pub use rmcp::ServerHandler;

use self::connect::Connect;
use self::upstream::Upstream;

/// Another MCP server, as a tool set of ours. Cloning is cheap.
///
/// The engine is given a clone ([`ToolSet`](raincheck_runtime::ToolSet)), and another one
/// [runs](Self::run) beside it. The other server is started when somebody asks for its tools, and again
/// when it ends; a call that was under way then fails as `peer_lost` and is not made again.
#[derive(Clone)]
pub struct Gateway(Arc<Upstream>);

impl Gateway {
    /// Puts a program in front of which nothing stands yet: it speaks MCP on its standard streams.
    #[must_use]
    pub fn command(command: Command, settings: Settings) -> Self {
        Self::over(command, settings)
    }

    /// Reaches a server behind a URL, over Streamable HTTP.
    #[cfg(feature = "url")]
    #[must_use]
    pub fn remote(remote: Remote, settings: Settings) -> Self {
        Self::over(remote, settings)
    }

    /// Wraps a handler of this process. It gets a connection of its own; when that breaks it gets another.
    ///
    /// ```
    /// use raincheck_mcp::gateway::{Gateway, ServerHandler, Settings};
    ///
    /// struct Existing;
    /// impl ServerHandler for Existing {}
    ///
    /// let gateway = Gateway::handler(Existing, Settings::default());
    /// # drop(gateway);
    /// ```
    #[must_use]
    pub fn handler<H: ServerHandler>(handler: H, settings: Settings) -> Self {
        Self::over(handler::InProcess::new(handler), settings)
    }

    /// Reaches a server over streams of lines that `open` makes, such as those of a socket. It is called
    /// again when a connection ends. `name` is how the server is called in errors.
    #[must_use]
    pub fn streams<O, F, R, W>(name: &str, open: O, settings: Settings) -> Self
    where
        O: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = std::io::Result<(R, W)>> + Send + 'static,
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self::over(connect::Opened::new(name, open), settings)
    }

    fn over(connect: impl Connect, settings: Settings) -> Self {
        Self(Arc::new(Upstream::new(Box::new(connect), settings)))
    }

    /// Holds the connection to the other server until `stop` fires; then the other server is ended. Takes
    /// under a second for that.
    ///
    /// # Cancel safety
    /// Dropping the future ends the other server without the courtesy of a goodbye.
    pub async fn run(self, engine: Handle, stop: CancellationToken) {
        self.0.run(&engine, &stop).await;
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gateway").field(&self.0.settings).finish()
    }
}
