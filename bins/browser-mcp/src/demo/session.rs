//! A server and a browser of the demo's own, and calls to the server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use raincheck::mcp::client::Client;
use raincheck_app::demo::Child;
use raincheck_app::instance;
use raincheck_app::paths::create_private;
use raincheck_browser::extension::{self, Places};
use serde_json::Value;
use tokio::time::Instant;

use super::browser::Browser;
use super::page::Page;
use super::{Answer, Transcript, Unmet, expect};
use crate::BINARY;

/// Everything that the demo started.
pub(super) struct Session {
    pub(super) transcript: Transcript,
    folder: PathBuf,
    places: Places,
    server: Option<Server>,
    browser: Option<Browser>,
    page: Option<Page>,
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
        let places = Places::new(&folder.join("state"), &folder.join("run"));
        Ok(Self { transcript, folder, places, server: None, browser: None, page: None })
    }

    /// Starts a server, on the folders of the last one.
    pub(super) async fn start_server(&mut self) -> Result<(), Unmet> {
        let start = Instant::now();
        let (child, reader, writer) = Child::start([
            "serve".as_ref(),
            "--state-dir".as_ref(),
            self.folder.join("state").as_os_str(),
            "--runtime-dir".as_ref(),
            self.folder.join("run").as_os_str(),
        ])?;
        let client = Client::connect(reader, writer, "browser-mcp-demo").await?;
        let took = start.elapsed();
        let tools = client.tools().await?.join(", ");
        let pid = child.pid().unwrap_or_default();
        self.server = Some(Server { child, client });
        self.transcript.answer(took, &format!("ready, process {pid}, tools: {tools}"))
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
        let left = instance::look(&self.folder.join("state").join(BINARY));
        expect(left.is_empty(), || format!("the server left {left:?}"))?;
        let endpoint = self.places.endpoint();
        expect(!endpoint.exists(), || format!("the server left {}", endpoint.display()))?;
        Ok(took)
    }

    /// Writes the extension, which the next server is paired with.
    pub(super) async fn install_extension(&self) -> Result<(), Unmet> {
        let folder = self.extension();
        extension::install(&self.places, &folder)
            .await
            .map_err(|refusal| Unmet(format!("the extension cannot be written: {refusal:?}")))
    }

    /// Starts a browser, and returns the address of the page that it is to show.
    pub(super) async fn start_browser(&mut self) -> Result<String, Unmet> {
        let page = Page::open().await?;
        let url = page.url.clone();
        self.page = Some(page);
        let (extension, folder) = (self.extension(), self.folder.join("browser"));
        let browser = Browser::start(self.transcript, &self.places, &extension, &folder).await?;
        self.browser = Some(browser);
        Ok(url)
    }

    fn extension(&self) -> PathBuf {
        self.folder.join("extension")
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

    /// Ends everything. Returns how long the end of the server took, and the last lines of the browser.
    pub(super) async fn close(mut self) -> Result<(Duration, Vec<String>), Unmet> {
        let said = match self.browser.take() {
            Some(browser) => browser.close().await,
            None => Ok(Vec::new()),
        };
        let took = self.end_server().await?;
        Ok((took, said?))
    }
}
