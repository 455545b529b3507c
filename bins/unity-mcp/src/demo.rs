//! `unity-mcp demo`: a real server, a real MCP client, and an editor that is simulated over a real socket.
//!
//! Everything that is printed was answered by the server, and is checked before it is printed: the demo
//! ends with 0 only if all of it happened. What the editor would do is acted out by `editor`.

mod acts;
mod editor;
mod play;
mod session;

use raincheck_app::demo::{self, Answer, Transcript, Unmet, expect};
use raincheck_app::{Failure, lifecycle};
use tokio_util::sync::CancellationToken;

use crate::BINARY;

use session::Session;

/// Runs the demo.
pub(crate) fn run() -> Result<(), Failure> {
    demo::run(BINARY, show())
}

async fn show() -> Result<(), Unmet> {
    let stop = CancellationToken::new();
    let told = lifecycle::until_told((stop.clone(), stop), true)?;
    let transcript = Transcript::new();
    let folder = tempfile::Builder::new().prefix("unity-mcp-demo-").tempdir()?;
    let mut session = Session::new(folder.path(), transcript)?;
    let acted = tokio::select! {
        acted = acts::all(&mut session) => acted,
        () = told => Err(Unmet("it was told to end".into())),
    };
    let ended = session.close().await;
    let removed = folder.close().map_err(Unmet::from);
    acted?;
    let took = ended?;
    removed?;
    transcript.heading("The editor and the client go, and the server with them")?;
    transcript.answer(took, "the server ended and left nothing behind")
}
