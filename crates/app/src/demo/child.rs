//! A server that is a child process of the demo.

use std::env;
use std::ffi::OsStr;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{self, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::{Unmet, expect};

/// How long a server may take to end once its client has gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server of this binary. Dropping it kills the process.
#[derive(Debug)]
pub struct Child(process::Child);

impl Child {
    /// Starts this binary with some arguments, and returns its standard streams for a client. What
    /// the environment says of servers does not reach it.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start<A: AsRef<OsStr>>(
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<(Self, ChildStdout, ChildStdin), Unmet> {
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
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        match (child.stdout.take(), child.stdin.take()) {
            (Some(reader), Some(writer)) => Ok((Self(child), reader, writer)),
            _ => Err(Unmet("the server has no standard streams".into())),
        }
    }

    /// Returns the number of the process, as long as it is not known to have ended.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.0.id()
    }

    /// Ends the process without a warning: this one, and nothing that it started.
    ///
    /// # Errors
    /// When it had ended by itself.
    pub async fn kill(&mut self) -> Result<ExitStatus, Unmet> {
        self.0.start_kill()?;
        let status = self.0.wait().await?;
        expect(!status.success(), || "the server ended before it was killed".into())?;
        Ok(status)
    }

    /// Waits for the end of a server whose client has gone.
    ///
    /// # Errors
    /// When it does not end, or not well.
    pub async fn ended(mut self) -> Result<(), Unmet> {
        match timeout(PATIENCE, self.0.wait()).await {
            Ok(status) => {
                let status = status?;
                expect(status.success(), || format!("the server ended with {status}"))
            }
            Err(_) => {
                self.0.kill().await?;
                Err(Unmet("the server outlived its client and was killed".into()))
            }
        }
    }
}
