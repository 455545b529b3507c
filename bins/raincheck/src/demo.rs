//! `raincheck demo`: a real server that is killed once, a real MCP client, three real programs.
//!
//! Everything that is printed was answered by the server, and is checked before it is printed: the
//! demo ends with 0 only if all of it happened.

mod acts;
mod programs;
mod server;
mod session;
mod transcript;

use std::fmt;

use raincheck_app::Failure;
use tokio::runtime;

use session::Session;
use transcript::Transcript;

pub(crate) use programs::ROLES;

/// Something that did not happen as it should.
#[derive(Debug)]
struct Unmet(String);

impl<E: std::error::Error> From<E> for Unmet {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Goes on only if something holds.
fn expect(holds: bool, what: impl FnOnce() -> String) -> Result<(), Unmet> {
    if holds { Ok(()) } else { Err(Unmet(what())) }
}

/// Runs the demo.
pub(crate) fn run() -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let shown = match runtime {
        Ok(runtime) => runtime.block_on(show()),
        Err(error) => Err(error.into()),
    };
    shown.map_err(|unmet| {
        let next = "run: raincheck doctor, and the demo again with RAINCHECK_LOG_LEVEL=debug";
        Failure::failed(format!("the demo did not go as it should: {unmet}"), next)
    })
}

async fn show() -> Result<(), Unmet> {
    let transcript = Transcript::new();
    let folder = tempfile::Builder::new().prefix("raincheck-demo-").tempdir()?;
    let mut session = Session::open(folder.path(), transcript).await?;
    let acted = acts::all(&mut session).await;
    let ended = session.close().await;
    let removed = folder.close().map_err(Unmet::from);
    acted?;
    let took = ended?;
    removed?;
    transcript.heading("The client goes, and the server with it")?;
    transcript.answer(took, "the server ended and left nothing behind")
}
