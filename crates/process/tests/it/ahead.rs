//! The supervisor that is made before its program is.

use std::path::{Path, PathBuf};

use raincheck_core::lifecycle::State;
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{self, House, runs, shell};
use crate::town::runtime;

fn tools(folder: &Path) -> Vec<raincheck_process::CommandTool> {
    vec![shell(folder, "parent", "echo $PPID")]
}

/// Returns the number of the supervisor that runs a program.
async fn parent(house: &House) -> String {
    let id = house.submit("parent", "{}").await;
    assert_eq!(house.end(id).await.state, State::Succeeded);
    house.log(id).await[0].message.to_string()
}

/// Returns the number of the supervisor that waits for a program, once there is one.
async fn waiting(house: &House) -> String {
    let works_ahead = |process: &PathBuf| {
        let works_in = std::fs::read_link(process.join("cwd")).unwrap_or_default();
        works_in.starts_with(house.folder()) && works_in.to_string_lossy().contains("/.next-")
    };
    loop {
        let all = std::fs::read_dir("/proc").expect("a process list").flatten();
        if let Some(process) = all.map(|entry| entry.path()).find(works_ahead) {
            let number = process.file_name().expect("a number");
            return number.to_string_lossy().into_owned();
        }
        tokio::task::yield_now().await;
    }
}

/// Lists the folders that wait for a task.
fn folders(tasks: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    let name = |path: &PathBuf| {
        path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(".next-"))
    };
    all.map(|entry| entry.path()).filter(name).collect()
}

#[test]
fn a_program_gets_the_supervisor_that_waits_and_nothing_of_one_is_left_at_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = || harness::options(folder.path(), tools(folder.path()));
    runtime().block_on(async {
        harness::run(options(), folder.path(), async |house| {
            parent(&house).await;
            // One that is not ready yet is not waited for.
            while waiting(&house).await != parent(&house).await {}
            waiting(&house).await;
        })
        .await;
    });
    while !folders(&folder.path().join("tasks")).is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn a_supervisor_that_was_killed_while_it_waited_is_given_no_program() {
    runtime().block_on(harness::with(tools, async |house| {
        for _ in 0..5 {
            parent(&house).await;
            let killed = waiting(&house).await;
            let number = killed.parse().ok().and_then(Pid::from_raw).expect("a number");
            kill_process(number, Signal::KILL).expect("killed");
            while runs(&killed) {
                tokio::task::yield_now().await;
            }
            assert_ne!(parent(&house).await, killed);
        }
    }));
}
