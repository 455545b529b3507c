//! A server that is a child process, with a client at its standard streams.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitStatus;

use raincheck::mcp::client::Client;
use raincheck_app::demo::{Child, Unmet};

/// A running server. Dropping it kills the process.
pub(super) struct Server {
    child: Child,
    pub(super) client: Client,
}

impl Server {
    /// Starts a server with the configuration and the state in a folder.
    pub(super) async fn start(config: &Path, state: &Path, run: &Path) -> Result<Self, Unmet> {
        let word = OsStr::new;
        let (child, reader, writer) = Child::start([
            word("serve"),
            word("--config"),
            config.as_os_str(),
            word("--state-dir"),
            state.as_os_str(),
            word("--runtime-dir"),
            run.as_os_str(),
        ])?;
        let client = Client::connect(reader, writer, "raincheck-demo").await?;
        Ok(Self { child, client })
    }

    /// Returns the number of the process, as long as it is not known to have ended.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.pid()
    }

    /// Ends the process without a warning: this one, and nothing that it started.
    pub(super) async fn kill(&mut self) -> Result<ExitStatus, Unmet> {
        self.child.kill().await
    }

    /// Lets the client go and waits for the server to follow.
    pub(super) async fn close(self) -> Result<(), Unmet> {
        let Self { child, client } = self;
        client.close().await;
        child.ended().await
    }
}
