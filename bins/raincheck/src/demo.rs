//! `raincheck demo`: a real server that is killed once, a real MCP client, four real programs.
//!
//! Everything that is printed was answered by the server, and is checked before it is printed: the
//! demo ends with 0 only if all of it happened.

mod acts;
mod programs;
mod server;
mod session;

use raincheck_app::Failure;
use raincheck_app::demo::{self, Answer, Transcript, Unmet, expect};

use session::Session;

pub(crate) use programs::ROLES;

/// Runs the demo.
pub(crate) fn run() -> Result<(), Failure> {
    demo::run("raincheck", show())
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
