//! Servers and supervisors that are killed at any moment, and what a client then finds of all it was
//! told [DUR-1, DUR-3, DUR-6, LEASE-3, QUEUE-1, RESULT-1].

mod history;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use raincheck_testkit::disk::{Random, number_from};
use rustix::process::{Pid, PidfdFlags, Signal, getsid, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use crate::server::{self, Server, text};
use history::{History, Wish};

/// How many kills there are; `RAINCHECK_KILLS` asks for more.
fn n_kills() -> usize {
    usize::try_from(number_from("RAINCHECK_KILLS", 15)).expect("a number")
}

/// A client that outlives its servers.
struct Campaign {
    folder: TempDir,
    random: Random,
    history: History,
    /// What was asked for and not answered.
    open: Option<Wish>,
    server_kills: usize,
    supervisor_kills: usize,
}

impl Campaign {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let history = History::new(folder.path().join("marks"));
        let random = Random::from_environment("RAINCHECK_SEED");
        Self { folder, random, history, open: None, server_kills: 0, supervisor_kills: 0 }
    }

    fn spawn(&self) -> Server {
        let folder = self.folder.path();
        let mut command = Command::new(server::binary());
        command.arg("serve").arg("--config").arg(server::folder().join("tools/kill.toml"));
        command.arg("--store").arg(folder.join("store.db")).stderr(Stdio::null());
        command.env("RAINCHECK_STATE_DIR", folder.join("state"));
        command.env("RAINCHECK_RUNTIME_DIR", folder.join("run"));
        Server::of(command)
    }

    fn moment(&mut self, most: Duration) -> Duration {
        most.mul_f64(self.random.below(1_000) as f64 / 1_000.0)
    }

    /// Starts a server, works with it, and kills it in the middle of something.
    async fn live_and_die(&mut self) {
        let mut server = self.spawn();
        if self.random.below(8) == 0 {
            let moment = self.moment(Duration::from_millis(40));
            let _ = timeout(moment, server.stdout.next_line()).await;
            self.kill(&mut server).await;
            return;
        }
        server = server.shake_hands().await;
        for _ in 0..self.random.below(7) {
            self.submit(&mut server).await;
            match self.random.below(8) {
                0 => self.kill_a_supervisor(),
                1 => self.look_again(&mut server).await,
                2 | 3 => self.wait_for_one(&mut server).await,
                _ => {}
            }
        }
        if self.random.coin() {
            self.submit_and_kill(&mut server).await;
        } else {
            let moment = self.moment(Duration::from_millis(120));
            let _ = timeout(moment, server.stdout.next_line()).await;
            self.kill(&mut server).await;
        }
    }

    /// Takes up what is open, or thinks of something new.
    fn next_wish(&mut self) -> Wish {
        let open = self.open.take();
        open.unwrap_or_else(|| self.history.new_wish(&mut self.random))
    }

    async fn submit(&mut self, server: &mut Server) {
        let wish = self.next_wish();
        let answer = server.data("submit_task", wish.arguments()).await;
        self.history.accepted(wish, &answer);
    }

    async fn submit_and_kill(&mut self, server: &mut Server) {
        let wish = self.next_wish();
        let call = json!({"name": "submit_task", "arguments": wish.arguments()});
        let id = server.begin("tools/call", call).await;
        let moment = self.moment(Duration::from_millis(6));
        let mut line = timeout(moment, server.stdout.next_line()).await.ok();
        self.kill(server).await;
        self.open = Some(wish.clone());
        // What it wrote before it died was told; the last line may be cut.
        while let Some(Ok(Some(told))) = line {
            let told: Value = serde_json::from_str(&told).unwrap_or_default();
            if told["id"] == id {
                self.history.accepted(wish.clone(), &data(&told["result"]));
            }
            line = Some(server.stdout.next_line().await);
        }
    }

    async fn kill(&mut self, server: &mut Server) {
        server.child.kill().await.expect("it is killed");
        self.server_kills += 1;
    }

    /// Kills the supervisor of any attempt that runs.
    fn kill_a_supervisor(&mut self) {
        let all = supervisors(self.folder.path());
        if all.is_empty() {
            return;
        }
        let (pid, folder) = &all[self.random.below(all.len())];
        // The process is held first and looked at then: its number may be another's by now.
        let Ok(held) = pidfd_open(*pid, PidfdFlags::empty()) else { return };
        if folder_of(*pid).as_ref() == Some(folder) {
            self.history.supervisor_killed(folder);
            // It may have ended meanwhile.
            let _ = pidfd_send_signal(held, Signal::KILL);
            self.supervisor_kills += 1;
        }
    }

    /// Reads a task again: what has ended stays as it was.
    async fn look_again(&mut self, server: &mut Server) {
        if let Some(id) = self.history.any(&mut self.random) {
            let found = server.data("get_task_result", json!({"task_id": id})).await;
            self.history.saw(&id, &found);
        }
    }

    /// Lets the server work until some task has ended.
    async fn wait_for_one(&mut self, server: &mut Server) {
        if let Some(id) = self.history.any(&mut self.random) {
            let found = server.data("get_task_result", json!({"task_id": id, "wait_s": 1})).await;
            self.history.saw(&id, &found);
        }
    }

    /// Lets a last server do what is left, and looks at everything.
    async fn finish(mut self) -> String {
        let mut server = self.spawn().shake_hands().await;
        if self.open.is_some() {
            self.submit(&mut server).await;
        }
        for id in self.history.ids() {
            // What stands in line may take longer than one wait, as long as something gets on.
            let mut n_marks = self.history.n_marks();
            loop {
                let found = server.ended(&json!({"task_id": id})).await;
                if self.history.saw(&id, &found) {
                    break;
                }
                let before = std::mem::replace(&mut n_marks, self.history.n_marks());
                assert!(n_marks > before, "nothing gets on: {found}");
            }
        }
        assert!(server.close().await.success());
        let figures = self.history.check();
        let (servers, supervisors) = (self.server_kills, self.supervisor_kills);
        format!("{servers} kills of a server, {supervisors} of a supervisor: {figures}")
    }
}

fn data(result: &Value) -> Value {
    serde_json::from_str(text(result)).expect("JSON")
}

/// Lists the supervisors whose attempts lie below a folder.
fn supervisors(below: &Path) -> Vec<(Pid, PathBuf)> {
    let processes = std::fs::read_dir("/proc").expect("a process list");
    let pids = processes.flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Pid::from_raw(pid)
    });
    pids.filter_map(|pid| Some((pid, folder_of(pid)?)))
        .filter(|(_, folder)| folder.starts_with(below))
        // One that waits for its program may have a task by the time it is killed.
        .filter(|(_, folder)| !folder.to_string_lossy().contains("/.next-"))
        .collect()
}

/// Returns the folder that a supervisor works in; `None` for any other process.
fn folder_of(pid: Pid) -> Option<PathBuf> {
    let process = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
    let arguments = std::fs::read(process.join("cmdline")).ok()?;
    arguments.starts_with(b"raincheck-supervisor\0").then_some(())?;
    // A child that is not the program yet looks like its parent, but for the session.
    (getsid(Some(pid)) == Ok(pid)).then_some(())?;
    std::fs::read_link(process.join("cwd")).ok()
}

#[tokio::test]
async fn killed_servers_and_supervisors_lose_nothing_and_do_nothing_twice() {
    let mut campaign = Campaign::new();
    while campaign.server_kills + campaign.supervisor_kills < n_kills() {
        campaign.live_and_die().await;
    }
    println!("{}", campaign.finish().await);
}
