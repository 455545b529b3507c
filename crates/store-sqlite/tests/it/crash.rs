//! A process that is killed at any moment: what it was told is kept, is kept [DUR-1, DUR-3].

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use raincheck_core::lifecycle::State;
use raincheck_core::store::Found;
use raincheck_core::task::Outcome;

use crate::kit::*;

const CHILD: &str = "RAINCHECK_STORE_OF_A_CHILD";

/// How many acknowledgements each child gives before it is killed.
const ROUNDS: [usize; 8] = [1, 2, 5, 17, 40, 90, 180, 300];

/// Works on the store of its parent until it is killed; without a parent it has nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_child_works_until_it_is_killed() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let first: u64 = std::env::var("RAINCHECK_FIRST").expect("a number").parse().expect("a number");
    let (store, _) = open(Path::new(&folder)).await;
    let store = Arc::new(store);
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..4 {
        let store = Arc::clone(&store);
        workers.spawn(async move {
            for n in (first + worker..).step_by(4) {
                submit(&store, one(n, |_| {})).await;
                println!("ack submit {n}");
                if let Some(claimed) = claim(&store).await {
                    println!("ack lease {:x}", claimed.record.fence.raw());
                    let done = done(&claimed.record.id().to_string());
                    update(&store, attempt(&claimed, done)).await;
                    println!("ack finish {}", (claimed.record.id().bits() >> 80) - 1_000);
                }
            }
        });
    }
    while workers.join_next().await.is_some() {}
}

/// What a killed child was told.
#[derive(Default)]
struct Told {
    submitted: BTreeSet<u64>,
    finished: BTreeSet<u64>,
    fences: Vec<u64>,
}

impl Told {
    fn hear(&mut self, line: &str) -> bool {
        // The harness of the tests may have begun the line.
        let Some((_, told)) = line.split_once("ack ") else { return false };
        let (what, n) = told.split_once(' ').expect("two words");
        match what {
            "submit" => drop(self.submitted.insert(n.parse().expect("a number"))),
            "finish" => drop(self.finished.insert(n.parse().expect("a number"))),
            _ => self.fences.push(u64::from_str_radix(n, 16).expect("a number")),
        }
        true
    }
}

fn run_and_kill(folder: &Path, first: usize, n_acks: usize, told: &mut Told) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "crash::the_child_works_until_it_is_killed", "--nocapture"])
        .env(CHILD, folder)
        .env("RAINCHECK_FIRST", first.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut n_heard = 0;
    while n_heard < n_acks {
        let line = lines.next().expect("the child ended by itself").expect("a line");
        n_heard += usize::from(told.hear(&line));
    }
    child.kill().expect("it is killed");
    for line in lines {
        told.hear(&line.expect("a line"));
    }
    child.wait().expect("it is gone");
}

#[tokio::test]
async fn what_was_acknowledged_outlives_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut told = Told::default();
    for (round, n_acks) in ROUNDS.into_iter().enumerate() {
        run_and_kill(folder.path(), round * 10_000, n_acks, &mut told);
        let (store, _) = open(folder.path()).await;
        for n in &told.submitted {
            let Found::Task(record, payload) = find(&store, *n).await else {
                panic!("round {round}: task {n} was acknowledged and is gone")
            };
            let outcome = Outcome::Succeeded(vec![raincheck_core::content::Content::Text(
                record.id().to_string().into(),
            )]);
            if told.finished.contains(n) {
                assert_eq!(record.state, State::Succeeded, "round {round}: task {n}");
            }
            let has_result = payload.outcome == Some(outcome);
            assert_eq!(has_result, record.state == State::Succeeded, "round {round}: task {n}");
        }
    }
    assert!(told.submitted.len() >= ROUNDS.iter().sum::<usize>() / 4, "too little was tried");
    let n_fences = told.fences.len();
    told.fences.sort_unstable();
    told.fences.dedup();
    assert_eq!(told.fences.len(), n_fences, "a fence was given twice [LEASE-1]");
}
