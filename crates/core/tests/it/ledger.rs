//! The ledger agrees with the naive model, step by step.

use std::time::Duration;

use proptest::test_runner::{Config, TestCaseError, TestRunner};
use proptest_state_machine::ReferenceStateMachine as _;
use raincheck_core::content::{Content, Json};
use raincheck_core::decide::{Change, Refusal};
use raincheck_core::error::{Error, Kind};
use raincheck_core::ids::{Fence, LaneId};
use raincheck_core::input::{InputRequest, OpenInputs};
use raincheck_core::lane;
use raincheck_core::ledger::{Command, Ledger, Reply};
use raincheck_core::scope::Scope;
use raincheck_core::store::{Claim, Heartbeat, Submitted, Update, UpdateResult};
use raincheck_core::task::{Outcome, Resources, Task, WaitReason};
use raincheck_core::time::Timestamp;

use crate::machine::{Disk, Machine};
use crate::model::{End, Job, LANES, Model, Step, limits};

/// Steps in one case, and cases in the normal run: 204,000 steps in all.
const STEPS: usize = 204;
const CASES: u32 = 1_000;

fn lane(n: usize) -> LaneId {
    LaneId::from(LANES[n].0)
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn start() -> Ledger {
    let mut ledger = Ledger::new(1);
    for (name, concurrency, limit) in LANES {
        let config = lane::Config::new(concurrency, limit);
        ledger.apply(at(0), Command::SetLane(LaneId::from(name), config));
    }
    ledger
}

fn task(model: &Model, lane_n: usize, priority: i8, key: Option<u8>, inputs: u8, kind: u8) -> Task {
    let (is_idempotent, retry) = Job::policy(kind);
    Task {
        id: model.next_id(),
        scope: Scope::local(),
        tool: "tool".into(),
        lane: lane(lane_n),
        priority,
        tags: Vec::new(),
        key: key.map(|key| key.to_string().into()),
        inputs_hash: inputs.into(),
        limits: limits(),
        resources: Resources::default(),
        supports_cancel: Job::cancellable(kind),
        is_idempotent,
        retry,
        trace: None,
        submitted_at: at(0),
    }
}

fn outcome(end: End) -> Outcome {
    match end {
        End::Ok => Outcome::Succeeded(vec![Content::Text("ok".into())]),
        End::Fail => Outcome::Failed(Error::new(Kind::ToolFailed, "no")),
        End::Cancelled => Outcome::Cancelled,
    }
}

fn question() -> InputRequest {
    InputRequest { key: "q".into(), request: Json::null() }
}

fn answer() -> Change {
    Change::GiveInput { key: "q".into(), response: Json::null() }
}

/// The command that a step stands for; `None` when there is no job to act on.
fn command(before: &Model, step: &Step) -> Option<Command> {
    let update = |n: usize, change| {
        let job = before.pick(n)?;
        let fence = if job.fence == 0 { u64::MAX } else { job.fence };
        Some(Command::Update(vec![Update::attempt(job.id, Fence::from_raw(fence), change)]))
    };
    Some(match *step {
        Step::Submit { lane, priority, key, inputs, kind } => {
            Command::Submit(vec![(task(before, lane, priority, key, inputs, kind), None)])
        }
        Step::Claim { lane: n, n: count } => {
            Command::Claim(Claim { lanes: vec![lane(n)], n: count })
        }
        Step::Accept(n) => update(n, Change::Accept)?,
        Step::Start(n) => update(n, Change::Start)?,
        Step::Undeliver(n) => update(n, Change::Undeliver)?,
        Step::AskInput(n) => {
            update(n, Change::AskInput { request: question(), beside: OpenInputs::default() })?
        }
        Step::GiveInput(n) => update(n, answer())?,
        Step::CommitCancel(n) => update(n, Change::CommitCancel)?,
        Step::Finish { job: n, end, is_stale, releases } => {
            let job = before.pick(n)?;
            let fence = if is_stale || job.fence == 0 { job.fence + (1 << 20) } else { job.fence };
            let mut update =
                Update::attempt(job.id, Fence::from_raw(fence), Change::Finish(outcome(end)));
            update.releases = releases;
            Command::Update(vec![update])
        }
        Step::Cancel(n) => {
            let id = before.pick(n)?.id;
            let change = Change::RequestCancel { reason: None };
            Command::Update(vec![Update {
                fence: None,
                scope: Some(Scope::local()),
                ..Update::attempt(id, Fence::NONE, change)
            }])
        }
        Step::Heartbeat(n) => {
            let job = before.pick(n)?;
            let fence = Fence::from_raw(job.fence);
            Command::Heartbeat(vec![Heartbeat { id: job.id, fence, progress: None, partial: None }])
        }
        Step::Release(n) => {
            let job = before.pick(n)?;
            Command::Release(vec![(job.id, Fence::from_raw(job.fence))])
        }
        Step::Hold { lane: n, is_held } => {
            Command::Hold(lane(n), is_held.then_some(WaitReason::new("compiling")))
        }
        Step::Wait(_) => Command::Fire { limit: u32::MAX },
        Step::Sweep => Command::Sweep { limit: u32::MAX },
        Step::Restart => Command::Reattach(Duration::from_secs(15)),
    })
}

/// The reply in the words of the model.
fn words(step: &Step, reply: &Reply) -> String {
    match reply {
        Reply::Submitted(all) => match &all[0] {
            Submitted::Inserted { record, position, .. } => {
                format!("inserted {} at {position}", record.id())
            }
            Submitted::Existing(record) => format!("existing {}", record.id()),
            Submitted::Conflict(id) => format!("conflict {id}"),
            Submitted::Full { depth, .. } => format!("full {depth}"),
            Submitted::NoLane => "no lane".to_owned(),
            Submitted::Unknown => "unknown".to_owned(),
        },
        Reply::Rows(rows) if matches!(step, Step::Claim { .. }) => {
            let rows: Vec<_> = rows
                .iter()
                .map(|record| format!("{} as {}", record.id(), record.fence.raw()))
                .collect();
            rows.join(", ")
        }
        Reply::UpdateResults(all) => match &all[0] {
            UpdateResult::Moved(record) => format!("moved {}", record.state),
            UpdateResult::Same(record) => format!("same {}", record.state),
            UpdateResult::Late(record) => format!("late {}", record.state),
            UpdateResult::Refused(record, Refusal::Stale) => format!("stale {}", record.state),
            UpdateResult::Refused(record, Refusal::State(_) | Refusal::NotAsked) => {
                format!("refused {}", record.state)
            }
            UpdateResult::Absent => "absent".to_owned(),
        },
        Reply::HeartbeatReplies(all) => format!("{:?}", all[0]),
        Reply::Moved(n) if matches!(step, Step::Hold { .. }) => format!("moved {n}"),
        Reply::Forgotten(ids) => {
            let ids: std::collections::BTreeSet<_> = ids.iter().collect();
            format!("{ids:?}")
        }
        Reply::Done | Reply::Rows(_) | Reply::Moved(_) => String::new(),
    }
}

/// Compares what anybody can see of the machine with the model.
fn compare(model: &Model, ledger: &Ledger) -> Result<(), String> {
    let same = |what: &str, got: String, want: String| {
        if got == want { Ok(()) } else { Err(format!("{what}: got {got}, want {want}")) }
    };
    same("tasks", ledger.len().to_string(), model.jobs.len().to_string())?;
    let snapshot = ledger.snapshot();
    for job in &model.jobs {
        let record = ledger.get(job.id).ok_or_else(|| format!("{} is lost", job.id))?;
        let got = (record.state.as_str(), record.attempt, record.fence.raw(), record.n_events);
        let want = (job.state, job.attempt, job.fence, job.events);
        same(&job.id.to_string(), format!("{got:?}"), format!("{want:?}"))?;
        same(
            "cancel kept [CANCEL-3]",
            record.cancel.is_some().to_string(),
            job.cancel.to_string(),
        )?;
        if !record.state.is_terminal() && record.deadlines.next().is_none() {
            return Err(format!("[STATE-5] {} has no deadline", job.id));
        }
        let next = record.deadlines.next().map(|(at, _)| at.as_millis());
        let want = job.first().map(|(at, _)| at);
        same("next deadline [STATE-5]", format!("{next:?}"), format!("{want:?}"))?;
        if job.state == "queued" {
            let want = model.position(job).to_string();
            same("position [QUEUE-3]", ledger.position(job.id).unwrap_or(99).to_string(), want)?;
        }
        let slot = snapshot.slots.iter().find(|slot| slot.task == job.id);
        let got = slot.map(|slot| (slot.fence.raw(), slot.lease.as_millis()));
        same("slot [QUEUE-6]", format!("{got:?}"), format!("{:?}", job.slot))?;
    }
    for (n, (name, concurrency, _)) in LANES.iter().enumerate() {
        let slots = snapshot.slots.iter().filter(|slot| slot.lane == lane(n));
        let workers: std::collections::BTreeSet<_> = slots.clone().map(|s| &s.worker).collect();
        if slots.clone().count() > *concurrency as usize || workers.len() < slots.count() {
            return Err(format!("[QUEUE-6] lane {name} is overfull"));
        }
    }
    Ok(())
}

/// Drives a machine and the model side by side; the first difference is the error.
pub(crate) fn drive<M: Machine>(mut model: Model, steps: &[Step]) -> Result<(), String> {
    let mut machine = M::new(start());
    let mut disk = Disk::of(machine.ledger());
    for (n, step) in steps.iter().enumerate() {
        let describe = |error: String| format!("step {n} {step:?}: {error}");
        let before = model.clone();
        model = Model::apply(model, step);
        if matches!(step, Step::Restart) {
            disk = disk.with_leases_of(machine.ledger());
            machine = M::restarted(&disk);
            disk.begin_epoch(machine.ledger());
        }
        let Some(command) = command(&before, step) else { continue };
        let applied = machine.apply(at(model.now), command);
        disk.keep(&applied.effects).map_err(describe)?;
        let got = words(step, &applied.reply);
        if got != model.answer {
            return Err(describe(format!("answered `{got}`, want `{}`", model.answer)));
        }
        compare(&model, machine.ledger()).map_err(describe)?;
        disk.agrees(machine.ledger()).map_err(describe)?;
    }
    Ok(())
}

/// Runs cases until one differs.
pub(crate) fn explore<M: Machine>(cases: u32) -> Result<(), String> {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let strategy = Model::sequential_strategy(STEPS);
    TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    )
    .run(&strategy, |(model, steps, _)| drive::<M>(model, &steps).map_err(TestCaseError::fail))
    .map_err(|error| error.to_string())
}

#[test]
fn the_ledger_agrees_with_the_naive_model_over_two_hundred_thousand_steps() {
    // [STATE-2] [STATE-3] [STATE-4] [QUEUE-1] [QUEUE-2] [QUEUE-5] [QUEUE-6] [CANCEL-1] [CANCEL-2]
    // [CANCEL-3] [CANCEL-4] [CANCEL-5] [LEASE-1] [LEASE-2] [LEASE-3] [RETRY-1] [IDEM-1] [IDEM-2]
    if let Err(difference) = explore::<Ledger>(CASES) {
        panic!("{difference}");
    }
}
