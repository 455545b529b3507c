//! Several windows of one user: one server owns the store, and the others are served by it.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use raincheck_testkit::disk::{Random, number_from};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::durable::serve;
use crate::server::{self, Server, text};

pub(crate) fn data(answer: &Value) -> Value {
    serde_json::from_str(text(&answer["result"])).expect("JSON")
}

/// Calls a tool that waits for a file, and waits until its program does.
pub(crate) async fn call_gate(window: &mut Server, open: &PathBuf) -> u64 {
    let call = json!({"name": "patient_gate", "arguments": {"open": open}});
    let id = window.begin("tools/call", call).await;
    let running = json!({"states": ["running"], "tool_name": "patient_gate"});
    loop {
        let listed = window.data("list_tasks", running.clone()).await;
        let Some(task) = listed["tasks"].as_array().and_then(|tasks| tasks.first().cloned()) else {
            continue;
        };
        let follow = json!({"task_id": task["task_id"], "wait_s": 20});
        let logs = window.data("tail_task_logs", follow).await;
        assert_eq!(logs["lines"][0]["message"], "waiting", "{logs}");
        return id;
    }
}

pub(crate) fn n_runs(open: &Path) -> usize {
    let ran = std::fs::read_to_string(format!("{}.ran", open.display())).unwrap_or_default();
    ran.lines().count()
}

#[tokio::test]
async fn two_windows_at_once_have_one_store_and_each_call_runs_once() {
    // [ATTACH-1] [ATTACH-2] [SCOPE-1]
    let folder = TempDir::new().expect("a folder");
    let (mut one, mut two) = (serve(&folder).await, serve(&folder).await);
    let gates = ["one", "two"].map(|name| folder.path().join(name));
    // Both at the same time, and with the same ids.
    let calls = tokio::join!(call_gate(&mut one, &gates[0]), call_gate(&mut two, &gates[1]));
    for gate in &gates {
        std::fs::write(gate, "").expect("written");
    }
    for (window, id, gate) in [(&mut one, calls.0, &gates[0]), (&mut two, calls.1, &gates[1])] {
        let answer = window.read().await;
        assert_eq!((&answer["id"], data(&answer)), (&json!(id), json!({"opened": true})));
        assert_eq!(n_runs(gate), 1);
    }
    let listed = async |window: &mut Server| window.data("list_tasks", json!({})).await;
    let running = json!({"states": ["running"]});
    while one.data("list_tasks", running.clone()).await["tasks"] != json!([]) {
        // An answer may come before its commit, and the list is of what is committed.
    }
    assert_eq!(listed(&mut one).await["tasks"].as_array().map(Vec::len), Some(2));
    assert_eq!(listed(&mut one).await, listed(&mut two).await);
    // The bytes are those of the tool, through two processes.
    let odd = r#"{"z":1.0,"a":1e2,"big":123456789012345678901234567890,"e":"\u00e9"}"#;
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":"odd","method":"tools/call","params":{{"name":"echo","arguments":{odd}}}}}"#
    );
    two.send_bytes(format!("{line}\n").as_bytes()).await;
    let answer = two.read().await;
    assert_eq!(text(&answer["result"]), odd);
    assert!(two.close().await.success());
    assert_eq!(listed(&mut one).await["tasks"].as_array().map(Vec::len), Some(3));
    assert!(one.close().await.success());
}

#[tokio::test]
async fn windows_of_other_scopes_share_lanes_and_see_nothing_of_each_other() {
    // [ATTACH-3] [SCOPE-2]
    let folder = TempDir::new().expect("a folder");
    let mut one = serve(&folder).await;
    let mut other = Server::spawn_with(|command| {
        command.env_remove("RAINCHECK_STORE").args(["--scope", "other"]);
        command.env("RAINCHECK_STATE_DIR", folder.path().join("state"));
        command.env("RAINCHECK_RUNTIME_DIR", folder.path().join("another-run"));
    })
    .shake_hands()
    .await;
    let task = one.data("submit_task", json!({"tool_name": "queued", "inputs": {}})).await;
    let waiting = other.data("submit_task", json!({"tool_name": "queued", "inputs": {}})).await;
    assert_eq!(waiting["position"], 0, "behind the one that runs: {waiting}");
    let id = json!({"task_id": task["task_id"]});
    let refused = other.data("cancel_task", id.clone()).await;
    assert_eq!(refused["error"]["code"], "not_found", "{refused}");
    for (window, task) in [(&mut one, &task), (&mut other, &waiting)] {
        let listed = window.data("list_tasks", json!({})).await;
        assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(1), "{listed}");
        window.data("cancel_task", json!({"task_id": task["task_id"]})).await;
        window.ended(task).await;
    }
    assert!(other.close().await.success());
    assert!(one.close().await.success());
}

#[tokio::test]
async fn a_call_is_answered_although_its_owner_ended_or_was_killed() {
    // [ATTACH-5] [ATTACH-6] [ATTACH-7] [CANCEL-7]
    for is_polite in [true, false] {
        let folder = TempDir::new().expect("a folder");
        let mut owner = serve(&folder).await;
        owner.data("list_tasks", json!({})).await;
        let (mut next, mut last) = (serve(&folder).await, serve(&folder).await);
        last.data("list_tasks", json!({})).await;
        let gate = folder.path().join("gate");
        let id = call_gate(&mut next, &gate).await;
        if is_polite {
            assert!(owner.close().await.success());
        } else {
            owner.child.kill().await.expect("killed");
        }
        // The others go on meanwhile.
        for window in [&mut last, &mut next] {
            let listed = window.data("list_tasks", json!({})).await;
            assert_eq!(listed["tasks"][0]["state"], "running", "{is_polite}: {listed}");
            assert_eq!(listed["tasks"][0]["attempt"], 1, "{is_polite}: {listed}");
        }
        std::fs::write(&gate, "").expect("written");
        let answer = next.read().await;
        assert_eq!((&answer["id"], data(&answer)), (&json!(id), json!({"opened": true})));
        assert_eq!(n_runs(&gate), 1, "{is_polite}");
        assert!(last.close().await.success());
        assert!(next.close().await.success());
    }
}

/// A call of a window, and the file in which its programs leave their marks.
struct Wish {
    marks: PathBuf,
    id: u64,
    is_answered: bool,
}

/// Windows whose owner is killed again and again.
struct Campaign {
    folder: TempDir,
    random: Random,
    windows: Vec<Server>,
    wishes: BTreeMap<u32, Vec<Wish>>,
    n_wishes: usize,
    /// Calls that were open at the window that was killed: nobody was told anything of them.
    untold: Vec<PathBuf>,
    told: Vec<PathBuf>,
}

impl Campaign {
    fn new() -> Self {
        Self {
            folder: TempDir::new().expect("a folder"),
            random: Random::from_environment("RAINCHECK_SEED"),
            windows: Vec::new(),
            wishes: BTreeMap::new(),
            n_wishes: 0,
            untold: Vec::new(),
            told: Vec::new(),
        }
    }

    async fn open_a_window(&mut self) {
        let folder = self.folder.path();
        let mut command = Command::new(server::binary());
        command.arg("serve").arg("--config").arg(server::folder().join("tools/kill.toml"));
        command.arg("--store").arg(folder.join("store.db")).stderr(Stdio::null());
        command.env("RAINCHECK_STATE_DIR", folder.join("state"));
        command.env("RAINCHECK_RUNTIME_DIR", folder.join("run"));
        self.windows.push(Server::of(command).shake_hands().await);
    }

    /// Has a window call a tool, without a key.
    async fn call(&mut self, window: usize) {
        self.n_wishes += 1;
        let marks = self.folder.path().join(format!("marks-{}", self.n_wishes));
        let pause = ["0", "0.02", "0.05"][self.random.below(3)];
        let inputs = json!({"marks": marks, "pause": pause});
        let call = match self.random.below(3) {
            0 => {
                json!({"name": "submit_task", "arguments": {"tool_name": "work", "inputs": inputs}})
            }
            1 => json!({"name": "work", "arguments": inputs}),
            _ => json!({"name": "whole", "arguments": inputs}),
        };
        let server = &mut self.windows[window];
        let id = server.begin("tools/call", call).await;
        let pid = server.child.id().expect("it runs");
        self.wishes.entry(pid).or_default().push(Wish { marks, id, is_answered: false });
    }

    /// Kills whoever owns the store, in the middle of everything.
    async fn kill_the_owner(&mut self) {
        let lock = std::fs::read_to_string(self.folder.path().join("store.db.owner/lock"));
        let owner: u32 = lock.expect("a lock").trim().parse().expect("a process");
        let is_owner = |window: &Server| window.child.id() == Some(owner);
        let place = self.windows.iter().position(is_owner).expect("one of the windows");
        let moment = Duration::from_micros(self.random.below(40_000) as u64);
        let mut window = self.windows.remove(place);
        let _ = timeout(moment, window.stdout.next_line()).await;
        window.child.kill().await.expect("killed");
        let wishes = self.wishes.remove(&owner).unwrap_or_default();
        self.untold.extend(wishes.into_iter().map(|wish| wish.marks));
    }

    /// Reads every answer that is due.
    async fn read(&mut self) {
        for window in &mut self.windows {
            let pid = window.child.id().expect("it runs");
            let mut wishes = self.wishes.remove(&pid).unwrap_or_default();
            let mut tasks = Vec::new();
            while wishes.iter().any(|wish| !wish.is_answered) {
                let answer = window.read().await;
                let of = |wish: &&mut Wish| json!(wish.id) == answer["id"];
                let wish = wishes.iter_mut().find(of).unwrap_or_else(|| panic!("{answer}"));
                assert!(!wish.is_answered, "answered twice: {answer}");
                wish.is_answered = true;
                let told = data(&answer);
                let task = told.get("task_id").or(told.get("task")).cloned();
                tasks.push(task.unwrap_or_else(|| panic!("no task and no result: {told}")));
            }
            for task in tasks {
                let end = window.ended(&json!({"task_id": task})).await;
                assert_eq!(end["state"], "succeeded", "{end}");
            }
            self.told.extend(wishes.into_iter().map(|wish| wish.marks));
        }
    }

    fn check(&self) {
        let n_begun = |marks: &PathBuf| {
            let text = std::fs::read_to_string(marks).unwrap_or_default();
            text.lines().filter(|line| line.starts_with("begin")).count()
        };
        for marks in &self.told {
            assert_eq!(n_begun(marks), 1, "{} [ATTACH-6]", marks.display());
        }
        for marks in &self.untold {
            assert!(n_begun(marks) <= 1, "{} [ATTACH-6]", marks.display());
        }
    }
}

#[tokio::test]
async fn owners_that_are_killed_lose_no_call_of_another_window_and_run_none_twice() {
    // [ATTACH-5] [ATTACH-6] [DUR-1]
    let n_kills = number_from("RAINCHECK_KILLS", 8);
    let mut campaign = Campaign::new();
    for _ in 0..3 {
        campaign.open_a_window().await;
    }
    campaign.call(0).await;
    campaign.read().await;
    for _ in 0..n_kills {
        for _ in 0..campaign.random.below(9) + 1 {
            let window = campaign.random.below(campaign.windows.len());
            campaign.call(window).await;
        }
        campaign.kill_the_owner().await;
        campaign.open_a_window().await;
        campaign.read().await;
    }
    campaign.check();
    for window in campaign.windows {
        assert!(window.close().await.success());
    }
}

#[tokio::test]
async fn status_and_doctor_show_who_owns_the_store_and_who_is_attached() {
    // [ATTACH-9]
    let folder = TempDir::new().expect("a folder");
    let (mut one, mut two) = (serve(&folder).await, serve(&folder).await);
    one.data("list_tasks", json!({})).await;
    two.data("list_tasks", json!({})).await;
    let (owner, attached) = (one.child.id().expect("it runs"), two.child.id().expect("it runs"));
    let shown = async |what: &[&str]| {
        let mut command = Command::new(server::binary());
        command.args(what).stdin(Stdio::null()).kill_on_drop(true);
        command.env("RAINCHECK_STATE_DIR", folder.path().join("state"));
        command.env("RAINCHECK_RUNTIME_DIR", folder.path().join("run"));
        let output = command.output().await.expect("it runs");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let report: Value = serde_json::from_str(&shown(&["status", "--json"]).await).expect("JSON");
    let of = |pid: u32| {
        let servers = report["servers"].as_array().expect("servers");
        let found = servers.iter().find(|server| server["server"]["pid"] == json!(pid));
        found.map(|server| server["standing"].clone())
    };
    assert_eq!(of(owner), Some(json!({"is": "owner"})), "{report}");
    assert_eq!(of(attached), Some(json!({"is": "attached", "to": owner})), "{report}");
    let doctor = shown(&["doctor"]).await;
    assert!(doctor.contains(&format!("{attached}, attached to {owner}")), "{doctor}");
    assert!(one.close().await.success());
    assert!(two.close().await.success());
}

#[tokio::test]
async fn windows_attach_to_a_server_over_http() {
    // [ATTACH-10]
    let folder = TempDir::new().expect("a folder");
    let mut http = Command::new(server::binary());
    http.arg("serve").arg("--config").arg(server::folder().join("tools/raincheck.toml"));
    http.args(["--http", "127.0.0.1:0", "--log-level", "info"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    http.env("RAINCHECK_STATE_DIR", folder.path().join("state"));
    http.env("RAINCHECK_RUNTIME_DIR", folder.path().join("run"));
    let mut http = http.kill_on_drop(true).spawn().expect("it runs");
    let mut log = BufReader::new(http.stderr.take().expect("a pipe")).lines();
    let listening = async {
        while let Some(line) = log.next_line().await.expect("UTF-8") {
            if line.contains("owns the store") {
                return;
            }
        }
        panic!("it ended");
    };
    timeout(server::PATIENCE, listening).await.expect("in time");
    let mut window = serve(&folder).await;
    assert_eq!(window.data("echo", json!({"a": 1})).await, json!({"a": 1}));
    let lock = folder.path().join("state/raincheck/store.db.owner/lock");
    let owner = std::fs::read_to_string(lock).expect("a lock");
    assert_eq!(owner.trim(), http.id().expect("it runs").to_string());
    http.kill().await.expect("killed");
    let listed = window.data("list_tasks", json!({})).await;
    assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(1), "{listed}");
    assert!(window.close().await.success());
}

#[tokio::test]
async fn an_owner_that_could_not_listen_at_first_is_reached_later() {
    // [ATTACH-2]
    let folder = TempDir::new().expect("a folder");
    // What is at the place of its file can be no file.
    let in_the_way = folder.path().join("state/raincheck/store.db.owner/endpoint.json");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&in_the_way).expect("made");
    let mut owner = Server::spawn_with(|command| {
        command.env_remove("RAINCHECK_STORE").stderr(Stdio::piped());
        command.env("RAINCHECK_STATE_DIR", folder.path().join("state"));
        command.env("RAINCHECK_RUNTIME_DIR", folder.path().join("run"));
    });
    let mut log = BufReader::new(owner.child.stderr.take().expect("a pipe")).lines();
    let mut owner = owner.shake_hands().await;
    assert_eq!(owner.data("echo", json!({"a": 1})).await, json!({"a": 1}));
    let told = async {
        while let Some(line) = log.next_line().await.expect("UTF-8") {
            if line.contains("cannot be served by this one") {
                return;
            }
        }
        panic!("it ended");
    };
    timeout(server::PATIENCE, told).await.expect("in time");
    std::fs::remove_dir(&in_the_way).expect("out of the way");
    let mut window = serve(&folder).await;
    let served = async {
        while window.data("echo", json!({"b": 1})).await != json!({"b": 1}) {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(server::PATIENCE, served).await.expect("in time");
    assert!(window.close().await.success());
    assert!(owner.close().await.success());
}
