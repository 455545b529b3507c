//! The built server, the extension it installs, and a real Chromium that shows pages of `tests/pages`.
//!
//! A [`Rig`] is one server and one browser for all the steps of a test; one rig lives at a time, so that
//! a busy machine starts one browser. Every wait ends with the condition itself.

mod acting;
mod asked;
mod awaits;
mod batches;
mod beside;
mod changes;
mod clients;
mod declared;
mod device;
mod guarded;
mod hard;
mod output;
mod pages;
mod pairing;
#[path = "../../src/demo/chromium.rs"]
mod program;
mod reading;
mod recorded;
mod tabs;
mod traces;
mod traffic;
mod zoo;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use raincheck_app::demo::Unmet;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use crate::server::{Server, is_live};
use crate::{command, folder};

use pages::Pages;

/// One browser at a time.
static TURN: Mutex<()> = Mutex::const_new(());

/// How long one call waits, in milliseconds.
const WAIT_MS: u64 = 20_000;

/// How many calls a condition has to come true.
const CALLS: u32 = 60;

/// How long a condition has to come true.
const PATIENCE: Duration = Duration::from_secs(120);

/// Limits that no machine is too slow for.
const PATIENT: [&str; 6] =
    ["--accept-ms", "60000", "--run-ms", "120000", "--reconnect-grace-s", "120"];

/// A server, a browser with its extension, and pages.
pub(crate) struct Rig {
    server: Server,
    chromium: program::Chromium,
    pages: Pages,
    folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Rig {
    /// Starts everything, and waits until the browser is connected.
    pub(crate) async fn start() -> Self {
        let turn = TURN.lock().await;
        let folder = folder();
        let mut install = command(folder.path(), &["extension", "install", "extension"]);
        let installed = install.stdin(Stdio::null()).output().expect("it runs");
        assert!(installed.status.success(), "{installed:?}");
        let server = serve(folder.path(), &[]).await;
        Self::of(turn, folder, server).await
    }

    /// Starts a browser with the extension of a folder and its server, and waits until it is connected.
    async fn of(turn: MutexGuard<'static, ()>, folder: tempfile::TempDir, server: Server) -> Self {
        let (extension, browser) = (folder.path().join("extension"), folder.path().join("b"));
        std::fs::create_dir(&browser).expect("created");
        let program = program::find().await.unwrap_or_else(|missing| {
            panic!("{missing}; get one with: apt-get install -y chromium, or set CHROMIUM")
        });
        let chromium = program::Chromium::start(&program, &extension, &browser);
        let chromium = chromium.unwrap_or_else(|unmet| panic!("{}: {unmet}", program.version));
        let pages = Pages::open().await;
        let rig = Self { server, chromium, pages, folder, _turn: turn };
        until_a_browser_is_there(&rig.server).await;
        rig
    }

    /// Starts a server of another client, which the one of this rig serves.
    pub(crate) async fn beside(&self) -> Beside {
        let serve = command(self.folder.path(), &["serve", "--log-level", "info"]);
        Beside(Server::of(serve).await)
    }

    /// Kills the server of this rig, after one more was started that is served by it.
    pub(crate) async fn owner_is_killed(&mut self) {
        let Beside(next) = self.beside().await;
        std::mem::replace(&mut self.server, next).kill().await;
    }

    /// Returns the folder that files are uploaded from and output is saved in.
    pub(crate) fn files(&self) -> std::path::PathBuf {
        self.folder.path().join("files")
    }

    /// Returns the folder of the server's state.
    pub(crate) fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    /// Returns the address of a page, at the origin that most pages have.
    pub(crate) fn here(&self, page: &str) -> String {
        format!("{}/{page}", self.pages.here)
    }

    /// Returns the address of a page at another origin.
    pub(crate) fn there(&self, page: &str) -> String {
        format!("{}/{page}", self.pages.there)
    }

    /// Returns the address of a page at an origin that the browser gives a process of its own.
    pub(crate) fn elsewhere(&self, page: &str) -> String {
        if page.is_empty() {
            self.pages.elsewhere()
        } else {
            format!("{}/{page}", self.pages.elsewhere())
        }
    }

    /// Makes one call and returns its answer, whatever it is.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.server.call(tool, arguments).await
    }

    /// Gives a command and returns how it ended. Arguments with `action` are for `interact`, with `what`
    /// for `observe`.
    pub(crate) async fn end(&self, mut arguments: Value) -> Value {
        let tool = if arguments["action"].is_null() { "observe" } else { "interact" };
        let members = arguments.as_object_mut().expect("an object");
        members.entry("wait_ms").or_insert(json!(WAIT_MS));
        let begun = self.call(tool, arguments).await;
        self.end_of(begun).await
    }

    /// Reads the command of an answer until it has ended.
    pub(crate) async fn end_of(&self, answer: Value) -> Value {
        end_of(&self.server, answer).await
    }

    /// Gives a command that has to be complete, and returns its answer.
    pub(crate) async fn done(&self, arguments: Value) -> Value {
        let said = arguments.to_string();
        let answer = self.end(arguments).await;
        assert_eq!(answer["status"], "complete", "{said}: {answer}");
        answer
    }

    /// Runs a script in a tab and returns its value.
    pub(crate) async fn value(&self, tab_id: &Value, script: &str) -> Value {
        let call = json!({ "action": "execute_js", "script": script, "tab_id": tab_id });
        self.done(call).await["result"].take()
    }

    /// Opens a page in a tab of its own, in front of the others, and returns the tab.
    pub(crate) async fn open_in_front(&self, url: &str) -> Value {
        let call = json!({ "action": "tab_new", "url": url, "background": false });
        self.done(call).await["tab_id"].take()
    }

    /// Opens a page in a tab of its own and returns the tab.
    pub(crate) async fn open(&self, url: &str) -> Value {
        let opened = self.done(json!({ "action": "tab_new", "url": url })).await;
        let tab_id = opened["tab_id"].clone();
        assert!(tab_id.is_i64(), "{opened}");
        tab_id
    }

    /// Asks until an answer is as it should be, and returns that one.
    pub(crate) async fn until(&self, arguments: Value, is_met: impl Fn(&Value) -> bool) -> Value {
        let mut answer = Value::Null;
        let asked = async {
            while answer.is_null() || !is_met(&answer) {
                answer = self.end(arguments.clone()).await;
            }
        };
        // How often is no measure: what is answered from memory is answered at once.
        let is_over = timeout(PATIENCE, asked).await;
        assert!(is_over.is_ok(), "{arguments} never came true: {answer}");
        answer
    }

    /// Has every page of this browser crash.
    #[cfg(target_os = "linux")]
    pub(crate) fn crash_pages(&self) {
        let profile = self.folder.path().join("b/profile");
        let renderers = renderers_of(&profile.to_string_lossy());
        assert!(!renderers.is_empty(), "no process shows a page");
        let pids = renderers.iter().map(u32::to_string);
        let killed = std::process::Command::new("kill").arg("-SEGV").args(pids).status();
        assert!(killed.expect("it runs").success());
    }

    /// Has the page `login.html` of a tab go elsewhere by itself, while no command is at work in the tab;
    /// `beside` is another tab of its origin.
    pub(crate) async fn leaves(&self, tab_id: &Value, beside: &Value, url: &str) {
        let script = format!("localStorage.removeItem('leave'); localStorage.leave = '{url}'; 1");
        self.value(beside, &script).await;
        // Browsers spell this one otherwise.
        self.until_shown(tab_id, &url.replace("::ffff:127.0.0.1", "::ffff:7f00:1")).await;
    }

    /// Waits until a tab shows an address, and not only goes there.
    async fn until_shown(&self, tab_id: &Value, url: &str) {
        let shown = |told: &Value| {
            let rows = told["result"].as_array().into_iter().flatten();
            let mut rows = rows.filter(|row| row["tab_id"] == *tab_id && row["url"] == url);
            rows.any(|row| row["status"] == "complete")
        };
        self.until(json!({ "what": "tabs" }), shown).await;
    }

    /// Ends the browser and then the server.
    pub(crate) async fn close(self) {
        let Self { server, chromium, pages, folder, _turn } = self;
        let said = chromium.close().await;
        server.close().await;
        drop(pages);
        assert!(said.is_ok(), "{said:?}");
        folder.close().expect("removed");
    }
}

/// Starts a server that listens for the extension of a folder.
async fn serve(folder: &Path, more: &[&str]) -> Server {
    let mut serve = command(folder, &["serve", "--log-level", "info"]);
    std::fs::create_dir(folder.join("files")).expect("created");
    serve.args(PATIENT).args(["--files-dir", "files"]);
    serve.args(["--show-storage", "true", "--show-cookies", "true"]).args(more);
    let mut server = Server::of(serve).await;
    server.until_logged("listening for the extension").await;
    server
}

/// The server of another client at the same browser.
pub(crate) struct Beside(Server);

impl Beside {
    /// Gives a command and returns how it ended.
    pub(crate) async fn ask(&self, mut arguments: Value) -> Value {
        let members = arguments.as_object_mut().expect("an object");
        members.entry("wait_ms").or_insert(json!(WAIT_MS));
        let begun = self.0.call("interact", arguments).await;
        end_of(&self.0, begun).await
    }

    /// Waits until a browser is connected.
    pub(crate) async fn until_a_browser_is_there(&self) {
        until_a_browser_is_there(&self.0).await;
    }

    /// Ends it.
    pub(crate) async fn close(self) {
        self.0.close().await;
    }
}

async fn until_a_browser_is_there(server: &Server) {
    let health = json!({ "what": "health", "wait_for_browser_ms": WAIT_MS, "wait_ms": WAIT_MS });
    let mut seen = Value::Null;
    for _ in 0..CALLS {
        seen = server.call("observe", health.clone()).await;
        if seen["ok"] == true {
            return;
        }
    }
    panic!("the extension never came: {seen}")
}

/// Reads the command of an answer until it has ended.
async fn end_of(server: &Server, mut answer: Value) -> Value {
    for _ in 0..CALLS {
        if !is_live(&answer) {
            return answer;
        }
        let read = json!({
            "what": "command_result", "correlation_id": answer["correlation_id"], "wait_ms": WAIT_MS,
        });
        answer = server.call("observe", read).await;
    }
    panic!("it never ended: {answer}")
}

/// Returns the processes that show pages, of the browser with a profile.
#[cfg(target_os = "linux")]
fn renderers_of(profile: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let numbers = processes.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let seen: Vec<(u32, u32, String)> = numbers.filter_map(of_process).collect();
    let mut family: Vec<u32> = seen
        .iter()
        .filter(|(_, _, line)| line.contains(&format!("--user-data-dir={profile}")))
        .map(|(pid, ..)| *pid)
        .collect();
    // Children of children, too: a renderer is one of a zygote's.
    for _ in 0..4 {
        let more = seen.iter().filter(|(_, parent, _)| family.contains(parent));
        let more: Vec<u32> = more.map(|(pid, ..)| *pid).filter(|it| !family.contains(it)).collect();
        family.extend(more);
    }
    let shows =
        |line: &str| line.contains("--type=renderer") && !line.contains("extension-process");
    seen.into_iter()
        .filter(|(pid, _, line)| family.contains(pid) && shows(line))
        .map(|it| it.0)
        .collect()
}

/// Returns a process, its parent, and its command line.
#[cfg(target_os = "linux")]
fn of_process(pid: u32) -> Option<(u32, u32, String)> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
    Some((pid, parent, String::from_utf8_lossy(&line).into_owned()))
}
