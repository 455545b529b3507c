//! Supervisors that could not run, and those that cannot do what they are told.

use std::path::Path;
use std::time::Duration;

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_process::CommandTool;
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{House, python, runs, with};
use crate::town::Town;

/// Says its own number, its parent's and that of a daemon of its, with an empty environment.
const NUMBERS: &str = r#"
import os, sys, time
code = "import time\nwhile True: time.sleep(1)"
child = os.fork()
if child == 0:
    os.setsid()
    os.execve(sys.executable, ["x", "-c", code], {})
print(os.getpid(), os.getppid(), child, flush=True)
while not os.path.exists("go"): time.sleep(0.01)
"#;

fn numbers(folder: &Path) -> CommandTool {
    CommandTool { grace: Duration::from_millis(100), ..python(folder, "numbers", NUMBERS) }
}

async fn begin(house: &House) -> (raincheck_core::ids::TaskId, Vec<String>) {
    let id = house.submit("numbers", "{}").await;
    let line = house.lines(id, 1).await[0].message.to_string();
    (id, line.split(' ').map(str::to_owned).collect())
}

fn signal(pid: &str, signal: Signal) {
    let pid = Pid::from_raw(pid.parse().expect("a number")).expect("not 0");
    kill_process(pid, signal).expect("sent");
}

// [CANCEL-6, LEASE-10]
#[tokio::test]
async fn a_supervisor_that_is_stopped_is_killed_after_the_grace_with_its_tree() {
    with(
        |folder| vec![numbers(folder)],
        |house| async move {
            let (id, pids) = begin(&house).await;
            signal(&pids[1], Signal::STOP);
            house.cancel(id).await;
            assert_eq!(house.end(id).await.state, State::Cancelled);
            assert!(pids.iter().all(|pid| !runs(pid)), "{pids:?}");
        },
    )
    .await;
}

// [TIME-3, LEASE-10]
#[tokio::test]
async fn the_limit_of_a_program_holds_also_when_its_supervisor_is_stopped() {
    let tools = |folder: &Path| {
        let mut tool = numbers(folder);
        tool.spec.run_timeout = Some(Duration::from_millis(700));
        vec![tool]
    };
    with(tools, |house| async move {
        let (id, pids) = begin(&house).await;
        signal(&pids[1], Signal::STOP);
        let end = house.end(id).await;
        assert_eq!((end.state, end.error().kind), (State::TimedOut, Kind::RunTimeout));
        assert!(pids.iter().all(|pid| !runs(pid)), "{pids:?}");
    })
    .await;
}

// [LEASE-8]
#[test]
fn a_supervisor_that_was_stopped_longer_than_its_limit_ends_nothing_on_waking() {
    let town = Town::new(|folder| {
        let mut tool = numbers(folder);
        tool.spec.run_timeout = Some(Duration::from_secs(2));
        vec![tool]
    });
    // No server is there that would take it for stuck.
    let (id, pids) = town.crash(async |house| begin(&house).await);
    signal(&pids[1], Signal::STOP);
    // Longer than the limit: nothing but time tells of time.
    let lasted = std::process::Command::new("sleep").arg("2.5").status().expect("it runs");
    assert!(lasted.success());
    town.touch("go");
    signal(&pids[1], Signal::CONT);
    let end = town.end(id);
    assert_eq!(end.state, State::Succeeded, "{:?}", end.payload.outcome);
}

// [LEASE-3, CMD-7]
#[test]
fn a_killed_supervisor_leaves_nothing_behind_not_even_what_hides() {
    let town = Town::new(|folder| vec![numbers(folder)]);
    town.serve(async |house| {
        let (id, pids) = begin(&house).await;
        signal(&pids[1], Signal::KILL);
        let end = house.end(id).await;
        assert_eq!(end.error().guarantee(), Some(Guarantee::Unknown));
        assert!(pids.iter().all(|pid| !runs(pid)), "{pids:?}");
    });
}
