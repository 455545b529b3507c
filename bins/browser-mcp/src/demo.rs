//! `browser-mcp demo`: a real server, a real MCP client, and a Chromium with the extension.
//!
//! Where no Chromium is found, an extension that is simulated stands in for it, and the demo says so.
//! Everything that is printed was answered by the server, and is checked before it is printed: the
//! demo ends with 0 only if all of it happened.

mod acts;
mod browser;
mod chromium;
mod page;
mod scripts;
mod session;
mod simulated;

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
    let folder = tempfile::Builder::new().prefix("browser-mcp-demo-").tempdir()?;
    let mut session = Session::new(folder.path(), transcript)?;
    let acted = tokio::select! {
        acted = acts::all(&mut session) => acted,
        () = told => Err(Unmet("it was told to end".into())),
    };
    let ended = session.close().await;
    let removed = folder.close().map_err(Unmet::from);
    if let Err(Unmet(why)) = acted {
        let said = ended.map(|(_, said)| said).unwrap_or_default().join("\n");
        return Err(Unmet(if said.is_empty() {
            why
        } else {
            format!("{why}; the browser's last words:\n{said}")
        }));
    }
    let (took, _) = ended?;
    removed?;
    transcript.heading("The browser and the client go, and the server with them")?;
    transcript.answer(took, "the server ended and left nothing behind")
}
