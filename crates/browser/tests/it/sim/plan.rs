//! What is called, and what breaks, when.

use raincheck_testkit::dice::Dice;
use std::time::Duration;

use super::HEALED;

/// Something that breaks, or works again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Partition,
    LoseAnswers,
    LoseRequests,
    Hold,
    Release,
    Repair,
    KillServer,
    StartServer,
    KillWorker,
    StartWorker,
    BreakStore,
    MendStore,
}

/// Something that a caller does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Submit(Script),
    /// Of the n-th command.
    Cancel(usize),
    /// A cancel of the n-th command that ends what goes on in its page.
    End(usize),
}

/// What a script does in its page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script {
    pub(crate) tab: i64,
    /// How long it takes.
    pub(crate) millis: u64,
    /// How long it may take.
    pub(crate) limit: Duration,
    /// How long it may wait for a browser.
    pub(crate) ready: Duration,
    /// Whether it throws instead of returning a value.
    pub(crate) throws: bool,
    /// Whether it waits for something: a stop does not reach it.
    pub(crate) awaits: bool,
}

/// The course of a world.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) acts: Vec<(Duration, Act)>,
    pub(crate) calls: Vec<(Duration, Call)>,
    pub(crate) latency_ms: u64,
    pub(crate) fail_rate: f64,
}

const N_COMMANDS: usize = 12;
const N_TABS: u64 = 3;

impl Plan {
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let latency_ms = dice.between(5, 120);
        let fail_rate = if dice.one_in(2) { 0.0 } else { 0.01 };
        Self { acts: acts(dice), calls: calls(dice), latency_ms, fail_rate }
    }
}

fn until_healed(dice: &mut Dice) -> Duration {
    Duration::from_millis(dice.between(200, HEALED.as_secs() * 1000 - 200))
}

fn acts(dice: &mut Dice) -> Vec<(Duration, Act)> {
    let mut acts = Vec::new();
    for _ in 0..dice.between(1, 4) {
        let (breaks, works) = match dice.between(0, 8) {
            0 => (Act::Partition, Act::Repair),
            1 => (Act::LoseAnswers, Act::Repair),
            2 => (Act::LoseRequests, Act::Repair),
            3 => (Act::Hold, Act::Release),
            4 => (Act::BreakStore, Act::MendStore),
            5 | 6 => (Act::KillServer, Act::StartServer),
            _ => (Act::KillWorker, Act::StartWorker),
        };
        let at = until_healed(dice);
        acts.push((at, breaks));
        acts.push((at + Duration::from_millis(dice.between(20, 4000)), works));
    }
    // One that is down is not killed again, and what is killed is started once.
    acts.sort_by_key(|(at, _)| *at);
    let (mut is_server_up, mut is_worker_up) = (true, true);
    acts.retain(|(_, act)| {
        let up = match act {
            Act::KillServer | Act::StartServer => &mut is_server_up,
            Act::KillWorker | Act::StartWorker => &mut is_worker_up,
            Act::Partition
            | Act::LoseAnswers
            | Act::LoseRequests
            | Act::Hold
            | Act::Release
            | Act::Repair
            | Act::BreakStore
            | Act::MendStore => return true,
        };
        let is_start = matches!(act, Act::StartServer | Act::StartWorker);
        let is_change = *up != is_start;
        *up = is_start;
        is_change
    });
    acts
}

fn calls(dice: &mut Dice) -> Vec<(Duration, Call)> {
    let mut calls = Vec::new();
    for n in 0..N_COMMANDS {
        let at = until_healed(dice);
        let is_long = dice.one_in(6);
        let millis = dice.between(10, if is_long { 6000 } else { 800 });
        let script = Script {
            tab: i64::try_from(dice.between(1, N_TABS)).unwrap_or(1),
            millis,
            limit: Duration::from_millis(dice.between(1000, if is_long { 30_000 } else { 3000 })),
            ready: Duration::from_millis(if dice.one_in(2) { 3000 } else { 15_000 }),
            throws: dice.one_in(8),
            awaits: dice.one_in(4),
        };
        calls.push((at, Call::Submit(script)));
        if dice.one_in(3) {
            calls.push((at + Duration::from_millis(dice.between(1, 2500)), Call::Cancel(n)));
        }
        if dice.one_in(if script.awaits { 2 } else { 8 }) {
            calls.push((at + Duration::from_millis(dice.between(1, 5000)), Call::End(n)));
        }
    }
    calls.sort_by_key(|(at, _)| *at);
    calls
}
