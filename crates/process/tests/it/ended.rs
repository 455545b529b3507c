//! Ends that cannot be written down at first.

use std::path::Path;

use raincheck_core::lifecycle::State;
use raincheck_process::CommandTool;

use crate::harness::{self, shell};
use crate::town::{Town, runtime};

/// Removes all that it was told of, and everything around it.
const RAZES: &str =
    r#"here=$(dirname "$RAINCHECK_RESULT_FILE"); rm -rf "$here" "$here"/..; echo gone; exit 3"#;

fn razes(folder: &Path) -> Vec<CommandTool> {
    vec![shell(folder, "razes", RAZES)]
}

// [CMD-8]
#[cfg(target_os = "linux")]
#[test]
fn a_supervisor_whose_outcome_is_committed_ends() {
    let town = Town::new(|folder| vec![shell(folder, "parent", "echo $PPID")]);
    let pids = town.serve(async |house| {
        let mut pids = Vec::new();
        for _ in 0..5 {
            let id = house.submit("parent", "{}").await;
            house.end(id).await;
            pids.push(house.log(id).await[0].message.to_string());
        }
        pids
    });
    for pid in pids {
        // It may take its time, but not for ever.
        while harness::runs(&pid) {
            std::thread::yield_now();
        }
    }
}

// [DUR-5, LEASE-3]
#[test]
fn a_program_that_removes_its_folder_ends_as_it_ended() {
    runtime().block_on(harness::with(razes, async |house| {
        let end = house.run("razes", "{}").await;
        assert_eq!(end.state, State::Failed);
        assert!(end.error().message.contains("exited with code 3"), "{:?}", end.error());
    }));
}

/// Removes a folder around the one it was told of, says so, waits, and ends.
fn razed_while_a_server_is_lost(parents: &str) {
    let town = Town::new(|folder| {
        let script = r#"echo x >> runs; here=$(dirname "$RAINCHECK_RESULT_FILE")
            for _ in $(cat which); do here=$(dirname "$here"); done; rm -rf "$here"; touch razed
            while ! test -e go; do sleep 0.01; done; exit 3"#;
        vec![shell(folder, "razes", script)]
    });
    std::fs::write(town.folder.join("which"), parents).expect("written");
    let id = town.crash(async |house| {
        let id = house.submit("razes", "{}").await;
        while !town.folder.join("razed").exists() {
            tokio::task::yield_now().await;
        }
        id
    });
    let end = town.serve(async |house| {
        house.until(id, |_| true).await;
        town.touch("go");
        house.end(id).await
    });
    assert!(end.error().message.contains("exited with code 3"), "{:?}", end.error());
    assert_eq!(std::fs::read_to_string(town.folder.join("runs")).expect("runs"), "x\n");
}

// [DUR-3, LEASE-3]
#[test]
fn a_program_that_removes_the_folder_above_its_own_is_found_by_the_next_server() {
    razed_while_a_server_is_lost("attempt");
}

// [DUR-3, LEASE-3]
#[cfg(target_os = "linux")]
#[test]
fn a_program_whose_files_are_all_removed_is_waited_for_by_the_next_server() {
    razed_while_a_server_is_lost("attempt task");
}

// [DUR-5, DUR-3]
#[test]
fn a_program_that_removes_what_it_was_told_of_while_no_server_runs_ends_as_it_ended() {
    let town = Town::new(|folder| {
        let script = r#"echo up; while ! test -e go; do sleep 0.01; done; rm -rf "$(dirname "$RAINCHECK_RESULT_FILE")"; exit 3"#;
        vec![shell(folder, "razes", script)]
    });
    let id = town.crash(async |house| {
        let id = house.submit("razes", "{}").await;
        house.lines(id, 1).await;
        id
    });
    town.touch("go");
    town.wait_for_end(id);
    let end = town.end(id);
    assert!(end.error().message.contains("exited with code 3"), "{:?}", end.error());
}
