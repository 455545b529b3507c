//! A server that takes over from one that was killed, where the machine lacks something; and a folder
//! that locks no files.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use raincheck_testkit::disk::Shim;

use crate::server::{self, Server};

/// So many programs run when the first server is killed.
const N_PROGRAMS: usize = 24;

const TOOLS: &str = r#"
[lanes.wide]
concurrency = 24

[tools.gate]
description = "Waits for a file to appear"
command = ["sh", "GATE"]
lane = "wide"
wait_s = 0
timeout_s = 180
"#;

/// A folder of everything a server has, and one beside it of what the test decides.
struct Place {
    own: TempDir,
    beside: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = || TempDir::new().expect("a folder");
        let place = Self { own: folder(), beside: folder() };
        let gate = server::folder().join("tools/gate.sh");
        let tools = TOOLS.replace("GATE", &gate.to_string_lossy());
        std::fs::write(place.beside("raincheck.toml"), tools).expect("written");
        place
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.beside.path().join(name)
    }

    /// Makes a command line of the binary that another one may start.
    fn command(&self, wrapper: &[&str], command: &str) -> Command {
        let own = self.own.path();
        let binary = server::binary();
        let mut words = wrapper.iter().map(std::ffi::OsStr::new).chain([binary.as_os_str()]);
        let mut made = Command::new(words.next().expect("a program"));
        made.args(words).arg(command).arg("--config").arg(self.beside("raincheck.toml"));
        made.arg("--store").arg(own.join("store.db")).stderr(Stdio::null());
        made.env("RAINCHECK_STATE_DIR", own.join("state"));
        made.env("RAINCHECK_RUNTIME_DIR", own.join("run"));
        made
    }

    /// Begins a task that ends when the gate opens, and waits until its program runs.
    async fn begin(&self, server: &mut Server, gate: &str) -> Value {
        let inputs = json!({"open": self.beside(gate)});
        let task = server.data("submit_task", json!({"tool_name": "gate", "inputs": inputs})).await;
        let follow = json!({"task_id": task["task_id"], "wait_s": 20});
        let logs = server.data("tail_task_logs", follow).await;
        assert_eq!(logs["lines"][0]["message"], "waiting", "{logs}");
        task
    }

    fn open(&self, gate: &str) {
        std::fs::write(self.beside(gate), "").expect("opened");
    }

    fn n_runs(&self, gate: &str) -> usize {
        let marks = std::fs::read_to_string(self.beside(&format!("{gate}.ran")));
        marks.unwrap_or_default().lines().count()
    }
}

#[tokio::test]
async fn a_disk_that_is_full_at_a_take_over_loses_no_outcome() {
    // [DUR-5] [LEASE-4]
    let place = Place::new();
    let full = place.beside("full");
    let serve = || {
        let mut command = place.command(&[], "serve");
        command.envs(Shim::new(place.own.path()).full_while(&full).variables());
        Server::of(command)
    };
    let mut server = serve().shake_hands().await;
    let task = place.begin(&mut server, "gate").await;
    place.open("full");
    server.child.kill().await.expect("killed");

    // The program ends where neither its supervisor nor a server can write anything down.
    let mut server = serve().shake_hands().await;
    place.open("gate");
    let met = server.data("get_task_status", json!({"task_id": task["task_id"]})).await;
    assert_ne!(met["state"], "failed", "{met}");
    assert_ne!(met["error"]["guarantee"], "not_executed", "a read has no guarantee: {met}");
    std::fs::remove_file(&full).expect("there is room again");
    let mut ended = server.ended(&task).await;
    while ended["error"]["code"] == "storage_unavailable" {
        ended = server.ended(&task).await;
    }
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(ended["result"], json!({"opened": true}), "{ended}");
    assert_eq!(place.n_runs("gate"), 1, "it ran once");
    assert!(server.close().await.success());
}

/// Has a server with few descriptors take over more programs than it can reach with them.
async fn taken_over_with_few_descriptors(place: &Place) -> (Server, Vec<Value>) {
    let mut server = Server::of(place.command(&[], "serve")).shake_hands().await;
    let mut tasks = Vec::new();
    for _ in 0..N_PROGRAMS {
        tasks.push(place.begin(&mut server, "gate").await);
    }
    server.child.kill().await.expect("killed");

    let few = ["prlimit", "--nofile=48:4096"];
    let mut server = Server::of(place.command(&few, "serve")).shake_hands().await;
    for task in &tasks {
        let met = server.data("get_task_status", json!({"task_id": task["task_id"]})).await;
        assert_eq!(met["state"], "running", "{met}");
    }
    (server, tasks)
}

async fn give_descriptors(server: &Server) {
    let pid = server.child.id().expect("it runs").to_string();
    let more = Command::new("prlimit").args(["--pid", &pid, "--nofile=4096:4096"]).status().await;
    assert!(more.expect("prlimit").success(), "it may have more again");
}

#[tokio::test]
async fn too_few_descriptors_at_a_take_over_lose_no_program() {
    // [LEASE-4] [CANCEL-8]
    let place = Place::new();
    let (mut server, tasks) = taken_over_with_few_descriptors(&place).await;
    place.open("gate");
    give_descriptors(&server).await;
    for task in &tasks {
        let ended = server.ended(task).await;
        assert_eq!(ended["state"], "succeeded", "{ended}");
    }
    assert_eq!(place.n_runs("gate"), N_PROGRAMS, "each ran once");
    assert!(server.close().await.success());
}

#[tokio::test]
async fn what_too_few_descriptors_kept_apart_can_be_cancelled_once_there_are_more() {
    // [CANCEL-2] [CANCEL-6]
    let place = Place::new();
    let (mut server, tasks) = taken_over_with_few_descriptors(&place).await;
    give_descriptors(&server).await;
    for task in &tasks {
        server.data("cancel_task", json!({"task_id": task["task_id"]})).await;
    }
    for task in &tasks {
        let ended = server.ended(task).await;
        assert_eq!(ended["state"], "cancelled", "{ended}");
        let message = ended["error"]["message"].as_str().unwrap_or_default();
        assert!(!message.contains("may still run"), "{ended}");
    }
    assert_eq!(place.n_runs("gate"), 0, "none ran to its end");
    assert!(server.close().await.success());
}

#[tokio::test]
async fn a_folder_that_locks_no_files_is_named_in_answers_and_by_the_doctor() {
    // [DUR-7]
    let place = Place::new();
    let shim = Shim::new(place.own.path()).without_locks();
    let mut command = place.command(&[], "serve");
    command.envs(shim.variables());
    let mut server = Server::of(command).shake_hands().await;
    let inputs = json!({"open": place.beside("gate")});
    let refused = server.data("submit_task", json!({"tool_name": "gate", "inputs": inputs})).await;
    let error = &refused["error"];
    assert_eq!(error["code"], "storage_unavailable", "{refused}");
    assert_eq!(error["guarantee"], "not_executed", "{refused}");
    let message = error["message"].as_str().expect("words");
    assert!(message.contains("locks") && message.contains("network"), "{refused}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("local disk")), "{refused}");
    assert!(server.close().await.success());

    let mut command = place.command(&[], "doctor");
    let found = command.envs(shim.variables()).output().await.expect("it runs");
    let found = String::from_utf8(found.stdout).expect("text");
    assert!(found.contains("refuses locks"), "{found}");
}
