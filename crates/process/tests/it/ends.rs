//! Programs that are made to end.

use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::{Guarantee, Kind};
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::task::Resources;
use raincheck_process::CommandTool;
use raincheck_runtime::Request;

use crate::harness::{House, python, runs, shell, with};

/// Ignores what it can, has a child in a group of its own, and writes the numbers of both.
const STUBBORN: &str = r#"
import os, signal, time
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(s, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.write(1, f"{os.getpid()}\n".encode())
    while True: time.sleep(1)
os.write(1, f"{os.getpid()}\n".encode())
while True: time.sleep(1)
"#;

fn stubborn(folder: &std::path::Path, grace: Duration) -> CommandTool {
    CommandTool { grace, ..python(folder, "stubborn", STUBBORN) }
}

/// Waits until both processes have said their numbers.
async fn both(house: &House, id: raincheck_core::ids::TaskId) -> Vec<String> {
    house.lines(id, 2).await.iter().map(|line| line.message.to_string()).collect()
}

// [CMD-7, CANCEL-6]
#[tokio::test]
async fn a_cancelled_program_that_ignores_it_is_killed_after_its_grace_with_its_tree() {
    let tools = |folder: &_| vec![stubborn(folder, Duration::from_millis(200))];
    with(tools, |house| async move {
        let id = house.submit("stubborn", "{}").await;
        let pids = both(&house, id).await;
        house.cancel(id).await;
        let end = house.end(id).await;
        assert_eq!(end.state, State::Cancelled);
        assert!(!runs(&pids[0]) && !runs(&pids[1]), "{pids:?}");
        assert!(house.is_tidy(id).await, "it left a folder behind");
    })
    .await;
}

// [CANCEL-5]
#[tokio::test]
async fn a_program_that_ends_well_on_request_is_cancelled_before_its_grace_is_over() {
    let script = "trap 'echo 7 >\"$RAINCHECK_RESULT_FILE\"; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    with(
        |folder| vec![shell(folder, "polite", script)],
        |house| async move {
            let id = house.submit("polite", "{}").await;
            house.log(id).await;
            house.cancel(id).await;
            let end = house.end(id).await;
            assert_eq!(end.state, State::Cancelled);
        },
    )
    .await;
}

// [TIME-3]
#[tokio::test]
async fn a_program_beyond_its_limit_is_timed_out_and_gone() {
    let tools = |folder: &_| {
        let mut tool = shell(folder, "slow", "echo $$; exec sleep 60");
        tool.spec.run_timeout = Some(Duration::from_millis(300));
        // One place, so that the second task starts when the first one's tree is gone.
        tool.spec.lane = "cpu_heavy".into();
        let mut next = shell(folder, "next", "true");
        next.spec.lane = "cpu_heavy".into();
        vec![tool, next]
    };
    with(tools, |house| async move {
        let id = house.submit("slow", "{}").await;
        let end = house.end(id).await;
        assert_eq!(end.state, State::TimedOut);
        assert_eq!(end.error().kind, Kind::RunTimeout);
        let pid = house.log(id).await[0].message.to_string();
        assert_eq!(house.run("next", "{}").await.state, State::Succeeded);
        assert!(!runs(&pid));
    })
    .await;
}

// [CMD-9]
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_that_uses_too_much_is_ended_and_told_which_limit_it_was() {
    const EATER: &str = r#"
import os, time
if os.fork() == 0:
    held = bytearray(os.urandom(1 << 20) * 60)
    while True: time.sleep(1)
os.wait()
"#;
    const FILLER: &str = r#"
import os, time
with open(os.path.join(os.environ["RAINCHECK_ARTIFACTS_DIR"], "sub"), "wb") as out:
    out.write(bytes(30 << 20)); out.flush()
    while True: time.sleep(1)
"#;
    let tools =
        |folder: &_| vec![python(folder, "memory_mb", EATER), python(folder, "scratch_mb", FILLER)];
    with(tools, |house| async move {
        let (memory_mb, scratch_mb) = (Some(50), Some(20));
        for limit in ["memory_mb", "scratch_mb"] {
            let resources = Resources { memory_mb, scratch_mb, ..Resources::default() };
            let request = Request::new(limit, Json::empty_object(), Scope::local());
            let id = house.submit_as(Request { resources, ..request }).await;
            let end = house.end(id).await;
            let error = end.error();
            assert_eq!(
                (error.kind, error.guarantee()),
                (Kind::ToolFailed, Some(Guarantee::Executed))
            );
            let details = error.details.as_ref().expect("details").get();
            assert!(details.contains(&format!(r#""limit":"{limit}""#)), "{error:?}");
        }
    })
    .await;
}

// [CANCEL-8]
#[tokio::test]
async fn no_program_outlives_the_end_of_its_engine() {
    let (told, pids) = std::sync::mpsc::channel();
    let tools = |folder: &_| vec![stubborn(folder, Duration::from_secs(60))];
    with(tools, |house| async move {
        let id = house.submit("stubborn", "{}").await;
        told.send(both(&house, id).await).expect("heard");
    })
    .await;
    let pids = pids.recv().expect("told");
    assert!(!runs(&pids[0]) && !runs(&pids[1]), "{pids:?}");
}

/// Tells this test program that it is to be the server that gets killed.
const SERVER: &str = "RAINCHECK_TEST_IS_SERVER";

// [CANCEL-8]
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_killed_server_takes_its_programs_along() {
    use std::io::{BufRead as _, BufReader};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    if std::env::var_os(SERVER).is_some() {
        return serve_until_killed().await;
    }
    let mut server = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "ends::a_killed_server_takes_its_programs_along", "--nocapture"])
        .env(SERVER, "1")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("this program starts");
    let output = BufReader::new(server.stdout.take().expect("a pipe"));
    let said = |line: std::io::Result<String>| {
        line.ok()?.rsplit_once("program ").map(|(_, pid)| pid.to_owned())
    };
    let pid = output.lines().find_map(said).expect("its program runs");
    let pid = Pid::from_raw(pid.parse().expect("a number")).expect("not 0");
    let program = pidfd_open(pid, PidfdFlags::empty()).expect("it runs");

    server.kill().expect("killed");
    server.wait().expect("ended");
    let patience = Timespec { tv_sec: 30, tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&program, PollFlags::IN)], Some(&patience));
    assert_eq!(ended, Ok(1), "its program is still there");
}

/// Runs a program that never ends and says its number.
#[cfg(target_os = "linux")]
async fn serve_until_killed() {
    with(
        |folder| vec![shell(folder, "lasts", "echo $$; exec sleep 600")],
        |house| async move {
            let id = house.submit("lasts", "{}").await;
            println!("program {}", house.log(id).await[0].message);
            house.end(id).await;
        },
    )
    .await;
}
