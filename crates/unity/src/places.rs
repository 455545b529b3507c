//! Where the bridge keeps what it needs to be found.

use std::path::{Path, PathBuf};

use raincheck_loopback::client::Connection;
use raincheck_loopback::endpoint::{self, Endpoint};
use raincheck_loopback::{can_listen, port};
use tokio::task::spawn_blocking;

/// Where the bridge keeps what it needs to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    endpoint: PathBuf,
}

impl Places {
    /// Names the places inside of a project.
    #[must_use]
    pub fn of_project(project: &Path) -> Self {
        Self { endpoint: project.join("Library").join("Raincheck").join("endpoint.json") }
    }

    /// Names the places below the folder of what runs, for a server without a project.
    #[must_use]
    pub fn of_runtime(runtime: &Path) -> Self {
        Self { endpoint: runtime.join("unity").join("endpoint.json") }
    }

    /// Returns the file that tells editors where the server listens.
    #[must_use]
    pub fn endpoint(&self) -> &Path {
        &self.endpoint
    }

    /// Returns the lock of who has the endpoint file.
    pub(crate) fn lock(&self) -> PathBuf {
        self.endpoint.with_file_name("endpoint.lock")
    }

    pub(crate) fn port(&self) -> PathBuf {
        self.endpoint.with_file_name("port")
    }

    /// Asks the server of the endpoint file to prove that it is the one that wrote it; `None` when there is
    /// no such server.
    ///
    /// # Errors
    /// What answered instead.
    pub async fn reach(&self) -> Option<Result<Endpoint, String>> {
        let path = self.endpoint.clone();
        let read = spawn_blocking(move || {
            endpoint::read(&path).ok().flatten().filter(Endpoint::is_running)
        });
        let server = read.await.ok().flatten()?;
        let proved = Connection::open(&server).await;
        Some(proved.map(|_| server).map_err(|error| error.to_string()))
    }

    /// Returns the port that the next server asks for when somebody else has it. Works with blocking
    /// calls.
    #[must_use]
    pub fn taken_port(&self, asked: u16) -> Option<u16> {
        let port = if asked == 0 { port::last(&self.port()).unwrap_or(0) } else { asked };
        can_listen(port).is_err().then_some(port)
    }
}
