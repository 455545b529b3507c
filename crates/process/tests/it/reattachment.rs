//! Programs that outlive their servers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::cancel::OnExit;
use raincheck_core::error::Kind;
use raincheck_core::ids::TaskId;
use raincheck_core::lifecycle::State;
use raincheck_process::{CommandTool, Commands};
use raincheck_runtime::{Clock as _, Options, SystemClock};

use crate::harness::{self, House, python, runs, shell};
use crate::town::{Town, is_lost, kill, runtime};

/// Says who it is, counts its runs, speaks again when it is let, and ends with a result.
const TWO_LIVES: &str = r#"
import json, os
open("runs", "a").write("x")
print(os.getpid(), flush=True)
print(os.getppid(), flush=True)
out = os.fdopen(int(os.environ["RAINCHECK_CONTROL_FD"]), "w")
print('{"progress":{"step":1}}', file=out, flush=True)
while not os.path.exists("go"): pass
print("second", flush=True)
print('{"progress":{"step":2}}', file=out, flush=True)
while not os.path.exists("end"): pass
open(os.path.join(os.environ["RAINCHECK_ARTIFACTS_DIR"], "left"), "w").write("abc")
open(os.environ["RAINCHECK_RESULT_FILE"], "w").write('{"z":1.0}')
"#;

fn two_lives(folder: &Path) -> Vec<CommandTool> {
    vec![python(folder, "lives", TWO_LIVES)]
}

/// Starts the task and waits for what it says first: its number and its parent's.
async fn begin(house: &House) -> (TaskId, String, String) {
    let id = house.submit("lives", "{}").await;
    house.until(id, |view| view.progress.is_some()).await;
    let lines = house.lines(id, 2).await;
    (id, lines[0].message.to_string(), lines[1].message.to_string())
}

// [DUR-3, LOG-1, QUEUE-6]
#[test]
fn a_program_whose_server_is_cut_off_goes_on_and_the_next_server_listens() {
    let town = Town::new(two_lives);
    let (id, pid, parent) = town.crash(async |house| begin(&house).await);
    assert!(parent != "1" && parent != std::process::id().to_string(), "nobody holds it");
    assert!(runs(&pid));
    town.crash(async |house| {
        let view = house.until(id, |view| view.progress.is_some()).await;
        assert_eq!((view.record.state, view.record.attempt), (State::Running, 1));
        town.touch("go");
        let step = |view: &raincheck_runtime::View| view.progress.as_ref()?.step;
        house.until(id, |view| step(view) == Some(2)).await;
        house.lines(id, 3).await;
    });
    town.touch("end");
    let end = town.serve(async |house| {
        let end = house.end(id).await;
        let lines = house.log(id).await;
        assert!(lines.iter().map(|line| line.seq).eq(1..=3), "{lines:?}");
        assert!(house.is_tidy(id).await);
        end
    });
    assert_eq!(end.result(), r#"{"z":1.0}"#);
    assert_eq!(std::fs::read(town.folder.join("runs")).expect("runs"), b"x");
}

// [DUR-3, LEASE-6, TIME-5]
#[test]
fn what_ends_while_no_server_runs_keeps_its_result_and_its_files() {
    let town = Town::new(two_lives);
    let (id, ..) = town.crash(async |house| begin(&house).await);
    town.touch("go");
    town.touch("end");
    town.wait_for_end(id);
    let root = town.folder.join("tasks");
    let ended = raincheck_process::unrecorded_end(&root, id, 1).expect("it is written down");
    let begun = SystemClock::new().now();
    let (end, record) = town.serve(async |house| {
        let end = house.end(id).await;
        (end, house.until(id, |_| true).await.record)
    });
    assert_eq!((end.state, end.result()), (State::Succeeded, r#"{"z":1.0}"#));
    // It ended when it ended, not when somebody came who could record it.
    assert!(ended <= begun, "{ended} {begun}");
    assert_eq!((record.ended_at, end.payload.attempts[0].ended_at), (Some(ended), ended));
    assert!(record.updated_at >= begun && record.expires_at() > Some(ended), "{record:?}");
    assert_eq!(&*end.payload.artifacts[0].name, "left");
    assert_eq!(end.payload.progress.as_ref().and_then(|progress| progress.step), Some(2));
    assert!(end.payload.attempts[0].metrics.is_some());
}

// [CANCEL-2, CANCEL-8]
#[test]
fn a_reattached_program_can_be_cancelled() {
    let town = Town::new(two_lives);
    let (id, pid, _) = town.crash(async |house| begin(&house).await);
    let end = town.serve(async |house| {
        house.until(id, |view| view.progress.is_some()).await;
        house.cancel(id).await;
        house.end(id).await
    });
    assert_eq!(end.state, State::Cancelled);
    assert!(!runs(&pid));
}

// [DUR-3, CANCEL-8]
#[test]
fn a_program_whose_tool_is_gone_from_the_next_server_is_listened_to_all_the_same() {
    let mut town = Town::new(two_lives);
    let (id, pid, _) = town.crash(async |house| begin(&house).await);
    town.tools = |folder| vec![shell(folder, "other", "true")];
    town.serve(async |house| {
        house.until(id, |view| view.progress.is_some()).await;
        assert!(runs(&pid));
    });
    assert!(runs(&pid), "it outlives this server too");
    town.touch("go");
    town.touch("end");
    let end = town.end(id);
    assert_eq!((end.state, end.result()), (State::Succeeded, r#"{"z":1.0}"#));
}

// [CANCEL-8]
#[test]
fn a_server_that_ends_politely_leaves_its_programs_running() {
    let town = Town::new(two_lives);
    let (id, pid, _) = town.serve(async |house| begin(&house).await);
    assert!(runs(&pid));
    town.touch("go");
    town.touch("end");
    assert_eq!(town.end(id).state, State::Succeeded);
}

// [CANCEL-8]
#[test]
fn a_tool_that_ends_with_its_server_is_cancelled_and_not_run_again() {
    let town = Town::new(|folder| {
        let mut tool = python(folder, "lives", TWO_LIVES);
        tool.spec.on_exit = OnExit::Stop;
        vec![tool]
    });
    for is_polite in [true, false] {
        let began = async |house: House| begin(&house).await;
        let (id, pid, _) = if is_polite { town.serve(began) } else { town.crash(began) };
        let end = town.end(id);
        assert_eq!(end.state, State::Cancelled, "polite: {is_polite}, {:?}", end.payload.outcome);
        assert!(!runs(&pid));
    }
    assert_eq!(std::fs::read(town.folder.join("runs")).expect("runs"), b"xx");
}

// [TIME-3, TIME-6]
#[test]
fn a_limit_that_passes_while_no_server_runs_is_kept() {
    let town = Town::new(|folder| {
        let mut tool = shell(folder, "slow", "echo $$; exec sleep 600");
        tool.spec.run_timeout = Some(Duration::from_millis(400));
        vec![tool]
    });
    let (id, pid) = town.crash(async |house| {
        let id = house.submit("slow", "{}").await;
        (id, house.log(id).await[0].message.to_string())
    });
    town.wait_for_end(id);
    assert!(!runs(&pid));
    let end = town.end(id);
    assert_eq!((end.state, end.error().kind), (State::TimedOut, Kind::RunTimeout));
}

/// Leaves a daemon in a session of its own.
const DAEMON: &str = r#"
import os, time
open("runs", "a").write("x")
child = os.fork()
if child == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    os.write(1, f"{os.getpid()}\n".encode())
    while True: time.sleep(1)
os.waitpid(child, 0)
os.write(1, f"{os.getppid()}\n".encode())
while True: time.sleep(1)
"#;

async fn daemon(house: &House) -> (TaskId, Vec<String>) {
    let id = house.submit("daemon", "{}").await;
    let lines = house.lines(id, 2).await;
    (id, lines.iter().map(|line| line.message.to_string()).collect())
}

// [LEASE-3, LEASE-4]
#[cfg(target_os = "linux")]
#[test]
fn a_killed_supervisor_loses_its_task_and_nothing_of_the_tree_is_left() {
    let town = Town::new(|folder| vec![python(folder, "daemon", DAEMON)]);
    town.serve(async |house| {
        let (id, pids) = daemon(&house).await;
        let supervisor = parent_of_the_program(&house, id).await;
        kill(&supervisor);
        is_lost(&house.end(id).await);
        assert!(pids.iter().filter(|pid| **pid != supervisor).all(|pid| !runs(pid)), "{pids:?}");
        assert!(house.is_tidy(id).await);
    });
    assert_eq!(std::fs::read(town.folder.join("runs")).expect("runs"), b"x");
}

// [DUR-3, LEASE-3]
#[cfg(target_os = "linux")]
#[test]
fn a_supervisor_that_dies_while_no_server_runs_is_found_lost_with_its_tree() {
    let town = Town::new(|folder| vec![python(folder, "daemon", DAEMON)]);
    let (id, pids, supervisor) = town.crash(async |house| {
        let (id, pids) = daemon(&house).await;
        let supervisor = parent_of_the_program(&house, id).await;
        (id, pids, supervisor)
    });
    kill(&supervisor);
    is_lost(&town.end(id));
    assert!(pids.iter().filter(|pid| **pid != supervisor).all(|pid| !runs(pid)), "{pids:?}");
}

/// Returns the number that the program, not its daemon, said last: its parent's.
async fn parent_of_the_program(house: &House, id: TaskId) -> String {
    let mut pids: Vec<String> =
        house.log(id).await.iter().map(|line| line.message.to_string()).collect();
    let is_supervisor = |pid: &String| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).starts_with("raincheck-supervisor")
    };
    pids.retain(is_supervisor);
    pids.pop().expect("a supervisor")
}

// [CANCEL-8]
#[test]
fn without_a_supervisor_a_program_is_this_process_own_and_ends_with_it() {
    let tools = |folder: &Path| vec![shell(folder, "own", "echo $PPID; exec sleep 600")];
    let town = Town::new(tools);
    let commands = Commands::new(town.folder.join("tasks"), tools(&town.folder)).expect("a root");
    let options = Options::in_memory()
        .with_tools(Arc::new(commands))
        .with_store(Arc::clone(&town.store) as _);
    let scenario = async |house: House| {
        let id = house.submit("own", "{}").await;
        assert_eq!(*house.log(id).await[0].message, *std::process::id().to_string());
        id
    };
    let id = runtime().block_on(harness::run(options, &town.folder, scenario));
    is_lost(&town.serve(async |house| house.end(id).await));
}

// [CMD-8, CMD-7]
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_no_server_can_find_any_more_is_ended() {
    let town = Town::new(two_lives);
    let (_, pid, supervisor) = town.crash(async |house| begin(&house).await);
    assert!(runs(&pid) && runs(&supervisor));
    std::fs::remove_dir_all(&town.folder).expect("removed");
    while runs(&pid) || runs(&supervisor) {
        std::thread::yield_now();
    }
    assert!(!town.folder.exists(), "nothing is written for nobody");
}
