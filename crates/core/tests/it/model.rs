//! A naive model of the contract: a list of jobs, scanned whole, without the transition table.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;
use raincheck_core::error::Kind;
use raincheck_core::ids::TaskId;
use raincheck_core::retry;
use raincheck_core::task::Limits;

pub(crate) const LANES: [(&str, u32, u32); 2] = [("one", 1, 3), ("two", 2, 4)];
pub(crate) const KILL_MARGIN: i64 = 3_000;
pub(crate) const TOMBSTONE: i64 = 24 * 3_600_000;

pub(crate) fn limits() -> Limits {
    let s = Duration::from_secs;
    Limits {
        ready: s(20),
        ready_is_accept: false,
        queue_timeout: s(60),
        accept: s(5),
        run_timeout: Some(s(30)),
        run_margin: Duration::ZERO,
        lease: s(10),
        grace: s(5),
        input: s(40),
        retention: s(100),
    }
}

/// What one step does; `usize` picks a job, modulo how many there are.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Submit { lane: usize, priority: i8, key: Option<u8>, inputs: u8, kind: u8 },
    Claim { lane: usize, n: u32 },
    Accept(usize),
    Start(usize),
    Undeliver(usize),
    AskInput(usize),
    GiveInput(usize),
    CommitCancel(usize),
    Finish { job: usize, end: End, is_stale: bool, releases: bool },
    Cancel(usize),
    Heartbeat(usize),
    Release(usize),
    Hold { lane: usize, is_held: bool },
    Wait(i64),
    Sweep,
    Restart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Ok,
    Fail,
    Cancelled,
}

#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: TaskId,
    pub(crate) lane: usize,
    pub(crate) priority: i8,
    pub(crate) key: Option<u8>,
    pub(crate) inputs: u8,
    pub(crate) kind: u8,
    pub(crate) state: &'static str,
    pub(crate) attempt: u32,
    pub(crate) fence: u64,
    pub(crate) events: u32,
    pub(crate) cancel: bool,
    reported: bool,
    backing_off: bool,
    ready_left: i64,
    backoff: Option<i64>,
    ready: Option<i64>,
    ttl: Option<i64>,
    accept: Option<i64>,
    run: Option<i64>,
    lease: Option<i64>,
    grace: Option<i64>,
    input: Option<i64>,
    retention: Option<i64>,
    buried: i64,
    pub(crate) slot: Option<(u64, i64)>,
}

const LIVE: [&str; 7] = [
    "waiting",
    "queued",
    "scheduled",
    "running",
    "input_required",
    "cancel_requested",
    "cancelling",
];

impl Job {
    pub(crate) fn cancellable(kind: u8) -> bool {
        kind != 1
    }

    pub(crate) fn policy(kind: u8) -> (bool, retry::Policy) {
        let mut policy = retry::Policy { backoff: Duration::from_secs(4), ..Default::default() };
        if kind == 2 {
            policy.max_attempts = 2;
        }
        if kind == 3 {
            policy.max_attempts = 3;
            policy.on = vec![Kind::ToolFailed];
        }
        (kind == 2, policy)
    }

    fn leased(&self) -> bool {
        LIVE[2..].contains(&self.state)
    }

    fn go(&mut self, to: &'static str) {
        if self.state != to {
            self.state = to;
            self.events += 1;
        }
    }

    fn end(&mut self, now: i64, to: &'static str) {
        self.go(to);
        self.disarm();
        (self.ready, self.ttl, self.backoff) = (None, None, None);
        self.retention = Some(now + 100_000);
    }

    fn disarm(&mut self) {
        (self.accept, self.run, self.lease, self.grace, self.input) =
            (None, None, None, None, None);
    }

    fn began(&mut self, now: i64) {
        self.accept = None;
        self.run = self.run.or(Some(now + 30_000));
    }

    /// An attempt failed; another one follows if the policy says so and nobody asked to end it.
    fn fail(&mut self, now: i64, kind: Kind) {
        let (idempotent, policy) = Self::policy(self.kind);
        if self.state == "cancelling" {
            self.end(now, "cancelled");
        } else if !self.cancel && policy.permits(kind, self.attempt, idempotent) {
            let pause = policy.pause(self.id, self.attempt);
            self.go("waiting");
            self.disarm();
            self.backing_off = true;
            self.backoff = Some(now + i64::try_from(pause.as_millis()).expect("short"));
        } else {
            self.end(now, "failed");
        }
    }

    fn queue(&mut self, now: i64) {
        if let Some(ready) = self.ready.take() {
            self.ready_left = (ready - now).max(0);
        }
        (self.backoff, self.backing_off) = (None, false);
        self.ttl = self.ttl.or(Some(now + 60_000));
        self.go("queued");
    }

    fn wait(&mut self, now: i64) {
        if self.state != "waiting" {
            self.ready = Some(now + self.ready_left);
        }
        self.go("waiting");
    }

    /// The first deadline by instant, ties by the order in which the contract fires them.
    pub(crate) fn first(&self) -> Option<(i64, usize)> {
        let all = [
            self.backoff,
            self.ready,
            self.ttl,
            self.accept,
            self.run,
            self.grace,
            self.lease,
            self.input,
            self.retention,
        ];
        all.into_iter().enumerate().filter_map(|(n, at)| Some((at?, n))).min()
    }

    /// The time to answer that was not needed is no time to run.
    fn answered(&mut self, now: i64) {
        if let Some(input) = self.input.take() {
            self.run = self.run.map(|at| (at - (input - now).max(0)).max(now));
        }
    }

    fn pass(&mut self, now: i64, which: usize) {
        let cancelling = self.state == "cancelling";
        let cancelled = self.state == "cancel_requested";
        match which {
            0 => self.queue(now),
            1 => self.end(now, "failed"),
            2 => self.end(now, "failed"),
            3 => {
                self.accept = None;
                match self.state {
                    "scheduled" => self.fail(now, Kind::AcceptTimeout),
                    "cancel_requested" => self.end(now, "cancelled"),
                    _ => {}
                }
            }
            4 if cancelling => self.end(now, "cancelled"),
            4 => self.end(now, "timed_out"),
            5 => self.end(now, "cancelled"),
            6 => self.fail(now, Kind::WorkerLost),
            7 => {
                self.input = None;
                if !cancelled && self.state == "input_required" {
                    self.fail(now, Kind::RunTimeout);
                }
            }
            _ => {
                self.go("expired");
                self.bury(now);
            }
        }
    }

    fn bury(&mut self, now: i64) {
        (self.key, self.retention, self.buried) = (None, None, now + TOMBSTONE);
    }
}

/// The model and what it expects the machine to answer to the last step.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) now: i64,
    pub(crate) jobs: Vec<Job>,
    pub(crate) held: [bool; 2],
    pub(crate) next_fence: u64,
    pub(crate) answer: String,
    n_submits: u64,
}

impl Model {
    pub(crate) fn id(n: u64) -> TaskId {
        TaskId::from_parts(n, [0; 10])
    }

    /// The identity that the next submit brings.
    pub(crate) fn next_id(&self) -> TaskId {
        Self::id(self.n_submits)
    }

    pub(crate) fn pick(&self, n: usize) -> Option<&Job> {
        (!self.jobs.is_empty()).then(|| &self.jobs[n % self.jobs.len()])
    }

    fn with(&mut self, n: usize, work: impl FnOnce(&mut Job, i64) -> String) {
        let (now, len) = (self.now, self.jobs.len());
        self.answer = if len == 0 { String::new() } else { work(&mut self.jobs[n % len], now) };
        if self.hold_queued() {
            self.answer = "moved waiting".to_owned();
        }
    }

    /// A task that comes back to a held lane waits like the others.
    fn hold_queued(&mut self) -> bool {
        let mut is_held = false;
        for job in &mut self.jobs {
            if self.held[job.lane] && job.state == "queued" {
                job.wait(self.now);
                is_held = true;
            }
        }
        is_held
    }

    pub(crate) fn position(&self, job: &Job) -> usize {
        self.jobs
            .iter()
            .filter(|other| other.lane == job.lane && other.state == "queued")
            .filter(|other| (-other.priority, other.id) < (-job.priority, job.id))
            .count()
    }

    fn busy(&self, lane: usize) -> usize {
        self.jobs.iter().filter(|job| job.lane == lane && job.slot.is_some()).count()
    }

    fn submit(&mut self, lane: usize, priority: i8, key: Option<u8>, inputs: u8, kind: u8) {
        let id = self.next_id();
        self.n_submits += 1;
        let known = self.jobs.iter().find(|job| key.is_some() && job.key == key);
        if let Some(job) = known {
            let word = if job.inputs == inputs { "existing" } else { "conflict" };
            self.answer = format!("{word} {}", job.id);
            return;
        }
        let (_, concurrency, limit) = LANES[lane];
        let free = (concurrency as usize).saturating_sub(self.busy(lane));
        let room = limit as usize + if self.held[lane] { 0 } else { free };
        let stands = |job: &&Job| job.lane == lane && ["queued", "waiting"].contains(&job.state);
        let depth = self.jobs.iter().filter(stands).count();
        if depth >= room {
            self.answer = format!("full {depth}");
            return;
        }
        let waits = self.held[lane];
        self.jobs.push(Job {
            id,
            lane,
            priority,
            key,
            inputs,
            kind,
            state: if waits { "waiting" } else { "queued" },
            attempt: 0,
            fence: 0,
            events: 1,
            cancel: false,
            reported: false,
            backing_off: false,
            ready_left: 20_000,
            backoff: None,
            ready: waits.then_some(self.now + 20_000),
            ttl: Some(self.now + 60_000),
            accept: None,
            run: None,
            lease: None,
            grace: None,
            input: None,
            retention: None,
            buried: 0,
            slot: None,
        });
        let position = self.position(&self.jobs[self.jobs.len() - 1]);
        self.answer = format!("inserted {id} at {position}");
    }

    fn claim(&mut self, lane: usize, n: u32) {
        let mut leased = Vec::new();
        for _ in 0..n {
            let free = self.busy(lane) < LANES[lane].1 as usize && !self.held[lane];
            let next = self
                .jobs
                .iter_mut()
                .filter(|job| job.lane == lane && job.state == "queued" && job.slot.is_none())
                .min_by_key(|job| (-job.priority, job.id));
            let (true, Some(job)) = (free, next) else { break };
            job.attempt += 1;
            job.fence = self.next_fence;
            job.reported = false;
            self.next_fence += 1;
            job.ttl = None;
            (job.accept, job.lease) = (Some(self.now + 5_000), Some(self.now + 10_000));
            job.slot = Some((job.fence, self.now + 10_000));
            job.go("scheduled");
            leased.push(format!("{} as {}", job.id, job.fence));
        }
        self.answer = leased.join(", ");
    }

    fn cancel(&mut self, n: usize) {
        self.with(n, |job, now| match job.state {
            "waiting" | "queued" => {
                job.cancel = true;
                job.end(now, "cancelled");
                "moved cancelled".into()
            }
            "scheduled" | "running" | "input_required" => {
                job.cancel = true;
                job.answered(now);
                job.go("cancel_requested");
                if Job::cancellable(job.kind) {
                    job.grace = Some(now + 5_000 + KILL_MARGIN);
                }
                "moved cancel_requested".into()
            }
            state @ ("cancel_requested" | "cancelling") => format!("same {state}"),
            state => format!("refused {state}"),
        });
    }

    fn finish(&mut self, n: usize, end: End, is_stale: bool, releases: bool) {
        self.with(n, |job, now| {
            if job.fence == 0 || is_stale {
                return format!("stale {}", job.state);
            }
            let answer = if job.leased() {
                job.reported = true;
                match end {
                    End::Ok if job.state == "cancelling" => job.end(now, "cancelled"),
                    End::Ok => job.end(now, "succeeded"),
                    End::Fail => job.fail(now, Kind::ToolFailed),
                    End::Cancelled => job.end(now, "cancelled"),
                }
                format!("moved {}", job.state)
            } else if job.reported
                || end == End::Cancelled
                || ["queued", "waiting", "expired"].contains(&job.state)
            {
                format!("refused {}", job.state)
            } else {
                job.reported = true;
                job.events += 1;
                format!("late {}", job.state)
            };
            if releases {
                job.slot = None;
            }
            answer
        });
    }

    fn simple(&mut self, n: usize, work: impl FnOnce(&mut Job, i64) -> Option<()>) {
        self.with(n, |job, now| {
            if job.fence == 0 {
                return format!("stale {}", job.state);
            }
            let events = job.events;
            match work(job, now) {
                None => format!("refused {}", job.state),
                Some(()) if job.events > events => format!("moved {}", job.state),
                Some(()) => format!("same {}", job.state),
            }
        });
    }

    fn wait(&mut self, ms: i64) {
        self.now += ms;
        let now = self.now;
        for job in &mut self.jobs {
            while let Some((_, which)) = job.first().filter(|(at, _)| *at <= now) {
                job.pass(now, which);
                if self.held[job.lane] && job.state == "queued" {
                    job.wait(now);
                }
            }
            if job.slot.is_some_and(|(_, lease)| lease <= now) {
                job.slot = None;
            }
        }
        self.answer = String::new();
    }

    fn restart(&mut self) {
        self.next_fence = ((self.next_fence >> 32) + 1) << 32 | 1;
        let until = self.now + 15_000;
        for job in self.jobs.iter_mut().filter(|job| job.leased()) {
            job.lease = Some(until);
            for at in [&mut job.accept, &mut job.run, &mut job.grace, &mut job.input] {
                let soonest = self.now + 5_000;
                *at = at.map(|at| if at <= self.now { until } else { at.max(soonest) });
            }
        }
        for job in &mut self.jobs {
            if let Some((_, lease)) = &mut job.slot {
                *lease = until;
            }
            job.ready = job.ready.map(|at| if at <= self.now { until } else { at });
        }
        self.answer = String::new();
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Submit { lane, priority, key, inputs, kind } => {
                self.submit(lane, priority, key, inputs, kind);
            }
            Step::Claim { lane, n } => self.claim(lane, n),
            Step::Finish { job, end, is_stale, releases } => {
                self.finish(job, end, is_stale, releases);
            }
            Step::Cancel(n) => self.cancel(n),
            Step::Heartbeat(n) => self.with(n, |job, now| {
                if let Some((fence, lease)) = &mut job.slot
                    && *fence == job.fence
                {
                    *lease = now + 10_000;
                }
                if !job.leased() {
                    return "Lost".into();
                }
                job.lease = Some(now + 10_000);
                let stop = job.cancel && Job::cancellable(job.kind);
                if stop { "Cancel" } else { "Continue" }.into()
            }),
            Step::Release(n) => self.with(n, |job, _| {
                if job.slot.is_some_and(|(fence, _)| fence == job.fence) {
                    job.slot = None;
                }
                String::new()
            }),
            Step::Hold { lane, is_held } => self.hold(lane, is_held),
            Step::Wait(ms) => self.wait(ms),
            Step::Sweep => {
                let now = self.now;
                let is_gone = |job: &Job| job.state == "expired" && job.buried < now;
                let gone: BTreeSet<_> =
                    self.jobs.iter().filter(|job| is_gone(job)).map(|job| job.id).collect();
                self.jobs.retain(|job| !is_gone(job));
                self.answer = format!("{gone:?}");
            }
            Step::Restart => self.restart(),
            Step::Accept(_)
            | Step::Start(_)
            | Step::Undeliver(_)
            | Step::AskInput(_)
            | Step::GiveInput(_)
            | Step::CommitCancel(_) => self.step_attempt(step),
        }
    }

    /// The steps that an executor takes for its own attempt.
    fn step_attempt(&mut self, step: &Step) {
        match *step {
            Step::Accept(n) => self.simple(n, |job, now| {
                ["scheduled", "cancel_requested"].contains(&job.state).then(|| job.began(now))
            }),
            Step::Start(n) => self.simple(n, |job, now| match job.state {
                "scheduled" | "running" => {
                    job.began(now);
                    job.go("running");
                    Some(())
                }
                "input_required" | "cancel_requested" => {
                    job.began(now);
                    Some(())
                }
                _ => None,
            }),
            Step::Undeliver(n) => self.simple(n, |job, now| match job.state {
                "scheduled" => {
                    job.attempt -= 1;
                    job.disarm();
                    job.ttl = Some(now + 60_000);
                    job.go("queued");
                    Some(())
                }
                "cancel_requested" => {
                    job.end(now, "cancelled");
                    Some(())
                }
                _ => None,
            }),
            Step::AskInput(n) => self.simple(n, |job, now| match job.state {
                "running" => {
                    job.input = Some(now + 40_000);
                    job.run = job.run.map(|at| at + 40_000);
                    job.go("input_required");
                    Some(())
                }
                "input_required" | "cancel_requested" => Some(()),
                _ => None,
            }),
            Step::GiveInput(n) => self.simple(n, |job, now| match job.state {
                "input_required" => {
                    job.answered(now);
                    job.go("running");
                    Some(())
                }
                "cancel_requested" => Some(()),
                _ => None,
            }),
            Step::CommitCancel(n) => self.simple(n, |job, _| {
                let may = ["cancel_requested", "cancelling"].contains(&job.state);
                may.then(|| job.go("cancelling"))
            }),
            _ => {}
        }
    }

    fn hold(&mut self, lane: usize, is_held: bool) {
        self.held[lane] = is_held;
        let now = self.now;
        let mut moved = 0;
        for job in self.jobs.iter_mut().filter(|job| job.lane == lane && !job.backing_off) {
            let events = job.events;
            match (job.state, is_held) {
                ("queued", true) => job.wait(now),
                ("waiting", false) => job.queue(now),
                _ => {}
            }
            moved += job.events - events;
        }
        self.answer = format!("moved {moved}");
    }
}

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self {
            now: 1_000,
            jobs: Vec::new(),
            held: [false; 2],
            next_fence: 1 << 32 | 1,
            answer: String::new(),
            n_submits: 1,
        })
        .boxed()
    }

    fn transitions(_: &Self) -> BoxedStrategy<Step> {
        let job = 0..64_usize;
        let end = prop_oneof![3 => Just(End::Ok), 2 => Just(End::Fail), 1 => Just(End::Cancelled)];
        prop_oneof![
            8 => (0..2_usize, -1..=1_i8, proptest::option::weighted(0.3, 0..3_u8), 0..2_u8, 0..4_u8)
                .prop_map(|(lane, priority, key, inputs, kind)| Step::Submit { lane, priority, key, inputs, kind }),
            8 => (0..2_usize, 1..3_u32).prop_map(|(lane, n)| Step::Claim { lane, n }),
            2 => job.clone().prop_map(Step::Accept),
            6 => job.clone().prop_map(Step::Start),
            1 => job.clone().prop_map(Step::Undeliver),
            1 => job.clone().prop_map(Step::AskInput),
            1 => job.clone().prop_map(Step::GiveInput),
            2 => job.clone().prop_map(Step::CommitCancel),
            8 => (job.clone(), end, proptest::bool::weighted(0.15), proptest::bool::weighted(0.8))
                .prop_map(|(job, end, is_stale, releases)| Step::Finish { job, end, is_stale, releases }),
            4 => job.clone().prop_map(Step::Cancel),
            4 => job.clone().prop_map(Step::Heartbeat),
            3 => job.prop_map(Step::Release),
            2 => (0..2_usize, proptest::bool::weighted(0.4)).prop_map(|(lane, is_held)| Step::Hold { lane, is_held }),
            4 => (0..12_000_i64).prop_map(Step::Wait),
            1 => prop_oneof![Just(110_000_i64), Just(TOMBSTONE + 200_000)].prop_map(Step::Wait),
            1 => Just(Step::Sweep),
            1 => Just(Step::Restart),
        ]
        .boxed()
    }

    fn apply(mut state: Self, step: &Step) -> Self {
        state.step(step);
        state
    }
}
