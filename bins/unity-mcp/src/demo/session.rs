//! A project, a server and an editor of the demo's own, and calls to the server.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raincheck::mcp::client::Client;
use raincheck_app::demo::Child;
use raincheck_app::instance;
use raincheck_app::paths::create_private;
use raincheck_unity::Places;
use raincheck_unity::package::{self, Force, Project, identity};
use serde_json::Value;
use tokio::time::Instant;

use super::editor::Editor;
use super::play::PROJECT;
use super::{Answer, Transcript, Unmet, expect};

/// Everything that the demo started.
pub(super) struct Session {
    pub(super) transcript: Transcript,
    folder: PathBuf,
    project: PathBuf,
    places: Places,
    server: Option<Server>,
    pub(super) editor: Option<Editor>,
}

/// A running server. Dropping it kills the process.
struct Server {
    child: Child,
    client: Client,
}

impl Session {
    /// Prepares a session in a folder; nothing runs yet.
    pub(super) fn new(folder: &Path, transcript: Transcript) -> Result<Self, Unmet> {
        let folder = folder.to_owned();
        create_private(&folder.join("state"))?;
        let project = folder.join(PROJECT);
        for part in ["Assets", "Packages", "ProjectSettings"] {
            fs::create_dir_all(project.join(part))?;
        }
        let version = project.join("ProjectSettings").join("ProjectVersion.txt");
        fs::write(version, "m_EditorVersion: 6000.0.30f1\n")?;
        let places = Places::of_project(&project);
        Ok(Self { transcript, folder, project, places, server: None, editor: None })
    }

    /// Writes the package into the project, as `install` does.
    pub(super) fn install(&self) -> Result<(), Unmet> {
        let start = Instant::now();
        let failed = |refusal| Unmet(format!("the package cannot be written: {refusal:?}"));
        let project = Project::find(&self.project).map_err(failed)?;
        let done = package::install(&project, Force::No).map_err(failed)?;
        let (package, n) = (identity(), done.written);
        let said = format!("{} {} is in Packages, {n} files", package.name, package.version);
        self.transcript.answer(start.elapsed(), &said)
    }

    /// Starts a server on the project.
    pub(super) async fn start_server(&mut self) -> Result<(), Unmet> {
        let start = Instant::now();
        let (child, reader, writer) = Child::start([
            "serve".as_ref(),
            "--project".as_ref(),
            self.project.as_os_str(),
            "--state-dir".as_ref(),
            self.folder.join("state").as_os_str(),
            "--runtime-dir".as_ref(),
            self.folder.join("run").as_os_str(),
        ])?;
        let client = Client::connect(reader, writer, "unity-mcp-demo").await?;
        let took = start.elapsed();
        let n_tools = client.tools().await?.len();
        let pid = child.pid().unwrap_or_default();
        self.server = Some(Server { child, client });
        self.transcript.answer(took, &format!("ready, process {pid}, {n_tools} tools"))
    }

    /// Starts the editor, which looks for the server by itself.
    pub(super) fn start_editor(&mut self) {
        self.editor = Some(Editor::start(self.places.endpoint(), &self.project));
    }

    /// Lets the client go, and waits for its server to follow.
    pub(super) async fn end_server(&mut self) -> Result<Duration, Unmet> {
        let Some(Server { child, client }) = self.server.take() else {
            return Ok(Duration::ZERO);
        };
        let start = Instant::now();
        client.close().await;
        child.ended().await?;
        let took = start.elapsed();
        let left = instance::look(&self.project.join("Library").join("Raincheck"));
        expect(left.is_empty(), || format!("the server left {left:?}"))?;
        let endpoint = self.places.endpoint();
        expect(!endpoint.exists(), || format!("the server left {}", endpoint.display()))?;
        Ok(took)
    }

    /// Calls a tool and shows the call; the caller shows what matters of the answer.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, Unmet> {
        let Some(server) = &self.server else { return Err(Unmet("no server runs".into())) };
        self.transcript.call(tool, &arguments.to_string())?;
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let start = Instant::now();
        let reply = server.client.call(tool, arguments).await?;
        Answer::read(&reply.text, reply.is_error, start.elapsed())
    }

    /// Ends everything. Returns how long the end of the server took.
    pub(super) async fn close(mut self) -> Result<Duration, Unmet> {
        if let Some(editor) = self.editor.take() {
            editor.close().await;
        }
        self.end_server().await
    }
}
