//! A server that is a child process, with a client at its standard streams.

use std::env;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use raincheck::mcp::client::Client;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{Unmet, expect};

/// How long a server may take to end once its client has gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running server. Dropping it kills the process.
pub(super) struct Server {
    child: Child,
    pub(super) client: Client,
}

impl Server {
    /// Starts a server with the configuration and the state in a folder.
    pub(super) async fn start(config: &Path, state: &Path, run: &Path) -> Result<Self, Unmet> {
        let mut command = Command::new(env::current_exe()?);
        for (name, _) in env::vars_os() {
            let is_ours = name.to_str().is_some_and(|name| name.starts_with("RAINCHECK_"));
            if is_ours && name != "RAINCHECK_LOG_LEVEL" {
                command.env_remove(name);
            }
        }
        if env::var_os("RAINCHECK_LOG_LEVEL").is_none() {
            command.env("RAINCHECK_LOG_LEVEL", "error");
        }
        command.arg("serve").arg("--config").arg(config);
        command.arg("--state-dir").arg(state).arg("--runtime-dir").arg(run);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(reader), Some(writer)) = (child.stdout.take(), child.stdin.take()) else {
            return Err(Unmet("the server has no standard streams".into()));
        };
        let client = Client::connect(reader, writer, "raincheck-demo").await?;
        Ok(Self { child, client })
    }

    /// Returns the number of the process, as long as it is not known to have ended.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Ends the process without a warning: this one, and nothing that it started.
    pub(super) async fn kill(&mut self) -> Result<ExitStatus, Unmet> {
        self.child.start_kill()?;
        let status = self.child.wait().await?;
        expect(!status.success(), || "the server ended before it was killed".into())?;
        Ok(status)
    }

    /// Lets the client go and waits for the server to follow.
    pub(super) async fn close(self) -> Result<(), Unmet> {
        let Self { mut child, client } = self;
        client.close().await;
        match timeout(PATIENCE, child.wait()).await {
            Ok(status) => {
                let status = status?;
                expect(status.success(), || format!("the server ended with {status}"))
            }
            Err(_) => {
                child.kill().await?;
                Err(Unmet("the server outlived its client and was killed".into()))
            }
        }
    }
}
