//! `status`: the servers that run, and what can be seen of them from outside.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use raincheck_core::text::{counted, escape};
use raincheck_core::time::Timestamp;
use raincheck_core::worker::{self, Worker};
use raincheck_loopback::endpoint::{self, Endpoint};
use serde_json::{Map, Value, json};

use crate::binary::Binary;
use crate::instance::{self, Card, Seen};
use crate::listeners;
use crate::paths::Paths;
use crate::standing::Stands;
use crate::terminal::{Palette, Style};

/// What `status` found.
#[derive(Clone, Debug)]
pub struct Report {
    binary: Binary,
    paths: Paths,
    servers: Vec<Server>,
    /// Those that have proved themselves.
    listeners: Vec<Endpoint>,
    more: Vec<(&'static str, Vec<String>)>,
    now: Timestamp,
}

#[derive(Clone, Debug)]
struct Server {
    seen: Seen,
    files: Files,
    /// Where it serves artifacts and takes calls.
    listener: Option<Endpoint>,
    /// The places of its lanes; `None` where nobody but the server itself sees them.
    workers: Option<Vec<Worker>>,
}

/// How much a server keeps on disk.
#[derive(Clone, Copy, Debug, Default)]
struct Files {
    n: u64,
    bytes: u64,
}

/// Looks at the folders of a binary.
///
/// `busy` reads the workers that have a task from the file of a store, if it can be read.
#[must_use]
pub fn look(
    binary: &Binary,
    paths: &Paths,
    now: Timestamp,
    busy: impl Fn(&Path) -> Option<Vec<Worker>>,
) -> Report {
    let listeners = listeners::proven(endpoint::all(&paths.endpoints()));
    let (servers, more) = (Vec::new(), Vec::new());
    let report = Report { binary: *binary, paths: paths.clone(), servers, listeners, more, now };
    report.beside(&paths.home, busy)
}

impl Report {
    /// Adds the servers of another folder, such as those that wrap one command.
    #[must_use]
    pub fn beside(mut self, home: &Path, busy: impl Fn(&Path) -> Option<Vec<Worker>>) -> Self {
        self.servers.extend(instance::look(home).into_iter().map(|seen| Server {
            files: Files::of(&seen),
            listener: listener_of(&seen, &self.listeners).cloned(),
            workers: workers_of(&seen, &busy),
            seen,
        }));
        self
    }

    /// Adds a listener that a binary keeps track of by itself, and that has proved itself.
    #[must_use]
    pub fn listening(mut self, listener: Option<Endpoint>) -> Self {
        let listeners: Vec<Endpoint> = listener.into_iter().collect();
        for server in &mut self.servers {
            if let Some(listener) = listener_of(&server.seen, &listeners) {
                server.listener = Some(listener.clone());
            }
        }
        self
    }

    /// Adds what else a binary has to show, under a word of its own.
    #[must_use]
    pub fn with(mut self, word: &'static str, lines: Vec<String>) -> Self {
        self.more.push((word, lines));
        self
    }

    /// Writes the report for a person.
    #[must_use]
    pub fn text(&self, palette: Palette) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "state folder  {}", self.paths.state.display());
        for (word, lines) in &self.more {
            for line in lines {
                let _ = writeln!(out, "{word:<13} {line}");
            }
        }
        let n_running = self.servers.iter().filter(|server| server.seen.is_running).count();
        let n_left = self.servers.len() - n_running;
        let _ = writeln!(out, "servers       {n_running} running");
        for server in self.servers.iter().filter(|server| server.seen.is_running) {
            out.push('\n');
            server.describe(&mut out, self.now, palette);
        }
        if n_left > 0 {
            let _ = writeln!(
                out,
                "\nservers that were killed left {}; the next one removes what they left",
                counted(n_left as u64, "folder")
            );
        }
        let advice = match n_running {
            0 => self.binary.while_stopped,
            _ => self.binary.while_running,
        };
        let _ = writeln!(out, "\n{advice}");
        out
    }

    /// Writes the report for a program.
    #[must_use]
    pub fn json(&self) -> Value {
        let servers: Vec<Value> = self
            .servers
            .iter()
            .map(|server| {
                json!({
                    "folder": server.seen.dir,
                    "running": server.seen.is_running,
                    "files": server.files.n,
                    "bytes": server.files.bytes,
                    "store": server.seen.card.as_ref().map(store),
                    "server": server.seen.card,
                    "url": server.listener.as_ref().map(|listener| &listener.url),
                    "workers": server.workers,
                    "standing": server.seen.stands,
                })
            })
            .collect();
        let more = self.more.iter().map(|(word, lines)| ((*word).to_owned(), json!(lines)));
        let mut all: Map<String, Value> = more.collect();
        all.insert("state_dir".to_owned(), json!(self.paths.state));
        all.insert("servers".to_owned(), servers.into());
        all.into()
    }
}

impl Server {
    fn describe(&self, out: &mut String, now: Timestamp, palette: Palette) {
        let Some(card) = &self.seen.card else {
            let _ = writeln!(out, "{}  starting or unreadable", self.seen.dir.display());
            return;
        };
        let title = palette.paint(Style::Bold, &format!("pid {}", card.pid));
        let age = now.since(card.started_at).as_secs();
        let (hours, minutes, seconds) = (age / 3600, age / 60 % 60, age % 60);
        let _ = writeln!(
            out,
            "{title}  version {}, up {hours}:{minutes:02}:{seconds:02}, scope {}",
            card.version,
            escape(&card.scope)
        );
        if let Some(config) = &card.config {
            let _ = writeln!(out, "  config  {}", config.display());
        }
        if let Some(stands) = shares(self.seen.stands) {
            let _ = writeln!(out, "  shares  {stands}");
        }
        let _ = writeln!(out, "  store   {}", store(card));
        match &card.wraps {
            Some(command) => {
                let _ = writeln!(out, "  wraps   {}", escape(command));
            }
            None => {
                let _ = writeln!(out, "  tools   {}", some(&card.tools.join(", ")));
            }
        }
        for lane in &card.lanes {
            let _ = writeln!(
                out,
                "  lane    {:<16} {}, queue of {}",
                lane.name,
                counted(lane.concurrency, "worker"),
                lane.queue_limit
            );
        }
        let busy = self.workers.iter().flatten();
        for worker in busy.filter(|worker| worker.current_task.is_some()) {
            let heard = worker.last_heartbeat.map_or(0, |at| now.since(at).as_secs());
            let task = worker.current_task.map(|task| task.to_string()).unwrap_or_default();
            let id = escape(worker.id.as_str());
            let _ = writeln!(out, "  worker  {id:<24} has {task}, heard of {heard} s ago");
        }
        if let Some(workers) = &self.workers {
            let n_idle = workers.iter().filter(|worker| worker.current_task.is_none()).count();
            let _ = writeln!(out, "  idle    {}", counted(n_idle as u64, "worker"));
        }
        let listener = self.listener.as_ref().map_or("none yet", |listener| &listener.url);
        let _ = writeln!(out, "  listens {listener}");
        if self.files.n > 0 {
            let kib = self.files.bytes.div_ceil(1024);
            let _ = writeln!(out, "  files   {} ({kib} KiB of logs and artifacts)", self.files.n);
        }
    }
}

/// Finds the listener of a server that runs, among those that have proved themselves.
fn listener_of<'a>(seen: &Seen, listeners: &'a [Endpoint]) -> Option<&'a Endpoint> {
    let card = seen.card.as_ref().filter(|_| seen.is_running)?;
    listeners.iter().find(|listener| listener.pid == card.pid)
}

/// Says what a server is to what it shares with others.
fn shares(stands: Option<Stands>) -> Option<String> {
    Some(match stands? {
        Stands::Owner => "owner".to_owned(),
        Stands::Attached { to } => format!("attached to pid {to}, which owns the store"),
        Stands::Apart { from: Some(pid) } => format!("nothing: pid {pid} owns the store"),
        Stands::Apart { from: None } => "nothing: another process owns the store".to_owned(),
    })
}

/// Lists the workers of a server that runs, lane by lane.
fn workers_of(seen: &Seen, busy: &impl Fn(&Path) -> Option<Vec<Worker>>) -> Option<Vec<Worker>> {
    let is_owner = matches!(seen.stands, Some(Stands::Owner) | None);
    let card = seen.card.as_ref().filter(|_| seen.is_running && is_owner)?;
    let mut busy = busy(card.store.as_deref()?)?;
    let mut all = Vec::new();
    for lane in &card.lanes {
        let id = lane.name.as_str().into();
        all.extend(worker::of_lane(&id, lane.concurrency, &busy));
        busy.retain(|worker| worker.lane != id);
    }
    // Lanes of the engine itself, and of an earlier configuration.
    all.extend(busy);
    Some(all)
}

/// Names where a server keeps its tasks.
fn store(card: &Card) -> String {
    card.store.as_ref().map_or_else(|| "memory".into(), |path| path.display().to_string())
}

fn some(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

impl Files {
    /// Counts the logs and artifacts of a server's tasks.
    fn of(seen: &Seen) -> Self {
        let store = seen.card.as_ref().and_then(|card| card.store.as_deref());
        match store.and_then(Path::parent) {
            Some(folder) => Self::below(&folder.join("tasks"), 8),
            None => Self::below(&seen.dir, 8),
        }
    }

    /// Counts the files below a folder, without following links.
    fn below(dir: &Path, depth: u32) -> Self {
        let mut sum = Self::default();
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && depth > 0 {
                let inner = Self::below(&entry.path(), depth - 1);
                sum = Self { n: sum.n + inner.n, bytes: sum.bytes + inner.bytes };
            } else if metadata.is_file() {
                sum = Self { n: sum.n + 1, bytes: sum.bytes + metadata.len() };
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use raincheck_core::ids::TaskId;
    use raincheck_core::worker::Activity;
    use raincheck_loopback::endpoint::{Kind, Place};
    use raincheck_loopback::{Options, bind};

    use super::*;
    use crate::instance::{Card, Instance, LaneCard, unused};

    const BINARY: Binary = Binary {
        name: "raincheck",
        sections: &["tools"],
        while_running: "See what they keep: raincheck tasks list",
        while_stopped: "Start one from an MCP client: raincheck serve",
        on_shared_store: "give one client a state folder of its own: --state-dir DIR, or --store memory",
    };

    fn paths(state: &Path) -> Paths {
        Paths { state: state.into(), runtime: state.join("run"), home: state.join("raincheck") }
    }

    #[test]
    fn a_running_server_is_shown_with_its_lanes() {
        let dir = tempfile::tempdir().expect("a folder");
        let paths = paths(dir.path());
        let started_at = Timestamp::from_millis(1_764_288_000_000);
        let card = Card {
            pid: 7,
            version: "1.2.3".into(),
            started_at,
            scope: "local".into(),
            store: Some(dir.path().join("raincheck/store.db")),
            config: Some("/etc/raincheck.toml".into()),
            tools: vec!["render".into(), "bake".into()],
            lanes: vec![LaneCard { name: "one".into(), concurrency: 2, queue_limit: 9 }],
            wraps: None,
        };
        let instance = Instance::open(&unused(&paths.home), &card).expect("a folder");
        let tasks = paths.home.join("tasks/tsk_x");
        fs::create_dir_all(&tasks).expect("created");
        fs::write(tasks.join("log"), [0; 3000]).expect("written");
        let (now, store) = (started_at + Duration::from_secs(3725), card.store);
        let busy = |path: &Path| {
            assert_eq!(Some(path), store.as_deref());
            let at = |lane: &str, place| Worker {
                id: worker::name(&lane.into(), place),
                lane: lane.into(),
                state: Activity::Busy,
                last_heartbeat: Some(now),
                current_task: Some(TaskId::from_parts(7, [0; 10])),
            };
            Some(vec![at("one", 1), at("old", 0)])
        };
        let report = look(&BINARY, &paths, now, busy);
        let text = report.text(Palette::plain());
        let lines = ["1 running", "pid 7", "up 1:02:05", "render, bake", "2 workers, queue of 9"];
        for part in lines.into_iter().chain(["raincheck/store.db", "1 (3 KiB of logs"]) {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        let json = report.json();
        assert_eq!(json["servers"][0]["server"]["pid"], 7);
        // [QUEUE-7]
        let task = TaskId::from_parts(7, [0; 10]).to_string();
        let worker = |id: &str, lane: &str, state: &str| {
            let is_busy = state == "busy";
            json!({
                "id": id,
                "lane": lane,
                "state": state,
                "last_heartbeat": is_busy.then_some(now),
                "current_task": is_busy.then_some(&task),
            })
        };
        let workers = json!([
            worker("wrk_one_01", "one", "idle"),
            worker("wrk_one_02", "one", "busy"),
            worker("wrk_old_01", "old", "busy"),
        ]);
        assert_eq!(json["servers"][0]["workers"], workers);
        assert!(text.contains(&format!("wrk_one_02               has {task}, heard of 0 s ago")));
        assert!(text.contains("idle    1 worker"), "{text}");
        assert_eq!(json["servers"][0]["store"], format!("{}/store.db", paths.home.display()));
        drop(instance);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_listener_that_proves_itself_is_shown_without_its_secret() {
        // [SEC-13]
        let dir = tempfile::tempdir().expect("a folder");
        let paths = paths(dir.path());
        let card = Card {
            pid: std::process::id(),
            version: "1".into(),
            started_at: Timestamp::default(),
            scope: "local".into(),
            config: None,
            store: None,
            tools: Vec::new(),
            lanes: Vec::new(),
            wraps: Some("npx -y other".into()),
        };
        let _instance = Instance::open(&unused(&paths.home), &card).expect("a folder");
        let shown = || look(&BINARY, &paths, Timestamp::default(), |_| None);
        assert!(shown().text(Palette::plain()).contains("wraps   npx -y other\n"));
        assert!(shown().text(Palette::plain()).contains("listens none yet"));

        let mut options = Options::new("test").expect("random bytes");
        let path = endpoint::of_instance(&paths.endpoints(), &options.instance_id);
        let started_at = Timestamp::default();
        options.endpoint = Some(Place { path: path.clone(), kind: Kind::Http, started_at });
        let (service, info) = bind(options).await.expect("a listener");
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(service.run(tokio_util::sync::CancellationToken::new()));
        let text = shown().text(Palette::plain());
        assert!(text.contains(&format!("listens {}", info.url)), "{text}");
        assert!(text.contains(BINARY.while_running), "{text}");
        let json = shown().json();
        assert_eq!(json["servers"][0]["url"], info.url);
        assert!(!(text + &json.to_string()).contains(info.secret.text()), "[SEC-3]");

        // Its file says the same of another port, where somebody else listens.
        let stranger = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = stranger.local_addr().expect("an address").port();
        let forged = fs::read_to_string(&path).expect("a file");
        let forged = forged.replace(&info.port.to_string(), &port.to_string());
        fs::write(&path, forged).expect("written");
        drop(stranger);
        let text = shown().text(Palette::plain());
        assert!(text.contains("listens none yet"), "{text}");
    }

    #[test]
    fn without_a_server_the_next_command_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let report = look(&BINARY, &paths(dir.path()), Timestamp::default(), |_| None);
        let report = report.with("extension", vec!["/ext: as it should be".to_owned()]);
        let text = report.text(Palette::plain());
        assert!(text.contains("0 running") && text.contains("raincheck serve"), "{text}");
        assert!(text.contains("extension     /ext: as"), "{text}");
        assert_eq!(report.json()["extension"][0], "/ext: as it should be");
    }
}
