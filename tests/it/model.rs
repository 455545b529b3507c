//! A world in which messages come late, twice or never, executors outlive their leases, and the
//! server crashes: every order of these is tried on the real ledger.
//!
//! Time stands still, so that worlds that differ only in when something happened are one world. A
//! deadline passes when the model says so.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use raincheck_core::content::{Content, Json};
use raincheck_core::deadline::Kind as Deadline;
use raincheck_core::decide::Change;
use raincheck_core::ids::{Fence, LaneId, TaskId};
use raincheck_core::lane;
use raincheck_core::ledger::{Command, Effect, Ledger, Reply, Snapshot};
use raincheck_core::lifecycle::State;
use raincheck_core::scope::Scope;
use raincheck_core::store::{Claim, Update};
use raincheck_core::task::{Limits, Outcome, TaskRecord, WaitReason};
use raincheck_core::time::Timestamp;
use stateright::{Model, Property};

use crate::model_tasks::{LANE, N_TASKS, PLAIN, REPEATABLE, id, tasks};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// One attempt, as its executor knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Run {
    pub(crate) task: usize,
    pub(crate) fence: Fence,
}

/// What was sent. Nothing is ever taken back: it may arrive at any time, and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Message {
    Execute(Run),
    Stop(Run),
    Started(Run),
    Committed(Run),
    Finished(Run, bool),
}

/// How far an executor is with an attempt. It keeps this whatever the server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Running,
    Stopping,
    Ended,
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Claim,
    Arrive(Message),
    /// The executor ends by itself, or as it was told to.
    End(Run),
    Cancel(usize),
    /// Nothing was heard of the attempt for the length of its lease.
    Lapse(usize),
    /// The pause before another attempt is over.
    Resume(usize),
    Crash,
}

/// The whole world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct World {
    pub(crate) ledger: Snapshot,
    pub(crate) wire: BTreeSet<Message>,
    pub(crate) runs: BTreeMap<Run, Phase>,
    pub(crate) n_ends: [u8; N_TASKS],
    pub(crate) n_late: u8,
    pub(crate) was_cancelled_in_line: [bool; N_TASKS],
    pub(crate) n_crashes: u8,
    pub(crate) n_lapses: u8,
    pub(crate) fault: Option<&'static str>,
}

/// Leaves out what is the same in all worlds: the fixed part of each task.
impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for record in &self.ledger.rows {
            (record.state, record.attempt, record.fence, record.n_events, record.has_reported)
                .hash(hasher);
            (&record.waiting, record.cancel.is_some(), record.started_at.is_some()).hash(hasher);
            let armed = Deadline::ALL.map(|kind| record.deadlines.get(kind).is_some());
            (armed, self.slot_of(record)).hash(hasher);
        }
        (self.ledger.next_fence, &self.wire, &self.n_ends, self.n_late).hash(hasher);
        for (run, phase) in &self.runs {
            (run, phase).hash(hasher);
        }
        (self.was_cancelled_in_line, self.n_crashes, self.n_lapses, self.fault).hash(hasher);
    }
}

impl World {
    fn new() -> Self {
        let mut ledger = Ledger::new(1);
        let one_place = lane::Config::new(1, 10);
        ledger.apply(NOW, Command::SetLane(LaneId::from(LANE), one_place));
        let batch = tasks(NOW).into_iter().map(|task| (task, None)).collect();
        ledger.apply(NOW, Command::Submit(batch));
        Self {
            ledger: ledger.snapshot(),
            wire: BTreeSet::new(),
            runs: BTreeMap::new(),
            n_ends: [0; N_TASKS],
            n_late: 0,
            was_cancelled_in_line: [false; N_TASKS],
            n_crashes: 0,
            n_lapses: 0,
            fault: None,
        }
    }

    pub(crate) fn row(&self, task: usize) -> &TaskRecord {
        &self.ledger.rows[task]
    }

    pub(crate) fn n_runs(&self, task: usize) -> usize {
        self.runs.keys().filter(|run| run.task == task).count()
    }

    fn slot(&self, task: usize) -> Option<Fence> {
        self.slot_of(self.row(task))
    }

    fn slot_of(&self, record: &TaskRecord) -> Option<Fence> {
        self.ledger.slots.iter().find(|slot| slot.task == record.id()).map(|slot| slot.fence)
    }

    /// Does one thing to the ledger, rebuilt from its snapshot as after a restart.
    fn apply(&mut self, command: Command) -> Reply {
        let mut ledger = Ledger::restore(self.ledger.clone());
        let applied = ledger.apply(NOW, command);
        let after = ledger.snapshot();
        self.look(&after);
        self.ledger = after;
        for effect in applied.effects {
            match effect {
                Effect::Moved { record, outcome: Some(_), .. } => {
                    self.n_ends[number(record.id())] += 1;
                }
                Effect::Late { .. } => self.n_late += 1,
                Effect::Moved { .. }
                | Effect::Inserted { .. }
                | Effect::Taken(_)
                | Effect::Heard(_)
                | Effect::Freed { .. }
                | Effect::Forgotten(_) => {}
            }
        }
        applied.reply
    }

    /// Holds the next snapshot against this one.
    fn look(&mut self, after: &Snapshot) {
        for (before, after) in self.ledger.rows.iter().zip(&after.rows) {
            if before.state.is_terminal() && before.state != after.state {
                self.fault = Some("a task left its end");
            }
            if after.fence < before.fence {
                self.fault = Some("a fence went back");
            }
            if !after.state.is_terminal() && after.deadlines.next().is_none() {
                self.fault = Some("a live task has no deadline");
            }
        }
        if after.slots.len() > 1 {
            self.fault = Some("more attempts than the lane has places");
        }
    }

    fn update(&mut self, run: Run, change: Change, releases: bool) {
        let before = self.row(run.task).clone();
        let mut update = Update::attempt(id(run.task), run.fence, change);
        update.releases = releases;
        self.apply(Command::Update(vec![update]));
        if run.fence != before.fence && *self.row(run.task) != before {
            self.fault = Some("an old attempt changed its task");
        }
    }

    fn engine(&mut self, task: usize, change: Change) {
        self.apply(Command::Update(vec![Update {
            id: id(task),
            scope: Some(Scope::local()),
            fence: None,
            change,
            report: None,
            releases: false,
            ended_at: None,
        }]));
    }

    fn claim(&mut self) {
        let newest = self.ledger.rows.iter().map(|record| record.fence).max();
        let claim = Claim { lanes: vec![LaneId::from(LANE)], n: 1 };
        if let Reply::Rows(rows) = self.apply(Command::Claim(claim)) {
            for record in rows {
                if Some(record.fence) <= newest {
                    self.fault = Some("a fence was given out twice");
                }
                let run = Run { task: number(record.id()), fence: record.fence };
                self.wire.insert(Message::Execute(run));
            }
        }
    }

    fn arrive(&mut self, message: Message) {
        match message {
            Message::Execute(run) => {
                self.runs.insert(run, Phase::Running);
                // One task of each sort is enough: the fewer messages, the fewer worlds.
                if run.task == PLAIN {
                    self.wire.insert(Message::Started(run));
                }
            }
            Message::Stop(run) => {
                self.runs.insert(run, Phase::Stopping);
                self.wire.insert(Message::Committed(run));
            }
            Message::Started(run) => self.update(run, Change::Start, false),
            Message::Committed(run) => self.update(run, Change::CommitCancel, false),
            Message::Finished(run, true) => {
                let value = Json::parse("1").expect("JSON");
                let outcome = Outcome::Succeeded(vec![Content::Json(value)]);
                self.update(run, Change::Finish(outcome), true);
            }
            Message::Finished(run, false) => {
                self.update(run, Change::Finish(Outcome::Cancelled), true);
            }
        }
    }

    fn end(&mut self, run: Run) {
        let was_stopped = self.runs.insert(run, Phase::Ended) == Some(Phase::Stopping);
        self.wire.insert(Message::Finished(run, !was_stopped));
    }

    fn cancel(&mut self, task: usize) {
        let before = self.row(task).state;
        self.engine(task, Change::RequestCancel { reason: None });
        let record = self.row(task);
        if record.state == State::CancelRequested && record.task.supports_cancel {
            let run = Run { task, fence: record.fence };
            self.wire.insert(Message::Stop(run));
        }
        if before == State::Queued && self.row(task).attempt == 0 {
            self.was_cancelled_in_line[task] = true;
        }
    }

    fn lapse(&mut self, task: usize) {
        self.n_lapses += 1;
        if self.row(task).state.is_leased() {
            self.engine(task, Change::Due(Deadline::Lease));
        }
        if let Some(fence) = self.slot(task) {
            self.apply(Command::Release(vec![(id(task), fence)]));
        }
    }

    fn crash(&mut self) {
        self.n_crashes += 1;
        let mut ledger = Ledger::restore(self.ledger.clone());
        ledger.begin_epoch();
        self.ledger = ledger.snapshot();
        self.apply(Command::Reattach(Limits::default().lease));
    }
}

/// The model: three tasks in one lane with one place, and so many crashes and lapsed leases at the most.
pub(crate) struct Weather {
    pub(crate) max_crashes: u8,
    pub(crate) max_lapses: u8,
}

impl Model for Weather {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new()]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        steps.push(Step::Claim);
        for message in &world.wire {
            let can_arrive = match message {
                // An executor knows what it was given, and takes nothing twice.
                Message::Execute(run) => !world.runs.contains_key(run),
                Message::Stop(run) => world.runs.get(run) == Some(&Phase::Running),
                Message::Started(_) | Message::Committed(_) | Message::Finished(..) => true,
            };
            if can_arrive {
                steps.push(Step::Arrive(*message));
            }
        }
        for (run, phase) in &world.runs {
            if *phase != Phase::Ended {
                steps.push(Step::End(*run));
            }
        }
        for task in 0..N_TASKS {
            let record = world.row(task);
            let may_cancel = task != REPEATABLE && record.cancel.is_none();
            if may_cancel && !record.state.is_terminal() {
                steps.push(Step::Cancel(task));
            }
            let is_held = record.state.is_leased() || world.slot(task).is_some();
            if is_held && world.n_lapses < self.max_lapses {
                steps.push(Step::Lapse(task));
            }
            if record.waiting == Some(WaitReason::RETRY_BACKOFF) {
                steps.push(Step::Resume(task));
            }
        }
        if world.n_crashes < self.max_crashes {
            steps.push(Step::Crash);
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        match step {
            Step::Claim => next.claim(),
            Step::Arrive(message) => next.arrive(message),
            Step::End(run) => next.end(run),
            Step::Cancel(task) => next.cancel(task),
            Step::Lapse(task) => next.lapse(task),
            Step::Resume(task) => next.engine(task, Change::Due(Deadline::Backoff)),
            Step::Crash => next.crash(),
        }
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        crate::model_check::properties()
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.fault.is_none() || world.n_ends.iter().all(|n| *n < 3)
    }
}

fn number(task: TaskId) -> usize {
    (0..N_TASKS).find(|number| id(*number) == task).expect("a task of the model")
}
