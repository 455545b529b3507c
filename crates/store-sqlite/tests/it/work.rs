//! The work that disks are spoilt under: a process of its own that says what it was told is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::decide::Change;
use raincheck_core::ids::TaskId;
use raincheck_core::lane;
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    Claim, Claimed, Durability, Error, Found, NoSink, Submit, Submitted, TaskStore as _,
};
use raincheck_core::task::Outcome;
use raincheck_store_sqlite::{Options, SqliteStore};
use raincheck_testkit::disk::{Shim, number_from};

use crate::kit::{LANE, REATTACH, START, at, attempt, id, one};

const CHILD: &str = "RAINCHECK_WORK_OF_A_CHILD";
const N_TASKS: &str = "RAINCHECK_WORK_TASKS";
const N_WORKERS: &str = "RAINCHECK_WORK_WORKERS";
const PROCESS: &str = "RAINCHECK_WORK_PROCESS";

/// How often something is tried on a store that fails.
const TRIES: usize = 5;

/// How a promise is broken when the row is there and its contents are not: no durability allows it.
pub(crate) const UNREADABLE: &str = "it cannot be read";

/// What the child is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) n_tasks: u64,
    pub(crate) n_workers: u64,
    pub(crate) durability: Durability,
}

impl Work {
    /// Does the work in a process of its own, on a disk of the test's.
    pub(crate) fn run(self, root: &Path, shim: &Shim) {
        let status = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "work::the_child_works_on_a_spoilt_disk", "--nocapture"])
            .env(CHILD, store_below(root))
            .env(N_TASKS, self.n_tasks.to_string())
            .env(N_WORKERS, self.n_workers.to_string())
            .env(PROCESS, u8::from(self.durability == Durability::Process).to_string())
            .envs(shim.variables())
            .stdout(Stdio::null())
            .status()
            .expect("a child");
        assert!(status.success(), "the work ended with {status}");
    }
}

/// Where the store lies: in a folder that it makes itself.
pub(crate) fn store_below(root: &Path) -> PathBuf {
    root.join("state/tasks.db")
}

/// A folder in memory where the machine has one: what lasts is simulated here.
pub(crate) fn quick_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a folder")
}

pub(crate) async fn open_store(path: &Path, durability: Durability) -> Result<SqliteStore, Error> {
    let store = SqliteStore::new(Options { path: path.to_owned(), durability });
    let lanes = vec![(LANE.into(), lane::Config::new(8, 100_000))];
    store.open(START, lanes, REATTACH, Arc::new(NoSink)).await?;
    Ok(store)
}

/// A text of some size that tells whose it is.
fn text(n: u64, kib: usize) -> String {
    let word = format!("{n}:");
    word.repeat(1 + (kib << 10) / word.len())
}

/// Most are small, some are large enough to fill the log, some have a file of their own.
fn inputs(n: u64) -> Json {
    let kib = [0, 0, 20, 0, 70][usize::try_from(n % 5).expect("small")];
    Json::parse(format!("{{\"text\":\"{}\"}}", text(n, kib))).expect("JSON")
}

fn result(n: u64) -> Outcome {
    let kib = [0, 30, 0, 90][usize::try_from(n % 4).expect("small")];
    Outcome::Succeeded(vec![Content::Text(text(n, kib).into())])
}

/// Whether a task may be forgotten soon after its end.
const fn is_short_lived(n: u64) -> bool {
    n.is_multiple_of(8)
}

fn task(n: u64) -> Submit {
    let one = one(n, |task| {
        if is_short_lived(n) {
            task.limits.retention = Duration::from_secs(1);
        }
    });
    Submit { inputs: inputs(n), ..one }
}

fn number(id: TaskId) -> u64 {
    u64::try_from((id.bits() >> 80) - 1_000).expect("small")
}

/// Works on the store of its parent; without a parent it has nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_child_works_on_a_spoilt_disk() {
    let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let durability =
        if number_from(PROCESS, 0) == 1 { Durability::Process } else { Durability::Full };
    let (n_tasks, n_workers) = (number_from(N_TASKS, 0), number_from(N_WORKERS, 1));
    // Twice, so that a store that was closed is worked on, too.
    for half in [0..n_tasks / 2, n_tasks / 2..n_tasks] {
        let mut store = open_store(&path, durability).await;
        for _ in 0..TRIES {
            let Err(error) = &store else { break };
            say(format_args!("err {error}"));
            store = open_store(&path, durability).await;
        }
        let store = Arc::new(store.expect("it opens at last"));
        let mut workers = tokio::task::JoinSet::new();
        for worker in 0..n_workers {
            let (store, half) = (Arc::clone(&store), half.clone());
            workers.spawn(async move {
                for n in half.skip(usize::try_from(worker).expect("few")) {
                    if n % n_workers == worker {
                        work_on(&store, n).await;
                    }
                }
            });
        }
        while let Some(done) = workers.join_next().await {
            done.expect("a worker");
        }
        told(&store, || async { store.fire(at(2), 1_000).await }).await;
        say(format_args!("ack end 0"));
    }
}

/// Says something to the parent.
#[expect(clippy::print_stdout, reason = "the recording hears what is printed")]
fn say(what: std::fmt::Arguments<'_>) {
    println!("{what}");
}

async fn work_on(store: &SqliteStore, n: u64) {
    let submitted = told(store, || store.submit(START, vec![task(n)], None)).await.0;
    assert!(matches!(submitted.as_slice(), [Submitted::Inserted { .. }]), "{submitted:?}");
    say(format_args!("ack submit {n}"));
    let claim = || store.claim(START, Claim { lanes: vec![LANE.into()], n: 1 });
    let Some(leased) = told(store, claim).await.pop() else { return };
    let n = number(leased.record.id());
    say(format_args!("ack lease {n} {:x}", leased.record.fence.raw()));
    let finish = || store.update(START, vec![attempt(&leased, Change::Finish(result(n)))], None);
    told(store, finish).await;
    say(format_args!("ack finish {n}"));
}

/// Does something until it is committed; says each failure.
async fn told<T, F>(store: &SqliteStore, act: impl Fn() -> F) -> T
where
    F: Future<Output = Result<raincheck_core::store::Write<T>, Error>>,
{
    for _ in 0..TRIES {
        let done = async {
            let posted = act().await?;
            posted.receipt.committed().await.map(|()| posted.value)
        };
        match done.await {
            Ok(value) => return value,
            Err(error) => say(format_args!("err {error}")),
        }
        while store.set_lane("other".into(), lane::Config::new(1, 1)).await.is_err() {
            tokio::task::yield_now().await;
        }
    }
    panic!("the store does not come back");
}

/// What the child said so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) submitted: BTreeSet<u64>,
    pub(crate) finished: BTreeSet<u64>,
    leased: BTreeMap<u64, u64>,
    pub(crate) errors: Vec<String>,
    pub(crate) n_ends: usize,
}

impl Told {
    pub(crate) fn hear(&mut self, said: &str) {
        for line in said.lines() {
            // The harness of the tests may have begun the line.
            if let Some((_, error)) = line.split_once("err ") {
                self.errors.push(error.to_owned());
            } else if let Some((_, told)) = line.split_once("ack ") {
                self.take(&told.split(' ').collect::<Vec<_>>());
            }
        }
    }

    fn take(&mut self, words: &[&str]) {
        let n = words[1].parse().expect("a number");
        match words[0] {
            "submit" => drop(self.submitted.insert(n)),
            "finish" => drop(self.finished.insert(n)),
            "lease" => {
                let fence = u64::from_str_radix(words[2], 16).expect("a fence");
                self.leased.insert(n, fence);
            }
            _ => self.n_ends += 1,
        }
    }

    /// How many promises were made.
    pub(crate) fn n_promises(&self) -> usize {
        self.submitted.len() + self.leased.len() + self.finished.len()
    }

    /// Returns the promises that a store does not keep; panics when it holds what makes no sense.
    pub(crate) async fn broken_by(&self, store: &SqliteStore) -> Vec<String> {
        let mut broken = Vec::new();
        for n in &self.submitted {
            if let Some(what) = self.broken_at(store, *n).await {
                broken.push(format!("task {n}: {what}"));
            }
        }
        let last_fence = self.leased.values().max().copied().unwrap_or(0);
        let next = 1_000_000;
        let posted = store.submit(START, vec![task(next)], None).await.expect("it takes tasks");
        posted.receipt.committed().await.expect("a commit");
        let all = Claim { lanes: vec![LANE.into()], n: 1_000 };
        let posted = store.claim(START, all).await.expect("it gives work");
        posted.receipt.committed().await.expect("a commit");
        let reissued = |leased: &Claimed| leased.record.fence.raw() <= last_fence;
        if posted.value.iter().any(reissued) {
            broken.push("a fence was given twice [LEASE-1]".to_owned());
        }
        broken
    }

    async fn broken_at(&self, store: &SqliteStore, n: u64) -> Option<String> {
        let is_finished = self.finished.contains(&n);
        let (record, payload) = match store.find(&Scope::local(), id(n)).await {
            Ok(Found::Task(record, payload)) => (record, payload),
            Ok(Found::Tombstone(_)) if is_short_lived(n) => return None,
            Ok(Found::Tombstone(_) | Found::Absent) => return Some("it is gone".to_owned()),
            Err(error) => return Some(format!("{UNREADABLE}: {error}")),
        };
        assert_eq!(payload.inputs, inputs(n), "task {n} was given something else");
        let is_whole = payload.outcome == (record.state == State::Succeeded).then(|| result(n));
        assert!(is_whole, "task {n} is {} with another result", record.state);
        if is_finished && record.state != State::Succeeded {
            return Some("its result is gone".to_owned());
        }
        let was_leased = self.leased.contains_key(&n);
        let runs_again = was_leased && record.attempt == 0;
        runs_again.then(|| "it would run a second time [DUR-6]".to_owned())
    }
}
