//! The real binary in places where processes cannot be seen, or are not ours [CMD-10, LEASE-10].
//!
//! What needs the rights of root, or user namespaces, is left out where there are none, and says so.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::server::{self, Server};

/// The tools of these tests.
const TOOLS: &str = r#"
[tools.echo]
description = "Answers with its inputs"
command = ["sh", "-c", "cat >$RAINCHECK_RESULT_FILE"]
wait_s = 20

[tools.signals]
description = "Answers with the signals that it was started with"
command = ["sh", "-c", "(grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\n\\t' | sed 's/.*/\"&\"/') >$RAINCHECK_RESULT_FILE"]
wait_s = 20

[tools.zombies]
description = "Counts the processes that have ended and were not waited for"
command = ["sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' >$RAINCHECK_RESULT_FILE; true"]
wait_s = 20

[tools.orphans]
description = "Leaves processes to whoever takes them"
command = ["sh", "-c", "for n in 1 2 3; do (sleep 0.01 &) ; done"]
wait_s = 20

[tools.root]
description = "Becomes root for good"
command = ["./su", "-c", "import os, time; os.setresuid(0, 0, 0); print(os.getpid(), flush=True); time.sleep(600)"]
wait_s = 0
cancel_grace_s = 0.2
env = { PYTHONHOME = "/usr" }
"#;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("raincheck.toml"), TOOLS).expect("written");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a command line of the binary that is started by another.
    fn command(&self, wrapper: &[&str], binary: &Path, arguments: &[&str]) -> Command {
        let (program, rest) = wrapper.split_first().expect("a wrapper");
        let mut command = Command::new(program);
        command.args(rest).arg(binary).args(arguments);
        command.arg("--config").arg(self.path("raincheck.toml"));
        command.env("RAINCHECK_STORE", "memory");
        command.env("RAINCHECK_STATE_DIR", self.path("state"));
        command.env("RAINCHECK_RUNTIME_DIR", self.path("run"));
        command.stderr(Stdio::null());
        command
    }

    async fn serve(&self, wrapper: &[&str]) -> Server {
        Server::of(self.command(wrapper, &server::binary(), &["serve"])).shake_hands().await
    }
}

/// Makes a pid namespace; `None`, with a word, where this user may not.
#[expect(clippy::print_stdout, reason = "whoever runs the tests is told what they left out")]
fn unshared(more: &[&'static str]) -> Option<Vec<&'static str>> {
    let mut wrapper = vec!["unshare", "--fork", "--pid", "--kill-child"];
    if !geteuid().is_root() {
        wrapper.extend(["--user", "--map-root-user"]);
    }
    wrapper.extend(more);
    let (program, rest) = wrapper.split_first().expect("a wrapper");
    let tried = std::process::Command::new(program).args(rest).arg("true").output();
    if tried.is_ok_and(|output| output.status.success()) {
        wrapper.push("--");
        return Some(wrapper);
    }
    println!("left out: this user may not make a pid namespace");
    None
}

#[tokio::test]
async fn a_process_table_of_another_namespace_is_named_and_nothing_runs() {
    // [CMD-10] Case task-process-table-of-another-namespace.
    let Some(wrapper) = unshared(&[]) else { return };
    let place = Place::new();
    let mut server = place.serve(&wrapper).await;
    for _ in 0..2 {
        let refused = server.data("echo", json!({"a": 1})).await;
        assert_eq!(refused["error"]["guarantee"], "not_executed", "{refused}");
        assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("/proc")));
    }
    server.close().await;
    for (command, exit) in [("doctor", 1), ("status", 0)] {
        let told = place.command(&wrapper, &server::binary(), &[command]).output().await;
        let told = told.expect("it runs");
        let text = String::from_utf8_lossy(&told.stdout);
        assert!(text.contains("process table"), "{command}: {text}");
        assert_eq!(told.status.code(), Some(exit), "{command}: {text}");
    }
}

#[tokio::test]
async fn a_place_without_a_process_table_is_named_and_nothing_runs() {
    // [CMD-10] Case task-process-table-of-another-namespace.
    let script = "mount -t tmpfs none /proc && exec \"$0\" \"$@\"";
    let Some(mut wrapper) = unshared(&["--mount"]) else { return };
    // What starts the server is gone from `/proc` then.
    wrapper.extend(["sh", "-c", script]);
    let place = Place::new();
    let mut server = place.serve(&wrapper).await;
    let refused = server.data("echo", json!({})).await;
    assert_eq!(refused["error"]["guarantee"], "not_executed", "{refused}");
    assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("/proc")));
    server.close().await;
}

#[tokio::test]
async fn a_server_that_is_the_first_process_of_its_namespace_leaves_no_zombies() {
    // [CMD-7]
    let Some(wrapper) = unshared(&["--mount-proc"]) else { return };
    let place = Place::new();
    let mut server = place.serve(&wrapper).await;
    for n in 0..9 {
        assert_eq!(server.data("echo", json!({"n": n})).await, json!({"n": n}));
        server.data("orphans", json!({})).await;
    }
    // The last supervisors may be on their way out: what is left later was left for good.
    let mut left = Value::Null;
    for _ in 0..100 {
        left = server.data("zombies", json!({})).await;
        if left.as_u64().is_some_and(|n| n <= 1) {
            break;
        }
    }
    assert!(left.as_u64().is_some_and(|n| n <= 1), "{left} zombies");
    server.close().await;
}

#[tokio::test]
async fn what_a_launcher_blocks_and_ignores_reaches_neither_server_nor_programs() {
    // [CMD-10]
    let script = "import os, signal, sys\n\
                  signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n\
                  signal.signal(signal.SIGHUP, signal.SIG_IGN)\n\
                  signal.signal(signal.SIGQUIT, signal.SIG_IGN)\n\
                  os.execv(sys.argv[1], sys.argv[1:])";
    let place = Place::new();
    let mut server = place.serve(&["python3", "-c", script]).await;
    let told = server.data("signals", json!({})).await;
    let told = told.as_str().expect("a text");
    let masks = told.split("Sig").filter_map(|part| part.split_once(':'));
    for (name, mask) in masks {
        // Two signals are the C library's own.
        let mask = u64::from_str_radix(mask.trim(), 16).map(|mask| mask & !(0b11 << 31));
        assert_eq!(mask, Ok(0), "{name}: {told}");
    }
    let pid = server.child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    kill_process(pid.expect("it runs"), Signal::TERM).expect("sent");
    assert!(server.exit().await.success(), "it ends when it is told to");
}

#[tokio::test]
async fn a_program_that_became_another_user_s_is_named_and_not_said_to_be_cancelled() {
    // [LEASE-10] Case task-child-of-another-user.
    if !geteuid().is_root() {
        println!("left out: only root can make a program that becomes another user's");
        return;
    }
    let place = Place::new();
    let (su, binary) = (place.path("su"), place.path("server"));
    let python = std::fs::canonicalize("/usr/bin/python3").expect("python");
    std::fs::copy(python, &su).expect("copied");
    std::fs::copy(server::binary(), &binary).expect("copied");
    std::fs::set_permissions(&su, PermissionsExt::from_mode(0o4755)).expect("set");
    std::fs::set_permissions(place.folder.path(), PermissionsExt::from_mode(0o777)).expect("set");
    let wrapper = ["setpriv", "--reuid", "4242", "--clear-groups"];
    let mut command = place.command(&wrapper, &binary, &["serve"]);
    let said = place.path("stderr");
    command.stderr(std::fs::File::create(&said).expect("created"));
    let mut server = Server::of(command).shake_hands().await;

    let task = server.data("root", json!({})).await;
    let follow = json!({"task_id": task["task_id"], "wait_s": 20});
    let logs = server.data("tail_task_logs", follow.clone()).await;
    let pid = logs["lines"][0]["message"].as_str().unwrap_or_else(|| panic!("{logs}")).to_owned();
    server.data("cancel_task", json!({"task_id": task["task_id"]})).await;
    let ended = server.ended(&task).await;
    let logs = server.data("tail_task_logs", follow).await;
    let after = server.data("echo", json!({"a": 1})).await;
    let number = Pid::from_raw(pid.parse().expect("a number")).expect("not 0");
    kill_process(number, Signal::KILL).expect("it ran on");

    assert_eq!(ended["state"], "failed", "{ended}");
    assert_eq!(ended["error"]["guarantee"], "unknown", "{ended}");
    for told in [&ended["error"]["message"], &ended["error"]["hint"], &logs["lines"][1]["message"]]
    {
        assert!(told.as_str().is_some_and(|text| text.contains(&pid)), "{pid}: {ended} {logs}");
    }
    assert_eq!(after, json!({"a": 1}), "{after}");
    assert!(server.close().await.success());
    let said = std::fs::read_to_string(said).expect("its own log");
    assert!(said.lines().any(|line| line.contains("WARN") && line.contains(&pid)), "{said}");
}
