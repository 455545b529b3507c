//! Supervisors that could not run, and those that cannot do what they are told.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_process::CommandTool;
use rustix::process::{Pid, Signal, kill_process};

use crate::begin::asked_for;
use crate::harness::{self, House, runs, shell, with};
use crate::town::Town;

/// Says its own number, its parent's and that of a daemon of its, with an empty environment. It speaks
/// at once also where the machine is busy, since it may have little time.
const NUMBERS: &str = r#"
setsid env -i /bin/sleep 1000 &
echo $$ $PPID $!
while [ ! -e go ]; do sleep 0.01; done
"#;

fn numbers(folder: &Path) -> CommandTool {
    CommandTool { grace: Duration::from_millis(100), ..shell(folder, "numbers", NUMBERS) }
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

// [CANCEL-6, LEASE-10]
#[tokio::test]
async fn a_supervisor_that_is_stopped_is_killed_also_where_a_link_leads_to_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    std::fs::create_dir(&real).expect("a folder");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    let scenario = async |house: House| {
        let (id, pids) = begin(&house).await;
        signal(&pids[1], Signal::STOP);
        house.cancel(id).await;
        assert_eq!(house.end(id).await.state, State::Cancelled);
        assert!(pids.iter().all(|pid| !runs(pid)), "{pids:?}");
    };
    harness::run(harness::options(&link, vec![numbers(&link)]), &link, scenario).await;
}

// [CANCEL-6, LEASE-10]
#[cfg(target_os = "linux")]
#[test]
fn a_supervisor_that_is_stopped_before_the_next_server_comes_is_killed_after_the_grace() {
    let town = Town::new(|folder| vec![numbers(folder)]);
    let (id, pids) = town.crash(async |house| begin(&house).await);
    signal(&pids[1], Signal::STOP);
    town.serve(async |house| {
        house.cancel(id).await;
        assert_eq!(house.end(id).await.state, State::Cancelled);
        assert!(pids.iter().all(|pid| !runs(pid)), "{pids:?}");
    });
}

const COLLECTION: &str = "collects";

/// A supervisor that was told to end its program and takes what that left for longer than anybody
/// waits.
#[test]
fn this_program_collects_where_it_is_told_to() {
    if !std::env::args().any(|argument| argument == COLLECTION) {
        return;
    }
    let inherited = std::io::stdin().as_fd().try_clone_to_owned().expect("a socket");
    let [first, _listener, _lock, folder] = asked_for(&inherited);
    rustix::process::fchdir(folder).expect("a folder");
    std::fs::write("../../../pid", std::process::id().to_string()).expect("written");
    let mut first = UnixStream::from(first);
    let here = format!("{{\"here\":{{\"pid\":{}}}}}\n\"begun\"\n", std::process::id());
    first.write_all(here.as_bytes()).expect("told");
    let mut told = BufReader::new(first.try_clone().expect("a socket"));
    for _ in ["what to run", "to end it"] {
        told.read_line(&mut String::new()).expect("told");
    }
    first.write_all(b"\"collecting\"\n").expect("told");
    let _ = told.read_to_end(&mut Vec::new());
    std::fs::write("../../../outlived", "").expect("a sign");
}

// [CANCEL-6, LEASE-10]
#[test]
fn a_supervisor_that_takes_what_a_cancelled_program_left_is_not_taken_for_stuck() {
    let mut town = Town::new(|folder| vec![numbers(folder)]);
    town.role = &[
        "--exact",
        "--nocapture",
        "stopped::this_program_collects_where_it_is_told_to",
        COLLECTION,
    ];
    town.serve(async |house| {
        let id = house.submit("numbers", "{}").await;
        house.until(id, |view| view.record.state == State::Running).await;
        house.cancel(id).await;
        assert_eq!(house.end(id).await.state, State::Cancelled);
    });
    let pid = std::fs::read_to_string(town.folder.join("pid")).expect("its number");
    while runs(&pid) {
        std::thread::yield_now();
    }
    assert!(town.folder.join("outlived").exists(), "it was killed while its server was there");
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
