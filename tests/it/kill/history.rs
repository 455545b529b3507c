//! What a client was told over many lives of a server, and what the programs themselves noted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use raincheck_testkit::disk::Random;
use serde_json::{Value, json};

const TERMINAL: [&str; 5] = ["succeeded", "failed", "cancelled", "timed_out", "expired"];

/// A task that is wanted. Its number is its key.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    n: u64,
    tool: &'static str,
    priority: i64,
    inputs: Value,
}

impl Wish {
    pub(super) fn arguments(&self) -> Value {
        json!({
            "tool_name": self.tool,
            "inputs": self.inputs,
            "priority": self.priority,
            "idempotency_key": self.n.to_string(),
        })
    }
}

/// Everything that is known. Wishes are made, and so accepted, one after the other.
pub(super) struct History {
    marks: PathBuf,
    n_wishes: u64,
    accepted: BTreeMap<u64, (Wish, String)>,
    /// The tasks of whose attempt a supervisor was killed.
    bereft: BTreeSet<String>,
    ended: BTreeMap<String, Value>,
}

/// What came of it all.
#[derive(Default)]
pub(super) struct Figures {
    tasks: usize,
    succeeded: usize,
    /// Ended as `worker_lost`, as the client was told; of these, whose program surely never ran, and
    /// whose program left a mark.
    worker_lost: usize,
    not_executed: usize,
    begun_and_lost: usize,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tasks, succeeded, worker_lost, not_executed, begun_and_lost } = self;
        write!(
            f,
            "{tasks} tasks acknowledged, 0 lost, 0 results lost, 0 run twice, {succeeded} succeeded, \
             {worker_lost} reported as worker_lost with their supervisor killed, of which \
             {begun_and_lost} had left a mark and {not_executed} surely never ran"
        )
    }
}

impl History {
    pub(super) fn new(marks: PathBuf) -> Self {
        Self {
            marks,
            n_wishes: 0,
            accepted: BTreeMap::new(),
            bereft: BTreeSet::new(),
            ended: BTreeMap::new(),
        }
    }

    pub(super) fn new_wish(&mut self, random: &mut Random) -> Wish {
        self.n_wishes += 1;
        let pause = ["0", "0.01", "0.03"][random.below(3)];
        Wish {
            n: self.n_wishes,
            tool: if random.below(3) == 0 { "work" } else { "step" },
            priority: [-1, 0, 0, 1][random.below(4)],
            inputs: json!({"marks": self.marks, "pause": pause}),
        }
    }

    /// A server said that it took a task.
    pub(super) fn accepted(&mut self, wish: Wish, answer: &Value) {
        let id = answer["task_id"].as_str().unwrap_or_else(|| panic!("refused: {answer}"));
        let (_, known) = self.accepted.entry(wish.n).or_insert_with(|| (wish, id.to_owned()));
        assert_eq!(known, id, "a key was forgotten [IDEM-1]");
    }

    pub(super) fn supervisor_killed(&mut self, folder: &Path) {
        // `<tasks>/<task>/a<attempt>`
        let task = folder.parent().and_then(Path::file_name).expect("the folder of a task");
        self.bereft.insert(task.to_string_lossy().into_owned());
    }

    /// How many marks the programs have left.
    pub(super) fn n_marks(&self) -> usize {
        std::fs::read_to_string(&self.marks).unwrap_or_default().lines().count()
    }

    /// A task was read; tells whether it has ended.
    pub(super) fn saw(&mut self, id: &str, found: &Value) -> bool {
        let state = found["state"].as_str().unwrap_or_else(|| panic!("{id} is lost: {found}"));
        let mut error = found["error"].clone();
        if let Some(error) = error.as_object_mut() {
            // A mark is drawn for each answer [CALL-8].
            error.retain(|name, _| !name.starts_with("untrusted_"));
        }
        let now = json!([state, found["result"], error]);
        if let Some(before) = self.ended.get(id) {
            assert_eq!(&now, before, "{id} ended in another way before [STATE-2, RESULT-1]");
        } else if TERMINAL.contains(&state) {
            self.ended.insert(id.to_owned(), now);
        }
        self.ended.contains_key(id)
    }

    pub(super) fn any(&self, random: &mut Random) -> Option<String> {
        let ids = self.ids();
        (!ids.is_empty()).then(|| ids[random.below(ids.len())].clone())
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.accepted.values().map(|(_, id)| id.clone()).collect()
    }

    /// Holds what the client was told against what the programs noted.
    pub(super) fn check(&self) -> Figures {
        let text = std::fs::read_to_string(&self.marks).unwrap_or_default();
        let of = |what: &str| -> Vec<&str> {
            let marks = text.lines().filter_map(|line| line.strip_prefix(what)?.split(' ').nth(1));
            marks.collect()
        };
        let (begun, done) = (of("begin"), of("end"));
        let once: BTreeSet<_> = begun.iter().copied().collect();
        assert_eq!(once.len(), begun.len(), "a program ran twice [LEASE-3]: {begun:?}");
        let done: BTreeSet<_> = done.into_iter().collect();
        self.check_order(&begun);

        let mut figures = Figures::default();
        for id in self.ids() {
            figures.tasks += 1;
            let end = self.ended.get(&id).unwrap_or_else(|| panic!("{id} never ended"));
            let (has_begun, is_done) = (once.contains(id.as_str()), done.contains(id.as_str()));
            if end[0] == "succeeded" {
                assert_eq!(end[1], json!({"task": id}), "{id} has another result");
                assert!(has_begun && is_done, "{id} succeeded without running");
                figures.succeeded += 1;
            } else {
                let is_bereft = self.bereft.contains(&id);
                assert_eq!(end[2]["code"], "worker_lost", "{id}, bereft {is_bereft}: {end}");
                // Nobody may say that it did not run when it did [LEASE-4].
                let is_sure = end[2]["guarantee"] == "not_executed";
                assert!(!is_sure || !has_begun, "{id}: {end}");
                assert!(is_sure || end[2]["guarantee"] == "unknown", "{id}: {end}");
                // A killed server alone loses nothing: what never began stands in line again.
                assert!(is_bereft, "the end of {id} is lost: {end}");
                figures.worker_lost += 1;
                figures.not_executed += usize::from(is_sure);
                figures.begun_and_lost += usize::from(has_begun);
            }
        }
        assert!(once.iter().all(|id| self.ended.contains_key(*id)), "a task nobody knows ran");
        figures
    }

    /// In the lane of one place, tasks of a priority begin in the order in which they came.
    fn check_order(&self, begun: &[&str]) {
        let number: BTreeMap<_, _> =
            self.accepted.iter().map(|(n, (wish, id))| (id.as_str(), (*n, wish))).collect();
        for priority in [-1, 0, 1] {
            let order: Vec<u64> = begun
                .iter()
                .filter_map(|id| number.get(id))
                .filter(|(_, wish)| wish.tool == "step" && wish.priority == priority)
                .map(|(n, _)| *n)
                .collect();
            assert!(order.is_sorted(), "priority {priority} began out of order: {order:?}");
        }
    }
}
